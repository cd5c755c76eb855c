"""Pods that are ended, with an agent: the API server evicts them, as their budgets allow."""

import time

import pytest

from api_pods import Budget
from api_server import Fault
from ctl import ctl, ctl_json
from waiting import wait_until

NODE = "node-1"  # of the fixtures
MIRROR = "kubernetes.io/config.mirror"


@pytest.fixture
def settings():
    """Of the shim's [cluster]."""
    return {}


@pytest.fixture
def shim(runtime, directory, make_shim, settings):
    return make_shim(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock"), **settings})


@pytest.fixture
def web(shim, client, server, agent):
    """Pod "web", with a container that runs, which the API server knows, too; and an agent that has reported."""
    shim.wait_control()
    pod = client.run_pod("web")
    client.run(pod, "main")
    put(server, pod)
    shim.wait_log("cluster: agent")
    return pod


def put(server, pod, name="web", uid=None, **metadata):
    return server.put("pods", {
        "metadata": {"namespace": "default", "name": name, "uid": uid or pod.uid, "labels": {"app": name}, **metadata},
        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}})


def path(sub=""):
    return f"/api/v1/namespaces/default/pods/web{sub}"


def events(shim):
    return [(one["kind"], one["reason"], one["times"]) for one in ctl_json(shim, "events")["items"]
            if one["kind"] in ("ending", "ended")]


def ended(shim, how="evicted"):
    wait_until(lambda: ("ended", how, 1) in events(shim), f"it has ended: {how}")


def end(shim, *arguments):
    done = ctl(shim, "end", "web", *arguments)
    assert done.returncode == 0, done
    return done.stdout


def mark(server):
    """The one DisruptionTarget of the pod: (status, reason, message)."""
    [one] = server.get("pods", "web", "default")["status"]["conditions"]
    assert one["type"] == "DisruptionTarget"
    return one["status"], one["reason"], one["message"]


def test_it_is_evicted_and_marked(shim, web, server, runtime):
    """In the place of the API server's own mark, and with the pod's uid as a precondition; nothing is stopped here."""
    assert "the API server is asked to evict it" in end(shim, "--reason", "tired")
    ended(shim)
    pod = server.get("pods", "web", "default")
    assert mark(server) == ("True", "DeletionByCRIDeviceShim", "tired")
    assert pod["metadata"]["deletionTimestamp"] and pod["metadata"]["deletionGracePeriodSeconds"] == 30
    [evict] = server.asked(path("/eviction"), "POST")
    assert len(server.asked(path("/status"), "PATCH")) == 1
    assert evict.json()["deleteOptions"]["preconditions"] == {"uid": web.uid}
    assert "gracePeriodSeconds" not in evict.json()["deleteOptions"]
    assert runtime.calls_of("StopContainer") == []
    assert events(shim) == [("ending", "operator", 1), ("ended", "evicted", 1)]


@pytest.mark.parametrize("budgets", [1, 2])
def test_budgets_are_waited_for(shim, web, server, client, budgets):
    """Also several for one pod, which the API answers as an error of its own. It may go on meanwhile, and is not
    marked: it may be for ever."""
    server.budgets += [Budget({"app": "web"}, allowed=0) for _ in range(budgets)]
    end(shim, "--grace", "10s")
    server.wait_asked(path("/eviction"), "POST", count=2)
    client.create(web, "again", attempt=1)
    assert server.asked(path("/status"), "PATCH") == []
    assert ("ended", "evicted", 1) not in events(shim)
    server.budgets[:] = [Budget({"app": "web"}, allowed=1)]
    ended(shim)
    assert server.get("pods", "web", "default")["metadata"]["deletionGracePeriodSeconds"] == 10
    assert server.asked(path(), "DELETE") == []


def test_one_pods_budget_delays_no_other(shim, web, server, client):
    other = client.run_pod("other")
    put(server, other, "other")
    server.budgets.append(Budget({"app": "web"}, allowed=0))
    end(shim)
    server.wait_asked(path("/eviction"), "POST")
    assert ctl(shim, "end", "other").returncode == 0
    wait_until(lambda: "deletionTimestamp" in server.get("pods", "other", "default")["metadata"], "it goes")
    assert "deletionTimestamp" not in server.get("pods", "web", "default")["metadata"]


@pytest.mark.parametrize("settings", [{"evict_force_after": "1ms"}])
def test_by_force_after_a_time(shim, web, server):
    server.budgets.append(Budget({"app": "web"}, allowed=0))
    end(shim)
    ended(shim)
    [delete], [marking] = server.asked(path(), "DELETE"), server.asked(path("/status"), "PATCH")
    assert delete.json()["preconditions"] == {"uid": web.uid}
    assert server.requests.index(marking) < server.requests.index(delete)
    assert mark(server)[:2] == ("True", "DeletionByCRIDeviceShim")


@pytest.mark.parametrize("settings", [{"evict_force_after": "3s"}])
def test_not_before_the_budget_was_asked(shim, web, server, agent):
    """However long nobody could."""
    server.budgets.append(Budget({"app": "web"}, allowed=0))
    agent.kill()
    end(shim)
    time.sleep(4)
    agent.start()
    ended(shim)
    [evict, *_], [delete] = server.asked(path("/eviction"), "POST"), server.asked(path(), "DELETE")
    assert server.requests.index(evict) < server.requests.index(delete)


