"""The image that nodes of a fleet are installed from, and a node on which its pods run as config/kubernetes has them.

    build_image(directory, "fleet.test/shim:1", build)     # a docker-archive, its path
    node = FleetNode(directory); node.start(); node.import_image(archive)
    pod = node.run_pod(client, "install", "fleet.test/shim:1")
    pod.wait_ready(); pod.log()

`client` may speak with containerd itself, or through the shim.
"""

import json
import os
import subprocess
import uuid

import grpc
import yaml

import real_logind
import unit_containerd
from criclient import log_lines
from installed_node import InstalledNode
from protos import cri
from shim import ROOT
from waiting import GENEROUS_S, wait_until

KUBERNETES = ROOT / "config/kubernetes"
CHANGE_S = 3 * GENEROUS_S  # install.sh itself has a minute's patience with a kubelet
_LOGS = "/var/log/pods"
_PAUSE_S = 0.5  # a probe starts two processes in the container


def manifest(name):
    """The object of a file of the base."""
    return yaml.safe_load((KUBERNETES / "base" / f"{name}.yaml").read_text())


def args_of(overlay):
    """What it gives the container that installs."""
    (patch,) = yaml.safe_load((KUBERNETES / overlay / "kustomization.yaml").read_text())["patches"]
    return yaml.safe_load(patch["patch"])[0]["value"]


def build_image(directory, name, build):
    """`directory`: a new one, where all that is left of it is."""
    directory.mkdir()
    storage = directory / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/images"\nrunroot = "{directory}/run"\n')
    environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(storage)}
    archive = directory / "image.tar"
    for command in ([KUBERNETES / "image.sh", "--build", build, name],
                    ["buildah", "push", name, f"docker-archive:{archive}:{name}"]):
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return archive


class FleetNode(InstalledNode):
    """An InstalledNode whose runtime is containerd, with its kubelet started."""

    def __init__(self, directory):
        super().__init__(directory, controllers=True)
        real_logind.put_bus(self)
        for path, text in {**unit_containerd.files(self.directory),
                           "etc/systemd/system/containerd.service": unit_containerd.unit_text()}.items():
            path = self.root / path
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def start(self):
        super().start()
        self.run("systemctl", "start", "dbus.service", "containerd.service")
        unit_containerd.wait_images(self)
        self.run("systemctl", "start", "kubelet.service")

    def import_image(self, archive):
        unit_containerd.import_images(self, archive)

    def runtime(self):
        return unit_containerd.runtime(self)

    def run_pod(self, client, verb, image, args=None):
        """A pod of the DaemonSet for `verb`, as a kubelet makes it; `args`: in place of what that has."""
        spec = manifest(verb)["spec"]["template"]["spec"]
        if args:
            spec["containers"][0]["args"] = args
        return FleetPod(self, client, spec, image)


class FleetPod:
    """One container: what a DaemonSet says of it, as the kubelet says it to the runtime."""

    def __init__(self, node, client, spec, image):
        (container,) = spec["containers"]
        self._client = client
        self._probe = container["readinessProbe"]["exec"]["command"]
        name = f"fleet-{container['name']}"
        assert spec["hostNetwork"]  # as run_pod() has it
        uid = str(uuid.uuid4())
        directory = f"{_LOGS}/cri-device-shim_{name}_{uid}"
        node.path(directory).mkdir()
        self._pod = client.run_pod(name, uid=uid, namespace="cri-device-shim", log_directory=directory)
        self._log = node.path(f"{directory}/{container['name']}_0.log")
        self.id = client.run(self._pod, container["name"], image=image, args=container["args"],
                             mounts=list(_mounts(node, container, spec["volumes"])),
                             linux={"security_context": _security(container["securityContext"])})

    def is_ready(self):
        return self._client.ExecSync(container_id=self.id, cmd=self._probe, timeout=30).exit_code == 0

    def wait_ready(self):
        wait_until(self._is_ready_yet, "the pod is ready", CHANGE_S, _PAUSE_S)

    def _is_ready_yet(self):
        try:
            return self.is_ready()
        except grpc.RpcError:  # of one that ends, which its status says soon
            status = self._client.ContainerStatus(container_id=self.id).status
            assert status.state == cri.CONTAINER_RUNNING, f"{status.exit_code}: {self.log()}"
            return False

    def wait_exit(self):
        """Its status, and what it has said."""
        return self._client.wait_exit(self.id).exit_code, self.log()

    def pid(self):
        """Of its first process, on the node."""
        return json.loads(self._client.ContainerStatus(container_id=self.id, verbose=True).info["info"])["pid"]

    def log(self):
        return "\n".join(text for _, text in log_lines(self._log))

    def remove(self):
        self._client.remove_pod(self._pod.id)


def _mounts(node, container, volumes):
    kinds = {one["name"]: one for one in volumes}
    propagation = {None: cri.PROPAGATION_PRIVATE, "HostToContainer": cri.PROPAGATION_HOST_TO_CONTAINER}
    for one in container["volumeMounts"]:
        volume = kinds[one["name"]]
        if "hostPath" in volume:
            path = volume["hostPath"]["path"]
        else:
            path = f"/run/volumes/{uuid.uuid4()}"
            node.path(path).mkdir(parents=True)
        yield cri.Mount(container_path=one["mountPath"], host_path=path, readonly=one.get("readOnly", False),
                        propagation=propagation[one.get("mountPropagation")])


def _security(wanted):
    return {
        "run_as_user": {"value": wanted["runAsUser"]},
        "readonly_rootfs": wanted["readOnlyRootFilesystem"],
        "no_new_privs": not wanted["allowPrivilegeEscalation"],
        "capabilities": {"add_capabilities": wanted["capabilities"]["add"],
                         "drop_capabilities": wanted["capabilities"]["drop"]},
        "seccomp": {"profile_type": {"RuntimeDefault": 0}[wanted["seccompProfile"]["type"]]},
        "selinux_options": {"type": wanted["seLinuxOptions"]["type"]},
    }
