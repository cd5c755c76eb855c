"""`[[resource]] replace`: a container whose device goes from its plugin's list has another one from its next
start on. The kubelet's books go on saying the first one, and no pod is Failed for that."""

import pytest

from cluster import GPU, GPUS, PLUGINS
from kube_node import BRIDGE, DAEMON, KUBELET
from kube_pods import container, pod

COUNT = len(GPUS.devices)
CONFIG = f"""[bridge]
mask = "5s"
[[resource]]
name = "{GPU}"
replace = true
replace_after = "0s"
"""


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    return cluster_of(PLUGINS, config=CONFIG)


@pytest.fixture(name="lose")
def make_lose(cluster):
    """lose("gpu1", health="unhealthy"): these are gone from the list, or unhealthy there; the others are as
    ever. All are, when the test ends, and without any."""
    def change(*ids, health="unlisted"):
        devices = dict.fromkeys(GPUS.devices, True)
        for one in ids:
            if health == "unhealthy":
                devices[one] = False
            else:
                del devices[one]
        cluster.register(GPUS.with_devices(devices))
        cluster.node.kill(GPUS.unit, number="HUP")
        cluster.wait(lambda: not_healthy(cluster) == dict.fromkeys(ids, health), "that is known")

    yield change
    cluster.remove_all()
    change()


def not_healthy(cluster):
    """{id: how it is}"""
    return {one["id"]: one["health"] for one in cluster.node.ctl_json("devices", GPU)["items"]
            if one["health"] != "healthy"}


@pytest.fixture(name="lost")
def run_web(cluster):
    """The device that the pod "web" has, which is going to be lost."""
    cluster.create(pod("web", container("main", {GPU: 1})))
    cluster.wait_running("web")
    (device,) = has(cluster)
    return device


def has(cluster, name="web"):
    """What the pod's container was made with last."""
    return cluster.devices_of(name)[-1][1]


def by_the_kubelet(cluster, name="web"):
    """What its books say that the pod has."""
    (ids,) = [list(each.device_ids) for one in cluster.node.pod_resources("List").pod_resources
              if one.name == name for inside in one.containers for each in inside.devices]
    return ids


def end_container(cluster):
    cluster.node.end_containers(cluster.get("web").uid)


def wait_made(cluster, times):
    """Until web's container has been made so often, and runs."""
    cluster.wait(lambda: len(cluster.devices_of("web")) >= times, f"it is made {times} times")
    cluster.wait_running("web")
    assert len(cluster.devices_of("web")) == times


def replace(cluster, lost, lose):
    """What web has in the place of its device."""
    lose(lost)
    end_container(cluster)
    wait_made(cluster, 2)
    (other,) = has(cluster)
    assert other != lost
    return other


@pytest.mark.parametrize("health", ["unlisted", "unhealthy"])
def test_a_crash_loop(cluster, lose, health):
    """Its next start has another device, which is told; the kubelet says what it gave."""
    cluster.create(pod("web", container("main", {GPU: 1}, seconds=1, status=1)))
    cluster.wait(lambda: len(cluster.devices_of("web")) > 1, "it crashes")
    (lost,) = has(cluster)
    assert cluster.devices_of("web") == [("main", [lost])] * 2
    lose(lost, health=health)
    cluster.wait(lambda: has(cluster) != [lost], "it has another device")
    assert by_the_kubelet(cluster) == [lost] and cluster.get("web").phase == "Running"
    (item,) = [one for one in cluster.node.ctl_json("allocations", GPU)["items"] if one["pod"] == "web"]
    assert (item["ids"], item["asked"]) == (has(cluster), [lost])
    (event,) = [one for one in cluster.node.ctl_json("events")["items"]
                if one["kind"] == "replaced" and one["uid"] == cluster.get("web").uid]
    assert (event["ids"], event["text"]) == (has(cluster), f"in the place of {lost}")


@pytest.mark.parametrize("unit", [DAEMON, BRIDGE, KUBELET, GPUS.unit])
def test_whoever_is_killed(cluster, lost, lose, unit):
    """Just when it is to be replaced."""
    lose(lost)
    end_container(cluster)
    cluster.node.kill(unit)
    wait_made(cluster, 2)
    assert has(cluster) != [lost]


def test_what_is_not_lost_stays(cluster, lose):
    cluster.create(pod("web", container("main", {GPU: 3})))
    cluster.wait_running("web")
    first = has(cluster)
    lose(*first[:2])
    end_container(cluster)
    wait_made(cluster, 2)
    assert first[2] in has(cluster) and not set(first[:2]) & set(has(cluster))


