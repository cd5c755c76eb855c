"""The bridge between a scripted feed and a scripted kubelet."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

import grpc
import pytest

import process
from bare_kubelet import BareKubelet
from bridge_process import Bridge
from feed_server import FeedServer, Shown
from protos import bridge as proto
from protos import deviceplugin
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
NIC = "vendor.com/nic"
HEALTHY = {"g0": "Healthy", "g1": "Healthy"}


@pytest.fixture
def make_bridge(directory, closing):
    def make(start=True, **settings):
        one = closing(Bridge(directory, **settings))
        if start:
            one.start()
        return one

    return make


@pytest.fixture
def feed(directory, closing):
    one = closing(FeedServer(directory / "run" / "bridge.sock"))
    one.resources = {GPU: Shown(["g0", "g1"])}
    one.start()
    return one


@pytest.fixture
def kubelet(directory, closing):
    return closing(BareKubelet(directory / "device-plugins"))


def test_shown_to_the_kubelet_and_reported(feed, kubelet, make_bridge):
    kubelet.start()
    bridge = make_bridge()
    kubelet.wait_health(GPU, HEALTHY)
    report = feed.wait_report(GPU, lambda one: one.registered and one.stored)
    assert report.version == 1
    assert feed.reports[-1].kubelet_pid == os.getpid()
    request = kubelet.of("register")[0].detail
    assert request.version == "v1beta1"
    assert request.endpoint == "cri-device-shim/vendor.com_gpu.sock"
    options = kubelet.of("options")[0].detail
    assert (options.pre_start_required, options.get_preferred_allocation_available) == (False, True)
    assert bridge.endpoint(GPU).stat().st_mode & 0o777 == 0o600


# ---- the device plugin service ----


@pytest.fixture
def shown(feed, kubelet, make_bridge):
    """The bridge with GPU shown to a kubelet: (bridge, the kubelet's client of GPU)."""
    kubelet.start()
    bridge = make_bridge()
    feed.wait_report(GPU, lambda one: one.registered and one.stored)
    return bridge, kubelet.clients[GPU]


def allocate(client, *containers):
    request = deviceplugin.AllocateRequest()
    for ids in containers:
        request.container_requests.add(devices_ids=ids)
    return client.call("Allocate", request)


def token(answer, resource=GPU):
    key = f"devices.cri-device-shim/{resource.replace('/', '_')}"
    assert list(answer.annotations) == [key]
    return json.loads(answer.annotations[key])


def test_allocate_gives_the_token_only(feed, shown):
    """One answer for each container, ids as they are, known or not; the daemon is not asked."""
    _, client = shown
    feed.stop()
    odd = ['"quoted"', "new\nline", "ü–🙂", "back\\slash", "\x01\x7f", "", "g0", "g0"]
    answer = allocate(client, ["g0"], odd, [])
    assert [token(one) for one in answer.container_responses] == [
        {"resource": GPU, "ids": ids} for ids in (["g0"], odd, [])]
    for one in answer.container_responses:
        one.annotations.clear()
        assert one == deviceplugin.ContainerAllocateResponse()


def test_allocate_of_ids_that_are_no_text(shown):
    _, client = shown
    call = client.channel.unary_unary("/v1beta1.DevicePlugin/Allocate")
    with pytest.raises(grpc.RpcError) as error:
        call(b"\x0a\x03\x0a\x01\xff", timeout=GENEROUS_S)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_too_many_containers_in_one_call(shown):
    _, client = shown
    for method in "Allocate", "GetPreferredAllocation":
        call = client.channel.unary_unary(f"/v1beta1.DevicePlugin/{method}")
        with pytest.raises(grpc.RpcError) as error:
            call(b"\x0a\x00" * 65, timeout=GENEROUS_S)
        assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(allocate(client, *[["g0"]] * 64).container_responses) == 64


def test_allocate_under_a_large_answer(shown):
    """An answer over the message cap is refused, and the stream is none the worse for it."""
    _, client = shown
    with pytest.raises(grpc.RpcError) as error:
        allocate(client, ["\x01" * (4 << 20)])  # each becomes six characters
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.value.details() == "the answer is too large"
    assert allocate(client, ["g0"]).container_responses
    assert not client.ended.is_set()


def test_pre_start_is_ok(shown):
    _, client = shown
    assert client.call("PreStartContainer", deviceplugin.PreStartContainerRequest(
        devices_ids=["g0"])) == deviceplugin.PreStartContainerResponse()


def preferred(client, *containers):
    request = deviceplugin.PreferredAllocationRequest()
    for available, must_include, size in containers:
        request.container_requests.add(available_deviceIDs=available,
                                       must_include_deviceIDs=must_include, allocation_size=size)
    answer = client.call("GetPreferredAllocation", request)
    return [list(one.deviceIDs) for one in answer.container_responses]


def test_preference_is_passed_on(feed, shown):
    _, client = shown
    feed.prefer = lambda request, _: [request.available[-1]] if request.size == 1 else ["x", "ü\n"]
    assert preferred(client, (["g0", "g1"], [], 1), (["g0"], ["g1"], 2)) == [["g1"], ["x", "ü\n"]]
    assert sorted((one.size, list(one.available), list(one.must_include), one.resource)
                  for one in feed.prefers) == [(1, ["g0", "g1"], [], GPU), (2, ["g0"], ["g1"], GPU)]


def test_no_preference_when_the_daemon_fails_or_is_late(feed, kubelet, make_bridge):
    """Each container for itself; the kubelet gets its answer all the same."""
    kubelet.start()
    make_bridge(preferred_timeout="100ms")
    feed.wait_report(GPU)
    release = threading.Event()

    def prefer(request, context):
        if request.size == 2:
            context.abort(grpc.StatusCode.INTERNAL, "no")
        if request.size == 3:
            release.wait(GENEROUS_S)
        return ["g0"]

    feed.prefer = prefer
    answer = preferred(kubelet.clients[GPU], ([], [], 1), ([], [], 2), ([], [], 3))
    release.set()
    assert answer == [["g0"], [], []]
    assert preferred(kubelet.clients[GPU]) == []


def test_no_preference_without_the_daemon(feed, shown):
    bridge, client = shown
    feed.stop()
    bridge.wait_log("feed: lost")
    assert preferred(client, (["g0"], [], 1), ([], [], 1)) == [[], []]


def test_the_daemon_dies_in_a_preference(feed, shown):
    _, client = shown
    came, release = threading.Event(), threading.Event()

    def prefer(_request, _context):
        came.set()
        release.wait(GENEROUS_S)
        return []

    feed.prefer = prefer
    answers = []
    asking = threading.Thread(target=lambda: answers.append(preferred(client, (["g0"], [], 1))))
    asking.start()
    assert came.wait(GENEROUS_S)
    release.set()
    feed.stop()
    asking.join(GENEROUS_S)
    assert answers == [[[]]]


def asking(client):
    """A call for a preference, under way."""
    request = deviceplugin.PreferredAllocationRequest()
    request.container_requests.add(available_deviceIDs=["g0"], allocation_size=1)
    return client.channel.unary_unary(
        "/v1beta1.DevicePlugin/GetPreferredAllocation",
        request_serializer=lambda message: message.SerializeToString()).future(request)


def test_the_kubelet_gives_a_preference_up(feed, shown):
    """Its call is cancelled: so is ours, and the next one works."""
    _, client = shown
    came, gone = threading.Event(), threading.Event()

    def prefer(_request, context):
        context.add_callback(gone.set)
        came.set()
        gone.wait(GENEROUS_S)
        return []

    feed.prefer = prefer
    call = asking(client)
    assert came.wait(GENEROUS_S)
    call.cancel()
    assert gone.wait(GENEROUS_S)
    feed.prefer = None
    assert preferred(client, (["g0"], [], 1)) == [[]]


@pytest.mark.parametrize("how", ["stop", "withdraw", "another kubelet"])
def test_the_bridge_gives_a_preference_up(feed, shown, kubelet, closing, how):
    bridge, client = shown
    came, release = threading.Event(), threading.Event()

    def prefer(_request, _context):
        came.set()
        release.wait(GENEROUS_S)
        return []

    feed.prefer = prefer
    call = asking(client)
    assert came.wait(GENEROUS_S)
    if how == "stop":
        bridge.stop()
    elif how == "withdraw":
        feed.show({})
    else:
        kubelet.socket.unlink()
        closing(BareKubelet(kubelet.directory)).start()
    assert client.ended.wait(GENEROUS_S)
    with pytest.raises(grpc.RpcError) as error:
        call.result(GENEROUS_S)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    release.set()


_OTHER_PROCESS = """
import sys, grpc
with grpc.insecure_channel("unix:" + sys.argv[1]) as channel:
    try:
        for message in channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b"", timeout=60):
            print("a list")
    except grpc.RpcError as error:
        print(error.code().name)
"""


def test_another_process_asks_for_the_list(shown, kubelet):
    """It must not take the kubelet's stream away."""
    bridge, client = shown
    done = subprocess.run([sys.executable, "-c", _OTHER_PROCESS, bridge.endpoint(GPU)], check=True,
                          capture_output=True, text=True)
    assert done.stdout == "FAILED_PRECONDITION\n"
    assert not client.ended.is_set() and len(kubelet.of("list")) == 1


# ---- lists ----


def test_a_list_is_sent_only_when_it_differs(feed, kubelet, shown):
    """Versions, held marks and order of messages are none of the kubelet's business."""
    feed.show({GPU: Shown(["g0", "g1"], version=7, held=["g0"])})
    feed.wait_report(GPU, lambda one: one.version == 7 and one.stored)
    feed.show({GPU: Shown({"g0": True, "g1": False}, version=8)})
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Unhealthy"})
    feed.wait_report(GPU, lambda one: one.version == 8 and one.stored)
    assert len(kubelet.of("list")) == 2


def test_changes_of_a_list(feed, kubelet, shown):
    """Only what the kubelet sees of them is sent; changes of another list bring all of it anew."""
    assert feed.requests[-1].takes_changes
    feed.show({GPU: Shown(["g0", "g1"], version=2, layout=9)})
    feed.wait_report(GPU, lambda one: one.version == 2)
    sent = len(kubelet.of("list"))

    def change(version, layout=9, **flags):
        changes = [proto.Change(place=1, **flags)]
        feed.send(proto.WatchResponse(mask_ms=feed.mask_ms, resources=[proto.Resource(
            name=GPU, version=version, layout=layout, changes=changes)]))

    change(3, healthy=True, held=True)
    feed.wait_report(GPU, lambda one: one.version == 3)
    change(4, healthy=False, held=True)
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Unhealthy"})
    feed.wait_report(GPU, lambda one: one.version == 4)
    assert len(kubelet.of("list")) == sent + 1
    watches = feed.watches
    feed.resources = {GPU: Shown(["g0", "g1"], version=7, layout=5)}
    change(6, layout=5, healthy=False)
    feed.wait_watched(watches + 1)
    feed.wait_report(GPU, lambda one: one.version == 7)
    kubelet.wait_health(GPU, HEALTHY)
    assert len(kubelet.of("register")) == 1


def test_the_topology_passes(feed, kubelet, make_bridge):
    kubelet.start()
    feed.resources = {GPU: Shown(["g0", "g1", "g2"], numa={"g0": [0], "g1": [1, 0]})}
    make_bridge()
    kubelet.wait("list", GPU)
    devices = {one.ID: one for one in kubelet.of("list", GPU)[0].detail.devices}
    assert [node.ID for node in devices["g0"].topology.nodes] == [0]
    assert [node.ID for node in devices["g1"].topology.nodes] == [1, 0]
    assert not devices["g2"].HasField("topology")


def test_an_empty_list_is_shown(feed, kubelet, make_bridge):
    kubelet.start()
    feed.resources = {GPU: Shown([])}
    make_bridge()
    kubelet.wait_health(GPU, {})
    feed.wait_report(GPU, lambda one: one.registered and one.stored)


def test_a_list_that_comes_later(feed, kubelet, make_bridge):
    """A message without the list: not shown before it is there, then unchanged."""
    kubelet.start()
    feed.resources = {}
    make_bridge()
    feed.wait_watched()
    gpu = Shown(["g0", "g1"], version=3)
    feed.send(proto.WatchResponse(mask_ms=1, resources=[gpu.message(GPU, with_list=False)]))
    assert feed.wait_report(GPU, lambda one: not one.registered).version == 0
    assert not kubelet.of("register")
    feed.send(proto.WatchResponse(mask_ms=1, resources=[gpu.message(GPU)]))
    feed.wait_report(GPU, lambda one: one.registered and one.version == 3)
    feed.send(proto.WatchResponse(mask_ms=1, resources=[gpu.message(GPU, with_list=False)]))
    feed.show({GPU: Shown(["g0", "g1"], version=4)})
    feed.wait_report(GPU, lambda one: one.registered and one.version == 4)
    assert len(kubelet.wait("list")) == 1


def test_resources_come_and_go(feed, kubelet, shown):
    bridge, client = shown
    feed.show({GPU: Shown(["g0", "g1"]), NIC: Shown(["n0"])})
    feed.wait_report(NIC, lambda one: one.registered and one.stored)
    feed.show({NIC: Shown(["n0"])})
    assert client.ended.wait(GENEROUS_S)
    assert not bridge.endpoint(GPU).exists() and bridge.endpoint(NIC).exists()
    wait_until(lambda: feed.last_of(GPU) is None, "the report is without it")
    assert not kubelet.clients[NIC].ended.is_set()
    feed.show({GPU: Shown(["g0"]), NIC: Shown(["n0"])})
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    assert len(kubelet.of("register", NIC)) == 1


def test_names_that_are_none(feed, kubelet, make_bridge):
    kubelet.start()
    bad = ["", "gpu", "/gpu", "vendor.com/", "a/b/c", "../x", "vendor.com/..\n", "v_x.com/gpu",
           "vendor.com/" + "x" * 400]
    huge = "vendor.com/" + "x" * 100_000
    feed.resources = {name: Shown(["x0"]) for name in [*bad, huge]} | {GPU: Shown(["g0"])}
    bridge = make_bridge()
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    assert [event.resource for event in kubelet.of("register")] == [GPU]
    assert [one.name for one in bridge.endpoint(GPU).parent.iterdir()] == ["vendor.com_gpu.sock"]
    feed.show(dict(feed.resources))
    feed.wait_report(GPU, lambda one: one.registered and not one.refused)
    for name in bad:
        assert feed.last_of(name).refused and not feed.last_of(name).registered
    assert not feed.last_of(huge)
    assert bridge.log().count("no name for a resource") == len(bad)


def test_more_resources_than_are_shown(feed, kubelet, make_bridge):
    """And one that is named twice: the later one counts."""
    kubelet.start()
    feed.resources = {}
    bridge = make_bridge()
    feed.wait_watched()
    many = [proto.Resource(name=f"vendor.com/r{number}") for number in range(1023)]
    feed.send(proto.WatchResponse(resources=[
        Shown(["g0"]).message(GPU), *many[1:], Shown(["g1"], version=2).message(GPU), *many]))
    bridge.wait_log("feed: 2047 resources, only the first 1024 are shown")
    feed.wait_report(GPU, lambda one: one.registered and one.version == 2)
    kubelet.wait_health(GPU, {"g1": "Healthy"})
    assert len(feed.reports[-1].resources) == 1023
    assert len(kubelet.of("register")) == 1


def test_a_name_too_long_for_a_socket(feed, kubelet, make_bridge):
    """Its socket has a shortened name; two that differ only at the end have two."""
    kubelet.start()
    names = [f"{'a' * 60}.example.com/{'x' * 62}{end}" for end in "12"]
    feed.resources = {name: Shown([name[-1]]) for name in names}
    make_bridge()
    for name in names:
        kubelet.wait_health(name, {name[-1]: "Healthy"})
    endpoints = {event.detail.endpoint for event in kubelet.of("register")}
    assert len(endpoints) == 2
    assert {len(f"{kubelet.directory}/{one}") for one in endpoints} == {107}


def test_many_resources_and_many_devices(feed, kubelet, make_bridge):
    """100,000 devices; and all registrations at once, not one after the other."""
    together = threading.Barrier(8)

    def on_register(request, _context):
        if request.resource_name != GPU:
            together.wait(GENEROUS_S)

    kubelet.on_register = on_register
    kubelet.start()
    ids = [f"device-{number}" for number in range(100_000)]
    feed.resources = {f"vendor.com/r{number}": Shown(["d"]) for number in range(8)}
    feed.resources[GPU] = Shown(ids, numa={one: [1] for one in ids[::2]})
    make_bridge()
    for name in feed.resources:
        feed.wait_report(name, lambda one: one.registered and one.stored)
    assert list(kubelet.health(GPU)) == ids
    one_less = dict.fromkeys(ids, True) | {ids[77]: False}
    feed.show(feed.resources | {GPU: Shown(one_less, version=2)})
    wait_until(lambda: kubelet.health(GPU)[ids[77]] == "Unhealthy", "the change arrives")


LARGE = ["x" * (1 << 20) + str(number) for number in range(4)]  # with the rest over 4 MiB


def test_a_list_too_large_for_a_kubelet(feed, kubelet, make_bridge):
    """It ends the stream each time; said once, with the size. A list that fits ends that."""
    kubelet.start()
    feed.resources = {GPU: Shown(LARGE)}
    bridge = make_bridge()
    kubelet.wait("end", GPU, 3)
    assert not kubelet.of("list")
    feed.show({GPU: Shown(["g0", "g1"], version=2)})
    kubelet.wait_health(GPU, HEALTHY)
    feed.wait_report(GPU, lambda one: one.registered and one.version == 2)
    size = deviceplugin.ListAndWatchResponse(devices=[
        deviceplugin.Device(ID=one, health="Healthy") for one in LARGE]).ByteSize()
    said = [line for line in bridge.log().splitlines() if "takes no more than" in line]
    assert len(said) == 1
    assert f"{GPU}: its list has {size} bytes, and a kubelet takes no more than 4194304" in said[0]


def test_a_kubelet_that_takes_large_lists(feed, kubelet, make_bridge):
    kubelet.message_bytes_max = 1 << 24
    kubelet.start()
    feed.resources = {GPU: Shown(LARGE)}
    bridge = make_bridge()
    kubelet.wait_health(GPU, dict.fromkeys(LARGE, "Healthy"))
    bridge.wait_log("takes no more than")


def test_the_report_says_what_is_stored(feed, kubelet, make_bridge):
    """Only after as many checkpoints as lists: the file does not say for which list it is."""
    kubelet.stores = False
    kubelet.start()
    feed.resources = {GPU: Shown(["g0"]), NIC: Shown(["n0"])}
    make_bridge()
    for name in GPU, NIC:
        assert not feed.wait_report(name, lambda one: one.registered and one.version).stored
    kubelet.stores = True
    kubelet.store()
    # A list more: two are not stored, with one checkpoint to be counted.
    feed.show({GPU: Shown(["g0"]), NIC: Shown(["n0"]), "vendor.com/x": Shown([])})
    feed.wait_report("vendor.com/x", lambda one: one.registered)
    kubelet.store()
    for name in GPU, NIC, "vendor.com/x":
        feed.wait_report(name, lambda one: one.stored)


# ---- the kubelet comes and goes ----


def remove(tree):
    """The bridge may make something in it anew meanwhile."""
    def gone():
        shutil.rmtree(tree, ignore_errors=True)
        return not tree.exists()

    wait_until(gone, f"{tree} is removed")


def sockets_of(bridge):
    return sum("socket:" in link for link in process.open_files(bridge.pid).values())


def restart(kubelet):
    kubelet.stop()
    again = BareKubelet(kubelet.directory)
    again.start()
    return again


def test_a_kubelet_restart(feed, shown, kubelet, closing):
    """Registered anew with the new one, over a new stream, and nothing is left of the old one."""
    bridge, client = shown
    before = sockets_of(bridge)
    for _ in range(5):
        kubelet = closing(restart(kubelet))
        kubelet.wait_health(GPU, HEALTHY)
        wait_until(lambda: len(kubelet.of("register")) == 1, "one registration")
        assert client.ended.wait(GENEROUS_S)
        client = kubelet.clients[GPU]
    feed.wait_report(GPU, lambda one: one.registered and one.stored)
    wait_until(lambda: sockets_of(bridge) == before, "the old connections are closed")


def test_a_new_kubelet_beside_the_old_one(feed, shown, kubelet, closing):
    """The old stream is ended before the new registration, though the old kubelet still lives."""
    _, client = shown
    kubelet.socket.unlink()
    ended = []
    again = closing(BareKubelet(kubelet.directory,
                                on_register=lambda *_: ended.append(client.ended.wait(GENEROUS_S))))
    again.start()
    again.wait_health(GPU, HEALTHY)
    assert ended == [True]


def test_the_socket_is_removed_while_the_kubelet_lives(feed, shown, kubelet):
    """Nothing ends; the sockets of ours that went with it are back."""
    bridge, client = shown
    remove(kubelet.directory)
    kubelet.directory.mkdir()
    wait_until(bridge.endpoint(GPU).exists, "the socket is there again")
    assert allocate(client, ["g0"]).container_responses
    assert not client.ended.is_set()
    assert feed.last_of(GPU).registered


@pytest.mark.parametrize("what", ["socket", "subdirectory"])
def test_what_is_removed_is_made_anew(feed, shown, kubelet, closing, what):
    bridge, client = shown
    endpoint = bridge.endpoint(GPU)
    before = endpoint.stat()
    if what == "socket":
        endpoint.unlink()
    else:
        shutil.rmtree(endpoint.parent, ignore_errors=True)
    wait_until(lambda: endpoint.exists() and endpoint.stat().st_mtime_ns != before.st_mtime_ns,
               "the socket is there again")
    assert not client.ended.is_set()
    closing(restart(kubelet)).wait_health(GPU, HEALTHY)


def test_bind_before_listen(feed, kubelet, make_bridge, closing):
    """kubelet.sock has its name a moment before anybody listens there: connect is tried again."""
    kubelet.directory.mkdir()
    front = closing(socket.socket(socket.AF_UNIX))
    front.bind(str(kubelet.socket))
    bridge = make_bridge()
    bridge.wait_log("kubelet.sock: Connection refused")
    front.listen()
    front.settimeout(GENEROUS_S)
    near, _ = front.accept()
    assert near.recv(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    near.close()


def test_a_leftover_socket(feed, kubelet, make_bridge):
    """Nobody listens there, and the next kubelet makes its own."""
    kubelet.directory.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(kubelet.socket))
    bridge = make_bridge()
    bridge.wait_log("kubelet.sock: Connection refused")
    wait_until(bridge.endpoint(GPU).exists, "the endpoint is there before any kubelet")
    kubelet.start()
    kubelet.wait_health(GPU, HEALTHY)


def test_something_else_is_called_kubelet_sock(feed, kubelet, make_bridge):
    kubelet.directory.mkdir()
    kubelet.socket.write_text("no socket")
    bridge = make_bridge()
    wait_until(bridge.endpoint(GPU).exists, "the directory is looked at")
    kubelet.start()
    kubelet.wait_health(GPU, HEALTHY)


def test_a_directory_that_comes_later(feed, directory, make_bridge, closing):
    """Two levels of it are missing; we make none of them."""
    bridge = make_bridge(kubelet_plugin_dir=str(directory / "var" / "plugins"))
    feed.wait_report(GPU, lambda one: not one.registered)
    assert not (directory / "var").exists()
    kubelet = closing(BareKubelet(directory / "var" / "plugins"))
    kubelet.start()
    kubelet.wait_health(GPU, HEALTHY)
    assert bridge.log().count(" warning: ") == 0


def test_a_directory_removed_and_made_again(feed, shown, kubelet, closing):
    _, client = shown
    for _ in range(3):
        kubelet.stop()
        remove(kubelet.directory)
        kubelet = closing(BareKubelet(kubelet.directory))
        kubelet.start()
        kubelet.wait_health(GPU, HEALTHY)
    assert client.ended.is_set()


def test_a_directory_moved_away(feed, shown, kubelet, closing, directory):
    """Its sockets go with it: the one that takes its place gets new ones."""
    bridge, _ = shown
    kubelet.directory.rename(directory / "moved")
    again = closing(BareKubelet(kubelet.directory))
    again.start()
    again.wait_health(GPU, HEALTHY)
    assert bridge.endpoint(GPU).exists()


def test_a_directory_hidden_and_shown_again(feed, shown, kubelet, directory):
    """As under a mount that goes: the kubelet is the same, so nothing is registered anew."""
    bridge, client = shown
    registrations = len(kubelet.of("register"))
    for count in range(1, 4):
        kubelet.directory.rename(directory / "hidden")
        bridge.wait_log("kubelet: its socket has gone", count)
        (directory / "hidden").rename(kubelet.directory)
        bridge.wait_log("kubelet: its socket is back", count)
        feed.show({GPU: Shown({"g0": True, "g1": False}, version=2 * count)})
        kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Unhealthy"})
        feed.show({GPU: Shown(["g0", "g1"], version=2 * count + 1)})
        kubelet.wait_health(GPU, HEALTHY)
        assert allocate(client, ["g0"]).container_responses
    assert len(kubelet.of("register")) == registrations
    assert not client.ended.is_set()


def test_a_kubelet_that_dies_in_register(feed, kubelet, make_bridge, closing):
    """At each step: before the dial back, and before the list is asked for."""
    came, release = threading.Event(), threading.Event()

    def hang(_request, context):
        came.set()
        release.wait(GENEROUS_S)
        context.abort(grpc.StatusCode.UNKNOWN, "dead")

    kubelet.on_register = hang
    kubelet.start()
    make_bridge()
    assert came.wait(GENEROUS_S)
    release.set()
    kubelet.stop()
    second = closing(BareKubelet(kubelet.directory, watches=False))
    second.start()
    second.wait("options", GPU)
    second.stop()
    third = closing(BareKubelet(kubelet.directory))
    third.start()
    third.wait_health(GPU, HEALTHY)
    feed.wait_report(GPU, lambda one: one.registered and one.stored)


def test_a_refused_registration_is_tried_again(feed, kubelet, make_bridge):
    """With the kubelet's words in the log, once."""
    refusals = [0]

    def refuse(_request, context):
        refusals[0] += 1
        if refusals[0] <= 4:
            context.abort(grpc.StatusCode.UNKNOWN, "failed to dial device plugin: nonsense")

    kubelet.on_register = refuse
    kubelet.start()
    bridge = make_bridge()
    kubelet.wait_health(GPU, HEALTHY)
    feed.wait_report(GPU, lambda one: one.registered and not one.refused)
    refused = [one.refused for report in feed.reports for one in report.resources]
    assert True in refused
    assert bridge.log().count("failed to dial device plugin: nonsense") == 1


def test_a_stream_that_ends(feed, shown, kubelet):
    """While the kubelet lives: registered again, over a connection of its own."""
    bridge, _ = shown
    before = sockets_of(bridge)
    for count in range(2, 5):
        kubelet.clients[GPU].end_stream()
        kubelet.wait("list", GPU, count)
        feed.wait_report(GPU, lambda one: one.registered)
    assert len(kubelet.of("register")) == 4
    wait_until(lambda: len(kubelet.of("end")) == 3, "the kubelet has seen each end, in whatever thread")
    assert [event.what for event in kubelet.events if event.what != "end"] == ["register", "options", "list"] * 4
    wait_until(lambda: sockets_of(bridge) == before, "the old connections are closed")
    bridge.wait_log("shown to the kubelet", 4)
    assert bridge.log().count("shown to the kubelet") == 4


def test_the_kubelet_has_lost_it(feed, shown, kubelet):
    """As the daemon has found: registered anew for each time more, and not for what a daemon's next
    life counts. The streams before stay open until it is withdrawn: a kubelet under load works the end of one off
    after the next Register, and forgets that then."""
    for lost in (1, 2):
        feed.show({GPU: Shown(["g0", "g1"], lost=lost)})
        kubelet.wait("list", GPU, 1 + lost)
        feed.wait_report(GPU, lambda one: one.registered and one.stored)
    feed.show({GPU: Shown(["g0"], version=2, lost=2)})
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    feed.stop()
    feed.resources = {GPU: Shown(["g1"], version=1, lost=0)}
    feed.start()
    kubelet.wait_health(GPU, {"g1": "Healthy"})
    assert [event.what for event in kubelet.events] == ["register", "options", "list"] * 3 + ["list"] * 2
    feed.show({})
    kubelet.wait("end", GPU, 3)


def test_a_newer_stream_does_not_end_the_older(feed, shown, kubelet):
    """The kubelet would take that for the end of the newer one. What comes later is sent once."""
    _, client = shown
    client.watch()
    kubelet.wait("list", GPU, 2)
    assert feed.last_of(GPU).registered
    feed.show({GPU: Shown(["g0"], version=2)})
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    assert [event.what for event in kubelet.events] == ["register", "options"] + ["list"] * 3


def test_the_kubelet_hangs_up_on_the_registration(feed, directory, make_bridge, kubelet, closing):
    """Only the connection to kubelet.sock ends; the same kubelet listens, its stream lives: no
    second registration, which would end that stream."""
    kubelet.directory.mkdir()
    kubelet.serve(directory / "real.sock")
    pairs = []
    listener = closing(socket.socket(socket.AF_UNIX))
    listener.bind(str(kubelet.socket))
    listener.listen()
    threading.Thread(target=relay, args=(listener, directory / "real.sock", pairs),
                     daemon=True).start()
    bridge = make_bridge()
    feed.wait_report(GPU, lambda one: one.registered and one.stored)
    for end in pairs[0]:
        end.shutdown(socket.SHUT_RDWR)
    bridge.wait_log("kubelet: connected to pid", count=2)
    feed.wait_report(GPU)
    assert len(kubelet.of("register")) == 1
    assert not kubelet.clients[GPU].ended.is_set()


def test_who_hangs_up_at_once_does_not_fill_the_log(feed, directory, make_bridge, kubelet, closing):
    """What listens in the kubelet's place is connected to each ms at first: two lines say so, and not two for each."""
    kubelet.directory.mkdir()
    listener = closing(socket.socket(socket.AF_UNIX))
    listener.bind(str(kubelet.socket))
    listener.listen()
    listener.settimeout(GENEROUS_S)
    bridge = make_bridge()
    for _ in range(50):
        listener.accept()[0].close()
    bridge.wait_log("connection to pid", count=40)
    told = [line for line in bridge.log().splitlines() if " to pid " in line and "debug: " not in line]
    assert len(told) == 2, told


def relay(listener, target, pairs):
    """Connects whoever comes to `target`."""
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(target))
        pairs.append((near, far))
        for pair in ((near, far), (far, near)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def copy(source, sink):
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


# ---- the daemon comes and goes ----


def test_the_daemon_restarts(feed, shown, kubelet):
    """Other versions, the same lists: the kubelet hears nothing."""
    _, client = shown
    for version in range(100, 103):
        feed.stop()
        feed.resources = {GPU: Shown(["g0", "g1"], version=version)}
        feed.start()
        feed.wait_report(GPU, lambda one: one.registered and one.version == version and one.stored)
    assert len(kubelet.events) == 3
    assert not client.ended.is_set()


def test_started_before_the_daemon(directory, kubelet, make_bridge, closing):
    """Not even its directory is there."""
    kubelet.start()
    bridge = make_bridge()
    bridge.wait_log("kubelet: connected")
    feed = closing(FeedServer(bridge.feed_socket))
    feed.resources = {GPU: Shown(["g0", "g1"])}
    feed.start()
    feed.wait_report(GPU, lambda one: one.registered and one.stored)


def test_the_mask_runs_out_without_the_daemon(feed, kubelet, make_bridge):
    """What pods hold stays as it is; the resource stays; the daemon's return undoes it."""
    feed.mask_ms = 300
    feed.resources = {GPU: Shown({"g0": True, "g1": True, "g2": False}, held=["g1", "g2"])}
    kubelet.start()
    make_bridge()
    feed.wait_report(GPU)
    feed.stop()
    kubelet.wait_health(GPU, {"g0": "Unhealthy", "g1": "Healthy", "g2": "Unhealthy"})
    feed.start()
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Healthy", "g2": "Unhealthy"})
    assert len(kubelet.of("list")) == 3
    assert len(kubelet.of("register")) == 1


def boot_ms():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)


