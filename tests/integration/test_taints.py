"""Taints of devices: cri-device-shimctl taint, untaint and taints, [[taint]] in the settings, the word of a plugin,
and who is evicted for them, at a daemon that works."""

import json
import random

import grpc
import pytest

from asking import by_annotation, by_token, refused
from criclient import Client
from ctl import ctl, ctl_json
from protos import CONTROL, control, cri
from waiting import wait_until

GPU = "vendor.com/gpu"
BROKEN = "example.com/broken"
TOLERATIONS = "devices.cri-device-shim/tolerations"


def taints(shim, *which):
    return [(one["resource"], one["id"], one["key"], one["value"], one["effect"], one["source"], one["pods"])
            for one in ctl_json(shim, "taints", *which)["items"]]


def stopped(runtime):
    return [call.parsed().container_id for call in runtime.calls_of("StopContainer")]


@pytest.fixture
def web(at_work, client, make_plugin):
    """Pod "web", whose container "main" runs with g0; its id."""
    make_plugin(at_work, GPU, ["g0", "g1"])
    pod = client.run_pod("web")
    return pod, client.run(pod, "main", annotations=by_token(GPU, "g0"))


def test_a_taint_is_set_listed_and_taken_back(at_work, make_plugin):
    shim = at_work
    make_plugin(shim, GPU, ["g0", "g1"])
    told = ctl_json(shim, "taint", GPU, "g0", f"{BROKEN}=fan:NoSchedule", "--reason", "dust", "--for", "1h")
    assert told == {"resource": GPU, "text": f"{GPU}: tainted: g0 {BROKEN}=fan:NoSchedule for 1h0m"}
    ctl_json(shim, "taint", "gpu.example.com", "node/gpu-0", f"{BROKEN}:None")
    assert taints(shim) == [("gpu.example.com", "node/gpu-0", BROKEN, None, "None", "operator", 0),
                            (GPU, "g0", BROKEN, "fan", "NoSchedule", "operator", 0)]
    assert taints(shim, "gpu.example.com") == taints(shim)[:1]
    [one] = ctl_json(shim, "taints", GPU)["items"]
    assert (one["reason"], one["heldBack"], one["followed"]) == ("dust", False, True)
    assert 3500 < one["endsInSeconds"] <= 3600
    head, *rows = [line.split() for line in ctl(shim, "taints", GPU).stdout.splitlines()]
    assert head == ["RESOURCE", "ID", "TAINT", "EFFECT", "SOURCE", "SINCE", "ENDS", "PODS", "NOTE", "REASON"]
    assert [row[:5] + row[-1:] for row in rows] == [[GPU, "g0", f"{BROKEN}=fan", "NoSchedule", "operator", "dust"]]
    assert ctl(shim, "taints", GPU, "-o", "name").stdout == f"taint/{GPU}/g0/{BROKEN}/NoSchedule\n"
    [device] = [one for one in ctl_json(shim, "devices", GPU)["items"] if one["id"] == "g0"]
    assert device["free"] is False
    told = [(one["kind"], one["ids"], one["text"].partition(": ")[2])
            for one in ctl_json(shim, "events")["items"] if one["kind"].endswith("tainted")]
    assert told == [("tainted", ["g0"], f"{BROKEN}=fan:NoSchedule: dust"), ("tainted", ["node/gpu-0"], f"{BROKEN}:None")]
    shim.kill()
    shim.start()
    shim.wait_control()
    assert len(taints(shim)) == 2
    ctl_json(shim, "untaint", GPU, "g0", BROKEN)
    assert taints(shim, GPU) == []


@pytest.mark.parametrize("arguments, words", [
    ((GPU, "g0", "a b:NoExecute"), "a taint's key"),
    ((GPU, "g0", f"{BROKEN}:Never"), "the effect of a taint"),
    ((GPU, "g0", BROKEN), "a taint has an effect"),
    (("gpu.example.com", "gpu-0", f"{BROKEN}:None"), "POOL/DEVICE"),
    ((GPU, "g0", f"{BROKEN}:None", "--for", "soon"), "no duration"),
])
def test_what_is_no_taint(at_work, arguments, words):
    done = ctl(at_work, "taint", *arguments)
    assert done.returncode != 0 and words in done.stderr
    assert taints(at_work) == []


