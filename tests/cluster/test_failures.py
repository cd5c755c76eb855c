"""What README says of "When things fail", as far as it can be done to a node from outside, and no other
file here has it. Pods run all the while, and nobody's container is made anew; another pod comes."""

import dataclasses
import pathlib

import pytest

from cluster import GPU, GPUS, ONE, PLUGINS
from kube_node import (BRIDGE, CONTAINERD, CRI_SOCKET, DAEMON, KUBELET, KUBELET_PLUGIN_DIR, PLUGIN_DIR)
from kube_pods import container, pod
from small_disk import SmallDisk
from test_lives import given, run_pods

COUNT = len(GPUS.devices)
DISK = "/mnt"
CONFIG = f"""state_dir = "{DISK}/state"
[bridge]
mask = "5s"
"""
UNHEALTHY = f'{CONFIG}[plugins]\ntaint_unhealthy_after = "1s"\n'


@pytest.fixture(scope="module", name="disk")
def make_disk(module_directory):
    """That of what the shim keeps."""
    disk = SmallDisk(module_directory / "disk")
    yield disk
    disk.close()


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(disk, cluster_of):
    return cluster_of(PLUGINS, config=CONFIG, binds={DISK: disk.path})


@pytest.fixture(name="state")
def find_state(disk):
    """The directory with the checkpoint."""
    return disk.path / "state"


@pytest.fixture(name="running")
def run_two(cluster):
    """Two pods with a device each, which run from the test's beginning to its end."""
    names = run_pods(cluster, 2)
    yield names
    for one in cluster.wait_running(*names):
        assert one.containers["main"]["restartCount"] == 0, one
        assert len(cluster.devices_of(one.name)) == 1, one


def run_with_the_rest(cluster, running):
    """A pod that is given each device that nobody has."""
    cluster.create(pod("rest", container("main", {GPU: COUNT - len(running)})))
    cluster.wait_running("rest")
    assert sorted(given(cluster, ["rest", *running])) == sorted(GPUS.devices)


def degraded(cluster):
    return [one["what"] for one in cluster.node.ctl_json("status")["degraded"]]


@pytest.mark.parametrize("unit", [DAEMON, BRIDGE])
def test_one_of_ours_hangs(cluster, running, unit):
    """systemd ends it, and pods that came meanwhile run with the next one."""
    hangs = cluster.node.pid(unit)
    cluster.node.kill(unit, number="STOP")
    cluster.create(pod("plain", container("main"), restart="Never"))
    run_with_the_rest(cluster, running)
    cluster.wait_running("plain")
    assert cluster.node.pid(unit) != hangs


def test_the_daemon_is_stopped_for_a_time(cluster, running):
    """CRI stands still; what was admitted meanwhile is made then."""
    cluster.node.stop_unit(DAEMON)
    try:
        cluster.create(pod("late", container("main", {GPU: 1})))
        cluster.wait_scheduled("late")
    finally:
        cluster.node.start_unit(DAEMON)
    cluster.wait_running("late", *running)


@pytest.mark.parametrize("unit", [DAEMON, BRIDGE])
def test_the_settings_are_wrong_at_a_start(cluster, running, unit):
    """Those of the last start that worked are used, and that is said."""
    cluster.node.write_config("mistaken = true\n" + CONFIG)
    try:
        cluster.node.restart_unit(unit)
        run_with_the_rest(cluster, running)
        assert "degraded" in cluster.node.property(unit, "StatusText")
    finally:
        cluster.node.write_config(CONFIG)
        cluster.node.restart_unit(unit)
    cluster.wait(lambda: not degraded(cluster), "nothing is wrong any more")


def test_all_sockets_are_removed(cluster, running):
    """With their directories, which no plugin watches any more then, and the kubelet's own and its
    checkpoint: then plugins and kubelet are restarted, which find what there is anew."""
    cluster.node.run("sh", "-c", f"rm -rf {PLUGIN_DIR} {pathlib.Path(CRI_SOCKET).parent}/*.sock "
                                 f"{KUBELET_PLUGIN_DIR}/*")
    for plugin in PLUGINS:
        cluster.node.restart_unit(plugin.unit)
    cluster.node.restart_unit(KUBELET)
    run_with_the_rest(cluster, running)


@pytest.mark.parametrize("how", ["damaged", "removed"])
def test_the_checkpoint_is_lost(cluster, running, state, how):
    """Who has what is known again by the containers that run: no device is given twice."""
    cluster.node.stop_unit(DAEMON)
    there = sorted(state.glob("checkpoint.db*"))
    assert there
    for one in there:
        if how == "damaged":
            one.write_bytes(b"no checkpoint" * 1000)
        else:
            one.unlink()
    cluster.node.start_unit(DAEMON)
    run_with_the_rest(cluster, running)
    aside = list(state.glob("checkpoint.db.damaged-*"))
    assert bool(aside) == (how == "damaged")
    for one in aside:
        one.unlink()


