"""A daemon of a release to come with a bridge of this one, and the other way round: the feed between them
says more than one of them knows (tests/points/feed_next.c)."""

import pytest

from bare_kubelet import BareKubelet
from bridge_process import BINARY as BRIDGE_BINARY
from bridge_process import Bridge
from feed import Feed
from feed_server import FeedServer, Shown
from node import Node
from shim import BINARY

GPU = "vendor.com/gpu"
MORE = b"\7to come"
OTHER = BINARY.parents[1] / "tests/points/cri-device-shim-points"
OTHER_BRIDGE = OTHER.with_name("cri-device-shim-bridge-points")


def says_more(message):
    """What is not known is kept, and written again behind all else."""
    return message.SerializeToString().endswith(MORE)


def test_the_other_daemon_says_more(runtime, directory, make_plugin, make_shim, closing):
    shim = make_shim(start=False)
    shim.binary = OTHER
    shim.start()
    make_plugin(shim, GPU, {"g0": True, "g1": False})
    feed = closing(Feed(shim.feed))
    watcher = closing(feed.watch(takes_changes=True))
    watcher.wait(lambda shown: GPU in shown)
    message = watcher.messages[-1]
    (resource,) = message.resources
    assert all(map(says_more, (message, message.settings, resource, resource.list,
                               *resource.list.devices)))
    assert watcher.shown[GPU].health() == {"g0": True, "g1": False}


def test_the_other_bridge_says_more(directory, closing):
    feed = closing(FeedServer(directory / "run" / "bridge.sock"))
    feed.start()
    closing(BareKubelet(directory / "device-plugins")).start()
    bridge = closing(Bridge(directory))
    bridge.binary = OTHER_BRIDGE
    bridge.start()
    feed.show({GPU: Shown(["g0"])})
    feed.wait_report(GPU, lambda report: report.registered)
    report = feed.reports[-1]
    assert all(map(says_more, (feed.requests[-1], report, *report.resources)))


PROGRAMS = {"daemon": (BINARY, OTHER), "bridge": (BRIDGE_BINARY, OTHER_BRIDGE)}


@pytest.fixture(params=["daemon", "bridge"])
def node(directory, closing, request):
    """One of the two is of the other release."""
    one = Node(directory, {GPU: ["gpu0", "gpu1", "gpu2"]}, store=True)
    setattr(getattr(one, request.param), "binary", PROGRAMS[request.param][1])
    closing(one).start()
    return one


def runs(node, name):
    pod = node.kubelet.add_pod(name, {GPU: 1})
    node.kubelet.wait_phase(pod)
    return pod


def test_they_work_together(node):
    """Pods come and go, and each is replaced by the other release."""
    runs(node, "first")
    for turn in range(2):
        for part, programs in PROGRAMS.items():
            program = getattr(node, part)
            program.binary = programs[program.binary == programs[0]]
            node.down(part)
            node.up(part)
            pod = runs(node, f"{part}{turn}")
            node.kubelet.delete_pod(pod)
            node.kubelet.wait_gone(pod)
    assert not node.violations + node.check_running()
