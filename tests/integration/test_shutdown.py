"""The machine goes down: logind on a bus of its own, the agent, the daemon, and a scripted runtime."""

import threading

import grpc
import pytest

from agent_process import Agent
from asking import by_annotation, refused
from ctl import checked, ctl, ctl_json
from logind import Logind, SystemBus
from metrics import scrape
from supervisor import supervised
from waiting import GENEROUS_S, wait_until

NODE = "node-1"  # of the fixtures
NULL = "example.com/null"
GRACE = "io.kubernetes.pod.terminationGracePeriod"
SIDECARS = [{"name": "proxy", "restartPolicy": "Always"}, {"name": "first"}, {"name": "logs", "restartPolicy": "Always"}]
STATIC = {"kubernetes.io/config.source": "file"}
MIRROR = {"kubernetes.io/config.mirror": "of-the-file"}
PRIORITIES = (-10, 0, 1000, 1_000_000, 2_000_000_000)
LIMIT_S = 300
DOWN = "node is shutting down"


@pytest.fixture
def settings():
    """Of [shutdown], and its periods."""
    return {"shutdown": {"grace": "60s", "critical_grace": "20s"}}


@pytest.fixture
def shim(runtime, directory, make_shim, settings):
    return make_shim(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")},
                     metrics={"listen": str(directory / "metrics.sock")},
                     devices=[{"resource": NULL, "path": "/dev/null", "count": 1000}], **settings)


@pytest.fixture
def logind(directory, closing, monkeypatch):
    bus = closing(SystemBus(directory))
    monkeypatch.setenv(*bus.environment)
    bus.start()
    one = closing(Logind(directory, bus, LIMIT_S))
    one.start()
    return one


