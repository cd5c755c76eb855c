"""Pods that are ended beside the kubelet, without an agent: their containers end, and do not come
back before that is taken back. The kubelet makes them anew as if they had ended by themselves."""

import pytest

from cluster import GPU, ONE, PLUGINS
from kube_node import BRIDGE, CONTAINERD, DAEMON, KUBELET
from kube_pods import container, pod

BROKEN = "example.com/broken"
ENDED = "the pod is ended on this node"


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    """A kubelet that has just started is shown what is not so for a short time only."""
    return cluster_of(PLUGINS, config='[bridge]\nmask = "5s"\n')


@pytest.fixture(name="steer")
def make_steer(cluster):
    """steer("end", ...): answered by then. No pod is being ended, and no taint stands, when the test
    ends."""
    yield cluster.node.ctl
    for one in cluster.node.ctl_json("taints")["items"]:
        if one["source"] == "operator":
            cluster.node.ctl("untaint", one["resource"], one["id"], one["key"])


def run_pod(cluster, name, limits, **more):
    wants = {key: more.pop(key) for key in ("deaf", "hook", "seconds") if key in more}
    cluster.create(pod(name, container("main", limits, **wants), **more))
    return cluster.wait_running(name)[0]


def last_of(one):
    """How the container that ran before has ended."""
    return one.containers["main"]["lastState"]["terminated"]


@pytest.mark.parametrize("unit", [None, KUBELET, DAEMON, BRIDGE, CONTAINERD])
def test_an_ended_pod_stays_down(cluster, steer, unit):
    """Whoever is killed meanwhile; then it goes on in the same sandbox, with the device it had."""
    uid = run_pod(cluster, "web", {ONE: 1}).uid
    steer("end", "web", "--reason", "tired")
    if unit:
        cluster.node.kill(unit)
    held = cluster.wait_waiting("web", "CreateContainerError", ENDED, "tired")
    assert held.phase == "Running"
    # A containerd that is killed may have lost how it ended.
    assert (last_of(held)["exitCode"] == 0
            or (unit, last_of(held)["reason"]) == (CONTAINERD, "Unknown")), held
    steer("end", "--cancel", "web")
    (again,) = cluster.wait_running("web")
    assert again.containers["main"]["restartCount"] == 1
    with cluster.node.runtime() as client:
        assert len(client.ListPodSandbox(filter={"label_selector": {
            "io.kubernetes.pod.uid": uid}}).items) == 1
    assert cluster.devices_of("web") == [("main", ["one0"])] * 2


def test_with_a_shorter_grace(cluster, steer):
    """Its container does not heed SIGTERM."""
    run_pod(cluster, "web", {ONE: 1}, deaf=True, grace_s=600)
    steer("end", "web")
    steer("end", "web", "--grace", "1s")
    held = cluster.wait_waiting("web", "CreateContainerError", ENDED)
    assert last_of(held)["exitCode"] == 137
    cluster.delete("web")
    cluster.wait_gone("web")


def test_an_ended_pod_is_deleted(cluster, steer):
    """The kubelet ends what is left of it; another one of its name runs, with its device, and is the
    one that is meant then."""
    run_pod(cluster, "web", {ONE: 1})
    steer("end", "web")
    cluster.wait_waiting("web", "CreateContainerError", ENDED)
    cluster.delete("web")
    cluster.wait_gone("web")
    new = run_pod(cluster, "web", {ONE: 1})
    assert cluster.devices_of("web") == [("main", ["one0"])]
    steer("end", "web")
    held = cluster.wait_waiting("web", "CreateContainerError", ENDED)
    assert held.uid == new.uid


def test_one_that_is_not_restarted_is_over(cluster, steer):
    """And its device is another's; nothing is left that would have to be cancelled."""
    run_pod(cluster, "web", {ONE: 1}, restart="Never")
    steer("end", "web")
    (over,) = cluster.wait_over("web")
    assert over.phase == "Succeeded"  # by its exit code
    run_pod(cluster, "new", {ONE: 1})


@pytest.mark.parametrize("how", ["at work", "restarted", "away"])
def test_a_no_execute_taint(cluster, steer, how):
    """Containers of the device end and are not made again before it is taken back, whatever the
    kubelet does meanwhile; who has another device runs on."""
    run_pod(cluster, "other", {GPU: 1})
    uid = run_pod(cluster, "web", {ONE: 1}).uid
    if how == "away":
        cluster.node.stop_unit(KUBELET)
    steer("taint", ONE, "one0", f"{BROKEN}=fan:NoExecute", "--reason", "it smells")
    if how == "restarted":
        cluster.node.restart_unit(KUBELET)
    elif how == "away":
        cluster.wait(lambda: "ended" in told(cluster, uid), "it is ended beside the kubelet")
        cluster.node.start_unit(KUBELET)
    cluster.wait_waiting("web", "CreateContainerError", f"{BROKEN}=fan:NoExecute", "it smells")
    cluster.wait_allocatable(ONE, 0)
    steer("untaint", ONE, "one0", BROKEN)
    (again,) = cluster.wait_running("web")
    assert again.containers["main"]["restartCount"] == 1
    assert cluster.wait_running("other")[0].containers["main"]["restartCount"] == 0


def told(cluster, uid):
    """The kinds of events of a pod."""
    return [one["kind"] for one in cluster.node.ctl_json("events")["items"] if one["uid"] == uid]


def test_a_pod_that_tolerates_it(cluster, steer):
    """It runs on, and is made again."""
    tolerates = {"devices.cri-device-shim/tolerations":
                 f'[{{"key": "{BROKEN}", "operator": "Exists", "effect": "NoExecute"}}]'}
    web = run_pod(cluster, "web", {ONE: 1}, annotations=tolerates)
    steer("taint", ONE, "one0", f"{BROKEN}:NoExecute")
    cluster.node.end_containers(web.uid)
    cluster.wait_each({"web": lambda one: one.running
                       and one.containers["main"]["restartCount"] == 1})
    assert "ending" not in told(cluster, web.uid)