def test_one_resource_s_mask_ends(feed, kubelet, make_bridge):
    kubelet.start()
    feed.resources = {GPU: Shown(["g0", "g1"], held=["g0"], mask_end_ms=boot_ms() + 300),
                      NIC: Shown(["n0"])}
    make_bridge()
    feed.wait_report(NIC)
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Unhealthy"})
    kubelet.wait_health(NIC, {"n0": "Healthy"})
    feed.show({GPU: Shown(["g0", "g1"]), NIC: Shown(["n0"])})
    kubelet.wait_health(GPU, HEALTHY)


def test_no_mask_at_all(feed, kubelet, make_bridge):
    feed.mask_ms = 0
    kubelet.start()
    make_bridge()
    feed.wait_report(GPU)
    feed.stop()
    kubelet.wait_health(GPU, {"g0": "Unhealthy", "g1": "Unhealthy"})


def test_a_daemon_that_has_lost_its_state(feed, shown, kubelet):
    """The kubelet does not notice, if the plugin is back at the daemon in time."""
    bridge, client = shown
    feed.stop()
    gpu = feed.resources.pop(GPU)
    feed.resources[NIC] = Shown(["n0"])
    feed.start()
    kubelet.wait_health(NIC, {"n0": "Healthy"})
    feed.show({NIC: Shown(["n0", "n1"], version=2)})
    kubelet.wait_health(NIC, {"n0": "Healthy", "n1": "Healthy"})
    feed.show({**feed.resources, GPU: gpu})
    feed.wait_report(GPU, lambda one: one.registered and one.version == gpu.version)
    assert not client.ended.is_set()
    feed.show({})
    assert client.ended.wait(GENEROUS_S)


