"""What crashes the daemon or the bridge again and again is not done for ever: a create is refused, a
checkpoint and a snapshot are set aside."""

import os
import signal
import struct
import time

import grpc
import pytest

from asking import by_token, refused
from bridge_process import Bridge
from feed_server import FeedServer, Shown
from shim import BINARY
from waiting import wait_until

GPU = "vendor.com/gpu"
POINTS = BINARY.parents[1] / "tests/points/cri-device-shim-points"  # ends where it is told to
BEGUN = "shim/relay/pending_creates.c begun"
CHECKPOINT, SNAPSHOT = 1, 2  # DEATHS_* in shim/deaths.h


@pytest.fixture
def shim(runtime, make_shim, make_plugin):
    """One whose plugin has gone: who asks for its device is held."""
    one = make_shim(plugins={"hold": "60s"})
    plugin = make_plugin(one, GPU, ["g0"])
    one.wait_log("1 of 1 devices healthy")
    one.wait_plugins_stored()
    plugin.stop()
    one.wait_log("its devices are unhealthy")
    return one


def end(shim, number):
    os.kill(shim.pid, number)
    assert shim.wait_exit() == -number


def die_holding(shim, client, pod, number, times=3):
    """The kubelet asks again and again, and each time the daemon dies with the create under way."""
    held = shim.log().count("held: container")
    for count in range(1, times + 1):
        call = client.begin("CreateContainer", client.create_request(
            pod, "main", annotations=by_token(GPU, "g0")))
        shim.wait_log("held: container", held + count)
        end(shim, number)
        assert call.exception() is not None
        shim.start()
        client.reconnect()


def test_a_create_that_crashes_the_daemon(shim, make_client):
    """The fourth time it is refused, and loudly; what else is asked is as ever."""
    client = make_client(shim)
    pod = client.run_pod("poison")
    die_holding(shim, client, pod, signal.SIGABRT)
    with refused(grpc.StatusCode.UNAVAILABLE, "has crashed or hung three times within a minute"):
        client.create(pod, "main", annotations=by_token(GPU, "g0"))
    assert "error: CreateContainer: cri-device-shim has crashed or hung three times" in shim.log()
    client.create(client.run_pod("other"), "main")
    shim.terminate()


def test_a_create_over_which_the_kernel_ends_the_daemon(shim, make_client, background):
    """At once, so that nobody has a word: it was at that one each time. Who waits beside it, and is
    asked for again as often, waits on."""
    client = make_client(shim)
    pod, beside = client.run_pod("greedy"), client.run_pod("beside")
    shim.kill()
    shim.binary = POINTS
    for death in range(3):
        shim.wrapper = ("env", f"SHIM_POINT={BEGUN}", "SHIM_POINT_COUNT=2")
        shim.start()
        client.reconnect()
        held = background.submit(client.create, beside, "main", annotations=by_token(GPU, "g0"))
        shim.wait_log("held: container", death + 1)
        with pytest.raises(grpc.RpcError):
            client.create(pod, "main")
        assert shim.wait_exit() == -signal.SIGKILL
        assert held.exception() is not None
    shim.wrapper = ()
    shim.start()
    client.reconnect()
    with refused(grpc.StatusCode.UNAVAILABLE, "has crashed or hung three times within a minute"):
        client.create(pod, "main")
    assert "error: CreateContainer: cri-device-shim has crashed or hung three times" in shim.log()
    held = background.submit(client.create, beside, "main", annotations=by_token(GPU, "g0"))
    shim.wait_log("held: container", 4)
    client.create(client.run_pod("other"), "main")
    shim.terminate()
    assert held.exception() is not None


def test_whoever_kills_the_daemon_blames_no_create(shim, make_client):
    client = make_client(shim)
    pod = client.run_pod("innocent")
    die_holding(shim, client, pod, signal.SIGKILL, times=4)
    assert "has crashed or hung" not in shim.log()


def test_a_create_that_hangs_the_daemon(shim, make_client):
    """It was marked to be long at it when others ended it. That counts as a crash does."""
    client = make_client(shim)
    pod = client.run_pod("endless")
    die_holding(shim, client, pod, signal.SIGABRT, times=1)
    deaths = shim.directory / "deaths"
    (_, job), = struct.iter_unpack("=QQ", deaths.read_bytes())
    mark = deaths.with_name("deaths.at")
    for _ in range(2):
        shim.kill()
        mark.write_bytes(struct.pack("=QQ", now_ms(), job))
        shim.start()
        assert not mark.exists()
    client.reconnect()
    with refused(grpc.StatusCode.UNAVAILABLE, "has crashed or hung three times within a minute"):
        client.create(pod, "main", annotations=by_token(GPU, "g0"))
    shim.terminate()


def now_ms():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)


def noted(path, job):
    """As two crashes leave it: deaths.c, struct note."""
    now = now_ms()
    path.write_bytes(b"".join(struct.pack("=QQ", now - ago, job) for ago in (2000, 1000)))


def test_a_checkpoint_that_crashes_its_reader(runtime, make_shim, make_client):
    """Noted twice, it is set aside by the third daemon, which starts; the fourth reads its own."""
    shim = make_shim()
    shim.wait_log("plugins register in")
    shim.kill()
    noted(shim.directory / "deaths", CHECKPOINT)
    shim.start()
    shim.wait_log("is not read again (the process has crashed reading it); it was set aside as")
    make_client(shim).run_pod("one")
    shim.kill()
    shim.start()
    shim.wait_log("plugins register in", 3)
    assert shim.log().count("is not read again") == 1
    assert len(list(shim.state_dir.glob("checkpoint.db.damaged-*Z"))) == 1


def crash_reading(bridge, deaths):
    """A bridge dies while it takes a large snapshot. The first may be through with it by then."""
    before = deaths.stat().st_size if deaths.exists() else 0
    for _ in range(50):
        lines = bridge.log().count("shown as before")
        bridge.start()
        bridge.wait_log("shown as before", lines + 1)
        end(bridge, signal.SIGABRT)
        if deaths.exists() and deaths.stat().st_size > before:
            return
    pytest.fail("no bridge has noted at what it was")


def test_a_snapshot_that_crashes_its_reader(directory, closing):
    """Two bridges that crash over it note that, and the third sets it aside, and starts."""
    feed = closing(FeedServer(directory / "run" / "bridge.sock"))
    feed.resources = {GPU: Shown([f"g{number}" for number in range(100_000)])}
    feed.start()
    bridge = closing(Bridge(directory))
    bridge.start()
    wait_until(bridge.snapshot.exists, "the snapshot")
    bridge.kill()
    deaths = bridge.snapshot.with_name("bridge.deaths")
    for _ in range(2):
        crash_reading(bridge, deaths)
    assert {job for _, job in struct.iter_unpack("=QQ", deaths.read_bytes())} == {SNAPSHOT}
    shown = bridge.log().count("shown as before")
    bridge.start()
    bridge.wait_log("the bridge has crashed reading it, twice; it is set aside")
    feed.wait_report(GPU, lambda _: True)
    assert bridge.snapshot.with_name("bridge.snapshot.damaged").exists()
    assert bridge.log().count("shown as before") == shown
