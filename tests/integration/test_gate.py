"""The gate: a new kubelet's first relist waits until it has taken what it is shown.

The kubelet is a process of that name that makes its first calls; the test is the bridge, and writes
the kubelet's checkpoint.
"""

import concurrent.futures
import itertools
import re
import socket
import time

import pytest

import kubelet_checkpoint
from asking import by_token
from ctl import ctl, ctl_json
from feed import Feed, FeedProcess
from metrics import get, scrape
from named_client import NamedClient
from protos import cri
from waiting import wait_until

GPU = "vendor.com/gpu"
EMPTY = {"filter": cri.ContainerFilter()}
LONG = {"gate_timeout": "60s"}
_marks = itertools.count()


@pytest.fixture
def start(closing):
    """start(shim, name): a process that has asked for the version as a new kubelet does."""
    def make(shim, name="kubelet"):
        one = closing(NamedClient(shim.socket, name))
        assert one.call("Version", version="") == "OK"
        return one

    return make


@pytest.fixture
def bridge(closing):
    """bridge(shim): a connection, and its open Watch, which shows GPU."""
    def make(shim):
        feed = closing(Feed(shim.feed))
        watcher = closing(feed.watch())
        watcher.wait(lambda shown: GPU in shown)
        return feed, watcher

    return make


@pytest.fixture
def shim(runtime, make_shim, make_plugin):
    """One that holds for long, with a plugin."""
    one = make_shim(bridge=LONG)
    make_plugin(one, GPU, ["g0", "g1"])
    one.wait_log("2 of 2 devices healthy")  # before that there is nothing to show
    return one


def relists(runtime):
    """How many lists with the empty filter have reached the runtime."""
    return sum(call.request == b"\n\x00" for call in runtime.calls_of("ListContainers"))


def stored(shim, watcher, *ids):
    """The kubelet has written its checkpoint, with these healthy devices, and the shim has read
    it: it shows what a pod holds by it."""
    shim.kubelet_plugin_dir.mkdir(exist_ok=True)
    mark = f"gone-{next(_marks)}"
    entry = kubelet_checkpoint.Entry("uid-1", "main", GPU, {-1: [mark]}, b"")
    kubelet_checkpoint.write(shim.kubelet_plugin_dir,
                             kubelet_checkpoint.encode([entry], {GPU: [*ids, mark]}))
    watcher.wait(lambda shown: mark in shown[GPU].devices)


def held(kubelet, runtime, count=1):
    """Calls that are held: another one of the same connection, which came after, has passed."""
    before = relists(runtime)
    calls = [kubelet.begin("ListContainers", **EMPTY) for _ in range(count)]
    assert kubelet.call("ListContainers") == "OK"
    assert not any(call.done() for call in calls)
    assert relists(runtime) == before
    return calls


def let_go(calls):
    assert [call.result(60) for call in calls] == ["OK"] * len(calls)


def test_held_until_the_kubelet_has_it(runtime, shim, start, bridge):
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    calls = held(kubelet, runtime, 3)
    stored(shim, watcher, "g0")
    feed.report(kubelet.pid, watcher.shown, stored=True)
    stored(shim, watcher, "g1")
    feed.report(kubelet.pid, watcher.shown, stored=True)
    assert kubelet.call("ListContainers") == "OK"
    assert not any(call.done() for call in calls)
    stored(shim, watcher, "g0", "g1")
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)
    shim.wait_log("all resources (1) are registered and stored")
    assert re.search(rf"kubelet \(process {kubelet.pid}\): its first relist goes on after \d+ ms",
                     shim.log())
    let_go([kubelet.begin("ListContainers", **EMPTY)])  # and never again
    assert kubelet.call("Version", version="") == "OK"
    let_go([kubelet.begin("ListContainers", **EMPTY)])


def test_status_has_the_kubelet_that_lives(shim, start):
    """One that has ended is not told as if it were there, with what it was last."""
    def seen():
        kubelet = ctl_json(shim, "status")["kubelet"]
        return kubelet["pid"], kubelet["gate"]

    first = start(shim)
    assert seen() == (first.pid, "armed")
    second = start(shim)
    assert seen() == (second.pid, "armed")
    second.kill()
    assert seen() == (first.pid, "armed")
    first.kill()
    assert seen() == (None, "open")
    [line] = [line.split() for line in ctl(shim, "status").stdout.splitlines() if line.startswith("kubelet")]
    assert line == ["kubelet", "not", "seen", "-", "-", "-"]


@pytest.mark.parametrize("missing", [{"registered": False}, {"version": 1}, {"stored": False}])
def test_held_on_while_something_is_missing(runtime, shim, start, bridge, missing):
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    calls = held(kubelet, runtime)
    stored(shim, watcher, "g0", "g1")
    feed.report(kubelet.pid, watcher.shown, **{"stored": True, **missing})
    assert kubelet.call("ListContainers") == "OK"
    assert not calls[0].done()
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)


