"""Devices of stock plugins by ResourceClaims: the scheduler picks them in the ResourceSlices that the shim publishes, and nobody is asked
at admission."""

import pytest

from cluster import GPU, GPUS
from kube_claims import CLASSES, SLICES, TEMPLATES, class_of, from_template, looking_template, template
from kube_node import AGENT, BRIDGE, DAEMON, KUBELET
from kube_pods import container, pod
from kube_release import DRA, lacks, since

DRIVER = "plugins.cri-device-shim"
COUNT = len(GPUS.devices)
CONFIG = f"""[cluster]
enabled = true
[[resource]]
name = "{GPU}"
dra = true
[[resource.attribute]]
device = "{GPUS.devices[0]}"
name = "model"
value = "small"
"""
OF_GPU = (f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].resource == "{GPU}"')
SMALL = f'{OF_GPU} && "model" in device.attributes["{DRIVER}"] && device.attributes["{DRIVER}"].model == "small"'


def claiming(name, request, count=1, shares=False, **more):
    """Its container has what its plugin gives, as one with limits has."""
    main = container("main", {GPU: count}, shares=shares)
    main["resources"] = {"claims": [{"name": request}]}
    return pod(name, main, resourceClaims=[from_template(request)], **more)


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    if DRA is None:
        pytest.skip(lacks("claims that are not alpha"))
    cluster = cluster_of((), config=CONFIG)
    cluster.node.add_plugin(GPUS)
    cluster.node.start_unit(GPUS.unit)
    for name, expression in (("gpu", OF_GPU), ("small", SMALL)):
        cluster.plane.api.create(CLASSES, class_of(name, expression))
        cluster.plane.api.create(TEMPLATES, template(name, name))
    return cluster


def published(cluster):
    """{id: keys of its taints}"""
    devices = [device.get("basic", device) for one in cluster.plane.api.get(SLICES)["items"]
               if one["spec"]["driver"] == DRIVER for device in one["spec"]["devices"]]
    return {one["attributes"]["id"]["string"]: [taint["key"].split("/")[1] for taint in one.get("taints", [])]
            for one in devices}


@pytest.fixture(name="cluster")
def use_cluster(shared_cluster):
    shared_cluster.wait(lambda: published(shared_cluster) == dict.fromkeys(GPUS.devices, []), "all devices are published")
    yield shared_cluster
    shared_cluster.remove_all()
    assert shared_cluster.wrong() == []


def test_the_scheduler_picks_by_attributes(cluster):
    cluster.create(claiming("one", "small"))
    cluster.wait_running("one")
    assert cluster.devices_of("one") == [("main", [GPUS.devices[0]])]
    for number in range(COUNT - 1):
        cluster.create(claiming(f"other{number}", "gpu"))
    cluster.wait_running(*(f"other{number}" for number in range(COUNT - 1)))
    cluster.create(claiming("late", "gpu"))
    cluster.wait(lambda: cluster.pods()["late"].unscheduled, "there is none left")
    cluster.delete("one")
    cluster.wait_running("late")


@since(34, "claims for what is in a pod's limits")
def test_a_pod_with_limits_gets_a_device_picked_by_the_scheduler(cluster):
    """By the class's extendedResourceName: the kubelet has no such resource."""
    cluster.plane.api.create(CLASSES, class_of("extended", OF_GPU, extendedResourceName=GPU))
    cluster.create(pod("limits", container("main", {GPU: 2})))
    cluster.wait_running("limits")
    assert not cluster.warnings("limits")


@since(34, "admin access in labelled namespaces")
def test_who_has_admin_access_is_in_nobodys_way(cluster):
    """Nor is anybody in the way of it, also just behind a restart."""
    cluster.plane.api.patch("/api/v1/namespaces/default",
                            {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
    cluster.plane.api.create(TEMPLATES, looking_template("looks", "gpu"))
    cluster.create(claiming("owner", "gpu", shares=True))
    cluster.wait_running("owner")
    cluster.create(claiming("monitor", "looks", COUNT, shares=True))
    cluster.wait_running("monitor")
    (_, seen), = cluster.first_devices_of("monitor")
    assert sorted(seen) == sorted(GPUS.devices)
    cluster.create(claiming("next", "gpu", shares=True))
    cluster.wait_running("next", "owner", "monitor")
    cluster.node.kill(DAEMON)
    cluster.delete("monitor", "owner")
    cluster.create(claiming("again", "looks", COUNT, shares=True))
    cluster.create(claiming("late", "gpu", shares=True))
    cluster.wait_running("again", "late", "next")


@pytest.mark.parametrize("unit", [DAEMON, BRIDGE, AGENT, KUBELET, GPUS.unit])
def test_whoever_is_killed(cluster, unit):
    """Pods that run go on, and those that come meanwhile start."""
    cluster.create(claiming("before", "gpu"))
    cluster.wait_running("before")
    cluster.node.kill(unit)
    cluster.create(claiming("meanwhile", "gpu"))
    cluster.wait_running("meanwhile", "before")
