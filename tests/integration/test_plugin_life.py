"""Plugins that go, come back, misbehave or lie: what the containers that need them are told."""

import re
import threading

import grpc
import pytest

import plugin as plugins
from asking import by_annotation, by_token, envs, refused
from ctl import checked, ctl
from plugin import PluginProcess, allocate_answer, answering, failing, late, never
from protos import REGISTRATION, deviceplugin
from shim import accepts
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
NIC = "other.com/nic"


def asking_pod(client, name, resource=GPU):
    return client.run_pod(name, annotations=by_annotation("app", f"{resource}=1"))


def known(client, resource=GPU):
    """Waits until the plugin's devices are in use: a container gets one and is removed."""
    pod = asking_pod(client, "known", resource)
    client.create(pod, "app")
    client.remove_pod(pod.id)


def begin(client, pod):
    """Starts the creation of the pod's container: a future."""
    return client.begin("CreateContainer", client.create_request(pod, "app"))


def given(runtime):
    return envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"]


@pytest.fixture
def others_go_on(runtime, shim, client, make_plugin):
    """others_go_on(): containers with no device, and with another plugin's, are created right
    now."""
    make_plugin(shim, NIC, [f"n{number}" for number in range(100)])

    def check():
        client.create(client.run_pod("plain"), "app")
        client.create(asking_pod(client, "nic", NIC), "app")
        assert given(runtime).startswith("n")

    return check


def test_plugin_gone_and_back(runtime, shim, client, make_plugin):
    """Plugin gone: refused UNAVAILABLE with resource and grace left; back: created at once, no
    retry delay of ours."""
    plugin = make_plugin(shim, GPU, ["g0"])
    known(client)
    plugin.stop()
    pod = asking_pod(client, "web")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "web", "app") as caught:
        client.create(pod, "app")
    # The shim of these tests has a grace of a minute: seconds of it are left.
    assert re.search(r"\b[1-6]?\d(\.\d+)? ?s", caught.value.details()), caught.value.details()
    plugin.start()
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_a_plugin_with_another_name_has_only_that(shim, client, make_plugin):
    """Its socket is the one before, and lists the same devices: a shim that is started anew does not give them by the old name."""
    shared = f"{GPU}.shared"
    plugin = make_plugin(shim, GPU, ["g0"], endpoint="gpu.sock")
    known(client)
    plugin.stop()
    plugin = make_plugin(shim, shared, ["g0"], endpoint="gpu.sock")
    known(client, shared)
    shim.kill()
    shim.start()
    known(client, shared)
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(asking_pod(client, "web"), "app")


def test_plugin_killed(shim, client, closing):
    """The same with a plugin process that is killed."""
    plugin = closing(PluginProcess(shim.plugin_dir, GPU, ["g0"]))
    plugin.start()
    known(client)
    plugin.kill()
    pod = asking_pod(client, "web")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(pod, "app")
    plugin.start()
    client.create(pod, "app")


