"""[[resource]] replace: a container that is made again gets another device when its own is lost."""

import json
import os
import shutil

import grpc
import kubelet_checkpoint
import pytest

from asking import by_annotation, by_token, envs, refused
from ctl import ctl, ctl_json
from feed import Feed
from kubelet_checkpoint import Entry
from metrics import scrape
from waiting import wait_until

GPU = "vendor.com/gpu"
AT_ONCE = {"name": GPU, "replace": True, "replace_after": "0s", "hold": "0s"}


def devices_of(runtime):
    """With which the container was made that was made last."""
    return envs(runtime.create_requests()[-1].config).get("PLUGIN_DEVICES")


def gone(client, container):
    client.StopContainer(container_id=container)
    client.RemoveContainer(container_id=container)


def made(client, pod):
    """The kubelet tries again until it is."""
    try:
        return client.run(pod, "main")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error.details()
        return None


@pytest.fixture
def shim(make_shim, directory):
    """It has the runtime's first list: with AT_ONCE nothing is waited for, that neither."""
    started = make_shim(resources=[AT_ONCE], metrics={"listen": str(directory / "metrics.sock")})
    started.wait_log("runtime listed")
    return started


@pytest.fixture
def client(shim, make_client):
    return make_client(shim)


@pytest.fixture
def gpu(shim, make_plugin):
    return make_plugin(shim, GPU, ["g0", "g1"])


def listed(shim):
    (item,) = ctl_json(shim, "allocations")["items"]
    return item["ids"], item["asked"]


def test_what_the_shim_chose(runtime, shim, client, gpu, directory):
    """A crash loop whose device goes from the list gets the other one, as long as its pod lives, and over a restart;
    without a free one it waits, and says so."""
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    container = client.run(pod, "main")
    assert devices_of(runtime) == "g0"
    gone(client, container)
    gpu.set_devices(["g1"])
    shim.wait_log("1 of 1 devices healthy")
    container = client.run(pod, "main")
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])
    assert "g1 (for g0)" in ctl(shim, "allocations").stdout
    (event,) = wait_until(lambda: [one for one in ctl_json(shim, "events")["items"] if one["kind"] == "replaced"], "the event")
    assert (event["ids"], event["text"], event["pod"]) == (["g1"], "in the place of g0", "web")
    shim.wait_log("has now device ids g1 in the place of g0, lost")
    assert scrape(directory / "metrics.sock")["replacements_total"].value() == 1
    gone(client, container)
    gpu.set_devices(["g0", "g1"])
    shim.terminate()
    shim.start()
    client.reconnect()
    shim.wait_log("is active: 2 of 2 devices healthy", 2)
    container = client.run(pod, "main")
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])
    gone(client, container)
    gpu.set_devices(["g2"])
    other = client.run_pod("other", annotations=by_annotation("main", f"{GPU}=1"))
    wait_until(lambda: [one["id"] for one in ctl_json(shim, "devices", GPU)["items"] if one["free"]] == ["g2"], "the list")
    client.run(other, "main")
    with refused(grpc.StatusCode.UNAVAILABLE, "not listed by the plugin: device ids g1", "no other is free"):
        client.create(pod, "main")
    (why,) = [one for one in ctl_json(shim, "why")["items"] if one["pod"] == "web"]
    assert why["lastRefusal"]["reason"]["word"] == "no-other-device"
    client.remove_pod(other.id)
    wait_until(lambda: made(client, pod), "it is known that its last container is gone")
    assert devices_of(runtime) == "g2" and listed(shim) == (["g2"], ["g0"])


# ---- what the kubelet chose: the test is the kubelet, and the bridge ----

