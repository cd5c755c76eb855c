"""Pods arrive on a node while something is done to it, and what became of them is counted; on a node
with the shim, and on one without it.

    node = Compared(directory, has_shim=False, count=30)
    node.start()
    print(node.play("kubelet killed", lambda node: node.arrive([(1, lambda: node.kill(KUBELET))])))

A third of the pods ends by itself and is of restartPolicy Never, a third stays, a third asks for
nothing.
"""

import collections
import dataclasses
import datetime
import itertools
import random
import time
import typing

from cluster import GPU, Cluster
from dra_cluster import GPUS, DraCluster, claiming_pod
from kube_api import ApiError
from kube_node import (KUBELET_PLUGIN_DIR, KUBELET_REGISTRY_DIR, PLUGIN_DIR, REGISTRY_DIR, DevicePlugin,
                       DraDriver)
from kube_pods import container, pod
from timed_plan import play_plan

ARRIVE_S = 10     # in which the pods of a scenario come
_PATIENCE_S = 180  # for which pods are waited for; who has not run by then never ran
_PAUSE_S = 0.2


@dataclasses.dataclass
class Row:
    """What became of the `pods` of a scenario. `failed`: {the kubelet's reason: how many}; `waiting`:
    of those that never ran, what the first one waits for; `double`, `missing`: containers with a device
    that another one has, and without one of their own; `seconds`: until all ran; `others_s`: the longest
    that a pod took which asks for nothing, unless it ran before."""

    pods: int = 0
    failed: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    never_ran: int = 0
    waiting: str = ""
    double: int = 0
    missing: int = 0
    seconds: float = 0
    others_s: typing.Optional[float] = None


class Scenario:
    """One that is played: pods come with arrive() or run(), at any time, by names of their own."""

    def __init__(self, cluster, name, has_shim, count, manifest):
        self.cluster, self.node = cluster, cluster.node
        self.has_shim, self.count = has_shim, count
        self._manifest = manifest
        self._rng = random.Random(name)
        self._numbers = itertools.count()  # next() is one step for several threads
        self._wanted = {}  # name: whether it is to end by itself
        self._starts = {}  # name: how often its container is to have started

    def arrive(self, strikes=(), within_s=ARRIVE_S):
        """`strikes`: (seconds from now, function)."""
        plan = [(self._rng.uniform(0, within_s), lambda kind=kind: self.come(kind))
                for kind in self._kinds(("never", "always", "plain"))]
        raised = []
        play_plan([*plan, *strikes], raised)
        assert not raised, raised[0]

    def run(self):
        """All that come stay, and run when it returns."""
        names = [self.come(kind) for kind in self._kinds(("always", "plain"))]
        self.cluster.wait_running(*names)

    def _kinds(self, kinds):
        return [kinds[number % len(kinds)] for number in range(self.count)]

    def come(self, kind, devices=1):
        """Returns its name."""
        name = f"{kind}{next(self._numbers)}"
        ends = kind == "never"
        wants, more = ({"seconds": 1}, {"restart": "Never"}) if ends else ({}, {})
        self.cluster.create(self._manifest(name, 0 if kind == "plain" else devices, wants, **more))
        self._wanted[name], self._starts[name] = ends, 1
        return name

    def began_anew(self):
        """All containers end now, and are to start once more than they have."""
        for name in list(self._starts):
            self._starts[name] = len(self.cluster.devices_of(name)) + 1

    def outcome(self):
        """What became of all that has come, once they run or are over, or that takes too long."""
        began = time.monotonic()
        seen = {}
        while time.monotonic() < began + _PATIENCE_S:
            try:
                seen = self.cluster.pods()
            except (ApiError, OSError):
                continue
            if all(self._has_run(seen, name) for name in self._wanted):
                break
            time.sleep(_PAUSE_S)
        row = Row(len(self._wanted))
        for name in self._wanted:
            if not self._has_run(seen, name):
                row.never_ran += 1
                row.waiting = row.waiting or repr(seen.get(name))
            elif seen[name].phase == "Failed":
                row.failed[seen[name].why_failed()] += 1
        others = [_took_s(seen[name]) for name, starts in self._starts.items()
                  if name.startswith("plain") and starts == 1 and self._has_run(seen, name)]
        row.others_s = max(others, default=None)
        return row

    def forget(self, name):
        """One that was deleted."""
        del self._wanted[name], self._starts[name]

    def _has_run(self, seen, name):
        if name not in seen or seen[name].over:
            return name in seen
        starts = self._starts[name]  # the first one need not have been told of: see wrong()
        return (seen[name].running and not self._wanted[name]
                and (starts == 1 or len(self.cluster.devices_of(name)) >= starts))


def _took_s(seen):
    """From the moment at which a pod was made until its container ran."""
    began = seen.containers["main"]["state"]["running"]["startedAt"]
    made, began = (datetime.datetime.fromisoformat(one.rstrip("Z"))
                   for one in (seen.what["metadata"]["creationTimestamp"], began))
    return (began - made).total_seconds()


class Compared:
    """`count`: of the pods of a scenario. `claims`: they ask by claims of DRA drivers."""

    def __init__(self, directory, has_shim, count, claims=False):
        self.has_shim, self._count, self._claims = has_shim, count, claims
        if claims:
            devices = tuple(f"dgpu{number}" for number in range(2 * count))
            self.server = DraDriver(GPUS.name, devices, registry_dir=REGISTRY_DIR if has_shim
                                    else KUBELET_REGISTRY_DIR)
            self.cluster = DraCluster(directory, (), drivers=[self.server], has_shim=has_shim,
                                      config="[cluster]\nenabled = true\n")
        else:
            # A kubelet that has just started counts devices of pods that are long gone.
            self.server = DevicePlugin(GPU, [f"gpu{number}" for number in range(2 * count)],
                                       plugin_dir=PLUGIN_DIR if has_shim else KUBELET_PLUGIN_DIR)
            self.cluster = Cluster(directory, [self.server], has_shim=has_shim)

    def start(self):
        self.cluster.start()

    def stop(self):
        self.cluster.stop()

    def play(self, name, scenario):
        """scenario(a Scenario, the DevicePlugin or DraDriver that serves its pods) may return a function
        that makes all as it was."""
        self.cluster.settle()
        told = len(self.cluster.wrong())
        one = Scenario(self.cluster, name, self.has_shim, self._count, self._manifest)
        began = time.monotonic()
        restore = scenario(one, self.server)
        row = one.outcome()
        row.seconds = time.monotonic() - began
        wrong = self.cluster.wrong()[told:]
        row.double = sum("which is also in" in line for line in wrong)
        row.missing = len(wrong) - row.double
        if restore:
            restore()
        self.cluster.remove_all()
        return row

    def _manifest(self, name, devices, wants, **more):
        if self._claims and devices:
            return claiming_pod(name, {"gpu": 1}, wants=wants, **more)
        return pod(name, container("main", {GPU: devices} if devices else None, **wants), **more)
