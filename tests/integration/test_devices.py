"""Which containers get which devices, with which options, seen from a recording runtime."""

import os
import stat

import grpc
import pytest

from asking import by_annotation, by_token, envs, refused
from plugin import allocate_answer, answering, failing
from protos import RUNTIME, deviceplugin
from rawh2 import Connection, framed
from runtime import Reply
from waiting import wait_until

GPU = "vendor.com/gpu"
NIC = "other.com/nic"
TTY = "host.example/tty"


def all_options(request, _context):
    """An Allocate handler that gives one of everything for each id."""
    ids = list(request.container_requests[0].devices_ids)
    return allocate_answer(
        request,
        mounts=[deviceplugin.Mount(container_path=f"/opt/{one}", host_path=f"/host/{one}",
                                   read_only=True) for one in ids],
        devices=[deviceplugin.DeviceSpec(container_path=f"/dev/{one}", host_path=f"/dev/host-{one}",
                                         permissions="rwm") for one in ids],
        annotations={f"vendor.com/{one}": "given" for one in ids},
        cdi_devices=[deviceplugin.CDIDevice(name=f"vendor.com/gpu={one}") for one in ids])


@pytest.fixture
def gpu(shim, make_plugin):
    plugin = make_plugin(shim, GPU, ["g0", "g1", "g2"])
    plugin.on_allocate = all_options
    return plugin


def last_config(runtime):
    return runtime.create_requests()[-1].config


def given(runtime):
    """The ids in the env of the last container that reached the runtime."""
    return set(envs(last_config(runtime))["PLUGIN_DEVICES"].split(","))


def test_annotation_request(runtime, client, gpu):
    """A pod's annotation: the container has its plugin's env, mount, device node and annotation."""
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.create(pod, "app")
    config = last_config(runtime)
    (one,) = given(runtime)
    assert gpu.allocated() == [[one]]
    assert [(mount.container_path, mount.host_path, mount.readonly) for mount in config.mounts] == [
        (f"/opt/{one}", f"/host/{one}", True)]
    assert [(device.container_path, device.host_path, device.permissions)
            for device in config.devices] == [(f"/dev/{one}", f"/dev/host-{one}", "rwm")]
    assert config.annotations[f"vendor.com/{one}"] == "given"
    assert [device.name for device in config.CDI_devices] == [f"vendor.com/gpu={one}"]


def test_token_request(runtime, client, gpu):
    """A container's token: exactly the devices that it names."""
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g1", "g2"))
    assert given(runtime) == {"g1", "g2"}
    assert [set(ids) for ids in gpu.allocated()] == [{"g1", "g2"}]
    paths = {device.container_path for device in last_config(runtime).devices}
    assert paths == {"/dev/g1", "/dev/g2"}


def test_mounts_in_a_user_namespace(runtime, client, gpu):
    """A pod in a user namespace: the plugin's mounts are mapped like all that the kubelet mounts."""
    request = client.create_request(client.run_pod("web"), "app", ["sh"], annotations=by_token(GPU, "g0"))
    users = request.config.linux.security_context.namespace_options.userns_options
    users.uids.add(host_id=131072, container_id=0, length=65536)
    users.gids.add(host_id=196608, container_id=0, length=65536)
    client.CreateContainer(request)
    (mount,) = last_config(runtime).mounts
    assert list(mount.uidMappings) == list(users.uids)
    assert list(mount.gidMappings) == list(users.gids)


UNKNOWN = {"bytes": b"\xc2\x3e\x03\x00\xff\x00", "group": b"\xc3\x3e\x08\x01\xc4\x3e",
           "group in a group": b"\xc3\x3e\xcb\x3e\x12\x01x\xcc\x3e\xc4\x3e"}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_original_request_survives(runtime, client, gpu, unknown):
    """The caller's own bytes stand behind the fragment untouched, unknown fields and all."""
    request = client.create_request(client.run_pod("web"), "app", ["sh"],
                                    annotations=by_token(GPU, "g0")).SerializeToString() + unknown
    client.unary(RUNTIME + "CreateContainer", request)
    received = runtime.calls_of("CreateContainer")[-1].request
    assert received.endswith(request) and len(received) > len(request)


