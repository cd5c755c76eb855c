"""A node for pods with claims: runtime, daemon, bridge, agent, two DRA drivers and a kubelet, each of which can go
and come back, and an API server.

    node = ClaimsNode(directory, seed); node.start()
    pod = node.come([node.claim(GPU), node.claim(GPU, NIC)])   # one of its claims has devices of both drivers
    node.settle()                           # until all pods run, or are gone; says what is wrong then
    node.down("driver"); node.up("driver")  # node.slots[GPU] is one of them, which may move to the kubelet
    node.reboot(KILL, node.parts, pause)
    node.violations                         # that were seen on the way

GPU's devices are this node's own, NIC's are the whole cluster's. The files of CDI go in a reboot. A claim has
devices that no other has whose pods are not all gone.
"""

import collections
import itertools
import threading

import grpc

from agent_process import Agent
from api_server import ApiServer
from dra_driver import V1, V1BETA1
from kubelet_claims import KubeletClaims, PodClaim
from kubelet_drivers import KubeletDrivers
from node import Bridge, NodeRuntime, NodeShim
from parts import Parts
from protos import cri
from runtime import Reply
from supervisor import Supervisor, supervised
from waiting import GENEROUS_S, wait_until
from watched_driver import Book, Slot, WatchedDriver

NODE = "node-1"
GPU, NIC = "gpu.example.com", "nic.example.com"
DRIVERS = (GPU, NIC)
_POOLS = {GPU: NODE, NIC: "fabric"}
_DEVICES = {GPU: [f"gpu-{number}" for number in range(48)], NIC: [f"nic-{number}" for number in range(48)]}


class _Runtime(NodeRuntime):
    """Knows the files of CDI. `look(request, lost)` is called with each CreateContainer, and its names that there are no
    files for."""

    def __init__(self, path, look):
        super().__init__(path)
        self.cdi_files = set()
        self._look = look

    def create(self, call):
        request = call.parsed()
        lost = [one.name for one in request.config.CDI_devices if one.name not in self.cdi_files]
        self._look(request, lost)
        if lost:
            return Reply((), grpc.StatusCode.UNKNOWN,
                         f"CDI device injection failed: unresolvable CDI devices {', '.join(lost)}")
        return super().create(call)

    def lose_sandbox(self, uid):
        """Its sandbox ends by itself, with all containers in it."""
        for one in list(self.state.pods.values()):
            if one.metadata.uid == uid:
                one.state = cri.SANDBOX_NOTREADY
                for container in list(self.state.containers.values()):
                    if container.pod_sandbox_id == one.id:
                        self.finish(uid, container.metadata.name, 1)

    def claims_in(self, uid):
        """The CDI names in the pod's containers that run, of each."""
        return [sorted({one.name for one in request.config.CDI_devices})
                for request in self.running_in(uid).values()]


