"""What is done to a cluster while pods arrive, and what came of it.

    def manifest(name, wants, **more):   # of container(), and of pod()
        return pod(name, container("main", {"vendor.com/gpu": 1}, **wants), **more)

    outcome = strike_under_arrivals(cluster, lambda: cluster.node.kill(DAEMON), manifest, rounds=3,
                                    seed="1")
    outcome.failed        # {reason: how many pods}
"""

import collections
import dataclasses
import json
import random
import time

from timed_plan import play_plan

_ARRIVE_S = 1.5  # in which a round's pods come, and in which it strikes
_PODS = 6        # of a round
_RUN_S = 1       # how long one runs that ends by itself


@dataclasses.dataclass
class Outcome:
    """`failed`: {reason: how many pods}, of `pods` that came; of those that did not fail, `again`:
    whose container was started more than once, `hookless`: without its PostStart hook each time.
    `messages`: of the first that failed, by reason. `seconds`: of each round, until all run or are
    over."""

    rounds: int = 0
    pods: int = 0
    failed: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    messages: dict = dataclasses.field(default_factory=dict)
    again: list = dataclasses.field(default_factory=list)
    hookless: list = dataclasses.field(default_factory=list)
    seconds: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return (f"{self.pods} pods in {self.rounds} rounds, {sum(self.failed.values())} Failed "
                f"{dict(self.failed)}, {len(self.again)} started twice, {len(self.hookless)} "
                f"without their hook, {sum(self.seconds) / len(self.seconds):.0f} s a round, the "
                f"longest {max(self.seconds):.0f}")


def strike_under_arrivals(cluster, strike, manifest, rounds, seed):
    """Each round pods come at random moments, and strike() is called at one; half of them are of
    restartPolicy Never and end by themselves, the other half of Always. It ends when all run or are
    over, and the next one begins when they are gone."""
    rng = random.Random(seed)
    outcome = Outcome()
    for number in range(rounds):
        cluster.settle()
        _round(cluster, strike, manifest, rng, f"r{number}", outcome)
        outcome.rounds += 1
    return outcome


def _round(cluster, strike, manifest, rng, prefix, outcome):
    began = time.monotonic()
    ending = [f"{prefix}-never{number}" for number in range(_PODS // 2)]
    staying = [f"{prefix}-always{number}" for number in range(_PODS // 2)]
    plan = [(rng.uniform(0, _ARRIVE_S), lambda name=name: cluster.create(manifest(
        name, {"seconds": _RUN_S, "hook": True}, restart="Never"))) for name in ending]
    plan += [(rng.uniform(0, _ARRIVE_S), lambda name=name: cluster.create(manifest(
        name, {"hook": True}))) for name in staying]
    plan.append((rng.uniform(0, _ARRIVE_S), strike))
    raised = []
    play_plan(plan, raised)
    assert not raised, raised[0]
    seen = cluster.wait_each({**dict.fromkeys(ending, lambda one: one.over),
                              **dict.fromkeys(staying, lambda one: one.running or one.over)})
    outcome.pods += len(seen)
    outcome.seconds.append(time.monotonic() - began)
    for one in seen:
        if one.phase == "Failed":
            outcome.failed[one.why_failed()] += 1
            outcome.messages.setdefault(one.why_failed(), repr(one))
            continue
        starts = len(cluster.devices_of(one.name))
        if starts != 1:
            outcome.again.append(f"{one.name} {starts}")
        if cluster.hooks_of(one.name) < starts:
            outcome.hookless.append(one.name)
    cluster.remove_all()


def kill_pause(cluster, name):
    """The process that keeps the pod's sandbox; its containers go on running."""
    with cluster.node.runtime() as client:
        uid = cluster.get(name).uid
        (sandbox,) = client.ListPodSandbox(filter={
            "label_selector": {"io.kubernetes.pod.uid": uid}}).items
        status = client.PodSandboxStatus(pod_sandbox_id=sandbox.id, verbose=True)
        cluster.node.run("kill", "-KILL", str(json.loads(status.info["info"])["pid"]))
