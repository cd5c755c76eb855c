"""Pods with claims, whose drivers register with the shim; one of them serves v1beta1 only. The agent
has the kubelet's own credentials, under NodeRestriction."""

import pytest

from dra_cluster import GPU, GPUS, NET, NETS, DRIVERS
from kube_claims import SLICES, claim
from kube_node import AGENT, BRIDGE, CONTAINERD, DAEMON, KUBELET, KUBELET_REGISTRY_DIR
from kube_pods import container, pod
from kube_release import RELEASE

AGENT_ON = "[cluster]\nenabled = true\n"
# A kubelet before 1.34 connects to a driver only when it has a claim for it.
AT_KUBELET = "registered" if RELEASE >= (1, 34) else "shown"


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(dra_cluster_of):
    return dra_cluster_of(config=AGENT_ON)


def each_once(calls, method, count):
    """Whether `count` claims were asked for so, and each of them once."""
    uids = [uid for called, uid in calls if called == method]
    return len(uids) == len(set(uids)) == count


def test_claims_of_two_drivers(cluster):
    """A pod has three claims of two drivers, two others share a claim, one after the other is
    deleted: each claim is prepared once, and unprepared once, when its last pod is gone."""
    before = {one.name: len(cluster.calls(one)) for one in DRIVERS}

    def calls(driver):
        return cluster.calls(driver)[before[driver.name]:]

    cluster.create_claim(claim("shared", "net", NET))
    cluster.create_pod("three", {"gpu": 1, "gpus": 2, "net": 1})
    for name in ("one", "two"):
        cluster.create_pod(name, {"net": 1}, shared={"net": "shared"},
                           wants={"shares": True})
        cluster.wait_running(name)
    cluster.wait_running("three")
    ((_, ids),) = cluster.first_devices_of("three")
    assert sorted(one[:4] for one in ids) == ["dgpu", "dgpu", "dgpu", "dnet"]
    assert cluster.devices_of("one") == cluster.devices_of("two")
    assert each_once(calls(GPUS), "prepare", 2) and each_once(calls(NETS), "prepare", 2)
    cluster.delete("three", "one")
    cluster.wait_gone("three", "one")
    assert each_once(calls(GPUS), "unprepare", 2) and each_once(calls(NETS), "unprepare", 1)
    cluster.delete("two")
    cluster.wait_gone("two")
    assert each_once(calls(NETS), "unprepare", 2)


def test_driver_away_at_prepare(cluster):
    """The pod waits, and runs as soon as its driver is back: no retry of the kubelet's is needed,
    which comes after a minute or more."""
    cluster.node.stop_unit(GPUS.unit)
    cluster.create_pod("web", {"gpu": 1, "net": 1})
    try:
        cluster.wait_scheduled("web")
    finally:
        cluster.node.start_unit(GPUS.unit)
    cluster.wait_running("web")
    # The kubelet's own, where it is told of the binding before it is of the claim's name.
    assert not [one for one in cluster.warnings("web") if not one[1].endswith("ResourceClaim not created yet")]


def test_driver_away_at_unprepare(cluster):
    """The pod is gone all the same, since its device is this node's; the driver is told when it is
    back."""
    cluster.create_pod("web", {"gpu": 1})
    cluster.wait_running("web")
    cluster.node.stop_unit(GPUS.unit)
    try:
        cluster.delete("web")
        cluster.wait_gone("web")
        assert len(cluster.prepared()[GPU]) == 1
    finally:
        cluster.node.start_unit(GPUS.unit)
    cluster.wait(lambda: not cluster.prepared(), "what is owed is told")


def test_driver_away_for_long(cluster):
    """Its slices are removed, nobody is scheduled by them, and what runs runs on; it is back, and
    all is as before."""
    cluster.create_pod("old", {"gpu": 1})
    cluster.wait_running("old")
    cluster.node.stop_unit(GPUS.unit)
    try:
        cluster.wait(lambda: GPU not in cluster.slices(), "its slices are removed")
        cluster.create_pod("new", {"gpu": 1})
        cluster.wait_unscheduled("new")
    finally:
        cluster.node.start_unit(GPUS.unit)
    for one in cluster.wait_running("old", "new"):
        assert one.containers["main"]["restartCount"] == 0, one
    assert cluster.slices() == {one.name: len(one.devices) for one in DRIVERS}


@pytest.mark.parametrize("how", ["kill", "restart_unit"])
@pytest.mark.parametrize("unit", [DAEMON, BRIDGE, AGENT, KUBELET, GPUS.unit])
def test_restarts(cluster, unit, how):
    """While one pod comes and another goes; what runs runs on."""
    cluster.create_pod("stays", {"gpu": 1, "net": 1})
    cluster.create_pod("goes", {"gpu": 1, "net": 1})
    cluster.wait_running("stays", "goes")
    getattr(cluster.node, how)(unit)
    cluster.create_pod("comes", {"gpu": 1, "net": 1})
    cluster.delete("goes")
    cluster.wait_gone("goes")
    for one in cluster.wait_running("stays", "comes"):
        assert one.containers["main"]["restartCount"] == 0, one
        assert len(cluster.devices_of(one.name)) == 1, one


def test_forced_delete(cluster):
    """The cluster forgets a pod at once and gives its device to another, which waits until the
    kubelet has let the driver know."""
    cluster.create_claim(claim("all", "gpu", GPU, len(GPUS.devices)))
    cluster.create_pod("old", {"gpu": len(GPUS.devices)}, shared={"gpu": "all"})
    cluster.wait_running("old")
    cluster.delete("old", force=True)
    cluster.wait_gone("old")
    cluster.create_pod("new", {"gpu": 1})
    cluster.wait_running("new")
    cluster.wait(lambda: len(cluster.prepared()[GPU]) == 1, "that of the old pod is unprepared")