def test_malformed_annotation(runtime, client, gpu):
    """What one runtime reads and another one does not passes to none: a key that is a number."""
    request = client.create_request(client.run_pod("web"), "app", ["sh"]).SerializeToString()
    entry = b"\x08\x26devices.cri-device-shim/vendor.com_gpu\x12\x02g0"
    config = b"\x52" + bytes([len(entry)]) + entry
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "an annotation, a label or a CDI device is malformed"):
        client.unary(RUNTIME + "CreateContainer", request + b"\x12" + bytes([len(config)]) + config)
    assert not runtime.calls_of("CreateContainer")


def test_pod_wins(runtime, client, gpu):
    """Where the pod sets the same env or annotation, the pod wins: the plugin's stands before
    it."""
    pod = client.run_pod("web")
    client.create(pod, "app", envs={"PLUGIN_DEVICES": "the pod's", "OTHER": "1"},
                  annotations={**by_token(GPU, "g0"), "vendor.com/g0": "the pod's"})
    config = last_config(runtime)
    assert [(one.key, one.value) for one in config.envs] == [
        ("PLUGIN_DEVICES", b"g0"), ("PLUGIN_DEVICES", b"the pod's"), ("OTHER", b"1")]
    assert config.annotations["vendor.com/g0"] == "the pod's"


@pytest.mark.parametrize("pods, own", [(by_annotation("app", f"{GPU}=1"), {}),
                                       ({}, by_token(GPU, "g0"))], ids=["annotation", "token"])
def test_command_and_args_name_its_envs(runtime, client, gpu, pods, own):
    """What a kubelet without the plugin's answer has left of `$(VAR)` in command and args is the
    plugin's value. Not so a variable of the pod's own, which that has known: it was escaped."""
    client.create(client.run_pod("web", annotations=pods), "app", ["run", "--gpu=$(PLUGIN_DEVICES)"],
                  args=["$(PLUGIN_DEVICES)$(PLUGIN_DEVICES)", "$(OWN)", "$(NO) $$(PLUGIN_DEVICES)"],
                  envs={"OWN": "1"}, annotations=own)
    config = last_config(runtime)
    (one,) = given(runtime)
    assert config.command == ["run", f"--gpu={one}"]
    assert config.args == [one + one, "$(OWN)", f"$(NO) ${one}"]
    client.create(client.run_pod("w2"), "app", ["$(PLUGIN_DEVICES)"],
                  envs={"PLUGIN_DEVICES": "the pod's"}, annotations=by_token(GPU, "g1"))
    assert last_config(runtime).command == ["$(PLUGIN_DEVICES)"]


