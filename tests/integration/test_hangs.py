"""A process of ours that hangs (SIGSTOP), without a service manager: the other one notices, goes on as
if it were gone, and takes it back."""

import os
import signal

import pytest

from bare_kubelet import BareKubelet
from bridge_process import Bridge
from waiting import wait_until

GPU = "vendor.com/gpu"


@pytest.fixture
def shim(runtime, make_shim):
    return make_shim(bridge={"mask": "1s"})


@pytest.fixture
def kubelet(shim, closing):
    one = closing(BareKubelet(shim.kubelet_plugin_dir))
    one.start()
    return one


@pytest.fixture
def bridge(shim, kubelet, make_plugin, directory, closing):
    """One that shows the kubelet a plugin's device."""
    make_plugin(shim, GPU, ["g0"])
    one = closing(Bridge(directory, socket=str(shim.feed),
                         kubelet_plugin_dir=str(shim.kubelet_plugin_dir), mask="1s"))
    one.start()
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    return one


@pytest.fixture
def stopped():
    """stopped(process): it is, until the end of the test."""
    pids = []

    def stop(process):
        os.kill(process.pid, signal.SIGSTOP)
        pids.append(process.pid)

    yield stop
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_a_daemon_that_hangs(shim, kubelet, bridge, stopped):
    """Its lists are masked from then on, as if it had gone: when the mask has run out the kubelet is
    told; and when it goes on, that all is well."""
    stopped(shim)
    bridge.wait_log("feed: lost: UNAVAILABLE: connection lost: the peer hangs")
    kubelet.wait_health(GPU, {"g0": "Unhealthy"})
    os.kill(shim.pid, signal.SIGCONT)
    kubelet.wait_health(GPU, {"g0": "Healthy"})


def test_a_bridge_that_hangs(shim, bridge, stopped):
    """The daemon says so, and serves it again."""
    stopped(bridge)
    shim.wait_log(f"process {bridge.pid} hangs")
    shim.wait_log(f"the bridge (process {bridge.pid}) has gone")
    os.kill(bridge.pid, signal.SIGCONT)
    wait_until(lambda: shim.log().count("the bridge is here") == 2, "it is back")