def test_the_disk_is_full(cluster, running, disk):
    """A container that asks for a device is refused for that reason, all others pass, and nobody has
    to do anything once there is room."""
    disk.fill()
    try:
        cluster.create(pod("asking", container("main", {GPU: 1})))
        cluster.wait_waiting("asking", "CreateContainerError", "cannot be stored")
        cluster.create(pod("plain", container("main")))
        cluster.wait_running("plain", *running)
    finally:
        disk.free()
    cluster.wait_running("asking")


def test_the_runtime_is_away(cluster, running):
    cluster.node.stop_unit(CONTAINERD)
    try:
        cluster.wait(lambda: degraded(cluster) == ["runtime"], "it is known that it is away")
        cluster.create(pod("late", container("main", {GPU: 1})))
        cluster.wait_scheduled("late")
    finally:
        cluster.node.start_unit(CONTAINERD)
    cluster.wait_running("late", *running)


def test_a_plugin_takes_the_resource_over_and_goes(cluster, running):
    """It registers with the kubelet itself, which has no device then, until it is shown ours anew: as
    soon as its checkpoint says so, which it writes for whatever pod."""
    other = dataclasses.replace(GPUS.with_devices(["foreign0"]), plugin_dir=KUBELET_PLUGIN_DIR,
                                instance="-other")
    cluster.node.add_plugin(other)
    cluster.node.start_unit(other.unit)
    try:
        cluster.wait(lambda: cluster.node.known_devices(GPU) == {"foreign0"}, "it has taken it over")
    finally:
        cluster.node.stop_unit(other.unit)
        cluster.node.disable(other.unit)
    cluster.create(pod("whatever", container("main", {ONE: 1})))
    cluster.wait(lambda: cluster.node.known_devices(GPU) == set(GPUS.devices), "ours are back")
    cluster.wait_ready()
    run_with_the_rest(cluster, running)


def test_a_plugin_is_away_longer_than_its_grace(cluster):
    """The scheduler gives none of its devices away, and a container of it that ends is not made anew
    before it is back, with the device that it had."""
    names = ends, stays = run_pods(cluster, 2)
    before = {name: cluster.devices_of(name) for name in names}
    cluster.node.stop_unit(GPUS.unit)
    try:
        cluster.node.ctl("grace", "end", GPU)
        cluster.wait_allocatable(GPU, 0)
        cluster.create(pod("late", container("main", {GPU: 1})))
        cluster.wait_unscheduled("late")
        cluster.node.end_containers(cluster.get(ends).uid)
        cluster.wait_waiting(ends, "CreateContainerError", GPU)
    finally:
        cluster.node.start_unit(GPUS.unit)
    cluster.wait_running("late", *names)
    assert cluster.devices_of(ends) == before[ends] * 2
    assert cluster.devices_of(stays) == before[stays]


@pytest.mark.parametrize("what", ["container", "sandbox"])
def test_one_vanishes_behind_our_back(cluster, running, what):
    """The kubelet has it made anew, with the device that it had."""
    cluster.create(pod("lost", container("main", {GPU: 1})))
    cluster.wait_running("lost")
    before = cluster.first_devices_of("lost")
    named = {"label_selector": {"io.kubernetes.pod.uid": cluster.get("lost").uid}}
    with cluster.node.runtime() as client:
        if what == "container":
            (one,) = client.ListContainers(filter=named).containers
            client.RemoveContainer(container_id=one.id)
        else:
            (one,) = client.ListPodSandbox(filter=named).items
            client.RemovePodSandbox(pod_sandbox_id=one.id)
    cluster.wait(lambda: cluster.devices_of("lost") == before * 2, "it has its device again")
    cluster.wait_running("lost", *running)


def test_all_devices_of_a_plugin_are_unhealthy_at_once(cluster):
    """A quarter of them is given up, whose pods do not run until the devices are healthy again; the
    other pods go on."""
    names = run_pods(cluster, COUNT)
    before = {name: cluster.devices_of(name) for name in names}
    cluster.node.write_config(UNHEALTHY)
    cluster.node.ctl("reload")
    try:
        cluster.register(GPUS.with_devices(dict.fromkeys(GPUS.devices, False)))
        cluster.node.kill(GPUS.unit, number="HUP")

        def waiting():
            return [name for name, one in cluster.pods().items() if "taint" in one.waiting()[1]]

        cluster.wait(lambda: len(waiting()) == COUNT // 4, "a quarter of them is given up")
        ended = waiting()
    finally:
        cluster.register(GPUS)
        cluster.node.kill(GPUS.unit, number="HUP")
        cluster.node.write_config(CONFIG)
        cluster.node.ctl("reload")
    cluster.wait_running(*names)
    assert {name: cluster.devices_of(name) for name in names} == {
        name: devices * (2 if name in ended else 1) for name, devices in before.items()}
