"""Restarts of plugin, daemon, bridge, kubelet, runtime, agent and API server, and reboots, each alone and every two
overlapping, under pods whose claims have devices of a plugin: as test_dra_restarts.py. Every pod runs in the end
with exactly its devices, by the plugin's options of this boot; no device is in two containers but by one claim,
and all is published then, untainted.

SHIM_LIFT_SEED plays other rounds, SHIM_LIFT_ROUNDS more of them for each pair.
"""

import os
import time

import pytest

from claims_storm import play
from lift_node import LiftNode
from lift_storm import LiftStorm
from telling import tell

SEED = os.environ.get("SHIM_LIFT_SEED", "1")
ROUNDS = int(os.environ.get("SHIM_LIFT_ROUNDS", "1"))


@pytest.fixture
def node(directory, closing):
    one = closing(LiftNode(directory / "n", SEED))
    one.start()
    return one


def test_pods_live_through_restarts(request, node):
    print(f"SHIM_LIFT_SEED={SEED} SHIM_LIFT_ROUNDS={ROUNDS}")
    began = time.monotonic()
    storm = LiftStorm(node, SEED)
    rounds = play(storm, ROUNDS)
    assert node.came >= rounds
    print(node.kubelet.failures)
    tell(request, f"{rounds} rounds of restarts of a published plugin's parts, seed {SEED}: {node.came} pods came, "
                  f"{storm.unscheduled} were not scheduled, in {time.monotonic() - began:.0f} s")
