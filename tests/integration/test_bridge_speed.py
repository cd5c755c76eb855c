"""What stands between a pod and its device, in time: the kubelet's own, and the shim's.

Beside each figure of the shim stands that of the scripted kubelet alone, from the same run.
"""

import socket
import subprocess
import threading
import time

import grpc
import pytest

import plugin as plugins
from asking import by_token, refused
from bridge_process import BINARY as BRIDGE
from kubelet import Kubelet, container
from kubelet_runtime import KubeletRuntime
from node import Node
from node_plugin import NodePlugin, container_path, env_of
from parts import KILL, TERM
from telling import spread, tell
from waiting import GENEROUS_S, wait_until

GPU, NIC, USB = "vendor.com/gpu", "other.com/nic", "direct.com/usb"
_STARTS = 20


@pytest.fixture
def make_node(directory, closing):
    def make(resources, start=True, **settings):
        node = closing(Node(directory / "n", resources, **settings))
        if start:
            node.start()
        return node

    return make


@pytest.fixture
def kubelet_alone(directory, closing):
    """A kubelet that has no shim in front, and its runtime."""
    (directory / "a").mkdir()
    runtime = closing(KubeletRuntime(directory / "a/r.sock"))
    runtime.start()
    kubelet = closing(Kubelet(directory / "a/k", runtime.path))
    kubelet.start()
    kubelet.wait_event("sources_ready")
    return kubelet


def restart(kubelet, meanwhile=lambda: None):
    """Killed and started again; when it was started."""
    kubelet.kill()
    meanwhile()
    began = time.monotonic()
    kubelet.start()
    return began


# ---- registration ----

class BarePlugin(plugins.Plugin):
    """As fast as a plugin can be: it connects until it may, and registers at once."""

    def connect_and_register(self, seconds=GENEROUS_S):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self.plugin_dir / "kubelet.sock"))
                except OSError:
                    time.sleep(0.0005)
                    continue
            self.register()
            return


