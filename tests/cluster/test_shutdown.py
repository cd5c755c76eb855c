"""The machine goes down, by a real systemd-logind, on a node whose kubelet does not end its pods then
(shutdownGracePeriod is 0, as by default)."""

import pytest

import real_logind
from cluster import GPU, PLUGINS
from kube_node import AGENT, CONTAINERD, DAEMON, KUBELET
from kube_pods import container, pod

pytestmark = pytest.mark.skipif(not real_logind.is_there(), reason="no systemd-logind, or no dbus-daemon")

CONFIG = """[cluster]
enabled = true
[shutdown]
grace = "50s"
critical_grace = "20s"
"""
LOCK = ("cri-device-shim", "delay")
CRITICAL = {"priorityClassName": "system-node-critical"}


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    return cluster_of(PLUGINS, config=CONFIG, logind=True)


def shutdown(cluster):
    return cluster.node.ctl_json("status")["shutdown"]


def told(cluster):
    """The pods whose containers were told to end, in turn."""
    return [line.split()[0] for line in cluster.node.held("told")]


@pytest.mark.parametrize("unit", [None, AGENT, DAEMON, KUBELET, CONTAINERD])
def test_pods_end_by_priority(cluster, unit):
    """Whoever is killed meanwhile: critical ones last, each container once, none is made any more;
    no pod fails, and after the boot all run, each with the device that it had."""
    cluster.wait(lambda: LOCK in real_logind.locks(cluster.node), "the shutdown is delayed")
    deaf = pod("deaf", container("main", {GPU: 1}, deaf=True), grace_s=5)
    cluster.create(deaf)  # the others' group is not over before
    cluster.create(pod("critical", container("main", {GPU: 1}), **CRITICAL))
    for name in ("web", "plain"):
        cluster.create(pod(name, container("main", {GPU: 1} if name == "web" else None)))
    names = ["deaf", "critical", "web", "plain"]
    cluster.wait_running(*names)
    cluster.wait(lambda: shutdown(cluster)["knownPods"] == len(names), "their priorities are known")
    given = {name: cluster.devices_of(name) for name in names}
    before = len(told(cluster))
    cluster.node.run("systemctl", "poweroff")
    cluster.create(pod("late", container("main", {GPU: 1})))
    if unit:
        cluster.node.kill(unit)
    cluster.node.wait_off()
    ended = told(cluster)[before:]
    assert sorted(ended[:2]) == ["plain", "web"] and ended[2:] == ["critical"]
    assert {name: cluster.devices_of(name) for name in names} == given
    assert cluster.devices_of("late") == []
    cluster.node.start()
    cluster.wait_running("late", *names)
    assert {name: cluster.devices_of(name) for name in names} == {
        name: devices * 2 for name, devices in given.items()}


def test_sidecars_end_behind_the_others(cluster):
    """The last of them first, as a kubelet ends them; they run again after the boot."""
    cluster.wait(lambda: LOCK in real_logind.locks(cluster.node), "the shutdown is delayed")
    sidecars = [container(name, sidecar=True) for name in ("proxy", "logs")]
    cluster.create(pod("web", container("main", {GPU: 1}), init=sidecars, grace_s=20))
    cluster.wait_running("web")
    cluster.wait(lambda: shutdown(cluster)["knownPods"] == 1, "its priority is known")
    before = len(told(cluster))
    cluster.node.run("systemctl", "poweroff")
    cluster.node.wait_off()
    ended = [line.split()[2] for line in cluster.node.held("told")[before:]]
    assert ended == ["main", "logs", "proxy"]
    cluster.node.start()
    cluster.wait_running("web")
