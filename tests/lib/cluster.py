"""A whole cluster of one node, with cri-device-shim on it.

    cluster = Cluster(directory, [DevicePlugin("vendor.com/gpu", ["gpu0", "gpu1"])])
    cluster.start()
    cluster.create(pod("web", container("main", {"vendor.com/gpu": 1})))
    cluster.wait_running("web")
    cluster.node.kill(DAEMON)
    cluster.delete("web"); cluster.wait_gone("web")
    cluster.wrong()      # what was ever wrong with the devices of a container
"""

import pathlib

from control_plane import NODE, ControlPlane
from kube_api import ApiError
from kube_node import DevicePlugin, KubeNode
from kube_pods import Seen, container, pod
from kube_programs import check_room
from waiting import GENEROUS_S, wait_until

GPU, ONE = "vendor.com/gpu", "other.com/one"
# Twice as many as are given out at a time: a kubelet that has just started counts the devices of
# pods that are long gone until it has seen all pods, and rejects a pod that finds no other; nothing
# in front of it can help that.
GPUS = DevicePlugin(GPU, [f"gpu{number}" for number in range(16)])
PLUGINS = (GPUS, DevicePlugin(ONE, ["one0"]))  # of most tests
# What a kubelet needs for a pod may be tried again each 11 to 15 s.
PATIENCE_S = 3 * GENEROUS_S
_PAUSE_S = 0.1
PODS = "/api/v1/namespaces/default/pods"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


