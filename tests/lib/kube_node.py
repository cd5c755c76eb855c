"""A Kubernetes node: a machine with containerd and a kubelet, on which install.sh has run.

    node = KubeNode(directory, plane, [DevicePlugin("vendor.com/gpu", ["gpu0", "gpu1"])])
    node.start(); node.install()
    node.kill(DAEMON); node.stop_unit(KUBELET); node.start_unit(KUBELET)
    node.power_off(); node.start()     # a reboot: its disk stays, /run is empty, the boot id is new

Everything on it is a unit of its own systemd; the kubelet is started as kubeadm does it. All pods
are on the host's network, which has no way out.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import stat
import sys
import uuid

import grpc

import built
import real_logind
import unit_containerd
from control_plane import ADDRESS, NODE
from criclient import Client
from ctl import checked
from dra_driver import V1, V1BETA1
from kube_programs import program
from kube_release import DRA, GATES
from machine import Machine
from protos import POD_RESOURCES, podresources
from shim import ROOT
from unit_containerd import RUNTIME_SOCKET
from unit_plugin import DEVICES
from waiting import GENEROUS_S, wait_until

DAEMON = "cri-device-shim.service"
BRIDGE = "cri-device-shim-bridge.service"
AGENT = "cri-device-shim-agent.service"
KUBELET = "kubelet.service"
CONTAINERD = "containerd.service"
PLUGIN_DIR = "/var/lib/cri-device-shim/device-plugins"
KUBELET_PLUGIN_DIR = "/var/lib/kubelet/device-plugins"
REGISTRY_DIR = "/var/lib/cri-device-shim/plugins_registry"
KUBELET_REGISTRY_DIR = "/var/lib/kubelet/plugins_registry"
CRI_SOCKET = "/run/cri-device-shim/cri-device-shim.sock"
HELD = "/var/lib/held"  # where the containers say what they have: see tests/cluster/holder.c
_POD_RESOURCES = "/var/lib/kubelet/pod-resources/kubelet.sock"
DRIVER_PROGRAM = ROOT / "tests/lib/unit_driver.py"
_BUILD = pathlib.Path(os.environ.get("SHIM_BUILD_DIR", ROOT / "build"))
_ADMIN = "/etc/drivers/admin.conf"
_NULL = os.makedev(1, 3)
_UNITS = "etc/systemd/system"
# A machine's own, which a reboot makes anew. Units that are protected from the kernel's tunables have a
# /proc/sys of their own, without what was bound there before: their drop-in binds it once more.
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_OWN_BOOT_ID = "etc/boot_id"
_LOG_BYTES = 5000  # of each unit's, when a test has failed and when the node ends

# A kubelet sets these for the whole machine unless they are so.
_TUNABLES = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10,
             "kernel/panic_on_oops": 1, "kernel/keys/root_maxkeys": 1000000,
             "kernel/keys/root_maxbytes": 25000000}

# The node is ready with any network; none of its pods asks for one.
_CNI_CONFIG = {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}

_KUBELET_UNIT = """[Unit]
Description=kubelet
StartLimitIntervalSec=0

[Service]
ExecStart={kubelet}
Restart=always
RestartSec=1
"""
_KUBELET_DROP_IN = """[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart={kubelet} $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
"""
_PLUGIN_UNIT = """[Unit]
Description=plugin of {name}
StartLimitIntervalSec=0

[Service]
Environment=PYTHONDONTWRITEBYTECODE=1
ExecStart={python} {program} {settings}
Restart=always
RestartSec=1
"""


def kubelet_config():
    """As kubeadm's, and: what this machine may be too small for is no reason to evict."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{RUNTIME_SOCKET}",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                           "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}},
        "authorization": {"mode": "AlwaysAllow"},
        "staticPodPath": "/etc/kubernetes/manifests", "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "cgroupDriver": "cgroupfs", "failCgroupV1": False, "failSwapOn": False,
        "featureGates": GATES, "makeIPTablesUtilChains": False, "nodeStatusUpdateFrequency": "1s",
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%",
                         "nodefs.inodesFree": "0%", "imagefs.available": "0%",
                         "imagefs.inodesFree": "0%"}}


