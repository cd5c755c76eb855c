"""The scripted kubelet does without the shim what a real one does to plugins and pods: it loses
pods.

What the other tests show of the shim is worth as much as this kubelet is like a real one.
"""

import os
import signal
import socket
import stat
import threading
import time

import grpc
import pytest

import kubelet_checkpoint
import plugin as plugins
from asking import envs
from shim import ROOT
from kubelet import Kubelet, container
from kubelet_runtime import ENDS_AT_ONCE, KubeletRuntime
from plugin import PluginProcess, allocate_answer, answering, failing
from protos import cri, deviceplugin
from runtime import Reply
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
NIC = "other.com/nic"
REJECTED = "Pod was rejected: Allocate failed due to {}, which is unexpected"


@pytest.fixture
def runtime(runtime_socket, closing):
    one = closing(KubeletRuntime(runtime_socket))
    one.start()
    return one


@pytest.fixture
def make_kubelet(directory, runtime, closing):
    def make(start=True, **settings):
        one = closing(Kubelet(directory / "device-plugins", runtime.path, **settings))
        if start:
            one.start()
            one.wait_event("sources_ready")
        return one

    return make


@pytest.fixture
def kubelet(make_kubelet):
    return make_kubelet()


@pytest.fixture
def gpu(kubelet, make_plugin):
    """A plugin with two devices that the kubelet knows."""
    return known(kubelet, make_plugin(kubelet, GPU, ["g0", "g1"]))


def known(kubelet, plugin):
    kubelet.wait_event("list", resource=plugin.resource)
    return plugin


def restart(kubelet, wait="sources_ready"):
    """Killed and started again; returns when that began."""
    kubelet.kill()
    began = time.monotonic()
    kubelet.start()
    kubelet.wait_event(wait, since=began)
    return began


def devices_of(runtime, pod):
    """What the pod's running container got from the plugin."""
    (request,) = runtime.running_in(pod.uid).values()
    return envs(request.config).get("PLUGIN_DEVICES")


# ---- registration ----

def test_checkpoint_is_the_kubelets():
    """A real kubelet's file is read, its checksum verified, and written again byte for byte."""
    text = (ROOT / "tests/integration/captures/kubelet_internal_checkpoint").read_text().strip()
    entries, registered = kubelet_checkpoint.decode(text)
    assert {one.container for one in entries} == {"setup", "main"}
    assert kubelet_checkpoint.encode(entries, registered) == text
    with pytest.raises(ValueError, match="checkpoint is corrupted"):
        kubelet_checkpoint.decode(text.replace('"w2"', '"w1"'))


def test_directory_clean_up(make_kubelet):
    """All but the checkpoint and directories goes before kubelet.sock comes."""
    kubelet = make_kubelet(start=False)
    folder = kubelet.plugin_dir
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/kept").touch()
    for name in ("plain", ".dot"):
        (folder / name).touch()
    (folder / "link").symlink_to(folder / "sub")
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(folder / "foreign.sock"))
    checkpoint = kubelet_checkpoint.encode([], {GPU: []})
    (folder / kubelet_checkpoint.NAME).write_text(checkpoint)
    kubelet.start()
    kubelet.wait_event("socket")
    assert {path.name for path in folder.iterdir()} == {kubelet_checkpoint.NAME, "sub",
                                                        "kubelet.sock"}
    assert (folder / "sub/kept").exists()
    assert (folder / kubelet_checkpoint.NAME).read_text() == checkpoint