def test_held_create_goes_on_when_plugin_is_back(runtime, make_shim, make_plugin, make_client):
    """A create that waits for its plugin continues the moment it is back."""
    shim = make_shim(plugins={"hold": "60s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    known(client)
    plugin.stop()
    waiting = begin(client, asking_pod(client, "web"))
    client.create(client.run_pod("plain"), "app")
    assert not waiting.done()
    plugin.start()
    waiting.result(timeout=30)
    assert given(runtime) == "g0"


def test_hold_ends(make_shim, make_plugin, make_client, runtime):
    """A hold is bounded: the refusal comes by itself, far from any deadline of the client."""
    shim = make_shim(plugins={"hold": "1s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    known(client)
    plugin.stop()
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(asking_pod(client, "web"), "app", timeout=30)


def test_grace_over(runtime, make_shim, make_plugin, make_client):
    """Grace over: FAILED_PRECONDITION, and the resource is gone; a new registration makes it
    anew."""
    shim = make_shim(plugins={"hold": "10ms", "grace": "200ms"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    known(client)
    plugin.stop()
    pod = asking_pod(client, "web")

    def code():
        with pytest.raises(grpc.RpcError) as caught:
            client.create(pod, "app")
        assert GPU in caught.value.details()
        return caught.value.code()

    wait_until(lambda: code() == grpc.StatusCode.FAILED_PRECONDITION, "the resource is gone")
    plugin.start()
    shim.wait_log("1 of 1 devices healthy", 2)
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_stream_ends_but_plugin_serves(runtime, shim, client, make_plugin):
    """A plugin that drops only its ListAndWatch stream is dialled again at once and stays
    usable."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.send(None)
    plugin.wait_calls("ListAndWatch", 2)
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


def test_registers_again(runtime, shim, client, make_plugin):
    """A plugin that registers again, on another socket: the newest wins, the old one's end hurts
    not."""
    old = make_plugin(shim, GPU, ["old"], endpoint="old.sock")
    new = make_plugin(shim, GPU, ["new"], endpoint="new.sock")
    new.wait_calls("ListAndWatch")
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "new"
    client.remove_all_pods()
    old.stop()
    client.create(asking_pod(client, "web2"), "app")
    assert given(runtime) == "new" and not old.allocated()


def test_registers_twenty_times(runtime, shim, client, make_plugin):
    """A plugin that registers again and again keeps one ListAndWatch stream and its devices."""
    plugin = make_plugin(shim, GPU, ["g0"])
    for _ in range(20):
        plugin.register()
    wait_until(lambda: plugin.stream_count() == 1, "one stream is left")
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


def test_allocate_late(runtime, client, shim, make_plugin, others_go_on):
    """A plugin that answers Allocate late holds only its own container; others go on meanwhile."""
    plugin = make_plugin(shim, GPU, ["g0"])
    release = threading.Event()
    plugin.on_allocate = late(release)
    waiting = begin(client, asking_pod(client, "web"))
    plugin.wait_calls("Allocate")
    others_go_on()
    assert not waiting.done()
    release.set()
    waiting.result()
    assert given(runtime) == "g0"


def test_allocate_never(runtime, make_shim, make_plugin, make_client):
    """A plugin that never answers Allocate: DEADLINE_EXCEEDED, saying which call and how long;
    others go on; once it answers again the container is created."""
    shim = make_shim(plugins={"allocate_timeout": "500ms"})
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    plugin.on_allocate = never
    client = make_client(shim)
    pod = asking_pod(client, "web")
    waiting = begin(client, pod)
    plugin.wait_calls("Allocate")
    client.create(client.run_pod("plain"), "app")
    assert waiting.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    for word in (GPU, "Allocate", "web", "app"):
        assert word in waiting.details(), waiting.details()
    assert re.search(r"within \d+m?s", waiting.details()), waiting.details()
    plugin.on_allocate = lambda request, _context: allocate_answer(request)
    client.create(pod, "app")
    assert given(runtime) in ("g0", "g1")


@pytest.mark.parametrize("most", [1, 2])
def test_allocate_one_after_the_other(runtime, make_shim, make_plugin, make_client, most):
    """A plugin is asked for one container at a time, as by a kubelet, or as many as the settings have."""
    shim = make_shim(plugins={"allocates_at_once": most} if most > 1 else {})
    plugin = make_plugin(shim, GPU, ["g0", "g1", "g2", "g3"])
    release, lock, under_way, seen = threading.Semaphore(0), threading.Lock(), set(), []

    def slow(request, _context):
        ids = tuple(request.container_requests[0].devices_ids)
        with lock:
            under_way.add(ids)
            seen.append(len(under_way))
        assert release.acquire(timeout=GENEROUS_S)
        with lock:
            under_way.remove(ids)
        return allocate_answer(request)

    plugin.on_allocate = slow
    client = make_client(shim)
    waiting = [begin(client, asking_pod(client, f"web-{i}")) for i in range(4)]
    for done in range(4):
        wait_until(lambda asked=min(4, done + most): len(seen) >= asked, "the next is asked")
        release.release()
    for call in waiting:
        call.result(timeout=GENEROUS_S)
    assert max(seen) == most
    assert len(runtime.calls_of("CreateContainer")) == 4


def test_allocate_ends_with_its_create(runtime, make_shim, make_plugin, make_client):
    """A caller that gives up on its CreateContainer: the plugin's call is cancelled before the
    time of either is over, and the container is made when it is asked for again."""
    shim = make_shim(plugins={"allocate_timeout": f"{2 * GENEROUS_S}s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    cancelled = threading.Event()

    def never_answered(_request, context):
        context.add_callback(cancelled.set)
        cancelled.wait()
        return b""

    plugin.on_allocate = never_answered
    client = make_client(shim)
    pod = asking_pod(client, "web")
    waiting = client.begin("CreateContainer", client.create_request(pod, "app"),
                           timeout=2 * GENEROUS_S)
    plugin.wait_calls("Allocate")
    waiting.cancel()
    assert cancelled.wait(GENEROUS_S), "the plugin still works on what nobody waits for"
    plugin.on_allocate = lambda request, _context: allocate_answer(request)
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_allocate_error(runtime, client, shim, make_plugin, others_go_on):
    """A plugin whose Allocate fails: UNAVAILABLE with its own words; others go on; then it
    works."""
    plugin = make_plugin(shim, GPU, ["g0"])
    pod = asking_pod(client, "web")
    for code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.NOT_FOUND):
        plugin.on_allocate = failing(code, "the card fell off the bus: 100% ☃")
        with refused(grpc.StatusCode.UNAVAILABLE, GPU, "the card fell off the bus: 100% ☃"):
            client.create(pod, "app")
        others_go_on()
    plugin.on_allocate = lambda request, _context: allocate_answer(request)
    client.create(pod, "app")
    assert given(runtime) == "g0"


GARBAGE = {"no protobuf": b"\xff\xff\xff\xff\xff", "truncated": b"\x0a\x7f\x0a",
           "no container response": b""}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE.keys())
def test_allocate_garbage(runtime, client, shim, make_plugin, others_go_on, answer):
    """A plugin that answers Allocate with garbage: UNAVAILABLE; others go on; then it works."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.on_allocate = answering(answer)
    pod = asking_pod(client, "web")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "web", "app"):
        client.create(pod, "app")
    others_go_on()
    plugin.on_allocate = lambda request, _context: allocate_answer(request)
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_allocate_huge(client, shim, make_plugin, others_go_on):
    """A plugin that answers Allocate with more than 16 MiB hurts only the container that asked."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.on_allocate = lambda request, _context: allocate_answer(
        request, annotations={"big": "x" * (17 << 20)})
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(asking_pod(client, "web"), "app")
    others_go_on()


def test_options_that_do_not_fit(runtime, client, shim, make_plugin, others_go_on):
    """Options that are no garbage but do not fit into the request any more hurt only this one."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.on_allocate = lambda request, _context: allocate_answer(
        request, annotations={"big": "x" * (9 << 20)})
    pod = asking_pod(client, "web")
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):  # says the runtime, whose limit it is
        client.create(pod, "app", annotations={"mine": "x" * (9 << 20)})
    others_go_on()
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_dies_inside_allocate(runtime, client, shim, closing, others_go_on):
    """A plugin that dies inside Allocate: UNAVAILABLE; others go on; a new one serves the
    container."""
    dying = closing(PluginProcess(shim.plugin_dir, GPU, ["g0"], allocate="die"))
    dying.start()
    pod = asking_pod(client, "web")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "web", "app"):
        client.create(pod, "app")
    dying.wait()
    others_go_on()
    plugin = closing(PluginProcess(shim.plugin_dir, GPU, ["g0"]))
    plugin.start()
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_many_wait_for_one_plugin(runtime, make_shim, make_plugin, make_client):
    """Fifty containers held for one plugin: others go on, and all fifty are created when it is
    back."""
    shim = make_shim(plugins={"hold": "60s"})
    plugin = make_plugin(shim, GPU, [f"g{number}" for number in range(50)])
    client = make_client(shim)
    known(client)
    plugin.stop()
    calls = [begin(client, asking_pod(client, f"web{number}")) for number in range(50)]
    client.create(client.run_pod("plain"), "app")
    plugin.start()
    for call in calls:
        call.result(timeout=GENEROUS_S)
    assert len({tuple(ids) for ids in plugin.allocated()}) == 50


@pytest.mark.parametrize("rubbish", [b"\xff\xff\xff", b"\x0a\x7f\x0a"])
def test_list_garbage(runtime, client, shim, make_plugin, rubbish):
    """A ListAndWatch message that is no protobuf counts as a lost stream; the plugin is dialled
    again."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.send(rubbish)
    plugin.wait_calls("ListAndWatch", 2)
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


def test_list_repeats_an_id(runtime, client, shim, make_plugin):
    """A list with an id twice is taken for what it can mean."""
    plugin = make_plugin(shim, GPU, ["g0"])
    answer = deviceplugin.ListAndWatchResponse()
    for one in ("g0", "g0", "g1"):
        answer.devices.add(ID=one, health="Healthy")
    plugin.send(answer)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=2"))
    wait_until(lambda: _created(client, pod), "both devices are known")
    assert given(runtime) in ("g0,g1", "g1,g0")


def _created(client, pod):
    try:
        return client.create(pod, "app")
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
        return None


def test_many_devices(runtime, client, shim, make_plugin):
    """A plugin with 50,000 devices."""
    plugin = make_plugin(shim, GPU, [f"device-{number:06}" for number in range(50_000)])
    shim.wait_log("50000 of 50000 devices healthy")  # a slow machine needs longer than the hold
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "device-049999"))
    assert given(runtime) == "device-049999" and plugin.allocated() == [["device-049999"]]


def test_many_devices_are_read_while_calls_pass(runtime, make_client, make_shim, make_plugin):
    """The relay does not wait for a checkpoint that takes long to read; a create does, and is not refused, and
    so does who asks what there is."""
    shim = make_shim(plugins={"hold": "60s"})  # of the plugin, which sends them all anew
    client = make_client(shim)
    make_plugin(shim, GPU, [f"device-{number:06}" for number in range(50_000)])
    shim.wait_log("50000 of 50000 devices healthy")
    shim.wait_plugins_stored()
    pod = client.run_pod("web")
    for attempt in range(3):
        shim.kill()
        shim.spawn()
        wait_until(lambda: accepts(shim.socket), "the relay listens")
        client.reconnect()
        client.create(pod, f"app-{attempt}", annotations=by_token(GPU, f"device-{attempt:06}"))
        assert given(runtime) == f"device-{attempt:06}"
    for _ in range(3):
        shim.kill()
        shim.spawn()
        done = wait_until(lambda: (one := ctl(shim, "resources", GPU, "-o", "json")).returncode == 0 and one,
                          "it is answered, and not refused any more", pause_s=0)
        assert checked("resources", done.stdout)["items"][0]["devices"] == 50_000


BAD_NAMES = ["gpu", "", "kubernetes.io/gpu", "a.kubernetes.io/gpu", "requests.vendor.com/gpu",
             "vendor.com/", "vendor.com/gpu!", "Vendor.com/gpu", "vendor.com/a/b", "/gpu",
             "vendor.com/" + "x" * 64, "vendor..com/gpu", "vendor.com/-gpu", "vendor.com/gpu "]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_resource_name(runtime, client, shim, make_plugin, name):
    """A bad resource name is refused with a clear error, and nothing is lost by it."""
    good = make_plugin(shim, GPU, ["g0"])
    with pytest.raises(grpc.RpcError) as caught:
        plugins.register(shim.plugin_dir, name, good.endpoint)
    words = caught.value.details()
    assert "invalid" in words and repr(name)[1:-1][:40] in repr(words)
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


@pytest.mark.parametrize("endpoint", ["../escaped.sock", "/tmp/absolute.sock", "sub/dir.sock", "..",
                                      ".", "", "kubelet.sock", "x" * 300])
def test_endpoint_with_a_path(runtime, client, shim, make_plugin, directory, endpoint):
    """An endpoint that is not a bare file name of a plugin's socket is refused with a clear
    error."""
    make_plugin(shim, GPU, ["g0"])
    (directory / "escaped.sock").touch()
    with pytest.raises(grpc.RpcError) as caught:
        plugins.register(shim.plugin_dir, "vendor.com/other", endpoint)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT, caught.value
    assert caught.value.details()
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


def test_endpoint_that_is_no_plugin(runtime, client, shim, make_plugin):
    """An endpoint that is missing, a plain file or a symlink to a socket elsewhere is refused."""
    plugin = make_plugin(shim, GPU, ["g0"])
    (shim.plugin_dir / "plain.sock").touch()
    (shim.plugin_dir / "link.sock").symlink_to(shim.plugin_dir / plugin.endpoint)
    for endpoint in ("missing.sock", "plain.sock", "link.sock"):
        with pytest.raises(grpc.RpcError) as caught:
            plugins.register(shim.plugin_dir, "vendor.com/other", endpoint)
        assert endpoint in caught.value.details(), caught.value
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


def test_bad_version(client, shim, make_plugin):
    """A version that is not v1beta1 is refused, with the one that is supported."""
    plugin = make_plugin(shim, GPU, ["g0"], start=False)
    plugin.serve()
    for version in ("v1alpha1", "", "v1beta10"):
        with pytest.raises(grpc.RpcError) as caught:
            plugins.register(shim.plugin_dir, GPU, plugin.endpoint, version=version)
        assert "v1beta1" in caught.value.details()
    with refused(grpc.StatusCode.FAILED_PRECONDITION, GPU):
        client.create(asking_pod(client, "web"), "app")


def test_register_garbage(client, shim, make_plugin, runtime):
    """A Register call that is no protobuf is refused; registration goes on."""
    with grpc.insecure_channel(f"unix:{shim.plugin_dir}/kubelet.sock") as channel:
        for method in ("Register", "Unheard"):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(REGISTRATION + method)(b"\xff\xff", timeout=GENEROUS_S)
            assert caught.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNIMPLEMENTED)
    make_plugin(shim, GPU, ["g0"])
    client.create(asking_pod(client, "web"), "app")
    assert given(runtime) == "g0"


def test_a_refusal_that_repeats_is_said_once(shim, client, make_plugin):
    """The kubelet's tries are counted, and told when it is over."""
    gpu = make_plugin(shim, GPU, ["g0"])
    pod = client.run_pod("web")
    token = by_token(GPU, "g0")
    client.create(pod, "app", annotations=token)
    gpu.stop()
    shim.wait_log("its devices are unhealthy")  # until then what it gave before is given again
    for _ in range(3):
        with refused(grpc.StatusCode.UNAVAILABLE, GPU):
            client.create(pod, "app", annotations=token)
    assert shim.log().count("CreateContainer refused") == 1
    gpu.start()
    client.create(pod, "app", annotations=token)
    shim.wait_log("CreateContainer goes on; it was refused 3 times (UNAVAILABLE)")
