"""CreateContainer with the CDI devices of claims, and of device plugins."""

import json
import threading

import grpc
import pytest

from agent_process import Agent
from asking import by_token, refused, refused_once_known
from ctl import checked, ctl, ctl_json
from dra_node import DraNode
from kubelet_drivers import claim
from protos import cri, deviceplugin
from protos import dra as dra_messages
from runtime import Reply
from waiting import GENEROUS_S, wait_until

GPU = "gpu.example.com"
NIC = "nic.example.com"
NODE = "node-1"  # of the fixtures


@pytest.fixture
def dra(bridge, kubelet, make_driver):
    """dra(name): a driver that the kubelet knows."""
    def make(name=GPU, **settings):
        driver = make_driver(name, **settings)
        kubelet.wait_registered(name)
        return driver

    return make


def prepared(kubelet, name, *uids):
    """The CDI names of the claims, in their order."""
    answers = kubelet.prepare(name, [claim(uid) for uid in uids])
    assert not any(answer.error for answer in answers.values())
    return [cdi for uid in uids for device in answers[uid].devices for cdi in device.cdi_device_ids]


def with_names(names, **more):
    """Of a container's config, as the kubelet makes it of claims."""
    return {"CDI_devices": [cri.CDIDevice(name=name) for name in names], **more}


def last_create(runtime):
    return runtime.calls_of("CreateContainer")[-1]


def unresolvable(names):
    """As containerd has it."""
    return Reply((), grpc.StatusCode.UNKNOWN, "failed to create containerd container: CDI device injection failed: "
                                              f"unresolvable CDI devices {', '.join(names)}")


def is_containerd(runtime, version, settings):
    """From its next connection on; `settings`: what Status says of them."""
    runtime.on("Version", lambda _call: Reply((cri.VersionResponse(
        version="0.1.0", runtime_name="containerd", runtime_version=version,
        runtime_api_version="v1").SerializeToString(),)))
    runtime.on("Status", lambda _call: Reply((cri.StatusResponse(
        info={"config": json.dumps(settings), "golang": "go1"}).SerializeToString(),)))


def restarted(runtime, shim, client, words):
    """The runtime, until the shim has heard what it is now."""
    runtime.stop()
    runtime.start()
    shim.wait_log(words)
    client.reconnect()


def test_a_create_waits_for_what_the_runtime_says_of_itself(runtime, make_shim, make_client):
    """At the daemon's start: by guess it would be started without its device. One without any does not wait."""
    words = threading.Event()

    def version(_call):
        assert words.wait(GENEROUS_S)
        return Reply((cri.VersionResponse(version="0.1.0", runtime_name="cri-o", runtime_version="1.30.0",
                                          runtime_api_version="v1").SerializeToString(),))

    client = make_client(shim := make_shim())
    pod = client.run_pod("web")
    shim.stop()
    runtime.on("Version", version)
    shim.start()
    client.reconnect()
    asked = client.begin("CreateContainer", client.create_request(pod, "main", ["x"], **with_names(["example.com/gpu=0"])))
    client.create(pod, "plain")
    assert [one.config.metadata.name for one in runtime.create_requests()] == ["plain"] and not asked.done()
    words.set()
    assert asked.result().container_id
    assert runtime.create_requests()[-1].config.CDI_devices[0].name == "example.com/gpu=0"


def test_so_it_does_behind_a_restart_of_the_runtime(runtime, shim, kubelet, dra, client):
    """It may be another one: what the last one made of CDI devices says nothing of it. At first it says nothing, as
    containerd before it makes containers."""
    begun, words = threading.Event(), threading.Event()

    def begins(call):
        if call.method == "Status":
            begun.set()
        return Reply((), grpc.StatusCode.UNAVAILABLE, "server is not initialized yet")

    def status(_call):
        assert words.wait(GENEROUS_S)
        return Reply((cri.StatusResponse(info={"config": json.dumps({"enableCDI": False})}).SerializeToString(),))

    is_containerd(runtime, "1.7.28", {"enableCDI": True})
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: supported")
    dra()
    names = prepared(kubelet, GPU, "c-1")
    pod = client.run_pod("web")
    runtime.stop()
    runtime.on("ListPodSandbox", begins)
    runtime.on("Status", begins)
    runtime.start()
    assert begun.wait(GENEROUS_S)
    runtime.on("Status", status)
    runtime.on("ListPodSandbox")
    client.reconnect()
    asked = client.begin("CreateContainer", client.create_request(pod, "main", ["x"], **with_names(names)))
    client.create(pod, "plain")
    assert [one.config.metadata.name for one in runtime.create_requests()] == ["plain"] and not asked.done()
    words.set()
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "it does not support CDI devices, or that is switched off"):
        asked.result()


