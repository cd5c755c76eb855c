"""The Debian package on a node with systemd: installed, enabled, upgraded and downgraded under running
pods, not removed from under them, removed and purged."""

import os
import threading

import pytest

import package
from asking import envs
from installed_node import BRIDGE, DAEMON, SOCKET
from kubelet import Kubelet
from kubelet_runtime import KubeletRuntime
from machine import SYSTEMD
from node_plugin import NodePlugin, env_of
from waiting import GENEROUS_S

pytestmark = pytest.mark.skipif(not os.path.exists(SYSTEMD), reason="no systemd here")

GPU = "vendor.com/gpu"
DEVICES = [f"g{number}" for number in range(8)]
CONFIG = "/etc/cri-device-shim"
STATE = "/var/lib/cri-device-shim"
CTL = "cri-device-shimctl"
ALL = {DAEMON, BRIDGE, SOCKET, "kubelet.service"}


class Pods:
    """A scripted kubelet, which makes pods through the shim of a node, and what must be so of them."""

    def __init__(self, node, runtime, closing):
        self.runtime = runtime
        self._logs = node.root / "var/log/pods"
        self.runtime.on("CreateContainer", self._create)
        self._held = None  # (who waits is there, it may go on)
        self.kubelet = closing(Kubelet(
            node.path("/var/lib/kubelet/device-plugins"),
            node.path("/run/cri-device-shim/cri-device-shim.sock"), speed=10, log_path=node.directory / "kubelet.log"))
        self.kubelet.start()
        closing(NodePlugin(node.path(f"{STATE}/device-plugins"), GPU, DEVICES,
                           log_path=node.directory / "plugin.log")).start()
        self.kubelet.wait(lambda: any(one["healthy"] for one in self.kubelet.events_of("list")),
                          "the devices are known")
        self.pods = []

    def add(self, name):
        """With a directory for its logs, by which it is known to be there."""
        pod = self.kubelet.add_pod(name, {GPU: 1})
        self.pods.append(pod)
        (self._logs / f"default_{name}_{pod.uid}").mkdir()

    def end(self):
        """All of them, and the kubelet with what it leaves behind."""
        for pod in self.pods:
            self.kubelet.delete_pod(pod)
        self.kubelet.wait_gone(*self.pods)
        self.kubelet.kill()
        for one in self._logs.iterdir():
            one.rmdir()
        for one in self.kubelet.plugin_dir.glob("kubelet*"):
            one.unlink()

    def hold_creates(self):
        """From now on until the second event is set."""
        self._held = threading.Event(), threading.Event()
        return self._held

    def _create(self, call):
        if self._held and call.messages:
            came, go = self._held
            came.set()
            assert go.wait(GENEROUS_S)
        return self.runtime.create(call)

    def check(self):
        """They all run, in one container each that was made once, and have a device of their own; the
        kubelet has seen none refused, no error and no plugin's end."""
        self.kubelet.wait_phase(*self.pods)
        assert not self.kubelet.failed()
        requests = list(self.runtime.running().values())
        assert len(requests) == len(self.pods) == len(self.runtime.create_requests())
        held = [envs(one.config)[env_of(GPU)] for one in requests]
        assert len(set(held)) == len(held) and set(held) <= set(DEVICES)
        wrong = [one for one in self.kubelet.events if one["kind"] in ("end", "log", "refused", "exit")
                 and not one.get("text", "").startswith("Skipping pod synchronization")]  # for its slowness
        assert not wrong and len(self.kubelet.events_of("list", resource=GPU)) == 1


