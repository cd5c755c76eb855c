"""cri-device-shimctl end: pods that are ended from here, and kept from coming back."""

import threading

import grpc
import pytest

from asking import by_token, refused
from ctl import checked, ctl, ctl_json
from protos import cri
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
GRACE = "io.kubernetes.pod.terminationGracePeriod"


class Held:
    """A runtime's method that does not answer until it is let go."""

    def __init__(self, runtime, method):
        self.runtime, self.method = runtime, method
        self.gate = threading.Event()
        runtime.on(method, self._answer)

    def _answer(self, call):
        assert self.gate.wait(GENEROUS_S)
        return self.runtime.state.answer(call)

    def let_go(self):
        self.runtime.on(self.method)
        self.gate.set()


@pytest.fixture
def held(runtime):
    """held(method); all are let go in the end."""
    made = []

    def hold(method):
        made.append(Held(runtime, method))
        return made[-1]

    yield hold
    for one in made:
        one.let_go()


@pytest.fixture
def web(at_work, client):
    """Pod "web" with two containers that run, and pod "other"."""
    pod = client.run_pod("web")
    containers = [client.run(pod, name, annotations={GRACE: "45"}) for name in ("main", "side")]
    client.run(client.run_pod("other"), "main")
    return pod, containers


def stops(runtime):
    return sorted((call.parsed().container_id, call.parsed().timeout) for call in runtime.calls_of("StopContainer"))


def events(shim):
    return [(one["kind"], one["pod"], one["reason"], one["times"])
            for one in ctl_json(shim, "events")["items"] if one["kind"] in ("ending", "ended")]


def kept(shim):
    """What the checkpoint has of it."""
    document = checked("checkpoint-export", ctl(shim, "checkpoint", "export").stdout)
    return [(one["name"], one["state"]) for one in document["endings"]]


def ended(shim):
    wait_until(lambda: ("ended", "web", "stopped", 1) in events(shim), "it has ended, and is told")


def test_its_containers_are_stopped_and_none_comes_back(at_work, web, runtime, client):
    pod, containers = web
    told = ctl_json(at_work, "end", "default/web", "--reason", "tired")
    assert told["pod"] == "default/web" and told["cancelled"] is False
    runtime.wait_calls("StopContainer", 2)
    assert stops(runtime) == sorted((one, 45) for one in containers)  # the pod's own grace
    ended(at_work)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "the pod is ended on this node, by the operator: tired"):
        client.create(pod, "main", attempt=1)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "by the operator: tired"):
        client.create(pod, "side", attempt=1, annotations=by_token(GPU, "g0"))
    assert runtime.calls_of("RemoveContainer") == runtime.calls_of("StopPodSandbox") == []
    why = ctl(at_work, "why", "web").stdout
    assert "pod-ended" in why and "end --cancel" in why
    told = ctl(at_work, "end", "--cancel", "web")
    assert told.stdout == 'pod "default/web": its containers may be made again\n'
    client.run(pod, "main", attempt=1)
    assert ctl(at_work, "end", "--cancel", "web").returncode == 3


def test_no_new_sandbox_of_it_is_run(at_work, web, runtime, client):
    """On connections that were there before, and others; of other pods they are, and then of this one again."""
    pod, _containers = web
    assert ctl(at_work, "end", "web", "--reason", "tired").returncode == 0
    for name in ("before", "another"):
        with refused(grpc.StatusCode.FAILED_PRECONDITION, 'sandbox of pod "default/web": the pod is ended on this node'):
            client.run_pod("web", uid=pod.uid, attempt=1)
        client.run_pod(name)
        client.reconnect()
    assert ctl(at_work, "end", "--cancel", "web").returncode == 0
    again = client.run_pod("web", uid=pod.uid, attempt=1)
    client.run(again, "main")
    assert [call.parsed().config.metadata.name for call in runtime.calls_of("RunPodSandbox")] == [
        "web", "other", "before", "another", "web"]


def test_three_ask_at_once(at_work, web, runtime, held, background):
    """One StopContainer for each container, with the shortest grace; each is answered, once."""
    _pod, containers = web
    lists = held("ListContainers")
    asked = [background.submit(ctl, at_work, "end", "web", "--grace", grace) for grace in ("30s", "10s", "20s")]
    done = [one.result(GENEROUS_S) for one in asked]
    assert [one.returncode for one in done] == [0, 0, 0]
    assert all(one.stdout.startswith('pod "default/web": ') for one in done)
    lists.let_go()
    ended(at_work)
    assert stops(runtime) == sorted((one, 10) for one in containers)
    assert ("ending", "web", "operator", 3) in events(at_work)