# ---- of device plugins ----

PLUGINS = "vendor.com/gpu"


@pytest.fixture
def by_cdi(runtime, make_plugin, shim):
    """A plugin that gives nothing but CDI devices."""
    plugin = make_plugin(shim, PLUGINS, ["g0", "g1"])
    plugin.on_allocate = lambda request, _context: deviceplugin.AllocateResponse(container_responses=[
        deviceplugin.ContainerAllocateResponse(cdi_devices=[deviceplugin.CDIDevice(name=f"{PLUGINS}={one}")
                                                            for one in request.container_requests[0].devices_ids])])
    return plugin


@pytest.mark.parametrize("version, settings, words", [
    ("1.6.20~ds1", {"containerdRootDir": "/"}, "it does not support CDI devices, or that is switched off"),
    ("1.7.1", {"enableCDI": True}, "it reads CDI devices in annotations only")])
def test_a_plugin_s_cdi_devices_that_nobody_reads(runtime, shim, client, by_cdi, version, settings, words):
    """The container is not started without them: it is refused until the runtime reads them."""
    is_containerd(runtime, version, settings)
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: ")
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, PLUGINS, "without the devices of its plugin", words):
        client.create(pod, "main", annotations=by_token(PLUGINS, "g0"))
    is_containerd(runtime, "1.7.28", {"enableCDI": True})
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: supported")
    client.create(pod, "main", annotations=by_token(PLUGINS, "g0"))
    assert [one.name for one in runtime.create_requests()[-1].config.CDI_devices] == [f"{PLUGINS}=g0"]


@pytest.mark.parametrize("enabled", [True, False])
def test_they_wait_for_what_the_runtime_says(runtime, shim, client, by_cdi, make_plugin, enabled):
    """Behind its restart; what another plugin gives does not."""
    words = threading.Event()

    def status(_call):
        assert words.wait(GENEROUS_S)
        return Reply((cri.StatusResponse(info={"config": json.dumps({"enableCDI": enabled})}).SerializeToString(),))

    is_containerd(runtime, "1.7.28", {"enableCDI": not enabled})
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: ")
    make_plugin(shim, "other.com/nic", ["n0"])
    pod = client.run_pod("web")
    runtime.stop()
    runtime.on("Status", status)
    runtime.start()
    client.reconnect()
    asked = client.begin("CreateContainer", client.create_request(pod, "main", ["x"], annotations=by_token(PLUGINS, "g0")))
    client.create(pod, "other", annotations=by_token("other.com/nic", "n0"))
    wait_until(by_cdi.allocated, "the plugin is asked")
    assert [one.config.metadata.name for one in runtime.create_requests()] == ["other"] and not asked.done()
    words.set()
    if enabled:
        assert asked.result().container_id
    else:
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "without the devices of its plugin"):
            asked.result()


# ---- names ----

def test_what_is_named_twice_is_passed_on_once(runtime, kubelet, dra, client):
    """A kubelet that was restarted has asked twice, and keeps what came twice; two requests of a claim have a
    device in common."""
    dra()
    dra(NIC)
    names = prepared(kubelet, GPU, "c-1", "c-2") + prepared(kubelet, NIC, "c-1")
    again = prepared(kubelet, GPU, "c-1", "c-2")
    assert again == names[:2]
    pod = client.run_pod("web")
    request = client.create_request(pod, "main", ["x"], **with_names(names + again, envs={"A": "1"}))
    once = client.create_request(pod, "main", ["x"], **with_names(names, envs={"A": "1"}))
    client.CreateContainer(request)
    assert last_create(runtime).parsed() == once


def has_device(number):
    """What its claims have from then on, by names as most drivers make them."""
    def prepare(one):
        return [dra_messages.Device(pool_name="node-1", device_name=f"gpu-{number}", cdi_device_ids=[
            f"example.com/gpu={one.uid}-gpu-{number}", "example.com/gpu=all"])]

    return prepare