def test_not_ready_while_it_holds(directory, runtime, make_shim, make_plugin, start, bridge):
    path = directory / "metrics.sock"
    shim = make_shim(bridge=LONG, metrics={"listen": str(path)})
    make_plugin(shim, GPU, ["g0"])
    shim.wait_log("1 of 1 devices healthy")
    feed, watcher = bridge(shim)
    wait_until(lambda: get(path, "/readyz")[0] == 200, "it is ready")
    kubelet = start(shim)
    calls = held(kubelet, runtime)
    status, _, words = get(path, "/readyz")
    assert status == 503 and "a kubelet that has started is held" in words
    assert get(path, "/healthz")[0] == 200
    assert scrape(path)["gate_holds"].value() == 1
    stored(shim, watcher, "g0")
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)
    assert get(path, "/readyz")[0] == 200
    families = scrape(path)
    assert families["gate_holds"].value() == 0
    assert families["gate_held_seconds"].value("_count") == 1
    assert families["feed_connected"].value() == 1


def test_another_kubelets_report_does_not_count(runtime, shim, start, bridge):
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    stored(shim, watcher, "g0", "g1")
    calls = held(kubelet, runtime)
    feed.report(kubelet.pid + 1, watcher.shown, stored=True)
    assert kubelet.call("ListContainers") == "OK"
    assert not calls[0].done()
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)


def test_of_two_bridges_the_older_may_be_the_one_that_has_it(runtime, shim, start, bridge,
                                                             closing):
    """A new one that has just come has nothing registered."""
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    stored(shim, watcher, "g0", "g1")
    newer = closing(FeedProcess(shim.feed, kubelet.pid + 1))
    newer.start()
    feed.report(kubelet.pid, watcher.shown)
    calls = held(kubelet, runtime)
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)


def test_of_two_bridges_the_newer_may_be_the_one_that_has_it(runtime, shim, start, bridge,
                                                             closing):
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    stored(shim, watcher, "g0", "g1")
    feed.report(kubelet.pid, watcher.shown, registered=False)
    calls = held(kubelet, runtime)
    newer = closing(FeedProcess(shim.feed, kubelet.pid))
    newer.start()
    let_go(calls)


def test_refused_resource_is_not_waited_for(runtime, shim, start, bridge):
    """The kubelet will not take it, however long it is held."""
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    calls = held(kubelet, runtime)
    feed.report(kubelet.pid, watcher.shown, registered=False, refused=True)
    let_go(calls)
    shim.wait_log(f"it has refused {GPU}")


def test_file_of_a_later_format(runtime, shim, start, bridge):
    """That the bridge saw it written is enough then."""
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    calls = held(kubelet, runtime)
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, '{"version": 9}')
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)


def test_fails_open_without_a_bridge(runtime, make_shim, make_plugin, start):
    shim = make_shim(bridge={"gate_timeout": "300ms"})
    make_plugin(shim, GPU, ["g0"])
    kubelet = start(shim)
    let_go([kubelet.begin("ListContainers", **EMPTY) for _ in range(3)])
    shim.wait_log("the time limit (bridge.gate_timeout without a bridge): no bridge has reported")
    let_go([kubelet.begin("ListContainers", **EMPTY)])


@pytest.fixture
def hasty(runtime, make_shim, make_plugin):
    """One that does not hold for long, with a plugin."""
    one = make_shim(bridge={"gate_timeout": "200ms"})
    make_plugin(one, GPU, ["g0"])
    one.wait_log("1 of 1 devices healthy")
    return one


