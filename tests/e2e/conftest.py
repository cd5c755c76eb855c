import pathlib
import tempfile

import pytest

from containerd import Containerd


@pytest.fixture(scope="session")
def containerd():
    """Debian's containerd with runc, in a directory of its own; fails on anything left behind."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cdc-", dir="/tmp"))
    one = Containerd(directory)
    one.start()
    yield one
    one.stop()


@pytest.fixture
def runtime_socket(containerd):
    return containerd.socket


@pytest.fixture
def shim(containerd, make_shim, direct):
    """A shim with a short hold, which takes annotation requests, in front of containerd."""
    return make_shim(plugins={"hold": "300ms", "grace": "1m"})


@pytest.fixture
def direct(containerd, make_client):
    """A client of containerd itself; at the end of the test all pods are removed."""
    client = make_client(containerd)
    yield client
    containerd.remove_all_pods()


@pytest.fixture
def client(shim, make_client):
    return make_client(shim)
