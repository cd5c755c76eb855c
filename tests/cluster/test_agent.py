"""The agent at a real API server, by the kubelet's own credentials: the node authorizer and
NodeRestriction are in its way. The kubelet knows of no device here: somebody else has published
what the node has of them, as an administrator may."""

import pytest

from cluster import GPU, GPUS
from control_plane import NODE
from kube_node import AGENT, DAEMON, KUBELET

COUNT = len(GPUS.devices)
CONFIG = """[cluster]
enabled = true
[bridge]
enabled = false
[plugins]
grace = "2s"
"""


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    cluster = cluster_of((), config=CONFIG)
    cluster.node.add_plugin(GPUS)
    return cluster


@pytest.fixture(name="cluster")
def use_cluster(shared_cluster):
    """The plugin serves, and the scheduler may give its devices away."""
    cluster = shared_cluster
    cluster.node.start_unit(GPUS.unit)
    cluster.wait(lambda: [one["name"] for one in cluster.node.ctl_json("resources")["items"]
                          if one["state"] == "active"] == [GPU], "the plugin serves")
    publish(cluster, COUNT)
    cluster.wait_allocatable(GPU, COUNT)
    yield cluster
    cluster.wait(lambda: not cluster.node.ctl_json("status")["degraded"], "all is as it should be")


def publish(cluster, count):
    cluster.plane.api.patch(f"/api/v1/nodes/{NODE}/status",
                            {"status": {"capacity": {GPU: f"{count}"}}})


def wait_none(cluster):
    """The Node has no capacity of it any more, of which the kubelet makes what can be allocated."""
    cluster.wait(lambda: cluster.status()["capacity"][GPU] == "0", "the capacity is 0")
    cluster.wait_allocatable(GPU, 0)


@pytest.mark.parametrize("unit", [None, AGENT, DAEMON, KUBELET])
def test_a_removed_resource_has_no_capacity(cluster, unit):
    """Whoever is killed as its plugin goes."""
    cluster.node.stop_unit(GPUS.unit)
    if unit:
        cluster.node.kill(unit)
    wait_none(cluster)


def test_the_api_server_is_away(cluster):
    """When the resource is removed; it is told as soon as the server is back."""
    cluster.plane.kill_server()
    try:
        cluster.node.stop_unit(GPUS.unit)
        cluster.wait(lambda: [one["what"] for one in cluster.node.ctl_json("status")["degraded"]]
                     == ["cluster"], "it is known that nobody answers")
    finally:
        cluster.plane.start_server()
    wait_none(cluster)


def test_a_plugin_that_is_back(cluster):
    """What is published then stays so."""
    cluster.node.stop_unit(GPUS.unit)
    wait_none(cluster)
    cluster.node.start_unit(GPUS.unit)
    cluster.wait(lambda: [one["state"] for one in cluster.node.ctl_json("resources")["items"]]
                 == ["active"], "the plugin serves again")
    publish(cluster, COUNT)
    cluster.wait_allocatable(GPU, COUNT)
    for unit in (AGENT, DAEMON):
        cluster.node.kill(unit)
    cluster.wait(lambda: not cluster.node.ctl_json("status")["degraded"], "all of it runs again")
    assert cluster.status()["capacity"][GPU] == str(COUNT)