def held_on(calls):
    """For some times gate_timeout."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        assert not concurrent.futures.wait(calls, 0.05, "FIRST_COMPLETED").done


def make_kubelet_sock(shim, closing):
    shim.kubelet_plugin_dir.mkdir(exist_ok=True)
    path = shim.kubelet_plugin_dir / "kubelet.sock"
    path.unlink(missing_ok=True)
    closing(socket.socket(socket.AF_UNIX)).bind(str(path))


def test_the_limit_counts_from_the_kubelets_socket(runtime, hasty, start, bridge, closing):
    """... and not from that of an earlier kubelet. A bridge is there, but does not do its work."""
    bridge(hasty)
    make_kubelet_sock(hasty, closing)
    calls = held(start(hasty), runtime, 2)
    held_on(calls)
    make_kubelet_sock(hasty, closing)
    let_go(calls)
    hasty.wait_log("the time limit (bridge.gate_timeout after its kubelet.sock): no bridge has")


def test_the_limit_counts_from_when_the_bridge_went(runtime, hasty, start, bridge):
    feed, _watcher = bridge(hasty)
    calls = held(start(hasty), runtime)
    held_on(calls)
    feed.close()
    let_go(calls)
    hasty.wait_log("the time limit (bridge.gate_timeout without a bridge)")


def test_the_limit_of_a_daemon_that_was_restarted(runtime, hasty, make_client, start, bridge,
                                                  closing):
    """It still knows which socket was there before."""
    client = make_client(hasty)
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))  # so it is stored
    make_kubelet_sock(hasty, closing)
    bridge(hasty)
    kubelet = start(hasty)
    held(kubelet, runtime)
    hasty.kill()
    hasty.start()
    kubelet.reconnect()
    bridge(hasty)
    calls = held(kubelet, runtime)
    held_on(calls)
    make_kubelet_sock(hasty, closing)
    let_go(calls)


def test_kubelets_one_after_the_other(runtime, hasty, start, bridge, closing):
    """Each dies after its socket was made; the last one's own is waited for."""
    bridge(hasty)
    for _ in range(3):
        kubelet = start(hasty)
        calls = held(kubelet, runtime)
        make_kubelet_sock(hasty, closing)
        kubelet.kill()
    calls = held(start(hasty), runtime)
    held_on(calls)
    make_kubelet_sock(hasty, closing)
    let_go(calls)


def relist(client):
    assert client.call("ListPodSandbox", filter=cri.PodSandboxFilter()) == "OK"
    assert client.call("ListContainers", **EMPTY) == "OK"


def test_tells_who_is_taken_for_the_kubelet(shim, start):
    kubelet = start(shim)
    shim.wait_log(f"process {kubelet.pid} (kubelet) is taken for the kubelet")
    shim.wait_log(f"kubelet (process {kubelet.pid}) has started")
    assert kubelet.call("Version", version="") == "OK"
    assert shim.log().count("is taken for the kubelet") == 1
    assert shim.log().count("has started") == 1


@pytest.mark.parametrize("settings", [{}, {"gate": False}])
def test_tells_once_who_looks_like_a_kubelet(runtime, make_shim, start, settings):
    shim = make_shim(bridge=settings)
    words = 'calls the runtime as a kubelet does, and is not in bridge.kubelet_processes'
    crictl = start(shim, "crictl")
    relist(crictl)  # as "crictl ps -a"
    first, second = start(shim, "kubelet-of-ours"), start(shim, "kubelet-of-ours")
    for _ in range(3):
        relist(first)
    relist(second)
    relist(second)
    shim.wait_log(f"process {first.pid} (kubelet-of-ours) {words}")
    assert 'add "kubelet-of-ours" there' in shim.log()
    assert shim.log().count(words) == 1


# ---- what the core makes of it: a kubelet's start, and its first list ----


def health(shown):
    return shown[GPU].health()["g0"]


def end_of_mask(watcher):
    """A kubelet that has started has admitted its pods: the device is shown as it is."""
    watcher.wait(lambda shown: not health(shown))


@pytest.fixture
def make_short_mask(runtime, make_shim, make_client, make_plugin):
    """make_short_mask(**bridge): one whose mask is short, with a pod that holds a device which is
    not healthy."""
    def make(**settings):
        shim = make_shim(bridge={**LONG, "mask": "500ms", **settings})
        plugin = make_plugin(shim, GPU, ["g0", "g1"])
        shim.wait_log("2 of 2 devices healthy")
        client = make_client(shim)
        client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
        plugin.set_devices({"g0": False, "g1": True})
        shim.wait_log("1 of 2 devices healthy")
        return shim

    return make


def test_held_devices_are_healthy_to_a_kubelet_that_starts(runtime, make_short_mask, start, bridge):
    """... until the mask after its relist, for which it waits longer than that; to one that runs
    they are as they are."""
    shim = make_short_mask()
    feed, watcher = bridge(shim)
    end_of_mask(watcher)
    kubelet = start(shim)
    watcher.wait(health)
    calls = held(kubelet, runtime)
    held_on(calls)
    assert health(watcher.shown)
    stored(shim, watcher, "g0", "g1")
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)
    end_of_mask(watcher)


def test_held_devices_are_as_they_are_to_a_kubelet_that_reconnects(make_short_mask, start, bridge,
                                                                   make_plugin):
    """It has listed again, not started, also where the daemon is another one than before."""
    shim = make_short_mask(gate=False)
    kubelet = start(shim)
    for resource in ("vendor.com/a", "vendor.com/b"):
        _feed, watcher = bridge(shim)
        end_of_mask(watcher)
        messages = len(watcher.messages)
        kubelet.reconnect()
        assert kubelet.call("Version", version="0.1.0") == "OK"
        relist(kubelet)
        make_plugin(shim, resource, ["d0"])  # so that something is sent
        watcher.wait(lambda shown, resource=resource: resource in shown)
        assert not any(device.healthy for message in watcher.messages[messages:]
                       for one in message.resources if one.name == GPU
                       for device in one.list.devices if device.id == "g0")
        shim.kill()
        shim.start()


