"""Pods with stock resources.limits in real containers: the kubelet gives their devices away among
those that the bridge shows it, and the containers have them, over every restart."""

import json
import os
import stat
import sys
import threading
import time

import pytest

import kubelet_checkpoint
from kubelet import container
from plugin import allocate_answer
from protos import cri, deviceplugin
from real_node import RealNode, containers_of
from shim import ROOT
from waiting import GENEROUS_S, wait_until

SERIAL = "host.example/serial"
GPU = "vendor.com/gpu"
PLUGIN_DIR = "/var/lib/kubelet/device-plugins"
MAJOR = 240  # of no driver here: opening a node says so where the device cgroup allows it
GPUS = [f"gpu{number}" for number in range(8)]


@pytest.fixture
def make_node(directory, containerd, direct):
    """make_node(**settings): a RealNode that has started; it ends before its pods do (`direct`)."""
    nodes = []

    def make(**settings):
        nodes.append(RealNode(directory, containerd, **settings))
        nodes[-1].start()
        return nodes[-1]

    yield make
    for node in nodes:
        node.stop()


@pytest.fixture
def serial(directory):
    """The [[device]] of eight serial adapters: ttyN has the minor number N."""
    folder = directory / "dev"
    folder.mkdir()
    for number in range(8):
        os.mknod(folder / f"tty{number}", 0o600 | stat.S_IFCHR, os.makedev(MAJOR, number))
    return {"resource": SERIAL, "path": f"{folder}/tty*", "container_path": "/dev/serial/"}


@pytest.fixture
def gpu(directory, make_plugin):
    """gpu(node): a plugin whose devices are an env, which names the boot, and a driver's files."""
    driver = directory / "driver"
    driver.mkdir()
    (driver / "VERSION").write_text("driver 1.2.3\n")

    def make(node):
        plugin = make_plugin(node, GPU, GPUS, start=False)
        plugin.boot = 1
        plugin.on_allocate = lambda request, _context: allocate_answer(
            request, annotations={"vendor.com/boot": str(plugin.boot)},
            mounts=[deviceplugin.Mount(container_path="/opt/driver", host_path=str(driver),
                                       read_only=True)])
        return plugin

    return make


def token(client, container_id, resource):
    """The ids in the annotation of a running container."""
    annotations = client.ContainerStatus(container_id=container_id).status.annotations
    found = json.loads(annotations[f"devices.cri-device-shim/{resource.replace('/', '_')}"])
    assert found["resource"] == resource
    return found["ids"]


def serials(client, pod, name="main"):
    """What a pod's one running container has of them, seen inside it: those of its token."""
    (container_id,) = containers_of(client, pod, name)
    ids = token(client, container_id, SERIAL)
    listed = client.exec(container_id, "ls", "-l", "/dev/serial").splitlines()
    nodes = {line.split()[-1]: line for line in listed if line.startswith("c")}
    assert sorted(nodes) == sorted(ids)
    for one, line in nodes.items():
        assert f" {MAJOR},   {one.removeprefix('tty')} " in line
        opened = client.ExecSync(container_id=container_id,
                                 cmd=["sh", "-c", f"true < /dev/serial/{one}"])
        assert b"No such device or address" in opened.stderr
    return set(ids)


def gpus(client, pod, name="main", boot=1):
    """As serials()."""
    (container_id,) = containers_of(client, pod, name)
    ids = client.exec(container_id, "sh", "-c", "echo $PLUGIN_DEVICES").strip().split(",")
    assert sorted(ids) == sorted(token(client, container_id, GPU))
    assert client.exec(container_id, "cat", "/opt/driver/VERSION") == "driver 1.2.3\n"
    refused = client.ExecSync(container_id=container_id, cmd=["touch", "/opt/driver/x"])
    assert b"Read-only file system" in refused.stderr
    annotations = client.ContainerStatus(container_id=container_id).status.annotations
    assert annotations["vendor.com/boot"] == str(boot)
    return set(ids)


def assert_no_device(client, pod):
    (container_id,) = containers_of(client, pod)
    assert client.ExecSync(container_id=container_id, cmd=["ls", "/dev/serial"]).exit_code != 0
    assert "PLUGIN_DEVICES" not in client.exec(container_id, "env")


def wait_tried(kubelet, pods):
    """Until they are admitted, or the kubelet admits none, its runtime being away for too long."""
    kubelet.wait(lambda: all(kubelet.events_of("admitted", uid=pod.uid) for pod in pods)
                 or any("Skipping" in one["text"] for one in kubelet.events_of("log")),
                 "the pods are admitted")