@pytest.fixture
def agent(shim, directory, closing, server, logind, manager):
    """Its lock is held, and `manager` keeps it; the pods of `server` are known."""
    one = closing(supervised(Agent, manager)(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
    one.start()
    shim.wait_control()
    wait_until(lambda: shutdown(shim)["delayed"], "the machine's shutdown is delayed")
    logind.wait_held()
    return one


def shutdown(shim):
    return ctl_json(shim, "status")["shutdown"]


def wait_state(shim, state):
    wait_until(lambda: shutdown(shim)["state"] == state, f"the shutdown is {state}")


def run(client, server, name, priority, *, device=False, grace=30):
    """A pod with a container that runs, which the API server knows; the container's id."""
    pod = client.run_pod(name, annotations=by_annotation("main", f"{NULL}=1") if device else None)
    server.put("pods", {"metadata": {"namespace": "default", "name": name, "uid": pod.uid},
                        "spec": {"nodeName": NODE, "priority": priority}, "status": {"phase": "Running"}})
    return client.run(pod, "main", annotations={GRACE: str(grace)})


def stops(runtime):
    return [(call.parsed().container_id, call.parsed().timeout) for call in runtime.calls_of("StopContainer")]


def wait_events(shim, *expected):
    """Those of the shutdown, each with how often it was."""
    wait_until(lambda: [(one["reason"], one["times"]) for one in ctl_json(shim, "events")["items"]
                        if one["kind"] == "shutdown"] == list(expected), f"the events are {expected}")


def troubles(shim):
    return [one["why"] for one in ctl_json(shim, "status")["degraded"] if one["what"] == "shutdown"]


class Deaf:
    """Containers that do not end when they are told to, until they are let go."""

    def __init__(self, runtime, *containers):
        self.runtime, self.containers, self.gate = runtime, containers, threading.Event()
        runtime.on("StopContainer", self._answer)

    def _answer(self, call):
        if call.parsed().container_id in self.containers:
            assert self.gate.wait(GENEROUS_S)
        return self.runtime.state.answer(call)

    def let_go(self):
        self.gate.set()


@pytest.fixture
def deaf(runtime):
    made = []

    def make(*containers):
        made.append(Deaf(runtime, *containers))
        return made[-1]

    yield make
    for one in made:
        one.let_go()


def wait_known(shim, count):
    """The daemon knows so many pods of the cluster."""
    wait_until(lambda: shutdown(shim)["knownPods"] == count, f"{count} pods are known")


def test_nothing_is_made_and_all_may_stop(shim, agent, logind, client, server, runtime):
    pod = client.run_pod("web")
    container = client.run(pod, "main")
    logind.begin()
    shim.wait_log("the machine goes down: no sandbox and no container is made any more; logind waits for 5m")
    for _ in range(2):  # on a connection that was there before, and another
        with refused(grpc.StatusCode.UNAVAILABLE, DOWN):
            client.run_pod("new")
        with refused(grpc.StatusCode.UNAVAILABLE, DOWN, 'container "side" of pod "default/web"'):
            client.create(pod, "side")
        client.reconnect()
    client.StopContainer(container_id=container)
    client.RemoveContainer(container_id=container)
    client.remove_pod(pod.id)
    assert [call.parsed().config.metadata.name for call in runtime.calls_of("RunPodSandbox")] == ["web"]
    logind.wait_released()
    wait_state(shim, "over")
    assert logind.held() == 0


@pytest.mark.parametrize("settings", [{"periods": [
    {"priority": priority, "grace": f"{10 + number}s"} for number, priority in enumerate(PRIORITIES)]}])
def test_sixty_pods_of_five_priorities(shim, agent, logind, client, server, runtime):
    """In the order of their priorities, each with its own grace and no more than its group has; and the lock is let go
    behind them."""
    pods = {}
    for number in range(60):
        priority, device, grace = PRIORITIES[number % 5], number % 3 == 0, 5 if number % 2 else 40
        pods[run(client, server, f"pod-{number}", priority, device=device, grace=grace)] = priority, grace
    wait_known(shim, 60)
    logind.begin()
    logind.wait_released()
    wait_state(shim, "over")
    stopped = stops(runtime)
    assert sorted(one for one, _ in stopped) == sorted(pods)
    turns = [pods[one][0] for one, _ in stopped]
    assert turns == sorted(turns)
    for one, timeout in stopped:
        priority, grace = pods[one]
        assert timeout == min(grace, 10 + PRIORITIES.index(priority))
    assert shutdown(shim)["remaining"] == 0
    wait_events(shim, ("begun", 1), ("group", 5), ("over", 1))
    assert runtime.calls_of("RemoveContainer") == runtime.calls_of("RemovePodSandbox") == []
    # each sandbox behind its container, once, and before the next group's turn
    sandbox_of = {one.id: one.pod_sandbox_id for one in runtime.state.containers.values()}
    ended = [call.parsed().container_id if call.method == "StopContainer" else call.parsed().pod_sandbox_id
             for call in runtime.calls if call.method in ("StopContainer", "StopPodSandbox")]
    assert len(ended) == len(set(ended)) == 120
    for one in pods:
        assert ended.index(one) < ended.index(sandbox_of[one])
    by_turn = [next(pods[one][0] for one in pods if its in (one, sandbox_of[one])) for its in ended]
    assert by_turn == sorted(by_turn)


def test_those_with_devices_are_first_in_their_group(shim, agent, logind, client, server, runtime):
    """The runtime serves one call of a connection at a time here, so that they come in the order in which they were sent, as
    soon as the other end has heard of that: by the first stop. What it lists first are those without."""
    runtime.stop()
    runtime.at_once = 1
    runtime.start()
    client.reconnect()
    run(client, server, "first", 0)
    ctl_json(shim, "end", "first", "--here")
    wait_until(lambda: [one["state"] for one in ctl_json(shim, "endings")["items"]] == ["stopped"], "it has ended")
    plain = {run(client, server, f"plain-{number}", 0) for number in range(5)}
    holders = {run(client, server, f"holder-{number}", 0, device=True) for number in range(5)}
    wait_known(shim, 11)
    logind.begin()
    logind.wait_released()
    stopped = [one for one, _ in stops(runtime)][1:]
    assert (set(stopped[:5]), set(stopped[5:])) == (holders, plain)


def test_the_next_group_does_not_wait_for_who_does_not_end(shim, agent, logind, client, server, runtime, deaf):
    shim.periods = [{"priority": 0, "grace": "1s"}, {"priority": 10, "grace": "30s"}]
    reload_settings(shim)
    low = run(client, server, "low", 0)
    high = run(client, server, "high", 10)
    wait_known(shim, 2)
    deaf(low)
    logind.begin()
    runtime.wait_calls("StopContainer", 2)
    assert {one for one, _ in stops(runtime)} == {low, high}
    wait_state(shim, "over")
    assert shutdown(shim)["firstRemaining"] == ["default/low"]
    logind.wait_released()


def reload_settings(shim):
    shim.shutdown = {}
    shim.config_path.write_text(shim.config_text())
    done = ctl(shim, "reload")
    assert done.returncode == 0, done
    wait_until(lambda: shutdown(shim)["wantedSeconds"] == 31, "the other times count")


@pytest.mark.parametrize("settings", [{"shutdown": {"grace": "60s"}}])
def test_a_group_of_all_without_priorities(shim, directory, closing, logind, client, runtime, manager):
    """Without an API server only those with devices are ended."""
    plain, holder = client.run_pod("plain"), client.run_pod("holder", annotations=by_annotation("main", f"{NULL}=1"))
    client.run(plain, "main")
    container = client.run(holder, "main", annotations={GRACE: "7"})
    one = closing(supervised(Agent, manager)(directory, directory / "none.conf", node_name=NODE))
    one.start()
    shim.wait_control()
    logind.wait_held()
    wait_until(lambda: shutdown(shim)["planned"] == {"byKubelet": False, "groups": [
        {"number": 1, "priority": None, "seconds": 60, "pods": 1, "withDevices": 1, "first": ["default/holder"]}]},
               "it is told who would be ended")
    logind.begin()
    logind.wait_released()
    assert stops(runtime) == [(container, 7)]
    assert "pods that have devices are ended" in shim.log()


def test_a_kubelets_own_lock(shim, agent, logind, client, server, runtime):
    """It ends its pods itself: nobody is ended from here, and the lock is held until its last sandbox is stopped."""
    pod = client.run_pod("web", annotations=by_annotation("main", f"{NULL}=1"))
    client.run(pod, "main")
    with logind.lock("kubelet"):
        agent.kill()  # one that has just begun sees at once what another would within a minute
        agent.start()
        wait_until(lambda: shutdown(shim)["planned"] == {"byKubelet": True, "groups": []}, "its lock is known")
        assert "the kubelet ends them" in ctl(shim, "status").stdout
        logind.begin()
        wait_state(shim, "kubelet")
        with refused(grpc.StatusCode.UNAVAILABLE, DOWN):
            client.run_pod("new")
        assert logind.held() == 1
        client.StopPodSandbox(pod_sandbox_id=pod.id)
        logind.wait_released()
        wait_state(shim, "over")
    assert runtime.calls_of("StopContainer") == []


def test_a_kubelet_that_dies_in_the_middle(shim, agent, logind, client, server, runtime):
    """Nobody else ends its pods: what it has left is ended from here, and the machine waits for that."""
    container = run(client, server, "web", 0)
    wait_known(shim, 1)
    with logind.lock("kubelet"):
        wait_until(lambda: shutdown(shim)["planned"] == {"byKubelet": True, "groups": []}, "its lock is known")
        logind.begin()
        wait_state(shim, "kubelet")
    logind.wait_released()
    assert stops(runtime) == [(container, 30)]
    wait_events(shim, ("begun", 1), ("kubelet", 1), ("left", 1), ("group", 1), ("over", 1))


def test_one_that_is_cancelled(shim, agent, logind, client, server, runtime, deaf):
    """Who was told to stop ends, is told of, and may be made again then; nobody else is stopped, and there is a lock
    again."""
    low = client.run_pod("low")
    put(server, low, "low", 0)
    container = client.run(low, "main")
    high = client.run_pod("high")
    put(server, high, "high", 2_000_000_000)
    client.run(high, "main")
    wait_known(shim, 2)
    one = deaf(container)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    logind.cancel()
    wait_state(shim, "none")
    client.run(high, "side")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "for the node's shutdown"):
        client.create(low, "side")
    one.let_go()
    wait_until(lambda: [one["reason"] for one in ctl_json(shim, "events")["items"] if one["kind"] == "ended"],
               "it has ended")
    wait_until(lambda: may_be_made(client, low), "it may be made again")
    assert len(stops(runtime)) == 1
    logind.wait_held()
    wait_events(shim, ("begun", 1), ("group", 1), ("cancelled", 1))


def put(server, pod, name, priority):
    server.put("pods", {"metadata": {"namespace": "default", "name": name, "uid": pod.uid},
                        "spec": {"nodeName": NODE, "priority": priority}, "status": {"phase": "Running"}})


def may_be_made(client, pod):
    try:
        client.create(pod, "again")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
        return False
    return True


def test_another_behind_one_that_was_cancelled(shim, agent, logind, client, server, runtime):
    first = run(client, server, "web", 0)
    logind.begin()
    logind.wait_released()
    logind.cancel()
    logind.wait_held()
    wait_state(shim, "none")
    second = run(client, server, "other", 0)
    logind.begin()
    runtime.wait_calls("StopContainer", 2)
    logind.wait_released()
    wait_state(shim, "over")
    assert [one for one, _ in stops(runtime)] == [first, second]


def test_a_daemon_that_is_killed_in_the_middle(shim, agent, logind, client, server, runtime, deaf):
    """The next one refuses from its first call on, ends those that are left, and has the lock let go; the agent's is the
    same all the time."""
    low = run(client, server, "low", 0)
    high = run(client, server, "high", 2_000_000_000)
    wait_known(shim, 2)
    one = deaf(low)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    wait_until(lambda: shutdown(shim)["group"] and shutdown(shim)["remaining"] == 2, "it is under way")
    shim.kill()
    assert logind.held() == 1
    shim.start()
    client.reconnect()
    with refused(grpc.StatusCode.UNAVAILABLE, DOWN):
        client.run_pod("new")
    shim.wait_control()
    assert logind.held() == 1
    one.let_go()
    logind.wait_released()
    wait_state(shim, "over")
    assert [container for container, _ in stops(runtime)][-1] == high
    assert "as is known from before this start" in shim.log()


def test_an_agent_that_is_killed_in_the_middle(shim, agent, logind, client, server, runtime, deaf):
    """Its lock outlives it, and the next one lets it go: what it does not know, since when, the daemon does."""
    low = run(client, server, "low", 0)
    wait_known(shim, 1)
    one = deaf(low)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    agent.kill()
    assert logind.held() == 1
    agent.start()
    wait_until(lambda: shutdown(shim)["delayed"], "it has the lock")
    assert shutdown(shim)["state"] == "groups"
    one.let_go()
    logind.wait_released()
    wait_state(shim, "over")
    assert len(stops(runtime)) == 1
    wait_events(shim, ("begun", 1), ("group", 1), ("over", 1))


def test_both_are_killed_in_the_middle(shim, agent, logind, client, server, runtime, deaf):
    low = run(client, server, "low", 0)
    wait_known(shim, 1)
    one = deaf(low)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    wait_until(lambda: shutdown(shim)["group"], "it is under way")
    shim.kill()
    agent.kill()
    one.let_go()
    assert logind.held() == 1
    shim.start()
    agent.start()
    logind.wait_released()
    wait_state(shim, "over")


@pytest.mark.parametrize("settings", [{"shutdown": {"grace": "400s", "critical_grace": "100s"}}])
def test_a_limit_that_is_too_small(shim, agent, logind, client, server, runtime, deaf):
    """It is said before there is a shutdown; and in one what there is is shared alike."""
    [words] = troubles(shim)
    assert words == "logind waits for 300 s at most, and [shutdown] wants 400: InhibitDelayMaxSec of logind.conf is too small"
    low = run(client, server, "low", 0, grace=400)
    run(client, server, "high", 2_000_000_000)
    wait_known(shim, 2)
    deaf(low)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    [(_, timeout)] = stops(runtime)
    assert 150 < timeout <= 300 * 299 // 400 + 1
    shim.wait_log("logind waits for 5m0s, less than the 6m40s of [shutdown]")
    logind.set_limit(400)
    logind.cancel()
    wait_until(lambda: not troubles(shim), "it is as it should be")


def test_a_reload_switches_it_off_and_on(shim, agent, logind, client):
    shim.shutdown = {}
    shim.config_path.write_text(shim.config_text())
    assert ctl(shim, "reload").returncode == 0
    logind.wait_released()
    assert shutdown(shim) is None
    logind.begin()
    client.run_pod("web")
    logind.cancel()
    shim.shutdown = {"grace": "60s"}
    shim.config_path.write_text(shim.config_text())
    assert ctl(shim, "reload").returncode == 0
    logind.wait_held()
    assert shutdown(shim)["wantedSeconds"] == 60


def test_what_is_told_of_it(shim, agent, logind, client, server, runtime, deaf):
    low = run(client, server, "low", 0, device=True)
    run(client, server, "high", 2_000_000_000)
    wait_known(shim, 2)
    nameless = client.run_pod("")  # is counted
    one = deaf(low)
    assert scrape(shim.metrics["listen"])["machine_shutdown"].value() == 0
    assert shutdown(shim)["planned"] == {"byKubelet": False, "groups": [
        {"number": 1, "priority": 0, "seconds": 40, "pods": 2, "withDevices": 1, "first": ["default/low"]},
        {"number": 2, "priority": 2_000_000_000, "seconds": 20, "pods": 1, "withDevices": 0, "first": ["default/high"]}]}
    assert [line.split() for line in ctl(shim, "status").stdout.splitlines() if line.startswith("group")] == [
        ["group", "1", "of", "2,", "priority", "0", "40s", "2", "1", "default/low"],
        ["group", "2", "of", "2,", "priority", "2000000000", "20s", "1", "0", "default/high"]]
    client.StopPodSandbox(pod_sandbox_id=nameless.id)
    client.RemovePodSandbox(pod_sandbox_id=nameless.id)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    told = shutdown(shim)
    assert told["state"] == "groups" and told["limitSeconds"] == LIMIT_S and told["wantedSeconds"] == 60
    assert told["group"] | {"leftSeconds": 0} == {"number": 1, "of": 2, "priority": 0, "leftSeconds": 0}
    assert told["pods"] == told["remaining"] == 2 and told["firstRemaining"] == ["default/low", "default/high"]
    assert told["planned"] is None
    shown = ctl(shim, "status").stdout
    assert "group 1 of 2, priority 0" in shown and "default/low" in shown
    why = ctl(shim, "why", "low").stdout
    assert "node-shuts-down" in why and DOWN in why
    document = checked("checkpoint-export", ctl(shim, "checkpoint", "export").stdout)
    assert document["sound"] and {one["name"] for one in document["endings"]} == {"low"}
    families = scrape(shim.metrics["listen"])
    assert families["machine_shutdown"].value() == 1
    assert families["machine_shutdown_pods_remaining"].value() == 2
    one.let_go()
    wait_state(shim, "over")
    wait_events(shim, ("begun", 1), ("group", 2), ("over", 1))


@pytest.mark.parametrize("static", [False, True])
def test_sidecars_are_stopped_last(shim, agent, logind, client, server, runtime, deaf, static):
    """Behind the others, the last of them first, with what is left of the grace then."""
    app, logs, proxy = run_with_sidecars(client, server, static)
    wait_known(shim, 1)
    one = deaf(app)
    logind.begin()
    runtime.wait_calls("StopContainer", 1)
    assert stops(runtime) == [(app, 30)]
    one.let_go()
    logind.wait_released()
    wait_state(shim, "over")
    assert [container for container, _ in stops(runtime)] == [app, logs, proxy]
    assert all(timeout <= 30 for _, timeout in stops(runtime))
    assert len(runtime.calls_of("StopPodSandbox")) == 1


def run_with_sidecars(client, server, static):
    """A pod that the API server knows, by its mirror if it is a static one; the ids of what runs."""
    pod = client.run_pod("web", annotations=STATIC if static else None)
    ids = [client.run(pod, name, annotations={GRACE: "30"}) for name in ("proxy", "logs", "app")]
    metadata = {"uid": "of-the-mirror", "annotations": MIRROR} if static else {"uid": pod.uid}
    server.put("pods", {"metadata": {"namespace": "default", "name": "web", **metadata},
                        "spec": {"nodeName": NODE, "priority": 0, "initContainers": SIDECARS}, "status": {"phase": "Running"}})
    return reversed(ids)


def test_sidecars_do_not_wait_for_what_does_not_end(shim, agent, client, server, runtime, deaf):
    app, logs, proxy = run_with_sidecars(client, server, static=False)
    wait_known(shim, 1)
    deaf(app)
    ctl_json(shim, "end", "web", "--here", "--grace", "2s")
    runtime.wait_calls("StopContainer", 3)
    assert stops(runtime)[0] == (app, 2)
    assert set(stops(runtime)[1:]) == {(logs, 1), (proxy, 1)}


def test_three_who_ask_at_once_are_one(shim, agent, logind, client, server, runtime):
    """An operator, a taint and the shutdown, each with a grace of its own: one StopContainer, with the shortest."""
    container = run(client, server, "web", 0, device=True, grace=50)
    wait_known(shim, 1)
    [held] = ctl_json(shim, "allocations")["items"]
    gate = threading.Event()

    def answer(call):
        assert gate.wait(GENEROUS_S)
        return runtime.state.answer(call)

    runtime.on("ListContainers", answer)  # what runs is not known before all have asked
    logind.begin()
    wait_until(lambda: asked(shim) == ["shutdown"], "the shutdown asks")
    ctl_json(shim, "end", "web", "--here", "--grace", "10s")
    ctl_json(shim, "taint", NULL, held["ids"][0], "example.com/broken:NoExecute")
    wait_until(lambda: asked(shim) == ["eviction", "operator", "shutdown"], "all have asked")
    gate.set()
    logind.wait_released()
    wait_state(shim, "over")
    assert stops(runtime) == [(container, 10)]


def asked(shim):
    return sorted(ask["by"] for one in ctl_json(shim, "endings")["items"] for ask in one["asked"])
