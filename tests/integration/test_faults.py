"""Calls that fail for want of memory, each once: what a program cannot go on without it ends for, with a word, and the next
one goes on. tests/run.sh faults has all of it.
"""

import signal
import subprocess

import grpc
import pytest

from agent_feed import AgentFeed
from agent_process import BINARY as AGENT, Agent
from api_server import ApiServer
from bridge_process import BINARY as BRIDGE
from faults import FaultTable
from kubelet_drivers import claim
from node import Node
from protos import agent as proto
from shim import BINARY, Shim
from waiting import GENEROUS_S, wait_until

GPU, GPU_DRIVER = "vendor.com/gpu", "gpu.example.com"
STARTS = 15  # of a program: so many of its first allocations fail, one in each
PODS = 30    # so many allocations of a bridge fail at one, at most
CONNECTIONS = 8  # rounds in each of which two connections break or cannot be made, at most
REQUESTS = 25  # so many of libcurl's, of some 120 from its start to its first answer


@pytest.mark.parametrize("program", [BINARY, BRIDGE, AGENT], ids=["daemon", "bridge", "agent"])
def test_a_start_without_memory(directory, program):
    """It has read its settings, or has ended with a word: it never goes by others."""
    table = FaultTable(directory / "faults", gap_ms=0, memory_only=True)
    shim = Shim(directory / "n", directory / "r.sock", cluster={
        "enabled": True, "socket": str(directory / "n/agent.sock"), "kubeconfig": str(directory / "kubelet.conf")})
    shim.directory.mkdir()
    shim.config_path.write_text(shim.config_text())
    ended = 0
    for number in range(STARTS):
        log = directory / f"{number}.log"
        table.arm(1)
        with open(log, "wb") as file:
            process = subprocess.Popen([*table.wrapper, program, "--config", shim.config_path], stdin=subprocess.DEVNULL,
                                       stdout=file, stderr=subprocess.STDOUT, env={"SHIM_TEST": str(number), "PATH": "/usr/bin:/bin"})
        wait_until(lambda: process.poll() is not None or table.left() == 0 and str(directory) in log.read_text(),
                   "a call has failed, and it has begun or ended")
        process.kill()
        status = process.wait(GENEROUS_S)
        text = log.read_text()
        why = f"{text}\n{table.failed()[-1]}"
        assert "Sanitizer" not in text and status in (1, -signal.SIGABRT, -signal.SIGKILL), why
        if status != -signal.SIGKILL:
            ended += 1
            assert "memory" in text, why
        else:
            assert str(directory) in text and "settings" not in text, why
    assert table.disarm() == 0 and len(table.failed()) == STARTS and ended


def test_a_pod_does_not_fail_since_the_bridge_has_no_memory(directory, closing):
    """The kubelet would not ask again: the bridge ends, and the next one is asked what this one was."""
    node = closing(Node(directory / "n", {GPU: [f"gpu{number}" for number in range(2 * PODS)]}, store=True))
    table = FaultTable(directory / "faults", gap_ms=0, memory_only=True)
    node.start()
    node.down("bridge")
    node.bridge.wrapper = table.wrapper
    node.up("bridge")
    pod = node.kubelet.add_pod("first", {GPU: 1})
    node.kubelet.wait_phase(pod)
    ends = 0
    for number in range(PODS):
        table.arm(1)
        pod = node.kubelet.add_pod(f"pod{number}", {GPU: 1})
        while pod.phase == "Pending":
            if node.bridge.ends_within(0.01):
                table.disarm()
                assert node.bridge.wait_exit() == -signal.SIGABRT
                assert "out of memory" in node.bridge.log().splitlines()[-1]
                node.bridge.start()
                ends += 1
        table.disarm()
        assert pod.phase == "Running", f"{pod}: {table.failed()[-1]}"
        node.kubelet.delete_pod(pod)
        node.kubelet.wait_gone(pod)
    assert ends and not node.violations + node.check_running()


def test_libcurl_never_goes_on_without_memory(directory, closing):
    """It would with what it has destroyed: a socket's table of no slots, of which the next request divides by zero."""
    server = closing(ApiServer(directory / "pki"))
    server.start()
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {}})
    closing(AgentFeed(directory / "run/agent.sock")).start()
    agent = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", "n")))
    table = FaultTable(directory / "faults", gap_ms=0, memory_only=True, by="libcurl")
    agent.wrapper = table.wrapper
    for _ in range(REQUESTS):
        table.arm(1)
        agent.start()
        wait_until(lambda: table.left() == 0, "a call of libcurl's has failed")
        status = agent.wait_exit()
        why = f"{agent.log()[-2000:]}\n{table.failed()[-1]}"
        assert status == -signal.SIGABRT and "out of memory" in agent.log().splitlines()[-1], why
    assert len(table.failed()) == REQUESTS


def test_the_agents_connections_break(directory, closing):
    """It never ends, and then knows all again, and does what it is told."""
    server = closing(ApiServer(directory / "pki"))
    server.start()
    server.put("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {}})
    feed = closing(AgentFeed(directory / "run/agent.sock"))
    feed.start()
    agent = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", "n")))
    table = FaultTable(directory / "faults", gap_ms=0, connections=True, program=AGENT.name)
    agent.wrapper = table.wrapper
    agent.start()
    feed.wait_state(lambda state: len(state.complete) == 3, "all is known")
    for number in range(CONNECTIONS):
        table.arm(2)
        server.end_watches()
        server.put("pods", {"metadata": {"name": f"p{number}", "namespace": "default", "uid": f"uid-{number}"},
                            "spec": {"nodeName": "n"}, "status": {"phase": "Running"}})
        feed.wait_fact(proto.POD, f"uid-{number}")
        table.disarm()
    assert len(table.failed()) >= CONNECTIONS // 2  # each place fails once: which are come to is as the scheduler has it


def test_the_daemons_and_the_bridges_connections_break(bridge, shim, kubelet, make_driver, directory):
    """A driver is registered again, and its claims are prepared, whatever broke on the way."""
    table = FaultTable(directory / "faults", gap_ms=0, connections=True)
    for one in shim, bridge:
        one.kill()
        one.wrapper = table.wrapper
        one.start()
    driver = make_driver()
    kubelet.wait_registered(GPU_DRIVER)
    for number in range(CONNECTIONS):
        table.arm(2)
        driver.stop()
        driver.start()
        driver.wait_registered()
        table.disarm()
        wait_until(lambda: prepared(kubelet, f"c-{number}"), f"it is prepared; failed: {table.failed()[-2:]}")
    assert len(table.failed()) >= CONNECTIONS // 2  # each place fails once: which are come to is as the scheduler has it


def prepared(kubelet, uid):
    """Whether it is; a kubelet asks again later where the call fails."""
    try:
        return kubelet.prepare(GPU_DRIVER, [claim(uid)])[uid].devices
    except (grpc.RpcError, LookupError):
        return False