def test_command_too_large(runtime, shim, client, make_plugin):
    """A command that is too large with what it names is refused, not cut."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.on_allocate = answering(deviceplugin.AllocateResponse(container_responses=[
        deviceplugin.ContainerAllocateResponse(envs={"LONG": "x" * (1 << 20)})]))
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large with what is changed in it"):
        client.create(pod, "app", ["$(LONG)" * 16], annotations=by_token(GPU, "g0"))
    assert not runtime.calls_of("CreateContainer")
    client.create(pod, "app", ["$(LONG)" * 2], annotations=by_token(GPU, "g0"))
    assert last_config(runtime).command == ["x" * (2 << 20)]


def test_two_resources(runtime, shim, client, gpu, make_plugin):
    """A container may ask for several resources, by annotation or by token; it gets both."""
    nic = make_plugin(shim, NIC, ["n0", "n1"])
    nic.on_allocate = answering(deviceplugin.AllocateResponse(container_responses=[
        deviceplugin.ContainerAllocateResponse(envs={"NIC": "yes"})]))
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=2, {NIC}=1"))
    client.create(pod, "app", ["$(NIC) $(PLUGIN_DEVICES)"])
    assert envs(last_config(runtime))["NIC"] == "yes" and len(given(runtime)) == 2
    assert last_config(runtime).command == ["yes " + envs(last_config(runtime))["PLUGIN_DEVICES"]]
    client.create(client.run_pod("web2"), "app",
                  annotations={**by_token(GPU, *({"g0", "g1", "g2"} - given(runtime))),
                               **by_token(NIC, *({"n0", "n1"} - set(nic.allocated()[0])))})
    assert envs(last_config(runtime))["NIC"] == "yes" and len(given(runtime)) == 1


def test_each_container_its_own(runtime, client, gpu):
    """Two containers of one pod and a third of another: no device is given twice."""
    annotations = {**by_annotation("a", f"{GPU}=1"), **by_annotation("b", f"{GPU}=1")}
    pod = client.run_pod("web", annotations=annotations)
    seen = set()
    other = client.run_pod("w2", annotations=annotations)
    for target, name in ((pod, "a"), (pod, "b"), (other, "a")):
        client.create(target, name)
        assert not given(runtime) & seen
        seen |= given(runtime)
    assert seen == {"g0", "g1", "g2"}


def test_container_without_request_is_untouched(runtime, client, gpu):
    """In a pod whose other container has a device, a container without one passes byte for byte."""
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    request = client.create_request(pod, "sidecar").SerializeToString()
    client.unary(RUNTIME + "CreateContainer", request)
    assert runtime.calls_of("CreateContainer")[-1].messages == [request]
    assert not gpu.calls_of("Allocate")


def test_cached_options(runtime, client, gpu):
    """The next attempt of the same container gets the cached options: the plugin is not asked
    again."""
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    first = client.run(pod, "app")
    options = given(runtime)
    client.StopContainer(container_id=first)
    client.create(pod, "app", attempt=1)
    assert given(runtime) == options and len(gpu.allocated()) == 1


def test_prestart_each_time(runtime, shim, client, make_plugin):
    """PreStartContainer comes each time, also with cached options, and before the create."""
    plugin = make_plugin(shim, GPU, ["g0"], prestart=True)
    forwarded = []

    def prestart(_request, _context):
        forwarded.append(len(runtime.calls_of("CreateContainer")))
        return deviceplugin.PreStartContainerResponse()

    plugin.on_prestart = prestart
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    first = client.run(pod, "app")
    client.StopContainer(container_id=first)
    client.create(pod, "app", attempt=1)
    assert forwarded == [0, 1] and len(plugin.allocated()) == 1
    calls = plugin.calls_of("PreStartContainer")
    assert [list(request.devices_ids) for request in calls] == [["g0"]] * 2


def test_prestart_failure(runtime, shim, client, make_plugin):
    """A PreStartContainer that fails refuses the container, with the plugin's words; then it
    works."""
    plugin = make_plugin(shim, GPU, ["g0"], prestart=True)
    working = plugin.on_prestart
    plugin.on_prestart = failing(grpc.StatusCode.INTERNAL, "fan is stuck")
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "fan is stuck"):
        client.create(pod, "app")
    assert not runtime.calls_of("CreateContainer")
    plugin.on_prestart = working
    client.create(pod, "app")
    assert given(runtime) == {"g0"}


def test_preferred_allocation(runtime, shim, client, make_plugin):
    """The plugin's preference decides; ids that were not on offer are not given."""
    asked = []

    def prefer(available, must_include, size):
        asked.append((set(available), must_include, size))
        return ["g3", "not-a-device", "g1"]

    make_plugin(shim, GPU, ["g0", "g1", "g2", "g3"], prefer=prefer)
    client.create(client.run_pod("web", annotations=by_annotation("app", f"{GPU}=2")), "app")
    assert given(runtime) == {"g1", "g3"}
    assert asked == [({"g0", "g1", "g2", "g3"}, [], 2)]


def test_numa_alignment(runtime, shim, client, make_plugin):
    """Devices of one NUMA node are given together where there are enough of them."""
    make_plugin(shim, GPU, ["g0", "g1", "g2", "g3"], numa={"g0": 0, "g1": 1, "g2": 0, "g3": 1})
    seen = []
    for number in range(2):
        client.create(client.run_pod(f"web{number}", annotations=by_annotation("app", f"{GPU}=2")),
                      "app")
        seen.append(given(runtime))
    assert sorted(map(sorted, seen)) == [["g0", "g2"], ["g1", "g3"]]