def test_withdrawn_while_the_daemon_was_away(feed, kubelet, make_bridge):
    """After the mask, since it may as well have lost its state."""
    feed.mask_ms = 300
    kubelet.start()
    bridge = make_bridge()
    feed.wait_report(GPU, lambda one: one.registered)
    client = kubelet.clients[GPU]
    feed.stop()
    feed.resources = {NIC: Shown(["n0"])}
    feed.start()
    kubelet.wait_health(NIC, {"n0": "Healthy"})
    assert client.ended.wait(GENEROUS_S)
    wait_until(lambda: not bridge.endpoint(GPU).exists(), "its socket is gone")


def test_a_daemon_that_does_not_know_the_feed(feed, shown, kubelet):
    """Logged once; what was shown goes on; when it is replaced, that is noticed at once."""
    bridge, client = shown
    feed.stop()
    feed.watch_fails = (grpc.StatusCode.UNIMPLEMENTED, "unknown method")
    feed.start()
    bridge.wait_log("the daemon does not know it")
    feed.stop()
    feed.start()
    feed.wait_watched(3)
    feed.watch_fails = None
    feed.stop()
    feed.start()
    feed.wait_report(GPU, lambda one: one.registered)
    assert bridge.log().count("the daemon does not know it") == 1
    assert len(kubelet.of("list")) == 1 and not client.ended.is_set()