def test_nothing_is_dropped_before_a_kubelet_has_listed(runtime, make_shim, make_client, make_plugin,
                                                        bridge, closing):
    """A runtime that lists nothing, as after a reboot, takes nobody's allocation; other clients'
    lists are not the kubelet's."""
    shim = make_shim(plugins={"kubelet_wait": "1h"})
    make_plugin(shim, GPU, ["g0", "g1"])
    shim.wait_log("2 of 2 devices healthy")
    client = make_client(shim)
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    shim.kill()
    runtime.state.pods.clear()
    runtime.state.containers.clear()
    shim.start()
    _feed, watcher = bridge(shim)
    shim.wait_log("runtime listed: 0 pods")
    crictl = closing(NamedClient(shim.socket, "crictl"))
    relist(crictl)
    kubelet = closing(NamedClient(shim.socket, "kubelet"))
    assert kubelet.call("Version", version="0.1.0") == "OK"
    assert kubelet.call("ListPodSandbox", filter=cri.PodSandboxFilter(id="p1")) == "OK"
    make_plugin(shim, "vendor.com/nic", ["n0"])  # so that something is sent
    watcher.wait(lambda shown: "vendor.com/nic" in shown)
    assert watcher.shown[GPU].devices["g0"].held
    relist(kubelet)
    watcher.wait(lambda shown: not shown[GPU].devices["g0"].held)


def test_nothing_to_show(runtime, make_shim, start):
    shim = make_shim(bridge=LONG)
    kubelet = start(shim)
    let_go([kubelet.begin("ListContainers", **EMPTY)])
    shim.wait_log("there is nothing to show it")


def test_goes_on_before_the_kubelet_gives_up(runtime, shim, start):
    """Its own deadline comes before the time limit: the call still succeeds."""
    kubelet = start(shim)
    let_go([kubelet.begin("ListContainers", timeout=5, **EMPTY)])
    shim.wait_log("the time limit")


def test_given_up_calls_are_held_anew(runtime, shim, start, bridge):
    """The kubelet's connection is lost: what it asks then is still its first relist."""
    feed, watcher = bridge(shim)
    kubelet = start(shim)
    held(kubelet, runtime)
    second = start(shim)  # another kubelet process, as after a crash of the first
    kubelet.kill()
    calls = held(second, runtime)
    stored(shim, watcher, "g0", "g1")
    feed.report(second.pid, watcher.shown, stored=True)
    let_go(calls)


def test_others_are_never_held(runtime, shim, start):
    crictl = start(shim, "crictl")
    let_go([crictl.begin("ListContainers", **EMPTY)])
    kubelet = start(shim)
    let_go([kubelet.begin("ListContainers"),
            kubelet.begin("ListContainers", filter=cri.ContainerFilter(id="c1")),
            kubelet.begin("ListPodSandbox")])
    let_go([crictl.begin("ListContainers", **EMPTY)])


def test_a_kubelet_that_only_reconnects_is_not_held(runtime, shim, closing):
    """It has not just started: it asks for the version by number, if at all."""
    kubelet = closing(NamedClient(shim.socket, "kubelet"))
    assert kubelet.call("Version", version="0.1.0") == "OK"
    let_go([kubelet.begin("ListContainers", **EMPTY)])


@pytest.mark.parametrize("bridge_settings", [{"gate": False}, {"enabled": False},
                                             {"kubelet_processes": ["k3s-server"]}])
def test_switched_off(runtime, make_shim, make_plugin, start, bridge_settings):
    shim = make_shim(bridge={**LONG, **bridge_settings})
    make_plugin(shim, GPU, ["g0"])
    let_go([start(shim).begin("ListContainers", **EMPTY)])


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_daemon_gone_while_it_holds(runtime, shim, client, start, bridge, end):
    """The next one knows whom to hold: the kubelet does not announce itself again."""
    bridge(shim)
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))  # so it is stored
    kubelet = start(shim)
    calls = held(kubelet, runtime)
    getattr(shim, end)()
    assert calls[0].result(60) == "UNAVAILABLE"
    shim.start()
    kubelet.reconnect()
    feed, watcher = bridge(shim)
    calls = held(kubelet, runtime)
    stored(shim, watcher, "g0", "g1")
    feed.report(kubelet.pid, watcher.shown, stored=True)
    let_go(calls)
    assert not (shim.directory / "gate").exists()
