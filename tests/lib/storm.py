"""Kills and upgrades of daemon and bridge at random moments, under pods that come, run and go.

    storm = Storm(node, make_pod, seed, check)
    storm.run(storm.strikes(300, 60))
    storm.violations; print(storm)

`node`: a Node or RealNode with a store, which has started; its service managers start each process
again. The kubelet may see nothing of any of this: no pod is rejected, no CRI call fails but
creates that are refused in the shim's own words, no stream of the bridge's ends, and nothing
registers anew.

An upgrade goes to the programs of tests/points, another release, which keeps its connections in
another way, and comes back from them. In a PointStorm they are what runs, and end between two steps
of what the next one goes on with (shim/point.h).
"""

import collections
import itertools
import os
import random
import re
import signal
import threading
import time
import traceback

from bridge_process import BINARY as BRIDGE_BINARY
from shim import BINARY, ROOT
from waiting import GENEROUS_S, wait_until

SEED = os.environ.get("SHIM_STORM_SEED", "1")
KILLS = int(os.environ.get("SHIM_STORM_KILLS", "300"))  # of each kind
_KINDS = ("daemon", "bridge", "both")
_UPGRADE = "upgrade"
_SHARED = ("shim/exact_io.c",)  # sources with points of both programs
# Reached after 512 MiB of one connection, where unit/test_read_count.c gets; or only while a pod comes,
# where integration/test_deaths.py gets.
_FAR = ("shim/read_count.c low", "shim/read_count.c raised", "shim/relay/pending_creates.c begun")
# On the way of a process that is told to stop, and of one that comes after such a one, or after one of
# the other release.
_ON_STOP = ("shim/relay/journal_move.c before move", "shim/relay/journal_move.c moved")
_AFTER_STOP = ("shim/relay/journal_move.c before moving in", "shim/relay/journal_move.c moved in")
_AFTER_OTHER = ("shim/bridge/kept_memory.c before another image",
                "shim/bridge/kept_memory.c another image")
_BUILD = BINARY.parents[1]
_RELEASES = [(_BUILD / f"{folder}/cri-device-shim{ending}",
              _BUILD / f"{folder}/cri-device-shim-bridge{ending}")
             for folder, ending in (("tests/points", "-points"), ("shim", ""))]
# From a process' start to its end, at most; each as likely. A sanitized one is ready after 40 ms.
_LIVES_S = (0.03, 0.1, 0.25)
_BACK_S_MAX = 0.02  # from its end to the next one's start
_STAYS_S_MAX = 0.1  # how long one that runs is left alone
_ROUND = 48         # strikes until all is looked at
_REFUSAL = re.compile(r'container "[^"]*" of pod "[^"]*": (.*)')
# What the kubelet says, also of each bridge that connects; whatever else it may say comes of an end
# that it has seen.
_SAYS = ("connected", "allocate", "admitted", "open", "log", "refused", "started", "pod",
         "terminated", "gone")


