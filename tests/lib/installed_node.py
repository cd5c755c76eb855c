"""A machine with a kubelet, as far as install.sh and systemd have to do with one.

    node = InstalledNode(directory); node.start()
    node.install(); node.active()        # the units of ours, and the kubelet's, that are active

A runtime, at /run/containerd/containerd.sock, is the test's.
"""

import built
from machine import Machine
from shim import ROOT

DAEMON = "cri-device-shim.service"
BRIDGE = "cri-device-shim-bridge.service"
SOCKET = "cri-device-shim.socket"
AGENT = "cri-device-shim-agent.service"

# Of a kubelet only that it is connected to the runtime it was told of.
KUBELET = """#!/usr/bin/python3
import socket, sys, time
while True:
    with socket.socket(socket.AF_UNIX) as runtime:
        try:
            runtime.connect(sys.argv[-1].partition("unix://")[2] or "/run/containerd/containerd.sock")
            while runtime.recv(1 << 16):
                pass
        except OSError:
            pass
    time.sleep(0.05)
"""


class InstalledNode(Machine):
    """A machine with a runtime and a kubelet, on which install.sh has not run yet; `settings`: of a
    Machine."""

    def __init__(self, directory, **settings):
        super().__init__(directory, **settings)
        kubelet = self.root / "usr/local/bin/kubelet"
        kubelet.parent.mkdir()
        kubelet.write_text(KUBELET)
        kubelet.chmod(0o755)
        (self.root / "etc/systemd/system/kubelet.service").write_text(
            "[Service]\nExecStart=/usr/local/bin/kubelet\nRestart=always\nRestartSec=100ms\n"
            "[Install]\nWantedBy=multi-user.target\n")
        (self.root / "var/lib/kubelet/device-plugins").mkdir(parents=True)
        (self.root / "var/log/pods").mkdir()
        self.build = self.directory / "build"
        built.copy(self.build)

    def install(self, *options, script=ROOT / "config/install.sh", check=True):
        return self.run(str(script), "--build", str(self.build), *options, check=check)

    def pid(self, unit):
        return int(self.property(unit, "MainPID"))

    def active(self):
        return {unit for unit in (DAEMON, BRIDGE, SOCKET, "kubelet.service")
                if self.property(unit, "ActiveState") == "active"}
