"""The feed for the bridge: what the kubelet is to be shown, what it has taken, what it asks.

The test is the bridge here, a real plugin stands at the other end.
"""

import os
import signal
import threading
import time

import grpc
import pytest

import kubelet_checkpoint
from asking import by_token
from feed import Feed
from plugin import PluginProcess
from protos import deviceplugin
from waiting import GENEROUS_S

GPU = "vendor.com/gpu"
NIC = "other.com/nic"
SETTLE_S = 0.5  # FEED_SETTLE_MS


@pytest.fixture
def make_feed(closing):
    """make_feed(shim): a connection of a bridge."""
    return lambda shim: closing(Feed(shim.feed))


@pytest.fixture
def watch(make_feed, closing):
    """watch(shim): an open Watch on a connection of its own."""
    return lambda shim: closing(make_feed(shim).watch())


def healthy(*ids):
    return dict.fromkeys(ids, True)


def test_first_message_is_everything(shim, watch, make_plugin):
    make_plugin(shim, NIC, ["n0"])
    make_plugin(shim, GPU, {"g0": True, "g1": False}, numa={"g1": 3})
    watcher = watch(shim)
    watcher.wait(lambda shown: {GPU, NIC} <= shown.keys())
    late = watch(shim)
    late.wait(lambda shown: True)
    first = late.messages[0]
    assert [one.name for one in first.resources] == [NIC, GPU]
    assert first.daemon_version and first.mask_ms == 120_000
    assert late.shown[GPU].health() == {"g0": True, "g1": False}
    assert list(late.shown[GPU].devices["g1"].numa_nodes) == [3]
    assert not late.shown[GPU].devices["g0"].held
    assert late.shown[GPU].mask_end_ms == 0


def test_only_what_changed_is_sent(shim, watch, make_plugin):
    gpu = make_plugin(shim, GPU, ["g0"])
    make_plugin(shim, NIC, ["n0"])
    watcher = watch(shim)
    watcher.wait(lambda shown: {GPU, NIC} <= shown.keys())
    before = watcher.shown
    gpu.set_devices({"g0": False})
    watcher.wait(lambda shown: shown[GPU].health() == {"g0": False})
    last = {one.name: one for one in watcher.messages[-1].resources}
    assert last[GPU].HasField("list") and not last[NIC].HasField("list")
    assert last[GPU].version > before[GPU].version
    assert last[NIC].version == before[NIC].version


def test_two_watchers(shim, watch, make_plugin):
    """An old and a new bridge: both get everything, one may go."""
    plugin = make_plugin(shim, GPU, ["g0"])
    old, new = watch(shim), watch(shim)
    for watcher in old, new:
        watcher.wait(lambda shown: GPU in shown)
    plugin.set_devices(["g0", "g1"])
    for watcher in old, new:
        watcher.wait(lambda shown: shown[GPU].health() == healthy("g0", "g1"))
    old.stop()
    plugin.set_devices(["g1"])
    new.wait(lambda shown: shown[GPU].health() == healthy("g1"))


