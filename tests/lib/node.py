"""A whole node: runtime, daemon, bridge, plugins and kubelet, each of which can go and come back.

    node = Node(directory, {"vendor.com/gpu": ["gpu0", "gpu1"]})
    node.start()
    pod = node.kubelet.add_pod("web", {"vendor.com/gpu": 1})
    node.kubelet.wait_phase(pod, "Running")
    node.down("bridge"); node.up("bridge")
    node.power_off(); node.power_on(["kubelet", "daemon", "bridge", "runtime", "plugin"])
    node.violations + node.check_running()   # what was ever wrong, and is

The directory stands for the disk, its `run` for what a reboot empties; a boot has an id of its own.
"""

import pathlib
import signal
import socket
import uuid

from bridge_process import BINARY as BRIDGE_BINARY
from device_watch import DeviceWatch
from kubelet import Kubelet
from kubelet_runtime import KubeletRuntime
from node_plugin import NodePlugin
from parts import Parts
from program import Program
from shim import BINARY, Shim
from supervisor import Supervisor, supervised

PARTS = ("kubelet", "plugin", "daemon", "bridge", "runtime")
# The daemon in a mount namespace of its own, in which the file $0 is the kernel's id of the boot.
_WITH_BOOT_ID = ["unshare", "--mount", "sh", "-c",
                 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"']


class NodeShim(Shim):
    """A Shim with its sockets in `run`, in a boot of its own. `binary`: of its next process."""

    binary = BINARY

    def __init__(self, directory, kubelet_plugin_dir, bridge=None, **settings):
        run = pathlib.Path(directory) / "run"
        super().__init__(directory, run / "r.sock", bridge={
            "socket": str(run / "b.sock"), "kubelet_plugin_dir": str(kubelet_plugin_dir),
            **(bridge or {})}, **settings)
        self.boot_id_path = self.directory / "boot_id"
        self.socket = run / "s.sock"
        self.top["listen"] = str(self.socket)

    def begin_boot(self):
        self.boot_id_path.write_text(f"{uuid.uuid4()}\n")
        self.config_path.write_text(self.config_text())

    def spawn(self):
        self._spawn(*_WITH_BOOT_ID, self.boot_id_path, self.binary, "--config", self.config_path)


class Bridge(Program):
    """The bridge with the daemon's config file. `binary`: of its next process."""

    binary = BRIDGE_BINARY

    def __init__(self, config_path, log_path):
        super().__init__("the bridge", log_path)
        self._config_path = config_path

    def start(self):
        self._spawn(self.binary, "--config", self._config_path)

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def stop(self):
        if self._process is not None:
            self.terminate()
        super().stop()


class NodeRuntime(KubeletRuntime):
    """Can leave its socket behind, as one that is killed."""

    def kill(self):
        self.stop()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(self.path))

    def terminate(self):
        self.stop()


class Node(Parts):
    """`resources`: {name: device ids}; ids are of all resources different ones.

    `bridge`, `plugins`: settings of those tables; `kubelet`: settings of a Kubelet; `plugin`: of
    each NodePlugin; `runtime`: its class. Resources of plugins that register with the kubelet directly
    are none of these. `store`: service managers keep the daemon's and the bridge's descriptors.
    """

    def __init__(self, directory, resources, bridge=None, plugins=None, kubelet=None, plugin=None,
                 store=False, runtime=NodeRuntime):
        super().__init__(directory)
        self.resources = resources
        self.kubelet_dir = self.directory / "k"
        self.managers = {part: Supervisor(self.directory, name=f"notify.{part}")
                         for part in ("daemon", "bridge")} if store else {}
        self.daemon = self._program("daemon", NodeShim)(
            self.directory, self.kubelet_dir, bridge=bridge,
            plugins={"hold": "250ms", "grace": "1m", **(plugins or {})}, top={"drain": "300ms"})
        self.bridge = self._program("bridge", Bridge)(self.daemon.config_path,
                                                      self.directory / "bridge.log")
        self.runtime = runtime(self.run_dir / "r.sock")
        self.runtime.on("CreateContainer", self._created)
        self.kubelet = Kubelet(self.kubelet_dir, self.daemon.socket,
                               log_path=self.directory / "kubelet.log", **(kubelet or {}))
        self._watch = DeviceWatch(resources, self.runtime, self.kubelet)
        self.violations = self._watch.violations
        self.check_running, self.free = self._watch.check_running, self._watch.free
        self.plugins = [NodePlugin(self.daemon.plugin_dir, name, ids,
                                   log_path=self.directory / "plugin.log", **(plugin or {}))
                        for name, ids in resources.items()]
        self.parts = {"kubelet": [self.kubelet], "plugin": self.plugins, "bridge": [self.bridge],
                      "daemon": [self.daemon], "runtime": [self.runtime]}

    def _program(self, part, program):
        return supervised(program, self.managers[part]) if self.managers else program

    # ---- parts ----

    def start(self):
        """Returns when the kubelet has all lists, and admits."""
        self.power_on(["runtime", "daemon", "plugin", "bridge", "kubelet"])
        for name in self.resources:
            self.kubelet.wait(lambda name=name: any(
                one["healthy"] for one in self.kubelet.events_of("list", resource=name)),
                f"{name} is known")
        self.kubelet.wait_event("sources_ready")

    def _lose_power(self):
        self.runtime.reboot()

    def _boot(self):
        self._watch.boot = self.boot
        self.daemon.begin_boot()
        for plugin in self.plugins:
            plugin.settings["boot"] = self.boot

    def _created(self, call):
        """Each CreateContainer that reaches the runtime is looked at."""
        if call.messages:  # else refused by the shim before it had one
            self.violations += self._watch.check_container(call.parsed())
        return self.runtime.create(call)