class Kubelet:
    """Takes each list when it is told to, and writes its checkpoint; `given`: {(pod uid, container): ids}."""

    def __init__(self, shim, closing):
        self.directory = shim.kubelet_plugin_dir
        self.directory.mkdir(exist_ok=True)
        self.feed = closing(Feed(shim.feed))
        self.watcher = closing(self.feed.watch())
        self.given = {}

    def shown(self, health):
        """A list is sent in which these devices are so."""
        self.watcher.wait(lambda shown: GPU in shown and health.items() <= shown[GPU].health().items(), f"{health}")

    def writes(self, healthy):
        entries = [Entry(uid, container, GPU, {-1: ids}, b"") for (uid, container), ids in self.given.items()]
        kubelet_checkpoint.write(self.directory, kubelet_checkpoint.encode(entries, {GPU: healthy}))

    def takes(self):
        self.writes([one for one, is_healthy in self.watcher.shown[GPU].health().items() if is_healthy])
        self.feed.report(os.getpid(), self.watcher.shown, stored=True)

    def restarts(self):
        """Until the bridge registers the resource again it has no device of it; what it gave away it knows still."""
        self.feed.report(os.getpid() + 1, {})
        self.writes([])


@pytest.fixture
def told(make_shim, make_plugin, make_client, closing):
    """(shim, kubelet, client, plugin, pod): the pod's container was made with g0, and is gone; so is g0."""
    shim = make_shim(resources=[{**AT_ONCE, "hold": "40s"}])
    plugin = make_plugin(shim, GPU, ["g0", "g1", "g2"])
    kubelet, client = Kubelet(shim, closing), make_client(shim)
    pod = client.run_pod("web")
    kubelet.given[pod.uid, "main"] = ["g0"]
    kubelet.shown({"g0": True, "g1": True})
    kubelet.takes()
    gone(client, client.run(pod, "main", annotations=by_token(GPU, "g0")))
    plugin.set_devices(["g1"])
    kubelet.watcher.wait(lambda shown: shown[GPU].health() == {"g0": True, "g1": True}, "the list")  # g0: still the pod's
    return shim, kubelet, client, plugin, pod


def begin(client, pod, name="main", *ids):
    return client.begin("CreateContainer", client.create_request(pod, name, annotations=by_token(GPU, *(ids or ["g0"]))))


def test_what_the_kubelet_chose(runtime, told):
    """It is shown that the other one is taken, and gets rid of it; then the container has it, and says so itself: a
    daemon that has lost its state knows."""
    shim, kubelet, client, plugin, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    assert not call.done()
    kubelet.takes()
    container = call.result().container_id
    client.StartContainer(container_id=container)
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])
    (key,) = by_token(GPU)
    says = runtime.create_requests()[-1].config.annotations
    assert {one: json.loads(says[one])["ids"] for one in (key, f"asked.{key}")} == {key: ["g1"], f"asked.{key}": ["g0"]}
    shim.kill()
    shutil.rmtree(shim.state_dir)
    shim.start()
    client.reconnect()
    shim.wait_log("(1 of them rebuilt from containers)")
    plugin.stop()
    plugin.start()
    shim.wait_log("is active: 1 of 1 devices healthy")
    assert listed(shim) == (["g1"], ["g0"])
    with refused(grpc.StatusCode.UNAVAILABLE, "g1", "still runs"):
        client.create(client.run_pod("other"), "main", annotations=by_token(GPU, "g1"))


def test_what_it_gives_away_in_that_moment(runtime, told):
    """Is the other pod's; the next one that is free is shown as taken."""
    _, kubelet, client, plugin, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    other = client.run_pod("other")
    kubelet.given[other.uid, "main"] = ["g1"]
    kubelet.takes()
    plugin.set_devices(["g1", "g2"])
    kubelet.shown({"g2": False})
    assert not call.done()
    client.run(other, "main", annotations=by_token(GPU, "g1"))
    assert devices_of(runtime) == "g1"
    kubelet.takes()
    call.result()
    assert devices_of(runtime) == "g2"


