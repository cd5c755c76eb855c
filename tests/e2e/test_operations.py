"""What config/OPERATIONS.md has people type, typed on a node with systemd, from its first line to its last.

The kubelet is a scripted one. What kubectl is told there the test does to a plugin, and what the journal
has is a file.
"""

import os

import pytest

import commands
import kubelet_checkpoint
import package
from bare_kubelet import BareKubelet
from dra_driver import Driver
from installed_node import BRIDGE, DAEMON, SOCKET
from machine import SYSTEMD
from plugin import Plugin
from runtime import Runtime
from shim import BINARY, ROOT
from waiting import wait_until

pytestmark = pytest.mark.skipif(not os.path.exists(SYSTEMD), reason="no systemd here")

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"
DRIVERS = "/var/lib/kubelet/plugins"
SCRIPT = "config/install.sh"
PACKAGE_SCRIPT = "config/package.sh"
ALL = {DAEMON, BRIDGE, SOCKET, "kubelet.service"}
KUBELET_DIR = "/var/lib/kubelet/device-plugins"
PLUGIN_DIR = "/var/lib/cri-device-shim/device-plugins"
JOURNAL = "#!/bin/sh\nexec cat /var/log/units\n"
# Asked again until they say what is shown: what they tell of takes its time.
ASKING = ("cri-device-shimctl", "journalctl", "curl")
BY_THE_SHIM = f"unix:///run/{SOCKET.removesuffix('.socket')}/cri-device-shim.sock"


class Operator:
    """Who does what the document says, and sees to what must be so behind a section."""

    def __init__(self, directory, closing):
        self.closing = closing
        self.node = closing(package.PackageNode(directory))
        self.node.start()
        (self.node.root / "usr/local/bin/journalctl").write_text(JOURNAL)
        (self.node.root / "usr/local/bin/journalctl").chmod(0o755)
        self.node.path("/run/containerd").mkdir()
        closing(Runtime(self.node.path("/run/containerd/containerd.sock"))).start()
        self.node.run("systemctl", "start", "kubelet.service")
        (self.node.root / KUBELET_DIR[1:] / kubelet_checkpoint.NAME).write_text(
            kubelet_checkpoint.encode([], {GPU: ["g0"]}))
        self.kubelet = closing(BareKubelet(self.node.path(KUBELET_DIR), stores=False))
        self.kubelet.start()
        self.plugin = self.start_plugin(KUBELET_DIR)
        self.typed = []
        self.daemon = self.driver = None
        self.packages = self.make_packages()

    def type(self, command):
        self.typed.append(command)
        if command.text.startswith("kubectl "):
            self.in_the_cluster(command.text)
        elif command.text.startswith(ASKING):
            self.ask(command)
        else:
            printed = self.run(command)
            assert command.shows(printed), f"{command.text}\n{printed}"

    def ask(self, command):
        printed = []

        def says():
            printed.append(self.run(command, check=not command.shown))
            return command.shows(printed[-1])

        try:
            wait_until(says, command.text)
        finally:
            print(f"$ {command.text}\n{printed[-1]}")

    def run(self, command, check=True):
        if command.text.startswith("apt "):
            return self.have_apt(command.text)
        if command.text == PACKAGE_SCRIPT:
            return f"{next(self.packages)}\n"
        script = command.text.replace(SCRIPT, f"{ROOT}/{SCRIPT} --build {self.node.build}")
        return self.node.run("bash", "-euo", "pipefail", "-c", script, check=check).stdout

    def end_the_kubelet(self):
        """As one does again and again that cannot reach its runtime; systemd starts it anew, if nobody has stopped it."""
        before = self.node.property("kubelet.service", "NRestarts")
        if self.node.pid("kubelet.service"):
            self.node.run("systemctl", "kill", "--kill-who=main", "-s", "KILL", "kubelet.service")
            wait_until(lambda: self.node.property("kubelet.service", "NRestarts") != before
                       and "kubelet.service" in self.node.active(), "it is started anew")

    # ---- the package ----

    def make_packages(self):
        """One of what is built, for who builds it and for who installs it, and another release."""
        one = package.make(self.node.directory)
        yield from (one, one, package.another(one, self.node.directory))

    def have_apt(self, text):
        """It has nothing to fetch here: what is left of it is dpkg."""
        if "purge" in text:
            return self.node.dpkg("--purge", package.NAME).stdout
        return self.node.dpkg("--install", next(self.packages)).stdout

    # ---- the cluster ----

    def start_plugin(self, directory):
        one = self.closing(Plugin(self.node.path(directory), GPU, ["g0"]))
        one.start()
        self.kubelet.wait_health(GPU, {"g0": "Healthy"})
        return one

    def in_the_cluster(self, text):
        if "daemonset gpu-dra-driver" in text:
            self.move_driver(to="cri-device-shim" if "edit" in text else "kubelet")
        elif "edit daemonset" in text:
            self.plugin.stop()
            self.plugin = self.start_plugin(PLUGIN_DIR)
        elif '"moved":"not-yet"' in text:
            self.plugin.stop()
            wait_until(lambda: "grace" in plugins_of(self.node), "it is seen to be away")
        elif '"moved":null' in text:
            self.plugin = self.start_plugin(KUBELET_DIR)
        else:
            assert text.startswith(("kubectl get node ", "kubectl run kvm ")), text

    def move_driver(self, to):
        """It tells of its endpoint by the path that the node knows it by."""
        if self.driver:
            self.driver.stop()
        self.driver = self.closing(Driver(self.node.path(f"/var/lib/{to}/plugins_registry"),
                                          self.node.path(DRIVERS), DRIVER))
        self.driver.registrar.info.endpoint = f"{DRIVERS}/{DRIVER}/{self.driver.endpoint.name}"
        self.driver.start()

    # ---- before a section, and what must be so behind it ----

    def prepare(self, section):
        if section == "Upgrade":
            self.daemon = self.node.pid(DAEMON)
            (self.node.build / "shim/cri-device-shim").write_bytes(BINARY.read_bytes() + b"another")
        elif section.startswith("Emergency"):
            self.node.install()

    def runtime_of_the_kubelet(self):
        return BY_THE_SHIM in self.node.property("kubelet.service", "ExecStart")

    def check(self, section):
        if section in ("Uninstall", "With a package"):
            assert self.node.active() == {"kubelet.service"} and not self.runtime_of_the_kubelet()
            return
        if section == "Upgrade":
            assert self.node.pid(DAEMON) != self.daemon
        assert self.node.active() == ALL and self.runtime_of_the_kubelet(), section


def plugins_of(node):
    return node.run("cri-device-shimctl", "plugins", GPU).stdout


def test_all_of_it(directory, closing):
    document = (ROOT / "config/OPERATIONS.md").read_text()
    operator = Operator(directory, closing)
    steps = commands.of(document)
    for before, step, after in zip([None, *steps], steps, [*steps[1:], None]):
        if before is None or before.section != step.section:
            operator.prepare(step.section)
        operator.type(step)
        if step.text == f"systemctl disable --now {BRIDGE}":
            operator.end_the_kubelet()
            assert BRIDGE not in operator.node.active()
        if step.text.startswith("systemctl disable --now cri-device-shim.socket"):
            assert operator.node.active() == {"kubelet.service"}
            assert not operator.runtime_of_the_kubelet()
        if after is None or after.section != step.section:
            operator.check(step.section)
    assert len(operator.typed) > 30 and operator.kubelet.of("register", GPU)