@pytest.mark.parametrize("unit", [None, DAEMON, KUBELET])
def test_without_a_free_one_it_waits(cluster, lost, lose, unit):
    """And says so, on the pod, too; also to a kubelet that starts meanwhile."""
    cluster.create(pod("rest", container("main", {GPU: COUNT - 1})))
    cluster.wait_running("rest")
    lose(lost)
    end_container(cluster)
    cluster.wait_waiting("web", "CreateContainerError", lost, "no other is free")
    (why,) = cluster.node.ctl_json("why", cluster.get("web").uid)["items"]
    assert why["lastRefusal"]["reason"]["word"] == "no-other-device"
    if unit:
        cluster.node.kill(unit)
        cluster.create(pod("plain", container("main")))
        cluster.wait_running("plain")
    cluster.wait_waiting("web", "CreateContainerError", lost, "no other is free")
    assert cluster.get("rest").containers["main"]["restartCount"] == 0
    cluster.delete("rest")
    wait_made(cluster, 2)
    assert has(cluster) != [lost]


@pytest.mark.parametrize("unit", [None, DAEMON, BRIDGE, KUBELET])
def test_what_was_lost_is_back(cluster, lost, lose, unit):
    """The pod keeps the other one as long as it lives, and nobody else is given either."""
    other = replace(cluster, lost, lose)
    lose()
    if unit:
        cluster.node.kill(unit)
    end_container(cluster)
    wait_made(cluster, 3)
    assert has(cluster) == [other] and by_the_kubelet(cluster) == [lost]
    cluster.create(pod("rest", container("main", {GPU: COUNT - 2})))
    cluster.wait_running("rest")
    cluster.wait_allocatable(GPU, COUNT - 1)
    cluster.create(pod("late", container("main", {GPU: 1})))
    cluster.wait_unscheduled("late")
    cluster.delete("web")
    cluster.wait_running("late", "rest")
    cluster.wait_allocatable(GPU, COUNT)


def test_a_reboot(cluster, lost, lose):
    """It has the same one again, in the place of what is still lost."""
    other = replace(cluster, lost, lose)
    cluster.node.power_off()
    cluster.node.start()
    wait_made(cluster, 3)
    assert has(cluster) == [other] and by_the_kubelet(cluster) == [lost]


def test_init_containers_and_sidecars(cluster, lose):
    """All devices of a pod are lost: each container has others, and has them again in another sandbox."""
    cluster.create(pod("web", container("main", {GPU: 2}), init=[
        container("first", {GPU: 2}, seconds=0), container("side", {GPU: 1}, sidecar=True)]))
    cluster.wait_running("web")
    lost = {device for _, ids in cluster.devices_of("web") for device in ids}
    lose(*lost)
    made = len(cluster.devices_of("web"))
    end_container(cluster)
    wait_each_made(cluster, made, {"main", "side"})
    made = len(cluster.devices_of("web"))
    with cluster.node.runtime() as client:
        (one,) = client.ListPodSandbox(filter={
            "label_selector": {"io.kubernetes.pod.uid": cluster.get("web").uid}}).items
        client.StopPodSandbox(pod_sandbox_id=one.id)
    wait_each_made(cluster, made, {"first", "main", "side"})
    assert not lost & {device for _, ids in cluster.devices_of("web")[made:] for device in ids}


def wait_each_made(cluster, made, names):
    """Until each of these containers of web has been made since there were so many, and web runs."""
    cluster.wait(lambda: {name for name, _ in cluster.devices_of("web")[made:]} >= names, f"{names} are made")
    cluster.wait_running("web")


def test_the_checkpoint_is_lost(cluster, lost, lose):
    """The container says itself what it has, and for what: nobody else is given either."""
    other = replace(cluster, lost, lose)
    cluster.node.stop_unit(DAEMON)
    cluster.node.run("sh", "-c", "rm /var/lib/cri-device-shim/checkpoint.db*")
    cluster.node.start_unit(DAEMON)
    cluster.wait(lambda: GPU in [one["name"] for one in cluster.node.ctl_json("resources")["items"]], "its plugin is back")
    lose()
    cluster.create(pod("rest", container("main", {GPU: COUNT - 2})))
    cluster.wait_running("rest")
    assert not {lost, other} & set(has(cluster, "rest"))
    end_container(cluster)
    wait_made(cluster, 3)
    assert has(cluster) == [other]