class ClaimsNode(Parts):
    """`dra`: settings of that table; `settings`: of others. lift_node.py has one whose drivers are a plugin."""

    drivers = DRIVERS  # that the kubelet is to have

    def __init__(self, directory, seed="", dra=None, **settings):
        super().__init__(directory)
        self.violations = []
        self.came = 0
        self.watched_s = GENEROUS_S  # until the agent has found the API server again, at most
        self.allocations = {}  # {(claim uid, driver): device}
        self._claims = {}      # by uid
        self._numbers = itertools.count()
        self.scheduling = threading.RLock()  # what the API server has, and whether it serves
        self.server = ApiServer(self.directory / "pki")
        self.server.start()
        self.server.put("nodes", {"metadata": {"name": NODE}, "spec": {}, "status": {}})
        self.managers = {part: Supervisor(self.directory, name=f"notify.{part}") for part in ("daemon", "bridge")}
        self.daemon = supervised(NodeShim, self.managers["daemon"])(
            self.directory, self.directory / "k", dra={"wipe_after": "200ms", **(dra or {})},
            cluster={"enabled": True, "socket": str(self.run_dir / "agent.sock")}, **settings)
        self.bridge = supervised(Bridge, self.managers["bridge"])(self.daemon.config_path,
                                                                  self.directory / "bridge.log")
        self.agent = Agent(self.directory, self.server.kubeconfig(self.directory / "kubelet.conf", NODE))
        self.runtime = _Runtime(self.run_dir / "r.sock", self._look)
        self.registrations = KubeletDrivers(self.daemon.kubelet_registry_dir)
        self.kubelet = KubeletClaims(self.registrations, self.directory / "dra_manager_state",
                                     self.daemon.socket, seed)
        self.books, self.slots = {}, {}
        self.parts = {"kubelet": [self.kubelet], "driver": self._make_drivers(seed), "agent": [self.agent],
                      "bridge": [self.bridge], "daemon": [self.daemon], "runtime": [self.runtime]}

    def _make_drivers(self, seed):
        """What is restarted as such."""
        self.books = {name: Book(name, _POOLS[name], seed, self.allocations, self._holders,
                                 self.runtime.cdi_files, self._is_forced) for name in DRIVERS}
        self.slots = {name: Slot(lambda *is_, name=name: self._make_driver(name, *is_)) for name in DRIVERS}
        return list(self.slots.values())

    def _make_driver(self, name, instance, moved):
        services = [V1, V1BETA1] if name == GPU else [V1BETA1]
        return WatchedDriver(self.registrations.registry if moved else self.daemon.registry_dir, self.directory / "plugins", name, services, instance,
                             book=self.books[name], moved=moved)

    def start(self):
        self.power_on(["runtime", "daemon", "agent", "bridge", "driver", "kubelet"])
        self.publish()
        for name in self.drivers:
            self.registrations.wait_at_work(name)
        self.server.wait_watched("resourceslices")

    def stop(self):
        super().stop()
        self.server.stop()

    def _boot(self):
        self.daemon.begin_boot()

    def _lose_power(self):
        self.runtime.reboot()
        self.runtime.cdi_files.clear()
        for slot in self.slots.values():
            slot.lose_power()

    def publish(self):
        """The slices of the drivers, if they are not there."""
        with self.scheduling:
            for name, where in ((GPU, {"nodeName": NODE}), (NIC, {"allNodes": True})):
                if not self.server.get("resourceslices", f"slice-{name}"):
                    self.server.put("resourceslices", {"metadata": {"name": f"slice-{name}"}, "spec": {
                        "driver": name, "pool": {"name": _POOLS[name], "generation": 1}, **where,
                        "devices": [{"name": one} for one in _DEVICES[name]]}})

    def restart_server(self, pause):
        """Of the API: its connections are torn off, and what it has stays."""
        with self.scheduling:
            self.server.stop()
        pause()
        with self.scheduling:
            self.server.start()

    # ---- claims and pods ----

    def claim(self, *drivers):
        """A new one, with a device of each."""
        with self.scheduling:
            held = {device for claim in self._claims.values() if not self._is_over(claim)
                    for device in self._devices_of_claim(claim)}
            free = {name: next(one for one in _DEVICES[name] if (name, one) not in held) for name in drivers}
            claim = PodClaim(f"c-{next(self._numbers)}", drivers)
            for name in drivers:
                self.allocations[claim.uid, name] = free[name]
            self._claims[claim.uid] = claim
            self.server.put("resourceclaims", {
                "metadata": {"name": f"claim-{claim.uid}", "namespace": "default", "uid": claim.uid}, "spec": {},
                "status": {"allocation": {"devices": {"results": [
                    {"request": "r", "driver": name, "pool": _POOLS[name], "device": free[name]}
                    for name in drivers]}}}})
        return claim

    def _is_over(self, claim):
        pods = self._pods_of(claim.uid)
        return bool(pods) and all(pod.gone for pod in pods)

    def come(self, claims):
        self.came += 1
        return self.kubelet.add_pod(claims)

    def forget(self):
        """What the API server and the runtime have of pods that are gone."""
        for namespace, name in list(self.server.objects["resourceclaims"]):
            if self._is_over(self._claims[name.removeprefix("claim-")]):
                self.server.remove("resourceclaims", name, namespace)
        self.runtime.forget_requests()
        self.server.requests.clear()

    def _pods_of(self, uid):
        return [pod for pod in list(self.kubelet.pods.values()) if any(one.uid == uid for one in pod.claims)]

    def _holders(self, uid):
        names = {f"{name}/device={uid}" for name in DRIVERS}
        return [pod.uid for pod in self._pods_of(uid) for held in self.runtime.claims_in(pod.uid)
                if names & set(held)]

    def _is_forced(self, uid):
        return any(pod.forced for pod in self._pods_of(uid))

    # ---- what must hold ----

    @staticmethod
    def names_of(pod):
        return sorted(f"{name}/device={one.uid}" for one in pod.claims for name in one.drivers)

    @staticmethod
    def given(request):
        """What a container was made with, to be held against names_of() its pod."""
        return sorted(one.name for one in request.config.CDI_devices)

    def is_running(self, pod):
        return [sorted({*self.given(request)}) for request in self.runtime.running_in(pod.uid).values()] == [self.names_of(pod)]

    def _look(self, request, lost):
        """At what is being created."""
        pod = self.kubelet.pods[request.sandbox_config.metadata.uid]
        if self.given(request) != self.names_of(pod):
            self.violations.append(f"{pod} gets {self.given(request)}, and not {self.names_of(pod)}")
        if lost:
            self.violations.append(f"{pod} is made before {lost} are there")
        held = self._devices_of(pod)
        for other in self.kubelet.live():
            shared = held & self._devices_of(other)
            ours = {one for claim in {*pod.claims} & {*other.claims} for one in self._devices_of_claim(claim)}
            if other is not pod and shared - ours and self.runtime.running_in(other.uid):
                self.violations.append(f"{pod} gets {shared - ours}, which {other} has")

    def _devices_of_claim(self, claim):
        return {(name, self.allocations[claim.uid, name]) for name in claim.drivers}

    def _devices_of(self, pod):
        return {device for claim in pod.claims for device in self._devices_of_claim(claim)}

    def settle(self):
        """Until all that was asked for is so; what is not right then."""
        self.publish()
        try:
            wait_until(self._is_settled, "all pods run or are gone")
            wait_until(lambda: not self._left_over(), "what is owed is told")
            self.server.wait_watched("resourceslices", self.watched_s)
        except AssertionError as error:
            return [str(error), *(f"{pod}, runs {self.runtime.claims_in(pod.uid)}"
                                  for pod in self.kubelet.pods.values() if not pod.gone),
                    f"entries {self.kubelet.entries()}", f"failures {self.kubelet.failures}",
                    *self._left_over(), *self.judge()]
        return self._left_over() + self.judge()

    def _is_settled(self):
        """With no entry left of pods that are gone."""
        live = self.kubelet.live()
        return (all(map(self.is_running, live))
                and all(pod.gone for pod in list(self.kubelet.pods.values()) if pod.deleting)
                and self.kubelet.entries() == sorted({one.uid for pod in live for one in pod.claims}))

    def _left_over(self):
        wrong = []
        claims = {one for pod in self.kubelet.live() for one in pod.claims}
        for name, book in self.books.items():
            wanted = sorted(one.uid for one in claims if name in one.drivers)
            if sorted(book.prepared) != wanted:
                wrong.append(f"{name} has {sorted(book.prepared)} prepared, and not {wanted}")
        files = sorted(name for pod in self.kubelet.live() for name in set(self.names_of(pod)))
        if sorted(self.runtime.cdi_files) != sorted(set(files)):
            wrong.append(f"there are CDI files for {sorted(self.runtime.cdi_files)}, and not {files}")
        return wrong

    def judge(self):
        """What was ever wrong."""
        return (self.violations + self.registrations.twice + self.kubelet.late
                + [one for book in self.books.values() for one in book.judge()])

    def calls(self):
        return sum((book.calls for book in self.books.values()), collections.Counter())
