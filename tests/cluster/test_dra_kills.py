"""Each process of a node, and each two at once, are killed again and again while pods with claims of
two drivers arrive: as in test_kills.py, and no driver is left with a claim that is prepared."""

import itertools

import pytest

from dra_cluster import GPUS, claiming_pod
from drills import strike_under_arrivals
from kube_node import AGENT, BRIDGE, CONTAINERD, DAEMON, KUBELET
from telling import tell
from test_dra import AGENT_ON
from test_kills import ROUNDS, SEED, may_fail_by

UNITS = [GPUS.unit, KUBELET, CONTAINERD, DAEMON, BRIDGE, AGENT]


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(dra_cluster_of):
    return dra_cluster_of(config=AGENT_ON)


def manifest(name, wants, **more):
    return claiming_pod(name, {"gpu": 1, "net": 1}, wants=wants, **more)


@pytest.mark.parametrize("units", [(one,) for one in UNITS] + list(itertools.combinations(UNITS, 2)),
                         ids="+".join)
def test_kill_under_arriving_claims(cluster, request, units):
    """One, or two at the same instant."""
    outcome = strike_under_arrivals(cluster, lambda: cluster.node.kill(*units), manifest, ROUNDS,
                                    f"{SEED} {' '.join(units)}")
    tell(request, f"{' and '.join(units)} killed under arriving claims: {outcome}")
    may_fail = may_fail_by(units)
    assert outcome.failed.keys() <= may_fail, outcome.messages
    assert may_fail or not outcome.again + outcome.hookless
