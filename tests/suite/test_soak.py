"""What a soak takes for growing."""

import os
import sys

import pytest

from shim import ROOT

sys.path.insert(0, str(ROOT / "tests/soak"))

import samples
from samples import Sample, percentile, slope
from soak import Soak

HOUR = 3600
NOISE = (0.0, 0.3, -0.2, 0.1)  # MiB


def life(mib_per_hour, hours, pid=1):
    """A sample each second."""
    return [Sample(at, pid, 8 + mib_per_hour * at / HOUR + NOISE[at % len(NOISE)], 5, 5, 40, 5)
            for at in range(int(hours * HOUR))]


def test_slope():
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2)
    assert slope([]) == slope([(1, 1)]) == 0


def test_percentile():
    assert percentile(range(100), 0.5) == 50 and percentile(range(100), 0.99) == 99
    assert percentile([], 0.5) is None


@pytest.mark.parametrize("rate, hours, good", [(0, 1, True), (1.5, 1, True), (3, 1, False), (10, 0.05, True),
                                               (50, 0.05, False), (-5, 1, True)])
def test_memory_that_grows(rate, hours, good):
    assert Soak._memory("daemon", life(rate, hours), "rss_mib", "RSS")[0] == good


def test_memory_that_was_not_seen():
    assert not Soak._memory("daemon", [], "rss_mib", "RSS")[0]


def test_a_program_that_ends_by_itself():
    assert Soak._one_life("agent", life(0, 0.01))[0]
    assert not Soak._one_life("agent", life(0, 0.01) + life(0, 0.01, pid=2))[0]
    assert not Soak._one_life("agent", [])[0]


def test_its_own_process_is_no_program_of_ours():
    assert samples._look(os.getpid()) is None
