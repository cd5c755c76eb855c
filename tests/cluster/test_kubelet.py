"""What the kubelet makes of the devices that the bridge shows it: its topology manager, its
PodResources API, the health in a pod's status; a kubelet that streams its lists, and one that hears
of its pods late."""

import time

import grpc
import pytest

from cluster import GPU, GPUS
from kube_node import KUBELET
from kube_pods import container, pod
from kube_release import GATES, since
from numa import write_nodes

MASK_S = 5
NODES = {name: number // 8 for number, name in enumerate(GPUS.devices)}  # eight on each


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of, module_directory):
    """A machine with two NUMA nodes; a kubelet that has just started is shown what is not so for a
    short time only."""
    nodes = module_directory / "nodes"
    write_nodes(nodes)
    return cluster_of([GPUS.with_numa(NODES)], config=f'[bridge]\nmask = "{MASK_S}s"\n',
                      binds={"/sys/devices/system/node": nodes})


@pytest.fixture(name="with_kubelet")
def change_kubelet(cluster):
    """with_kubelet(**settings): the node, whose kubelet has them until the test ends."""
    before = dict(cluster.node.kubelet_config)

    def change(**settings):
        cluster.node.restart_kubelet(**settings)
        cluster.settle()

    yield change
    cluster.remove_all()
    cluster.node.kubelet_config = before
    cluster.node.restart_kubelet()


def test_pod_resources(cluster):
    """A monitoring agent reads which pod has which device, and of which NUMA node it is."""
    cluster.create(pod("web", container("main", {GPU: 2}), container("side")))
    cluster.wait_running("web")
    ((_, ids),) = [one for one in cluster.devices_of("web") if one[0] == "main"]
    listed = cluster.node.pod_resources("List").pod_resources
    (web,) = [one for one in listed if one.name == "web"]
    devices = {one.name: {id: [node.id for node in each.topology.nodes] for each in one.devices
                          for id in each.device_ids} for one in web.containers}
    assert devices == {"main": {one: [NODES[one]] for one in ids}, "side": {}}
    assert cluster.node.known_devices(GPU) == set(NODES)


def test_topology_manager(cluster, with_kubelet):
    """single-numa-node, by the plugin's own hints: a container's devices are all of one node, and a
    pod that would have them of two is the kubelet's to refuse."""
    with_kubelet(topologyManagerPolicy="single-numa-node")
    for name in ("one", "two"):
        cluster.create(pod(name, container("main", {GPU: 5})))
    cluster.wait_running("one", "two")
    nodes = []
    for name in ("one", "two"):
        ((_, ids),) = cluster.first_devices_of(name)
        nodes.append({NODES[one] for one in ids})
    assert sorted(nodes, key=min) == [{0}, {1}]
    cluster.create(pod("three", container("main", {GPU: 4})))
    (three,) = cluster.wait_over("three")
    assert (three.phase, three.reason) == ("Failed", "TopologyAffinityError")


@since(32, "health of devices in a pod's status")
def test_health_in_a_pods_status(cluster):
    """A device that a running pod has becomes unhealthy, and healthy again: the pod's status says
    so, and the pod runs on."""
    cluster.create(pod("web", container("main", {GPU: 1})))
    cluster.wait_running("web")
    ((_, (device,)),) = cluster.first_devices_of("web")

    def health():
        status = cluster.get("web").containers["main"].get("allocatedResourcesStatus", [])
        return {each["resourceID"]: each["health"] for one in status for each in one["resources"]}

    cluster.wait(lambda: health() == {device: "Healthy"}, "the device is healthy")
    for is_healthy, word in ((False, "Unhealthy"), (True, "Healthy")):
        cluster.register(cluster.plugins[GPU].with_devices(
            {one: is_healthy or one != device for one in NODES}))
        cluster.node.kill(GPUS.unit, number="HUP")
        cluster.wait(lambda word=word: health() == {device: word}, f"the device is {word}")
    assert cluster.wait_running("web")[0].containers["main"]["restartCount"] == 0


@since(36, "streams of a runtime's lists")
def test_kubelet_that_streams_its_lists(cluster, with_kubelet):
    """It asks for streams first, which this runtime may not have: it starts all the same, again and
    again, and no pod is lost."""
    with_kubelet(featureGates={**GATES, "CRIListStreaming": True})
    names = [f"web{number}" for number in range(3)]
    for name in names:
        cluster.create(pod(name, container("main", {GPU: 1})))
    cluster.wait_running(*names)
    for _ in range(3):
        cluster.node.kill(KUBELET)
        cluster.settle()
    for one in cluster.wait_running(*names):
        assert one.containers["main"]["restartCount"] == 0, one


def test_plugin_that_hangs_delays_nobody_else(cluster):
    """A pod that asks for nothing runs while the plugin is stopped and another pod waits for it,
    which runs in the end."""
    cluster.node.kill(GPUS.unit, number="STOP")
    try:
        cluster.create(pod("asking", container("main", {GPU: 1})))
        cluster.wait_waiting("asking", "CreateContainerError", GPU)
        cluster.create(pod("innocent", container("main")))
        cluster.wait_running("innocent")
        assert cluster.get("asking").phase == "Pending"
    finally:
        cluster.node.kill(GPUS.unit, number="CONT")
    cluster.wait_running("asking")


def serves(cluster):
    """Whether the kubelet, which has just started, answers."""
    try:
        cluster.node.pod_resources("List")
    except grpc.RpcError:
        return False
    return True


def test_an_api_server_that_is_back_long_after_the_node(cluster):
    """As when the power was out: the kubelet hears of its pods, the plugin's own among them, when what it is shown of
    devices without their plugin should long be over. It fails none, and each has the device it had."""
    names = [f"web{number}" for number in range(3)]
    for name in names:
        cluster.create(pod(name, container("main", {GPU: 1})))
    cluster.wait_running(*names)
    before = {name: cluster.devices_of(name) for name in names}
    cluster.node.power_off()
    cluster.plane.kill_server()
    try:
        cluster.node.disable(GPUS.unit)
        cluster.node.start()
        cluster.wait(lambda: serves(cluster) and cluster.node.known_devices(GPU) == set(NODES), "it is shown the devices")
        time.sleep(3 * MASK_S)
        assert cluster.node.known_devices(GPU) == set(NODES)
    finally:
        cluster.plane.start_server()
    for name in names:
        cluster.wait_waiting(name, "CreateContainerError", GPU)
    cluster.node.enable(GPUS.unit)
    cluster.node.start_unit(GPUS.unit)
    cluster.wait_running(*names)
    assert {name: cluster.devices_of(name) for name in names} == {name: given * 2 for name, given in before.items()}