def test_nobody_new_is_given_what_is_tainted(at_work, client, make_plugin):
    shim = at_work
    make_plugin(shim, GPU, ["g0"])
    ctl_json(shim, "taint", GPU, "g0", f"{BROKEN}:NoSchedule")
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.UNAVAILABLE, f"device g0 is tainted {BROKEN}:NoSchedule"):
        client.create(pod, "main")
    tolerant = client.run_pod("tolerant", annotations={
        **by_annotation("main", f"{GPU}=1"), TOLERATIONS: json.dumps([{"key": BROKEN, "operator": "Exists"}])})
    client.run(tolerant, "main")


def test_who_has_it_is_stopped_and_kept_away_until_it_is_untainted(at_work, web, runtime, client):
    shim, (pod, container) = at_work, web
    dry = ctl_json(shim, "taint", GPU, "g0", f"{BROKEN}:NoExecute", "--dry-run")
    assert "nothing has changed" in dry["text"] and "default/web" in dry["text"]
    assert taints(shim) == [] and stopped(runtime) == []
    ctl_json(shim, "taint", GPU, "g0", f"{BROKEN}:NoExecute", "--reason", "smoke")
    runtime.wait_calls("StopContainer", 1)
    assert stopped(runtime) == [container]
    wait_until(lambda: [one["pod"] for one in ctl_json(shim, "events")["items"] if one["kind"] == "ended"] == ["web"],
               "it has ended")
    assert [(one["pod"], one["reason"]) for one in ctl_json(shim, "events")["items"] if one["kind"] == "ending"] == [
        ("web", "eviction")]
    with refused(grpc.StatusCode.FAILED_PRECONDITION, f"is tainted {BROKEN}:NoExecute: smoke"):
        client.create(pod, "main", attempt=1, annotations=by_token(GPU, "g0"))
    shim.kill()  # and is so over a restart
    shim.start()
    shim.wait_control()
    with refused(grpc.StatusCode.FAILED_PRECONDITION, f"is tainted {BROKEN}:NoExecute: smoke"):
        client.create(pod, "main", attempt=1, annotations=by_token(GPU, "g0"))
    assert taints(shim) == [(GPU, "g0", BROKEN, None, "NoExecute", "operator", 1)]
    ctl_json(shim, "untaint", GPU, "g0", BROKEN)

    def made():
        try:
            return client.run(pod, "main", attempt=1, annotations=by_token(GPU, "g0"))
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE), error
            return None

    wait_until(made, "it is made again")
    assert stopped(runtime) == [container]  # once


def test_who_tolerates_it_stays(at_work, runtime, client, make_plugin):
    make_plugin(at_work, GPU, ["g0", "g1"])
    always = json.dumps([{"key": BROKEN, "operator": "Exists", "effect": "NoExecute"}])
    stays = client.run_pod("stays", annotations={TOLERATIONS: always})
    client.run(stays, "main", annotations=by_token(GPU, "g0"))
    goes = client.run_pod("goes")
    gone = client.run(goes, "main", annotations=by_token(GPU, "g1"))
    for one in ("g0", "g1"):
        ctl_json(at_work, "taint", GPU, one, f"{BROKEN}:NoExecute")
    runtime.wait_calls("StopContainer", 1)
    assert stopped(runtime) == [gone]
    assert [one[-1] for one in taints(at_work)] == [0, 1]