def test_name_before_listen(make_kubelet):
    """kubelet.sock is there before it listens: who connects at once is refused."""
    kubelet = make_kubelet(start=False, listen_gap_s=0.2)
    kubelet.start()
    path = kubelet.plugin_dir / "kubelet.sock"
    wait_until(path.exists, "kubelet.sock is there")
    with socket.socket(socket.AF_UNIX) as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(str(path))
    kubelet.wait_event("socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(path))


@pytest.mark.parametrize("resource,version,words", [
    (GPU, "v1alpha", 'requested API version "v1alpha" is not supported by kubelet'),
    ("gpu", "v1beta1", 'the ResourceName "gpu" is invalid'),
    ("requests.vendor.com/gpu", "v1beta1", "is invalid"),
    ("kubernetes.io/gpu", "v1beta1", "is invalid"),
    ("vendor.com/" + "g" * 64, "v1beta1", "is invalid"),
    (GPU, "v1beta1", "failed to dial device plugin: "),
])
def test_refused_registration(make_kubelet, resource, version, words):
    kubelet = make_kubelet(dial_s=0.1)
    with pytest.raises(grpc.RpcError) as caught:
        plugins.register(kubelet.plugin_dir, resource, "nobody.sock", version)
    assert caught.value.code() == grpc.StatusCode.UNKNOWN and words in caught.value.details()


def test_dials_below_its_directory(kubelet, make_plugin):
    """The endpoint is joined to its directory: a sub-directory's socket will do, and survives."""
    (kubelet.plugin_dir / "sub").mkdir()
    plugin = known(kubelet, make_plugin(kubelet, GPU, ["g0"], endpoint="sub/gpu.sock"))
    began = restart(kubelet, wait="socket")
    plugin.register()
    kubelet.wait_event("list", since=began, resource=GPU)
    assert stat.S_ISSOCK((kubelet.plugin_dir / "sub/gpu.sock").stat().st_mode)


def test_options_are_asked_for(kubelet, make_plugin):
    """Only what GetDevicePluginOptions says counts; both calls that it offers are made."""
    plugin = known(kubelet, make_plugin(kubelet, GPU, ["g0", "g1", "g2"], prestart=True,
                                        prefer=lambda available, must, size: ["g2", "g0"][:size]))
    pod = kubelet.add_pod("web", {GPU: 2})
    kubelet.wait_phase(pod)
    assert plugin.allocated() == [["g0", "g2"]]
    (prefer,) = plugin.calls_of("GetPreferredAllocation")
    assert sorted(prefer.container_requests[0].available_deviceIDs) == ["g0", "g1", "g2"]
    (prestart,) = plugin.calls_of("PreStartContainer")
    assert list(prestart.devices_ids) == ["g0", "g2"]
    names = [name for name, _request in plugin.calls]
    assert names.index("GetDevicePluginOptions") < names.index("ListAndWatch")


def test_old_stream_takes_the_new_one_with_it(kubelet, gpu, make_plugin):
    """A second endpoint of the same resource: when the first one's stream ends, the second is
    disconnected, and the resource is unhealthy."""
    second = make_plugin(kubelet, GPU, ["g0", "g1"], endpoint="second.sock")
    wait_until(lambda: len(kubelet.events_of("list", resource=GPU)) == 2, "both are listed")
    gpu.stop()
    assert kubelet.wait_event("disconnected", resource=GPU)["other"]
    wait_until(lambda: second.stream_count() == 0, "the second one's stream is ended")
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod, phase="Failed")


def test_each_list_is_stored(kubelet, gpu):
    """Each list costs a checkpoint, also one that changes nothing; it holds the healthy ids."""
    path = kubelet.plugin_dir / kubelet_checkpoint.NAME
    before = path.stat().st_ino
    for devices, healthy in (({"g0": True, "g1": False}, ["g0"]),
                             ({"g0": True, "g1": False}, ["g0"])):
        began = time.monotonic()
        gpu.set_devices(devices)
        kubelet.wait_event("list", since=began)
        assert kubelet_checkpoint.read(kubelet.plugin_dir) == ([], {GPU: healthy})
        assert path.stat().st_ino != before
        before = path.stat().st_ino


# ---- the order of the start ----