def test_what_a_claim_had_before_is_not_passed_on(runtime, shim, kubelet, dra, client):
    """A kubelet that was restarted has asked twice, and was told of another device: it names both."""
    driver = dra()
    driver.on_prepare = has_device(0)
    names = prepared(kubelet, GPU, "c-1")
    driver.on_prepare = has_device(1)
    again = prepared(kubelet, GPU, "c-1")
    pod = client.run_pod("web")
    client.create(pod, "main", ["x"], **with_names(names + again, annotations={"cdi.k8s.io/a": ",".join(names + again)}))
    assert last_create(runtime).parsed() == client.create_request(
        pod, "main", ["x"], **with_names(["example.com/gpu=all", again[0]],
                                         annotations={"cdi.k8s.io/a": f"example.com/gpu=all,{again[0]}"}))
    shim.wait_log(f"CDI device {names[0]}, which its claim had before, is not passed on (in its place: none)")


def test_who_names_only_what_a_claim_had_before_is_given_what_it_has(runtime, shim, kubelet, dra, client):
    """Over a restart, too."""
    driver = dra()
    driver.on_prepare = has_device(0)
    names = prepared(kubelet, GPU, "c-1")
    driver.on_prepare = has_device(1)
    again = prepared(kubelet, GPU, "c-1")
    shim.stop()
    shim.start()
    client.reconnect()
    pod = client.run_pod("web")
    client.create(pod, "main", ["x"], **with_names(names))
    assert last_create(runtime).parsed() == client.create_request(pod, "main", ["x"], **with_names(again))


def test_what_is_named_once_passes_as_it_came(runtime, kubelet, dra, client):
    """By annotation, too, for runtimes that know that alone."""
    dra()
    names = prepared(kubelet, GPU, "c-1", "c-2")
    pod = client.run_pod("web")
    request = client.create_request(pod, "main", ["x"], **with_names(
        names, annotations={f"cdi.k8s.io/{GPU}_c": ",".join(names)}))
    client.CreateContainer(request)
    assert last_create(runtime).parsed() == request


def test_of_both_ways_one_is_enough_where_the_runtime_reads_the_field(runtime, shim, kubelet, dra, client):
    is_containerd(runtime, "v2.1.9", {"enableCDI": True})
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: supported")
    dra()
    names = prepared(kubelet, GPU, "c-1", "c-2")
    pod = client.run_pod("web")
    client.create(pod, "main", ["x"], **with_names(names, annotations={
        "cdi.k8s.io/a": ",".join(names), "cdi.k8s.io/b": f"v/c=d,{names[0]}"}))
    assert last_create(runtime).parsed() == client.create_request(
        pod, "main", ["x"], **with_names(names, annotations={"cdi.k8s.io/b": "v/c=d"}))


# ---- what the runtime cannot resolve ----

def test_a_claim_that_the_runtime_cannot_resolve_is_prepared_anew(runtime, shim, kubelet, dra, client):
    """As after a reboot, which has taken the driver's CDI files: the kubelet does not ask again as long as the
    sandbox lives. What it is told is the runtime's own word."""
    driver = dra()
    names = prepared(kubelet, GPU, "c-1", "c-2")
    files = set()  # of the driver's, by claim
    driver.on_prepare = lambda one: files.add(one.uid) or driver._devices(one)

    def create(call):
        lost = [cdi.name for cdi in call.parsed().config.CDI_devices if cdi.name.partition("=")[2] not in files]
        if lost:
            return unresolvable(lost)
        runtime.on("CreateContainer")
        return runtime.answer(call)

    pod = client.run_pod("web")
    runtime.on("CreateContainer", create)
    with refused(grpc.StatusCode.UNKNOWN, f"CDI device injection failed: unresolvable CDI devices {names[0]}"):
        client.create(pod, "main", **with_names(names[:1]))
    shim.wait_log(f"claim default/claim-c-1, driver {GPU}: the runtime cannot resolve its CDI device {names[0]}")
    shim.wait_log(f"claim default/claim-c-1, driver {GPU}: it was prepared anew")
    client.create(pod, "main", attempt=1, **with_names(names[:1]))
    *first, again = driver.calls_of("NodePrepareResources")
    assert (sorted(first), again) == (["c-1", "c-2"], "c-1")  # the two are asked for at once