# ---- the bridge restarts ----


def wait_snapshot(bridge, text=b"vendor.com/gpu"):
    wait_until(lambda: bridge.snapshot.exists() and text in bridge.snapshot.read_bytes(),
               "the state is in the file")


def test_the_bridge_restarts_without_the_daemon(feed, shown, kubelet):
    """Killed: the last lists are shown at once, masked from the moment the daemon was lost."""
    bridge, client = shown
    wait_snapshot(bridge)
    assert bridge.snapshot.stat().st_mode & 0o777 == 0o600
    feed.stop()
    bridge.kill()
    assert client.ended.wait(GENEROUS_S)
    bridge.start()
    kubelet.wait("list", GPU, 2)
    assert kubelet.health(GPU) == HEALTHY
    feed.start()
    feed.wait_report(GPU, lambda one: one.registered and one.stored)
    assert len(kubelet.of("list")) == 2


def test_stopped_and_started_without_the_daemon(feed, shown, kubelet):
    """SIGTERM before the debounced write: it is written at the end. Sockets are gone meanwhile."""
    bridge, _ = shown
    feed.show({GPU: Shown(["g0", "g1", "g2"])})
    kubelet.wait_health(GPU, HEALTHY | {"g2": "Healthy"})
    feed.stop()
    bridge.wait_log("feed: lost")
    bridge.stop()
    assert not bridge.endpoint(GPU).exists()
    kubelet.wait("end", GPU)
    bridge.start()
    kubelet.wait("list", GPU, 3)
    assert kubelet.health(GPU) == HEALTHY | {"g2": "Healthy"}