def test_too_few(runtime, client, gpu):
    """More than there are is refused RESOURCE_EXHAUSTED, with what was asked and what is free."""
    pod = client.run_pod("big", annotations=by_annotation("app", f"{GPU}=7"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU, "7", "3", "big", "app"):
        client.create(pod, "app")
    client.create(client.run_pod("web", annotations=by_annotation("app", f"{GPU}=3")), "app")
    assert given(runtime) == {"g0", "g1", "g2"}


def test_held_by_another(runtime, client, gpu):
    """A device that a live container holds is refused, naming who holds it, until its pod is
    gone."""
    holder = client.run_pod("holder")
    client.run(holder, "first", annotations=by_token(GPU, "g0"))
    late = client.run_pod("late")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0", "holder", "first", "late", "app"):
        client.create(late, "app", annotations=by_token(GPU, "g0"))
    client.remove_pod(holder.id)
    client.create(late, "app", annotations=by_token(GPU, "g0"))
    assert given(runtime) == {"g0"} and len(runtime.create_requests()) == 2


def test_freed_when_pod_is_removed(runtime, client, gpu):
    """Devices of a removed pod are free again, one by one, for annotation requests."""
    for number in range(9):
        pod = client.run_pod(f"web{number}", annotations=by_annotation("app", f"{GPU}=3"))
        client.run(pod, "app")
        client.remove_pod(pod.id)
    assert len(gpu.allocated()) == 9 and all(len(ids) == 3 for ids in gpu.allocated())


def test_init_container_hands_on(runtime, client, gpu):
    """An init container that has ended hands its devices on to the next container of its pod."""
    pod = client.run_pod("web")
    init = client.run(pod, "init", annotations=by_token(GPU, "g0"))
    client.StopContainer(container_id=init)
    client.create(pod, "app", annotations=by_token(GPU, "g0"))
    assert given(runtime) == {"g0"}


def test_unknown_resource(runtime, client, gpu):
    """A resource that never was is refused FAILED_PRECONDITION, with those that are known."""
    pod = client.run_pod("web", annotations=by_annotation("app", "vendor.com/gpux=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "vendor.com/gpux", GPU, "web", "app"):
        client.create(pod, "app")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "vendor.com/gpux", GPU):
        client.create(client.run_pod("w2"), "app", annotations=by_token("vendor.com/gpux", "g0"))
    assert not runtime.calls_of("CreateContainer")


@pytest.mark.parametrize("text", ["vendor.com/gpu", "vendor.com/gpu=0", "vendor.com/gpu=-1", "=1",
                                  "vendor.com/gpu=1,", "vendor.com/gpu=1 vendor.com/gpu=1",
                                  "vendor.com/gpu=99999999999999999999", "gpu=1",
                                  "vendor.com/gpu=1, vendor.com/gpu=1", "vendor.com/gpu=1x"])
def test_bad_annotation(runtime, client, gpu, text):
    """An annotation that cannot be read is refused INVALID_ARGUMENT, with its text; nothing is
    lost."""
    with refused(grpc.StatusCode.INVALID_ARGUMENT, text, "web", "app"):
        client.create(client.run_pod("web", annotations=by_annotation("app", text)), "app")
    client.create(client.run_pod("good", annotations=by_annotation("app", f" {GPU}=1 ")), "app")
    assert len(runtime.create_requests()) == 1


@pytest.mark.parametrize("token", ["", "{", "[]", '{"resource":"vendor.com/gpu"}', '{"ids":["g0"]}',
                                   '{"resource":"vendor.com/gpu","ids":"g0"}',
                                   '{"resource":"vendor.com/gpu","ids":[]}',
                                   '{"resource":1,"ids":["g0"]}'])
def test_bad_token(runtime, client, gpu, token):
    """A token that cannot be read never lets the container through without its devices."""
    key = next(iter(by_token(GPU, "g0")))
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "web", "app"):
        client.create(client.run_pod("web"), "app", annotations={key: token})
    assert not runtime.calls_of("CreateContainer")


def test_names_without_end(runtime, client, gpu):
    """Names beyond 4 KiB, which no kubelet sends, pass byte for byte where no device is asked for,
    and are refused with the reason where one is."""
    pod, name = client.run_pod("web"), "n" * 4097
    request = client.create_request(pod, name, ["sh"]).SerializeToString()
    client.unary(RUNTIME + "CreateContainer", request)
    assert runtime.calls_of("CreateContainer")[-1].request == request
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "more than 4096 bytes", "default/web", "nnn"):
        client.create(pod, name, annotations=by_token(GPU, "g0"))
    assert len(runtime.calls_of("CreateContainer")) == 1 and not gpu.allocated()


def test_ids_are_any_text(runtime, shim, client, make_plugin):
    """Device ids with quotes, spaces, backslashes and letters of any script work by token."""
    odd = ['a "b" c', "back\\slash", "グラフィックス", "x" * 500, "a,b=c"]
    plugin = make_plugin(shim, GPU, odd)
    client.create(client.run_pod("web"), "app", annotations=by_token(GPU, *odd))
    assert set(plugin.allocated()[0]) == set(odd)
    assert envs(last_config(runtime))["PLUGIN_DEVICES"]


