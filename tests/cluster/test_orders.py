"""What an operator sets, and is told, on a node that works: a cordon, a withdrawal, the lists and
events, against what the kubelet and the API server say."""

import pytest

from cluster import GPU, GPUS, ONE, PLUGINS
from kube_node import BRIDGE, DAEMON, KUBELET
from kube_pods import container, pod


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    """A kubelet that has just started is shown what is not so for a short time only."""
    return cluster_of(PLUGINS, config='[bridge]\nmask = "5s"\n')


@pytest.fixture(name="steer")
def make_steer(cluster):
    """steer("cordon", ...): answered by then. No order stands when the test ends."""
    yield cluster.node.ctl
    for one in cluster.node.ctl_json("orders")["items"]:
        if one["kind"] == "cordon":
            cluster.node.ctl("uncordon", one["resource"], one["id"])
        elif one["kind"] == "withdrawal":
            cluster.node.ctl("withdraw", "--undo", one["resource"])


@pytest.mark.parametrize("unit", [None, DAEMON, BRIDGE, KUBELET])
def test_a_cordoned_device(cluster, steer, unit):
    """Nobody new gets it, whoever is killed right after; who has it keeps it, and has it again when
    its container is made anew."""
    cluster.create(pod("old", container("main", {ONE: 1})))
    cluster.wait_running("old")
    steer("cordon", ONE, "one0", "--reason", "dust in the fan")
    if unit:
        cluster.node.kill(unit)
    cluster.wait_allocatable(ONE, 0)
    cluster.node.end_containers(cluster.get("old").uid)
    cluster.wait_each({"old": lambda one: one.running
                       and one.containers["main"]["restartCount"] == 1})
    assert cluster.devices_of("old") == [("main", ["one0"])] * 2
    cluster.delete("old")
    cluster.wait_gone("old")
    cluster.wait(lambda: not cluster.node.known_devices(ONE) and cluster.allocatable(ONE) == 0,
                 "nor has it any when a kubelet that has just started is shown what is so")
    cluster.create(pod("new", container("main", {ONE: 1})))
    cluster.wait_unscheduled("new")
    steer("uncordon", ONE, "one0")
    cluster.wait_running("new")


def test_a_withdrawn_resource(cluster, steer):
    """Its pods go on, over kills of all of ours and of the kubelet, and no other comes."""
    cluster.create(pod("old", container("main", {GPU: 2})))
    cluster.wait_running("old")
    steer("withdraw", GPU, "--reason", "its cards are sold")
    cluster.wait_allocatable(GPU, 0)
    for unit in DAEMON, BRIDGE, KUBELET:
        cluster.node.kill(unit)
    cluster.create(pod("new", container("main", {GPU: 1})))
    cluster.wait_unscheduled("new")
    assert cluster.wait_running("old")[0].containers["main"]["restartCount"] == 0
    steer("withdraw", "--undo", GPU)
    cluster.wait_running("old", "new")


def test_lists_are_as_the_kubelet_says(cluster):
    """Of its own pods: which has which device."""
    names = [f"web{number}" for number in range(3)]
    for number, name in enumerate(names):
        cluster.create(pod(name, container("main", {GPU: number + 1})))
    cluster.wait_running(*names)
    pods = cluster.node.pod_resources("List").pod_resources
    kubelets = {(one.name, each.resource_name, device) for one in pods
                for inside in one.containers for each in inside.devices
                for device in each.device_ids if each.resource_name == GPU}
    items = cluster.node.ctl_json("allocations", GPU)["items"]
    running = [one for one in items if one["state"] == "running"]  # not those of pods that are gone
    assert {(one["pod"], one["resource"], device) for one in running
            for device in one["ids"]} == kubelets
    devices = cluster.node.ctl_json("devices", GPU)["items"]
    assert {one[2] for one in kubelets} <= {one["id"] for one in devices if not one["free"]}
    assert {one["id"] for one in devices} == set(GPUS.devices)
    told = cluster.node.ctl_json("events")["items"]
    assert set(names) <= {one["pod"] for one in told if one["kind"] == "allocated"}


def test_why_is_what_the_kubelet_tells(cluster):
    """The pod's own message says what `why` says."""
    cluster.node.stop_unit(GPUS.unit)
    try:
        cluster.create(pod("web", container("main", {GPU: 1})))
        cluster.wait_waiting("web", "CreateContainerError", GPU)

        def told():
            (one,) = cluster.node.ctl_json("why", "web")["items"]
            _, message = cluster.get("web").waiting()
            return one["lastRefusal"] and one["lastRefusal"]["reason"]["text"] in message

        cluster.wait(told, "why says what the kubelet says")
    finally:
        cluster.node.start_unit(GPUS.unit)
    cluster.wait_running("web")
