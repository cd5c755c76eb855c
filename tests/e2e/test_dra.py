"""Claims' devices in real containers, by CDI: containerd from 1.7 on has it. Debian's has not, and says so; another
one is taken from $SHIM_CONTAINERD_BIN."""

import json
import pathlib
import tempfile

import grpc
import pytest

from asking import refused
from containerd import Containerd
from dra_node import DraNode
from kube_programs import containerd_path, missing_cdi
from kubelet_drivers import claim
from protos import cri
from protos import dra as dra_messages

GPU = "gpu.example.com"
SLEEP = ["sleep", "infinity"]
MISSING = missing_cdi()
needs_cdi = pytest.mark.skipif(MISSING != "", reason=MISSING)


@pytest.fixture(scope="module")
def containerd():
    """With CDI switched on, where it has it; specs are in `cdi` of its directory."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cdd-", dir="/tmp"))
    (directory / "cdi").mkdir()
    one = Containerd(directory, path=containerd_path(), cri="" if MISSING else
                     f'enable_cdi = true\n  cdi_spec_dirs = ["{directory}/cdi"]')
    one.start()
    yield one
    one.stop()


class CdiDriver:
    """Writes a spec for each claim: an environment variable, and a directory of the host."""

    def __init__(self, node, specs, shared):
        self.driver = node.driver(GPU)
        self.driver.on_prepare = self._prepare
        self.driver.on_unprepare = self._unprepare
        self._specs, self._shared = specs, shared

    def spec(self, uid):
        return self._specs / f"{GPU}-{uid}.json"

    def _prepare(self, claimed):
        self.spec(claimed.uid).write_text(json.dumps({
            "cdiVersion": "0.5.0", "kind": f"{GPU}/claim", "devices": [{
                "name": claimed.uid, "containerEdits": {
                    "env": [f"CLAIM={claimed.uid}"],
                    "mounts": [{"hostPath": str(self._shared), "containerPath": "/shared",
                                "options": ["ro", "bind"]}]}}]}))
        return [dra_messages.Device(request_names=["gpu"], pool_name="node-1", device_name="gpu-0",
                                    cdi_device_ids=[f"{GPU}/claim={claimed.uid}"])]

    def _unprepare(self, claimed):
        self.spec(claimed.uid).unlink(missing_ok=True)
        return ""


@pytest.fixture
def node(directory, shim, closing):
    return DraNode(directory, shim, closing)


@pytest.fixture
def driver(containerd, node, directory):
    (directory / "shared").mkdir()
    (directory / "shared" / "VERSION").write_text("driver 1.2.3\n")
    return CdiDriver(node, containerd.directory / "cdi", directory / "shared")


def prepared(node, uid):
    """As the kubelet makes it of a claim, for a container's config; names come twice, as after its restart."""
    answer = node.kubelet.prepare(GPU, [claim(uid)])[uid]
    names = [name for device in answer.devices for name in device.cdi_device_ids]
    return {"CDI_devices": [cri.CDIDevice(name=name) for name in names * 2]}


@needs_cdi
def test_a_container_has_its_claim_s_devices(shim, client, node, driver):
    shim.wait_log("runtime: CDI devices in its containers: supported")
    config = prepared(node, "c-1")
    container = client.run(client.run_pod("web"), "main", SLEEP, **config)
    assert client.exec(container, "sh", "-c", "echo $CLAIM").strip() == "c-1"
    assert client.exec(container, "cat", "/shared/VERSION") == "driver 1.2.3\n"
    assert client.exec(container, "sh", "-c", "grep -c ' /shared ' /proc/mounts").strip() == "1"
    assert not node.kubelet.unprepare(GPU, [claim("c-2")])["c-2"].error


@needs_cdi
def test_what_containerd_cannot_resolve_is_prepared_anew(shim, client, node, driver):
    """As after a reboot, which has taken /var/run/cdi: by containerd's own words."""
    config = prepared(node, "c-1")
    pod = client.run_pod("web")
    driver.spec("c-1").unlink()
    with refused(grpc.StatusCode.UNKNOWN, "unresolvable CDI devices", f"{GPU}/claim=c-1"):
        client.create(pod, "main", SLEEP, **config)
    shim.wait_log(f"claim default/claim-c-1, driver {GPU}: it was prepared anew")
    container = client.run(pod, "main", SLEEP, attempt=1, **config)
    assert client.exec(container, "sh", "-c", "echo $CLAIM").strip() == "c-1"


@pytest.mark.skipif(MISSING == "", reason="this containerd has CDI")
def test_a_containerd_without_cdi_does_not_start_it_without_its_device(shim, direct, client, node, driver):
    shim.wait_log("runtime: CDI devices in its containers: not supported")
    config = prepared(node, "c-1")
    pod = client.run_pod("web")
    container = direct.run(pod, "main", SLEEP, **config)  # it would
    assert client.exec(container, "sh", "-c", "echo $CLAIM").strip() == ""
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "it does not support CDI devices"):
        client.create(pod, "other", SLEEP, **config)
