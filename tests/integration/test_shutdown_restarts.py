"""The machine goes down with all of a node at work: a kubelet that makes its pods anew, plugin, bridge, daemon and agent, each of
which dies in the middle of it."""

import pytest

from agent_process import Agent
from ctl import ctl_json
from deaf import Deaf
from node import Node
from supervisor import Supervisor, supervised
from waiting import wait_until

GPU = "vendor.com/gpu"
PODS = 6


@pytest.fixture
def node(directory, closing):
    """Six pods run, with a device each."""
    one = closing(Node(directory / "n", {GPU: [f"gpu{number}" for number in range(PODS)]}, store=True))
    one.daemon.cluster = {"enabled": True, "socket": str(one.run_dir / "agent.sock")}
    one.daemon.shutdown = {"grace": "200s"}
    one.daemon.control = one.run_dir / "control.sock"  # by default beside what it listens on
    one.start()
    one.pods = [one.kubelet.add_pod(f"web-{number}", {GPU: 1}) for number in range(PODS)]
    one.kubelet.wait_phase(*one.pods)
    return one


@pytest.fixture
def agent(directory, closing, node, logind):
    """One without an API server: whose priorities are not known, and which has a device, is ended."""
    manager = closing(Supervisor(directory))
    one = closing(supervised(Agent, manager)(directory, directory / "none.conf", node_name="node-1",
                                             socket=str(node.run_dir / "agent.sock")))
    one.start()
    logind.wait_held()
    return one


@pytest.fixture
def deaf(node):
    one = Deaf(node.runtime)
    yield one
    one.let_go()


def made(node):
    return [len(node.runtime.calls_of(method)) for method in ("RunPodSandbox", "CreateContainer")]


def state(node):
    return ctl_json(node.daemon, "status")["shutdown"]["state"]


def told_why_not(node):
    return {event["uid"] for event in list(node.kubelet.events)
            if event["kind"] == "retry" and event["reason"] == "CreatePodSandboxError"
            and "node is shutting down" in event["message"]}


@pytest.mark.parametrize("dies", ["kubelet", "daemon", "bridge", "agent"])
def test_nothing_is_made_and_all_comes_back_if_it_is_cancelled(node, agent, logind, deaf, dies):
    """No pod fails, whoever dies; a kubelet that starts in a shutdown, and knows of none, makes none of its pods anew
    (kubernetes/kubernetes#122674). Nothing is held up once it is cancelled."""
    before = made(node)
    logind.begin()
    node.runtime.wait_calls("StopContainer", PODS)
    if dies == "agent":
        agent.kill()
        agent.start()
    else:
        node.down(dies)
        node.up(dies)
    assert logind.held() == 1
    deaf.let_go()
    logind.wait_released()
    wait_until(lambda: state(node) == "over", "all is over")
    assert node.runtime.running() == {}
    wait_until(lambda: told_why_not(node) == {pod.uid for pod in node.pods},
               "the kubelet has tried to make their sandboxes anew, and was told why not")
    assert made(node) == before and node.kubelet.failed() == []
    logind.cancel()
    logind.wait_held()
    node.kubelet.wait(lambda: node.check_running() == [], "all run again")
    assert node.violations == [] and node.kubelet.failed() == []
