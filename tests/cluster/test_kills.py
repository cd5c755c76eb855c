"""Each process of a node is killed again and again while pods of both restart policies arrive: all
of them run, each with its device, and none is Failed. But a container whose start a kubelet or a
runtime that dies has under way has failed by itself; those are counted, by reason.

SHIM_CLUSTER_ROUNDS and SHIM_CLUSTER_SEED play more rounds, or others.
"""

import os

import pytest

from cluster import GPU, GPUS
from drills import strike_under_arrivals
from kube_node import BRIDGE, CONTAINERD, DAEMON, KUBELET
from telling import tell

ROUNDS = int(os.environ.get("SHIM_CLUSTER_ROUNDS", "3"))
SEED = os.environ.get("SHIM_CLUSTER_SEED", "1")
_STARTING = {"StartError", "ContainerCannotRun", "Error"}
_MAY_FAIL = {CONTAINERD: _STARTING, KUBELET: _STARTING}


@pytest.mark.parametrize("unit", [GPUS.unit, KUBELET, CONTAINERD, DAEMON, BRIDGE])
def test_kill_under_arriving_pods(cluster, request, unit):
    outcome = strike_under_arrivals(cluster, lambda: cluster.node.kill(unit), GPU, ROUNDS,
                                    f"{SEED} {unit}")
    tell(request, f"{unit} killed under arriving pods: {outcome}")
    assert outcome.failed.keys() <= _MAY_FAIL.get(unit, set()), outcome.messages
    assert unit in _MAY_FAIL or not outcome.again + outcome.hookless
