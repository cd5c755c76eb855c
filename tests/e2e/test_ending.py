"""Real containers that are ended by cri-device-shimctl end, and kept from coming back."""

import grpc
import pytest

from asking import refused
from ctl import ctl
from protos import cri

# Each says when it is told to end; one does, one does not.
ENDS = ["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"]
DOES_NOT = ["sh", "-c", "trap 'echo told >> /told' TERM; while :; do sleep 0.1; done"]


@pytest.fixture
def web(shim, client):
    shim.wait_control()
    pod = client.run_pod("web")
    return pod, client.run(pod, "ends", ENDS), client.run(pod, "stays", DOES_NOT)


def end(shim, *arguments):
    done = ctl(shim, "end", *arguments)
    assert done.returncode == 0, done


def status(client, container):
    return client.ContainerStatus(container_id=container).status


def lived_s(client, container, since):
    return (status(client, container).finished_at - since) / 1e9


def test_each_ends_with_its_grace_and_none_comes_back(shim, client, web):
    pod, ends, stays = web
    other = client.run(client.run_pod("other"), "app", DOES_NOT)
    end(shim, "web", "--grace", "3s", "--reason", "tired")
    client.wait_exit(stays)
    assert status(client, ends).exit_code == 3  # by itself, when it was told
    assert status(client, stays).exit_code == 137  # SIGKILL, when its time was over
    assert lived_s(client, stays, status(client, ends).finished_at) > 1.5
    assert status(client, other).state == cri.CONTAINER_RUNNING
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "by the operator: tired"):
        client.create(pod, "ends", ENDS, attempt=1)
    shim.kill()
    shim.start()
    shim.wait_control()
    client.reconnect()
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "by the operator: tired"):
        client.create(pod, "ends", ENDS, attempt=1)
    end(shim, "--cancel", "web")
    again = client.run(pod, "ends", ENDS, attempt=1)
    assert status(client, again).state == cri.CONTAINER_RUNNING


def test_a_stop_under_way_ends_with_the_shorter_grace(shim, client, web):
    """Two stops of one container go on beside each other in the runtime; the first to run out kills."""
    _pod, ends, stays = web
    end(shim, "web", "--grace", "20m")
    client.wait_exit(ends)  # it was told
    end(shim, "web", "--grace", "2s")
    client.wait_exit(stays)
    assert status(client, stays).exit_code == 137


def test_a_daemon_that_is_killed_goes_on_with_it(shim, client, web):
    """The runtime gives a stop up whose client is gone: the next daemon's has what is left of the grace."""
    _pod, ends, stays = web
    end(shim, "web", "--grace", "4s")
    client.wait_exit(ends)
    shim.kill()
    shim.start()
    client.reconnect()
    client.wait_exit(stays)
    assert status(client, stays).exit_code == 137
