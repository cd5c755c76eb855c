"""Each process of a node is killed again and again while pods of both restart policies arrive: all
of them run, each with its device, and none is Failed. But a container whose start a kubelet or a
runtime that dies has under way has failed by itself; those are counted, by reason.

SHIM_CLUSTER_ROUNDS and SHIM_CLUSTER_SEED play more rounds, or others.
"""

import itertools
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

UNITS = [GPUS.unit, KUBELET, CONTAINERD, DAEMON, BRIDGE]


def may_fail_by(units):
    """The reasons for which a pod may be Failed when these are killed."""
    return set().union(*(MAY_FAIL.get(one, ()) for one in units))


def manifest(name, wants, **more):
    return pod(name, container("main", {GPU: 1}, **wants), **more)


@pytest.mark.parametrize("units", [(one,) for one in UNITS] + list(itertools.combinations(UNITS, 2)),
                         ids="+".join)
def test_kill_under_arriving_pods(cluster, request, units):
    """One, or two at the same instant."""
    outcome = strike_under_arrivals(cluster, lambda: cluster.node.kill(*units), manifest,
                                    ROUNDS, f"{SEED} {' '.join(units)}")
    tell(request, f"{' and '.join(units)} killed under arriving pods: {outcome}")
    may_fail = may_fail_by(units)
    assert outcome.failed.keys() <= may_fail, outcome.messages
    assert may_fail or not outcome.again + outcome.hookless
