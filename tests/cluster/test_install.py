"""The shim comes to a node on which pods run with devices, is upgraded under arriving pods, and goes
again, as config/OPERATIONS.md has an operator do it."""

import dataclasses

import pytest

from cluster import GPU, GPUS
from drills import strike_under_arrivals
from kube_node import BRIDGE, DAEMON, KUBELET_PLUGIN_DIR, KubeNode
from kube_package import PackagedKubeNode
from kube_pods import container, pod
from telling import tell
from test_kills import ROUNDS, SEED, manifest
from waiting import GENEROUS_S

FORGOTTEN_S = 5 * GENEROUS_S  # the kubelet looks for it once a minute
DIRECT = dataclasses.replace(GPUS, plugin_dir=KUBELET_PLUGIN_DIR)


@pytest.fixture(scope="module", name="shared_cluster", params=[KubeNode, PackagedKubeNode])
def start_cluster(cluster_of, request):
    """Without the shim."""
    return cluster_of([DIRECT], has_shim=False, node=request.param)


def run_pod(cluster, name):
    cluster.create(pod(name, container("main", {GPU: 1})))
    cluster.wait_running(name)


def move(cluster, plugin):
    """It registers where it is told to, from its next start on. Moved back, it is for the bridge to let
    go of the resource first: the kubelet knows it by its name only."""
    cluster.node.stop_unit(GPUS.unit)
    if plugin == DIRECT:
        cluster.node.ctl("grace", "end", GPU)
        cluster.wait(lambda: GPU not in known(cluster), "the kubelet has lost the resource")
    cluster.register(plugin)
    cluster.node.start_unit(GPUS.unit)
    cluster.wait(lambda: cluster.node.known_devices(GPU) == set(GPUS.devices), "the kubelet has it")


def known(cluster):
    """The resources of which the kubelet could give a device away."""
    return {one.resource_name for one in
            cluster.node.pod_resources("GetAllocatableResources").devices}


def wait_forgotten(cluster):
    """Until nothing is left on the node of pods that are gone: neither their logs nor their directories, which the
    kubelet removes one after the other."""
    def forgotten():
        there = {seen.uid for seen in cluster.pods().values()}
        left = {path.name.rpartition("_")[2] for directory in ("var/log/pods", "var/lib/kubelet/pods")
                for path in (cluster.node.root / directory).iterdir()}
        return left <= there

    cluster.wait(forgotten, "the kubelet has removed what is left of pods that are gone", FORGOTTEN_S)


def test_it_comes_and_goes_under_running_pods(cluster):
    """No container is made anew by it, and no device is given twice: who has it from the kubelet's own
    plugin keeps it beside those who have theirs through the shim, and the other way round. A pod whose
    device the kubelet does not know how to give it without the shim keeps the shim from going."""
    run_pod(cluster, "before")
    cluster.node.install()
    run_pod(cluster, "installed")
    move(cluster, GPUS)
    run_pod(cluster, "moved")
    move(cluster, DIRECT)
    run_pod(cluster, "back")
    refused = cluster.node.uninstall(check=False)
    assert refused.returncode != 0 and "default/moved" in refused.stdout + refused.stderr
    for one in cluster.wait_running("before", "installed", "moved", "back"):
        assert one.containers["main"]["restartCount"] == 0, one
    cluster.delete("moved")
    cluster.wait_gone("moved")  # of one that is still ending nothing is forgotten
    wait_forgotten(cluster)
    cluster.node.uninstall()
    run_pod(cluster, "after")
    for one in cluster.wait_running("before", "installed", "back", "after"):
        assert one.containers["main"]["restartCount"] == 0, one


def test_upgrade_under_arriving_pods(cluster, request):
    """To another release and back, again and again: no pod fails, and each container is started once."""
    cluster.node.install()
    move(cluster, GPUS)
    releases = [number % 2 == 0 for number in range(2 * ROUNDS)]
    another = iter(releases)

    def upgrade():
        before = [cluster.node.pid(unit) for unit in (DAEMON, BRIDGE)]
        cluster.node.install(another=next(another))
        assert not set(before) & {cluster.node.pid(unit) for unit in (DAEMON, BRIDGE)}

    try:
        outcome = strike_under_arrivals(cluster, upgrade, manifest, len(releases), f"{SEED} upgrade")
    finally:
        cluster.remove_all()
        wait_forgotten(cluster)
        move(cluster, DIRECT)
        cluster.node.uninstall()
    tell(request, f"upgraded under arriving pods: {outcome}")
    assert not outcome.failed, outcome.messages
    assert not outcome.again + outcome.hookless
