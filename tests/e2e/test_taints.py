"""Taints of devices in real containers, without an agent: who has one ends with its grace, and is not made with it again
before the taint is gone."""

import grpc
import pytest

from asking import by_token, refused
from ctl import ctl_json
from protos import cri
from waiting import wait_until

GPU = "vendor.com/gpu"
BROKEN = "example.com/broken"
# Each says when it is told to end; one does, one does not.
ENDS = ["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"]
DOES_NOT = ["sh", "-c", "trap 'echo told >> /told' TERM; while :; do sleep 0.1; done"]


def grace():
    """What the kubelet writes on each container of a pod with terminationGracePeriodSeconds: 6."""
    return {"io.kubernetes.pod.terminationGracePeriod": "6"}


def holding(device):
    return {**grace(), **by_token(GPU, device)}


def made_again(client, pod, name):
    """The container, as soon as its device may be had: that is known once the untaint, or the plugin's word, has come."""
    def make():
        try:
            return client.run(pod, name, ENDS, attempt=1, annotations=holding("g0"))
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE), error
            return None

    return wait_until(make, "it is made again")


def status(client, container):
    return client.ContainerStatus(container_id=container).status


@pytest.fixture
def plugin(shim, make_plugin):
    shim.wait_control()
    return make_plugin(shim, GPU, ["g0", "g1"])


def test_who_has_it_ends_with_its_grace_and_stays_away(shim, client, plugin):
    pod, other = client.run_pod("web"), client.run_pod("other")
    ends = client.run(pod, "ends", ENDS, annotations=holding("g0"))
    stays = client.run(pod, "stays", DOES_NOT, annotations=grace())  # it has none itself
    bystander = client.run(other, "app", DOES_NOT, annotations=holding("g1"))
    ctl_json(shim, "taint", GPU, "g0", f"{BROKEN}:NoExecute", "--reason", "smoke")
    client.wait_exit(stays)
    assert status(client, ends).exit_code == 3  # by itself, when it was told
    assert status(client, stays).exit_code == 137  # SIGKILL, when its time was over
    assert (status(client, stays).finished_at - status(client, ends).finished_at) / 1e9 > 1.5
    assert status(client, bystander).state == cri.CONTAINER_RUNNING
    for _life in range(2):  # as a kubelet would, over and over, also after a restart of the daemon
        with refused(grpc.StatusCode.FAILED_PRECONDITION, f"is tainted {BROKEN}:NoExecute: smoke"):
            client.create(pod, "ends", ENDS, attempt=1, annotations=holding("g0"))
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "the pod is ended on this node, by eviction"):
            client.create(pod, "stays", ENDS, attempt=1, annotations=grace())
        shim.kill()
        shim.start()
        shim.wait_control()
        client.reconnect()
    ctl_json(shim, "untaint", GPU, "g0", BROKEN)
    assert status(client, made_again(client, pod, "ends")).state == cri.CONTAINER_RUNNING


@pytest.fixture
def impatient(make_shim, direct):
    shim = make_shim(plugins={"hold": "300ms", "grace": "1m", "taint_unhealthy_after": "100ms"})
    shim.wait_control()
    return shim


def test_an_unhealthy_device_moves_its_pods_on(impatient, make_client, make_plugin):
    """By the plugin's word alone; when it says that the device is well again, it may be had again."""
    client, plugin = make_client(impatient), make_plugin(impatient, GPU, ["g0", "g1", "g2", "g3"])
    pod = client.run_pod("web")
    ends = client.run(pod, "app", ENDS, annotations=holding("g0"))
    bystander = client.run(client.run_pod("other"), "app", ENDS, annotations=holding("g1"))
    plugin.set_devices({"g0": False, "g1": True, "g2": True, "g3": True})
    assert client.wait_exit(ends).exit_code == 3
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "the pod is ended on this node, by eviction"):
        client.create(pod, "app", ENDS, attempt=1, annotations=holding("g0"))
    assert status(client, bystander).state == cri.CONTAINER_RUNNING
    plugin.set_devices(["g0", "g1", "g2", "g3"])
    assert status(client, made_again(client, pod, "app")).state == cri.CONTAINER_RUNNING