def test_cdi_is_switched_off(cluster):
    """The runtime would start a container without its claim's device: it is refused, and made as soon
    as that is on again. Others pass."""
    path = cluster.node.root / "etc/containerd/config.toml"
    config = path.read_text()
    cluster.create_pod("stays", {"gpu": 1})
    cluster.wait_running("stays")
    path.write_text(config.replace("enable_cdi = true", "enable_cdi = false"))
    try:
        cluster.node.restart_unit(CONTAINERD)
        cluster.create_pod("claiming", {"gpu": 1})
        cluster.wait_waiting("claiming", "CreateContainerError", "CDI", "switched off")
        cluster.create(pod("plain", container("main")))
        cluster.wait_running("plain")
    finally:
        path.write_text(config)
        cluster.node.restart_unit(CONTAINERD)
    (stays, _) = cluster.wait_running("stays", "claiming")
    assert stays.containers["main"]["restartCount"] == 0, stays


def test_rolling_update(cluster):
    """A second instance comes, the first one goes, and back: pods come and go meanwhile, and no
    device leaves the cluster."""
    second = GPUS.changed(instance="second")
    cluster.create_pod("first", {"gpu": 1})
    cluster.wait_running("first")
    cluster.node.add_driver(second)
    cluster.start_driver(second)
    cluster.node.stop_unit(GPUS.unit)
    cluster.create_pod("second", {"gpu": 1})
    cluster.delete("first")
    cluster.wait_gone("first")
    cluster.wait_running("second")
    cluster.start_driver(GPUS)
    cluster.node.remove_driver(second)
    cluster.create_pod("third", {"gpu": 1})
    cluster.delete("second")
    cluster.wait_gone("second")
    cluster.wait_running("third")
    assert cluster.slices()[GPU] == len(GPUS.devices)


def slice_uids(cluster):
    """Those of the driver's slices: others, once somebody has removed them."""
    return {one["metadata"]["uid"] for one in cluster.plane.api.get(SLICES)["items"]
            if one["spec"]["driver"] == GPU}


@pytest.mark.parametrize("unit", [None, DAEMON, BRIDGE, KUBELET])
def test_a_driver_moves_to_the_kubelet_and_back(cluster, unit):
    """Whoever is killed meanwhile: what it has prepared as ours is unprepared there, and the other way
    round; what waits for one of ours is prepared there; its slices stay, but for a kubelet that starts,
    which removes all of its node, and one before 1.33, which removes those of whoever it forgets."""
    uids = slice_uids(cluster)
    cluster.create_pod("stays", {"gpu": 1})
    for name, driver, state in (
            ("there", GPUS.changed(registry_dir=KUBELET_REGISTRY_DIR), ("moved", None)),
            ("back", GPUS, ("connected", AT_KUBELET))):
        cluster.create_pod("goes", {"gpu": 1})
        cluster.wait_running("goes", "stays")
        cluster.node.stop_unit(GPUS.unit)
        if driver != GPUS:  # a kubelet whose own is away would try again after more than a minute
            cluster.create_pod(name, {"gpu": 1})
            cluster.wait_scheduled(name)
        cluster.node.write_driver(driver)
        cluster.start_driver(driver)
        if unit:
            cluster.node.kill(unit)
        cluster.wait(lambda state=state: state_of(cluster) == state, f"it is {state}")
        if driver != GPUS and RELEASE < (1, 33):  # as config/README.md says
            cluster.wait(lambda: not stand_ins(cluster), "nothing stands for it there any more")
            cluster.node.restart_unit(driver.unit)
        if driver == GPUS:
            cluster.create_pod(name, {"gpu": 1})
        cluster.delete("goes")
        cluster.wait_gone("goes")
        cluster.wait_running(name)
    assert cluster.wait_running("stays")[0].containers["main"]["restartCount"] == 0
    assert len(cluster.prepared()[GPU]) == 3
    assert unit == KUBELET or RELEASE < (1, 33) or slice_uids(cluster) == uids


def stand_ins(cluster):
    """What stands for the driver at the kubelet."""
    registry = cluster.node.root / KUBELET_REGISTRY_DIR.lstrip("/")
    return list(registry.glob(f"dra-cri-device-shim-{GPU}-*"))


def state_of(cluster):
    """(what it is here, what the kubelet has of ours for it)"""
    (one,) = cluster.node.ctl_json("drivers", GPU)["items"]
    return one["state"], one["kubelet"]


def test_reboot_with_late_drivers(cluster):
    """The files of CDI are gone, and the drivers come when the pods wait for them: they run again,
    with the devices that they had."""
    cluster.create_pod("web", {"gpu": 1, "net": 1})
    cluster.wait_running("web")
    (before,) = cluster.first_devices_of("web")
    cluster.node.power_off()
    for one in DRIVERS:
        cluster.node.disable(one.unit)
    cluster.node.start()
    cluster.wait(lambda: cluster.condition("Ready"), "the node is ready")
    for one in DRIVERS:
        cluster.node.enable(one.unit)
        cluster.node.start_unit(one.unit)
    cluster.wait_running("web")
    cluster.wait(lambda: cluster.devices_of("web") == [before] * 2, "it has its devices again")
