"""Sixty pods of five priorities, while daemon and agent die in each group."""

import pytest

from agent_process import Agent
from asking import by_annotation
from ctl import ctl_json
from deaf import Deaf
from supervisor import supervised
from waiting import wait_until

NODE = "node-1"  # of the fixtures
NULL = "example.com/null"
PRIORITIES = (-10, 0, 1000, 1_000_000, 2_000_000_000)
PODS = 60
PERIOD_S = 50  # each; together they are less than logind's limit


@pytest.fixture
def shim(runtime, directory, make_shim):
    return make_shim(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")},
                     periods=[{"priority": priority, "grace": f"{PERIOD_S}s"} for priority in PRIORITIES],
                     devices=[{"resource": NULL, "path": "/dev/null", "count": PODS}])


@pytest.fixture
def agent(shim, directory, closing, server, logind, manager):
    one = closing(supervised(Agent, manager)(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
    one.start()
    logind.wait_held()
    return one


@pytest.fixture
def groups(shim, agent, client, server):
    """The containers of pods that run, by their priority."""
    found = [[] for _ in PRIORITIES]
    for number in range(PODS):
        place = number % len(PRIORITIES)
        pod = client.run_pod(f"pod-{number}",
                             annotations=by_annotation("main", f"{NULL}=1") if number % 3 == 0 else None)
        server.put("pods", {"metadata": {"namespace": "default", "name": f"pod-{number}", "uid": pod.uid},
                            "spec": {"nodeName": NODE, "priority": PRIORITIES[place]},
                            "status": {"phase": "Running"}})
        found[place].append(client.run(pod, "main", annotations={"io.kubernetes.pod.terminationGracePeriod": "30"}))
    wait_until(lambda: told(shim)["knownPods"] == PODS, "the daemon knows them all")
    return found


@pytest.fixture
def deaf(runtime):
    one = Deaf(runtime)
    yield one
    one.let_go()


def told(shim):
    return ctl_json(shim, "status")["shutdown"]


def restart(*programs):
    for one in programs:
        one.kill()
    for one in programs:
        one.start()


def test_restarts_in_each_group(shim, agent, groups, logind, runtime, deaf):
    """A group is stopped, also by the next daemon, and no other before it has ended; one lock is held until the last one's
    end, whoever dies."""
    die = [[shim], [agent], [shim, agent], [agent, shim], [shim]]
    logind.begin()
    done = set()
    for group, programs in zip(groups, die):
        wait_until(lambda group=group: set(group) <= stopped(runtime), "its containers are told to stop")
        assert stopped(runtime) == done | set(group), "nobody else's turn has come"
        restart(*programs)
        assert logind.held() == 1
        deaf.let_go(*group)
        done |= set(group)
    logind.wait_released()
    wait_until(lambda: told(shim)["state"] == "over", "all is over")
    assert stopped(runtime) == done
    assert all(0 < call.parsed().timeout <= 30 for call in runtime.calls_of("StopContainer"))


def stopped(runtime):
    return {call.parsed().container_id for call in runtime.calls_of("StopContainer")}
