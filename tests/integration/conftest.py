import concurrent.futures
import os

import pytest

from agent_process import Agent
from api_server import ApiServer
from bridge_process import Bridge
from ctl import ctl_json
from dra_driver import Driver
from kubelet_drivers import KubeletDrivers
from logind import Logind, SystemBus
from runtime import Runtime
from supervisor import Supervisor, supervised
from waiting import wait_until

_NODE = "node-1"


@pytest.fixture
def runtime_socket(directory):
    return directory / "r.sock"


@pytest.fixture
def runtime(runtime_socket, closing):
    """The recording runtime, running. Ask for it before anything that connects to it."""
    one = closing(Runtime(runtime_socket))
    one.start()
    return one


@pytest.fixture
def shim(runtime, make_shim):
    """A shim with short times, which takes annotation requests, in front of the recording
    runtime."""
    return make_shim(plugins={"hold": "300ms", "grace": "1m"})


@pytest.fixture
def at_work(shim):
    """A shim whose control socket is there."""
    shim.wait_control()
    return shim


@pytest.fixture
def away(at_work, make_plugin):
    """The plugin of vendor.com/gpu, with g0, which has served and is away, as `at_work` knows."""
    one = make_plugin(at_work, "vendor.com/gpu", ["g0"])
    wait_until(lambda: ctl_json(at_work, "plugins")["items"][0]["state"] == "active", "it serves")
    one.stop()
    at_work.wait_log("its devices are unhealthy")
    return one


@pytest.fixture
def client(shim, make_client):
    return make_client(shim)


@pytest.fixture
def background(closing):
    """Threads for calls that a test does not wait for; they end before what they call is stopped."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        yield pool


@pytest.fixture
def small_quarantine(monkeypatch):
    """AddressSanitizer keeps little of what was freed, so that growth would be seen: as in a run of all,
    for who runs a file by hand. Ask for it before the shim."""
    options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", f"{options}:quarantine_size_mb=4")


# ---- the machine's shutdown ----

@pytest.fixture
def bus(directory, closing, monkeypatch):
    """A system bus; programs that are started from now on find it."""
    one = closing(SystemBus(directory))
    monkeypatch.setenv(*one.environment)
    one.start()
    return one


@pytest.fixture
def logind(directory, bus, closing):
    one = closing(Logind(directory, bus))
    one.start()
    return one


# ---- dynamic resource allocation; what is about device plugins has a kubelet and a bridge of its own ----

@pytest.fixture
def kubelet(directory, closing):
    """Its watcher of what registers by a socket, and its calls of DRA drivers."""
    one = closing(KubeletDrivers(directory / "kubelets_registry"))
    one.start()
    return one


@pytest.fixture
def bridge(directory, closing, shim):
    """Under a service manager that keeps its descriptors."""
    one = closing(supervised(Bridge, closing(Supervisor(directory, name="notify-bridge")))(
        directory, socket=str(shim.feed)))
    one.start()
    return one


@pytest.fixture
def make_driver(shim, directory, closing):
    """make_driver(**settings of Driver): one that has registered with the shim."""
    def make(name="gpu.example.com", **settings):
        one = closing(Driver(shim.registry_dir, directory / "plugins", name, **settings))
        one.start()
        one.wait_registered()
        return one

    return make


@pytest.fixture
def server(directory, closing):
    """An API server that knows of this node."""
    one = closing(ApiServer(directory / "pki"))
    one.start()
    one.put("nodes", {"metadata": {"name": _NODE}, "spec": {}, "status": {}})
    return one


@pytest.fixture
def agent(shim, directory, closing, server):
    """Of a shim that has [cluster] enabled, with the kubelet's credentials."""
    one = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", _NODE)))
    one.start()
    return one