class Storm:
    """`make(name, rng)`: the settings of Kubelet.add_pod() for a pod that comes, with `restarts` if
    its container ends each time; `most`: how many there are at a time. `check(events)`: what is
    wrong besides, when all pods are gone, by the kubelet's events since the last time."""

    def __init__(self, node, make, seed, check, most=10):
        self.violations = []
        self.struck = collections.Counter()
        self.pods = self.started = 0
        self.refused = collections.Counter()  # by what the shim said
        self._node = node
        self._kubelet = node.kubelet
        self._make = make
        self._most = most
        self._check = check
        self._releases = itertools.cycle(_RELEASES)
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._parts = {"daemon": (node.daemon, node.daemon.spawn),
                       "bridge": (node.bridge, node.bridge.start)}
        self._said = {}  # {part: how much its manager had heard before its process}
        self._forget()

    def __str__(self):
        struck = ", ".join(f"{what} {count}" for what, count in self.struck.items())
        refused = ", ".join(f"{count} {what}" for what, count in self.refused.most_common())
        return (f"{struck}: {self.pods} pods came, {self.started} containers were started; "
                f"refused: {refused or 'none'}")

    def strikes(self, kills, upgrades):
        """So many of each kind of kill, and of upgrades, in random order."""
        all_of_them = [*_KINDS * kills, *[_UPGRADE] * upgrades]
        self._random.shuffle(all_of_them)
        return all_of_them

    def run(self, strikes):
        """Ends at the first violation."""
        for begin in range(0, len(strikes), _ROUND):
            self._round(strikes[begin:begin + _ROUND])
            if self.violations:
                return

    # ---- a round ----

    def _round(self, strikes):
        self._over.clear()
        lives = [threading.Thread(target=self._guarded, args=(self._live, self._random.random()))
                 for _ in range(self._most)]
        for one in lives:
            one.start()
        for what in strikes:
            self._guarded(self._upgrade if what == _UPGRADE else self._kill, what)
            self.struck[what] += 1
            if self.violations:
                break
        self._guarded(self._let_live)
        self._over.set()
        for one in lives:
            one.join()
        self._judge()
        self._forget()

    def _guarded(self, what, *arguments):
        try:
            what(*arguments)
        except Exception:  # told, as all that is wrong
            self.violations.append(traceback.format_exc()[-4000:])

    def _forget(self):
        self._kubelet.events.clear()

    # ---- strikes ----

    def _parts_of(self, what):
        time.sleep(self._random.choice(_LIVES_S) * self._random.random())
        return self._random.sample(sorted(self._parts), 2) if what not in self._parts else [what]

    def _kill(self, what):
        parts = self._parts_of(what)
        for part in parts:
            self._parts[part][0].kill()
        time.sleep(_BACK_S_MAX * self._random.random() ** 2)
        for part in parts:
            self._start(part)

    def _upgrade(self, what):
        """As install.sh does it: one is restarted after the other. What a daemon was killed over only
        one of its own release goes on with, and leaves to another: so that has come so far."""
        parts = self._parts_of(what)
        if "daemon" in self._said:
            wait_until(lambda: self._got_ready("daemon"), "the daemon is ready")
        self._change_release()
        for part in parts:
            self._parts[part][0].terminate()
            self._start(part)

    def _start(self, part):
        self._said[part] = len(self._node.managers[part].states)
        self._parts[part][1]()

    def _got_ready(self, part):
        states = self._node.managers[part].states
        return any("READY" in one for one in states[self._said.get(part, 0):])

    def _let_live(self):
        """No process is to end any more."""

    def _change_release(self):
        self._node.daemon.binary, self._node.bridge.binary = next(self._releases)

    # ---- pods ----

    def _live(self, seed):
        """One pod after the other, each to its end."""
        rng = random.Random(seed)
        while not self._over.is_set():
            with self._lock:
                self.pods += 1
                name = f"pod{self.pods}"
            settings = self._make(name, rng)
            restarts = settings.pop("restarts", False)
            ends = not restarts and settings.get("restart", "Always") != "Always"
            pod = self._kubelet.add_pod(name, **settings)
            self._kubelet.wait(
                lambda: (pod.phase in ("Succeeded", "Failed") or pod.phase == "Running" and not ends
                         or restarts and self._kubelet.events_of("started", uid=pod.uid,
                                                                 attempt=1)),
                f"{pod} runs, or has run")
            if pod.phase == "Failed":
                self.violations.append(f"failed: {pod}")
                return
            time.sleep(_STAYS_S_MAX * rng.random())
            self._kubelet.delete_pod(pod)
            self._kubelet.wait_gone(pod)

    # ---- what must be ----

    def _judge(self):
        events = list(self._kubelet.events)
        for event in events:
            if wrong := self._wrong(event):
                self.violations.append(f"{wrong}: {event}")
        starts = collections.Counter((one["uid"], one["container"], one["attempt"])
                                     for one in events if one["kind"] == "started")
        self.started += len(starts)
        self.violations += [f"started {count} times: {one}" for one, count in starts.items()
                            if count != 1]
        if not starts:
            self.violations.append("no container was started")
        self._guarded(lambda: self.violations.extend(self._check(events)))

    def _wrong(self, event):
        if event["kind"] not in _SAYS:
            return "not seen without kills"
        if event["kind"] == "log" and "Skipping" not in event["text"]:
            return "a call failed"
        if event["kind"] == "refused":
            said = _REFUSAL.match(event["message"])
            if not said:
                return "not refused by the shim"
            self.refused[re.sub(r"\d[\w.]*", "N", said[1].partition("; device ids")[0])] += 1
        if event["kind"] == "pod":
            if event["phase"] == "Failed" or any(
                    reason not in ("CreateContainerError", "CrashLoopBackOff")
                    for reason, _message in event["waiting"].values()):
                return "failed"
        return None


