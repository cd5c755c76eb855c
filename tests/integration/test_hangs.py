"""A process of ours that hangs (SIGSTOP), without a service manager: the other one notices, goes on as
if it were gone, and takes it back."""

import os
import signal

import pytest

from asking import by_token
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


# ---- the log ----

class Fifo:
    """A pipe that nobody reads until drain(): full from the start."""

    def __init__(self, path):
        self.path = path
        self._seen = ""
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            while True:
                os.write(self._fd, b"x")
        except BlockingIOError:
            pass

    def wrapper(self):
        """A command in front of a program: this is its stderr."""
        return ["sh", "-c", 'exec "$@" 2>"$0"', str(self.path)]

    def drain(self):
        try:
            return os.read(self._fd, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def seen(self):
        """All that was read by this."""
        self._seen += self.drain()
        return self._seen

    def close(self):
        os.close(self._fd)


def test_nobody_reads_the_log(runtime, make_shim, make_client, make_plugin, directory, closing):
    """Both processes start, serve and end while their stderr takes nothing; what was lost is told
    when it does."""
    logs = [closing(Fifo(directory / name)) for name in ("daemon.pipe", "bridge.pipe")]
    shim = make_shim(start=False)
    shim.wrapper = logs[0].wrapper()
    shim.start()
    kubelet = closing(BareKubelet(shim.kubelet_plugin_dir))
    kubelet.start()
    bridge = closing(Bridge(directory, socket=str(shim.feed),
                            kubelet_plugin_dir=str(shim.kubelet_plugin_dir)))
    bridge.wrapper = logs[1].wrapper()
    bridge.start()
    plugin = make_plugin(shim, GPU, ["g0"])
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    client = make_client(shim)
    client.create(client.run_pod("one"), "main", ["x"], annotations=by_token(GPU, "g0"))
    for log in logs:
        assert set(log.drain()) == {"x"}
    plugin.stop()
    shim.terminate()
    wait_until(lambda: "feed: lost" in logs[1].seen(), "the bridge says what has happened")
    for log in logs:
        assert "lines before this were lost: nobody took them" in log.seen()
