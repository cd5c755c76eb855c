"""What the kernel says of the programs over a long time, and what becomes of it.

    sampler = Sampler(node.programs); sampler.start(); sampler.stop()
    sampler.of("daemon")            # [Sample]
    slope([(when, value)])          # of a second, by least squares
"""

import dataclasses
import pathlib
import statistics
import threading
import time

from process import MIB, rss_bytes

_EVERY_S = 1


@dataclasses.dataclass(frozen=True)
class Sample:
    at: float  # on CLOCK_MONOTONIC
    pid: int
    rss_mib: float
    pss_mib: float
    own_mib: float  # of that, what is no file's: how many others map the same libraries does not change it
    files: int
    threads: int


def _look(pid):
    """None: it is gone, or not yet what it will be."""
    here = pathlib.Path(f"/proc/{pid}")
    try:
        if not (here / "exe").readlink().name.startswith("cri-device-shim"):
            return None
        sums = dict(line.split()[:2] for line in (here / "smaps_rollup").read_text().splitlines()[1:])
        return Sample(time.monotonic(), pid, rss_bytes(pid) / MIB, int(sums["Pss:"]) / 1024, int(sums["Pss_Anon:"]) / 1024,
                      len(list((here / "fd").iterdir())), len(list((here / "task").iterdir())))
    except (OSError, KeyError):
        return None


class Sampler:
    """`programs()`: {name: pid} of those that run."""

    def __init__(self, programs):
        self._programs = programs
        self._samples = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def of(self, name, since=0.0, until=float("inf")):
        return [one for one in list(self._samples.get(name, ())) if since <= one.at < until]

    def _run(self):
        while not self._over.wait(_EVERY_S):
            for name, pid in self._programs().items():
                if one := _look(pid):
                    self._samples.setdefault(name, []).append(one)


def slope(points):
    """Of (x, y), by least squares; 0 of less than two."""
    if len(points) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*points)).slope


def percentile(values, share):
    """None of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
