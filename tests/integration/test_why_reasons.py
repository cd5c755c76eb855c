"""`why` for every reason there is to refuse a create: each is provoked in a daemon that runs, and what
`cri-device-shimctl why` says of the refusal is what the caller was told.

A kind of devicemgr/words/reason.h without a row here fails test_every_kind_has_a_row.
"""

import contextlib
import re

import grpc
import pytest

from agent_process import Agent
from api_server import ApiServer
from asking import by_annotation, by_token, refused_once_known
from ctl import ctl, ctl_json
from dra_node import DraNode
from hung_workers import HungWorkers
from kubelet_drivers import claim
from metrics import scrape
from plugin import allocate_answer, failing, never
from protos import cri, deviceplugin, dra
from runtime import Reply
from scripted_agent import ScriptedAgent
from shim import ROOT, accepts, locked
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"
MIB = 1 << 20
CREATES_MAX = 4096
CALLS_OF_ONE = 512
OPTIONS_BYTES_MAX = 64 * MIB
NAMES_BYTES_MAX = 4096



class Node:
    """Daemon, runtime and one plugin; what a scenario needs besides, it starts itself."""

    def __init__(self, directory, closing, runtime, make_shim, make_plugin, make_client, metrics):
        self.directory, self.closing = directory, closing
        self.runtime, self.metrics = runtime, metrics
        self._make_shim, self._make_plugin, self._make_client = make_shim, make_plugin, make_client
        self.shim = self.client = self.plugin = None
        self.stack = contextlib.ExitStack()
        self.calls = []  # one that nobody knows is cancelled

    def start(self, devices=("g0", "g1"), **settings):
        settings["plugins"] = {"hold": "0s", "grace": "10m", **settings.get("plugins", {})}
        self.shim = self._make_shim(metrics={"listen": str(self.metrics)}, **settings)
        wait_until(lambda: accepts(self.shim.control), "the control socket is there")
        self.client = self._make_client(self.shim)
        self.shim.wait_log("runtime listed")  # before that it is in the way of all
        if devices:
            self.plugin = self._make_plugin(self.shim, GPU, devices)
            self.shim.wait_log("devices healthy")
        return self

    def claims(self, *uids, device=None):
        """{uid: its CDI devices} of claims that are prepared, by a driver that gives them this device."""
        dra_node = DraNode(self.directory, self.shim, self.closing)
        driver = dra_node.driver(DRIVER)
        if device:
            driver.on_prepare = lambda one: [dra.Device(request_names=["gpu"], pool_name="node-1", device_name=device,
                                                        cdi_device_ids=[f"{DRIVER}/device={one.uid}"])]
        answers = dra_node.kubelet.prepare(DRIVER, [claim(uid) for uid in uids])
        return {uid: [cri.CDIDevice(name=name) for device in answers[uid].devices for name in device.cdi_device_ids]
                for uid in uids}

    def restart(self):
        self.shim.terminate()
        self.shim.start()
        wait_until(lambda: accepts(self.shim.control), "the control socket is there")
        self.client = self._make_client(self.shim)

    def pod(self, name="web", request=None, **more):
        annotations = by_annotation("main", request) if request else None
        return self.client.run_pod(name, annotations=annotations, **more)

    def token(self, *ids):
        return by_token(GPU, *(ids or ("g0",)))

    def refused(self, pod, annotations=None, **more):
        """The error of a create of "main" that must be refused."""
        with pytest.raises(grpc.RpcError) as caught:
            self.client.create(pod, "main", annotations=annotations, **more)
        return caught.value

    def held(self):
        return int(scrape(self.metrics)["creates"].value())

    def begin(self, pod, annotations, name="main", **more):
        return self.client.begin("CreateContainer", self.client.create_request(
            pod, name, annotations=annotations, **more))


@pytest.fixture
def node(directory, closing, runtime, make_shim, make_plugin, make_client):
    one = Node(directory, closing, runtime, make_shim, make_plugin, make_client, directory / "metrics.sock")
    with one.stack:
        yield one


# ---- each kind: (the pod, the error of its container "main") ----

