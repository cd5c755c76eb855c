"""A node with all there is, and all that happens to it: pods with plugins' devices and pods with claims, each of a kubelet of
its own, in front of one daemon, one bridge and one agent.

    node = WholeNode(directory, seed, logind); node.start()
    storm = WholeStorm(node, seed)
    storm.round(("daemon", "plugin")); storm.violations
    node.programs()                     # {"daemon": pid, ...} of those that run

What claims_attack.py does is done here, too. Plugins stop and go on besides, the API server refuses and tears off answers,
and an operator cordons devices and asks whatever can be asked.
"""

import random
import time

from api_server import Fault
from claims_attack import AttackedNode, Attack
from ctl import ctl
from device_watch import DeviceWatch
from kubelet import Kubelet, container
from kubelet_runtime import ENDS_AT_ONCE
from node_plugin import NodePlugin
from waiting import GENEROUS_S, wait_until

GPU, NIC = "vendor.com/gpu", "other.com/nic"
# Many more than are given out: a kubelet that has just started counts those of pods that are long gone.
_DEVICES = {GPU: [f"gpu{number}" for number in range(48)], NIC: [f"nic{number}" for number in range(32)]}
_PODS_MAX = 6
_PREFIX = "dev-"  # of the uids of pods with plugins' devices
_PODS = [  # what may come
    {"containers": [container("main")]},
    {"containers": [container("main", {GPU: 1})]},
    {"containers": [container("main", {GPU: 2, NIC: 1})]},
    {"containers": [container("main", {NIC: 1}), container("side", {GPU: 1})]},
    {"containers": [container("main", {GPU: 1})], "init": [container(ENDS_AT_ONCE, {GPU: 1})]},
    {"containers": [container("main", {GPU: 1})], "restart": "OnFailure"},  # ends when told to
    {"containers": [container(ENDS_AT_ONCE, {NIC: 1})], "restart": "Never"},
]
_HAPPENINGS = 10  # in a round, besides what happens to claims
_ROUND_S = 0.5
_QUESTIONS = (("status",), ("resources",), ("plugins",), ("devices",), ("allocations",), ("pods",), ("drivers",), ("claims",),
              ("why",), ("events",), ("orders",), ("taints",), ("endings",), ("reload",), ("checkpoint", "verify"))
_FAULTS = ({"status": 500}, {"status": 429, "headers": {"retry-after": "1"}}, {"status": 410}, {"cut": 100},
           {"cut": 40, "reset": True})
_HISTORY_MAX = 2000  # of the API server, until it is compacted as etcd is
_EVENTS_MAX = 200    # which a real one forgets after an hour