def test_the_mask_counts_on_over_a_restart(feed, kubelet, make_bridge):
    feed.mask_ms = 1
    kubelet.start()
    bridge = make_bridge()
    feed.wait_report(GPU)
    feed.stop()
    kubelet.wait_health(GPU, {"g0": "Unhealthy", "g1": "Unhealthy"})
    bridge.stop()
    bridge.start()
    kubelet.wait("list", GPU, 3)
    assert kubelet.health(GPU) == {"g0": "Unhealthy", "g1": "Unhealthy"}


def test_the_mask_counts_on_over_two_crashes(feed, shown, kubelet):
    """The bridge dies with the feed, so that none has seen it lost; the next one says since when,
    and the one after it goes on from there."""
    bridge, _ = shown
    wait_snapshot(bridge)
    bridge.kill()
    feed.stop()
    assert lost_ms(bridge) == 0
    for count in 2, 3:
        bridge.start()
        kubelet.wait("list", GPU, count)
        bridge.kill()
        if count == 2:
            first = lost_ms(bridge)
    assert 0 < first == lost_ms(bridge)


def lost_ms(bridge):
    """Behind magic and checksum: since when the feed is lost."""
    return int.from_bytes(bridge.snapshot.read_bytes()[16:24], "little")


def test_what_is_withdrawn_after_the_mask_stays_so(feed, kubelet, make_bridge):
    """Also for the next bridge. The mask is longer than the delay of the file, so that the daemon's
    return does not write it."""
    feed.mask_ms = 2500
    kubelet.start()
    bridge = make_bridge()
    feed.wait_report(GPU)
    wait_snapshot(bridge)
    feed.stop()
    feed.resources = {NIC: Shown(["n0"])}
    feed.start()
    wait_snapshot(bridge, NIC.encode())
    bridge.wait_log(f"{GPU}: withdrawn")
    wait_until(lambda: GPU.encode() not in bridge.snapshot.read_bytes(), "the file is without it")
    assert NIC.encode() in bridge.snapshot.read_bytes()
    feed.stop()
    bridge.kill()
    bridge.start()
    bridge.wait_log("1 resources shown as before")
    kubelet.wait("list", NIC, 2)
    assert len(kubelet.of("register", GPU)) == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "directory", "other boot"])