def request_unreadable(node):
    pod = node.start().pod()
    return pod, node.refused(pod, {next(iter(by_token(GPU, "g0"))): "{"})


def annotations_off(node):
    pod = node.start(annotations={"enabled": False}).pod(request=f"{GPU}=1")
    return pod, node.refused(pod)


def namespace_not_allowed(node):
    pod = node.start(annotations={"namespaces": ["other"]}).pod(request=f"{GPU}=1")
    return pod, node.refused(pod)


def published(node):
    node.start(cluster={"enabled": True, "socket": str(node.directory / "run" / "agent.sock")}, resources=[{"name": GPU, "dra": True}])
    pod = node.pod(request=f"{GPU}=1")
    return pod, node.refused(pod)


def names_too_long(node):
    pod = node.start().pod("x" * NAMES_BYTES_MAX)
    return pod, node.refused(pod, node.token())


def other_pods_sandbox(node):
    node.start()
    whose, pod = node.pod("whose"), node.pod()
    pod.id = whose.id
    return pod, node.refused(pod, node.token())


def request_changed(node):
    pod = node.start().pod(request=f"{GPU}=1")
    node.client.run(pod, "main")
    pod.config.annotations.update(by_annotation("main", f"{GPU}=2"))
    return pod, node.refused(pod)


def token_gone(node):
    pod = node.start().pod()
    node.client.run(pod, "main", annotations=node.token())
    return pod, node.refused(pod)


def taken_over(node):
    pod = node.start(plugins={"hold": "60s"}).pod()
    node.plugin.stop()
    node.shim.wait_log("its devices are unhealthy")
    first = node.begin(pod, node.token())
    node.shim.wait_log("held: ")
    node.calls.append(node.begin(pod, node.token()))
    return pod, first.exception(GENEROUS_S)


def too_many_creates(node):
    node.start(plugins={"hold": "60s"})
    node.plugin.stop()
    node.shim.wait_log("its devices are unhealthy")
    pod = node.pod()
    for first in range(0, CREATES_MAX, CALLS_OF_ONE):  # a connection each
        others = node.stack.enter_context(node.shim.client())
        for n in range(first, first + CALLS_OF_ONE):
            node.calls.append(others.begin("CreateContainer", others.create_request(
                pod, f"c{n}", annotations=node.token())))
    wait_until(lambda: node.held() == CREATES_MAX, "all of them are held")
    return pod, node.refused(pod, node.token())


