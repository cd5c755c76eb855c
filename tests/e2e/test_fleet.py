"""Nodes of a fleet: what config/kubernetes has pods do, by the image, in real containers on a node with a real systemd."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile

import pytest

import built
import kubelet_checkpoint
from asking import by_token
from criclient import Client
from fleet import CHANGE_S, FleetNode, args_of, build_image
from installed_node import BRIDGE, DAEMON, SOCKET
from machine import SYSTEMD, missing_controllers
from plugin import Plugin
from protos import cri, deviceplugin
from shim import BINARY
from waiting import wait_until

pytestmark = [
    pytest.mark.skipif(not os.path.exists(SYSTEMD), reason="no systemd here"),
    pytest.mark.skipif(bool(missing_controllers()), reason="no cgroup controllers for containers here")]

GPU = "vendor.com/gpu"
CRI = "/run/cri-device-shim/cri-device-shim.sock"
PLUGIN_DIR = "/var/lib/cri-device-shim/device-plugins"
CHECKPOINT = f"/var/lib/kubelet/device-plugins/{kubelet_checkpoint.NAME}"
ALL = {DAEMON, BRIDGE, SOCKET, "kubelet.service"}
ONE, TWO = "fleet.test/cri-device-shim:1", "fleet.test/cri-device-shim:2"


@pytest.fixture(scope="module", name="images")
def build_images():
    """{name: archive}; the second has a daemon of the release to come."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cdf-", dir="/tmp"))
    built.copy(directory / "build")
    archives = {ONE: build_image(directory / "1", ONE, directory / "build")}
    shutil.copy(BINARY.parents[1] / "tests/e2e/cri-device-shim-next", directory / "build/shim/cri-device-shim")
    archives[TWO] = build_image(directory / "2", TWO, directory / "build")
    yield archives
    shutil.rmtree(directory)


@pytest.fixture(name="node")
def booted(directory, closing, images):
    node = closing(FleetNode(directory))
    node.start()
    for archive in images.values():
        node.import_image(archive)
    return node


@pytest.fixture(name="direct")
def runtime_client(node, closing):
    return closing(node.runtime())


def files(node):
    """Of what an install has to do with; the state of daemon and bridge is no part of it."""
    return {path for where in ("etc", "usr/local") for path in (node.root / where).rglob("*") if not path.is_dir()}


def unpacked(node):
    """What a change has of the image, while it is under way."""
    return list((node.root / "usr/local").glob(".cri-device-shim.*"))


@contextlib.contextmanager
def locked(node):
    """As if another change of it were under way."""
    fd = os.open(node.root / "etc", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield
    os.close(fd)


def test_install_upgrade_and_remove(node, direct, closing):
    """As the label on a node is set: the pod has the node do it, says ready as the node's status is, and
    goes without a trace. The second pod comes through the shim that it replaces. The node is
    given back only when no pod needs it."""
    before = files(node)
    pod = node.run_pod(direct, "install", ONE)
    pod.wait_ready()
    assert node.active() == ALL
    assert "systemctl restart kubelet.service" in pod.log() and unpacked(node) == []
    node.run("systemctl", "stop", BRIDGE)
    wait_until(lambda: not pod.is_ready(), "it is not ready without the bridge")
    node.run("systemctl", "start", BRIDGE)
    pod.wait_ready()
    pod.remove()
    assert node.active() == ALL

    plugin = closing(Plugin(node.path(PLUGIN_DIR), GPU, ["g0"]))
    plugin.start()
    client = closing(Client(node.path(CRI)))
    client.run(client.run_pod("one", uid="uid-1"), "main", annotations=by_token(GPU, "g0"))
    daemon, kubelet = node.pid(DAEMON), node.pid("kubelet.service")
    pod = node.run_pod(client, "install", TWO)
    pod.wait_ready()
    assert node.pid(DAEMON) != daemon and node.pid("kubelet.service") == kubelet
    assert f"systemctl restart {DAEMON}" in pod.log()
    pod.remove()

    token = deviceplugin.ContainerAllocateResponse(annotations=by_token(GPU, "g0")).SerializeToString()
    node.path(CHECKPOINT).write_text(kubelet_checkpoint.encode(
        [kubelet_checkpoint.Entry("uid-1", "main", GPU, {-1: ["g0"]}, token)], {GPU: ["g0"]}))
    node.path("/var/log/pods/shop_web_uid-1").mkdir()
    pod = node.run_pod(client, "remove", TWO)
    status, said = pod.wait_exit()
    assert status != 0 and "pod shop/web, container main has vendor.com/gpu g0 through the shim" in said
    assert node.active() == ALL
    pod.remove()

    node.path("/var/log/pods/shop_web_uid-1").rmdir()
    pod = node.run_pod(direct, "remove", TWO)
    pod.wait_ready()
    assert node.active() == {"kubelet.service"} and files(node) == before


def test_a_pod_that_is_killed_in_the_middle(node, direct):
    """The node goes on to the end; here as one whose kubelet is something else's, which is left alone: the bridge waits for it."""
    runtime = node.path("/run/k3s/containerd/containerd.sock")
    runtime.parent.mkdir(parents=True)
    runtime.symlink_to("/run/containerd/containerd.sock")
    ss = node.path("/usr/local/bin/ss")  # who is connected to the shim: ss(8) would tell of other tests' nodes, too
    ss.write_text("#!/bin/sh\n")
    ss.chmod(0o755)
    args, kubelet = args_of("k3s"), node.pid("kubelet.service")
    with locked(node):
        pod = node.run_pod(direct, "install", ONE, args)
        wait_until(lambda: "another change of this node is under way" in pod.log(), "the change has begun")
        assert not pod.is_ready()
        process = node.path(f"/proc/{pod.pid()}")
        stopped = direct.begin("StopContainer", cri.StopContainerRequest(container_id=pod.id))
        wait_until(lambda: not process.exists(), "the pod is killed")
    stopped.result()  # containerd 1.7 waits for its output, which the change on the node has, too
    pod.remove()
    wait_until(lambda: node.active() == ALL - {BRIDGE} and not unpacked(node), "the node is installed", CHANGE_S)
    pod = node.run_pod(direct, "install", ONE, args)
    wait_until(lambda: "all files are as they should be" in pod.log(), "that is seen", CHANGE_S)
    assert not pod.is_ready() and node.pid("kubelet.service") == kubelet