def test_a_bad_file_is_none(feed, shown, kubelet, damage):
    bridge, _ = shown
    wait_snapshot(bridge)
    bridge.stop()
    feed.stop()
    content = bridge.snapshot.read_bytes()
    if damage == "cut":
        bridge.snapshot.write_bytes(content[:-1])
    elif damage == "flipped":
        bridge.snapshot.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
    elif damage == "empty":
        bridge.snapshot.write_bytes(b"")
    elif damage == "directory":
        bridge.snapshot.unlink()
        bridge.snapshot.mkdir()
    else:
        bridge.snapshot.write_bytes(another_boot(content))
    bridge.start()
    bridge.wait_log("nothing is shown until the daemon says what", count=2)
    feed.start()
    kubelet.wait("list", GPU, 2)
    assert kubelet.health(GPU) == HEALTHY


def another_boot(content):
    """The same file, sound, of another boot: magic, checksum, time, boot id, state."""
    body = bytearray(content[16:])
    body[8] ^= 1
    return content[:8] + zlib.crc32(body).to_bytes(8, "little") + bytes(body)


def test_the_file_cannot_be_written(feed, kubelet, make_bridge):
    """Said once; all else works."""
    bridge = make_bridge(start=False)
    bridge.snapshot.mkdir()
    (bridge.snapshot / "x").touch()
    kubelet.start()
    bridge.start()
    bridge.wait_log("a restart of the bridge will have to wait for the daemon")
    feed.wait_report(GPU, lambda one: one.registered)
    bridge.snapshot.joinpath("x").unlink()
    bridge.snapshot.rmdir()
    feed.show({GPU: Shown(["g0"], version=2)})
    wait_snapshot(bridge)
    assert bridge.log().count("will have to wait") == 1