@dataclasses.dataclass
class DevicePlugin:
    """What a unit_plugin.py offers; `devices`: ids, or {id: healthy}. `instance`: of another one of the
    same resource."""

    resource: str
    devices: object
    numa: dict = dataclasses.field(default_factory=dict)
    delay_s: float = 0
    plugin_dir: str = PLUGIN_DIR
    instance: str = ""

    @property
    def unit(self):
        return f"plugin-{self.resource.replace('/', '-')}{self.instance}.service"

    @property
    def path(self):
        return f"/etc/plugins/{self.unit}.json"

    def with_devices(self, devices):
        return dataclasses.replace(self, devices=devices)

    def with_numa(self, numa):
        return dataclasses.replace(self, numa=numa)

    def settings(self):
        devices = self.devices if isinstance(self.devices, dict) else dict.fromkeys(self.devices,
                                                                                    True)
        return {**dataclasses.asdict(self), "devices": devices}


@dataclasses.dataclass
class DraDriver:
    """What a unit_driver.py is and has. `instance`: of a rolling update; two of one driver have the
    same state."""

    name: str
    devices: tuple
    services: tuple = (V1, V1BETA1)
    instance: str = ""
    registry_dir: str = REGISTRY_DIR
    delay_s: float = 0  # of each claim that it prepares

    @property
    def unit(self):
        return f"driver-{self.name}{'-' if self.instance else ''}{self.instance}.service"

    @property
    def path(self):
        return f"/etc/drivers/{self.unit}.json"

    @property
    def state_dir(self):
        return f"/var/lib/drivers/{self.name}"

    def changed(self, **fields):
        return dataclasses.replace(self, **fields)

    def settings(self):
        return {"driver": self.name, "devices": list(self.devices), "services": self.services,
                "instance": self.instance, "registry_dir": self.registry_dir,
                "delay_s": self.delay_s, "plugins_dir": "/var/lib/kubelet/plugins", "node": NODE,
                "kubeconfig": _ADMIN, "api": DRA, "cdi_dir": "/var/run/cdi", "state_dir": self.state_dir,
                "device_dir": DEVICES}


@dataclasses.dataclass
class CsiDriver:
    """What a unit_registrar.py is."""

    name: str
    registry_dir: str = REGISTRY_DIR

    @property
    def state_dir(self):
        return f"/var/lib/drivers/{self.name}"

    @property
    def unit(self):
        return f"csi-{self.name}.service"

    @property
    def path(self):
        return f"/etc/drivers/{self.unit}.json"

    def settings(self):
        return {"registry_dir": self.registry_dir, "name": self.name, "state_dir": self.state_dir,
                "endpoint": f"/var/lib/kubelet/plugins/{self.name}/csi.sock"}


