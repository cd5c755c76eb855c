"""Each process of a node is killed again and again while pods with claims of two drivers arrive: as
in test_kills.py, and no driver is left with a claim that is prepared."""

import pytest

from dra_cluster import GPUS, claiming_pod
from drills import strike_under_arrivals
from kube_node import AGENT, BRIDGE, CONTAINERD, DAEMON, KUBELET
from telling import tell
from test_dra import AGENT_ON
from test_kills import MAY_FAIL, ROUNDS, SEED


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(dra_cluster_of):
    return dra_cluster_of(config=AGENT_ON)


def manifest(name, wants, **more):
    return claiming_pod(name, {"gpu": 1, "net": 1}, wants=wants, **more)


@pytest.mark.parametrize("unit", [GPUS.unit, KUBELET, CONTAINERD, DAEMON, BRIDGE, AGENT])
def test_kill_under_arriving_claims(cluster, request, unit):
    outcome = strike_under_arrivals(cluster, lambda: cluster.node.kill(unit), manifest, ROUNDS,
                                    f"{SEED} {unit}")
    tell(request, f"{unit} killed under arriving claims: {outcome}")
    assert outcome.failed.keys() <= MAY_FAIL.get(unit, set()), outcome.messages
    assert unit in MAY_FAIL or not outcome.again + outcome.hookless
