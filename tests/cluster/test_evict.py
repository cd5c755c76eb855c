"""Pods that are evicted by the API server, which the agent asks, by a service account as it is
documented: for an operator, and for taints of their devices. The cluster has a controller of its own
for the taints of slices and rules."""

import pytest

from cluster import GPU, ONE, PLUGINS, Cluster
from dra_cluster import EXTENDED, GPU as DRIVER, GPUS, DraCluster
from kube_claims import TAINT_RULES, claim, taint, taint_rule
from kube_node import AGENT, DAEMON, KUBELET
from kube_pods import budget, container, pod
from kube_programs import missing_cdi
from kube_release import DRA, RELEASE, since
from shim import ROOT

ACCOUNT = "cri-device-shim-agent"
CREDENTIALS = "/etc/cri-device-shim/agent.conf"
CONFIG = f"""[cluster]
enabled = true
kubeconfig = "{CREDENTIALS}"
node_name = "node"
[bridge]
mask = "5s"
"""
BROKEN = "example.com/broken"
SEEN = "example.com/seen"  # a finalizer
OURS, BY_CONTROLLER = "DeletionByCRIDeviceShim", "DeletionByDeviceTaintManager"
AGENT_USER = f"system:serviceaccount:kube-system:{ACCOUNT}"
HAS_RULES = RELEASE >= (1, 36)
CONTROLLER_USER = "system:serviceaccount:kube-system:device-taint-eviction-controller"


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    if DRA and missing_cdi():
        pytest.skip(missing_cdi())
    cluster = cluster_of(PLUGINS, DraCluster if DRA else Cluster, taint_rules=HAS_RULES, config=CONFIG)
    cluster.plane.apply(ROOT / "config/agent-rbac.yaml")
    cluster.node.write(CREDENTIALS, cluster.plane.account_kubeconfig("kube-system", ACCOUNT))
    cluster.wait(lambda: not cluster.node.ctl_json("status")["degraded"], "the agent may do all")
    return cluster


@pytest.fixture(name="steer")
def make_steer(cluster):
    """steer("taint", ...): answered by then. No taint stands, and no pod has a finalizer, when the
    test ends."""
    yield cluster.node.ctl
    for name in cluster.pods():
        cluster.let_go(name)
    cluster.wait(lambda: not any(one.deleting for one in cluster.pods().values()),
                 "who was to go has gone")
    for one in cluster.node.ctl_json("taints")["items"]:
        if one["source"] == "operator":
            cluster.node.ctl("untaint", one["resource"], one["id"], one["key"])
    if HAS_RULES:
        for one in cluster.plane.api.get(TAINT_RULES)["items"]:
            cluster.plane.api.delete(f"{TAINT_RULES}/{one['metadata']['name']}")
        for device in GPUS.devices:
            cluster.taint_in_slice(DRIVER, device)
    cluster.wait(lambda: cluster.node.ctl_json("taints")["items"] == [], "no taint is left")


def told(cluster, uid):
    """What was told of the end of a pod: [(kind, reason)]."""
    return [(one["kind"], one["reason"]) for one in cluster.node.ctl_json("events")["items"]
            if one["uid"] == uid and one["kind"] in ("ending", "ended", "spared")]


def wait_told(cluster, uid, why, killed=None):
    """Until it is told that the pod was evicted for that, once; or that it has gone, where the kubelet was sooner to
    end it than the API server's answer was here. A daemon that is `killed` as it tells one of them may lose it with
    the last events (shim/events/events.h): then the other is told alone, and nothing is left of the ending."""
    ends = [[("ending", why), ("ended", one)] for one in ("evicted", "gone")]
    alone = [[one] for both in ends for one in both]

    def over():
        left = [one for one in cluster.node.ctl_json("endings")["items"] if one["uid"] == uid]
        return told(cluster, uid) in ends + alone * (killed == DAEMON and not left)

    try:
        cluster.wait(over, "that it has ended is told, once")
    except AssertionError as error:
        raise AssertionError(f"{error}: {told(cluster, uid)}") from None


