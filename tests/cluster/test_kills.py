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
from kube_pods import container, pod
from telling import tell

ROUNDS = int(os.environ.get("SHIM_CLUSTER_ROUNDS", "3"))
SEED = os.environ.get("SHIM_CLUSTER_SEED", "1")
STARTING = {"StartError", "ContainerCannotRun", "Error"}
MAY_FAIL = {CONTAINERD: STARTING | {"Unknown"}, KUBELET: STARTING}  # of whose end it has lost count


def manifest(name, wants, **more):
    return pod(name, container("main", {GPU: 1}, **wants), **more)


@pytest.mark.parametrize("unit", [GPUS.unit, KUBELET, CONTAINERD, DAEMON, BRIDGE])
def test_kill_under_arriving_pods(cluster, request, unit):
    outcome = strike_under_arrivals(cluster, lambda: cluster.node.kill(unit), manifest,
                                    ROUNDS, f"{SEED} {unit}")
    tell(request, f"{unit} killed under arriving pods: {outcome}")
    assert outcome.failed.keys() <= MAY_FAIL.get(unit, set()), outcome.messages
    assert unit in MAY_FAIL or not outcome.again + outcome.hookless