def check_beside_another(node, one):
    """Installed and purged where another install has the node, it leaves that alone."""
    unit = node.root / "etc/systemd/system" / DAEMON
    unit.write_text("[Service]\nType=exec\nExecStart=/bin/sleep infinity\n")
    (node.root / CONFIG[1:]).mkdir()
    (node.root / STATE[1:]).mkdir()
    before = node.files()
    node.run("systemctl", "start", DAEMON)
    node.dpkg("--install", one)
    node.dpkg("--purge", package.NAME)
    assert node.files() == before and node.property(DAEMON, "ActiveState") == "active"
    node.run("systemctl", "stop", DAEMON)
    unit.unlink()
    (node.root / CONFIG[1:]).rmdir()
    (node.root / STATE[1:]).rmdir()


def test_made_beside_one_of_another_release(directory):
    """Which a node may go back to: it stays; and nothing else comes."""
    older = directory / f"{package.NAME}_0.1-1_amd64.deb"
    older.touch()
    made = package.make(directory)
    assert set(directory.iterdir()) == {older, made}


def test_installed_upgraded_and_removed(directory, closing):
    one = package.make(directory)
    two = package.another(one, directory)
    node = closing(package.PackageNode(directory))
    node.start()
    check_beside_another(node, one)
    node.path("/run/containerd").mkdir()
    runtime = closing(KubeletRuntime(node.path("/run/containerd/containerd.sock")))
    runtime.start()
    # It names a unit of ours, which systemd does not forget by itself for that.
    drop_in = node.root / "etc/systemd/system/kubelet.service.d/order.conf"
    drop_in.parent.mkdir()
    drop_in.write_text(f"[Unit]\nAfter={DAEMON}\n")
    node.run("systemctl", "daemon-reload")
    node.run("systemctl", "start", "kubelet.service")
    bare, kubelet = node.files(), node.pid("kubelet.service")

    # Installed, it touches nothing.
    node.dpkg("--install", one)
    assert node.active() == {"kubelet.service"} and node.pid("kubelet.service") == kubelet
    installed = node.files()
    assert all(path.startswith("/usr/") for path in installed - bare)
    for name in ("", "-bridge", "ctl", "-agent"):
        assert node.run(f"cri-device-shim{name}", "--version").stdout.startswith(f"cri-device-shim{name} ")
    node.run(CTL, "node", "enable")
    assert node.active() == ALL

    # Upgraded and downgraded, daemon and bridge are others, and that is all.
    pods = Pods(node, runtime, closing)
    for number in range(3):
        pods.add(f"before-{number}")
    pods.check()
    kubelet = node.pid("kubelet.service")
    for number, (what, words) in enumerate(((two, ()), (one, ("--force-downgrade",)))):
        came, go = pods.hold_creates()
        pods.add(f"meanwhile-{number}")
        assert came.wait(GENEROUS_S)
        before = node.pid(DAEMON), node.pid(BRIDGE)
        node.dpkg(*words, "--install", what)
        assert node.active() == ALL and node.pid("kubelet.service") == kubelet
        assert not {node.pid(DAEMON), node.pid(BRIDGE)}.intersection(before)
        assert node.run("dpkg-query", "-W", "-f", "${Version}", package.NAME).stdout == \
            package.field(what, "Version")
        go.set()
        pods.check()
        pods.add(f"after-{number}")
        pods.check()
    assert node.files() - installed

    # Not removed from under pods.
    before = node.pid(DAEMON), node.pid(BRIDGE)
    done = node.dpkg("--remove", package.NAME, check=False)
    assert done.returncode != 0
    assert "delete these pods first" in done.stderr and "not removed" in done.stderr
    assert node.active() == ALL and (node.pid(DAEMON), node.pid(BRIDGE)) == before
    pods.check()

    pods.end()
    node.dpkg("--remove", package.NAME)
    assert node.active() == {"kubelet.service"} and node.pid("kubelet.service") != kubelet
    assert "cri-device-shim" not in node.property("kubelet.service", "ExecStart")
    assert node.property(DAEMON, "LoadState") == "not-found"
    assert {path for path in node.files() - bare if not path.startswith((CONFIG, STATE))} == set()
    node.dpkg("--purge", package.NAME)
    assert node.files() == bare
