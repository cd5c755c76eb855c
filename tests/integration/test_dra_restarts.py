"""Restarts of driver, daemon, bridge, kubelet, runtime, agent and API server, and reboots, each alone and every two
overlapping, under pods whose claims come and go: every pod runs in the end with exactly its devices, no device is in
two containers, no claim is left prepared, no call is answered twice or not at all, no driver is asked for one claim
by two calls at once, or to unprepare one that a pod has, or to prepare a device before it is told to give
it back. A pod whose devices are this node's own does not wait for its driver to end.

SHIM_DRA_SEED plays other rounds, SHIM_DRA_ROUNDS more of them for each pair.
"""

import os
import time

import pytest

from claims_node import ClaimsNode
from claims_storm import Storm, play
from telling import tell

SEED = os.environ.get("SHIM_DRA_SEED", "1")
ROUNDS = int(os.environ.get("SHIM_DRA_ROUNDS", "1"))


@pytest.fixture
def node(directory, closing):
    one = closing(ClaimsNode(directory / "n", SEED))
    one.start()
    return one


def test_pods_live_through_restarts(request, node):
    print(f"SHIM_DRA_SEED={SEED} SHIM_DRA_ROUNDS={ROUNDS}")
    began = time.monotonic()
    storm = Storm(node, SEED)
    rounds = play(storm, ROUNDS)
    calls = node.calls()
    assert node.came >= rounds and min(calls["prepare"], calls["unprepare"]) >= rounds
    assert storm.alone
    print(node.kubelet.failures)
    tell(request, f"{rounds} rounds of restarts of DRA's parts, seed {SEED}: {node.came} pods came, "
                  f"{storm.alone} of them ended without their driver, drivers prepared {calls['prepare']} claims "
                  f"and unprepared {calls['unprepare']}, in {time.monotonic() - began:.0f} s")
