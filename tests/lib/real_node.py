"""A node whose pods are real containers: a containerd of its own, daemon, bridge, scripted kubelet.

    node = RealNode(directory, containerd, devices=[{...}])
    node.start()
    pod = node.kubelet.add_pod("web", {"vendor.com/gpu": 1})
    node.kubelet.wait_phase(pod, "Running")
    node.power_off(); node.power_on()

As in node.py the directory stands for the disk, its `run` for what a reboot empties, and a boot has
an id of its own. Plugins are the test's.
"""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess

from containerd import CGROUPS, mounts_below, processes_naming
from criclient import CGROUP_PARENT
from kubelet import Kubelet
from node import Bridge, NodeShim
from protos import cri
from supervisor import Supervisor, supervised
from waiting import GENEROUS_S, wait_until

# Its socket comes so late that without the gate some pods would be admitted too early.
_KUBELET = {"speed": 10, "loop_speed": 4, "before_socket_s": 0.002}
_UID = "io.kubernetes.pod.uid"


class RealNode:
    """`settings`: of a NodeShim. `store`: service managers keep the daemon's and the bridge's
    descriptors; it cannot be switched off and on then."""

    def __init__(self, directory, containerd, plugins=None, store=False, **settings):
        self.run_dir = directory / "run"
        self.kubelet_dir = directory / "k"
        self._containerd = containerd
        self.managers = {part: Supervisor(directory, name=f"notify.{part}")
                         for part in ("daemon", "bridge")} if store else {}

        def program(part, one):
            return supervised(one, self.managers[part]) if store else one

        self.daemon = program("daemon", NodeShim)(
            directory, self.kubelet_dir,
            plugins={"hold": "300ms", "grace": "1m", **(plugins or {})},
            top={"runtime_endpoint": str(containerd.socket), "drain": "300ms"}, **settings)
        self.plugin_dir = self.daemon.plugin_dir
        self.bridge = program("bridge", Bridge)(self.daemon.config_path, directory / "bridge.log")
        self.kubelet = Kubelet(self.kubelet_dir, self.daemon.socket,
                               log_path=directory / "kubelet.log", **_KUBELET)

    def start(self):
        """Daemon and bridge, and the kubelet in front of containerd, which runs."""
        self.run_dir.mkdir()
        self.daemon.begin_boot()
        self.daemon.start()
        self.bridge.start()
        self.kubelet.start()

    def wait_shown(self, *resources):
        """Until the kubelet, which runs, can give devices of each of these away."""
        for name in resources:
            self.kubelet.wait(lambda name=name: any(
                one["healthy"] for one in self.kubelet.events_of("list", resource=name)),
                f"{name} is known")

    def power_off(self):
        """At once, and with all containers."""
        self.kubelet.kill()
        self.bridge.kill()
        self.daemon.kill()
        _lose_power(self._containerd)
        shutil.rmtree(self.run_dir)

    def power_on(self):
        self._containerd.start()
        self.start()

    def stop(self):
        """Everything but containerd and its pods."""
        errors = []
        for one in (self.kubelet, self.bridge, self.daemon):
            try:
                one.stop()
            except AssertionError as error:
                errors.append(str(error))
        for manager in self.managers.values():
            manager.stop()
        assert not errors, "\n".join(errors)


def containers_of(client, pod, name="main"):
    """The ids of its running containers of that name."""
    listed = client.ListContainers(filter=cri.ContainerFilter(
        state=cri.ContainerStateValue(state=cri.CONTAINER_RUNNING),
        label_selector={_UID: pod.uid})).containers
    return [one.id for one in listed if one.metadata.name == name]


def _lose_power(containerd):
    """All its processes are gone, and what they had in memory and in /run; its disk stays."""
    containerd.kill()
    state = containerd.directory / "state"
    bundles = list(state.glob("io.containerd.runtime.v2.task/*/*"))
    sockets = set(map(_shim_socket, bundles))
    _kill_containers(containerd)
    for point in mounts_below(state):
        subprocess.run(["umount", point], check=True)
    for path in (state, containerd.directory / "runc"):
        shutil.rmtree(path)
    for path in sockets:
        os.unlink(path)
    for cgroup in _cgroups(bundle.name for bundle in bundles):
        # A process that has ended may be in it for a moment yet.
        wait_until(lambda cgroup=cgroup: _removed(cgroup), f"{cgroup} is empty")


def _shim_socket(bundle):
    """Where its containerd-shim listens: from containerd 2 on it is said in a JSON file."""
    new = bundle / "bootstrap.json"
    address = (json.loads(new.read_text())["address"] if new.exists()
               else (bundle / "address").read_text())
    return address.removeprefix("unix://")


def _kill_containers(containerd):
    """Those that watch over them first, so that none of these cleans up."""
    shims = list(processes_naming(f"{containerd.directory}/"))
    pids = shims + [int(pid) for shim in shims
                    for path in pathlib.Path(f"/proc/{shim}/task").glob("*/children")
                    for pid in path.read_text().split()]
    files = [os.pidfd_open(pid) for pid in pids]
    for file in files:
        signal.pidfd_send_signal(file, signal.SIGKILL)
    for file in files:
        assert select.select([file], [], [], GENEROUS_S)[0], "it does not end on SIGKILL"
        os.close(file)


def _cgroups(names):
    return [path for name in names
            for pattern in (f"{CGROUP_PARENT[1:]}/{name}", f"*{CGROUP_PARENT}/{name}")
            for path in CGROUPS.glob(pattern)]


def _removed(cgroup):
    try:
        cgroup.rmdir()
    except OSError:
        return False
    return True