class Toggling:
    """A pod whose container is made anew for as long as it does not run, as a kubelet would, and who taints its device."""

    def __init__(self, shim, runtime, client, closing):
        self.shim, self.runtime, self.client, self._closing = shim, runtime, client, closing
        self.pod, self.attempt, self.container, self.tainted = client.run_pod("web"), 0, None, False
        self.operator = closing(Client(shim.control))
        self.make()

    def make(self):
        """Whether it could be."""
        try:
            self.container = self.client.run(self.pod, "main", attempt=self.attempt, annotations=by_token(GPU, "g0"))
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE), error
            return False
        self.attempt += 1
        return True

    def runs(self):
        return self.runtime.state.containers[self.container].state == cri.CONTAINER_RUNNING

    def set(self, tainted):
        request = control.SteerRequest(what=control.SteerRequest.TAINT, resource=GPU, ids=["g0"], taint=f"{BROKEN}:NoExecute")
        if not tainted:
            request.what, request.taint = control.SteerRequest.UNTAINT, BROKEN
        if tainted or self.tainted:  # there is nothing to be taken back else
            self.operator.unary(CONTROL + "Steer", request.SerializeToString())
        self.tainted = tainted

    def restart(self):
        self.shim.kill()
        self.shim.start()
        self.shim.wait_control()
        self.client.reconnect()
        self.operator.reconnect()

    def check(self):
        """What was said last is so."""
        if self.tainted:
            wait_until(lambda: not self.runs(), "it has gone")
            assert not self.make()
        else:
            wait_until(lambda: self.runs() or self.make(), "it runs, or is made again")


def test_set_and_taken_back_a_thousand_times(make_shim, runtime, make_client, make_plugin, closing):
    """At random moments, with restarts among them: who has the device goes whenever it is tainted in the end, and is there
    whenever it is not; those who have another, or tolerate it, are never stopped."""
    shim = make_shim(plugins={"evict_per_minute": 0, "hold": "300ms"}, resources=[{"name": GPU, "exclusive": False}])
    shim.wait_control()
    client, chance = make_client(shim), random.Random("a thousand times")
    make_plugin(shim, GPU, ["g0", "g1"])
    stay = [client.run(client.run_pod("bystander"), "main", annotations=by_token(GPU, "g1")),
            client.run(client.run_pod("tolerant", annotations={TOLERATIONS: json.dumps([{"operator": "Exists"}])}),
                       "main", annotations=by_token(GPU, "g0"))]
    web = Toggling(shim, runtime, client, closing)
    for number in range(1, 1001):
        web.set(chance.random() < 0.5)
        if number % 100 == 0:
            web.restart()
        if chance.random() < 0.03:
            web.check()
    for tainted in (True, False):
        web.set(tainted)
        web.check()
    assert not set(stay) & set(stopped(runtime))


def test_who_is_to_go_is_listed(at_work, client, make_plugin):
    """Before he is asked to, and after; `why` says so, too."""
    make_plugin(at_work, GPU, ["g0", "g1"])
    later = json.dumps([{"key": BROKEN, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}])
    waits, goes = client.run_pod("waits", annotations={TOLERATIONS: later}), client.run_pod("goes")
    client.run(waits, "main", annotations=by_token(GPU, "g0"))
    client.run(goes, "main", annotations=by_token(GPU, "g1"))
    assert ctl_json(at_work, "endings") == {"items": []}
    assert ctl(at_work, "endings", "waits").returncode == 3
    for one in ("g0", "g1"):
        ctl_json(at_work, "taint", GPU, one, f"{BROKEN}:NoExecute", "--reason", "smoke")
    wait_until(lambda: [one["state"] for one in ctl_json(at_work, "endings", "goes")["items"]] == ["stopped"], "it is stopped")
    going, waiting = ctl_json(at_work, "endings", "-n", "default")["items"]
    assert (going["name"], going["uid"], going["dueInSeconds"]) == ("goes", goes.uid, None)
    why = f"is tainted {BROKEN}:NoExecute: smoke"
    assert going["asked"] == [{"by": "eviction", "reason": f"device g1 of {GPU} {why}", "graceSeconds": None, "here": False}]
    assert (waiting["name"], waiting["state"], waiting["since"]) == ("waits", "waits", None)
    assert 3500 < waiting["dueInSeconds"] <= 3600 and waiting["asked"][0]["reason"] == f"device g0 of {GPU} {why}"
    head, *rows = [line.split() for line in ctl(at_work, "endings").stdout.splitlines()]
    assert head == ["NAMESPACE", "NAME", "STATE", "BY", "SINCE", "DUE", "REASON"]
    assert [row[:4] for row in rows] == [["default", "goes", "stopped", "eviction"], ["default", "waits", "waits", "eviction"]]
    assert ctl(at_work, "endings", "-o", "name").stdout == "pod/default/goes\npod/default/waits\n"
    [told] = ctl_json(at_work, "why", "waits")["endings"]
    assert (told["uid"], told["state"]) == (waits.uid, "waits")
    words = ctl(at_work, "why", "waits").stdout
    assert "pod default/waits is to be evicted, in " in words and f"by eviction: device g0 of {GPU} {why}" in words
    assert "pod default/goes is ended for " in ctl(at_work, "why", "goes").stdout


