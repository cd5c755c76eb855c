"""Drivers in pods, as they are deployed: their mounts of the kubelet's directory, redirected or not;
and a CSI driver that is given the shim's by mistake."""

import pytest

from dra_cluster import GPU, GPUS, NET, NETS, driver_pod
from kube_node import (AGENT, BRIDGE, DAEMON, KUBELET, KUBELET_REGISTRY_DIR, CsiDriver)
from test_dra import AGENT_ON

CSI = CsiDriver("csi.example.com")
REDIRECT = {"dra.cri-device-shim/redirect": "true"}


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(dra_cluster_of):
    return dra_cluster_of(config=AGENT_ON)


@pytest.fixture(name="as_pod")
def run_as_pod(cluster):
    """as_pod(name, driver, ...): a driver_pod() in the place of its unit, until the test ends."""
    moved = []

    def move(name, driver, **more):
        cluster.node.stop_unit(driver.unit)
        moved.append(driver)
        before = len(cluster.registrations(driver))
        cluster.node.write_driver(driver)
        cluster.create(driver_pod(name, driver, **more))
        cluster.wait(lambda: len(cluster.registrations(driver)) > before, f"{name} is registered")

    yield move
    pods = [name for name in cluster.pods() if not name.startswith("driver")]
    cluster.delete(*pods)
    cluster.wait_gone(*pods)
    cluster.remove_all()
    for driver in moved:
        cluster.node.write_driver({one.name: one for one in (GPUS, NETS)}[driver.name])
        cluster.start_driver(driver)


def endpoints_of(cluster, name):
    """How often the daemon has told that one of the driver's is connected."""
    return sum(f"DRA driver {name}: " in line and "is connected" in line
               for line in cluster.node.log().splitlines())


def test_a_pod_is_redirected_by_its_annotation(cluster, as_pod):
    """The driver has its usual paths, and is the shim's: its pods run, and a pod of them is made
    while the driver's pod is replaced."""
    before = endpoints_of(cluster, GPU)
    usual = GPUS.changed(registry_dir=KUBELET_REGISTRY_DIR)
    as_pod("driver", usual, annotations=REDIRECT)
    assert endpoints_of(cluster, GPU) == before + 1
    cluster.create_pod("web", {"gpu": 1, "net": 1})
    cluster.wait_running("web")
    cluster.delete("driver")
    cluster.wait_gone("driver")
    cluster.create_pod("late", {"gpu": 1, "net": 1})
    cluster.wait_scheduled("late")
    cluster.create(driver_pod("driver2", usual, annotations=REDIRECT))
    cluster.wait_running("late", "driver2")
    assert not cluster.warnings("late")


def test_others_stay_with_the_kubelet(cluster, as_pod):
    """A pod without that is none of the shim's concern."""
    before = endpoints_of(cluster, NET)
    as_pod("driver", NETS.changed(registry_dir=KUBELET_REGISTRY_DIR))
    cluster.create_pod("web", {"net": 1})
    cluster.wait_running("web")
    assert endpoints_of(cluster, NET) == before


def test_a_csi_driver_in_the_wrong_directory(cluster):
    """It is the node's as ever: nobody of ours who ends takes it off the node for a moment, and when
    it is killed itself it is back, though its old socket is there until the new one is."""
    def there():
        what = cluster.plane.api.get("/apis/storage.k8s.io/v1/csinodes/node")
        names = [one["name"] for one in what["spec"]["drivers"] or []]
        return what["metadata"]["resourceVersion"] if CSI.name in names else None

    cluster.node.add_csi_driver(CSI)
    cluster.start_driver(CSI)
    version = cluster.wait(there, "the CSI driver is the node's")
    for unit in DAEMON, BRIDGE, AGENT, KUBELET:
        cluster.node.kill(unit)
        cluster.settle()
        assert there() == version, unit
    for _ in range(3):
        before = len(cluster.registrations(CSI))
        cluster.node.kill(CSI.unit)
        cluster.wait(lambda before=before: len(cluster.registrations(CSI)) > before,
                     "the new one is registered")
        # A busy kubelet may have taken it for the old one, which it lets go before it registers this one.
        cluster.wait(there, "the CSI driver is the node's again")
    cluster.node.stop_unit(CSI.unit)
    cluster.wait(lambda: not there(), "the CSI driver is gone")