class WholeNode(AttackedNode):
    def __init__(self, directory, seed, logind, **settings):
        super().__init__(directory, seed, logind, plugins={"hold": "250ms", "grace": "1m"}, **settings)
        self.device_kubelet = Kubelet(self.directory / "k", self.daemon.socket, seed=seed, crash_s_max=20,
                                      uid_prefix=_PREFIX, log_path=self.directory / "kubelet.log")
        self.plugins = [NodePlugin(self.daemon.plugin_dir, name, ids, log_path=self.directory / "plugin.log")
                        for name, ids in _DEVICES.items()]
        self._watch = DeviceWatch(_DEVICES, self.runtime, self.device_kubelet)
        self.device_pods = 0
        self.watched_s = 2 * GENEROUS_S  # one that is lost again and again is asked again after a minute
        self.parts = {"kubelet": [self.kubelet, self.device_kubelet], "plugin": self.plugins,
                      **{part: ones for part, ones in self.parts.items() if part != "kubelet"}}
        self._ended = []  # claims that are forgotten the next time: a driver may still be at one

    def start(self):
        """Returns when pods may ask for devices."""
        super().start()
        self.up("plugin")
        for name in _DEVICES:
            self.device_kubelet.wait(lambda name=name: any(
                one["healthy"] for one in self.device_kubelet.events_of("list", resource=name)), f"{name} is known")
        self.device_kubelet.wait_event("sources_ready")

    def _boot(self):
        super()._boot()
        self._watch.boot = self.boot
        for plugin in self.plugins:
            plugin.settings["boot"] = self.boot

    def programs(self):
        return {part: self.parts[part][0].pid for part in ("daemon", "bridge", "agent")
                if self._is_up(self.parts[part][0])}

    def _is_up(self, one):
        return id(one) in self._running

    def pause_plugin(self, which, seconds):
        with self._power:
            plugin = self.plugins[which]
            if self._is_up(plugin):
                plugin.pause()
                time.sleep(seconds)
                plugin.resume()

    # ---- pods with devices ----

    def come_with_devices(self, settings):
        self.device_pods += 1
        return self.device_kubelet.add_pod(f"device-pod-{self.device_pods}", **settings)

    def _look(self, request, lost):
        if request.sandbox_config.metadata.uid.startswith(_PREFIX):
            self._watch.violations += self._watch.check_container(request)
        else:
            super()._look(request, lost)

    def _are_settled(self):
        kubelet = self.device_kubelet
        return (all(not pod.deleting for pod in list(kubelet.pods.values()))
                and all(pod.phase != "Pending" for pod in kubelet.live()) and not self._watch.check_running())

    def settle(self):
        wrong = super().settle()
        try:
            wait_until(self._are_settled, "all pods with devices run or are gone")
        except AssertionError as error:
            wrong += [str(error), *map(str, self.device_kubelet.pods.values()), *self._watch.check_running()]
        return (wrong + [f"rejected, or failed: {pod}" for pod in self.device_kubelet.failed()] + self._watch.violations)

    def forgive(self):
        """What was wrong is told, and is to be told once."""
        for told in (self.violations, self._watch.violations, self.registrations.twice, self.kubelet.late):
            told.clear()
        for book in self.books.values():
            book.forgive()

    def forget(self):
        super().forget()
        kubelet = self.device_kubelet
        over = [pod for pod in list(kubelet.pods.values()) if pod.phase in ("Succeeded", "Failed")]
        for pod in over:
            kubelet.delete_pod(pod)
        kubelet.wait_gone(*over)
        kubelet.forget()
        self._forget_claims()
        self._forget_objects()
        self.moments.clear()

    def _forget_claims(self):
        for uid in self._ended:
            for name in self._claims.pop(uid).drivers:
                del self.allocations[uid, name]
        self._ended = [one.uid for one in self._claims.values() if self._is_over(one)]
        self.kubelet.forget([pod for pod in list(self.kubelet.pods.values())
                             if pod.gone and not any(one.uid in self._claims and not self._is_over(one) for one in pod.claims)])

    def _forget_objects(self):
        with self.scheduling:
            self.server.cut_off.clear()
            for namespace, name in list(self.server.objects["events"])[:-_EVENTS_MAX]:
                self.server.remove("events", name, namespace)
            self.server.compact(beyond=_HISTORY_MAX)


class WholeStorm(Attack):
    def __init__(self, node, seed):
        super().__init__(node, seed)
        self.asked = self.faults = 0

    def _plan(self, pair):
        rng = self._random
        plan = super()._plan(pair)
        doings = [self._come_with_devices] * 4 + [
            self._delete_with_devices, self._delete_with_devices, self._crash_with_devices, self._finish,
            self._pause_plugin, self._cordon, self._ask, self._ask, self._fail_server]
        for _ in range(_HAPPENINGS):
            doing, seed = rng.choice(doings), rng.random()
            plan.append((rng.uniform(0, _ROUND_S), lambda what=doing, seed=seed: what(random.Random(seed))))
        return plan

    def settled(self):
        self._node.server.mend()
        for part in self._node.parts:
            self._node.up(part)
        super().settled()

    def end(self):
        kubelet = self._node.device_kubelet
        for pod in kubelet.live():
            kubelet.delete_pod(pod)
        super().end()

    # ---- what happens besides ----

    def _come_with_devices(self, rng):
        if len(self._node.device_kubelet.live()) < _PODS_MAX:
            self._node.come_with_devices(rng.choice(_PODS))

    def _some(self, rng, restart, do):
        if pods := [pod for pod in self._node.device_kubelet.live() if pod.spec["restart"] == restart]:
            do(rng.choice(pods))

    def _delete_with_devices(self, rng):
        self._some(rng, "Always", self._node.device_kubelet.delete_pod)

    def _crash_with_devices(self, rng):
        self._some(rng, "Always", lambda pod: self._node.runtime.finish(pod.uid, "main", 1))

    def _finish(self, rng):
        self._some(rng, "OnFailure", lambda pod: self._node.runtime.finish(pod.uid, "main", 0))

    def _pause_plugin(self, rng):
        """It hangs for a moment."""
        self._node.pause_plugin(rng.randrange(len(_DEVICES)), rng.uniform(0, 0.2))

    def _cordon(self, rng):
        resource = rng.choice(sorted(_DEVICES))
        device = rng.choice(_DEVICES[resource])
        self._node.ask("cordon", resource, device)
        time.sleep(rng.uniform(0, 0.2))
        self._node.ask("uncordon", resource, device)

    def _ask(self, rng):
        self.asked += 1
        ctl(self._node.daemon, *rng.choice(_QUESTIONS))

    def _fail_server(self, rng):
        self.faults += 1
        self._node.server.fault(Fault(**rng.choice(_FAULTS)), times=rng.randint(1, 3))
