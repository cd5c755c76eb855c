"""Restarts of driver, daemon, bridge, kubelet, runtime, agent and API server, and reboots, each alone and every two
overlapping, under pods whose claims come and go: every pod runs in the end with exactly its devices, no device is in
two containers, no claim is left prepared, no call is answered twice or not at all, no driver is asked for one claim
by two calls at once, or to unprepare one that a pod has, or to prepare a device before it is told to give
it back. A pod whose devices are this node's own does not wait for its driver to end.

SHIM_DRA_SEED plays other rounds, SHIM_DRA_ROUNDS more of them for each pair.
"""

import itertools
import os
import time

import pytest

from claims_node import ClaimsNode
from claims_storm import PARTS, Storm
from telling import tell

SEED = os.environ.get("SHIM_DRA_SEED", "1")
ROUNDS = int(os.environ.get("SHIM_DRA_ROUNDS", "1"))
_PAIRS = [(one,) for one in PARTS] + list(itertools.combinations(PARTS, 2))


@pytest.fixture
def node(directory, closing):
    one = closing(ClaimsNode(directory / "n", SEED))
    one.start()
    return one


def test_pods_live_through_restarts(request, node):
    print(f"SHIM_DRA_SEED={SEED} SHIM_DRA_ROUNDS={ROUNDS}")
    began = time.monotonic()
    storm = Storm(node, SEED)
    rounds = _PAIRS * ROUNDS
    for number, pair in enumerate(rounds):
        storm.round(pair)
        assert not storm.violations, f"round {number}, {pair}:\n" + "\n".join(storm.violations)
    storm.end()
    assert not storm.violations, "\n".join(storm.violations)
    calls = node.calls()
    assert node.came >= len(rounds) and min(calls["prepare"], calls["unprepare"]) >= len(rounds)
    assert storm.alone
    print(node.kubelet.failures)
    tell(request, f"{len(rounds)} rounds of restarts of DRA's parts, seed {SEED}: {node.came} pods came, "
                  f"{storm.alone} of them ended without their driver, drivers prepared {calls['prepare']} claims "
                  f"and unprepared {calls['unprepare']}, in {time.monotonic() - began:.0f} s")