def points_of(part):
    """All points of the daemon or the bridge, as tests/points calls them."""
    files = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "shim").rglob("*.c")}
    return [point for name, path in sorted(files.items())
            if (name in _SHARED or name.startswith("shim/bridge/") == (part == "bridge"))
            for point in (f"{name} {one}" for one in re.findall(r'POINT\("(.*?)"\)',
                                                                path.read_text()))
            if point not in _FAR]


class PointStorm(Storm):
    """Strikes are parts, each of which is to end at a point. `hits`: {(part, point): how often}."""

    _WAIT_S = 0.25  # for one that is ready to get there; then it is killed wherever it is
    _PASSES = (1, 1, 2, 5, 20)  # which time it ends there
    _MORE_ROUNDS_MAX = 20

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self._upgrade(_UPGRADE)
        self._armed = {}  # {part: its process' point}
        self.hits = collections.Counter({(part, point): 0 for part in self._parts
                                         for point in points_of(part)})

    def run_to_each(self, strikes):
        """As run(), and then on while a point was not met: whether a process gets to one is chance."""
        self.run(strikes)
        for _ in range(self._MORE_ROUNDS_MAX):
            unmet = sorted({part for (part, _), count in self.hits.items() if count == 0})
            if self.violations or not unmet:
                return
            self.run([*unmet * (_ROUND // len(unmet))])

    def _kill(self, part):
        """After one that did not get ready comes one that is left alone: processes that die one after
        the other at what they take over are taken to die of that."""
        self._end(part)
        point = self._choose(part) if self._got_ready(part) else None
        if point in _AFTER_STOP + _AFTER_OTHER:
            self._precede(part, point)
        self._arm(part, point)

    def _let_live(self):
        for part in self._parts:
            self._end(part)
            self._arm(part, None)

    def _end(self, part):
        """At its point, if it gets there."""
        program, _start = self._parts[part]
        point = self._armed.get(part)
        if point in _ON_STOP:
            wait_until(lambda: self._got_ready(part), "it is ready")
            os.kill(program.pid, signal.SIGTERM)
            ended = program.ends_within(GENEROUS_S)
        else:
            wait_until(lambda: self._got_ready(part) or program.ends_within(0),
                       f"{part} is ready, or has ended at {point}")
            ended = program.ends_within(self._WAIT_S if point else 0)
        if not ended:
            os.kill(program.pid, signal.SIGKILL)
        status = program.wait_exit()
        if ended and status == -signal.SIGKILL:
            self.hits[part, point] += 1
        assert status == -signal.SIGKILL or point in _ON_STOP and status == 0, (
            f"{part} ended with {status}: {program.log()[-4000:]}")

    def _precede(self, part, point):
        """A whole life of what must come before it."""
        program, _start = self._parts[part]
        release = program.binary
        if point in _AFTER_OTHER:
            program.binary = BRIDGE_BINARY
        self._arm(part, None)
        wait_until(lambda: self._got_ready(part), "it is ready")
        program.binary = release
        if point in _AFTER_STOP:
            program.terminate()
        else:
            program.kill()

    def _arm(self, part, point):
        program, _start = self._parts[part]
        self._armed[part] = point
        passes = self._random.choice(self._PASSES)
        program.wrapper = (
            ("env", f"SHIM_POINT={point}", f"SHIM_POINT_COUNT={passes}") if point else ())
        self._start(part)

    def _choose(self, part):
        """Where it has ended least often."""
        points = {point: count for (whose, point), count in self.hits.items() if whose == part}
        least = min(points.values())
        return self._random.choice([point for point, count in points.items() if count == least])