class KubeNode(Machine):
    """`config`: of the shim, in place of what install.sh writes; `binds`: of a Machine; `logind`:
    whether systemd-logind runs there; `machine`: other settings of a Machine."""

    def __init__(self, directory, plane, plugins, drivers=(), config=None, binds=None,
                 logind=False, machine=None):
        directory = pathlib.Path(directory)
        super().__init__(directory, network=plane.network, controllers=True, binds=binds,
                         **(machine or {}))
        self._plane = plane
        self.plugins = list(plugins)
        self._killed = {}  # the pid that was killed last, by unit
        self.kubelet_config = kubelet_config()
        self._write_boot_id()
        self.binds[_BOOT_ID] = self.root / _OWN_BOOT_ID
        for unit in (DAEMON, BRIDGE):
            self.write(f"{_UNITS}/{unit}.d/boot.conf", f"[Service]\nBindReadOnlyPaths=/{_OWN_BOOT_ID}:{_BOOT_ID}\n")
        for name, value in _TUNABLES.items():
            path = directory / name.replace("/", ".")
            path.write_text(f"{value}\n")
            self.binds[f"/proc/sys/{name}"] = path
        self._write_runtime()
        self._write_kubelet()
        self._write_devices()
        for one in drivers:
            self.add_driver(one)
        if config is not None:
            self.write_config(config)
        if logind:
            real_logind.put(self)
        self._build = directory / "build"

    # ---- what is on its disk ----

    def write(self, path, text):
        """A file of the machine's own directories."""
        path = self.root / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))

    def write_config(self, text):
        """The shim's settings; they count from its next start or reload."""
        self.write("etc/cri-device-shim/config.toml", text)

    def _write_boot_id(self):
        """Another one: what is bound there is the same file."""
        self.write(_OWN_BOOT_ID, f"{uuid.uuid4()}\n")

    def _write_unit(self, name, text):
        """A unit that is started with the machine, and has a log of its own."""
        self.write(f"{_UNITS}/{name}", text)
        log = self._log_of(name)
        self.write(f"{_UNITS}/{name}.d/log.conf",  # in place of the machine's own of that name

                   f"[Service]\nStandardOutput=append:/{log}\nStandardError=append:/{log}\n"
                   "Environment=CRI_DEVICE_SHIM_LOG_FORMAT=plain\n")
        self.enable(name)

    def _wants(self, unit):
        wants = self.root / _UNITS / "multi-user.target.wants"
        wants.mkdir(exist_ok=True)
        return wants / unit

    def enable(self, unit):
        """It is started with the machine."""
        self._wants(unit).symlink_to(f"/etc/systemd/system/{unit}")

    def disable(self, unit):
        self._wants(unit).unlink()

    def _write_runtime(self):
        for path, text in unit_containerd.files(self.directory).items():
            self.write(path, text)
        self.write("etc/cni/net.d/10-none.conflist", _CNI_CONFIG)
        self._write_unit(CONTAINERD, unit_containerd.unit_text())

    def _write_kubelet(self):
        self.write("etc/kubernetes/kubelet.conf", self._plane.kubeconfig(NODE))
        self.write("etc/kubernetes/pki/ca.crt", self._plane.authority.certificate.read_text())
        (self.root / "etc/kubernetes/manifests").mkdir()
        self.write("var/lib/kubelet/kubeadm-flags.env",
                   f'KUBELET_KUBEADM_ARGS="--node-ip={ADDRESS} --hostname-override={NODE} '
                   '--oom-score-adj=0 --v=2"\n')
        self.write_kubelet_config()
        self._write_unit(KUBELET, _KUBELET_UNIT.format(kubelet=program("kubelet")))
        self.write(f"{_UNITS}/{KUBELET}.d/10-kubeadm.conf",
                   _KUBELET_DROP_IN.format(kubelet=program("kubelet")))

    def write_kubelet_config(self):
        self.write("var/lib/kubelet/config.yaml", "".join(
            f"{key}: {json.dumps(value)}\n" for key, value in self.kubelet_config.items()))

    def _write_devices(self):
        held = self.root / HELD.lstrip("/")
        held.mkdir()
        shutil.copy(_BUILD / "tests/cluster/cluster_holder", held / "holder")
        for one in self.plugins:
            self.add_plugin(one)

    def add_plugin(self, plugin):
        """It is started with the machine from then on."""
        self.write_plugin(plugin)
        self._write_unit(plugin.unit, _PLUGIN_UNIT.format(
            name=plugin.resource, python=sys.executable,
            program=ROOT / "tests/lib/unit_plugin.py", settings=plugin.path))

    def write_plugin(self, plugin):
        """What it offers; counts from its next start, the devices also from its next SIGHUP."""
        self.write(plugin.path, plugin.settings())
        self._write_nodes(plugin.settings()["devices"])

    def add_driver(self, driver):
        """It is started with the machine from then on."""
        self.write_driver(driver)
        self._write_unit(driver.unit, _PLUGIN_UNIT.format(
            name=driver.name, python=sys.executable, program=DRIVER_PROGRAM, settings=driver.path))

    def add_csi_driver(self, driver):
        self.write(driver.path, driver.settings())
        self._write_unit(driver.unit, _PLUGIN_UNIT.format(
            name=driver.name, python=sys.executable,
            program=ROOT / "tests/lib/unit_registrar.py", settings=driver.path))

    def remove_driver(self, driver):
        """It ends, and comes no more."""
        self.stop_unit(driver.unit)
        self.disable(driver.unit)

    def write_driver(self, driver):
        """What it is; counts from its next start."""
        self.write(_ADMIN, self._plane.kubeconfig("admin"))
        self.write(driver.path, driver.settings())
        self._write_nodes(driver.devices)

    def _write_nodes(self, names):
        for name in names:
            node = self.root / DEVICES.lstrip("/") / name
            node.parent.mkdir(exist_ok=True)
            if not node.exists():
                os.mknod(node, 0o666 | stat.S_IFCHR, _NULL)

    # ---- its life ----

    def start(self):
        """Boots; returns when containerd serves, with the images that the pods are made of."""
        self._write_boot_id()
        self._killed.clear()  # a process of this boot may have the same pid
        super().start()
        unit_containerd.wait_images(self)

    def install(self, another=False):
        """As an operator does it, of what has been built. `another`: with daemon and bridge of another
        release."""
        built.copy(self._build)
        for name in ("cri-device-shim", "cri-device-shim-bridge") if another else ():
            shutil.copy2(_BUILD / f"tests/points/{name}-points", self._build / "shim" / name)
        self._install()

    def uninstall(self, check=True):
        """What it said; unless `check`, it may refuse to."""
        return self._install("--uninstall", check=check)

    def _install(self, *options, check=True):
        return self.run(str(ROOT / "config/install.sh"), "--build", str(self._build), *options,
                        check=check, timeout=3 * GENEROUS_S)

    def runtime(self):
        """A CRI client of containerd itself."""
        return Client(self.path(RUNTIME_SOCKET))

    def pod_resources(self, method):
        """List or GetAllocatableResources of the kubelet, as a monitoring agent asks it."""
        request, answer = {
            "List": (podresources.ListPodResourcesRequest, podresources.ListPodResourcesResponse),
            "GetAllocatableResources": (podresources.AllocatableResourcesRequest,
                                        podresources.AllocatableResourcesResponse)}[method]
        with grpc.insecure_channel(f"unix:{self.path(_POD_RESOURCES)}") as channel:
            return channel.unary_unary(
                POD_RESOURCES + method, request_serializer=request.SerializeToString,
                response_deserializer=answer.FromString)(request(), timeout=GENEROUS_S)

    def ctl(self, *arguments):
        """What the installed cri-device-shimctl prints."""
        return self.run("cri-device-shimctl", *arguments).stdout

    def ctl_json(self, command, *arguments):
        return checked(command, self.ctl(command, *arguments, "-o", "json"))

    def end_containers(self, uid):
        """Those of a pod, as if they had ended by themselves."""
        with self.runtime() as client:
            for one in client.ListContainers(filter={"label_selector": {
                    "io.kubernetes.pod.uid": uid}}).containers:
                client.StopContainer(container_id=one.id, timeout=0)

    def known_devices(self, resource):
        """The ids that the kubelet could give away."""
        return {name for one in self.pod_resources("GetAllocatableResources").devices
                if one.resource_name == resource for name in one.device_ids}

    def pid(self, unit):
        """As its own processes see it; 0: it does not run."""
        return int(self.property(unit, "MainPID"))

    def kill(self, *units, number="KILL"):
        """Their main processes at once, when each has one that was not killed yet; systemd starts them
        again."""
        pids = {unit: wait_until(lambda unit=unit: self._pid_but(unit, self._killed.get(unit)),
                                 f"{unit} runs") for unit in units}
        self.run("kill", "-s", number, *map(str, pids.values()))
        if number == "KILL":
            self._killed.update(pids)

    def _pid_but(self, unit, killed):
        pid = self.pid(unit)
        return pid if pid != killed else 0

    def start_unit(self, unit):
        self.run("systemctl", "daemon-reload")  # it may be a new one
        self.run("systemctl", "start", unit)

    def stop_unit(self, unit):
        self.run("systemctl", "stop", unit)

    def restart_unit(self, unit):
        self.restart(unit)

    def restart_kubelet(self, **settings):
        """With these settings of a KubeletConfiguration in place of its own."""
        self.kubelet_config.update(settings)
        self.write_kubelet_config()
        self.restart_unit(KUBELET)

    @staticmethod
    def _log_of(unit):
        return f"var/log/{unit.removesuffix('.service')}.log"

    def print_logs(self):
        for unit in (CONTAINERD, KUBELET, *(one.unit for one in self.plugins)):
            path = self.root / self._log_of(unit)
            if path.exists():
                print(f"---- {unit}\n{path.read_text(errors='replace')[-_LOG_BYTES:]}")
        super().print_logs()

    def driver_file(self, driver, name):
        """The lines of a file of unit_driver.py's."""
        return self._lines(f"{driver.state_dir}/{name}")

    def prepared(self, driver):
        """The claims that it has prepared, by uid, and the devices of each."""
        found = {}
        for path in (self.root / driver.state_dir.lstrip("/")).glob("*.json"):
            with contextlib.suppress(FileNotFoundError):  # it may be unprepared at this moment
                found[path.stem] = json.loads(path.read_text())
        return found

    def held(self, name):
        """The lines of a file of tests/cluster/holder.c."""
        return self._lines(f"{HELD}/{name}")

    def _lines(self, path):
        path = self.root / path.lstrip("/")
        return path.read_text().splitlines() if path.exists() else []
