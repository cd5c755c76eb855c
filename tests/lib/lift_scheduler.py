"""A scheduler's stand-in: it allocates claims by the scripted API server's slices, and by nothing else.

    scheduler = LiftScheduler(server, driver, node); scheduler.allocate("c-1", Request("gpu", 2, lambda a: a["numaNode"] == 1))
"""

import collections


class Unallocatable(Exception):
    """No devices are left that a request wants."""


# `wants`: of a device's attributes, by name, as a CEL expression would be.
Request = collections.namedtuple("Request", ["name", "count", "wants"], defaults=[1, lambda attributes: True])


class LiftScheduler:
    def __init__(self, server, driver, node):
        self.server, self.driver, self.node = server, driver, node
        self.allocated = set()  # (pool, device)
        self._of = {}  # {claim uid: those of it}

    def pools(self):
        """Their slices of the highest generation, if those are all."""
        pools = collections.defaultdict(list)
        for one in list(self.server.objects["resourceslices"].values()):
            if one["spec"]["driver"] == self.driver:
                pools[one["spec"]["pool"]["name"]].append(one["spec"])
        for name, slices in pools.items():
            newest = max(one["pool"]["generation"] for one in slices)
            slices = [one for one in slices if one["pool"]["generation"] == newest]
            if all(one["pool"]["resourceSliceCount"] == len(slices) for one in slices):
                yield name, slices

    def offered(self):
        """{(pool, device): attributes}, of what is tainted by nothing and allocated to nobody."""
        return {(pool, device["name"]): {name: next(iter(value.values())) for name, value in device["attributes"].items()}
                for pool, slices in self.pools() for one in slices for device in one["devices"]
                if all(taint["effect"] == "None" for taint in device.get("taints", []))
                and (pool, device["name"]) not in self.allocated}

    def allocate(self, uid, *requests):
        """To a claim that a pod of the node names: the ids of its devices."""
        offered, results, ids = self.offered(), [], []
        for request in requests:
            fit = [key for key, attributes in offered.items() if request.wants(attributes)][:request.count]
            if len(fit) < request.count:
                raise Unallocatable(f"{uid}, request {request.name}: {len(fit)} of {request.count}")
            results += [{"driver": self.driver, "pool": pool, "device": name, "request": request.name} for pool, name in fit]
            ids += [offered.pop(key)["id"] for key in fit]
        self._of[uid] = {(one["pool"], one["device"]) for one in results}
        self.allocated |= self._of[uid]
        self.server.put("resourceclaims", {
            "metadata": {"name": f"claim-{uid}", "namespace": "default", "uid": uid}, "spec": {},
            "status": {"allocation": {"devices": {"results": results}}}})
        self.server.put("pods", {
            "metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": f"pod-{uid}"}, "status": {},
            "spec": {"nodeName": self.node, "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{uid}"}]}})
        return sorted(ids)

    def release(self, uid):
        """The claim is gone: others may have its devices."""
        self.allocated -= self._of.pop(uid)
        self.server.remove("pods", f"pod-{uid}", "default")
