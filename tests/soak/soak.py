#!/usr/bin/python3
"""A node under pods for a long time, and what its three programs take of the machine meanwhile.

    SHIM_BUILD_DIR=build SHIM_BINARY=build/shim/cri-device-shim tests/soak/soak.py --minutes 120 [--seed 1] [--keep DIRECTORY]

What happens is lib/whole_node.py's: pods with plugins' devices and with claims come, crash and go; kubelets, drivers, plugins,
runtime and API server restart and fail, an operator asks, taints, cordons and ends, shutdowns begin and are cancelled. In the
second to the fourth tenth daemon, bridge and agent are killed and restarted, too, and the machine reboots; they live on from
there to the end, so that what they lose can be seen. The seed decides what happens, but not when exactly.

A line for each tenth as it ends, the table at the end, then what was looked for, and "N passed, N failed".
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
os.environ["CRI_DEVICE_SHIM_LOG_FORMAT"] = "plain"
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # whose handlers wait for its threads, and may do so for ever

import nursery
from claims_storm import REBOOT, SERVER
from logind import Logind, SystemBus
from relay_probe import RelayProbe
from samples import Sampler, percentile, slope
from whole_node import WholeNode, WholeStorm

TENTHS = 10
PROGRAMS = ("daemon", "bridge", "agent")
_OTHERS = ("kubelet", "driver", "plugin", "runtime", SERVER)  # which restart all the time
_KILLING = range(1, 4)    # the tenths in which the programs do, too
_CALM = 5                 # from this one on what they take is judged
# Between restarts of the API server, at least: a watch that was good for two minutes is asked for at once when it is lost.
_SERVER_S = 150
_ROUND_S = 3              # from one round's begin to the next one's, at least
_VIOLATIONS_MAX = 10      # rounds in which something is wrong, until it is enough
# Memory of one life may grow by what fills up late, and is full then: the rings of events and refusals, tables that double, a heap
# that is cut up more and more; and by a rate. About 7000 pods come in an hour: an object of 150 bytes that each leaves behind
# makes 1 MiB an hour.
_FILLS_MIB = 1.0
_GROWS_MIB_H = 1.0
# Connections more or less: of drivers that have moved to the kubelet, and what is being made anew where a round ends.
_FILES = 6
# Of the last tenth's latency to the first one's, where the call to the runtime itself has the same load to bear.
_SLOWER = 3.0
_SLOWER_MS = 2.0


class Soak:
    def __init__(self, node, seed, minutes):
        self._node = node
        self._storm = WholeStorm(node, seed)
        self._random = random.Random(f"soak {seed}")
        self._sampler = Sampler(node.programs)
        self._probe = RelayProbe(node.daemon.socket, node.runtime.path)
        self._seconds = minutes * 60
        self._began = self._server_at = 0
        self._rounds = [0] * TENTHS
        self._restarts = [0] * TENTHS
        self._pods = [0] * TENTHS
        self._settled = {name: [[] for _ in range(TENTHS)] for name in PROGRAMS}  # descriptors where a round has ended
        self.wrong = []

    # ---- what happens ----

    def run(self):
        self._began = time.monotonic()
        self._sampler.start()
        self._probe.start()
        try:
            for tenth in range(TENTHS):
                self._tenth(tenth)
                print(self._row(tenth), flush=True)
                if len(self.wrong) > _VIOLATIONS_MAX:
                    break
            self._guarded(self._storm.end)
        finally:
            self._probe.stop()
            self._sampler.stop()

    def _tenth(self, tenth):
        while time.monotonic() < self._end_of(tenth) and len(self.wrong) <= _VIOLATIONS_MAX:
            began = time.monotonic()
            parts = self._choose(tenth)
            came = self._node.came + self._node.device_pods
            self._guarded(lambda parts=parts: self._storm.round(parts), f"round {sum(self._rounds)} of tenth {tenth + 1}, {parts}")
            self._pods[tenth] += self._node.came + self._node.device_pods - came
            self._rounds[tenth] += 1
            self._restarts[tenth] += len(parts)
            self._count_files(tenth)
            time.sleep(max(0, min(began + _ROUND_S, self._end_of(tenth)) - time.monotonic()))

    def _end_of(self, tenth):
        return self._began + self._seconds * (tenth + 1) / TENTHS

    def _choose(self, tenth):
        rng = self._random
        parts = [*_OTHERS, *PROGRAMS * 2, REBOOT] if tenth in _KILLING else list(_OTHERS)
        chosen = set(rng.sample(parts, rng.choice([0, 1, 1, 2])))
        if SERVER in chosen and time.monotonic() < self._server_at:
            chosen.remove(SERVER)
        if SERVER in chosen:
            self._server_at = time.monotonic() + _SERVER_S
        return sorted(chosen)

    def _guarded(self, what, name="the end"):
        storm = self._storm
        try:
            what()
        except Exception:  # told, as all that is wrong
            storm.violations.append(traceback.format_exc()[-4000:])
        if storm.violations:
            self.wrong.append("\n    ".join([f"{name}:", *storm.violations[:20]]))
            print(self.wrong[-1], flush=True)
            storm.violations.clear()
            self._node.forgive()

    def _count_files(self, tenth):
        for name in PROGRAMS:
            if samples := self._sampler.of(name, time.monotonic() - _ROUND_S):
                self._settled[name][tenth].append(samples[-1].files)

    # ---- what was measured ----

    def _latencies(self, tenth, which):
        begin, end = self._end_of(tenth - 1), self._end_of(tenth)
        return [row[which] for row in list(self._probe.rows) if begin <= row[0] < end and isinstance(row[which], float)]

    def _lost(self, tenth):
        return sum(isinstance(row[1], str) for row in list(self._probe.rows)
                   if self._end_of(tenth - 1) <= row[0] < self._end_of(tenth))

    @staticmethod
    def head():
        return ("tenth rounds restarts  pods | " + " | ".join(f"{name:>6}: RSS   PSS MiB files threads" for name in PROGRAMS)
                + " | relayed ms: median    p99  lost | runtime's own: median    p99")

    def _row(self, tenth):
        cells = [f"{tenth + 1:5} {self._rounds[tenth]:6} {self._restarts[tenth]:8} {self._pods[tenth]:5}"]
        for name in PROGRAMS:
            samples = self._sampler.of(name, self._end_of(tenth - 1), self._end_of(tenth))
            if not samples:
                cells.append(f"{'none':>36}")
                continue
            rss, pss, files, threads = (statistics.median(getattr(one, which) for one in samples)
                                        for which in ("rss_mib", "pss_mib", "files", "threads"))
            cells.append(f"{'':8}{rss:5.1f} {pss:5.1f} {'':3} {files:5.0f} {threads:7.0f}")
        for which, width in ((1, 18), (2, 22)):
            median, p99 = (percentile(self._latencies(tenth, which), share) or 0 for share in (0.5, 0.99))
            cells.append(f"{median:{width}.2f} {p99:6.1f}" + (f" {self._lost(tenth):5}" if which == 1 else ""))
        return " | ".join(cells)

    def table(self):
        lost = collections.Counter(row[1] for row in self._probe.rows if isinstance(row[1], str))
        return [self.head(), *map(self._row, range(TENTHS)), *(f"lost, {count} times: {why}" for why, count in lost.items())]

    # ---- what must be ----

    def verdict(self):
        """[(whether it is so, what)]"""
        calm = self._end_of(_CALM - 1)
        rows = [(not self.wrong, f"every pod ends as it should, no device is in two containers ({sum(self._pods)} pods, "
                                 f"{sum(self._rounds)} rounds, {sum(self._restarts)} restarts, {self._storm.asked} questions, "
                                 f"{self._storm.faults} faults of the API server; {len(self.wrong)} rounds went wrong)"),
                (all(self._rounds), "each tenth had rounds")]
        for name in PROGRAMS:
            samples = self._sampler.of(name, calm, self._end_of(TENTHS - 1))
            rows += [self._one_life(name, samples), self._memory(name, samples, "rss_mib", "RSS"),
                     self._memory(name, samples, "own_mib", "PSS that is no file's"), self._files(name), self._threads(name)]
        rows += [self._latency(0.5, "median"), self._latency(0.99, "99th percentile")]
        return rows

    @staticmethod
    def _one_life(name, samples):
        lives = len({one.pid for one in samples})
        return lives == 1, f"{name}: one life from tenth {_CALM + 1} on ({lives}, {len(samples)} samples)"

    @staticmethod
    def _memory(name, samples, which, words):
        points = [(one.at / 3600, getattr(one, which)) for one in samples]
        hours = points[-1][0] - points[0][0] if points else 0
        rate = slope(points)
        most = _FILLS_MIB + _GROWS_MIB_H * hours
        return bool(points) and rate * hours <= most, (
            f"{name}: {words} grows {rate:+.2f} MiB/h, {rate * hours:+.2f} MiB in {hours * 60:.0f} min (at most {most:.1f})")

    def _files(self, name):
        first, last = (self._settled[name][tenth] for tenth in (_CALM, TENTHS - 1))
        if not first or not last:
            return False, f"{name}: descriptors were not seen"
        before, after = max(first), max(last)
        return after <= before + _FILES, f"{name}: descriptors between rounds at most, tenth {_CALM + 1} {before}, last {after}"

    def _threads(self, name):
        first, last = (max((one.threads for one in self._sampler.of(name, self._end_of(tenth - 1), self._end_of(tenth))), default=0)
                       for tenth in (_CALM, TENTHS - 1))
        return 0 < last <= first, f"{name}: threads at most, tenth {_CALM + 1} {first}, last {last}"

    def _latency(self, share, words):
        (first, last), (own_first, own_last) = (
            [percentile(self._latencies(tenth, which), share) or 0 for tenth in (0, TENTHS - 1)] for which in (1, 2))
        most = _SLOWER * first * max(1.0, own_last / own_first if own_first else 1.0) + _SLOWER_MS
        return 0 < last <= most, (f"a relayed call's {words}: first tenth {first:.2f} ms, last {last:.2f} (at most {most:.1f}; "
                                  f"the runtime's own {own_first:.2f} and {own_last:.2f})")


def _soaked(options, directory, stack):
    """[(whether it is so, what)]"""
    def started(one):
        stack.callback(one.stop)
        one.start()
        return one

    bus = started(SystemBus(directory))
    os.environ.update([bus.environment])
    node = started(WholeNode(directory / "n", options.seed, started(Logind(directory, bus)), top={"log_level": "info"}))
    soak = Soak(node, options.seed, options.minutes)
    print(soak.head(), flush=True)
    soak.run()
    print("", *soak.table(), sep="\n")
    return soak.verdict()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory, which stays")
    options = parser.parse_args()
    nursery.fork("kubelet_process", "node_plugin", "relay_probe")
    directory = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    print(f"seed {options.seed}, {options.minutes:g} minutes", flush=True)
    directory.mkdir(exist_ok=True)
    rows = []
    try:
        with open(os.devnull, "w", encoding="ascii") as nowhere, contextlib.ExitStack() as stack:
            rows = _soaked(options, directory, stack)
            with contextlib.redirect_stdout(nowhere):  # the parts print their logs as they end
                stack.close()
        rows.append((True, "all programs end when they are told to, with no word of an error of their own"))
    except Exception:
        rows.append((False, traceback.format_exc()[-4000:]))
    if not options.keep:
        shutil.rmtree(directory)
    print("", *(f"{'ok' if good else 'not ok'} - {what}" for good, what in rows), sep="\n")
    failed = sum(not good for good, _ in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
