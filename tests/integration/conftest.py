import concurrent.futures
import os

import pytest

from ctl import ctl_json
from runtime import Runtime
from waiting import wait_until


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
    """AddressSanitizer keeps little of what was freed, so that growth would be seen. Ask for it
    before the shim."""
    options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", f"{options}:quarantine_size_mb=8")
