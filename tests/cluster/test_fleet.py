"""The DaemonSets of config/kubernetes in a real cluster: kubectl's dry run of them, and a node that they install, upgrade,
leave alone and give back, under a pod that runs."""

import shutil
import subprocess

import pytest
import yaml

import built
import unit_containerd
from control_plane import NODE
from fleet import KUBERNETES, build_image
from kube_node import BRIDGE, DAEMON, KUBELET
from kube_pods import container, pod
from kube_programs import program
from shim import BINARY
from waiting import GENEROUS_S

NAME = "fleet.test/cri-device-shim"
SETS = "/apis/apps/v1/namespaces/cri-device-shim/daemonsets"
LABEL = "cri-device-shim/node"
CHANGE_S = 5 * GENEROUS_S


@pytest.fixture(scope="module", name="cluster")
def start_cluster(cluster_of, module_directory):
    """With two releases of the image on the node, and a pod."""
    if program("kubectl") is None:
        pytest.skip("not on PATH or in $SHIM_KUBE_BIN: kubectl")
    cluster = cluster_of((), has_shim=False, logind=True)
    build = module_directory / "build"
    built.copy(build)
    for tag, daemon in ((1, BINARY), (2, BINARY.parents[1] / "tests/e2e/cri-device-shim-next")):
        shutil.copy(daemon, build / "shim/cri-device-shim")
        unit_containerd.import_images(cluster.node, build_image(module_directory / f"image{tag}", f"{NAME}:{tag}", build))
    cluster.create(pod("bystander", container("main")))
    cluster.wait_running("bystander")
    return cluster


@pytest.fixture(name="kubectl")
def as_admin(cluster, directory):
    """Runs it where the API server is, in a directory with the manifests; it must not warn."""
    (directory / "admin.conf").write_text(cluster.plane.kubeconfig("admin"))
    shutil.copytree(KUBERNETES, directory / "kubernetes")

    def run(*words, tag=1, base="base"):
        (directory / "kustomization.yaml").write_text(yaml.safe_dump({
            "resources": [f"kubernetes/{base}"],
            "images": [{"name": "cri-device-shim", "newName": NAME, "newTag": str(tag)}]}))
        done = subprocess.run(["nsenter", f"--net={cluster.plane.network}", program("kubectl"), "--kubeconfig",
                               directory / "admin.conf", "--cache-dir", directory / "cache", *words], check=False,
                              cwd=directory, capture_output=True, text=True, timeout=GENEROUS_S)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return run


def label(cluster, value):
    cluster.plane.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {LABEL: value}}})


def status(cluster, verb):
    """Of its DaemonSet, once that was looked at as it is now."""
    one = cluster.plane.api.get(f"{SETS}/cri-device-shim-{verb}")
    seen = one["status"].get("observedGeneration") == one["metadata"]["generation"]
    return one["status"] if seen else {}


def wait_done(cluster, verb):
    """Its pod of now has been ready for as long as the next node would wait for."""
    def done():
        now = status(cluster, verb)
        return now.get("numberAvailable") == 1 == now.get("updatedNumberScheduled")

    cluster.wait(done, f"the node's {verb} is done", CHANGE_S)


def wait_left(cluster, verb):
    cluster.wait(lambda: status(cluster, verb).get("currentNumberScheduled") == 0, f"no pod of {verb} is left")


def active(cluster):
    return {unit for unit in (DAEMON, BRIDGE) if cluster.node.property(unit, "ActiveState") == "active"}


def restarts(cluster):
    (seen,) = cluster.get("bystander").containers.values()
    return seen["restartCount"]


def test_a_node_of_a_fleet(cluster, kubectl):
    kubectl("apply", "-f", "kubernetes/base/namespace.yaml")
    for base in ("base", "k3s"):
        assert kubectl("apply", "-k", ".", "--dry-run=server", "-o", "name", base=base).count("daemonset") == 2
    kubectl("apply", "-k", ".")
    wait_left(cluster, "install")  # there is no label
    assert active(cluster) == set()

    label(cluster, "install")
    wait_done(cluster, "install")
    assert active(cluster) == {DAEMON, BRIDGE}
    kubelet = cluster.node.pid(KUBELET)
    daemon = cluster.node.pid(DAEMON)
    kubectl("apply", "-k", ".", tag=2)
    wait_done(cluster, "install")
    assert cluster.node.pid(DAEMON) != daemon and cluster.node.pid(KUBELET) == kubelet

    label(cluster, "hold")
    wait_left(cluster, "install")
    kubectl("apply", "-k", ".", tag=1)
    wait_left(cluster, "install")
    daemon = cluster.node.pid(DAEMON)
    assert active(cluster) == {DAEMON, BRIDGE} and daemon != 0
    cluster.create(pod("through", container("main")))
    cluster.wait_running("through")

    label(cluster, "remove")
    wait_done(cluster, "remove")
    assert active(cluster) == set() and cluster.node.pid(KUBELET) != kubelet
    label(cluster, None)
    wait_left(cluster, "remove")
    cluster.create(pod("after", container("main")))
    cluster.wait_running("after", "through", "bystander")
    assert restarts(cluster) == 0
    kubectl("delete", "-k", ".")
