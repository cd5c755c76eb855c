#!/usr/bin/python3
"""Allocations and system calls of daemon, bridge and agent that fail, each call site once, on a node with all there is.

    SHIM_BUILD_DIR=build/asan SHIM_BINARY=build/asan/shim/cri-device-shim tests/faults/storm.py --minutes 30 [--seed 1] [--keep DIRECTORY]

In a round some calls fail (lib/faults.py) while what lib/whole_node.py has happens, and now and then one of the three programs
is restarted. Then none fails, and all is looked at: a program has gone on, or has ended with a word of why and is started
anew; every pod runs or is gone, none has failed, and no device is in two containers. It ends when its time is over, or when
no new site was met in QUIET_ROUNDS rounds.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
os.environ["CRI_DEVICE_SHIM_LOG_FORMAT"] = "plain"
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # whose handlers wait for its threads, and may do so for ever

import nursery
from faults import FaultTable
from logind import Logind, SystemBus
from parts import KILL
from whole_node import WholeNode, WholeStorm

PROGRAMS = ("daemon", "bridge", "agent")
QUIET_ROUNDS = 30
_BUDGET = 6  # calls that fail in a round, at most
_LOOK_S = 0.05
_LAST_LINES = 3
_DIED_OF_IT = ("out of memory", "abort:", "Assertion")  # one of these an abort says
_LEFT = ("deaths", "deaths.at", "bridge.deaths", "bridge.deaths.at")  # shim/deaths.h


class FaultNode(WholeNode):
    def __init__(self, directory, seed, logind, table, **settings):
        super().__init__(directory, seed, logind, **settings)
        self.table = table
        self.ends = []  # (program, status, its last lines)
        self._looking = threading.Thread(target=self._look_after, daemon=True)
        self._done = threading.Event()
        for part in PROGRAMS:
            self.parts[part][0].wrapper = table.wrapper

    def start(self):
        super().start()
        self._looking.start()

    def stop(self):
        self._done.set()
        if self._looking.is_alive():
            self._looking.join()
        self.bury()
        super().stop()

    def _look_after(self):
        while not self._done.wait(_LOOK_S):
            self.bury()

    def bury(self):
        """What has ended by itself, and start it anew: no call of that one fails."""
        with self._power:
            for part in PROGRAMS:
                (one,) = self.parts[part]
                if self._is_up(one) and one.ends_within(0):
                    self.table.disarm()
                    self._buried(part, one)
                    self.up(part)

    def _buried(self, part, one):
        """It is the calls that fail again and again, and not what it was at."""
        self._running.discard(id(one))
        status, lines = one.wait_exit(), one.log().splitlines()[-_LAST_LINES:]
        self.ends.append((part, status, lines))
        if status not in (0, 1, -signal.SIGKILL, -signal.SIGTERM) and not (
                status == -signal.SIGABRT and any(word in line for word in _DIED_OF_IT for line in lines)):
            self.violations.append("\n    ".join([f"{part} ended with {status}:", *lines]))
        for name in _LEFT:
            (self.run_dir / name).unlink(missing_ok=True)

    def down(self, part, how=KILL, which=None):
        if part not in PROGRAMS:
            super().down(part, how, which)
            return
        with self._power:
            self.bury()
            (one,) = self.parts[part]
            if self._is_up(one):
                os.kill(one.pid, signal.SIGKILL if how == KILL else signal.SIGTERM)
                self._buried(part, one)


class FaultStorm(WholeStorm):
    def round(self, pair):
        self._node.table.arm(_BUDGET)
        super().round(pair)
        self._node.table.disarm()

    def settled(self):
        self._node.table.disarm()
        self._node.bury()
        super().settled()


class Faults:
    """Round after round. `passed`, `failed`: how many."""

    def __init__(self, node, table, seed):
        self._node, self._table = node, table
        self._storm = FaultStorm(node, seed)
        self._random = random.Random(seed)
        self._told = self._ends = 0
        self.passed = self.failed = 0

    def run(self, until):
        quiet = 0
        while time.monotonic() < until and quiet < QUIET_ROUNDS:
            met = self._table.met()
            parts = self._random.sample(PROGRAMS, self._random.choice([0, 0, 1]))
            self._guarded(lambda parts=parts: self._storm.round(parts), f"restarted: {', '.join(parts) or 'none'}")
            quiet = quiet + 1 if self._table.met() == met else 0
        self._guarded(self._storm.end, "the end")

    def _guarded(self, what, name):
        storm, node = self._storm, self._node
        try:
            what()
        except Exception:  # told, as all that is wrong
            storm.violations.append(traceback.format_exc())
        failures, ends = self._table.failed(after=self._told), node.ends[self._ends:]
        print(f"round {self.passed + self.failed + 1}, {name}: {len(failures)} calls failed, of {self._table.met()} sites",
              *(f"{part} ended with {status}: {' / '.join(lines[-1:])}" for part, status, lines in ends), sep="\n    ", flush=True)
        if storm.violations:
            print(*storm.violations, *failures, sep="\n    ", flush=True)
        self.passed, self.failed = self.passed + (not storm.violations), self.failed + bool(storm.violations)
        storm.violations.clear()
        node.forgive()
        self._told, self._ends = self._told + len(failures), len(node.ends)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stride", type=int, default=1, help="only each so-manieth site fails")
    parser.add_argument("--keep", type=pathlib.Path, help="a directory, which stays")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    nursery.fork("kubelet_process", "node_plugin")
    directory = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    directory.mkdir(exist_ok=True)
    print(f"seed {options.seed}, stride {options.stride}", flush=True)
    table = FaultTable(directory / "faults", options.seed, options.stride)
    faults, left = None, 0
    try:
        with open(os.devnull, "w", encoding="ascii") as nowhere, contextlib.ExitStack() as stack:
            def started(one):
                stack.callback(one.stop)
                one.start()
                return one

            bus = started(SystemBus(directory))
            os.environ.update([bus.environment])
            node = started(FaultNode(directory / "n", options.seed, started(Logind(directory, bus)), table))
            faults = Faults(node, table, options.seed)
            faults.run(until)
            with contextlib.redirect_stdout(nowhere):  # the parts print their logs as they end
                stack.close()
    except Exception:
        print(traceback.format_exc()[-4000:])
        left = 1
    (directory / "failed.txt").write_text("".join(f"{one}\n" for one in table.failed()))
    print(f"{len(table.failed())} calls failed, each of another site; {table.met()} sites were met in {table.calls} calls")
    if not options.keep:
        shutil.rmtree(directory)
    print(f"{faults.passed if faults else 0} passed, {left + (faults.failed if faults else 0)} failed")
    sys.exit(bool(left or faults.failed))


if __name__ == "__main__":
    main()
