"""Each command of cri-device-shimctl at a daemon that has much to do: it is answered, in JSON as its
schema says, and what the daemon does goes on."""

import re
import subprocess

import pytest

from asking import by_token
from busy import busy
from ctl import CTL, SCHEMAS, checked, ctl
from plugin import Plugin
from protos import cri
from waiting import wait_until

GPU = "vendor.com/gpu"
NIC = "other.com/nic"
# In this order: (words, what is asked for, the schema of the answer).
ASKED = [
    ("status", (), "status"),
    ("resources", (), "resources"),
    ("plugins", (), "plugins"),
    ("devices", (), "devices"),
    ("allocations", (), "allocations"),
    ("pods", (), "pods"),
    ("drivers", (), "drivers"),
    ("claims", (), "claims"),
    ("why", (), "why"),
    ("events", (), "events"),
    ("cordon", (GPU, "g60", "g61", "--reason", "dust"), "cordon"),
    ("uncordon", (GPU, "g60"), "uncordon"),
    ("withdraw", ("local.dev/null", "--reason", "moved"), "withdraw"),
    ("grace extend", (NIC, "1h"), "grace"),
    ("taint", (GPU, "g61", "dust:NoSchedule"), "taint"),
    ("taints", (), "taints"),
    ("untaint", (GPU, "g61", "dust"), "untaint"),
    ("orders", (), "orders"),
    ("grace end", (NIC,), "grace"),
    ("release", ("left", "--yes", "--reason", "lost"), "release"),
    ("end", ("left", "--reason", "lost"), "end"),
    ("endings", (), "endings"),
    ("deviceclass", (GPU, "--extended", "--template"), "deviceclass"),
    ("reload", (), "reload"),
    ("log-level", ("info",), "log-level"),
    ("checkpoint verify", (), "checkpoint-verify"),
    ("checkpoint export", (), "checkpoint-export"),
    ("support", ("{directory}/support.tar.gz",), "support"),
]
# It is for a daemon that does not run; the others are for the node.
OFFLINE = {"checkpoint import", "node enable", "node disable"}


@pytest.fixture
def node(at_work, make_client, make_plugin, closing, runtime):
    """Sixty-four devices, a plugin that has gone, and a pod that the runtime has lost."""
    make_plugin(at_work, GPU, [f"g{number}" for number in range(64)])
    gone = closing(Plugin(at_work.plugin_dir, NIC, ["n0"]))
    gone.start()
    at_work.wait_log("is active: ", 2)
    gone.stop()
    at_work.wait_log("its devices are unhealthy")
    client = make_client(at_work)
    pod = client.run_pod("left")
    container = client.run(pod, "main", annotations=by_token(GPU, "g63"))
    runtime.state.containers[container].state = cri.CONTAINER_EXITED
    runtime.state.pods[pod.id].state = cri.SANDBOX_NOTREADY
    return at_work


def test_each_command(node, make_client, directory):
    with busy(node, make_client, f"{GPU}=2"):
        wait_until(lambda: "pod0-1" in ctl(node, "events").stdout, "it is busy")
        for words, arguments, schema in ASKED:
            given = [one.format(directory=directory) for one in arguments]
            done = ctl(node, *words.split(), *given, "-o", "json")
            assert (done.returncode, done.stderr) == (0, ""), done
            checked(schema, done.stdout)


def test_each_command_is_asked():
    """One that is new is asked above, and has a schema."""
    said = subprocess.run([CTL, "--help"], check=True, capture_output=True, text=True, timeout=60)
    commands, _ = said.stdout.split("Options:")
    found = set(re.findall(r"^  ([a-z-]+(?: [a-z]+)*)(?: [^ ]+)*  ", commands, re.MULTILINE))
    assert found == {words for words, _, _ in ASKED} | OFFLINE
    schemas = {path.stem for path in SCHEMAS.glob("*.json")}
    assert schemas == {schema for _, _, schema in ASKED} | {"checkpoint-import"}
