"""All three programs with what their systemd units leave them.

systemd is not needed: what a unit says of capabilities, network and core files is done by
util-linux's tools. Its filter of system calls and its view of the file system are not.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

from agent_feed import AgentFeed
from agent_process import Agent
from api_server import ApiServer
from asking import by_token, envs
from bare_kubelet import BareKubelet
from bridge_process import Bridge
from feed_server import FeedServer, Shown
from limits import limits_of
from protos import agent
from shim import ROOT, Shim

GPU = "vendor.com/gpu"
DAEMON = ROOT / "config/cri-device-shim.service"
BRIDGE = ROOT / "config/cri-device-shim-bridge.service"
AGENT = ROOT / "config/cri-device-shim-agent.service"


def setting(unit, key):
    """The value of a key that the unit has once."""
    (value,) = re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)
    return value


def as_unit(unit):
    """A command in front of the program: started as by systemd."""
    assert setting(unit, "NoNewPrivileges") == "yes"
    network = ["unshare", "--net"] if unit != AGENT else []
    assert not network or setting(unit, "PrivateNetwork") == "yes"
    assert setting(unit, "LimitCORE") == "0"
    kept = "".join(f",+{name.removeprefix('CAP_').lower()}"
                   for name in setting(unit, "CapabilityBoundingSet").split())
    return [*network, "prlimit", "--core=0", "setpriv", "--no-new-privs",
            "--bounding-set=-all" + kept, "--inh-caps=-all"]


def status(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{key}:\s*(\S+)$", text, re.MULTILINE)[1]


def mode(path):
    return path.stat().st_mode & 0o777


def test_what_peers_can_make_the_daemon_hold_is_less_than_it_may_take():
    """Plugins as many as there may be, each at its worst, and a client of the relay at its own."""
    limits = limits_of("shim/rpc/rpc.h", "shim/plugins/limits.h", "devicemgr/things/limits.h",
                       "shim/relay/limits.h")
    received = limits["PLUGINS_SHARED_BYTES"] + limits["RESOURCES_MAX"] * limits["PLUGIN_OWN_BYTES"]
    kept = limits["DEVICES_BYTES_MAX"] + limits["OPTIONS_BYTES_MAX"]
    relayed = limits["RELAY_CONNECTION_BYTES_MAX"] + limits["RELAY_WORK_BYTES_MAX"]
    assert setting(DAEMON, "MemoryMax") == "1G"
    assert received + kept + relayed < 1 << 30


def test_both_are_back_soon_and_for_ever():
    """What waits for them is the node. Who sees to one that hangs at its start is not the watchdog."""
    for unit in (DAEMON, BRIDGE):
        assert setting(unit, "Restart") == "always"
        assert setting(unit, "StartLimitIntervalSec") == "0"
        assert 50 <= int(setting(unit, "RestartSec").removesuffix("ms")) <= 100
        # Three deaths are to be within a minute (shim/deaths.h).
        assert int(setting(unit, "TimeoutStartSec").removesuffix("s")) <= 20
        assert setting(unit, "TimeoutStartFailureMode") == setting(unit, "WatchdogSignal").replace("SIGKILL", "kill")


def test_daemon_as_its_unit(runtime, directory, make_client, make_plugin, closing):
    """It relays, stores, and takes a plugin's answer; who has to can reach its sockets."""
    shim = Shim(directory, runtime.path)
    shim.wrapper = as_unit(DAEMON)
    closing(shim).start()
    assert int(status(shim.pid, "CapEff"), 16) == 1 << 1 | 1 << 19  # DAC_OVERRIDE, SYS_PTRACE
    make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    client.create(client.run_pod("pod"), "main", ["x"], annotations=by_token(GPU, "g0"))
    assert envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"] == "g0"
    assert mode(shim.plugin_dir) == 0o755 and mode(shim.state_dir) == 0o700
    assert [mode(path) for path in (shim.socket, shim.feed)] == [0o600, 0o600]


def test_bridge_as_its_unit(directory, closing):
    """It needs no capability at all."""
    feed = closing(FeedServer(directory / "run/bridge.sock"))
    feed.resources = {GPU: Shown(["g0"])}
    feed.start()
    kubelet = closing(BareKubelet(directory / "device-plugins"))
    kubelet.start()
    bridge = Bridge(directory)
    bridge.wrapper = as_unit(BRIDGE)
    closing(bridge).start()
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    assert int(status(bridge.pid, "CapEff"), 16) == 0
    feed.wait_report(GPU, lambda one: one.registered and one.stored)
    kubelet.stop()
    kubelet.start()  # which makes its directory's files anew
    kubelet.wait_health(GPU, {"g0": "Healthy"})


def test_agent_as_its_unit(directory, closing):
    """The kubelet's credentials are root's alone; it needs no capability to read them."""
    server = closing(ApiServer(directory / "pki"))
    server.start()
    server.put("nodes", {"metadata": {"name": "n"}, "status": {"capacity": {GPU: "1"}}})
    feed = closing(AgentFeed(directory / "run/agent.sock"))
    feed.start()
    kubeconfig = server.kubeconfig(directory / "kubelet.conf", "n")
    kubeconfig.chmod(0o600)
    one = Agent(directory, kubeconfig)
    one.wrapper = ["env", setting(AGENT, "Environment"), *as_unit(AGENT)]
    closing(one).start()
    feed.wait_fact(agent.NODE, server.get("nodes", "n")["metadata"]["uid"])
    assert int(status(one.pid, "CapEff"), 16) == 0


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
@pytest.mark.parametrize("unit,exposure", [(DAEMON, 24), (BRIDGE, 15), (AGENT, 21)])
def test_exposure(unit, exposure):
    """As systemd rates it, in tenths: 100 is a unit that says nothing. It may only become less."""
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes",
                           f"--threshold={exposure}", unit],
                          check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