def test_outage_is_masked_then_shown_then_withdrawn(runtime, make_shim, watch, make_plugin):
    shim = make_shim(plugins={"grace": "2s"}, bridge={"mask": "1s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    watcher = watch(shim)
    watcher.wait(lambda shown: GPU in shown)
    plugin.stop()
    watcher.wait(lambda shown: GPU not in shown)
    seen = []  # (healthy, masked) of each message, without repetitions
    devices = {}
    for message in watcher.messages:
        for one in message.resources:
            devices = {device.id: device.healthy for device in one.list.devices} or devices
            state = (devices["g0"], one.mask_end_ms > 0)
            seen += [state] if seen[-1:] != [state] else []
    assert seen == [(True, False), (True, True), (False, False)]


def test_without_mask_an_outage_shows_at_once(runtime, make_shim, watch, make_plugin):
    shim = make_shim(bridge={"mask": "0s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    watcher = watch(shim)
    watcher.wait(lambda shown: GPU in shown)
    assert watcher.messages[0].mask_ms == 0
    plugin.stop()
    watcher.wait(lambda shown: shown[GPU].health() == {"g0": False})
    assert not any(one.mask_end_ms for message in watcher.messages for one in message.resources)
    plugin.start()
    watcher.wait(lambda shown: shown[GPU].health() == healthy("g0"))


def test_restored_state_is_shown(shim, client, watch, make_plugin):
    """A daemon that was killed shows what it showed before, also without its plugin."""
    plugin = make_plugin(shim, GPU, {"g0": True, "g1": False})
    watcher = watch(shim)
    watcher.wait(lambda shown: GPU in shown)
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))  # so it is stored
    shim.kill()
    watcher.wait_over()
    plugin.stop()
    shim.start()
    watcher = watch(shim)
    watcher.wait(lambda shown: True)
    assert watcher.shown[GPU].devices.keys() == {"g0", "g1"}
    assert watcher.shown[GPU].devices["g0"].healthy
    assert watcher.shown[GPU].mask_end_ms > 0
    plugin.start()
    watcher.wait(lambda shown: shown[GPU].mask_end_ms == 0
                 and shown[GPU].health() == {"g0": True, "g1": False})


def test_unhealthy_device_does_not_flap_over_a_restart(shim, client, watch, make_plugin):
    """Its plugin is asked before anything is shown. A start so slow that the time for that was over
    proves nothing: once more."""
    make_plugin(shim, GPU, {"g0": True, "g1": False})
    watch(shim).wait(lambda shown: GPU in shown)
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))  # so it is stored
    for _ in range(60):
        shim.kill()
        before = time.monotonic()
        shim.start()
        watcher = watch(shim)
        watcher.wait(lambda shown: GPU in shown)
        first = watcher.messages[0]
        if time.monotonic() - before < SETTLE_S:
            break
    else:
        pytest.fail("no start was fast enough")
    assert [one.mask_end_ms for one in first.resources] == [0]
    assert [(one.id, one.healthy) for one in first.resources[0].list.devices] == [("g0", True),
                                                                                   ("g1", False)]


def test_plugin_that_hangs_does_not_hold_up_the_others(shim, client, watch, make_plugin, closing):
    """Its devices count as healthy after a moment, until it lists them."""
    gpu = closing(PluginProcess(shim.plugin_dir, GPU, {"g0": True, "g1": False}))
    gpu.start()
    make_plugin(shim, NIC, {"n0": False})
    watch(shim).wait(lambda shown: {GPU, NIC} <= shown.keys())
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    shim.kill()
    os.kill(gpu.pid, signal.SIGSTOP)
    shim.start()
    watcher = watch(shim)
    watcher.wait(lambda shown: shown[NIC].health() == {"n0": False})
    assert watcher.shown[GPU].health() == {"g0": True, "g1": True}
    os.kill(gpu.pid, signal.SIGCONT)
    watcher.wait(lambda shown: shown[GPU].health() == {"g0": True, "g1": False})


# ---- the kubelet's own checkpoint ----

def kubelet_file(*held):
    """Its text, with a container of one pod that holds these of GPU."""
    entry = kubelet_checkpoint.Entry("uid-1", "main", GPU, {-1: list(held)}, b"")
    return kubelet_checkpoint.encode([entry] if held else [], {GPU: []})


def held(shown):
    return {one for one, device in shown[GPU].devices.items() if device.held}


def test_what_the_kubelets_checkpoint_says_is_held(runtime, make_shim, watch, make_plugin):
    """Devices of its pods, which may all come back until the kubelet has listed them, are healthy to
    it from the first message on, whatever the plugin says."""
    shim = make_shim(start=False, plugins={"kubelet_wait": "1h"})
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file("g0", "gone"))
    shim.start()
    make_plugin(shim, GPU, {"g0": False, "g1": False})
    watcher = watch(shim)
    watcher.wait(lambda shown: GPU in shown and held(shown) == {"g0", "gone"})
    assert watcher.shown[GPU].health() == {"g0": True, "g1": False, "gone": True}
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file("g1"))
    watcher.wait(lambda shown: held(shown) == {"g1"})
    assert watcher.shown[GPU].health() == {"g0": False, "g1": True}
    (shim.kubelet_plugin_dir / kubelet_checkpoint.NAME).unlink()
    watcher.wait(lambda shown: not held(shown))


