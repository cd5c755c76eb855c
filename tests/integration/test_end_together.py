"""Pods that several want to end at once, and a kubelet that does what it does meanwhile."""

import threading

import grpc
import pytest

from asking import by_token, refused
from ctl import ctl, ctl_json
from protos import cri
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
BROKEN = "example.com/broken"
GRACE = "io.kubernetes.pod.terminationGracePeriod"
STATIC = {"kubernetes.io/config.source": "file"}


@pytest.fixture
def hold(runtime):
    """hold(method): the runtime does not answer it until the event that is returned is set."""
    gates = []

    def begin(method):
        gate = threading.Event()

        def answer(call):
            assert gate.wait(GENEROUS_S)
            return runtime.state.answer(call)

        gates.append(gate)
        runtime.on(method, answer)
        return gate

    yield begin
    for gate in gates:
        gate.set()


@pytest.fixture
def shim(runtime, make_shim, directory):
    """It may have an agent, and does without."""
    return make_shim(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})


@pytest.fixture
def web(at_work, client, make_plugin):
    """A static pod, which is ended here with an agent and without, with 45 s for its containers; one of them has g0."""
    make_plugin(at_work, GPU, ["g0", "g1"])
    pod = client.run_pod("web", annotations=STATIC)
    containers = [client.run(pod, "main", annotations={GRACE: "45", **by_token(GPU, "g0")}),
                  client.run(pod, "side", annotations={GRACE: "45"})]
    client.run(client.run_pod("other", annotations=STATIC), "main", annotations={GRACE: "45", **by_token(GPU, "g1")})
    return pod, containers


def stop(container):
    """As the kubelet asks for it."""
    return cri.StopContainerRequest(container_id=container, timeout=45)


def stops(runtime):
    return sorted((call.parsed().container_id, call.parsed().timeout) for call in runtime.calls_of("StopContainer"))


def of_ours(shim):
    return [(one["kind"], one["pod"], one["reason"], one["times"]) for one in ctl_json(shim, "events")["items"]
            if one["kind"] in ("ending", "ended")]


def ended(shim):
    wait_until(lambda: ("ended", "web", "stopped", 1) in of_ours(shim), "it has ended, and that is told once")


def end(shim, *arguments):
    done = ctl(shim, "end", "web", *arguments)
    assert done.returncode == 0, done


def taint(shim):
    ctl_json(shim, "taint", GPU, "g0", f"{BROKEN}:NoExecute")


def test_who_asks_at_once_is_one(at_work, web, runtime, client, hold):
    """An operator twice, and a taint, with three graces: one StopContainer for each container, with the shortest; each
    of both is told."""
    _pod, containers = web
    lists = hold("ListContainers")
    end(at_work, "--grace", "30s")
    taint(at_work)
    end(at_work, "--grace", "10s")
    lists.set()
    ended(at_work)
    assert stops(runtime) == sorted((one, 10) for one in containers)
    assert {("ending", "web", "operator", 2), ("ending", "web", "eviction", 1)} < set(of_ours(at_work))
    # One of them wants it no more: the other does.
    end(at_work, "--cancel")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "by eviction"):
        client.create(web[0], "side", attempt=1)
    ctl_json(at_work, "untaint", GPU, "g0", BROKEN)
    client.run(web[0], "side", attempt=1)


@pytest.mark.parametrize("restart", ["daemon", "bridge", "agent", "all"])
def test_over_restarts_it_is_one(at_work, web, runtime, hold, bridge, agent, server, restart):
    """Whatever is started anew after it was asked for, and before the runtime has said what runs."""
    pod, containers = web
    server.put("pods", {"metadata": {"namespace": "default", "name": "web", "uid": "the-mirrors",
                                     "annotations": {"kubernetes.io/config.mirror": pod.uid}},
                        "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}})
    processes = {"daemon": [at_work], "bridge": [bridge], "agent": [agent], "all": [at_work, bridge, agent]}[restart]
    lists = hold("ListContainers")
    end(at_work, "--grace", "30s")
    taint(at_work)
    end(at_work, "--grace", "10s")
    for one in processes:
        one.kill()
    for one in processes:
        one.start()
    at_work.wait_control()
    lists.set()
    ended(at_work)
    assert [container for container, _grace in stops(runtime)] == sorted(containers)
    assert {grace for _container, grace in stops(runtime)} == {10}


def test_the_kubelet_s_stop_before(at_work, web, runtime, client, hold, background):
    """Its own, with the pod's grace, runs out as it would; ours has less, and goes beside it."""
    pod, (main, side) = web
    gate = hold("StopContainer")
    theirs = background.submit(client.StopContainer, stop(main))
    runtime.wait_calls("StopContainer", 1)
    end(at_work, "--grace", "5s")
    runtime.wait_calls("StopContainer", 3)
    assert stops(runtime) == sorted([(main, 45), (main, 5), (side, 5)])
    gate.set()
    theirs.result(GENEROUS_S)
    ended(at_work)
    client.StopPodSandbox(pod_sandbox_id=pod.id)


def test_the_kubelet_s_stop_meanwhile(at_work, web, runtime, client, hold, background):
    """It passes, and so does that of the sandbox, with which all has ended; that is told once."""
    pod, (main, side) = web
    gate = hold("StopContainer")
    end(at_work, "--grace", "60m")
    runtime.wait_calls("StopContainer", 2)
    theirs = background.submit(client.StopContainer, stop(main))
    runtime.wait_calls("StopContainer", 3)
    client.StopPodSandbox(pod_sandbox_id=pod.id)
    gate.set()
    theirs.result(GENEROUS_S)
    ended(at_work)
    assert stops(runtime) == sorted([(main, 3600), (main, 45), (side, 3600)])


def test_the_kubelet_s_stop_after(at_work, web, runtime, client):
    """All that it does for a pod's end passes; with the pod it is forgotten."""
    pod, containers = web
    end(at_work, "--grace", "5s")
    ended(at_work)
    for container in containers:
        client.StopContainer(stop(container))
    client.StopPodSandbox(pod_sandbox_id=pod.id)
    for container in containers:
        client.RemoveContainer(container_id=container)
    client.RemovePodSandbox(pod_sandbox_id=pod.id)
    wait_until(lambda: ctl(at_work, "end", "--cancel", "web").returncode == 3, "it is forgotten")
    assert pod.id not in runtime.state.pods


def test_a_new_sandbox_and_a_new_kubelet(at_work, web, runtime, client):
    """A sandbox that died is stopped, and no other is run while the taint is there, whichever kubelet tries; then one is."""
    pod, _containers = web
    taint(at_work)
    ended(at_work)
    runtime.state.pods[pod.id].state = cri.SANDBOX_NOTREADY
    for _kubelet in range(2):
        client.reconnect()
        client.Version(version="")
        client.StopPodSandbox(pod_sandbox_id=pod.id)
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "by eviction", BROKEN):
            client.run_pod("web", uid=pod.uid, attempt=1, annotations=STATIC)
    ctl_json(at_work, "untaint", GPU, "g0", BROKEN)
    again = client.run_pod("web", uid=pod.uid, attempt=1, annotations=STATIC)
    client.run(again, "main", annotations=by_token(GPU, "g0"))