def test_builtin_device(make_node, direct, serial):
    """A pod with limits of a built-in device has as many nodes, and no other pod has one; what the
    kubelet keeps of it is the token alone."""
    node = make_node(devices=[serial])
    node.wait_shown(SERIAL)
    web = node.kubelet.add_pod("web", {SERIAL: 1})
    two = node.kubelet.add_pod("two", {SERIAL: 2})
    plain = node.kubelet.add_pod("plain")
    node.kubelet.wait_phase(web, two, plain)
    theirs = serials(direct, web), serials(direct, two)
    assert list(map(len, theirs)) == [1, 2] and not theirs[0] & theirs[1]
    assert_no_device(direct, plain)
    kept = {entry.pod_uid: deviceplugin.ContainerAllocateResponse.FromString(entry.response)
            for entry in kubelet_checkpoint.read(node.kubelet_dir)[0]}
    (annotation,) = kept[web.uid].annotations
    assert kept[web.uid] == deviceplugin.ContainerAllocateResponse(annotations={
        annotation: kept[web.uid].annotations[annotation]})


def test_plugin_device(make_node, direct, gpu):
    """Pods with limits of a plugin's devices have its env, mount and annotation in each container;
    the plugin is asked once for each, with the devices that the kubelet chose."""
    node = make_node()
    plugin = gpu(node)
    plugin.start()
    node.wait_shown(GPU)
    web = node.kubelet.add_pod("web", containers=[container("main", {GPU: 2}),
                                                  container("side", {GPU: 1})])
    plain = node.kubelet.add_pod("plain")
    node.kubelet.wait_phase(web, plain)
    main, side = gpus(direct, web), gpus(direct, web, "side")
    assert (len(main), len(side)) == (2, 1) and not main & side
    assert_no_device(direct, plain)
    assert sorted(map(sorted, plugin.allocated())) == sorted(map(sorted, (main, side)))


def test_daemon_killed_while_pods_come(make_node, direct, serial, gpu):
    """The daemon is killed while it makes some pods' containers, others come while it is away, and
    it is killed again when the first of them runs: all run, each with devices of its own."""
    node = make_node(devices=[serial], plugins={"allocate_timeout": "1m", "allocates_at_once": 0})
    plugin = gpu(node)
    allocate, release = plugin.on_allocate, threading.Event()
    plugin.on_allocate = lambda *call: release.wait(GENEROUS_S) and allocate(*call)
    plugin.start()
    node.wait_shown(SERIAL, GPU)
    kubelet = node.kubelet

    def come(*numbers):
        return [kubelet.add_pod(f"pod{number}", {SERIAL: 1, GPU: 1}) for number in numbers]

    # Not while a sandbox is made: containerd 1.6 leaves its shim behind when its caller goes.
    pods = come(0, 1, 2)
    plugin.wait_calls("Allocate", len(pods))
    node.daemon.kill()
    pods += come(3, 4)
    wait_tried(kubelet, pods[3:])
    node.daemon.start()
    plugin.wait_calls("Allocate", 3 + len(pods))
    release.set()
    kubelet.wait_event("started")
    node.daemon.kill()
    pods += come(5, 6)
    wait_tried(kubelet, pods[5:])
    node.daemon.start()
    kubelet.wait_phase(*pods)
    for devices in (serials, gpus):
        theirs = [devices(direct, pod) for pod in pods]
        assert [len(ids) for ids in theirs] == [1] * len(pods)
        assert len(set.union(*theirs)) == len(pods)
    assert not kubelet.failed()


def test_kubelet_killed(make_node, direct, serial, gpu):
    """A kubelet that is killed and comes back: what runs goes on; a container that ended meanwhile,
    or ends now, has the same devices again, from the token that the kubelet kept."""
    node = make_node(devices=[serial])
    plugin = gpu(node)
    plugin.start()
    node.wait_shown(SERIAL, GPU)
    kubelet = node.kubelet
    pods = [kubelet.add_pod(name, {SERIAL: 1, GPU: 1}) for name in ("stays", "before", "after")]
    kubelet.wait_phase(*pods)
    stays, before, after = pods
    theirs = {pod: (serials(direct, pod), gpus(direct, pod)) for pod in pods}
    running = {pod: containers_of(direct, pod) for pod in pods}

    kubelet.kill()
    direct.StopContainer(container_id=running[before][0])
    allocations = len(kubelet.events_of("allocate"))
    began = time.monotonic()
    kubelet.start()
    kubelet.wait_event("started", since=began, uid=before.uid, attempt=1)
    direct.StopContainer(container_id=running[after][0])
    kubelet.wait_event("started", since=began, uid=after.uid, attempt=1)
    late = kubelet.add_pod("late", {SERIAL: 1, GPU: 1})
    kubelet.wait_phase(late)

    assert {pod: (serials(direct, pod), gpus(direct, pod)) for pod in pods} == theirs
    assert containers_of(direct, stays) == running[stays]
    for held, devices in zip(zip(*theirs.values()), (serials(direct, late), gpus(direct, late))):
        assert not set.union(*held) & devices
    assert len(kubelet.events_of("allocate")) == allocations + 2  # the late pod's
    assert len(plugin.allocated()) == len(pods) + 1
    assert not kubelet.failed()