def test_a_device_that_is_held_goes_out_alone(runtime, make_shim, make_feed, make_plugin, closing):
    """To a bridge that takes changes; an older one gets the list, and has the same in the end."""
    shim = make_shim(start=False, plugins={"kubelet_wait": "1h"})
    shim.kubelet_plugin_dir.mkdir()
    shim.start()
    make_plugin(shim, GPU, [f"g{number}" for number in range(5000)])
    new = closing(make_feed(shim).watch(takes_changes=True))
    old = closing(make_feed(shim).watch())
    for watcher in new, old:
        watcher.wait(lambda shown: GPU in shown and len(shown[GPU].devices) == 5000)
    for devices in ["g17"], ["g17", "g4999"], []:
        kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file(*devices))
        for watcher in new, old:
            watcher.wait(lambda shown: held(shown) == set(devices))
        assert new.shown[GPU] == old.shown[GPU]
        assert new.messages[-1].ByteSize() < 200 < 50_000 < old.messages[-1].ByteSize()
        assert not new.messages[-1].resources[0].HasField("list")


def test_kubelets_directory_comes_and_goes(shim, watch, make_plugin):
    """It may be made after the start, and be another one later."""
    make_plugin(shim, GPU, ["g0", "g1"])
    watcher = watch(shim)
    watcher.wait(lambda shown: GPU in shown)
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file("g0"))
    watcher.wait(lambda shown: held(shown) == {"g0"})
    shim.kubelet_plugin_dir.rename(shim.directory / "old")
    watcher.wait(lambda shown: not held(shown))
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file("g1"))
    watcher.wait(lambda shown: held(shown) == {"g1"})


def test_damaged_kubelets_checkpoint_leaves_what_it_said(shim, watch, make_plugin):
    """The kubelet that runs still has it, and writes the file anew."""
    make_plugin(shim, GPU, ["g0"])
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file("g0"))
    watcher = watch(shim)
    watcher.wait(lambda shown: GPU in shown and held(shown) == {"g0"})
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, "{")
    shim.wait_log(kubelet_checkpoint.NAME)
    make_plugin(shim, NIC, ["n0"])  # what is shown is looked at anew
    watcher.wait(lambda shown: NIC in shown)
    assert held(watcher.shown) == {"g0"}
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_file())
    watcher.wait(lambda shown: not held(shown))


# ---- what the kubelet asks ----

def test_preference_is_passed_on(shim, make_feed, watch, make_plugin):
    asked = []

    def prefer(available, must_include, size):
        asked.append((sorted(available), must_include, size))
        return ["g2", "g1"]

    make_plugin(shim, GPU, ["g0", "g1", "g2"], prefer=prefer)
    watch(shim).wait(lambda shown: GPU in shown)
    answer = make_feed(shim).prefer(GPU, ["g0", "g1", "g2"], ["g1"], 2)
    assert sorted(answer) == ["g1", "g2"]
    assert asked == [(["g0", "g1", "g2"], ["g1"], 2)]


def test_no_preference(runtime, make_shim, make_feed, watch, make_plugin):
    """Nobody to ask, or nobody that has one, is no error."""
    shim = make_shim()
    make_plugin(shim, GPU, ["g0", "g1"])
    watch(shim).wait(lambda shown: GPU in shown)
    feed = make_feed(shim)
    assert feed.prefer(GPU, ["g0", "g1"], [], 1) == []
    assert feed.prefer(NIC, ["n0"], [], 1) == []
    with pytest.raises(grpc.RpcError) as caught:
        feed.prefer(GPU, ["g0"], [], -1)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_late_preference_is_not_waited_for(runtime, make_shim, make_feed, watch, make_plugin):
    shim = make_shim(bridge={"preferred_timeout": "50ms"})
    release = threading.Event()

    def prefer(available, _must_include, _size):
        release.wait(GENEROUS_S)
        return available[:1]

    make_plugin(shim, GPU, ["g0", "g1"], prefer=prefer)
    watch(shim).wait(lambda shown: GPU in shown)
    try:
        assert make_feed(shim).prefer(GPU, ["g0", "g1"], [], 1) == []
    finally:
        release.set()


def test_preference_is_waited_for_as_long_as_the_settings_say_now(runtime, make_shim, make_feed,
                                                                  watch, make_plugin):
    shim = make_shim(bridge={"preferred_timeout": "1ms"})
    waits = threading.Event()

    def prefer(available, _must_include, _size):
        waits.wait(0.1)
        return available[:1]

    make_plugin(shim, GPU, ["g0"], prefer=prefer)
    watch(shim).wait(lambda shown: GPU in shown)
    shim.bridge["preferred_timeout"] = "10s"
    shim.config_path.write_text(shim.config_text())
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log("reload: changed: bridge.preferred_timeout")
    assert make_feed(shim).prefer(GPU, ["g0"], [], 1) == ["g0"]


