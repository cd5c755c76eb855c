"""Parts of a node end and come back under pods that run: no pod is lost, and none has the device of
a container that still runs."""

import pytest

from cluster import GPU, GPUS, ONE
from drills import kill_pause
from kube_node import BRIDGE, CONTAINERD, DAEMON, KUBELET
from kube_pods import container, pod

RESTARTS = 3


def run_pods(cluster, count=4):
    """The names of pods that run, with a device each."""
    names = [f"web{number}" for number in range(count)]
    for name in names:
        cluster.create(pod(name, container("main", {GPU: 1})))
    cluster.wait_running(*names)
    return names


def given(cluster, names):
    """All devices that containers of these pods got."""
    return [device for name in names for _, ids in cluster.devices_of(name) for device in ids]


def test_container_outlives_its_sandbox(cluster):
    """The pause process is killed, the container does not heed SIGTERM, and its pod is deleted by
    force: another pod that is given its device by the kubelet waits until it has ended. The kubelet,
    which then makes it once more, without its device, is refused."""
    cluster.create(pod("old", container("main", {ONE: 1}, deaf=True), grace_s=30))
    cluster.wait_running("old")
    kill_pause(cluster, "old")
    cluster.delete("old", force=True)
    cluster.wait_gone("old")
    cluster.create(pod("new", container("main", {ONE: 1})))
    cluster.wait_waiting("new", "CreateContainerError", "one0", "default/old", "still runs")
    cluster.wait_running("new")
    assert cluster.devices_of("new") == [("main", ["one0"])]


@pytest.mark.parametrize("unit", [KUBELET, CONTAINERD, DAEMON, BRIDGE, GPUS.unit])
@pytest.mark.parametrize("how", ["kill", "restart_unit"])
def test_restarts_under_running_pods(cluster, unit, how):
    """Their containers go on, and a pod that comes afterwards runs, too."""
    names = run_pods(cluster)
    for _ in range(RESTARTS):
        getattr(cluster.node, how)(unit)
    cluster.settle()
    cluster.create(pod("late", container("main", {GPU: 1})))
    cluster.wait_running("late")
    for one in cluster.wait_running(*names):
        assert one.containers["main"]["restartCount"] == 0, one
        assert len(cluster.devices_of(one.name)) == 1


def test_plugin_is_upgraded(cluster):
    """It comes back with one device less and another one more: what runs keeps what it has, and new
    pods get what there is then."""
    names = run_pods(cluster, 2)
    held = set(given(cluster, names))
    (gone,) = sorted(set(GPUS.devices) - held)[:1]
    devices = [one for one in GPUS.devices if one != gone] + ["another"]
    cluster.register(GPUS.with_devices(devices))
    try:
        cluster.node.restart_unit(GPUS.unit)
        cluster.wait(lambda: cluster.node.known_devices(GPU) == set(devices),
                     "the kubelet knows what there is now")
        late = [f"late{number}" for number in range(len(devices) - len(held))]
        for name in late:
            cluster.create(pod(name, container("main", {GPU: 1})))
        cluster.wait_running(*late, *names)
        assert sorted(given(cluster, late)) == sorted(set(devices) - held)
    finally:
        cluster.remove_all()
        cluster.register(GPUS)
        cluster.node.restart_unit(GPUS.unit)
        cluster.wait(lambda: cluster.node.known_devices(GPU) == set(GPUS.devices),
                     "the kubelet knows them again")


def test_reboot_with_a_late_plugin(cluster):
    """All is off at once; after the boot the plugin comes when all its pods wait for it: each runs,
    with the device it had."""
    names = run_pods(cluster)
    before = {name: cluster.devices_of(name) for name in names}
    cluster.node.power_off()
    cluster.node.disable(GPUS.unit)
    cluster.node.start()
    for name in names:
        cluster.wait_waiting(name, "CreateContainerError", GPU)
    cluster.node.enable(GPUS.unit)
    cluster.node.start_unit(GPUS.unit)
    for one in cluster.wait_running(*names):
        assert cluster.devices_of(one.name) == before[one.name] * 2


@pytest.mark.parametrize("unit", [None, GPUS.unit, DAEMON, BRIDGE])
def test_containers_crash_while_the_api_server_is_away(cluster, unit):
    """Whoever is killed meanwhile: each is made again, with the device that it had, which asks nobody
    outside of the node."""
    names = run_pods(cluster)
    before = {name: cluster.devices_of(name) for name in names}
    uids = [cluster.get(name).uid for name in names]
    cluster.plane.kill_server()
    try:
        if unit:
            cluster.node.kill(unit)
        for uid in uids:
            cluster.node.end_containers(uid)
        cluster.wait(lambda: all(cluster.devices_of(name) == before[name] * 2 for name in names),
                     "all containers run again, with their devices")
    finally:
        cluster.plane.start_server()
    for one in cluster.wait_each({name: lambda one: one.running
                                  and one.containers["main"]["restartCount"] == 1 for name in names}):
        assert cluster.devices_of(one.name) == before[one.name] * 2
