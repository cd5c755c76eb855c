"""How pods ask for devices, and how a test looks at what came of it."""

import contextlib
import json
import uuid

import grpc
import pytest

from waiting import wait_until

_PREFIX = "devices.cri-device-shim/"


def by_annotation(container, request):
    """Pod annotations: the shim chooses the devices for a `request` like "vendor.com/gpu=2"."""
    return {_PREFIX + container: request}


def by_token(resource, *ids):
    """Container annotations as the bridge has the kubelet send them: the ids are chosen already."""
    token = json.dumps({"resource": resource, "ids": list(ids)})
    return {_PREFIX + resource.replace("/", "_"): token}


@contextlib.contextmanager
def refused(code, *words):
    """The block's call must be refused with this code, and a message with all these words."""
    with pytest.raises(grpc.RpcError) as caught:
        yield caught
    error = caught.value
    assert (error.code(), error.details()) == (code, error.details()), error.details()
    for word in words:
        assert word in error.details(), f"{word!r} is not in {error.details()!r}"


def envs(config):
    """A ContainerConfig's environment as the runtime sees it: of equal keys the later wins."""
    return {one.key: one.value.decode() for one in config.envs}


def outcome(client, path, request=b"", **options):
    """All that a client sees of a unary call: answer, code, text, initial metadata and trailers."""
    try:
        answer, call = client.unary(path, request, **options)
    except grpc.RpcError as error:
        answer, call = None, error
    return (answer, call.code(), call.details(), tuple(call.initial_metadata()),
            tuple(call.trailing_metadata()))


def refused_once_known(client, config, name="main"):
    """(pod, error) of the first new pod whose container with this config is refused: what that hangs on comes
    to be known at some time."""
    def attempt():
        pod = client.run_pod(f"web-{uuid.uuid4().hex[:8]}")
        try:
            client.create(pod, name, **config)
        except grpc.RpcError as error:
            return pod, error
        client.StopPodSandbox(pod_sandbox_id=pod.id)
        return None

    return wait_until(attempt, "it is refused")