class Cluster:
    """`taint_rules`: of its ControlPlane; `node`: the kind of its node; `has_shim`: whether the shim is
    installed there; `settings`: of the node."""

    def __init__(self, directory, plugins, taint_rules=False, node=KubeNode, has_shim=True, **settings):
        directory = pathlib.Path(directory)
        self.plane = ControlPlane(directory / "p", taint_rules)
        self.plugins = {one.resource: one for one in plugins}
        self._directory = directory
        self._kind, self._has_shim = node, has_shim
        self._settings = settings
        self._uids = {}  # of the pod that came last under each name
        self.node = None

    def start(self):
        """Returns when the scheduler can give the devices of all plugins away."""
        check_room()
        self.plane.start()
        self.node = self._kind(self._directory / "n", self.plane, self.plugins.values(),
                               **self._settings)
        self.node.start()
        self.wait(lambda: self.condition("Ready"), "the node is ready")
        if self._has_shim:
            self.node.install()
        self.wait_ready()

    def stop(self):
        errors = []
        for one in (self.node, self.plane):
            try:
                if one is not None:
                    one.stop()
            except AssertionError as error:
                errors.append(str(error))
        assert not errors, "\n".join(errors)

    @staticmethod
    def wait(condition, what, seconds=PATIENCE_S):
        return wait_until(condition, what, seconds, _PAUSE_S)

    # ---- the node, as the API server has it ----

    def status(self):
        return self.plane.api.get(f"/api/v1/nodes/{NODE}")["status"]

    def condition(self, name):
        """Whether the node is so."""
        try:
            conditions = self.status().get("conditions", [])
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return any(one["type"] == name and one["status"] == "True" for one in conditions)

    def allocatable(self, resource):
        return int(self.status()["allocatable"].get(resource, 0))

    def wait_allocatable(self, resource, number):
        """Until the node has that many for the scheduler to give, those that pods have with them."""
        try:
            self.wait(lambda: self.allocatable(resource) == number, f"{number} of {resource} are allocatable")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status()['allocatable']}") from None

    def wait_ready(self):
        """Until the node is, with all devices of its plugins that are healthy."""
        def ready():
            return self.condition("Ready") and all(
                self.allocatable(name) == sum(one.settings()["devices"].values())
                for name, one in self.plugins.items())

        self.wait(ready, "the node is ready, with all devices")

    def settle(self):
        """Until the kubelet, which may have just started, gives away whatever no pod has. It
        forgets pods that are gone when it allocates next, and only then; a pod that it rejects
        before costs nothing here."""
        self.wait_ready()
        resource = next(iter(self.plugins))

        def admitted():
            self.create(pod("sweep", container("main", {resource: 1})))
            (seen,) = self.wait_each({"sweep": lambda one: one.running or one.over})
            self.delete("sweep")
            self.wait_gone("sweep")
            return seen.running

        self.wait(admitted, "the kubelet gives devices away")
        self.wait_ready()

    def register(self, plugin):
        """As the kubelet is shown what it offers now, from its next start on."""
        self.plugins[plugin.resource] = plugin
        self.node.write_plugin(plugin)

    # ---- pods ----

    def create(self, manifest):
        seen = Seen(self.plane.api.create(PODS, manifest))
        self._uids[seen.name] = seen.uid
        return seen

    def pods(self):
        """{name: Seen}"""
        return {one["metadata"]["name"]: Seen(one) for one in self.pod_manifests()}

    def pod_manifests(self):
        return self.plane.api.get(PODS)["items"]

    def get(self, name):
        """None if it is gone."""
        return self.pods().get(name)

    def delete(self, *names, force=False):
        """`force`: the API server forgets them at once, whatever the node does."""
        options = {"gracePeriodSeconds": 0} if force else {}
        for name in names:
            self.plane.api.delete(f"{PODS}/{name}", **options)

    def wait_running(self, *names):
        """Until all of them are; their Seen in that order."""
        return self.wait_each(dict.fromkeys(names, lambda one: one.running), "run")

    def wait_over(self, *names):
        return self.wait_each(dict.fromkeys(names, lambda one: one.over), "are over")

    def wait_scheduled(self, name):
        self.wait_each({name: lambda one: one.scheduled}, "has a node")

    def wait_unscheduled(self, name):
        """Until the scheduler has found no node for it."""
        self.wait_each({name: lambda one: one.unscheduled}, "finds no node")

    def warnings(self, name):
        """The events of that kind of a pod: [(reason, message)]."""
        events = self.plane.api.get("/api/v1/namespaces/default/events")["items"]
        return [(one["reason"], one["message"]) for one in events if one["type"] == "Warning"
                and one["involvedObject"].get("uid") == self._uids[name]]

    def wait_waiting(self, name, reason, *words):
        """Until its container is not made, for this reason, with these words."""
        def so(one):
            why, text = one.waiting()
            return why == reason and all(word in text for word in words)

        return self.wait_each({name: so}, f"waits: {reason} {words}")[0]

    def wait_each(self, wanted, what="are as they should be"):
        """Until each pod is as its function says: {name: function of a Seen}; their Seen."""
        seen = {}

        def all_so():
            seen.clear()
            seen.update(self.pods())
            return all(name in seen and is_so(seen[name]) for name, is_so in wanted.items())

        try:
            self.wait(all_so, f"{', '.join(wanted)}: {what}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{[seen.get(name) for name in wanted]}") from None
        return [seen[name] for name in wanted]

    def wait_gone(self, *names):
        self.wait(lambda: not set(names) & set(self.pods()), f"{', '.join(names)} are gone")

    def remove_all(self):
        """Those that are ending already may be gone meanwhile."""
        names = list(self.pods())
        for name in names:
            try:
                self.delete(name)
            except ApiError as error:
                if error.status != 404:
                    raise
        self.wait_gone(*names)

    def create_budget(self, manifest):
        """Returns when it counts."""
        self.plane.api.create(_BUDGETS, manifest)
        path = f"{_BUDGETS}/{manifest['metadata']['name']}"
        self.wait(lambda: self.plane.api.get(path).get("status", {}).get("currentHealthy"),
                  "its pods are counted")

    def delete_budget(self, name):
        self.plane.api.delete(f"{_BUDGETS}/{name}")

    def let_go(self, name):
        """Takes the finalizers off a pod."""
        self.plane.api.patch(f"{PODS}/{name}", {"metadata": {"finalizers": None}})

    # ---- what its containers said ----

    def devices_of(self, name):
        """The ids that each container of the pod got, in the order in which they started:
        [(container, [ids])]."""
        lines = [line.split() for line in self.node.held("started")]
        return [(words[2], words[3:]) for words in lines if words[1] == self._uids[name]]

    def first_devices_of(self, name):
        """devices_of() a pod of which a container runs, which may be about to look."""
        return self.wait(lambda: self.devices_of(name), f"{name} has looked what it has")

    def hooks_of(self, name):
        """How many PostStart hooks of its containers have run."""
        return sum(line.split()[1] == self._uids[name] for line in self.node.held("hooked"))

    def wrong(self):
        """What a container said that was wrong with its devices."""
        return self.node.held("wrong")