def test_preference_nobody_waits_for_any_more(runtime, make_shim, make_feed, watch, make_plugin):
    """The kubelet gives up: the plugin's call ends with it."""
    shim = make_shim(bridge={"preferred_timeout": "10s"})
    given_up = threading.Event()
    plugin = make_plugin(shim, GPU, ["g0", "g1"], start=False, prefer=lambda *_: [])

    def prefer(_request, context):
        context.add_callback(given_up.set)
        given_up.wait(GENEROUS_S)
        return deviceplugin.PreferredAllocationResponse()

    plugin.on_prefer = prefer
    plugin.start()
    watch(shim).wait(lambda shown: GPU in shown)
    question = make_feed(shim).begin_prefer(GPU, ["g0", "g1"], [], 1)
    plugin.wait_calls("GetPreferredAllocation")
    question.cancel()
    assert given_up.wait(GENEROUS_S)


# ---- pressure and refusals ----

def large(prefix, megabytes):
    """Ids of about so many megabytes."""
    return [f"{prefix}-{number}-".ljust(1000, "x") for number in range(megabytes * 1000)]


def test_more_than_one_message(shim, make_feed, watch, make_plugin):
    """Lists that do not fit one message come one after the other; all names come in each."""
    gpu, nic = large("g", 9), large("n", 9)
    make_plugin(shim, GPU, gpu)
    make_plugin(shim, NIC, nic)
    watch(shim).wait(lambda shown: {GPU, NIC} <= shown.keys())
    late = make_feed(shim).begin_watch()
    first, second = next(late), next(late)
    for message in first, second:
        assert [one.name for one in message.resources] == [NIC, GPU]
        assert [one.HasField("list") for one in message.resources].count(True) == 1
    lists = {one.name: {device.id for device in one.list.devices}
             for message in (first, second) for one in message.resources if one.HasField("list")}
    assert lists == {GPU: set(gpu), NIC: set(nic)}


def test_watches_that_fill_their_connection(shim, make_feed, watch, make_plugin):
    """What waits for one client is bounded over all its calls; in the end each gets everything."""
    make_plugin(shim, GPU, large("g", 9))
    make_plugin(shim, NIC, large("n", 9))
    watch(shim).wait(lambda shown: {GPU, NIC} <= shown.keys())
    feed = make_feed(shim)
    for call in [feed.begin_watch() for _ in range(6)]:
        messages = [next(call), next(call)]
        assert {one.name for message in messages for one in message.resources
                if one.HasField("list")} == {GPU, NIC}


def test_watcher_that_does_not_read(shim, make_feed, watch, make_plugin):
    """What waits for it is bounded, and the newest state wins."""
    ids = large("g", 1)
    plugin = make_plugin(shim, GPU, ids)
    slow, watcher = make_feed(shim).begin_watch(), watch(shim)
    watcher.wait(lambda shown: GPU in shown)
    for turn in range(20):
        plugin.set_devices({**healthy(*ids), ids[turn]: False})
        watcher.wait(lambda shown, turn=turn: not shown[GPU].devices[ids[turn]].healthy)
    for read, message in enumerate(slow, 1):
        assert read <= 10
        lists = [{device.id: device.healthy for device in one.list.devices}
                 for one in message.resources]
        if lists == [watcher.shown[GPU].health()]:
            break


def test_report_needs_a_watch(shim, make_feed):
    with pytest.raises(grpc.RpcError) as caught:
        make_feed(shim).report(1, {})
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def test_socket_in_use(shim, make_shim):
    other = make_shim(start=False)
    other.bridge["socket"] = str(shim.feed)
    other.socket = other.directory / "o.sock"
    other.top["listen"] = str(other.socket)
    other.plugins["plugin_dir"] = str(other.directory / "o")
    other.top["state_dir"] = str(other.directory / "ostate")
    other.start()  # all else goes on
    said = f'bridge.socket = "{shim.feed}": another process serves this socket'
    other.wait_log(said)
    shim.stop()
    other.wait_log(f'bridge.socket = "{shim.feed}": works now')
    assert other.log().count(said) == 1


def test_switched_off(runtime, make_shim):
    shim = make_shim(bridge={"enabled": False})
    assert not shim.feed.exists()
