"""DRA drivers that are away for long, on a whole node: what goes on without them, what waits, and what comes of that when
they are back."""

import time

import pytest

from claims_node import GPU, NIC, ClaimsNode
from telling import tell
from waiting import wait_until

BACK_S = 2  # from a driver's start until what waited for it is done, at most


@pytest.fixture
def node(directory, closing):
    one = closing(ClaimsNode(directory / "n"))
    one.start()
    return one


def come(node, *drivers):
    return node.come([node.claim(*drivers)])


def settle(node):
    assert node.settle() == []


def restart_containers(node, pods):
    """Each ends by itself, and comes again with all of its devices."""
    before = {pod.uid: set(node.runtime.running_in(pod.uid)) for pod in pods}
    for pod in pods:
        assert node.runtime.finish(pod.uid, "main", 1)
    wait_until(lambda: all(node.is_running(pod) and not before[pod.uid] & set(node.runtime.running_in(pod.uid))
                           for pod in pods), "they run again")


@pytest.mark.alone
def test_drivers_that_are_away(request, node):
    """Containers of pods whose claims are prepared start again; a pod that is deleted ends, if its devices are this
    node's own. All else waits in its call, which ends with the driver's return: none fails, after which the kubelet
    would try again more than a minute later."""
    stays, goes, waits = come(node, GPU, NIC), come(node, GPU), come(node, NIC)
    settle(node)
    node.kubelet.failures.clear()
    node.down("driver")
    restart_containers(node, [stays, goes, waits])
    node.kubelet.delete_pod(goes)
    wait_until(lambda: goes.gone, "the pod has ended without its driver")
    node.kubelet.delete_pod(waits)
    new = come(node, GPU)
    wait_until(lambda: sorted(node.kubelet.asking) == [("NodePrepareResources", GPU), ("NodeUnprepareResources", NIC)],
               "both wait in their calls")
    restart_containers(node, [stays])
    assert not waits.gone and sorted(node.books[GPU].prepared) == sorted(
        one.uid for pod in (stays, goes) for one in pod.claims), "it has not been told yet"
    began = time.monotonic()
    node.up("driver")
    wait_until(lambda: node.is_running(new) and waits.gone, "what waited is done")
    seconds = time.monotonic() - began
    settle(node)
    assert not node.kubelet.failures and seconds <= BACK_S
    tell(request, f"what waited for a DRA driver was done {seconds * 1000:.0f} ms after it was started")


def test_a_driver_that_is_away_in_a_reboot(node):
    """Its files of CDI are gone, and with them what a container could be started with: pods wait until it is back."""
    pods = [come(node, GPU), come(node, GPU, NIC)]
    settle(node)
    order = [part for part in node.parts if part != "driver"]
    node.reboot("KILL", order, lambda: None)
    wait_until(lambda: ("NodePrepareResources", GPU) in node.kubelet.asking or node.kubelet.failures,
               "the kubelet has asked for them")
    assert not any(node.runtime.running_in(pod.uid) for pod in pods)
    node.up("driver")
    settle(node)


def test_one_that_is_deleted_by_force_while_its_driver_is_away(node):
    """Its device goes to the next pod, which gets it after the driver was told to give it back."""
    pod = come(node, GPU)
    settle(node)
    node.down("driver")
    node.kubelet.delete_pod(pod, force=True)
    wait_until(lambda: pod.gone and not node.kubelet.entries(), "the kubelet has given it up")
    new = come(node, GPU)
    assert node.allocations[new.claims[0].uid, GPU] == node.allocations[pod.claims[0].uid, GPU]
    wait_until(lambda: node.kubelet.asking == [("NodePrepareResources", GPU)], "it waits for the driver")
    node.up("driver")
    settle(node)