def test_a_daemon_that_is_killed_while_the_kubelet_lets_go(runtime, told):
    """Begins anew: what was meant is anybody's again."""
    shim, kubelet, client, _, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    shim.kill()
    with pytest.raises(grpc.RpcError):
        call.result()
    shim.start()
    client.reconnect()
    kubelet.watcher.wait_over()
    kubelet.watcher = kubelet.feed.watch()
    kubelet.shown({"g1": True})
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    kubelet.takes()
    call.result()
    assert devices_of(runtime) == "g1"


def word(shim, pod):
    """Why its container waits, in one word."""
    reasons = [now["reason"]["word"] for one in ctl_json(shim, "why")["items"] if one["pod"] == pod for now in one["now"]]
    return reasons[0] if reasons else None


def test_books_that_cannot_be_read(runtime, told):
    """Are waited for, and that is said; once they can be, it goes on, and both ids are told."""
    shim, kubelet, client, _, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    kubelet_checkpoint.write(kubelet.directory, "{")
    kubelet.feed.report(os.getpid(), kubelet.watcher.shown, stored=True)
    wait_until(lambda: word(shim, "web") == "replacing", "why it waits")
    assert "once the kubelet gives them to nobody: g1" in ctl(shim, "why", "web").stdout
    assert not call.done()
    kubelet.takes()
    call.result()
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])
    assert "g1 (for g0)" in ctl(shim, "allocations").stdout
    (event,) = wait_until(lambda: [one for one in ctl_json(shim, "events")["items"] if one["kind"] == "replaced"], "the event")
    assert (event["ids"], event["text"], event["pod"]) == (["g1"], "in the place of g0", "web")


def test_a_kubelet_that_restarts_while_it_lets_go(runtime, told):
    """Has no device until it is shown the list, in which the other one is taken: that counts, and nothing before."""
    _, kubelet, client, _, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    kubelet.restarts()
    assert not call.done()
    kubelet.takes()
    call.result()
    assert devices_of(runtime) == "g1"


def test_a_plugin_that_restarts_while_the_kubelet_lets_go(runtime, told):
    """What is meant stays so; it is made once both are there."""
    shim, kubelet, client, plugin, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    kubelet.takes()
    assert not call.done()
    plugin.start()
    call.result()
    assert devices_of(runtime) == "g1"


def test_a_daemon_that_is_killed_once_it_is_replaced(runtime, told):
    """The next one knows of both, and gives the same again, also if the first is back."""
    shim, kubelet, client, plugin, pod = told
    call = begin(client, pod)
    kubelet.shown({"g1": False})
    kubelet.takes()
    gone(client, call.result().container_id)
    shim.kill()
    plugin.devices = {"g0": True, "g1": True}
    shim.start()
    client.reconnect()
    shim.wait_log("2 of 2 devices healthy")
    assert listed(shim) == (["g1"], ["g0"])
    begin(client, pod).result()
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])


def test_init_containers_and_two_at_a_time(runtime, told):
    """What an init container had goes on to the next one; of two lost devices both are replaced, what is there stays."""
    _, kubelet, client, plugin, pod = told
    call = begin(client, pod, "init")
    kubelet.shown({"g1": False})
    kubelet.takes()
    gone(client, call.result().container_id)
    kubelet.given[pod.uid, "init"] = ["g0"]
    call = begin(client, pod, "main")
    kubelet.takes()
    gone(client, call.result().container_id)
    assert devices_of(runtime) == "g1"
    plugin.set_devices(["g1", "g2", "g3", "g4"])
    two = client.run_pod("two")
    kubelet.given[two.uid, "main"] = ["g2", "g8", "g9"]
    kubelet.shown({"g2": True, "g3": True, "g4": True})
    kubelet.takes()
    kubelet.shown({"g8": True, "g9": True})  # to a kubelet that starts, they are the pod's
    call = begin(client, two, "main", "g2", "g8", "g9")
    kubelet.shown({"g3": False, "g4": False})
    kubelet.takes()
    call.result()
    assert devices_of(runtime) == "g2,g3,g4"