# ---- the process ----


def said(notify):
    """The next that is said but for what the manager is to keep."""
    while (text := notify.recv(300)).startswith(b"FDSTORE"):
        pass
    return text


def test_it_says_when_it_is_ready(feed, make_bridge, directory, closing, monkeypatch):
    notify = closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    notify.bind(str(directory / "notify"))
    notify.settimeout(GENEROUS_S)
    monkeypatch.setenv("NOTIFY_SOCKET", str(directory / "notify"))
    bridge = make_bridge()
    assert said(notify) == b"READY=1\nSTATUS="
    os.kill(bridge.pid, signal.SIGINT)
    assert bridge.wait_exit() == 0
    assert said(notify) == b"STOPPING=1"


def test_one_that_dies_again_and_again(feed, kubelet, make_bridge):
    """It waits before it registers once more; one that is told to stop is no such."""
    kubelet.start()
    bridge = make_bridge(start=False)
    starts = bridge.feed_socket.with_name("bridge.starts")
    now_ms = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
    starts.write_text(f"99 {now_ms + 900}\n")  # the last one was to begin then, and is dead
    bridge.start()
    bridge.wait_log("started again and again: registering with the kubelet in 1000 ms")
    assert not kubelet.of("register")
    kubelet.wait_health(GPU, HEALTHY)
    assert starts.exists()
    bridge.terminate()
    assert not starts.exists()
    bridge.start()
    kubelet.wait("register", GPU, count=2)
    assert bridge.log().count("again and again") == 1