def test_what_is_not_there_is_done(shim, web, server, runtime):
    server.remove("pods", "web", "default")
    end(shim)
    ended(shim)
    assert server.asked(path("/eviction"), "POST") == []


def test_another_pod_of_that_name_stays(shim, web, server):
    put(server, web, uid="another")
    end(shim)
    ended(shim)
    assert "deletionTimestamp" not in server.get("pods", "web", "default")["metadata"]
    assert server.asked(path("/status"), "PATCH") == []


def test_a_static_pod_is_ended_here(shim, web, server, runtime):
    """Its mirror's end would bring another mirror."""
    put(server, web, uid="the-mirrors", annotations={MIRROR: web.uid})
    end(shim, "--grace", "9s")
    [stop] = runtime.wait_calls("StopContainer")
    assert stop.parsed().timeout == 9
    ended(shim, "stopped")
    assert server.asked(path("/eviction"), "POST") == server.asked(path("/status"), "PATCH") == []


def test_here_if_that_is_wanted(shim, web, server, runtime):
    server.budgets.append(Budget({"app": "web"}, allowed=0))
    end(shim)
    server.wait_asked(path("/eviction"), "POST")
    end(shim, "--here", "--grace", "5s")
    ended(shim, "stopped")
    assert [call.parsed().timeout for call in runtime.calls_of("StopContainer")] == [5]
    assert "deletionTimestamp" not in server.get("pods", "web", "default")["metadata"]


def test_it_is_taken_back(shim, web, server, client):
    server.budgets.append(Budget({"app": "web"}, allowed=0))
    end(shim)
    server.wait_asked(path("/eviction"), "POST")
    assert ctl(shim, "end", "--cancel", "web").stdout == 'pod "default/web": is not ended\n'
    server.budgets.clear()
    put(server, client.run_pod("other"), "other")
    assert ctl(shim, "end", "other").returncode == 0  # the agent has heard of that before
    wait_until(lambda: "deletionTimestamp" in server.get("pods", "other", "default")["metadata"], "it goes")
    assert "deletionTimestamp" not in server.get("pods", "web", "default")["metadata"]


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=503), Fault(status=409)])
def test_an_api_server_that_fails_is_asked_again(shim, web, server, fault):
    server.fault(fault, path=path("/eviction"), times=1)
    end(shim)
    ended(shim)
    assert len(server.asked(path("/eviction"), "POST")) == 2


def test_an_answer_that_is_lost(shim, web, server):
    """It is being deleted then: nobody is asked to evict it twice."""
    server.fault(Fault(cut=3, reset=True), path=path("/eviction"), times=1)
    end(shim)
    ended(shim)
    assert len(server.asked(path("/eviction"), "POST")) == 1


@pytest.mark.parametrize("status", [403, 404, 500])
def test_who_cannot_mark_it_has_evicted_it(shim, web, server, status):
    server.fault(Fault(status=status), path=path("/status"), times=None)
    end(shim)
    ended(shim)
    assert mark(server)[:2] == ("True", "EvictionByEvictionAPI")
    assert len(server.asked(path("/eviction"), "POST")) == 1


@pytest.mark.parametrize("status", [403, 422])
@pytest.mark.parametrize("settings", [{"evict_force_after": "1ms"}])
def test_who_may_not_mark_it_deletes_it(shim, web, server, status):
    server.budgets.append(Budget({"app": "web"}, allowed=0))
    server.fault(Fault(status=status), path=path("/status"), times=None)
    end(shim)
    ended(shim)
    assert len(server.asked(path(), "DELETE")) == 1


@pytest.mark.parametrize("status", [403, 422])
@pytest.mark.parametrize("settings", [{"evict_force_after": "1ms"}])
def test_who_may_not_delete_it_evicts_it(shim, web, server, agent, status):
    """For want of the right, or as an admission policy has it: as soon as its budgets allow that."""
    budget = Budget({"app": "web"}, allowed=0)
    server.budgets.append(budget)
    server.fault(Fault(status=status), path=path(), method="DELETE", times=None)
    end(shim)
    server.wait_asked(path(), "DELETE", count=2)
    agent.wait_log(f"pod default/web: it may not be deleted: HTTP status {status}")
    budget.allowed = 1
    ended(shim)
    assert mark(server)[:2] == ("True", "DeletionByCRIDeviceShim")


def test_over_restarts(shim, web, server, agent):
    """Of daemon and agent, while a budget is in the way: it is evicted once, and told once."""
    budget = Budget({"app": "web"}, allowed=0)
    server.budgets.append(budget)
    end(shim)
    server.wait_asked(path("/eviction"), "POST")
    agent.kill()
    agent.start()
    server.wait_asked(path("/eviction"), "POST", count=2)
    shim.kill()
    shim.start()
    server.wait_asked(path("/eviction"), "POST", count=3)
    budget.allowed = 1
    shim.wait_control()
    ended(shim)
    assert budget.allowed == 0
    assert len(server.asked(path("/status"), "PATCH")) == 1
    assert events(shim) == [("ending", "operator", 1), ("ended", "evicted", 1)]