def test_start_up_order(runtime, kubelet):
    """Version without a version and the image service; the pair of unfiltered lists before
    kubelet.sock, each list of the relist with a filter that is there but empty."""
    methods = [(one.method, one.request) for one in runtime.calls]
    assert methods[0] == ("Version", b"")
    assert methods[1][0] == "ImageFsInfo"
    assert methods[2] == ("Version", cri.VersionRequest(version="0.1.0").SerializeToString())
    lists = [one.request for one in runtime.calls_of("ListContainers")]
    assert lists.count(b"") == 2 and lists.count(b"\x0a\x00") == len(lists) - 2 >= 1
    assert methods.index(("Status", b"")) < methods.index(("ListContainers", b""))
    order = [one["kind"] for one in kubelet.events]
    assert order.index("running") < order.index("socket") < order.index("open")
    assert order.index("relisted") < order.index("open") < order.index("sources_ready")


class Held:
    """Answers the lists with a filter that is there but empty (or, if `unfiltered`, not there) only
    once it is released."""

    def __init__(self, runtime, unfiltered):
        self._runtime = runtime
        self._unfiltered = unfiltered
        self._released = threading.Event()
        runtime.on("ListContainers", self._list)

    def _list(self, call):
        if (call.request == b"") == self._unfiltered:
            self._released.wait(GENEROUS_S)
        return self._runtime.state.answer(call)

    def release(self):
        self._released.set()

    close = release


def test_held_relist_holds_admission_only(runtime, make_kubelet, make_plugin, closing):
    """While the relist has no answer nothing is admitted, but kubelet.sock comes: time enough for
    a plugin, and the pod gets its device."""
    held = closing(Held(runtime, unfiltered=False))
    kubelet = make_kubelet(start=False)
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.start()
    kubelet.wait_event("socket")
    known(kubelet, make_plugin(kubelet, GPU, ["g0"]))
    assert not kubelet.events_of("open") and pod.phase == "Pending"
    held.release()
    kubelet.wait_phase(pod)
    assert devices_of(runtime, pod) == "g0"


def test_held_unfiltered_list_holds_the_socket(runtime, make_kubelet, closing):
    held = closing(Held(runtime, unfiltered=True))
    kubelet = make_kubelet(start=False)
    kubelet.start()
    kubelet.wait_event("relisted")
    assert not (kubelet.plugin_dir / "kubelet.sock").exists()
    held.release()
    kubelet.wait_event("open")


def test_runtime_away_at_start(runtime, make_kubelet):
    """A kubelet whose first call fails ends, and is started again by its service manager."""
    runtime.on("Version", lambda call: Reply((), grpc.StatusCode.UNKNOWN, "not yet"))
    kubelet = make_kubelet(start=False)
    kubelet.start()
    assert "not yet" in kubelet.wait_event("exit")["message"]
    runtime.on("Version")
    kubelet.wait_event("sources_ready")


# ---- pods ----

def test_pod_with_device(runtime, kubelet, gpu):
    """What the plugin gave is in CreateContainer, in front of the pod's own; both devices are given
    once, and free again when their pod is deleted."""
    gpu.on_allocate = lambda request, _context: allocate_answer(
        request, devices=[deviceplugin.DeviceSpec(container_path="/dev/g", host_path="/dev/null",
                                                  permissions="rw")],
        mounts=[deviceplugin.Mount(container_path="/m", host_path="/tmp", read_only=True)],
        annotations={"vendor.com/a": "b"}, cdi_devices=[deviceplugin.CDIDevice(name="v/c=d")])
    pods = [kubelet.add_pod(f"web{number}", containers=[
        container("main", {GPU: 1}, envs={"OWN": "x", "PLUGIN_DEVICES": "mine"},
                  mounts={"/data": "/srv"})]) for number in range(2)]
    kubelet.wait_phase(*pods)
    assert sorted(gpu.allocated()) == [["g0"], ["g1"]]
    (request,) = runtime.running_in(pods[0].uid).values()
    config = request.config
    assert [one.key for one in config.envs] == ["PLUGIN_DEVICES", "PLUGIN_DEVICES", "OWN"] or \
        [one.key for one in config.envs] == ["PLUGIN_DEVICES", "OWN", "PLUGIN_DEVICES"]
    assert config.devices[0].container_path == "/dev/g"
    assert [(one.container_path, one.readonly) for one in config.mounts] == [("/m", True),
                                                                            ("/data", False)]
    assert config.annotations["vendor.com/a"] == "b" and config.CDI_devices[0].name == "v/c=d"
    third = kubelet.add_pod("third", {GPU: 1})
    kubelet.wait_phase(third, phase="Failed")
    assert third.message == REJECTED.format(
        f"requested number of devices unavailable for {GPU}. Requested: 1, Available: 0")
    runtime.calls.clear()
    kubelet.delete_pod(pods[0])
    kubelet.wait_gone(pods[0])
    ended = [one.method for one in runtime.calls if one.method.startswith(("Stop", "Remove"))]
    assert ended == ["StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"]
    fourth = kubelet.add_pod("fourth", {GPU: 1})
    kubelet.wait_phase(fourth)