def test_what_the_runtime_cannot_resolve_is_not_asked_for_again_and_again(runtime, shim, kubelet, dra, client):
    """Where the driver cannot help; nor for names that are none of ours."""
    driver = dra()
    names = prepared(kubelet, GPU, "c-1")
    runtime.on("CreateContainer", lambda call: unresolvable(
        [cdi.name for cdi in call.parsed().config.CDI_devices]))
    pod = client.run_pod("web")
    for attempt in range(5):
        with refused(grpc.StatusCode.UNKNOWN, "unresolvable CDI devices v/c=d"):
            client.create(pod, "main", attempt=attempt, **with_names(["v/c=d", *names]))
        shim.wait_log("it was prepared anew")
    assert driver.calls_of("NodePrepareResources") == ["c-1", "c-1"]
    assert shim.log().count("cannot resolve its CDI device") == 1


# ---- runtimes without CDI ----

@pytest.mark.parametrize("version, settings, words", [
    ("1.6.20~ds1", {"containerdRootDir": "/"}, "it does not support CDI devices, or that is switched off"),
    ("1.7.28", {"enableCDI": False}, "it does not support CDI devices, or that is switched off"),
    ("1.7.1", {"enableCDI": True}, "it reads CDI devices in annotations only")])
def test_a_runtime_that_would_start_it_without_its_device(runtime, shim, kubelet, dra, client, version, settings, words):
    """The container is refused; one that names nothing of ours is not. The runtime may be mended meanwhile."""
    is_containerd(runtime, version, settings)
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: ")
    dra()
    names = prepared(kubelet, GPU, "c-1")
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, words):
        client.create(pod, "main", **with_names(names))
    client.create(pod, "other", **with_names(["v/c=d"]))
    is_containerd(runtime, "1.7.28", {"enableCDI": True})
    restarted(runtime, shim, client, "runtime: CDI devices in its containers: supported")
    client.create(pod, "main", **with_names(names))


def test_where_nobody_knows_it_passes(runtime, shim, kubelet, dra, client):
    dra()
    names = prepared(kubelet, GPU, "c-1", "c-2")
    pod = client.run_pod("web")
    for count, name in enumerate(names):
        client.create(pod, f"c{count}", **with_names([name]))
    assert shim.log().count("it is not known whether the runtime supports CDI devices") == 1


# ---- devices of other pods ----

@pytest.fixture
def clustered(runtime, directory, make_shim):
    return make_shim(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})


@pytest.fixture
def cluster(clustered, server, directory, closing):
    """A daemon whose agent sees claims, and a driver that gives gpu-0 to each of them, or what `device_of` says, as they
    are given it there."""
    one = DraNode(directory, clustered, closing)
    one.device_of = {}
    agent = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
    agent.start()
    clustered.wait_log("cluster: agent")
    driver = one.driver(GPU)
    driver.on_prepare = lambda claimed: [dra_messages.Device(
        request_names=["gpu"], pool_name=NODE, device_name=one.device_of.get(claimed.uid, "gpu-0"),
        cdi_device_ids=[f"{GPU}/device={claimed.uid}", f"{GPU}/device=all"])]
    return one


def allocate(server, uid, **more):
    """gpu-0, or another device, to a claim, for a pod of this node."""
    result = {"driver": GPU, "pool": NODE, "device": "gpu-0", "request": "gpu", **more}
    server.put("resourceclaims", {"metadata": {"name": f"claim-{uid}", "namespace": "default", "uid": uid}, "status": {
        "allocation": {"devices": {"results": [result]}}}})
    server.put("pods", {"metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": f"pod-{uid}"}, "spec": {
        "nodeName": NODE, "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{uid}"}]}, "status": {}})


def of_claim(uid):
    return with_names([f"{GPU}/device={uid}", f"{GPU}/device=all"])


def test_a_device_that_a_pod_still_has_is_not_given_to_another(clustered, cluster, server):
    """As after a pod was deleted by force: its claim is given away while its container runs."""
    client = cluster.client
    for uid in ("c-1", "c-2"):
        allocate(server, uid)
        prepared(cluster.kubelet, GPU, uid)
    holder = client.run_pod("holder")
    held = client.run(holder, "main", **of_claim("c-1"))
    pod, error = refused_once_known(client, of_claim("c-2"))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    for words in ("device gpu-0 of claim claim-c-2", 'container "main" of pod default/holder'):
        assert words in error.details()
    (item,) = ctl_json(clustered, "why", pod.config.metadata.name, "main")["items"]
    assert item["lastRefusal"]["reason"]["word"] == "claim-held"
    client.run(holder, "again", **of_claim("c-1"))  # it has it
    client.StopPodSandbox(pod_sandbox_id=holder.id)
    assert client.create(pod, "main", attempt=1, **of_claim("c-2")) and held