def wait_over(cluster, name):
    """Until the kubelet has ended a pod with a finalizer that is deleted."""
    return cluster.wait_each({name: lambda one: one.deleting and one.over})[0]


def own(cluster, name):
    """The claims of a pod that has one from a template: [(device, claim's name)]."""
    return [(result["device"], one["metadata"]["name"]) for one in cluster.claims().values()
            if name in [user["name"] for user in one["status"].get("reservedFor", [])]
            for result in one["status"]["allocation"]["devices"]["results"]]


def test_an_operator_ends_a_pod(cluster, steer):
    """It is evicted with its own grace, and says why, as long as it has not ended: the kubelet, which
    ends it, puts the mark back that it has seen first, and that is the API server's own."""
    runs = container("main", {ONE: 1}, deaf=True)
    cluster.create(pod("web", runs, finalizers=[SEEN], grace_s=60))
    (web,) = cluster.wait_running("web")
    steer("end", "web", "--reason", "tired")
    (marked,) = cluster.wait_each({"web": lambda one: one.deleting
                                   and one.condition("DisruptionTarget") == (OURS, "tired")})
    assert marked.running and marked.what["metadata"]["deletionGracePeriodSeconds"] == 60
    wait_told(cluster, web.uid, "operator")
    steer("end", "web", "--grace", "1s")
    assert wait_over(cluster, "web").condition("DisruptionTarget")
    cluster.let_go("web")
    cluster.wait_gone("web")
    cluster.create(pod("new", container("main", {ONE: 1})))
    cluster.wait_running("new")


@since(32, "claims that are not alpha")
@pytest.mark.parametrize("unit", [AGENT, DAEMON, KUBELET])
def test_a_pod_is_ended_while_somebody_is_killed(cluster, steer, unit):
    """It is evicted, and another one runs on."""
    for name in ("web", "other"):
        cluster.create_pod(name, {"gpu": 1})
    cluster.wait_running("web", "other")
    steer("end", "web")
    cluster.node.kill(unit)
    cluster.wait_gone("web")
    (other,) = cluster.wait_running("other")
    assert not other.deleting and other.containers["main"]["restartCount"] == 0


def test_a_kubelet_that_is_away(cluster, steer):
    """The pod is deleted in the cluster, and runs on until the kubelet is back: it is the kubelet's
    to end it."""
    cluster.create(pod("web", container("main", {ONE: 1})))
    cluster.wait_running("web")
    cluster.node.stop_unit(KUBELET)
    try:
        steer("end", "web")
        cluster.wait_each({"web": lambda one: one.deleting})
        assert not cluster.get("web").over
    finally:
        cluster.node.start_unit(KUBELET)
    cluster.wait_gone("web")


def test_a_static_pod_is_ended_here(cluster, steer):
    """Its mirror's end would not be its own. It is back when that is cancelled."""
    manifest = pod("web", container("main"))
    path = "/etc/kubernetes/manifests/web.yaml"
    cluster.node.write(path, manifest)
    try:
        (mirror,) = cluster.wait_running("web-node")
        steer("end", "web-node", "--reason", "tired")
        cluster.wait_waiting("web-node", "CreateContainerError", "tired")
        assert cluster.get("web-node").uid == mirror.uid
        steer("end", "--cancel", "web-node")
        cluster.wait_running("web-node")
    finally:
        (cluster.node.root / path.lstrip("/")).unlink()
    cluster.wait_gone("web-node")