def test_a_stop_under_way_is_told_the_shorter_grace(at_work, web, runtime, held):
    stopping = held("StopContainer")
    assert ctl(at_work, "end", "web", "--grace", "10m").returncode == 0
    runtime.wait_calls("StopContainer", 2)
    assert ctl(at_work, "end", "web", "--grace", "20m").returncode == 0  # takes no effect
    assert ctl(at_work, "end", "web", "--grace", "5s").returncode == 0
    runtime.wait_calls("StopContainer", 4)
    assert sorted(grace for _container, grace in stops(runtime)) == [5, 5, 600, 600]
    stopping.let_go()
    ended(at_work)
    assert len(stops(runtime)) == 4


def test_it_goes_on_over_restarts(at_work, web, runtime, client, held):
    """With what is left of the grace; told once."""
    shim = at_work
    stopping = held("StopContainer")
    assert ctl(shim, "end", "web", "--grace", "60m").returncode == 0
    runtime.wait_calls("StopContainer", 2)
    shim.kill()
    shim.start()
    shim.wait_control()
    runtime.wait_calls("StopContainer", 4)
    assert all(3000 < grace <= 3600 for _container, grace in stops(runtime))
    stopping.let_go()
    ended(shim)
    shim.kill()
    shim.start()
    shim.wait_control()
    client.reconnect()
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "the pod is ended on this node"):
        client.create(web[0], "main", attempt=1)
    assert events(shim) == [("ending", "web", "operator", 1), ("ended", "web", "stopped", 1)]
    assert kept(shim) == [("web", "stopped")]


def test_a_runtime_that_is_away_is_waited_for(at_work, web, runtime):
    _pod, containers = web
    runtime.stop()
    assert ctl(at_work, "end", "web").returncode == 0
    runtime.start()
    ended(at_work)
    assert stops(runtime) == sorted((one, 45) for one in containers)
    states = runtime.state.containers
    assert [states[one].state for one in containers] == [cri.CONTAINER_EXITED] * 2


def test_a_pod_whose_sandbox_is_dead(at_work, web, runtime):
    pod, _containers = web
    runtime.state.pods[pod.id].state = cri.SANDBOX_NOTREADY
    assert ctl(at_work, "end", pod.uid).returncode == 0
    ended(at_work)


def test_one_that_was_in_the_making(at_work, web, runtime, client, held, background):
    """The runtime had its CreateContainer already: it is stopped when it is there."""
    pod, _containers = web
    making = held("CreateContainer")
    late = background.submit(client.create, pod, "late")
    runtime.wait_calls("CreateContainer", 4)
    assert ctl(at_work, "end", "web", "--grace", "7s").returncode == 0
    ended(at_work)
    making.let_go()
    container = late.result(GENEROUS_S)
    client.StartContainer(container_id=container)
    runtime.wait_calls("StopContainer", 3)
    wait_until(lambda: runtime.state.containers[container].state == cri.CONTAINER_EXITED, "it is stopped")
    assert events(at_work) == [("ending", "web", "operator", 1), ("ended", "web", "stopped", 1)]


def test_a_pod_that_is_gone_is_forgotten(at_work, web, client):
    pod, _containers = web
    assert ctl(at_work, "end", "web").returncode == 0
    ended(at_work)
    client.remove_pod(pod.id)
    wait_until(lambda: kept(at_work) == [], "it is forgotten")


@pytest.mark.parametrize("arguments, status, words", [
    (["nobody"], 3, "the runtime knows no such pod"),
    (["--cancel", "web"], 3, "no operator has asked for such a pod to end"),
    (["web", "--grace", "0s"], 2, "--grace is no duration"),
    (["web", "--grace", "soon"], 2, "--grace is no duration"),
    (["web", "--cancel", "--reason", "x"], 2, "--cancel goes with none of"),
    (["web", "--reason", "x" * 257], 2, "the reason is too long"),
    ([], 2, "an argument is missing: POD"),
])
def test_what_makes_no_sense_is_said(at_work, web, runtime, arguments, status, words):
    done = ctl(at_work, "end", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert stops(runtime) == [] and events(at_work) == []