def test_a_hangup_is_no_end(feed, shown, kubelet):
    bridge, client = shown
    os.kill(bridge.pid, signal.SIGHUP)
    bridge.wait_log("reload: changed: nothing; needs a restart: nothing")
    assert not client.ended.is_set() and len(kubelet.of("register")) == 1


def test_one_that_is_not_wanted_waits(make_bridge, kubelet, directory, closing, monkeypatch):
    """Its service is ready, and is not started again and again."""
    notify = closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    notify.bind(str(directory / "notify"))
    notify.settimeout(GENEROUS_S)
    monkeypatch.setenv("NOTIFY_SOCKET", str(directory / "notify"))
    kubelet.start()
    bridge = make_bridge(enabled=False)
    assert said(notify) == b"READY=1\nSTATUS="
    os.kill(bridge.pid, signal.SIGTERM)
    assert bridge.wait_exit() == 0
    assert "nothing to do" in bridge.log()


def test_its_command_line(directory, make_bridge):
    bridge = make_bridge(start=False)
    for arguments, status in (["--version"], 0), (["--help"], 0), (["surplus"], 64):
        bridge.spawn(*arguments)
        assert bridge.wait_exit() == status
    assert "cri-device-shim-bridge " in bridge.log()


@pytest.mark.release
def test_its_limits(feed, shown):
    """Descriptors for two of each of 1024 resources, and little memory."""
    bridge, _ = shown
    soft, hard = resource.prlimit(bridge.pid, resource.RLIMIT_NOFILE)
    assert soft == hard
    if not process.is_sanitized(bridge.pid):
        assert process.rss_bytes(bridge.pid) < 5 * process.MIB