@since(32, "claims that are not alpha")
def test_a_taint_of_a_shared_device(cluster, steer):
    """Each of its pods is evicted; but not the one that tolerates it, and one of which another budget
    allows none delays nobody, and is evicted as soon as that is gone."""
    tolerates = {"devices.cri-device-shim/tolerations":
                 f'[{{"key": "{BROKEN}", "operator": "Exists", "effect": "NoExecute"}}]'}
    cluster.create_claim(claim("all", "gpu", DRIVER))
    more = {"kept": {"labels": {"app": "kept"}}, "tolerant": {"annotations": tolerates}}
    names = ["kept", "tolerant", "first", "second", "third"]
    for name in names:
        cluster.create_pod(name, {"gpu": 1}, shared={"gpu": "all"}, wants={"shares": True},
                           **more.get(name, {}))
    uids = {one.name: one.uid for one in cluster.wait_running(*names)}
    cluster.create_budget(budget("none", {"app": "kept"}, 1))
    ((device, _),) = own(cluster, "kept")
    try:
        steer("taint", DRIVER, f"node/{device}", f"{BROKEN}:NoExecute")
        cluster.wait_gone("first", "second", "third")
        for one in cluster.wait_running("kept", "tolerant"):
            assert not one.deleting and not one.condition("DisruptionTarget")
        for unit in (DAEMON, AGENT):
            cluster.node.kill(unit)
    finally:
        cluster.delete_budget("none")
    cluster.wait_gone("kept")
    assert not cluster.wait_running("tolerant")[0].deleting
    assert told(cluster, uids.pop("tolerant")) == []
    wait_told(cluster, uids["kept"], "eviction")


def test_a_taint_is_taken_back_in_time(cluster, steer):
    """The budget goes after it: another pod of that budget, which is ended later, goes, and this one
    does not."""
    for name in ("web", "other"):
        cluster.create(pod(name, container("main", {GPU: 1}), labels={"app": "web"}))
    web, _ = cluster.wait_running("web", "other")
    cluster.create_budget(budget("none", {"app": "web"}, 2))
    try:
        ((_, (device,)),) = cluster.first_devices_of("web")
        steer("taint", GPU, device, f"{BROKEN}:NoExecute")
        cluster.wait(lambda: told(cluster, web.uid) == [("ending", "eviction")], "it is to go")
        steer("untaint", GPU, device, BROKEN)
    finally:
        cluster.delete_budget("none")
    steer("end", "other")
    cluster.wait_gone("other")
    assert not cluster.wait_running("web")[0].deleting


@pytest.fixture(name="deletions")
def read_deletions(cluster):
    """deletions(pod): of this test's, that were not refused: [(who has asked, whether by eviction)]"""
    before = len(cluster.plane.deletions())
    return lambda name: [(one.user, one.is_eviction) for one in cluster.plane.deletions()[before:]
                         if one.pod == name and one.status < 300
                         and one.user in (AGENT_USER, CONTROLLER_USER)]


@pytest.mark.parametrize("unit", [DAEMON, AGENT, KUBELET])
def test_somebody_is_killed_under_a_budget(cluster, steer, deletions, unit):
    """It lets one of two pods go; the other one runs on until it lets that go, too. Each is evicted
    once; where the answer died with one of ours, it is seen that the pod has gone."""
    names = ("one", "two")
    for name in names:
        cluster.create(pod(name, container("main", {GPU: 1}), labels={"app": "web"}))
    uids = {one.name: one.uid for one in cluster.wait_running(*names)}
    cluster.create_budget(budget("half", {"app": "web"}, 1))
    try:
        for name in names:
            ((_, (device,)),) = cluster.first_devices_of(name)
            steer("taint", GPU, device, f"{BROKEN}:NoExecute")
        cluster.wait(lambda: any(map(deletions, names)), "one is evicted")
        cluster.node.kill(unit)
        cluster.wait(lambda: len(cluster.pods()) == 1, "it is gone")
        (left,) = cluster.pods()
        cluster.create(pod("late", container("main")))
        cluster.wait_running("late")
        assert not cluster.wait_running(left)[0].deleting and not deletions(left)
    finally:
        cluster.delete_budget("half")
    cluster.wait_gone(*names)
    for name in names:
        wait_told(cluster, uids[name], "eviction", unit)
        assert deletions(name) == [(AGENT_USER, True)]


@pytest.fixture(name="force")
def set_force(cluster):
    """force(): budgets are kept to for a second only, until the test ends."""
    def change(config):
        cluster.node.write_config(config)
        cluster.node.ctl("reload")

    yield lambda: change(CONFIG.replace("[cluster]", '[cluster]\nevict_force_after = "1s"'))
    change(CONFIG)