def test_refused_create_is_retried_for_ever(runtime, kubelet):
    """Pending with our words and CreateContainerError, again and again with the same attempt and in
    the same sandbox, also with restartPolicy Never."""
    runtime.on("CreateContainer", lambda call: Reply((), grpc.StatusCode.UNAVAILABLE, "not now"))
    pod = kubelet.add_pod("web", restart="Never")
    runtime.wait_calls("CreateContainer", 4)
    assert pod.phase == "Pending"
    kubelet.wait(lambda: pod.waiting == {"main": ["CreateContainerError", "not now"]}, "its words")
    requests = runtime.create_requests()
    assert {one.config.metadata.attempt for one in requests} == {0}
    assert len({one.pod_sandbox_id for one in requests}) == 1
    times = [one["t"] for one in kubelet.events_of("refused")]
    # 10 s at least, compressed, after the extra try that the new sandbox causes.
    assert times[-1] - times[-2] >= 0.9 * 10 / kubelet.settings["speed"]
    runtime.on("CreateContainer")
    kubelet.wait_phase(pod)


def test_exited_container_is_restarted(runtime, kubelet, gpu):
    """With the next attempt, in the same sandbox, with what is stored: no new Allocate."""
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    before = devices_of(runtime, pod)
    assert runtime.finish(pod.uid, "main", 1)
    kubelet.wait_event("started", uid=pod.uid, attempt=1)
    assert devices_of(runtime, pod) == before and len(gpu.allocated()) == 1
    assert len({one.pod_sandbox_id for one in runtime.create_requests()}) == 1


@pytest.mark.parametrize("code,phase", [(0, "Succeeded"), (1, "Failed")])
def test_pod_that_ends(runtime, kubelet, gpu, code, phase):
    """A pod whose container has ended for good is stopped, and its device is free."""
    gpu.set_devices(["g0"])
    pod = kubelet.add_pod("job", {GPU: 1}, restart="Never")
    kubelet.wait_phase(pod)
    assert runtime.finish(pod.uid, "main", code)
    kubelet.wait_phase(pod, phase=phase)
    kubelet.wait_event("terminated", uid=pod.uid)
    assert not runtime.running_in(pod.uid)
    kubelet.wait_phase(kubelet.add_pod("next", {GPU: 1}))


def test_init_containers_hand_on(kubelet, gpu):
    """An init container's devices go on to the app containers of its pod."""
    gpu.set_devices(["g0"])
    pod = kubelet.add_pod("web", init=[container(ENDS_AT_ONCE, {GPU: 1})],
                          containers=[container("main", {GPU: 1})])
    kubelet.wait_event("started", uid=pod.uid, container=ENDS_AT_ONCE)
    kubelet.wait_phase(pod)
    assert gpu.allocated() == [["g0"], ["g0"]]