def test_reboot(make_node, direct, serial, gpu):
    """The power fails; the plugin comes back only after the kubelet has admitted the pods and been
    refused their containers: no pod fails, and all run in the end with the devices they had, as the
    plugin gives them in this boot. The others need not wait."""
    node = make_node(devices=[serial])
    plugin = gpu(node)
    plugin.start()
    node.wait_shown(SERIAL, GPU)
    kubelet = node.kubelet
    web, tty, plain = pods = [kubelet.add_pod("web", {GPU: 2}), kubelet.add_pod("tty", {SERIAL: 1}),
                              kubelet.add_pod("plain")]
    kubelet.wait_phase(*pods)
    theirs = gpus(direct, web), serials(direct, tty)

    plugin.stop()
    node.power_off()
    began = time.monotonic()
    new = kubelet.add_pod("new", {GPU: 1})
    node.power_on()
    for pod in (web, new):
        kubelet.wait_event("admitted", since=began, uid=pod.uid)
        refusal = kubelet.wait_event("refused", since=began, uid=pod.uid)
        assert refusal["code"] == "UNAVAILABLE" and GPU in refusal["message"]
    for pod in (tty, plain):
        kubelet.wait_event("started", since=began, uid=pod.uid)
    assert not containers_of(direct, web) and not containers_of(direct, new)

    plugin.boot = 2
    plugin.start()
    for pod in (web, new):
        kubelet.wait_event("started", since=began, uid=pod.uid)
    kubelet.wait_phase(*pods, new)
    assert (gpus(direct, web, boot=2), serials(direct, tty)) == theirs
    assert len(gpus(direct, new, boot=2)) == 1 and not gpus(direct, new, boot=2) & theirs[0]
    assert_no_device(direct, plain)
    assert not kubelet.failed()


def test_plugin_in_a_pod(make_node, direct):
    """A device plugin in a container of its own, with its stock hostPath, finds the shim there,
    registers, and another pod runs with its device."""
    node = make_node(bridge={"redirect_plugin_mounts": True})
    kubelet = node.kubelet
    kubelet.wait_event("sources_ready")
    python = {path: path for path in ("/usr", "/lib", "/lib64", str(ROOT)) if os.path.exists(path)}
    pod = kubelet.add_pod("plugin", containers=[
        container("main", mounts={PLUGIN_DIR: f"{node.kubelet_dir}/", **python})])
    kubelet.wait_phase(pod)
    (container_id,) = containers_of(direct, pod)
    inside = direct.exec(container_id, "stat", "-c", "%i", f"{PLUGIN_DIR}/kubelet.sock")
    assert int(inside) == os.stat(node.plugin_dir / "kubelet.sock").st_ino
    plugin = ["env", "PATH=/usr/bin", sys.executable, "-B", str(ROOT / "tests/lib/plugin.py"),
              json.dumps([PLUGIN_DIR, GPU, ["g0"], "answer", None])]
    direct.exec(container_id, "sh", "-c", "(tail -f /dev/null | \"$@\") > /tmp/log 2>&1 &", "sh",
                *plugin)
    said = wait_until(lambda: direct.exec(container_id, "cat", "/tmp/log"), "the plugin speaks")
    assert said == "registered\n"
    node.wait_shown(GPU)
    user = kubelet.add_pod("user", {GPU: 1})
    kubelet.wait_phase(user)
    (container_id,) = containers_of(direct, user)
    assert "PLUGIN_DEVICES=g0\n" in direct.exec(container_id, "env")


def test_which_mounts_are_redirected(make_node, make_client, direct):
    """One that can be written to leads to the shim's directory, where it was in the container; a
    read-only one is no plugin's and stays. containerd says so, too."""
    node = make_node(bridge={"redirect_plugin_mounts": True})
    node.kubelet.kill()  # it ends pods that it does not know
    client = make_client(node.daemon)
    for readonly, leads_to in ((False, node.plugin_dir), (True, node.kubelet_dir)):
        container_id = client.run(client.run_pod("plugin"), "main", mounts=[cri.Mount(
            container_path=PLUGIN_DIR, host_path=str(node.kubelet_dir), readonly=readonly)])
        (mount,) = direct.ContainerStatus(container_id=container_id).status.mounts
        assert mount == cri.Mount(container_path=PLUGIN_DIR, host_path=str(leads_to),
                                  readonly=readonly)
        inside = direct.exec(container_id, "stat", "-c", "%i", PLUGIN_DIR)
        assert int(inside) == os.stat(leads_to).st_ino
        touched = direct.ExecSync(container_id=container_id, cmd=["touch", f"{PLUGIN_DIR}/x"])
        assert (b"Read-only file system" in touched.stderr) == readonly