def test_unknown_id(runtime, client, gpu):
    """A token with an id that the plugin does not list is refused, retryably."""
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g9"):
        client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g9"))
    assert not runtime.calls_of("CreateContainer")


def test_annotations_off(runtime, make_shim, make_plugin, make_client):
    """Where annotation requests are off, who asks so is refused: it would start without."""
    shim = make_shim(annotations={"enabled": False, "namespaces": []})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "web", "annotations.start_without"):
        client.create(pod, "app")
    assert client.create(pod, "beside")  # which asks for nothing
    assert not plugin.allocated()


def test_annotations_passed_over(runtime, make_shim, make_plugin, make_client):
    """Where the settings say so, such an annotation is no request: all passes untouched."""
    shim = make_shim(annotations={"enabled": False, "namespaces": [], "start_without": True})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    request = client.create_request(pod, "app").SerializeToString()
    client.unary(RUNTIME + "CreateContainer", request)
    assert runtime.calls_of("CreateContainer")[-1].messages == [request]
    assert not plugin.allocated()


def test_annotations_of_other_namespaces(runtime, make_shim, make_plugin, make_client):
    """Pod annotations are user input: in a namespace without leave nobody gets a device by them."""
    shim = make_shim(annotations={"namespaces": ["trusted", "also-trusted"]})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "default", "web", "app"):
        client.create(pod, "app")
    assert not plugin.allocated()
    pod = client.run_pod("ok", namespace="trusted", annotations=by_annotation("app", f"{GPU}=1"))
    client.create(pod, "app")
    assert given(runtime) == {"g0"}


