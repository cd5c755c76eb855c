#!/usr/bin/python3
"""Restarts of the parts of a node, overlapping, with pods coming and going; what was wrong is told.

    tests/lib/restarts.py FIRST [SECOND] --seed TEXT --rounds N [--without-store] [--keep DIRECTORY]

FIRST and SECOND are of kubelet, plugin, daemon, bridge, runtime, reboot. Each round ends one, ends
the other a random while later, and lets both come back; by SIGKILL or SIGTERM. It then waits until
every pod runs. All randomness is the seed's; prints one JSON object.

Daemon and bridge run under service managers that keep their descriptors, and no pod may be rejected;
without a store those are excused that the kubelet admits in the moment of a restart of the bridge.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

import nursery
from kubelet import container
from kubelet_runtime import ENDS_AT_ONCE
from node import PARTS, Node
from parts import KILL, TERM
from timed_plan import play_plan

REBOOT = "reboot"
EXCUSED_SHARE_MAX = 0.5  # of all pods that come; 0.1 to 0.4 was seen, by how busy the machine was
RESTARTS = (*PARTS, REBOOT)
GPU, NIC = "vendor.com/gpu", "other.com/nic"
# Twice as many as are given out: a kubelet that has just started counts the devices of pods that
# are long gone until it has seen all pods, and rejects a pod that finds no other; nothing in front
# of it can help that.
_DEVICES = {GPU: [f"gpu{number}" for number in range(12)],
            NIC: [f"nic{number}" for number in range(8)]}
_ROUND_S = 0.4      # in which what happens in a round begins
# At most, from a part's end until it is started again: a moment, or longer than creations are held.
_BACK_S, _LONG_S = 0.05, 0.5
# From the start of a bridge until the kubelet has all lists again, at most: 2.5 s were the most that
# was seen of a sanitized build on a busy machine.
_RECOVERY_S = 10
# From the moment at which the gate lets a kubelet's relist go until that kubelet says so, at most.
_GATE_S = 0.05
_PODS_MAX = 10
_HAPPENINGS = 6     # in a round, besides the restarts
_PODS = [  # what may come
    {"containers": [container("main")]},
    {"containers": [container("main", {GPU: 1})]},
    {"containers": [container("main", {GPU: 2, NIC: 1})]},
    {"containers": [container("main", {NIC: 1}), container("side", {GPU: 1})]},
    {"containers": [container("main", {GPU: 1})], "init": [container(ENDS_AT_ONCE, {GPU: 1})]},
    {"containers": [container("main", {GPU: 1})], "restart": "OnFailure"},  # ends when told to
]


@dataclasses.dataclass
class Result:
    rounds: int = 0
    violations: list = dataclasses.field(default_factory=list)
    pods: int = 0      # that came
    excused: int = 0   # of them, rejected while the bridge was being restarted without a store
    windows_ms: list = dataclasses.field(default_factory=list)  # how long that was, each time
    seconds: float = 0


class Restarts:
    """One node, and what happens to it."""

    def __init__(self, directory, first, second, seed, store=True):
        self._store = store
        self._pair = [one for one in (first, second) if one]
        self._random = random.Random(seed)
        self._node = Node(directory, _DEVICES, store=store,
                          kubelet={"seed": seed, "crash_s_max": 20})
        self._kubelet = self._node.kubelet
        self._start_events = []  # of the kubelet that a round begins with
        self.result = Result()

    def run(self, rounds):
        began = time.monotonic()
        try:
            self._node.start()
            for _ in range(rounds):
                self._round()
                if self.result.violations:
                    break
        except Exception:  # told, as all that is wrong
            self.result.violations.append(traceback.format_exc()[-4000:])
        finally:
            self._stop()
        self.result.seconds = round(time.monotonic() - began, 2)
        return self.result

    def _stop(self):
        try:
            self._node.stop()
        except AssertionError as error:
            self.result.violations.append(str(error)[:4000])

    # ---- one round ----

    def _round(self):
        self._settle()
        self._forget()
        self._sweep()
        play_plan(self._plan(), self.result.violations)
        if self.result.violations:
            return
        self._settle()
        self._judge()
        self.result.rounds += 1

    def _plan(self):
        """[(when, what)]: all that is random is decided here."""
        rng = self._random
        at = rng.uniform(0, _ROUND_S / 4)
        plan = []
        for part in self._pair:
            plan.append((at, self._planned_restart(part, rng)))
            at += _ROUND_S * rng.random() ** 2
        choices = [self._come, self._come, self._come, self._crash, self._finish, self._delete]
        for _ in range(_HAPPENINGS):
            happening = rng.choice(choices)
            plan.append((rng.uniform(0, _ROUND_S),
                         lambda what=happening, value=rng.random(): what(value)))
        return plan

    def _planned_restart(self, part, rng):
        how = rng.choice([KILL, TERM])
        back = rng.uniform(0, rng.choice([_BACK_S, _BACK_S if part == "bridge" else _LONG_S]))
        if part == REBOOT:
            order = rng.sample(PARTS, len(PARTS))
            pauses = iter([rng.uniform(0, _BACK_S) for _ in order])
            return lambda: self._reboot(how, order, pauses)
        which = rng.choice([None, 0, 1])
        return lambda: self._restart(part, how, back, which)

    def _restart(self, part, how, back, which):
        try:
            self._node.down(part, how, which if part == "plugin" else None)
            time.sleep(back)
        finally:
            self._node.up(part)

    def _reboot(self, how, order, pauses):
        self._node.reboot(how, order, lambda: time.sleep(next(pauses)))

    # ---- what happens besides ----

    def _come(self, value):
        """A pod comes, if the scheduler has room for it."""
        if len(self._kubelet.live()) >= _PODS_MAX:
            return
        wanted = _PODS[int(value * 1000) % len(_PODS)]
        limits = collections.Counter()
        for one in wanted["containers"]:
            limits.update(one["limits"])
        if all(self._node.free(name) - count >= len(_DEVICES[name]) / 2
               for name, count in limits.items()):
            self.result.pods += 1
            self._kubelet.add_pod(f"pod{self.result.pods}", **wanted)

    def _live(self, value, restart):
        pods = [pod for pod in self._kubelet.live() if pod.spec["restart"] == restart]
        return pods[int(value * len(pods))] if pods else None

    def _crash(self, value):
        pod = self._live(value, "Always")
        if pod is not None:
            self._node.runtime.finish(pod.uid, "main", 1)

    def _finish(self, value):
        pod = self._live(value, "OnFailure")
        if pod is not None:
            self._node.runtime.finish(pod.uid, "main", 0)

    def _delete(self, value):
        pod = self._live(value, "Always")
        if pod is not None:
            self._kubelet.delete_pod(pod)

    # ---- what must be ----

    def _settle(self):
        """Until every pod runs or is over, and the kubelet has the lists."""
        self._kubelet.wait(self._settled, "every pod runs")

    def _settled(self):
        return (all(self._listed(name) for name in _DEVICES)
                and all(pod.gone or not pod.deleting for pod in self._kubelet.pods.values())
                and all(pod.phase != "Pending" for pod in self._kubelet.live())
                and not self._node.check_running())

    def _listed(self, resource, since=0.0):
        """When the kubelet, since that moment, first had a stream for the resource, and its list,
        and had seen the ends of all older ones, which a busy one does late; None: it has not.
        Without `since`: whether that is so now."""
        streams, lost, good, first = 1, False, True, None  # so each round begins
        old, new = 1, False  # streams from before the moment; whether one has come since then
        for event in list(self._kubelet.events):
            if event["kind"] == "running":
                streams, lost, good, old = 0, False, False, 0
            elif event.get("resource") != resource:
                continue
            elif event["kind"] == "watching":
                # Late Register calls of a bridge that was killed bring one more: it stays open.
                streams, lost, good = streams + 1, False, False
                old, new = (old, True) if event["t"] >= since else (streams, False)
            elif event["kind"] == "ended":
                # The kubelet takes the end of an old stream for that of the new one.
                streams, lost, good, old = streams - 1, True, False, max(0, old - 1)
            elif event["kind"] == "list":
                good = streams > 0 and not lost
            if good and new and old == 0 and first is None:
                first = event["t"]
        return first if since else good

    def _windows(self):
        """From each end of the bridge until the kubelet has its lists again, or should have."""
        windows = []
        ends, starts = ([when for part, how, when in self._node.moments
                         if (part, how) == ("bridge", which)] for which in ("down", "up"))
        for began, up in zip(ends, starts):
            ended = max(self._kubelet.wait(lambda name=name, up=up: self._listed(name, up),
                                           f"{name} is listed") for name in _DEVICES)
            if ended > up + _RECOVERY_S:
                self.result.violations.append(
                    f"the bridge was back {ended - up:.1f} s after it was started")
            windows.append((began, min(ended, up + _RECOVERY_S)))
        return windows

    def _judge(self):
        node = self._node
        windows = [] if self._store else self._windows()
        self.result.windows_ms += [round((end - begin) * 1000, 1) for begin, end in windows]
        for pod in self._kubelet.failed():
            if any(begin <= pod.phase_at and pod.tried_at <= end
                   and self._was_through(pod.phase_at, begin) for begin, end in windows):
                self.result.excused += 1
            else:
                self.result.violations.append(f"rejected: {pod}")
            self._kubelet.delete_pod(pod)
        self.result.violations += node.violations
        node.violations.clear()

    def _was_through(self, rejected, moment):
        """Whether the kubelet that rejected something was through with its start at that moment:
        what it then admits while the bridge is away, nothing can help."""
        events = self._start_events + self._kubelet.events
        began = max(one["t"] for one in events if one["kind"] == "running" and one["t"] < rejected)
        relisted = [one["t"] for one in events if one["kind"] == "relisted" and one["t"] > began]
        return bool(relisted) and relisted[0] < moment + _GATE_S

    def _forget(self):
        """What a round has left; events that the next one needs are of its own."""
        self._node.runtime.forget_requests()
        self._node.moments.clear()
        self._start_events = [one for one in self._start_events + self._kubelet.events
                              if one["kind"] in ("running", "relisted")][-2:]
        self._kubelet.events.clear()
        over = [pod for pod in self._kubelet.pods.values() if pod.phase in ("Succeeded", "Failed")]
        for pod in over:
            if not pod.deleting:
                self._kubelet.delete_pod(pod)
        self._kubelet.wait_gone(*over)

    def _sweep(self):
        """The kubelet forgets pods that are gone when it allocates next, and only then."""
        pod = self._kubelet.add_pod("sweep", {GPU: 1})
        self._kubelet.wait_phase(pod)
        self._kubelet.delete_pod(pod)
        self._kubelet.wait_gone(pod)


def main():
    nursery.fork("kubelet_process")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", choices=RESTARTS)
    parser.add_argument("second", choices=RESTARTS, nargs="?")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--without-store", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    directory = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    restarts = Restarts(directory / "n", options.first, options.second,
                        f"{options.seed} {options.first} {options.second}",
                        store=not options.without_store)
    with open(sys.stderr.fileno(), "w", closefd=False) as log:
        output, sys.stdout = sys.stdout, log  # the parts print their logs
        result = restarts.run(options.rounds)
        sys.stdout = output
    if not options.keep:
        shutil.rmtree(directory)
    print(json.dumps(dataclasses.asdict(result)))


if __name__ == "__main__":
    main()
