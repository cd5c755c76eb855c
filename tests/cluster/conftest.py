"""A cluster for each file of tests. Where its programs are not there, they are skipped."""

import pathlib
import shutil
import tempfile

import pytest

import kube_programs
from cluster import PLUGINS, Cluster
from dra_cluster import DraCluster
from kube_release import DRA, lacks


FAILED = pytest.StashKey[bool]()  # whether a test has


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when == "call":
        item.stash[FAILED] = report.failed


@pytest.fixture(scope="module", name="module_directory")
def make_directory():
    """Of the file's clusters, with a short name."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="cdk-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module", name="cluster_of")
def make_cluster(module_directory):
    """cluster_of(plugins, kind of cluster, **its settings): one that runs, to the end of the file,
    which is skipped where the programs are missing."""
    if kube_programs.missing():
        pytest.skip(kube_programs.missing())
    running = []

    def make(plugins, kind=Cluster, **settings):
        one = kind(module_directory / str(len(running)), plugins, **settings)
        running.append(one)
        one.start()
        return one

    yield make
    for one in running:
        one.stop()


@pytest.fixture(scope="module", name="dra_cluster_of")
def make_dra_cluster(cluster_of):
    """dra_cluster_of(**settings of DraCluster): skipped where there are no claims, or the runtime has
    no CDI, too."""
    if DRA is None:
        pytest.skip(lacks("claims that are not alpha"))
    if kube_programs.missing_cdi():
        pytest.skip(kube_programs.missing_cdi())
    return lambda **settings: cluster_of((), DraCluster, **settings)


@pytest.fixture(scope="module", name="shared_cluster")
def start_cluster(cluster_of):
    return cluster_of(PLUGINS)


@pytest.fixture(name="cluster")
def use_cluster(request, shared_cluster):
    """That of the file, with all its devices and no pods. Whatever the test is about: no container
    is without its devices, and no device is in two. What the node has said is shown when a test has failed."""
    shared_cluster.settle()
    yield shared_cluster
    if request.node.stash.get(FAILED, False):
        shared_cluster.node.print_logs()
    shared_cluster.remove_all()
    assert shared_cluster.wrong() == []