def test_unhealthy_device(runtime, shim, client, make_plugin):
    """An unhealthy device is refused UNAVAILABLE; a healthy one is chosen instead where
    possible."""
    make_plugin(shim, GPU, {"g0": False, "g1": True})
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0"):
        client.create(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    client.create(client.run_pod("w2", annotations=by_annotation("app", f"{GPU}=1")), "app")
    assert given(runtime) == {"g1"} and len(runtime.create_requests()) == 1


def test_held_create_goes_on_when_healthy(runtime, make_shim, make_plugin, make_client):
    """A create that is being held continues the moment its device is healthy again."""
    shim = make_shim(plugins={"hold": "60s"})
    plugin = make_plugin(shim, GPU, {"g0": False})
    client = make_client(shim)
    request = client.create_request(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    waiting = client.begin("CreateContainer", request)
    client.create(client.run_pod("w2"), "app")  # another passes in the meantime
    assert not waiting.done()
    plugin.set_devices({"g0": True})
    assert waiting.result(timeout=30).container_id in runtime.state.containers
    assert given(runtime) == {"g0"}


def test_stopped_pod(runtime, client, gpu):
    """A create in a pod that was stopped is refused FAILED_PRECONDITION: its devices may be
    others'."""
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.StopPodSandbox(pod_sandbox_id=pod.id)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "web", "app"):
        client.create(pod, "app")
    assert not runtime.calls_of("CreateContainer")


def test_client_gives_up_held_create(runtime, make_shim, make_plugin, make_client):
    """A held create that the client cancels, or whose deadline ends, is never forwarded."""
    shim = make_shim(plugins={"hold": "60s"})
    plugin = make_plugin(shim, GPU, {"g0": False})
    client = make_client(shim)
    pod = client.run_pod("web")
    request = client.create_request(pod, "app", annotations=by_token(GPU, "g0"))
    with pytest.raises(grpc.RpcError):
        client.CreateContainer(request, timeout=0.3)
    waiting = client.begin("CreateContainer", request)
    client.Version()
    waiting.cancel()
    with Connection(shim.socket) as connection:  # one that is gone without a word
        connection.call(RUNTIME + "CreateContainer", framed(request.SerializeToString()))
    client.Version()
    plugin.set_devices({"g0": True})
    client.CreateContainer(request)
    assert len(runtime.calls_of("CreateContainer")) == 1 and given(runtime) == {"g0"}
    assert plugin.allocated() == [["g0"]]


def test_runtime_refuses(runtime, client, gpu):
    """The runtime's refusal of a create with devices comes back word by word. Devices that the shim
    chose are free for others then; those of a token, with their options, stay the container's."""
    chosen = client.run_pod("chosen", annotations=by_annotation("app", f"{GPU}=3"))
    runtime.on("CreateContainer", lambda call: Reply((), grpc.StatusCode.UNKNOWN, "disk is full"))
    with refused(grpc.StatusCode.UNKNOWN, "disk is full"):
        client.create(chosen, "app")
    token = client.run_pod("token")
    with refused(grpc.StatusCode.UNKNOWN, "disk is full"):
        client.create(token, "app", annotations=by_token(GPU, "g0"))
    runtime.on("CreateContainer")
    asked = len(gpu.allocated())
    client.create(token, "app", annotations=by_token(GPU, "g0"))
    assert given(runtime) == {"g0"} and len(gpu.allocated()) == asked


@pytest.mark.parametrize("code", ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED"])
def test_runtime_breaks_off(runtime, client, gpu, code):
    """A runtime that ends, or whose caller was too slow for it, may have made the container all the
    same: nobody else gets its devices."""
    def made_unsaid(call):
        runtime.state.answer(call)
        return Reply((), grpc.StatusCode[code], "Cancelling all calls")

    runtime.on("CreateContainer", made_unsaid)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=3"))
    with refused(grpc.StatusCode[code], "Cancelling all calls"):
        client.create(pod, "app")
    runtime.on("CreateContainer")
    other = client.run_pod("other", annotations=by_annotation("app", f"{GPU}=1"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "free 0"):
        client.create(other, "app")
    client.remove_pod(pod.id)
    client.create(other, "app")


def test_refusals_leave_the_connection_in_step(runtime, client, gpu):
    """Hundreds of refusals between other calls: header tables and windows of both ends stay in
    step."""
    pod = client.run_pod("web", annotations=by_annotation("app", "no.such/thing=1"))
    request = client.create_request(pod, "app", ["x" * 2000]).SerializeToString()
    path = "/runtime.v1.RuntimeService/CreateContainer"
    for number in range(300):
        metadata = (("x-number", str(number)), ("x-same", "always"))
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "no.such/thing"):
            client.unary(path, request, metadata=metadata)
        answer, _call = client.unary("/x/Echo", b"%d" % number, metadata=metadata)
        assert answer == b"%d" % number
        seen = runtime.calls_of("Echo")[-1].metadata
        assert [pair for pair in seen if pair in metadata] == list(metadata)
    with_device = client.run_pod("w2", annotations=by_annotation("app", f"{GPU}=1"))
    client.create(with_device, "app")
    assert len(runtime.create_requests()) == 1


def test_refusals_at_once(runtime, shim, client, make_plugin):
    """Refused, changed and untouched creates side by side on one connection get each its own
    answer."""
    plugin = make_plugin(shim, GPU, [f"g{number}" for number in range(20)])
    requests = []
    for number in range(20):
        bad = client.run_pod(f"bad{number}", annotations=by_annotation("app", "no.such/thing=1"))
        plain = client.run_pod(f"plain{number}")
        good = client.run_pod(f"good{number}", annotations=by_annotation("app", f"{GPU}=1"))
        requests += [client.create_request(pod, "app") for pod in (bad, plain, good)]
    calls = [client.begin("CreateContainer", request) for request in requests]
    for number, call in enumerate(calls):
        if number % 3 == 0:
            assert call.code() == grpc.StatusCode.FAILED_PRECONDITION
        else:
            assert call.result().container_id in runtime.state.containers
    assert len(runtime.create_requests()) == 40
    assert len({tuple(ids) for ids in plugin.allocated()}) == 20


def test_large_create_with_devices(runtime, client, gpu):
    """A request close to 16 MiB gets its devices too."""
    pod = client.run_pod("web")
    client.create(pod, "app", annotations={**by_token(GPU, "g0"), "big": "x" * (15 << 20)})
    assert given(runtime) == {"g0"} and len(last_config(runtime).annotations["big"]) == 15 << 20


def test_large_options(runtime, client, gpu):
    """Options larger than a flow control window reach the runtime whole."""
    gpu.on_allocate = lambda request, _context: allocate_answer(
        request, annotations={f"vendor.com/{number}": "v" * 1000 for number in range(500)})
    for attempt in range(5):
        client.create(client.run_pod(f"web{attempt}"), "app", annotations=by_token(GPU, "g0"))
        assert len(last_config(runtime).annotations) == 501
        client.remove_all_pods()


def test_compressed_with_devices(runtime, client, gpu):
    """A gzip-compressed CreateContainer gets its devices."""
    request = client.create_request(client.run_pod("web"), "app", ["x" * 10_000],
                                    annotations=by_token(GPU, "g0"))
    client.unary(RUNTIME + "CreateContainer", request.SerializeToString(),
                 compression=grpc.Compression.Gzip)
    assert given(runtime) == {"g0"} and last_config(runtime).command == ["x" * 10_000]


def test_with_devices_in_small_frames(runtime, shim, client, gpu):
    """A CreateContainer with devices that comes in single bytes, and one while others talk."""
    request = client.create_request(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    with Connection(shim.socket) as connection:
        stream = connection.begin(RUNTIME + "CreateContainer")
        for number, byte in enumerate(framed(request.SerializeToString())):
            connection.send(stream, bytes([byte]), end_stream=False)
            if number % 50 == 0:
                assert connection.wait_end(connection.call("/x/y", framed(b"z"))).payload == b"z"
        connection.send(stream, b"")
        assert connection.wait_end(stream).status == 0
    assert given(runtime) == {"g0"}


def test_kept_options_for_many_pods(runtime, shim, client, make_plugin):
    """A thousand devices to a hundred pods at once: each its own, one Allocate each."""
    plugin = make_plugin(shim, GPU, [f"g{number}" for number in range(1000)])
    calls = []
    for number in range(100):
        pod = client.run_pod(f"web{number}", annotations=by_annotation("app", f"{GPU}=10"))
        calls.append(client.begin("CreateContainer", client.create_request(pod, "app")))
    for call in calls:
        call.result()
    ids = [one for request in runtime.create_requests()
           for one in envs(request.config)["PLUGIN_DEVICES"].split(",")]
    assert len(ids) == len(set(ids)) == 1000 and len(plugin.allocated()) == 100


@pytest.fixture
def nodes(directory):
    """A directory with device nodes: tty0 to tty2."""
    path = directory / "nodes"
    path.mkdir()
    for number in range(3):
        make_node(path / f"tty{number}")
    return path


def make_node(path):
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 7))


def builtin(runtime):
    return {(device.host_path, device.container_path, device.permissions)
            for device in last_config(runtime).devices}


def test_builtin_glob(runtime, make_shim, make_client, nodes):
    """A built-in resource over a glob: each node is a device, with path and permissions as set."""
    shim = make_shim(devices=[{"resource": TTY, "path": f"{nodes}/tty*",
                               "container_path": "/dev/serial/", "permissions": "rw"}])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{TTY}=3"))
    client.create(pod, "app")
    assert builtin(runtime) == {(f"{nodes}/tty{number}", f"/dev/serial/tty{number}", "rw")
                                for number in range(3)}


def test_builtin_count(runtime, make_shim, make_client, nodes):
    """`count` containers may hold one node at once, no more; a freed share is given again."""
    shim = make_shim(plugins={"hold": "100ms"},
                     devices=[{"resource": TTY, "path": f"{nodes}/tty0", "count": 2}])
    client = make_client(shim)
    pods = [client.run_pod(f"web{number}", annotations=by_annotation("app", f"{TTY}=1"))
            for number in range(3)]
    client.create(pods[0], "app")
    client.create(pods[1], "app")
    assert {device.host_path for device in last_config(runtime).devices} == {f"{nodes}/tty0"}
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, TTY):
        client.create(pods[2], "app")
    client.remove_pod(pods[0].id)
    client.create(pods[2], "app")


def test_builtin_health(runtime, make_shim, make_client, nodes):
    """A built-in device is healthy while its node exists; a new node of a glob is a new device."""
    shim = make_shim(plugins={"hold": "50ms"},
                     devices=[{"resource": TTY, "path": f"{nodes}/tty*"}])
    client = make_client(shim)

    def given_paths(count):
        pod = client.run_pod("web", annotations=by_annotation("app", f"{TTY}={count}"))
        try:
            client.create(pod, "app")
            return {device.host_path for device in last_config(runtime).devices}
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
            return set()
        finally:
            client.remove_pod(pod.id)

    assert len(given_paths(3)) == 3
    (nodes / "tty0").unlink()
    wait_until(lambda: not given_paths(3), "the node that is gone is not given any more")
    assert given_paths(2) == {f"{nodes}/tty1", f"{nodes}/tty2"}
    make_node(nodes / "tty7")
    wait_until(lambda: f"{nodes}/tty7" in given_paths(3), "the new node is given")
    make_node(nodes / "tty0")
    wait_until(lambda: len(given_paths(4)) == 4, "the node that is back is given")
