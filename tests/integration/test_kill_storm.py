"""Daemon and bridge killed and upgraded again and again, at random moments, under service managers
that keep their descriptors, while the scripted kubelet has pods made, started and stopped: no pod
fails, none is without its devices, no device is in two containers, each container is made and
started once, with its PostStart hook; and the kubelet sees no stream end.

SHIM_STORM_KILLS: how many of each kind (300), of which a third is in front of containerd, in
e2e/test_kill_storm.py; SHIM_STORM_SEED: which moments.
"""

import collections
import random
import threading
import time

import grpc
import pytest

from kubelet import container
from kubelet_runtime import ENDS_AT_ONCE
from node import Node, NodeRuntime
from protos import cri
from runtime import Reply
from storm import KILLS, SEED, PointStorm, Storm
from telling import tell

GPU, NIC = "vendor.com/gpu", "other.com/nic"
DEVICES = {GPU: [f"gpu{number}" for number in range(24)],
           NIC: [f"nic{number}" for number in range(16)]}
OTHER_CLIENTS = 3
POINT_STRIKES_MIN = 60  # of a part: enough to get to each point
HOOK = ["hook"]
PODS = [
    {"containers": [container("main", hook=HOOK)]},
    {"containers": [container("main", {GPU: 1}, hook=HOOK)]},
    {"containers": [container("main", {GPU: 2, NIC: 1}, hook=HOOK)]},
    {"containers": [container("main", {NIC: 1}, hook=HOOK), container("side", {GPU: 1})]},
    {"containers": [container("main", {GPU: 1})], "init": [container(ENDS_AT_ONCE, {GPU: 1})]},
    {"containers": [container(ENDS_AT_ONCE, {GPU: 1})], "restart": "Never"},
    {"containers": [container(ENDS_AT_ONCE, {NIC: 1})], "restarts": True},
]


def make_pod(_name, rng):
    return dict(rng.choice(PODS))


class SlowRuntime(NodeRuntime):
    """What changes something takes a moment, before it does and afterwards, and is remembered."""

    TAKES_S_MAX = 0.015
    METHODS = ("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer",
               "StartContainer", "StopContainer", "RemoveContainer", "ExecSync")

    def __init__(self, path):
        super().__init__(path)
        self.done = []  # (method, request, code of the answer, whether its client was gone)
        self.on("ExecSync", lambda call: Reply((cri.ExecSyncResponse().SerializeToString(),)))

    def answer(self, call):
        if call.method not in self.METHODS or not call.messages:
            return super().answer(call)
        time.sleep(random.uniform(0, self.TAKES_S_MAX))
        reply = super().answer(call)
        time.sleep(random.uniform(0, self.TAKES_S_MAX))
        self.done.append((call.method, call.parsed(), reply.code, call.over.is_set()))
        return reply


def check_of(node):
    """What is wrong with what the runtime has done since the last time."""
    def check(events):
        runtime = node.runtime
        done, runtime.done = runtime.done, []
        wrong = [f"{method} cancelled: {request}" for method, request, _, gone in done if gone]
        wrong += [f"{method} failed with {code}: {request}" for method, request, code, _ in done
                  if code not in (grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND)]

        def counts(method):
            return collections.Counter(one.container_id for name, one, _, _ in done
                                       if name == method)

        made = collections.Counter(
            (one.sandbox_config.metadata.uid, one.config.metadata.name, one.config.metadata.attempt)
            for name, one, _, _ in done if name == "CreateContainer")
        ids = {key: (one.sandbox_config.metadata.uid, one.config.metadata.name,
                     one.config.metadata.attempt) for key, one in runtime.requests.items()}
        started = collections.Counter({ids[key]: n for key, n in counts("StartContainer").items()})
        hooks = collections.Counter({ids[key]: n for key, n in counts("ExecSync").items()})
        told = collections.Counter((one["uid"], one["container"], one["attempt"])
                                   for one in events if one["kind"] == "started")
        hooked = collections.Counter({one: n for one, n in told.items()
                                      if has_hook(node.kubelet.all_pods[one[0]], one[1])})
        if not made == started == told:
            wrong.append(f"made {made - started}, {made - told}, started {started - made}, "
                         f"{started - told}, told {told - started}")
        if hooks != hooked:
            wrong.append(f"hooks: too many {hooks - hooked}, missing {hooked - hooks}")
        wrong += [f"left: {one}" for one in runtime.state.containers]
        wrong += node.violations
        node.violations.clear()
        runtime.forget_requests()
        return wrong

    return check


def has_hook(pod, name):
    return any(one["name"] == name and one.get("hook") for one in pod.spec["containers"])


@pytest.fixture
def node(directory, closing):
    one = closing(Node(directory / "n", DEVICES, store=True, runtime=SlowRuntime,
                       kubelet={"seed": SEED}, plugin={"prefer": True}))
    one.start()
    return one


def test_killed_and_upgraded(node, request):
    print(f"SHIM_STORM_SEED={SEED} SHIM_STORM_KILLS={KILLS}")
    storm = Storm(node, make_pod, SEED, check_of(node))
    kills = KILLS - KILLS // 3
    storm.run(storm.strikes(kills, kills // 5))
    assert not storm.violations, "\n".join([str(storm), *storm.violations])
    tell(request, f"seed {SEED}: {storm}")


@pytest.fixture
def other_clients(node):
    """They connect again and again, and their calls are large: what is kept of connections comes
    and goes. One that is just being made may be lost. What else is wrong."""
    over, wrong = threading.Event(), []

    def run():
        while not over.is_set():
            made = False
            with node.daemon.client() as client:
                try:
                    for _ in range(random.randrange(1, 6)):
                        body = random.randbytes(random.randrange(300_000))
                        if client.unary("/x/Echo", body)[0] != body:
                            wrong.append("another answer")
                        made = True
                except grpc.RpcError as error:
                    if made or error.code() != grpc.StatusCode.UNAVAILABLE:
                        wrong.append(repr(error))

    threads = [threading.Thread(target=run) for _ in range(OTHER_CLIENTS)]
    for one in threads:
        one.start()
    yield wrong
    over.set()
    for one in threads:
        one.join()


def test_killed_at_every_point(node, other_clients, request):
    print(f"SHIM_STORM_SEED={SEED} SHIM_STORM_KILLS={KILLS}")
    storm = PointStorm(node, make_pod, SEED, check_of(node))
    storm.run_to_each(["daemon", "bridge"] * max(KILLS // 3, POINT_STRIKES_MIN))
    assert not storm.violations + other_clients, "\n".join(storm.violations + other_clients)
    assert min(storm.hits.values()) > 0, storm.hits
    tell(request, f"seed {SEED}: {sum(storm.hits.values())} deaths at {len(storm.hits)} points, "
                  f"{min(storm.hits.values())} or more at each; {storm}")