def test_lost_sandbox_is_made_anew(runtime, kubelet, gpu):
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    (request,) = runtime.running_in(pod.uid).values()
    with runtime.client() as directly:
        directly.StopPodSandbox(pod_sandbox_id=request.pod_sandbox_id)
    kubelet.wait_event("started", uid=pod.uid, attempt=1)
    (second,) = runtime.running_in(pod.uid).values()
    assert second.pod_sandbox_id != request.pod_sandbox_id
    assert second.sandbox_config.metadata.attempt == 1 and len(gpu.allocated()) == 1


def test_failing_prestart_is_no_end(kubelet, gpu, make_plugin):
    """PreStartContainer's failure is CreateContainerConfigError, and tried again."""
    nic = known(kubelet, make_plugin(kubelet, NIC, ["n0"], prestart=True))
    nic.on_prestart = failing(grpc.StatusCode.INTERNAL, "cannot")
    pod = kubelet.add_pod("web", {NIC: 1})
    kubelet.wait(lambda: pod.waiting, "a reason")
    assert pod.phase == "Pending"
    assert pod.waiting["main"] == [
        "CreateContainerConfigError", "device plugin PreStartContainer rpc failed with err: "
        "rpc error: code = Internal desc = cannot"]
    nic.on_prestart = answering(deviceplugin.PreStartContainerResponse())
    kubelet.wait_phase(pod)


def test_orphans_are_ended(runtime, kubelet):
    """A pod of the runtime that the API server does not know is stopped and removed."""
    with runtime.client() as directly:
        directly.run_pod("orphan")
    wait_until(lambda: not runtime.state.pods, "it is removed")


# ---- restarts ----

def test_restart_replays_what_is_stored(runtime, kubelet, make_plugin):
    """After a restart, with its plugin back in time, a container made anew gets the stored answer
    and its ids, without an Allocate."""
    (kubelet.plugin_dir / "sub").mkdir()
    plugin = known(kubelet, make_plugin(kubelet, GPU, ["g0", "g1"], endpoint="sub/gpu.sock"))
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    before = devices_of(runtime, pod)
    began = restart(kubelet)
    plugin.register()
    kubelet.wait_event("list", since=began)
    assert runtime.finish(pod.uid, "main", 1)
    kubelet.wait_event("started", uid=pod.uid, attempt=1)
    assert devices_of(runtime, pod) == before and len(plugin.allocated()) == 1
    entries, _registered = kubelet_checkpoint.read(kubelet.plugin_dir)
    assert [one.all_ids() for one in entries] == [{before}]


def test_restart_spares_what_runs(runtime, kubelet, gpu):
    """Without a plugin a pod that was found running is admitted; one that comes then fails."""
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    gpu.stop()
    began = restart(kubelet)
    kubelet.wait_event("admitted", since=began, uid=pod.uid)
    late = kubelet.add_pod("late", {GPU: 1})
    kubelet.wait_phase(late, phase="Failed")
    assert late.reason == "UnexpectedAdmissionError" and late.message == REJECTED.format(
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}")
    assert pod.phase == "Running"