def sandbox_stops(node):
    pod = node.start().pod()
    node.runtime.on("StopPodSandbox", lambda call: call.over.wait() and Reply())
    call = node.client.begin("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=pod.id))
    node.stack.callback(call.cancel)
    wait_until(lambda: node.runtime.calls_of("StopPodSandbox"), "it is told to stop")
    return pod, node.refused(pod, node.token())


def sandbox_removed(node):
    pod = node.start().pod()
    node.client.remove_pod(pod.id)
    return pod, node.refused(pod, node.token())


def sandbox_not_ready(node):
    pod = node.start().pod()
    node.runtime.state.pods[pod.id].state = cri.SANDBOX_NOTREADY
    node.restart()
    node.shim.wait_log("runtime listed: 1 pods")
    node.shim.wait_log("devices healthy", 2)
    return pod, node.refused(pod, node.token())


def resource_unknown(node):
    pod = node.start(devices=None).pod(request=f"{GPU}=1")
    return pod, node.refused(pod)


def plugin_away(node):
    pod = node.start().pod()
    node.plugin.stop()
    node.shim.wait_log("its devices are unhealthy")
    return pod, node.refused(pod, node.token())


def devices_unhealthy(node):
    pod = node.start({"g0": False, "g1": True}).pod()
    return pod, node.refused(pod, node.token())


def no_other_device(node):
    replacing = {"name": GPU, "replace": True, "replace_after": "0s", "hold": "0s"}
    pod = node.start(["g0"], resources=[replacing]).pod(request=f"{GPU}=1")
    container = node.client.run(pod, "main")
    node.client.StopContainer(container_id=container)
    node.client.RemoveContainer(container_id=container)
    node.plugin.set_devices({"g0": False})
    node.shim.wait_log("0 of 1 devices healthy")
    return pod, node.refused(pod)


def replacing(node):
    """No bridge is there to have the kubelet let go of g1."""
    now = {"name": GPU, "replace": True, "replace_after": "0s", "hold": "0s"}
    pod = node.start(["g1"], resources=[now]).pod()
    return pod, node.refused(pod, node.token())


def too_few_are_healthy(node):
    pod = node.start({"g0": False, "g1": True}).pod(request=f"{GPU}=2")
    return pod, node.refused(pod)


def too_few_devices(node):
    pod = node.start().pod(request=f"{GPU}=3")
    return pod, node.refused(pod)


def _held_by_another(node, **settings):
    node.start(**settings)
    other = node.pod("other")
    return node.client.run(other, "app", annotations=node.token()), node.pod()


def holder_runs(node):
    """The runtime says so when it is asked."""
    _, pod = _held_by_another(node, plugins={"hold": "10s"})
    return pod, node.refused(pod, node.token())


def holder_asked(node):
    _, pod = _held_by_another(node)
    node.runtime.on("ContainerStatus", lambda call: call.over.wait() and Reply())
    return pod, node.refused(pod, node.token())


def holder_unknown(node):
    """Its create was given up while the runtime had it."""
    node.start()
    other, pod = node.pod("other"), node.pod()
    node.runtime.on("CreateContainer", lambda call: call.over.wait() and Reply())
    call = node.begin(other, node.token(), name="app")
    wait_until(lambda: node.runtime.calls_of("CreateContainer"), "the runtime has it")
    call.cancel()
    return pod, wait_until(lambda: _if_not_created(node, pod), "it is not known to run")


def _if_not_created(node, pod):
    error = node.refused(pod, node.token())
    return None if "is being created" in error.details() else error


def holder_created(node):
    node.start()
    other, pod = node.pod("other"), node.pod()
    node.runtime.on("CreateContainer", lambda call: call.over.wait() and Reply())
    call = node.begin(other, node.token(), name="app")
    node.stack.callback(call.cancel)
    wait_until(lambda: node.runtime.calls_of("CreateContainer"), "the runtime has it")
    return pod, node.refused(pod, node.token())


def unlisted(node):
    pod = node.start().pod()
    node.runtime.on("ListPodSandbox", lambda call: Reply((), grpc.StatusCode.INTERNAL, "no"))
    node.restart()
    node.shim.wait_log("devices healthy", 2)
    return pod, node.refused(pod, node.token())


def unlisted_again(node):
    """The runtime is listed anew some seconds after rows were lost."""
    pod = node.start().pod()
    node.client.run(pod, "first", annotations=node.token("g1"))
    node.shim.terminate()
    (node.shim.state_dir / "checkpoint.db").write_bytes(b"garbage" * 4096)
    node.shim.start()
    node.client.reconnect()
    node.plugin.stop()
    node.plugin.start()
    node.shim.wait_log("devices healthy", 2)
    return pod, node.refused(pod, node.token())


def call_queued(node):
    """Its plugin, which is asked for one container after the other, does not answer for another."""
    other, pod = node.start().pod("other"), node.pod()
    node.plugin.on_allocate = never
    call = node.begin(other, node.token("g1"), name="app")
    node.stack.callback(call.cancel)
    node.plugin.wait_calls("Allocate")
    request = node.client.create_request(pod, "main", annotations=node.token())
    with pytest.raises(grpc.RpcError) as caught:
        node.client.CreateContainer(request, timeout=3)
    return pod, caught.value


def call_unanswered(node):
    pod = node.start(plugins={"allocate_timeout": "100ms"}).pod()
    node.plugin.on_allocate = never
    return pod, node.refused(pod, node.token())


def call_failed(node):
    pod = node.start().pod()
    node.plugin.on_allocate = failing(grpc.StatusCode.INTERNAL, "no such thing")
    return pod, node.refused(pod, node.token())


def answer_too_large(node):
    """What is kept of all answers together would be beyond what may be."""
    node.start(devices=[f"g{n}" for n in range(100)])
    node.plugin.on_allocate = lambda request, _: allocate_answer(
        request, annotations={"note": "x" * (3 * MIB)})
    for n in range(1 + OPTIONS_BYTES_MAX // (3 * MIB)):
        pod = node.pod(f"web-{n}")
        try:
            node.client.create(pod, "main", annotations=node.token(f"g{n}"))
        except grpc.RpcError as error:
            return pod, error
    raise AssertionError("all were kept")


def rows_unread(node):
    pod = node.start().pod()
    node.shim.terminate()
    node.stack.enter_context(locked(node.shim))
    node.shim.spawn()
    wait_until(lambda: accepts(node.shim.socket) and accepts(node.shim.control), "it serves")
    node.client.reconnect()
    return pod, node.refused(pod, node.token())


def unstored(node):
    """The workers hang, so that no commit begins before the client's deadline."""
    pod = node.start().pod()
    node.stack.enter_context(contextlib.closing(HungWorkers(node.shim.pid)))
    request = node.client.create_request(pod, "main", annotations=node.token())
    with pytest.raises(grpc.RpcError) as caught:
        node.client.CreateContainer(request, timeout=3)
    return pod, caught.value


def store_failed(node):
    pod = node.start().pod()
    node.shim.wait_plugins_stored()  # nothing else is left to fail
    for name in ("checkpoint.db", "checkpoint.db-wal"):
        (node.shim.state_dir / name).unlink()
    return pod, node.refused(pod, node.token())


def no_pod_uid(node):
    pod = node.start().pod()
    pod.config.metadata.uid = pod.id = ""
    return pod, node.refused(pod, node.token())


def devices_cordoned(node):
    assert ctl(node.start().shim, "cordon", GPU, "g0").returncode == 0
    pod = node.pod()
    return pod, node.refused(pod, node.token("g0"))


def too_few_are_uncordoned(node):
    assert ctl(node.start().shim, "cordon", GPU, "g0").returncode == 0
    pod = node.pod(request=f"{GPU}=2")
    return pod, node.refused(pod)


def devices_tainted(node):
    assert ctl(node.start().shim, "taint", GPU, "g0", "example.com/broken:NoExecute").returncode == 0
    pod = node.pod()
    return pod, node.refused(pod, node.token("g0"))


def too_few_are_untainted(node):
    assert ctl(node.start().shim, "taint", GPU, "g0", "example.com/broken:NoSchedule").returncode == 0
    pod = node.pod(request=f"{GPU}=2")
    return pod, node.refused(pod)


def resource_withdrawn(node):
    assert ctl(node.start().shim, "withdraw", GPU).returncode == 0
    pod = node.pod()
    return pod, node.refused(pod, node.token("g0"))


def node_shuts_down(node):
    socket = node.directory / "agent.sock"
    node.start(cluster={"enabled": True, "socket": str(socket)}, shutdown={"grace": "30s"})
    pod = node.pod()
    wait_until(lambda: accepts(socket), "an agent may come")
    agent = node.closing(ScriptedAgent(socket))
    agent.start()
    agent.tell(known=True, under_way=True)
    return pod, node.refused(pod, node.token("g0"))


def pod_ended(node):
    node.start()
    pod = node.pod()
    assert ctl(node.shim, "end", pod.config.metadata.name).returncode == 0
    return pod, node.refused(pod, node.token("g0"))


def is_containerd(node, version):
    node.runtime.on("Version", lambda _call: Reply((cri.VersionResponse(
        runtime_name="containerd", runtime_version=version).SerializeToString(),)))


def cdi_not_read(node):
    is_containerd(node, "1.6.20")
    node.runtime.on("Status", lambda _call: Reply((cri.StatusResponse(
        info={"config": "{}"}).SerializeToString(),)))
    node.start(devices=())
    node.shim.wait_log("runtime: CDI devices in its containers: not supported")
    claims = node.claims("c-1")
    pod = node.pod()
    return pod, node.refused(pod, CDI_devices=claims["c-1"])


def cdi_unheard(node):
    """Behind its restart, of what a plugin gives that gives nothing else."""
    node.start()
    node.plugin.on_allocate = lambda _request, _context: deviceplugin.AllocateResponse(container_responses=[
        deviceplugin.ContainerAllocateResponse(cdi_devices=[deviceplugin.CDIDevice(name=f"{GPU}=g0")])])
    pod = node.pod()
    node.runtime.stop()
    is_containerd(node, "1.7.28")
    node.runtime.on("Status", lambda call: call.over.wait() and Reply())
    before = len(node.runtime.calls_of("Status"))
    node.runtime.start()
    wait_until(lambda: len(node.runtime.calls_of("Status")) > before, "it is asked")
    node.client.reconnect()
    return pod, node.refused(pod, node.token())


def claim_held(node):
    """In test_dra_create.py, too, with more of it."""
    server = node.closing(ApiServer(node.directory / "pki"))
    server.start()
    server.put("nodes", {"metadata": {"name": "node-1"}, "spec": {}, "status": {}})
    for uid in ("c-1", "c-2"):
        server.put("resourceclaims", {"metadata": {"name": f"claim-{uid}", "namespace": "default", "uid": uid}, "status": {
            "allocation": {"devices": {"results": [
                {"driver": DRIVER, "pool": "node-1", "device": "d-0", "request": "gpu"}]}}}})
        server.put("pods", {"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": {
            "nodeName": "node-1", "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{uid}"}]}, "status": {}})
    node.start(devices=(), cluster={"enabled": True, "socket": str(node.directory / "run" / "agent.sock")})
    node.closing(Agent(node.directory, server.kubeconfig(node.directory / "kubelet.conf", "node-1"))).start()
    node.shim.wait_log("cluster: agent")
    claims = node.claims("c-1", "c-2", device="d-0")
    node.client.run(node.pod("holder"), "main", CDI_devices=claims["c-1"])
    return refused_once_known(node.client, {"CDI_devices": claims["c-2"]})