def test_settings_taint_and_a_reload_takes_it_back(make_shim, runtime, make_plugin):
    shim = make_shim(taints=[{"resource": GPU, "key": BROKEN, "effect": "NoSchedule"}])
    shim.wait_control()
    make_plugin(shim, GPU, ["g0", "g1"])
    assert taints(shim) == [(GPU, None, BROKEN, None, "NoSchedule", "settings", 0)]
    shim.taints = []
    shim.config_path.write_text(shim.config_text())
    assert "[[taint]]" in ctl(shim, "reload").stdout
    assert taints(shim) == []


def test_an_unhealthy_device_moves_its_pods_on(make_shim, runtime, make_client, make_plugin):
    shim = make_shim(plugins={"taint_unhealthy_after": "100ms"})
    shim.wait_control()
    client, plugin = make_client(shim), make_plugin(shim, GPU, ["g0", "g1"])
    container = client.run(client.run_pod("web"), "main", annotations=by_token(GPU, "g0"))
    plugin.set_devices({"g0": False, "g1": True})
    runtime.wait_calls("StopContainer", 1)
    assert stopped(runtime) == [container]
    assert [one[:6] for one in taints(shim)] == [
        (GPU, "g0", "devices.cri-device-shim/unhealthy", None, "NoExecute", "health")]


def test_a_roll_out_empties_no_node(make_shim, runtime, make_client, make_plugin):
    """All devices of a plugin become unhealthy at once: one of four is given up, and that is said."""
    shim = make_shim(plugins={"taint_unhealthy_after": "100ms"})
    shim.wait_control()
    ids = [f"g{i}" for i in range(4)]
    client, plugin = make_client(shim), make_plugin(shim, GPU, ids)
    for one in ids:
        client.run(client.run_pod(f"web-{one}"), "main", annotations=by_token(GPU, one))
    plugin.set_devices({one: False for one in ids})
    shim.wait_log("4 of 4 devices are unhealthy for so long")
    runtime.wait_calls("StopContainer", 1)
    assert sorted(one[4] for one in taints(shim)) == ["NoExecute", "NoSchedule", "NoSchedule", "NoSchedule"]
    assert [one["heldBack"] for one in ctl_json(shim, "taints")["items"]].count(True) == 3
    assert "taints-held-back" in [one["kind"] for one in ctl_json(shim, "events")["items"]]
    assert len(stopped(runtime)) == 1


@pytest.mark.release
def test_a_hundred_thousand_devices_that_are_unhealthy(runtime, make_shim, make_plugin):
    """Each page is made of its own rows: all of them for each would take longer than who asks waits, and nothing
    else is done meanwhile, no call of the kubelet's either."""
    shim = make_shim(plugins={"taint_unhealthy_after": "1s"})
    shim.wait_control()
    ids = [f"GPU-{number:06d}-aaaaaaaaaaaaaaaaaaaa" for number in range(100_000)]
    plugin = make_plugin(shim, GPU, ids)
    plugin.set_devices(dict.fromkeys(ids, False))
    wait_until(lambda: "taints-held-back" in (one["kind"] for one in ctl_json(shim, "events")["items"]),
               "those that may be so are NoExecute")
    done = ctl(shim, "taints", "-o", "name")
    assert (done.returncode, done.stderr) == (0, "")
    effects = [line.rsplit("/", 1) for line in done.stdout.splitlines()]
    assert [one for one, _ in effects] == [f"taint/{GPU}/{one}/devices.cri-device-shim/unhealthy" for one in ids]
    assert [effect for _, effect in effects] == ["NoExecute"] * 25_000 + ["NoSchedule"] * 75_000