@pytest.mark.parametrize("unit", [None, DAEMON, AGENT, KUBELET])
def test_a_budget_of_none_is_passed_over(cluster, steer, deletions, force, unit):
    """By evict_force_after, once that is set: the pod is deleted, once, and the budget stands."""
    cluster.create(pod("web", container("main", {ONE: 1}), labels={"app": "web"}))
    (web,) = cluster.wait_running("web")
    cluster.create_budget(budget("none", {"app": "web"}, 1))
    try:
        steer("taint", ONE, "one0", f"{BROKEN}:NoExecute")
        cluster.wait(lambda: any(one.pod == "web" and one.status == 429
                                 for one in cluster.plane.deletions()), "the budget refuses it")
        force()
        if unit:
            cluster.node.kill(unit)
        cluster.wait_gone("web")
    finally:
        cluster.delete_budget("none")
    wait_told(cluster, web.uid, "eviction")
    assert deletions("web") == [(AGENT_USER, False)]


@since(36, "taints of devices")
@pytest.mark.parametrize("source, unit", [("slice", None), ("slice", DAEMON), ("rule", AGENT),
                                          ("rule", KUBELET)])
def test_the_cluster_evicts_by_itself(cluster, steer, deletions, source, unit):
    """What its controller sees, whoever is killed then; from here nobody is evicted."""
    cluster.create(pod("web", container("main", claims={"gpu": 1}), finalizers=[SEEN],
                       resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}]))
    cluster.wait_running("web")
    ((device, _),) = own(cluster, "web")
    set_taint(cluster, source, device)
    if unit:
        cluster.node.kill(unit)
    over = wait_over(cluster, "web")
    assert over.condition("DisruptionTarget")[0] == BY_CONTROLLER
    cluster.wait(lambda: sources(cluster) == [source], "it is known here, too")
    assert told(cluster, over.uid) == [] and deletions("web") == [(CONTROLLER_USER, False)]


def set_taint(cluster, source, device):
    what = taint(BROKEN, "NoExecute")
    if source == "slice":
        cluster.taint_in_slice(DRIVER, device, what)
    else:
        cluster.plane.api.create(TAINT_RULES, taint_rule("broken", DRIVER, device, what))


def sources(cluster):
    return [one["source"] for one in cluster.node.ctl_json("taints")["items"]]


@since(36, "taints of devices")
def test_both_evict(cluster, steer, deletions):
    """A device that a rule and an operator have tainted: its pod goes by whoever comes first, or by both, who
    do not see what the other has under way; each asks once."""
    cluster.create_pod("web", {"gpu": 1}, finalizers=[SEEN])
    cluster.wait_running("web")
    ((device, _),) = own(cluster, "web")
    set_taint(cluster, "rule", device)
    steer("taint", DRIVER, f"node/{device}", f"{BROKEN}:NoExecute")
    wait_over(cluster, "web")
    cluster.wait(lambda: sorted(sources(cluster)) == ["operator", "rule"], "both are known here")
    asked = deletions("web")
    assert asked and set(asked) <= {(CONTROLLER_USER, False), (AGENT_USER, True)} and len(asked) == len(set(asked))


@since(36, "taints of devices")
@pytest.mark.parametrize("source", ["slice", "rule"])
def test_what_the_cluster_does_not_see(cluster, steer, deletions, source):
    """A pod whose limits are given it as a claim: its device is a driver's, and it has no claim that
    the cluster's controller looks at."""
    runs = container("main")
    runs["resources"]["limits"] = {EXTENDED: "1"}
    cluster.create(pod("web", runs, finalizers=[SEEN]))
    cluster.wait_running("web")
    ((device, _),) = own(cluster, "web")
    set_taint(cluster, source, device)
    over = wait_over(cluster, "web")
    assert over.condition("DisruptionTarget")[0] != BY_CONTROLLER
    wait_told(cluster, over.uid, "eviction")
    assert deletions("web") == [(AGENT_USER, True)]