def test_a_part_of_what_a_pod_still_has_is_not_given_to_another(clustered, cluster, server):
    """As after a pod was deleted by force: the scheduler makes two halves of its device for others."""
    client = cluster.client
    parts = {"c-1": ("gpu-0", "80Gi"), "c-2": ("half-0", "40Gi"), "c-3": ("half-1", "40Gi")}
    cluster.device_of = {uid: device for uid, (device, _) in parts.items()}
    server.put("resourceslices", {"metadata": {"name": "counters", "uid": "uid-counters"}, "spec": {
        "nodeName": NODE, "driver": GPU, "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 2},
        "sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]}})
    server.put("resourceslices", {"metadata": {"name": "devices", "uid": "uid-devices"}, "spec": {
        "nodeName": NODE, "driver": GPU, "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 2},
        "devices": [{"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": much}}}]}
                    for name, much in parts.values()]}})
    for uid, (device, _) in parts.items():
        allocate(server, uid, device=device)
        prepared(cluster.kubelet, GPU, uid)
    holder = client.run_pod("holder")
    client.run(holder, "main", **of_claim("c-1"))
    pod, error = refused_once_known(client, of_claim("c-2"))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    for words in ("device half-0 of claim claim-c-2", 'container "main" of pod default/holder, which has device gpu-0'):
        assert words in error.details()
    (item,) = ctl_json(clustered, "why", pod.config.metadata.name, "main")["items"]
    assert item["lastRefusal"]["reason"]["word"] == "claim-held"
    client.StopPodSandbox(pod_sandbox_id=holder.id)
    client.create(pod, "main", attempt=1, **of_claim("c-2"))
    client.run(client.run_pod("other"), "main", **of_claim("c-3"))  # the other half
    with refused(grpc.StatusCode.UNAVAILABLE, "device gpu-0 of claim claim-c-1"):
        client.create(client.run_pod("late"), "main", **of_claim("c-1"))


def test_who_has_a_device_has_it_behind_an_import(clustered, cluster, server, directory):
    """The cluster knows no more of the claim: it went with its pod, which was deleted by force."""
    shim, client = clustered, cluster.client
    for uid in ("c-1", "c-2"):
        allocate(server, uid)
        prepared(cluster.kubelet, GPU, uid)
    holder = client.run_pod("holder")
    client.run(holder, "main", **of_claim("c-1"))
    refused_once_known(client, of_claim("c-2"))
    client.run(holder, "again", **of_claim("c-1"))  # with which it is stored what is known
    path = directory / "checkpoint.json"
    assert ctl(shim, "checkpoint", "export", "-f", str(path)).returncode == 0
    flags = {one["uid"]: one["alone"] for one in checked("checkpoint-export", path.read_text())["claims"]}
    assert flags["c-1"]
    shim.terminate()
    server.remove("resourceclaims", "claim-c-1", "default")
    server.remove("pods", "pod-c-1", "default")
    done = ctl(shim, "checkpoint", "import", str(path), "-c", str(shim.config_path), "--yes")
    assert done.returncode == 0, done
    shim.start()
    client.reconnect()
    _, error = refused_once_known(client, of_claim("c-2"))
    assert 'container "main" of pod default/holder' in error.details()


@pytest.mark.parametrize("more", [{"adminAccess": True}, {"shareID": "a-b"}])
def test_who_only_looks_or_shares_is_in_nobodys_way(cluster, server, more):
    client = cluster.client
    allocate(server, "c-1")
    allocate(server, "c-2", **more)
    for uid in ("c-1", "c-2"):
        prepared(cluster.kubelet, GPU, uid)
        client.run(client.run_pod(uid), "main", **of_claim(uid))


def test_without_an_agent_it_is_only_said(directory, shim, closing):
    node = DraNode(directory, shim, closing)
    driver = node.driver(GPU)
    driver.on_prepare = lambda claimed: [dra_messages.Device(
        request_names=["gpu"], pool_name=NODE, device_name="gpu-0", cdi_device_ids=[f"{GPU}/device={claimed.uid}"])]
    names = prepared(node.kubelet, GPU, "c-1", "c-2")
    for count, name in enumerate(names):
        node.use(f"web-{count}", "main", name)
    node.use("web-2", "main", names[1])
    assert shim.log().count("device gpu-0 of claim claim-c-2, driver gpu.example.com, may still be used by container "
                            '"main" of pod default/web-0') == 1
