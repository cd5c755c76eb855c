"""The machine goes down under a real systemd, whose logind waits for what install.sh has put there."""

import grpc
import pytest

import real_logind
from asking import by_annotation, refused
from criclient import Client
from deaf import Deaf
from installed_node import AGENT, DAEMON, InstalledNode
from runtime import Runtime
from waiting import wait_until

pytestmark = pytest.mark.skipif(not real_logind.is_there(), reason="no systemd-logind, or no dbus-daemon")

NULL = "example.com/null"
CRI = "/run/cri-device-shim/cri-device-shim.sock"
GRACE_S = 300
LIMIT_S = GRACE_S + 5  # as install.sh has it
SETTINGS = f"""runtime_endpoint = "/run/containerd/containerd.sock"
[annotations]
enabled = true
namespaces = ["default"]
[cluster]
enabled = true
node_name = "node-1"
[shutdown]
grace = "{GRACE_S}s"
[[device]]
resource = "{NULL}"
path = "/dev/null"
"""


@pytest.fixture(name="node")
def booted(directory, closing):
    node = closing(InstalledNode(directory))
    real_logind.put(node)
    settings = node.root / "etc/cri-device-shim/config.toml"
    settings.parent.mkdir()
    settings.write_text(SETTINGS)
    node.start()
    node.path("/run/containerd").mkdir()
    node.runtime = closing(Runtime(node.path("/run/containerd/containerd.sock")))
    node.runtime.start()
    node.run("systemctl", "start", "kubelet.service")
    node.install()
    wait_until(lambda: real_logind.locks(node) == [("cri-device-shim", "delay")], "the shutdown is delayed")
    return node


@pytest.fixture
def deaf(node):
    one = Deaf(node.runtime)
    yield one
    one.let_go()


def test_poweroff_waits_for_the_pods(node, closing, deaf):
    """Whatever of us is killed meanwhile; nothing is made any more, and no unit is stopped before the pods are."""
    client = closing(Client(node.path(CRI)))
    pod = client.run_pod("holder", annotations=by_annotation("main", f"{NULL}=1"))
    container = client.run(pod, "main")
    assert real_logind.waits_s(node) == LIMIT_S
    node.run("systemctl", "poweroff")
    [call] = node.runtime.wait_calls("StopContainer")
    assert call.parsed().container_id == container
    for unit in (AGENT, DAEMON):
        before = node.pid(unit)
        node.run("systemctl", "kill", "--kill-who=main", "--signal=KILL", unit)
        wait_until(lambda: node.pid(unit) not in (0, before), f"{unit} is back")
        assert real_logind.locks(node) == [("cri-device-shim", "delay")]
    client.reconnect()
    with refused(grpc.StatusCode.UNAVAILABLE, "node is shutting down"):
        client.run_pod("new")
    assert node.property("kubelet.service", "ActiveState") == "active"
    deaf.let_go()
    node.wait_off()


def test_an_uninstall_takes_all_of_it_back(node):
    """Also logind's time, at once."""
    assert real_logind.waits_s(node) == LIMIT_S
    node.install("--uninstall")
    wait_until(lambda: real_logind.locks(node) == [], "nothing is delayed")
    wait_until(lambda: real_logind.waits_s(node) == 5, "logind has its own time again")