def test_reboot_loses_pods(runtime, kubelet, gpu):
    """The failure that the shim is for: nothing waits for the plugin, whose pods fail for good;
    that it is back a moment later is of no use."""
    pods = [kubelet.add_pod(f"web{number}", {GPU: 1}) for number in range(2)]
    plain = kubelet.add_pod("plain")
    kubelet.wait_phase(plain, *pods)
    kubelet.kill()
    gpu.stop()
    runtime.reboot()
    began = time.monotonic()
    kubelet.start()
    kubelet.wait_phase(*pods, phase="Failed")
    gpu.start()
    kubelet.wait_event("list", since=began)
    kubelet.wait_event("started", since=began, uid=plain.uid)
    assert {pod.message for pod in pods} == {REJECTED.format(
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}")}
    restart(kubelet)
    assert all(pod.phase == "Failed" for pod in pods)


def test_unknown_resource_is_no_obstacle(runtime, kubelet, make_plugin):
    """Worse: where nothing is known of the resource the pod runs without its device; a container of
    it that is made once the plugin is there does get one."""
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    assert devices_of(runtime, pod) is None
    known(kubelet, make_plugin(kubelet, GPU, ["g0"]))
    assert runtime.finish(pod.uid, "main", 1)
    kubelet.wait_event("started", uid=pod.uid, attempt=1)
    assert devices_of(runtime, pod) == "g0"


@pytest.mark.parametrize("spoil", [lambda text: text.replace('"g0"', '"g7"'),
                                   lambda text: text[:-9]], ids=["checksum", "cut"])
def test_corrupt_checkpoint_is_an_empty_one(runtime, kubelet, gpu, spoil):
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    kubelet.kill()
    gpu.stop()
    path = kubelet.plugin_dir / kubelet_checkpoint.NAME
    path.write_text(spoil(path.read_text()))
    runtime.reboot()
    began = time.monotonic()
    kubelet.start()
    kubelet.wait_event("started", since=began, uid=pod.uid)
    assert devices_of(runtime, pod) is None


def test_lost_stream_fails_what_comes(kubelet, gpu):
    """A plugin's restart: what is admitted meanwhile fails for good; then all is well again."""
    gpu.stop()
    kubelet.wait_event("disconnected", resource=GPU)
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod, phase="Failed")
    assert kubelet_checkpoint.read(kubelet.plugin_dir) == ([], {GPU: ["g0", "g1"]})
    began = time.monotonic()
    gpu.start()
    kubelet.wait_event("list", since=began)
    kubelet.wait_phase(kubelet.add_pod("next", {GPU: 1}))
    assert pod.phase == "Failed"


def test_failing_allocate_is_final(kubelet, gpu):
    gpu.on_allocate = failing(grpc.StatusCode.INTERNAL, "no")
    pod = kubelet.add_pod("web", {GPU: 2})
    kubelet.wait_phase(pod, phase="Failed")
    assert pod.message == REJECTED.format("rpc error: code = Internal desc = no")
    gpu.on_allocate = lambda request, _context: allocate_answer(request)
    kubelet.wait_phase(kubelet.add_pod("next", {GPU: 2}))  # the ids are free again


def test_resource_goes_after_its_grace(runtime, make_kubelet, make_plugin):
    """Five minutes (compressed) after its plugin the resource is deleted, and then no obstacle."""
    kubelet = make_kubelet(stop_grace_s=0.1)
    known(kubelet, make_plugin(kubelet, GPU, ["g0"])).stop()
    kubelet.wait_event("deleted", resource=GPU)
    assert kubelet_checkpoint.read(kubelet.plugin_dir) == ([], {})
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    assert devices_of(runtime, pod) is None


def test_hung_plugin_stops_the_node(runtime, kubelet, closing):
    """A plugin that is stopped in Allocate: no other pod of the node starts, none is retried, until
    it goes on."""
    plugin = closing(PluginProcess(kubelet.plugin_dir, GPU, ["g0"]))
    plugin.start()
    kubelet.wait_event("list", resource=GPU)
    os.kill(plugin.pid, signal.SIGSTOP)
    try:
        asking = kubelet.add_pod("asking", {GPU: 1})
        plain = kubelet.add_pod("plain")
        relists = len(runtime.calls_of("ListPodSandbox"))
        runtime.wait_calls("ListPodSandbox", relists + 20)  # the kubelet itself lives
        assert (asking.phase, plain.phase) == ("Pending", "Pending")
        assert not runtime.calls_of("RunPodSandbox")
    finally:
        os.kill(plugin.pid, signal.SIGCONT)
    kubelet.wait_phase(asking, plain)


def test_slow_plugin_makes_pods_queue(kubelet, gpu):
    """Admission is one after the other: Allocate is never called twice at a time."""
    gpu.set_devices([f"g{number}" for number in range(5)])
    inside, most = [], []

    def allocate(request, _context):
        inside.append(request)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()
        return allocate_answer(request)

    gpu.on_allocate = allocate
    kubelet.wait_phase(*[kubelet.add_pod(f"web{number}", {GPU: 1}) for number in range(5)])
    assert most == [1] * 5