# By its word; the scenarios have the names of their words.
ROWS = {scenario.__name__.replace("_", "-"): scenario for scenario in (
    request_unreadable, annotations_off, namespace_not_allowed, published, names_too_long, no_pod_uid,
    other_pods_sandbox, request_changed, token_gone, taken_over, too_many_creates, sandbox_stops,
    sandbox_removed, sandbox_not_ready, resource_unknown, plugin_away, devices_unhealthy, no_other_device,
    replacing,
    too_few_are_healthy, too_few_devices, holder_runs, holder_asked, holder_unknown, holder_created,
    unlisted, unlisted_again, call_queued, call_unanswered, call_failed, answer_too_large, rows_unread, unstored,
    store_failed, devices_cordoned, too_few_are_uncordoned, resource_withdrawn,
    devices_tainted, too_few_are_untainted, node_shuts_down, pod_ended, cdi_not_read, cdi_unheard, claim_held)}


def kinds():
    """{word: gRPC code} of the device manager's table."""
    text = (ROOT / "devicemgr/words/reason.c").read_text()
    return dict(re.findall(r'\[REASON_(?!NONE\b)\w+\] = \{"([a-z-]+)", CODE_(\w+),', text))


def test_every_kind_has_a_row():
    header = (ROOT / "devicemgr/words/reason.h").read_text()
    named = re.search(r"enum reason_kind \{(.*?)\};", header, re.DOTALL)[1]
    names = set(re.findall(r"^    REASON_(\w+),", named, re.MULTILINE)) - {"NONE", "KINDS"}
    assert {word.replace("-", "_").upper() for word in kinds()} == names
    assert set(ROWS) == set(kinds())


@pytest.mark.parametrize("word", ROWS)
def test_why(node, word):
    pod, error = ROWS[word](node)
    assert error.code().name == kinds()[word], error.details()
    (item,) = ctl_json(node.shim, "why", pod.config.metadata.name, "main")["items"]
    last = item["lastRefusal"]
    assert (last["reason"]["word"], last["code"]) == (word, error.code().name), error.details()
    assert last["reason"]["text"] in error.details()
