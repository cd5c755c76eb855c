"""A cluster whose node has DRA drivers.

    cluster = DraCluster(directory, (), drivers=[DraDriver("gpu.example.com", ["dgpu0"])])
    cluster.start()                             # the scheduler can allocate all of their devices
    cluster.create_pod("web", {"gpu": 1})       # a claim of its own, made from the template "gpu"
    cluster.create_claim(claim("shared", "net", "net.example.com"))
    cluster.create_pod("two", {"net": 1}, shared={"net": "shared"})
"""

import os
import sys

import images
from cluster import PODS, Cluster
from kube_api import ApiError
from kube_claims import CLAIMS, CLASSES, SLICES, TEMPLATES, by_name, device_class, from_template, template
from kube_node import DRIVER_PROGRAM, V1BETA1, DraDriver
from kube_pods import container, pod
from shim import ROOT

GPU, NET = "gpu.example.com", "net.example.com"
GPUS = DraDriver(GPU, tuple(f"dgpu{number}" for number in range(12)))
NETS = DraDriver(NET, tuple(f"dnet{number}" for number in range(12)), services=(V1BETA1,))
DRIVERS = (GPUS, NETS)
EXTENDED = "example.com/gpu"  # the resource that is GPUs', too
_CLAIM_OF_POD = "resource.kubernetes.io/pod-claim-name"  # of a claim that is made from a template: which of the pod's
# Of which claims are made, by the name of their request: two pods may have a third claim.
_TEMPLATES = {"gpu": (GPU, 1), "net": (NET, 1), "gpus": (GPU, 2)}


def claiming_pod(name, claims, shared=None, wants=None, **more):
    """One container, with `claims`: {request: devices}; those in `shared`, {request: claim}, are
    there already. `wants`: of container(), `more`: of pod()."""
    shared = shared or {}
    return pod(name, container("main", claims=claims, **(wants or {})), resourceClaims=[
        by_name(one, shared[one]) if one in shared else from_template(one) for one in claims],
        **more)


def driver_pod(name, driver, **more):
    """The driver's program in a pod, with the node's directories that it needs. `more`: of pod()."""
    paths = ["/usr", "/lib", "/lib64", "/etc", "/tmp", str(ROOT), "/var/run/cdi", "/var/lib/drivers",
             "/var/lib/kubelet/plugins", driver.registry_dir]
    volumes = [{"name": f"v{number}", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
               for number, path in enumerate(paths)]
    runs = {"name": "driver", "image": images.APP, "imagePullPolicy": "Never",
            "command": [sys.executable, str(DRIVER_PROGRAM), driver.path],
            "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
                    {"name": "PATH", "value": os.environ["PATH"]}],
            "volumeMounts": [{"name": one["name"], "mountPath": path}
                             for one, path in zip(volumes, paths)]}
    return pod(name, runs, volumes=volumes, **more)


def _templated(manifest):
    return [one["name"] for one in manifest["spec"].get("resourceClaims", [])
            if "resourceClaimTemplateName" in one]


def _lacks_entries(manifest):
    entries = manifest.get("status", {}).get("resourceClaimStatuses", [])
    return not set(_templated(manifest)) <= {one["name"] for one in entries}


class DraCluster(Cluster):
    """`drivers`: of its node; the other instance in a rolling update is none of them."""

    def __init__(self, directory, plugins, drivers=DRIVERS, **settings):
        super().__init__(directory, plugins, drivers=drivers, **settings)
        self.drivers = {one.name: one for one in drivers}

    def start(self):
        super().start()
        for name in self.drivers:
            self.plane.api.create(CLASSES, device_class(name, EXTENDED if name == GPU else None))
        for request, (driver, count) in _TEMPLATES.items():
            self.plane.api.create(TEMPLATES, template(request, driver, count))

    # ---- what there is ----

    def slices(self):
        """{driver: how many devices it has published}"""
        there = {}
        for one in self.plane.api.get(SLICES)["items"]:
            name = one["spec"]["driver"]
            there[name] = there.get(name, 0) + len(one["spec"].get("devices", []))
        return there

    def taint_in_slice(self, driver, device, *taints):
        """As the driver would; without any it has none any more."""
        for one in self.plane.api.get(SLICES)["items"]:
            devices = one["spec"].get("devices", [])
            if one["spec"]["driver"] == driver and device in (each["name"] for each in devices):
                for each in devices:
                    if each["name"] == device:
                        each["taints"] = list(taints)
                self.plane.api.patch(f"{SLICES}/{one['metadata']['name']}",
                                     {"spec": {"devices": devices}})

    def wait_ready(self):
        super().wait_ready()
        self.wait(lambda: self.slices() == {name: len(one.devices)
                                            for name, one in self.drivers.items()},
                  "all devices of the drivers are published")

    def settle(self):
        self.wait_ready()

    # ---- claims ----

    def pod_manifests(self):
        """Where a pod has claims of two templates, Kubernetes 1.36's controller, if what it has read is old, applies
        one's entry in the pod's status without the other's, which is gone with that (kubernetes/kubernetes#138407),
        and scheduler or kubelet wait for it for ever: it is put back here, as a later controller does."""
        pods = super().pod_manifests()
        lacking = [one for one in pods if _lacks_entries(one)]
        claims = self.claims().values() if lacking else ()
        for one in lacking:
            entries = [{"name": claim["metadata"]["annotations"][_CLAIM_OF_POD],
                        "resourceClaimName": claim["metadata"]["name"]} for claim in claims
                       if any(owner["uid"] == one["metadata"]["uid"]
                              for owner in claim["metadata"].get("ownerReferences", []))]
            if {each["name"] for each in entries} == set(_templated(one)):
                self._patch_status(one["metadata"]["name"], {"resourceClaimStatuses": entries})
        return pods

    def _patch_status(self, pod_name, status):
        try:
            self.plane.api.patch(f"{PODS}/{pod_name}/status", {"status": status})
        except ApiError as error:
            if error.status != 404:
                raise

    def create_claim(self, manifest):
        return self.plane.api.create(CLAIMS, manifest)

    def create_pod(self, name, claims, shared=None, wants=None, **more):
        """A claiming_pod()."""
        return self.create(claiming_pod(name, claims, shared, wants, **more))

    def claims(self):
        """{uid: claim} of the API server's."""
        return {one["metadata"]["uid"]: one for one in self.plane.api.get(CLAIMS)["items"]}

    def prepared(self):
        """{driver: {claim uid: devices}} of those that have some."""
        found = {name: self.node.prepared(one) for name, one in self.drivers.items()}
        return {name: claims for name, claims in found.items() if claims}

    def calls(self, driver):
        """[(prepare or unprepare, claim uid) or (registered, instance)] of the driver, in turn."""
        return [tuple(line.split()) for line in self.node.driver_file(driver, "calls")]

    def start_driver(self, driver):
        """Returns when it is registered."""
        before = len(self.registrations(driver))
        self.node.start_unit(driver.unit)
        self.wait(lambda: len(self.registrations(driver)) > before, f"{driver.unit} is registered")

    def registrations(self, driver):
        return [one for one in self.calls(driver) if one[0] == "registered"]

    def remove_all(self):
        """Pods and claims; nothing is prepared any more then."""
        super().remove_all()
        for one in self.claims().values():
            try:
                self.plane.api.delete(f"{CLAIMS}/{one['metadata']['name']}")
            except ApiError as error:
                if error.status != 404:
                    raise
        self.wait(lambda: not self.claims(), "all claims are gone")
        self.wait(lambda: not self.prepared(), "no claim is prepared any more")
