"""What happens behind the shim's back: told by the runtime's events, or seen in its lists."""

import queue

import grpc
import pytest

from asking import by_annotation, by_token, refused
from protos import cri
from runtime import Reply
from waiting import wait_until

GPU = "vendor.com/gpu"


class Feed:
    """The GetContainerEvents stream of a runtime that has it, for the shim alone."""

    def __init__(self, runtime):
        self._queue = queue.SimpleQueue()
        runtime.on("GetContainerEvents", lambda call: Reply(iter(self._queue.get, None)))

    def send(self, kind, container_id, sandbox_id):
        event = cri.ContainerEventResponse(
            container_id=container_id,
            container_event_type=cri.ContainerEventType.Value(f"CONTAINER_{kind}_EVENT"))
        event.pod_sandbox_status.id = sandbox_id
        self._queue.put(event.SerializeToString())

    def close(self):
        self._queue.put(None)


@pytest.fixture
def feed(runtime, closing):
    """Ask for it before the shim."""
    return closing(Feed(runtime))


@pytest.fixture
def gpu(shim, make_plugin):
    return make_plugin(shim, GPU, ["g0", "g1"])


@pytest.fixture
def directly(runtime, make_client):
    """Another client of the runtime."""
    return make_client(runtime)


def created(client, pod):
    try:
        return client.create(pod, "app")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        return None


def test_pod_removed_behind_our_back(runtime, feed, shim, client, directly, gpu):
    """A pod that another client removes: the event leads to a list, and its devices are free."""
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=2"))
    container = client.run(pod, "app")
    runtime.wait_calls("GetContainerEvents")
    directly.remove_pod(pod.id)
    feed.send("DELETED", container, pod.id)
    feed.send("DELETED", pod.id, pod.id)
    shim.wait_log("1 pods are gone")
    other = client.run_pod("other", annotations=by_annotation("app", f"{GPU}=2"))
    assert client.create(other, "app")
    assert len(runtime.calls_of("GetContainerEvents")) == 1


def test_container_made_behind_our_back(runtime, feed, shim, client, directly, gpu):
    """A container that another client makes with a token: the event leads to a list, and nobody
    else gets its device while it runs."""
    runtime.wait_calls("GetContainerEvents")
    pod = directly.run_pod("foreign")
    container = directly.run(pod, "app", annotations=by_token(GPU, "g1"))
    feed.send("CREATED", container, pod.id)
    shim.wait_log("(1 of them rebuilt from containers)")
    mine = client.run_pod("mine")
    with refused(grpc.StatusCode.UNAVAILABLE, "g1", "foreign"):
        client.create(mine, "app", annotations=by_token(GPU, "g1"))
    assert client.create(mine, "app", annotations=by_token(GPU, "g0"))


def test_container_that_exits(runtime, feed, shim, client, directly, gpu):
    """A container that exits holds its device no longer once its pod is over too, though no call
    of either passed the shim."""
    runtime.wait_calls("GetContainerEvents")
    pod = client.run_pod("web")
    container = client.run(pod, "app", annotations=by_token(GPU, "g0"))
    directly.StopContainer(container_id=container)
    feed.send("STOPPED", container, pod.id)
    directly.StopPodSandbox(pod_sandbox_id=pod.id)
    feed.send("STOPPED", pod.id, pod.id)
    other = client.run_pod("other")
    assert wait_until(lambda: _taken(client, other), "the device is free")


def _taken(client, pod):
    try:
        return client.create(pod, "app", annotations=by_token(GPU, "g0"))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        return None


def test_runtime_without_events(runtime, shim, client, directly, gpu):
    """A runtime that has no events (containerd 1.6) is listed every 10 s, and that is said once."""
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=2"))
    client.run(pod, "app")
    shim.wait_log(": no container events (UNIMPLEMENTED: unknown method GetContainerEvents); "
                  "it is listed every 10 s")
    directly.remove_pod(pod.id)
    shim.wait_log("1 pods are gone")
    other = client.run_pod("other", annotations=by_annotation("app", f"{GPU}=2"))
    assert wait_until(lambda: created(client, other), "the devices are free")
    assert shim.log().count(": no container events") == 1
    assert len(runtime.calls_of("GetContainerEvents")) == 1