@pytest.mark.alone
def test_registration_latency(request, make_node, make_plugin):
    """From the moment kubelet.sock has its name until the kubelet has stored the list, over many
    starts; a plugin that does nothing but wait for it is no faster by much."""
    node = make_node({GPU: ["gpu0", "gpu1"]})
    kubelet = node.kubelet
    (node.kubelet_dir / "bare").mkdir()
    bare = make_plugin(kubelet, USB, ["usb0"], start=False, endpoint="bare/usb.sock")
    bare.__class__ = BarePlugin
    bare.serve()
    latencies, connects, others = [], [], []
    for _ in range(_STARTS):
        began = restart(kubelet)
        thread = threading.Thread(target=bare.connect_and_register)
        thread.start()
        appeared = kubelet.wait_event("socket", since=began)["t"]
        for resource, found in ((GPU, latencies), (USB, others)):
            listed = kubelet.wait_event("list", since=began, resource=resource)["t"]
            found.append((listed - appeared) * 1000)
        connected = kubelet.wait_event("connected", since=began, pid=node.bridge.pid)["t"]
        connects.append((connected - appeared) * 1000)
        thread.join()
    tell(request, f"from kubelet.sock, which listens 0.5 ms later, to the bridge's connection: "
                  f"{spread(connects)}; to a stored list: {spread(latencies)}; "
                  f"a bare plugin's list: {spread(others)}")
    median, bare_median = (sorted(one)[_STARTS // 2] for one in (latencies, others))
    assert median < 5 * bare_median + 50


@pytest.mark.alone
def test_return_of_the_bridge(request, make_node, make_plugin):
    """From the start of a bridge that was killed until the kubelet has its list again, beside what
    is needed in any case: a process that starts, and a plugin that registers and is listed."""
    node = make_node({GPU: ["gpu0", "gpu1"]})
    kubelet = node.kubelet
    (node.kubelet_dir / "bare").mkdir()
    bare = make_plugin(kubelet, USB, ["usb0"], start=False, endpoint="bare/usb.sock")
    returns, registered, started = [], [], []
    for _ in range(_STARTS):
        began = time.monotonic()
        node.down("bridge")
        kubelet.wait_event("ended", since=began, resource=GPU)
        began = time.monotonic()
        node.up("bridge")
        listed = kubelet.wait_event("list", since=began, resource=GPU, healthy=["gpu0", "gpu1"])
        returns.append((listed["t"] - began) * 1000)
        bare.serve()
        began = time.monotonic()
        bare.register()
        listed = kubelet.wait_event("list", since=began, resource=USB)
        registered.append((listed["t"] - began) * 1000)
        bare.stop()
        kubelet.wait_event("ended", since=began, resource=USB)
        began = time.monotonic()
        subprocess.run([BRIDGE, "--version"], check=True, stdout=subprocess.DEVNULL)
        started.append((time.monotonic() - began) * 1000)
    tell(request, f"from a bridge's start to its stored list: {spread(returns)}; a process that "
                  f"says its version: {spread(started)}; a plugin's list: {spread(registered)}")
    median, *needed = (sorted(one)[_STARTS // 2] for one in (returns, started, registered))
    assert median < 5 * sum(needed) + 50


def lost_starts(node, count):
    """How many of `count` starts, with kubelet.sock coming just before the sync loop looks again,
    reject a pod that was there, and whose container must be made anew."""
    kubelet, lost = node.kubelet, 0
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    for _ in range(count):
        began = restart(kubelet, lambda: node.runtime.finish(pod.uid, "main", 1))
        kubelet.wait(lambda: pod.phase == "Failed" or kubelet.events_of("started", since=began),
                     "the pod runs, or is rejected")
        if pod.phase == "Failed":
            lost += 1
            kubelet.delete_pod(pod)
            kubelet.wait_gone(pod)
            kubelet.wait_event("list", since=began, resource=GPU)
            pod = kubelet.add_pod("web", {GPU: 1})
            kubelet.wait_phase(pod)
    return lost


_TIGHT = {"before_socket_s": 0.003, "loop_speed": 4}
_TIGHT_STARTS = 10


def test_race_with_admission(make_node):
    """The race that nobody wins by being fast: never lost with the gate. That it can be lost, and is
    without one, is seen in test_bridge_slower_than_admission."""
    node = make_node({GPU: ["gpu0", "gpu1"]}, kubelet=_TIGHT)
    assert lost_starts(node, _TIGHT_STARTS) == 0
    assert not node.violations


@pytest.mark.parametrize("gate", [True, False], ids=["gate", "no-gate"])
def test_bridge_slower_than_admission(make_node, gate):
    """The same race, lost for certain: the bridge is stopped while the kubelet starts. With the
    gate the kubelet waits for it."""
    node = make_node({GPU: ["gpu0", "gpu1"]}, bridge={"gate": gate, "gate_timeout": "60s"})
    kubelet = node.kubelet
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    node.bridge.pause()
    try:
        began = restart(kubelet, lambda: node.runtime.finish(pod.uid, "main", 1))
        kubelet.wait_event("socket", since=began)
        if gate:
            node.daemon.wait_log(f"(process {kubelet.pid}) has started: its first relist waits")
            assert not kubelet.events_of("open", since=began)
        else:
            kubelet.wait_phase(pod, phase="Failed")
    finally:
        node.bridge.resume()
    kubelet.wait_event("open", since=began)
    if gate:
        kubelet.wait_event("started", since=began, uid=pod.uid)
        assert not node.violations and pod.phase != "Failed"


# ---- slow and hung plugins ----

def run_ten(kubelet, resource):
    """How long ten pods need until they run."""
    began = time.monotonic()
    pods = [kubelet.add_pod(f"web{number}", {resource: 1}) for number in range(10)]
    kubelet.wait_phase(*pods)
    return time.monotonic() - began


def test_slow_allocate(request, make_node, kubelet_alone, closing):
    """Ten pods whose plugin takes a second for each Allocate: one after the other with the kubelet
    alone, all at once with a shim that may ask so."""
    ids = [f"gpu{number}" for number in range(10)]
    node = make_node({GPU: ids}, plugin={"delay_s": 1}, plugins={"allocates_at_once": 0})
    with_shim = run_ten(node.kubelet, GPU)
    directly = closing(NodePlugin(kubelet_alone.plugin_dir, GPU, ids, delay_s=1))
    directly.start()
    kubelet_alone.wait_event("list", resource=GPU)
    alone = run_ten(kubelet_alone, GPU)
    tell(request, f"ten pods, a second per Allocate: {with_shim:.1f} s; "
                  f"the kubelet alone: {alone:.1f} s")
    assert with_shim < alone / 3
    assert not node.violations and not node.check_running()


@pytest.fixture
def two_plugins(make_node):
    """A node whose first plugin can be told to stop itself."""
    def make(**settings):
        return make_node({GPU: ["gpu0", "gpu1"], NIC: ["nic0", "nic1"]}, **settings)

    return make


@pytest.mark.parametrize("stop_in", [None, "Allocate", "GetPreferredAllocation",
                                     "GetDevicePluginOptions", "ListAndWatch"])
def test_stopped_plugin(two_plugins, stop_in):
    """A plugin stopped by SIGSTOP, at any time or in the middle of a call: all other pods of the
    node start; its own wait, and run when it goes on."""
    node = two_plugins(plugin={"prefer": True})
    kubelet, plugin = node.kubelet, node.plugins[0]
    if stop_in is None:
        plugin.pause()
    else:
        node.down("plugin", which=0)
        plugin.settings["stop_in"] = stop_in
        active = node.daemon.log().count("is active")
        node.up("plugin")
        if stop_in in ("Allocate", "GetPreferredAllocation"):
            wait_until(lambda: node.daemon.log().count("is active") > active, "it is known again")
        else:
            wait_until(plugin.is_stopped, "the plugin is stopped")
    asking = kubelet.add_pod("asking", {GPU: 1})
    kubelet.wait_event("admitted", uid=asking.uid)
    kubelet.wait_phase(kubelet.add_pod("plain"), kubelet.add_pod("other", {NIC: 1}))
    assert asking.phase == "Pending"
    wait_until(plugin.is_stopped, "the plugin is stopped")
    kubelet.wait_phase(kubelet.add_pod("nic", {NIC: 1}))
    if stop_in == "GetPreferredAllocation":  # late, so that the next pod does not wait for it
        node.daemon.wait_log("it is not asked again for 30s")
    plugin.resume()
    kubelet.wait_phase(asking)
    assert not node.violations and not node.check_running()


# ---- beside the shim ----

def test_plugin_registered_directly(make_node, closing):
    """A plugin that registers with the kubelet itself keeps working with the shim in front: its
    containers pass as they are, also beside a resource of the shim's, also after restarts."""
    node = make_node({GPU: ["gpu0", "gpu1"]})
    kubelet = node.kubelet
    usb = closing(NodePlugin(node.kubelet_dir, USB, ["usb0", "usb1"],
                             log_path=node.directory / "usb.log"))
    usb.start()
    kubelet.wait_event("list", resource=USB)
    alone = kubelet.add_pod("alone", {USB: 1})
    both = kubelet.add_pod("both", {USB: 1, GPU: 1})
    kubelet.wait_phase(alone, both)

    def check():
        (request,) = node.runtime.running_in(alone.uid).values()
        (device,) = request.config.devices
        assert {one.key for one in request.config.envs} == {env_of(USB)}
        assert device.container_path in map(container_path, ("usb0", "usb1"))
        assert not any("cri-device-shim" in key for key in request.config.annotations)
        (request,) = node.runtime.running_in(both.uid).values()
        assert {one.key for one in request.config.envs} == {env_of(USB), env_of(GPU)}
        assert len(request.config.devices) == 2

    check()
    for part in ("daemon", "bridge", "kubelet"):
        began = time.monotonic()
        node.down(part)
        node.up(part)
        if part == "kubelet":
            kubelet.wait_event("list", since=began, resource=USB)
        for pod in (alone, both):
            node.runtime.finish(pod.uid, "main", 1)
        kubelet.wait(lambda began=began: len(kubelet.events_of("started", since=began)) == 2,
                     "both run again")
        check()
    assert not node.violations


def test_plugin_registered_directly_for_a_while(make_node, closing):
    """One that registers with the kubelet itself for a resource of the bridge's takes it over; when
    it has gone, and the kubelet's checkpoint says so, the bridge registers anew and pods run."""
    node = make_node({GPU: ["gpu0", "gpu1"]}, kubelet={"stop_grace_s": 1})
    kubelet = node.kubelet
    began = time.monotonic()
    moved = closing(NodePlugin(node.kubelet_dir, GPU, ["gpu0", "gpu1"],
                               log_path=node.directory / "moved.log"))
    moved.start()
    kubelet.wait_event("list", since=began, resource=GPU)
    pod = kubelet.add_pod("before", {GPU: 1})
    kubelet.wait_phase(pod)
    (request,) = node.runtime.running_in(pod.uid).values()
    assert not any("cri-device-shim" in key for key in request.config.annotations)
    assert "registered anew" not in node.daemon.log()

    moved.kill()
    gone = kubelet.wait_event("disconnected", since=began, resource=GPU)["t"]
    kubelet.wait_event("register", since=gone, resource=GPU)
    kubelet.wait_event("list", since=gone, resource=GPU, healthy=["gpu0", "gpu1"])
    assert "registered anew" in node.daemon.log()
    pod = kubelet.add_pod("after", {GPU: 1})
    kubelet.wait_phase(pod)
    (request,) = node.runtime.running_in(pod.uid).values()
    assert any("cri-device-shim" in key for key in request.config.annotations)
    assert len(kubelet.events_of("register", since=gone, resource=GPU)) == 1


# ---- tokens that cannot be had ----

def test_id_that_the_plugin_no_longer_has(make_node):
    """A pod's device vanishes from the plugin's list: its container, made anew, is refused with the
    id, and runs when it is back; the pod is never Failed."""
    node = make_node({GPU: ["gpu0"]})
    kubelet, plugin = node.kubelet, node.plugins[0]
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)

    def lists(ids):
        node.down("plugin", TERM)
        plugin.settings["devices"] = ids
        node.up("plugin")
        plugin.wait_line("ListAndWatch")

    lists(["gpu7"])
    node.daemon.wait_log("1 added, 1 removed")
    assert node.runtime.finish(pod.uid, "main", 1)
    kubelet.wait(lambda: pod.waiting, "the refusal")
    reason, message = pod.waiting["main"]
    assert reason == "CreateContainerError"
    for word in ("web", "main", GPU, "gpu0", "not listed by the plugin"):
        assert word in message
    assert pod.phase != "Failed"
    lists(["gpu0"])
    kubelet.wait_event("started", uid=pod.uid, attempt=1)


def test_id_that_another_container_holds(make_node):
    """A kubelet that has lost its checkpoint gives a held device to another pod: refused with the
    holder's name, until that is gone."""
    node = make_node({GPU: ["gpu0"]})
    kubelet = node.kubelet
    first = kubelet.add_pod("first", {GPU: 1})
    kubelet.wait_phase(first)
    began = restart(kubelet, (node.kubelet_dir / "kubelet_internal_checkpoint").unlink)
    kubelet.wait_event("list", since=began, resource=GPU)
    kubelet.wait_event("sources_ready", since=began)
    second = kubelet.add_pod("second", {GPU: 1})
    kubelet.wait(lambda: second.waiting, "the refusal")
    reason, message = second.waiting["main"]
    assert reason == "CreateContainerError"
    for word in ("second", "main", GPU, "gpu0", "held by", "first"):
        assert word in message
    kubelet.delete_pod(first)
    kubelet.wait_phase(second)
    assert not node.violations and not node.check_running()


def test_token_of_an_unknown_resource(make_node, make_client):
    """A token for a resource that no plugin ever had here: what is known is named."""
    node = make_node({GPU: ["gpu0"]})
    client = make_client(node.daemon)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "web", "app", "no.com/such", GPU):
        client.create(client.run_pod("web"), "app", annotations=by_token("no.com/such", "x0"))


@pytest.mark.parametrize("how", [KILL, TERM])
def test_kubelets_words_of_an_outage(make_node, how):
    """A pod that comes while its plugin is away is admitted, waits with a reason, and runs when the
    plugin is back."""
    node = make_node({GPU: ["gpu0"]})
    kubelet = node.kubelet
    node.down("plugin", how)
    pod = kubelet.add_pod("web", containers=[container("main", {GPU: 1})])
    kubelet.wait(lambda: pod.waiting, "the refusal")
    reason, message = pod.waiting["main"]
    assert reason == "CreateContainerError" and GPU in message and "gpu0" in message
    assert pod.phase == "Pending"
    node.up("plugin")
    kubelet.wait_phase(pod)
    assert not node.violations
