"""The agent between a scripted API server and a scripted daemon."""

import copy
import datetime
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

import grpc
import pytest

from agent_feed import AgentFeed
from agent_process import Agent
from api_server import ApiServer, Fault
from deaf_relay import DeafRelay
from process import MIB, Peak, is_sanitized, own_bytes, rss_bytes
from protos import agent as proto
from telling import tell
from waiting import wait_until

NODE = "node-1.example"
GPU = "vendor.com/gpu"
OTHER = "node-2"


def node(capacity=None, name=NODE):
    return {"metadata": {"name": name}, "spec": {},
            "status": {"capacity": {"cpu": "8", **(capacity or {})}}}


def pod(name, on=NODE, **more):
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **more.pop("metadata", {})},
            "spec": {"nodeName": on, **more.pop("spec", {})}, "status": {"phase": "Running", **more.pop("status", {})}}


def slice_of(name, driver="gpu.example", on=NODE):
    return {"metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {"nodeName": on, "driver": driver, "pool": {"name": on, "generation": 3},
                     "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}}


@pytest.fixture
def server(directory, closing):
    """One that gives lists; test_agent_streams.py has those that stream."""
    one = closing(ApiServer(directory / "pki", streaming=False))
    one.start()
    one.put("nodes", node({GPU: "2"}))
    one.put("nodes", node({GPU: "7"}, OTHER))
    return one


@pytest.fixture
def feed(directory, closing):
    one = closing(AgentFeed(directory / "run" / "agent.sock"))
    one.start()
    return one


@pytest.fixture
def make_agent(directory, closing, server, feed):
    def make(kubeconfig=None, wrapper=(), **settings):
        one = closing(Agent(directory, kubeconfig or server.kubeconfig(directory / "kubelet.conf", NODE), **settings))
        one.wrapper = wrapper
        one.start()
        return one

    return make


@pytest.fixture
def running(make_agent, server, feed):
    """One that watches all three kinds."""
    one = make_agent()
    for resource in ("nodes", "pods", "resourceslices"):
        server.wait_watched(resource)
    feed.wait_state(lambda state: sorted(state.complete) == [proto.NODE, proto.POD, proto.SLICE], "all is known")
    return one


def node_uid(server):
    return server.get("nodes", NODE)["metadata"]["uid"]


# ---- what it knows ----

def test_the_node_is_known_by_the_certificate(make_agent, server, feed):
    make_agent()
    told = feed.wait_fact(proto.NODE, node_uid(server))
    assert told.name == NODE
    wait_until(lambda: feed.state.node_name == NODE and feed.state.reached, "its state is told")
    uid = node_uid(server)
    server.remove("nodes", NODE)
    feed.wait_gone(proto.NODE, uid)


def test_pods_and_slices_of_this_node_alone(server, feed, make_agent):
    server.put("pods", pod("before", spec={
        "priority": 7, "terminationGracePeriodSeconds": 0,
        "resourceClaims": [{"name": "own", "resourceClaimName": "c1"}, {"name": "made", "resourceClaimTemplateName": "t"},
                           {"name": "more", "resourceClaimTemplateName": "t"}],
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "first"}, {"name": "no", "restartPolicy": "Never"},
                           {"name": "logs", "restartPolicy": "Always"}, {"restartPolicy": "Always"}]},
        status={"resourceClaimStatuses": [{"name": "more", "resourceClaimName": "before-more-y"},
                                          {"name": "made", "resourceClaimName": "before-made-x"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "before-extended-resources-z", "requestMappings": []}}))
    server.put("pods", pod("foreign", on=OTHER))
    server.put("resourceslices", slice_of("s1"))
    make_agent()
    told = feed.wait_fact(proto.POD, "uid-before")
    assert (told.namespace, told.name, told.priority, told.grace_seconds) == ("default", "before", 7, 0)
    assert [(one.pod_name, one.claim_name) for one in told.claims] == [
        ("own", "c1"), ("made", "before-made-x"), ("more", "before-more-y"), ("", "before-extended-resources-z")]
    assert list(told.sidecars) == ["proxy", "logs"]
    told = feed.wait_fact(proto.SLICE, "uid-s1")
    assert (told.driver, told.pool, told.generation, list(told.devices)) == ("gpu.example", NODE, 3, ["gpu-0", "gpu-1"])
    server.put("pods", pod("later"))
    feed.wait_fact(proto.POD, "uid-later", lambda one: one.grace_seconds == -1)
    server.put("pods", pod("later", spec={"terminationGracePeriodSeconds": 30}))
    feed.wait_fact(proto.POD, "uid-later", lambda one: one.grace_seconds == 30)
    server.remove("pods", "later", "default")
    feed.wait_gone(proto.POD, "uid-later")
    assert (proto.POD, "uid-foreign") not in feed.facts
    for one in server.asked():
        if one.path == "/apis/resource.k8s.io":  # what there is at all
            continue
        assert NODE in one.selector.values() or one.path == f"/api/v1/nodes/{NODE}", one


@pytest.mark.parametrize("said, apart", [
    ({}, True), ({"consumesCounters": []}, True), ({"consumesCounters": [{"counterSet": "gpu"}]}, False),
    ({"basic": {"consumesCounters": [{"counterSet": "gpu"}]}}, False)])
def test_devices_that_may_be_made_of_the_same(server, feed, make_agent, said, apart):
    """Those that draw on counters, in any version of the API."""
    one = slice_of("s1")
    one["spec"]["devices"][1].update(said)
    server.put("resourceslices", one)
    make_agent()
    assert feed.wait_fact(proto.SLICE, "uid-s1").apart == apart


def test_what_devices_draw_on_counters(server, feed, make_agent):
    """As a slice says it, in any version of the API; what is no quantity is left out."""
    one = slice_of("s1")
    draws = [{"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}, "engines": {"value": "1500m"}}},
             {"counterSet": "bus", "counters": {"lanes": {"value": "8"}, "odd": {"value": "0x1"}, "none": {}}}]
    one["spec"]["devices"][0]["basic"] = {"consumesCounters": draws[:1]}
    one["spec"]["devices"][1]["consumesCounters"] = draws
    one["spec"]["sharedCounters"] = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}, "engines": {"value": "3e0"}}}]
    server.put("resourceslices", one)
    make_agent()
    told = feed.wait_fact(proto.SLICE, "uid-s1")
    names = [counter.name for counter in told.counters]
    assert {counter.name: (counter.there, counter.thousandths) for counter in told.counters} == {
        "gpu/memory": (True, 80 * 2**30 * 1000), "gpu/engines": (True, 3000), "bus/lanes": (False, 0)}
    drawn = {told.devices[draw.device]: {names[at]: much for at, much in zip(draw.counters, draw.thousandths, strict=True)}
             for draw in told.draws}
    gpu = {"gpu/memory": 40 * 2**30 * 1000, "gpu/engines": 1500}
    assert drawn == {"gpu-0": gpu, "gpu-1": {**gpu, "bus/lanes": 8000}}


def test_counters_are_not_told_where_the_slice_would_be_too_large(server, feed, make_agent):
    """It is kept without them."""
    one = slice_of("s1")
    one["spec"]["sharedCounters"] = [{"name": f"set-{at}", "counters": {
        f"counter-{number}-{'x' * 50}": {"value": "1"} for number in range(32)}} for at in range(64)]
    server.put("resourceslices", one)
    make_agent()
    told = feed.wait_fact(proto.SLICE, "uid-s1")
    assert (list(told.devices), list(told.counters)) == (["gpu-0", "gpu-1"], [])


def test_pods_that_have_ended_take_no_room(server, feed, make_agent):
    """More than can be kept are there, before and behind one that runs, by what the server sorts them."""
    for number in range(1100):
        server.put("pods", pod(f"a{number}", status={"phase": "Succeeded"}))
    server.put("pods", pod("runs"))
    for number in range(1100):
        server.put("pods", pod(f"z{number}", status={"phase": "Failed"}))
    make_agent()
    feed.wait_fact(proto.POD, "uid-runs")
    feed.wait_state(lambda state: proto.POD in state.complete, "all pods are known")
    assert [key for key in feed.facts if key[0] == proto.POD] == [(proto.POD, "uid-runs")]
    server.put("pods", pod("runs", status={"phase": "Succeeded"}))
    feed.wait_gone(proto.POD, "uid-runs")


def test_what_anybody_writes_into_annotations_takes_no_room(server, feed, make_agent):
    for number in range(40):
        server.put("pods", pod(f"a{number}", metadata={"annotations": {"devices.cri-device-shim/main": "x" * 60_000}}))
    make_agent()
    feed.wait_state(lambda state: proto.POD in state.complete, "all pods are known")
    assert len([key for key in feed.facts if key[0] == proto.POD]) == 40


def test_one_that_grows_too_large_is_known_no_more(running, server, feed):
    """The daemon hears of it at once, and does not go on by what was so before."""
    server.put("resourceslices", slice_of("s1"))
    feed.wait_fact(proto.SLICE, "uid-s1")
    one = slice_of("s1")
    one["spec"]["devices"] = [
        {"name": f"gpu-{number}", "taints": [{"key": f"example.com/{'x' * 40}-{i}", "value": "y" * 63, "effect": "NoSchedule"}
                                             for i in range(16)]} for number in range(64)]
    server.put("resourceslices", one)
    feed.wait_gone(proto.SLICE, "uid-s1")
    server.put("resourceslices", slice_of("s1"))
    feed.wait_fact(proto.SLICE, "uid-s1")


def test_one_connection_for_all_of_it(running, server, feed):
    feed.order(wipe_slices=proto.WipeSlices(driver="x.example"))
    assert server.open == 1
    assert {one.connection for one in server.requests} == {server.requests[-1].connection}


def test_a_connection_that_is_to_be_left(running, server, feed):
    """What is watched goes on, and all else goes to another one at once."""
    server.go_away()
    assert feed.order(**set_capacity("vendor.com/none")).outcome == proto.DONE
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    assert server.connections == 2 and len(server.watches) == 3


def test_a_connection_that_is_dead_is_found_dead(running, server, feed):
    """Half a minute without a byte, and the kernel asks for a sign of life."""
    def row():
        feed.order(**set_capacity("vendor.com/none"))
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        (found,) = [one for one in rows if one[2].endswith(f":{server.port:04X}") and one[3] == "01"]
        return found[5].split(":")

    # proc_net_tcp.txt: the keepalive timer is 2, its time in ticks; whatever else runs is over soon.
    timer, when = wait_until(lambda: (now := row())[0] == "02" and now, "the keepalive's timer runs")
    assert int(when, 16) / os.sysconf("SC_CLK_TCK") <= 30


@pytest.fixture(name="relay")
def make_relay(directory, closing, server, make_agent):
    """A load balancer between an agent and the server, which watches all by now."""
    relay = closing(DeafRelay(server.port))
    relay.start()
    config = server.kubeconfig(directory / "kubelet.conf", NODE)
    text = json.loads(config.read_text())
    text["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
    config.write_text(json.dumps(text))
    make_agent(config)
    for resource in ("nodes", "pods", "resourceslices"):
        server.wait_watched(resource)
    return relay


def test_a_balancer_that_ends_what_is_idle_is_no_trouble(server, feed, relay):
    """Many do after less than the minute between two bookmarks. What is watched is gone on with soon, however often
    that is, and nobody hears that the API server is away."""
    feed.wait_state(lambda state: sorted(state.complete) == [proto.NODE, proto.POD, proto.SLICE], "all is known")
    paths = ("/api/v1/nodes", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceslices")
    before = len(feed.reports)
    for number in range(8):
        asked = {path: len(server.asked(path, watch=True)) for path in paths}
        server.bookmark()  # to all of them, so that none is short-lived; the pod comes behind that
        server.put("pods", pod(f"p{number}"))
        feed.wait_fact(proto.POD, f"uid-p{number}")
        relay.cut()
        for path in paths:
            server.wait_asked(path, watch=True, count=asked[path] + 1)
    for path in paths:
        at = [one.at for one in server.asked(path, watch=True)][1:]
        assert all(then - now > 0.9 for now, then in zip(at, at[1:])), "one a second"
    assert all(one.state.reached and not one.state.trouble for one in feed.reports[before:])


def test_a_connection_that_nobody_answers_on_is_left(server, feed, relay):
    """The load balancer lives, the server behind it does not, and nobody says so: when two requests have waited as long
    as they may, what comes next is asked elsewhere."""
    relay.turn_deaf()
    for outcome in (proto.AGAIN, proto.AGAIN, proto.DONE):
        assert feed.order(**set_capacity("vendor.com/none")).outcome == outcome
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")


def test_http_1_does_as_well(directory, closing, feed):
    """All that is watched leaves room for orders."""
    server = closing(ApiServer(directory / "pki", http2=False, streaming=False))
    server.start()
    server.put("nodes", node({GPU: "2"}))
    server.tokens = {"t": "system:serviceaccount:x:y"}
    feed.kinds = (proto.POD, proto.SLICE, proto.TAINT_RULE)
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", token="t"), node_name=NODE)).start()
    for resource in ("nodes", "pods", "resourceslices", "devicetaintrules"):
        server.wait_watched(resource)
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    assert feed.order(set_capacity=proto.SetCapacity(resource=GPU, quantity="0")).outcome == proto.DONE
    assert server.open <= 6


def test_pages(server, feed, make_agent):
    """The store gives pages; what comes between them is not lost."""
    for number in range(250):
        server.put("pods", pod(f"p{number}"))
    server.fault(Fault(status=504), path="/api/v1/pods", watch=False)  # of the cache
    make_agent()
    wait_until(lambda: len([key for key in feed.facts if key[0] == proto.POD]) == 250, "all pods are told")
    lists = [one for one in server.asked("/api/v1/pods", watch=False)][1:]
    assert [("continue" in one.query, one.query["limit"]) for one in lists] == [
        (False, "100"), (True, "100"), (True, "100")]
    assert "resourceVersion" not in lists[0].query


def test_what_went_while_there_was_no_daemon_takes_no_room(running, server, feed):
    """More pods than can be kept at once have come and gone by the time that there is one."""
    feed.stop()
    running.wait_log("feed: lost")
    churn = (json.dumps({"type": kind, "object": pod(f"gone-{i}", metadata={"resourceVersion": "1"})}) + "\n"
             for i in range(5000) for kind in ("ADDED", "DELETED"))
    server.send_raw("".join(churn).encode())
    server.put("pods", pod("stays"))
    server.put("resourceslices", slice_of("stays"))
    feed.start()
    feed.wait_fact(proto.POD, "uid-stays")
    feed.wait_fact(proto.SLICE, "uid-stays")


# ---- what goes wrong with lists and watches ----

# What the API server takes, and anybody who may make a pod may put into it.
STRANGE = {
    "zero": {"metadata": {"annotations": {"x": "a\0b"}}},
    "many values": {"spec": {"containers": [{"name": "c", "args": [""] * 200_000}]}},
    "large": {"spec": {"containers": [{"name": "c", "args": ["\1" * 1_400_000]}]}},
}


@pytest.mark.parametrize("streaming", [False, True], ids=["listed", "streamed"])
@pytest.mark.parametrize("what", list(STRANGE), ids=lambda one: one.replace(" ", "-"))
def test_a_strange_pod_hides_no_other(make_agent, server, feed, what, streaming):
    """It may not be known itself."""
    server.streaming = streaming
    server.put("pods", pod("a"))
    server.put("pods", pod("strange", **copy.deepcopy(STRANGE[what])))
    server.put("pods", pod("b"))
    one = make_agent()
    for name in ("a", "b"):
        feed.wait_fact(proto.POD, f"uid-{name}")
    feed.wait_state(lambda state: proto.POD in state.complete, "all pods are known")
    server.put("pods", pod("strange", status={"phase": "Failed"}, **copy.deepcopy(STRANGE[what])))
    server.put("pods", pod("c"))
    feed.wait_fact(proto.POD, "uid-c")
    server.remove("pods", "strange", "default")
    server.remove("pods", "b", "default")
    feed.wait_gone(proto.POD, "uid-b")
    assert (proto.POD, "uid-strange") not in feed.facts
    assert len(server.asked("/api/v1/pods")) == (1 if streaming else 3), "nothing was asked for again"
    if what != "zero":
        one.wait_log("/api/v1/pods: an object is too large to be looked into: it is left out")


def test_a_watch_that_ends_is_gone_on_with(running, server, feed):
    server.bookmark()
    server.end_watches()
    server.wait_asked("/api/v1/pods", watch=True, count=2)
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    assert len(server.asked("/api/v1/pods", watch=False)) == 1
    first, second = server.asked("/api/v1/pods", watch=True)[:2]
    assert 300 <= int(first.query["timeoutSeconds"]) < 600 and first.query["allowWatchBookmarks"] == "true"


def test_watches_that_end_behind_an_event_are_one_a_second(running, server, feed):
    """It is no trouble, and no storm on the API server either, however long that goes on."""
    event = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "1"}}}
    server.fault(Fault(body=json.dumps(event).encode() + b"\n"), path="/api/v1/pods", watch=True, times=None)
    before = len(feed.reports)
    server.bookmark()
    server.end_watches()
    at = [one.at for one in server.wait_asked("/api/v1/pods", watch=True, count=5)[1:]]
    assert all(then - now > 0.9 for now, then in zip(at, at[1:]))
    assert not any(one.state.trouble for one in feed.reports[before:])


@pytest.mark.parametrize("as_event", [False, True], ids=["status", "event"])
def test_what_is_too_old_is_listed_anew(running, server, feed, as_event):
    """What went meanwhile is no more, and what was known stays so until then."""
    for name in ("a", "b"):
        server.put("pods", pod(name))
        feed.wait_fact(proto.POD, f"uid-{name}")
    server.error_events = as_event
    server.fault(Fault(status=500), path="/api/v1/pods", watch=True)
    server.end_watches()
    server.wait_asked("/api/v1/pods", watch=True, count=2)
    server.remove("pods", "a", "default")
    server.compact()
    feed.wait_gone(proto.POD, "uid-a")
    assert (proto.POD, "uid-b") in feed.facts
    server.wait_watched("pods")
    server.put("pods", pod("c"))
    feed.wait_fact(proto.POD, "uid-c")
    assert not any(report.whole for report in feed.reports[1:])


HALF = b'{"type":"ADDED","object":{"metadata":{"name":"x"'
BAD_EVENTS = {
    "half": HALF, "no JSON": b"<html>\n", "an array": b'["a"]\n', "brackets": b'{"type":"ADDED"]\n',
    "no object": b'{"type":"ADDED"}\n', "no version": b'{"type":"ADDED","object":{"metadata":{}}}\n',
    "a strange type": b'{"type":"NEW","object":{"metadata":{"resourceVersion":"1"}}}\n',
    "nested": b'{"a":' * 100, "not UTF-8": b'{"type":"\xff\xfe"}\n',
    "an error": b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is away"}}\n'}


@pytest.mark.parametrize("bad", list(BAD_EVENTS), ids=lambda one: one.replace(" ", "-"))
def test_events_that_are_none(running, server, feed, bad):
    """The watch is begun again; nothing that is known goes."""
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    server.send_raw(BAD_EVENTS[bad])
    server.end_watches()
    for resource in ("nodes", "pods"):
        server.wait_asked(f"/api/v1/{resource}", watch=True, count=2)
    server.wait_watched("pods")
    server.put("pods", pod("b"))
    feed.wait_fact(proto.POD, "uid-b")
    assert (proto.POD, "uid-a") in feed.facts


@pytest.mark.parametrize("fault", [
    Fault(status=500), Fault(status=503), Fault(status=429, headers={"retry-after": "1"}), Fault(cut=40),
    Fault(cut=40, reset=True), Fault(body=b"[]"), Fault(body=b"{}"), Fault(body=b""), Fault(body=b"\0" * 100),
    Fault(body=b'{"metadata":{"resourceVersion":"1","continue":"%b"},"items":[]}' % (b"/" * 6000))],
    ids=["500", "503", "429", "cut", "reset", "an-array", "empty", "nothing", "zeros", "a-token-that-grows"])
def test_lists_that_fail_are_asked_for_again(make_agent, server, feed, fault):
    server.put("pods", pod("a"))
    server.fault(fault, path="/api/v1/pods", watch=False, times=1)
    make_agent()
    feed.wait_fact(proto.POD, "uid-a")
    assert len(server.asked("/api/v1/pods", watch=False)) == 2


def test_a_server_that_says_when_is_waited_for(make_agent, server, feed):
    server.fault(Fault(status=429, headers={"retry-after": "3"}), watch=False, times=4)  # each kind's first list
    begun = time.monotonic()
    make_agent()
    server.wait_asked("/api/v1/pods", watch=False, count=2)
    assert time.monotonic() - begun > 2.5
    feed.wait_state(lambda state: not state.trouble and state.reached, "all is well")


def test_what_is_refused_is_told(make_agent, server, feed):
    """Pods are for nobody, the rest works."""
    server.fault(Fault(status=403), path="/api/v1/pods", times=None)
    make_agent()
    feed.wait_fact(proto.NODE, node_uid(server))
    feed.wait_state(lambda state: "403" in state.trouble and state.reached, "it is refused")
    assert proto.POD not in feed.state.complete


@pytest.mark.parametrize("before", ["", "!"], ids=["even", "odd"])
def test_words_are_cut_between_characters(make_agent, server, feed, before):
    """A strict reader refuses a message for half of one."""
    server.fault(Fault(status=403, words=before + "\u00e9" * 1000), path="/api/v1/pods", times=None)
    make_agent()
    feed.wait_state(lambda state: state.trouble.endswith("\u00e9"), "it is refused")


def test_a_server_that_is_away(running, server, feed):
    """What is known stays; it is told, and ends."""
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    server.stop()
    feed.wait_state(lambda state: not state.reached and state.trouble, "the server is away")
    server.put("pods", pod("b"))
    server.start()
    feed.wait_fact(proto.POD, "uid-b")
    feed.wait_state(lambda state: state.reached and not state.trouble, "it is back")
    assert (proto.POD, "uid-a") in feed.facts


def test_names_that_nobody_answers_hold_nothing_up(directory, make_agent, server, feed):
    """The name server is silent, for a quarter of an hour: each request has an end, and nothing else waits for it, nor
    does who stops the agent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((f"127.{os.getpid() >> 16 & 63 | 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}", 53))
        resolver = directory / "resolv.conf"
        resolver.write_text(f"nameserver {silent.getsockname()[0]}\noptions timeout:30 attempts:5\n" * 3)
        text = server.config({"token": "t"})
        text["clusters"][0]["cluster"]["server"] = f"https://api.cluster.example:{server.port}"
        config = directory / "named.conf"
        config.write_text(json.dumps(text))
        one = make_agent(config, ("unshare", "--mount", "sh", "-c",
                                  f'mount --bind {resolver} /etc/resolv.conf && exec "$@"', "sh"), node_name=NODE)
        feed.wait_state(lambda state: "timed out" in state.trouble and not state.reached, "there is no answer")
        feed.stop()
        feed.start()
        wait_until(lambda: feed.watches == 2, "a new daemon is found")
        one.terminate()


@pytest.mark.release
@pytest.mark.parametrize("watch", [False, True], ids=["list", "watch"])
def test_answers_without_end_take_no_memory(small_quarantine, running, server, feed, watch):
    """100 MB and more of one object: it is cut off at 4 MiB."""
    fault = server.fault(Fault(endless=True), path="/api/v1/pods", watch=watch, times=3)
    peak = Peak(running.pid)
    if not watch:
        server.compact()
    server.end_watches()
    server.wait_asked("/api/v1/pods", watch=watch, count=3)
    server.put("pods", pod("a"))
    server.mend()
    feed.wait_fact(proto.POD, "uid-a")
    assert peak.growth() < (40 if is_sanitized(running.pid) else 16) * MIB
    assert fault.sent < 100 * MIB


MANY = b"[" + b",".join([b"{}"] * 1_000_000) + b"]"


@pytest.mark.release
@pytest.mark.parametrize("what", ["event", "answer"])
def test_objects_of_many_values_take_no_memory(small_quarantine, running, server, feed, what):
    """Each value is small as text, and some hundred bytes once it is read."""
    peak = Peak(running.pid)
    if what == "event":
        server.send_raw(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"},"x":%s}}\n' % MANY)
        running.wait_log("/api/v1/pods: an object is too large")
    else:
        server.fault(Fault(body=b'{"status":{},"x":%s}' % MANY), path=f"/api/v1/nodes/{NODE}", times=1)
        assert feed.order(**set_capacity()).outcome == proto.AGAIN
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    assert peak.growth() < (60 if is_sanitized(running.pid) else 20) * MIB


@pytest.mark.alone
@pytest.mark.release
def test_memory_at_rest(monkeypatch, make_agent, server, feed, request):
    """With what its unit says. Two thirds of it are clean pages of its libraries."""
    monkeypatch.setenv("GNUTLS_NO_IMPLICIT_INIT", "1")
    running = make_agent()
    for number in range(250):
        server.put("pods", pod(f"p{number}", spec={"containers": [
            {"name": f"c{i}", "image": "example.com/" + "x" * 60, "env": [
                {"name": f"E{k}", "value": "v" * 40} for k in range(30)]} for i in range(3)]}))
    for resource in ("nodes", "pods", "resourceslices"):
        server.wait_watched(resource)
    server.compact()
    server.end_watches()
    server.wait_asked("/api/v1/pods", watch=False, count=2)
    server.wait_watched("pods")
    wait_until(lambda: len([key for key in feed.facts if key[0] == proto.POD]) == 250, "all pods are told")
    assert "libsystemd" not in pathlib.Path(f"/proc/{running.pid}/maps").read_text(), "no shutdown is to be delayed"
    rss, own = rss_bytes(running.pid), own_bytes(running.pid)
    tell(request, f"the agent with 250 pods: {rss / MIB:.1f} MiB, of which {own / MIB:.1f} are its own")
    if not is_sanitized(running.pid):
        assert own <= 4 * MIB
        assert rss <= 12 * MIB


# ---- orders ----

def set_capacity(resource=GPU, quantity="0"):
    return {"set_capacity": proto.SetCapacity(resource=resource, quantity=quantity)}


def capacity(server, resource=GPU):
    return server.get("nodes", NODE)["status"]["capacity"].get(resource)


def test_capacity_is_set(running, server, feed):
    number = feed.begin(**set_capacity())
    assert feed.wait_answer(number).outcome == proto.DONE
    assert capacity(server) == "0"
    (patch,) = server.asked("/api/v1/nodes", method="PATCH")
    assert patch.path == f"/api/v1/nodes/{NODE}/status"
    assert patch.json() == [{"op": "test", "path": "/status/capacity/vendor.com~1gpu", "value": "2"},
                            {"op": "replace", "path": "/status/capacity/vendor.com~1gpu", "value": "0"}]
    # An answer that was lost is asked for again: nothing is done twice.
    server.put("nodes", node({GPU: "5"}))
    feed.begin(number, **set_capacity())
    assert feed.wait_answer(number, 2).outcome == proto.DONE
    assert capacity(server) == "5"


def test_capacity_that_is_not_there_is_left_alone(running, server, feed):
    assert feed.order(**set_capacity("vendor.com/other")).outcome == proto.DONE
    assert server.asked(method="PATCH") == []
    assert capacity(server, "vendor.com/other") is None


def test_capacity_that_somebody_changes_meanwhile(running, server, feed):
    server.fault(Fault(status=422), method="PATCH", times=1)
    number = feed.begin(**set_capacity())
    assert feed.wait_answer(number).outcome == proto.AGAIN
    feed.begin(number, **set_capacity())
    assert feed.wait_answer(number, 2).outcome == proto.DONE


@pytest.mark.parametrize("fault, outcome", [
    (Fault(status=403), proto.REFUSED), (Fault(status=403, words="!" * 1_000_000), proto.REFUSED), (Fault(status=500), proto.AGAIN), (Fault(cut=10), proto.AGAIN),
    (Fault(body=b"[]"), proto.AGAIN), (Fault(endless=True), proto.AGAIN)],
    ids=["403", "wordy", "500", "cut", "an-array", "endless"])
def test_orders_that_fail(running, server, feed, fault, outcome):
    server.fault(fault, path=f"/api/v1/nodes/{NODE}", times=1)
    answer = feed.order(**set_capacity())
    assert (answer.outcome, bool(answer.message)) == (outcome, True)


@pytest.mark.parametrize("status", [500, 504])
def test_a_server_that_fails_at_one_thing_is_there(running, server, feed, status):
    """A webhook that is away, or an eviction that several budgets forbid: it says 500, or 504 where webhooks hang; and watches
    have no byte to show for a minute. Were it taken to be away, drivers would be left to the kubelet."""
    server.fault(Fault(status=status), method="POST", times=1)
    before = len(feed.reports)
    assert feed.order(**tell_of()).outcome == proto.AGAIN
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    assert all(one.state.reached and not one.state.trouble for one in feed.reports[before:])


def test_what_is_written_may_wait_for_webhooks(running, server, feed):
    """One may take half a minute, which the server waits for."""
    server.fault(Fault(late_s=32), method="PATCH")
    assert feed.order(**set_capacity()).outcome == proto.DONE
    assert capacity(server) == "0"


def test_the_servers_word_is_passed_on(running, server, feed):
    server.fault(Fault(status=429, headers={"retry-after": "17"}), method="DELETE", times=1)
    answer = feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example"))
    assert (answer.outcome, answer.retry_after_ms) == (proto.AGAIN, 17000)


def test_slices_are_wiped(running, server, feed):
    server.put("resourceslices", slice_of("a"))
    server.put("resourceslices", slice_of("b", driver="nic.example"))
    server.put("resourceslices", slice_of("c", on=OTHER))
    assert feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example")).outcome == proto.DONE
    assert [name for _, name in server.objects["resourceslices"]] == ["b", "c"]
    assert feed.order(wipe_slices=proto.WipeSlices()).outcome == proto.DONE
    assert [name for _, name in server.objects["resourceslices"]] == ["c"]
    assert [one.query["fieldSelector"] for one in server.asked(method="DELETE")] == [
        f"spec.driver=gpu.example,spec.nodeName={NODE}", f"spec.nodeName={NODE}"]


def test_a_server_without_slices_has_none(running, server, feed):
    for version in [one for one in server.served if "/" in one]:
        del server.served[version]
    # Of each version it finds out by asking, here or in a watch; then it asks what there is at all.
    wait_until(lambda: feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example")).outcome == proto.DONE,
               "there are none")
    assert all(one.outcome == proto.AGAIN for one in feed.answers[:-1])
    assert server.asked("/apis")[-1].path == "/apis"


def test_a_driver_that_would_select_more_is_none(running, server, feed):
    answer = feed.order(wipe_slices=proto.WipeSlices(driver=f"x,spec.nodeName={OTHER}"))
    assert answer.outcome == proto.REFUSED
    assert server.asked(method="DELETE") == []


def test_claims(running, server, feed):
    server.put("resourceclaims", {
        "metadata": {"name": "c1", "namespace": "default", "uid": "u1"}, "spec": {},
        "status": {"allocation": {"devices": {"results": [
            {"request": "r", "driver": "gpu.example", "pool": NODE, "device": "gpu-0", "adminAccess": True}]}}}})

    def ask(uid="u1", name="c1"):
        return feed.order(get_claim=proto.GetClaim(namespace="default", name=name, uid=uid))

    assert ask().outcome == proto.REFUSED  # no pod of this node names it
    server.put("pods", pod("a", spec={"resourceClaims": [{"name": "x", "resourceClaimName": "c1"},
                                                         {"name": "y", "resourceClaimName": "c2"}]}))
    answer = ask()
    assert (answer.outcome, answer.claim.uid, answer.claim.allocated) == (proto.DONE, "u1", True)
    assert [(one.request, one.driver, one.pool, one.device, one.admin_access) for one in answer.claim.devices] == [
        ("r", "gpu.example", NODE, "gpu-0", True)]
    assert ask(uid="u2").outcome == proto.REFUSED
    assert ask(name="c2").outcome == proto.REFUSED


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("what", list(STRANGE), ids=lambda one: one.replace(" ", "-"))
def test_a_strange_pod_is_evicted(running, server, feed, what, forced):
    server.put("pods", pod("strange", **copy.deepcopy(STRANGE[what])))
    answer = feed.order(evict_pod=proto.EvictPod(namespace="default", name="strange", uid="uid-strange", forced=forced,
                                                 grace_seconds=30, why="it is to go"))
    assert (answer.outcome, answer.evicted) == (proto.DONE, proto.DELETED)
    assert "deletionTimestamp" in server.get("pods", "strange", "default")["metadata"]


def tell_of(message="refused", name="a", **more):
    return {"tell": proto.Tell(**{"namespace": "default", "name": name, "uid": f"uid-{name}", "reason": "DeviceAway",
                                  "message": message, "warning": True, **more})}


def events(server):
    return list(server.objects["events"].values())


def test_events(running, server, feed):
    """What is told again is counted; one that the server has forgotten is made anew."""
    assert feed.order(**tell_of()).outcome == proto.DONE
    (one,) = events(server)
    assert one["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "a",
                                     "uid": "uid-a"}
    assert (one["reason"], one["message"], one["type"], one["count"]) == ("DeviceAway", "refused", "Warning", 1)
    assert one["source"] == {"component": "cri-device-shim", "host": NODE}
    assert one["metadata"]["namespace"] == "default" and one["metadata"]["name"].startswith("a.")
    assert feed.order(**tell_of("refused still")).outcome == proto.DONE
    assert [(one["count"], one["message"]) for one in events(server)] == [(2, "refused still")]
    assert feed.order(**tell_of(series="main")).outcome == proto.DONE
    assert [one["count"] for one in events(server)] == [2, 1]
    for one in events(server):
        server.remove("events", one["metadata"]["name"], "default")
    assert feed.order(**tell_of()).outcome == proto.DONE
    assert [one["count"] for one in events(server)] == [1]
    assert feed.order(**tell_of(namespace="", name="", uid="", warning=False)).outcome == proto.DONE
    one = events(server)[-1]
    assert (one["involvedObject"]["kind"], one["involvedObject"]["name"], one["type"]) == ("Node", NODE, "Normal")


def test_events_on_a_pod_whose_name_is_as_long_as_it_may_be(running, server, feed):
    """An Event's name may not be longer (pkg/apis/core/validation/validation.go)."""
    name = "a.b-" * 63 + "z"
    assert feed.order(**tell_of(name=name)).outcome == proto.DONE
    assert feed.order(**tell_of(name="b" * 236)).outcome == proto.DONE
    long, short = [one["metadata"]["name"] for one in events(server)]
    assert len(long) <= 253 and re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", long)
    assert short.startswith("b" * 236 + ".") and len(short) <= 253
    assert events(server)[0]["involvedObject"]["name"] == name


def test_an_event_that_was_not_counted_is_counted_once(running, server, feed):
    assert feed.order(**tell_of()).outcome == proto.DONE
    server.fault(Fault(status=500), method="PATCH", times=2)
    number = feed.begin(**tell_of())
    for tries in (1, 2):
        assert feed.wait_answer(number, tries).outcome == proto.AGAIN
        feed.begin(number, **tell_of())
    assert feed.wait_answer(number, 3).outcome == proto.DONE
    assert [one["count"] for one in events(server)] == [2]


def test_one_object_has_so_many_events(running, server, feed):
    for number in range(30):
        assert feed.order(**tell_of(series=f"number {number}")).outcome == proto.DONE
    assert len(events(server)) == 25
    assert feed.order(**tell_of(name="b")).outcome == proto.DONE
    assert len(events(server)) == 26


def test_what_is_cancelled_is_not_answered(running, server, feed):
    server.fault(Fault(silence=True), method="DELETE", times=1)
    number = feed.begin(wipe_slices=proto.WipeSlices(driver="gpu.example"))
    server.wait_asked(method="DELETE")
    feed.send(cancelled=[number])
    assert feed.order(**set_capacity()).outcome == proto.DONE
    # The same order may come again, and is begun anew.
    feed.begin(number, wipe_slices=proto.WipeSlices(driver="gpu.example"))
    assert feed.wait_answer(number).outcome == proto.DONE
    assert len(feed.answers_to(number)) == 1


def test_more_orders_than_are_begun_at_once(running, server, feed):
    """None is left out, and the server has 64 of them at once; one that is cancelled makes room for another. They
    are more than a connection has calls at once, and their answers wait for a daemon that is slow to take them."""
    server.fault(Fault(silence=True), method="DELETE", times=64)
    silent = [feed.begin(wipe_slices=proto.WipeSlices(driver="gpu.example")) for _ in range(64)]
    server.wait_asked(method="DELETE", count=64)
    number = feed.begin(**tell_of())
    feed.send(cancelled=silent[:1])
    assert feed.wait_answer(number).outcome == proto.DONE
    feed.send(cancelled=silent[1:])
    feed.takes_answers.clear()
    feed.send(orders=[proto.Order(id=1000 + number, **tell_of(name=f"p{number}")) for number in range(1100)])
    wait_until(lambda: len(events(server)) == 1101, "all are done")
    feed.takes_answers.set()
    wait_until(lambda: len({one.id for one in feed.answers}) == 1101, "all are answered")


def test_an_order_that_nobody_knows(running, feed):
    assert feed.order().outcome == proto.REFUSED


# ---- the daemon ----

def test_a_new_daemon_is_told_all(running, server, feed):
    server.put("pods", pod("a"))
    feed.wait_fact(proto.POD, "uid-a")
    feed.stop()
    server.remove("pods", "a", "default")
    server.put("pods", pod("b"))
    feed.facts = {}
    feed.reports.clear()
    feed.start()
    feed.wait_fact(proto.POD, "uid-b")
    feed.wait_gone(proto.POD, "uid-a")
    assert feed.reports[0].whole
    assert len(server.asked("/api/v1/pods", watch=False)) == 1


def test_what_a_lost_daemon_has_ordered_is_not_begun(running, server, feed):
    """The next one orders again what it wants: an eviction for a taint that was taken back meanwhile is none of that."""
    for name in ("a", "b"):
        server.put("pods", pod(name))
    server.fault(Fault(silence=True), path=f"/api/v1/nodes/{NODE}", times=None)
    feed.send(orders=[*(proto.Order(id=1000 + number, **set_capacity()) for number in range(64)),
                      proto.Order(id=2000, evict_pod=proto.EvictPod(namespace="default", name="a", uid="uid-a", why="it was to go"))])
    server.wait_asked(f"/api/v1/nodes/{NODE}", count=64)
    feed.stop()
    running.wait_log("feed: lost")
    feed.start()
    feed.wait_watched(2)
    feed.send(cancelled=range(1000, 1064))  # sooner than their time is over
    answer = feed.order(evict_pod=proto.EvictPod(namespace="default", name="b", uid="uid-b", why="it is to go"))
    assert (answer.outcome, [one.path for one in server.asked(method="POST")]) == (
        proto.DONE, ["/api/v1/namespaces/default/pods/b/eviction"])


def test_an_event_that_is_told_outlives_its_daemon(running, server, feed):
    """No next one orders it again; of one that does it is under way, and not begun twice."""
    server.fault(Fault(silence=True), method="POST")
    number = feed.begin(**tell_of())
    server.wait_asked(method="POST")
    feed.stop()
    running.wait_log("feed: lost")
    feed.start()
    feed.wait_watched(2)
    feed.begin(number, **tell_of())
    assert feed.wait_answer(number).outcome == proto.AGAIN  # its own time was over
    assert len(server.asked(method="POST")) == 1
    assert feed.order(**tell_of()).outcome == proto.DONE


def test_a_report_that_is_not_taken_is_told_again(running, server, feed):
    feed.report_fails = (grpc.StatusCode.INTERNAL, "no")
    server.put("pods", pod("a"))
    running.wait_log("Report: INTERNAL")
    feed.report_fails = None
    feed.wait_fact(proto.POD, "uid-a")
    assert feed.reports[-1].whole


# ---- credentials ----

def files_of(directory, server, name=NODE):
    """A kubeconfig as kubeadm's: with files, that are links as the kubelet's."""
    server.kubeconfig(directory / "unused.conf", name)
    certificate, key = server.authority.pair(f"node-{name}")
    pem = directory / "kubelet-client-1.pem"
    pem.write_bytes(certificate.read_bytes() + key.read_bytes())
    (directory / "current.pem").symlink_to(pem.name)
    shutil.copy(server.authority.certificate, directory / "ca.crt")
    config = server.config({"client-certificate": "current.pem", "client-key": "current.pem"},
                           **{"certificate-authority-data": None, "certificate-authority": "ca.crt"})
    path = directory / "kubelet.conf"
    path.write_text(json.dumps(config))
    return path


def test_certificates_are_read_again_when_they_rotate(directory, make_agent, server, feed):
    one = make_agent(files_of(directory, server))
    feed.wait_fact(proto.NODE, node_uid(server))
    first = server.requests[-1].connection
    server.authority.sign("next", f"system:node:{NODE}", group="system:nodes")
    certificate, key = server.authority.pair("next")
    new = directory / "kubelet-client-2.pem"
    new.write_bytes(certificate.read_bytes() + b"")  # half of it: the old one counts on
    link = directory / "current.new"
    link.symlink_to(new.name)
    link.replace(directory / "current.pem")
    assert feed.order(**set_capacity("vendor.com/none")).outcome == proto.DONE
    assert server.requests[-1].connection == first
    one.wait_log("not taken over")
    new.write_bytes(certificate.read_bytes() + key.read_bytes())
    assert feed.order(**set_capacity("vendor.com/none")).outcome == proto.DONE
    assert server.requests[-1].connection != first
    assert server.requests[-1].user == f"system:node:{NODE}"


def test_tokens_are_read_again(directory, make_agent, server, feed):
    token = directory / "token"
    token.write_text("one\n")
    server.tokens = {"one": "system:serviceaccount:kube-system:shim"}
    config = directory / "account.conf"
    config.write_text(json.dumps(server.config({"tokenFile": str(token), "token": "unused"})))
    make_agent(config, node_name=NODE)
    feed.wait_fact(proto.NODE, node_uid(server))
    server.tokens = {"two": "system:serviceaccount:kube-system:shim"}
    answer = feed.order(**set_capacity())
    assert (answer.outcome, "401" in answer.message) == (proto.AGAIN, True)
    token.write_text("two\n")
    assert feed.order(**set_capacity()).outcome == proto.DONE
    assert capacity(server) == "0"


def plugin_config(directory, server, script, **exec_more):
    program = directory / "plugin.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    config = directory / "exec.conf"
    config.write_text(json.dumps(server.config({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh", "args": ["first"],
        "env": [{"name": "MARK", "value": "m"}], "interactiveMode": "Never", **exec_more}})))
    return config


CREDENTIAL = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
TWO_LINES = CREDENTIAL % r"a\n"


def test_a_credential_plugin(directory, make_agent, server, feed):
    """It is asked again when its token is refused."""
    server.tokens = {"t1": "system:serviceaccount:x:y"}
    (directory / "now").write_text(CREDENTIAL % "t1")
    config = plugin_config(directory, server,
                           f'echo "$1 $MARK $KUBERNETES_EXEC_INFO" >>{directory}/asked; cat {directory}/now')
    make_agent(config, node_name=NODE)
    feed.wait_fact(proto.NODE, node_uid(server))
    first, mark, info = (directory / "asked").read_text().split("\n")[0].split(" ", 2)
    assert (first, mark) == ("first", "m")
    assert json.loads(info) == {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                                "spec": {"interactive": False}}
    assert feed.order(**set_capacity("vendor.com/none")).outcome == proto.DONE
    assert (directory / "asked").read_text().count("\n") == 1


def test_a_credential_plugin_s_own_variables_count(directory, make_agent, server, feed):
    """Also for a shell, which takes the last of two of one name."""
    server.tokens = {"t1": "system:serviceaccount:x:y"}
    (directory / "now").write_text(CREDENTIAL % "t1")
    config = plugin_config(directory, server,
                           f'echo "$MARK $KUBERNETES_EXEC_INFO" >{directory}/asked; cat {directory}/now')
    make_agent(config, wrapper=("env", "MARK=the agent's", "KUBERNETES_EXEC_INFO=none"), node_name=NODE)
    feed.wait_fact(proto.NODE, node_uid(server))
    mark, info = (directory / "asked").read_text().split(" ", 1)
    assert mark == "m" and json.loads(info)["kind"] == "ExecCredential"


@pytest.mark.parametrize("script, words", [
    ("exit 3", "status 3"), ("echo no", "no ExecCredential"), ("yes 0123456789", "message too long"),
    (f"echo '{CREDENTIAL % ''}'", "neither a token"),
    (f"printf %s '{TWO_LINES}'", "the end of a line")],
    ids=["fails", "no-json", "endless", "empty", "two-lines"])
def test_credential_plugins_that_fail(directory, make_agent, server, feed, script, words):
    make_agent(plugin_config(directory, server, script), node_name=NODE)
    feed.wait_state(lambda state: words in state.trouble and not state.reached, words)
    assert server.requests == []


@pytest.mark.parametrize("script, words", [
    ("kill -9 $$", "status 137"), ("head -c 2000000 /dev/zero | tr '\\0' x >&2; exit 1", "status 1")],
    ids=["dies", "floods-its-errors"])
def test_credential_plugins_that_die(directory, make_agent, server, feed, script, words):
    """And are run again: the next time they work."""
    server.tokens = {"t": "x"}
    (directory / "now").write_text(CREDENTIAL % "t")
    once = f"if mkdir {directory}/first 2>/dev/null; then {script}; else cat {directory}/now; fi"
    make_agent(plugin_config(directory, server, once), node_name=NODE)
    feed.wait_state(lambda state: words in state.trouble and not state.reached, words)
    assert server.requests == []
    feed.wait_fact(proto.NODE, node_uid(server))


def is_running(number):
    """One whose parent does not reap it is not."""
    status = pathlib.Path(f"/proc/{number}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_a_credential_plugin_that_hangs_is_killed(directory, make_agent, server, feed):
    """After half a minute, in which all else goes on; and with it the programs that it has started and waits for."""
    script = f"sleep 1000000 & echo $$ $! >{directory}/pid; wait"
    make_agent(plugin_config(directory, server, script), node_name=NODE)
    wait_until(lambda: (directory / "pid").exists() and (directory / "pid").read_text(), "it runs")
    numbers = (directory / "pid").read_text().split()
    feed.begin(**set_capacity())
    feed.stop()
    feed.start()
    wait_until(lambda: feed.reports, "the daemon is told")
    feed.wait_state(lambda state: "its credential plugin" in state.trouble, "it has not answered")
    wait_until(lambda: not any(is_running(number) for number in numbers), "all of it is killed")
    assert server.requests == []


def hours_ago(hours, offset):
    """By a clock that is so many hours ahead of UTC."""
    moment = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=offset)))
    return (moment - datetime.timedelta(hours=hours)).isoformat(timespec="milliseconds")


@pytest.mark.parametrize("end", ["2020-01-01T00:00:00Z", hours_ago(1, 14)], ids=["utc", "offset"])
def test_a_credential_that_ends_is_asked_for_anew(directory, make_agent, server, feed, end):
    """Each time that it is used, since it is over at once; but not more often than each ten seconds."""
    server.tokens = {"t1": "x", "t2": "x"}
    over = CREDENTIAL.replace('"token":"%s"', f'"token":"%s","expirationTimestamp":"{end}"')
    (directory / "now").write_text(over % "t1")
    make_agent(plugin_config(directory, server, f"echo x >>{directory}/asked; cat {directory}/now"), node_name=NODE)
    feed.wait_fact(proto.NODE, node_uid(server))
    (directory / "now").write_text(over % "t2")
    asked = wait_until(lambda: feed.order(**set_capacity("vendor.com/none")).outcome == proto.DONE
                       and (directory / "asked").read_text().count("x") >= 2
                       and (directory / "asked").read_text().count("x"), "it is asked again")
    assert asked == 2


def test_what_a_plugin_gave_is_used_while_it_is_asked_anew(directory, make_agent, server, feed):
    """It is asked half a minute before the end, and hangs then, which nothing waits for."""
    server.tokens = {"t": "x"}
    end = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=60)).isoformat(timespec="seconds")
    (directory / "now").write_text((CREDENTIAL % "t").replace('"token"', f'"expirationTimestamp":"{end}","token"'))
    once = f"if mkdir {directory}/first; then cat {directory}/now; else echo $$ >{directory}/pid; exec sleep 1000000; fi"
    make_agent(plugin_config(directory, server, once), node_name=NODE)
    order = set_capacity("vendor.com/none")
    wait_until(lambda: feed.order(**order).outcome == proto.DONE and (directory / "pid").exists()
               and (directory / "pid").read_text(), "it is asked again")
    assert feed.order(**order).outcome == proto.DONE
    assert is_running(int((directory / "pid").read_text()))


def test_a_program_that_is_not_there(directory, make_agent, server, feed):
    make_agent(plugin_config(directory, server, "", command="/nonexistent/plugin"), node_name=NODE)
    feed.wait_state(lambda state: "no such file" in state.trouble, "it cannot be run")


def test_no_node_by_these_credentials(directory, make_agent, server, feed):
    """Nothing is asked for until somebody says whose node this is."""
    server.tokens = {"t": "x"}
    config = directory / "account.conf"
    config.write_text(json.dumps(server.config({"token": "t"})))
    make_agent(config)
    feed.wait_state(lambda state: "cluster.node_name" in state.trouble, "it says what is wanting")
    assert feed.order(**set_capacity()).outcome == proto.AGAIN
    assert server.requests == []
    server.kubeconfig(config, NODE)
    feed.wait_fact(proto.NODE, node_uid(server))


def test_a_kubeconfig_that_is_not_there_yet(directory, make_agent, server, feed):
    """As on a node that has not joined; or its path is another one."""
    config = directory / "kubelet.conf"
    one = make_agent(config)
    feed.wait_state(lambda state: state.trouble == f"{config}: No such file or directory", "it says what is wanting")
    config.write_text("no: config")
    feed.wait_state(lambda state: state.trouble == f"{config}: it has no current context", "it says what is wrong")
    server.kubeconfig(config, NODE)
    feed.wait_fact(proto.NODE, node_uid(server))
    assert "node_name" not in one.log()


def test_another_authoritys_server_is_not_spoken_with(directory, make_agent, server, feed, closing):
    """And with cluster.insecure_skip_tls_verify and a kubeconfig that says so, it is."""
    other = closing(ApiServer(directory / "other"))
    other.start()
    config = directory / "kubelet.conf"
    server.kubeconfig(config, NODE)
    text = json.loads(config.read_text())
    text["clusters"][0]["cluster"]["server"] = other.url
    config.write_text(json.dumps(text))
    make_agent(config)
    feed.wait_state(lambda state: "certificate" in state.trouble and not state.reached, "it is not trusted")
    assert other.requests == []


@pytest.mark.parametrize("named", [True, False])
def test_an_authority_of_the_machine_s_is_none_of_the_cluster_s(directory, make_agent, server, feed, closing, named):
    """Whom the machine trusts is trusted only where the kubeconfig names no authority."""
    other = closing(ApiServer(directory / "other", streaming=False))
    other.start()
    other.put("nodes", node({GPU: "2"}))
    authority = other.authority.certificate
    name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", authority], check=True, capture_output=True,
                          text=True).stdout.strip()
    trusted = directory / "certs"
    trusted.mkdir()
    for file in f"{name}.0", "ca-certificates.crt":
        shutil.copy(authority, trusted / file)
    other.tokens = {"t": "x"}
    text = server.config({"token": "t"}, **({} if named else {"certificate-authority-data": None}))
    text["clusters"][0]["cluster"]["server"] = other.url
    config = directory / "kubelet.conf"
    config.write_text(json.dumps(text))
    make_agent(config, ("unshare", "--mount", "sh", "-c", f'mount --bind {trusted} /etc/ssl/certs && exec "$@"', "sh"),
               node_name=NODE)
    if named:
        feed.wait_state(lambda state: "certificate" in state.trouble and not state.reached, "it is not trusted")
        assert other.requests == []
    else:
        feed.wait_fact(proto.NODE, other.get("nodes", NODE)["metadata"]["uid"])


@pytest.mark.parametrize("allowed", [False, True])
def test_insecure_only_if_it_is_said(directory, make_agent, server, feed, allowed):
    server.tokens = {"t": "x"}
    config = directory / "insecure.conf"
    config.write_text(json.dumps(server.config({"token": "t"}, **{"certificate-authority-data": None,
                                                                  "insecure-skip-tls-verify": True})))
    make_agent(config, node_name=NODE, insecure_skip_tls_verify=allowed)
    if allowed:
        feed.wait_fact(proto.NODE, node_uid(server))
    else:
        feed.wait_state(lambda state: "insecure_skip_tls_verify" in state.trouble, "it is refused")
        assert server.requests == []


def test_the_certificates_name_may_be_another(directory, make_agent, server, feed):
    config = server.kubeconfig(directory / "kubelet.conf", NODE)
    text = json.loads(config.read_text())
    text["clusters"][0]["cluster"].update({"tls-server-name": "localhost"})
    config.write_text(json.dumps(text))
    make_agent(config)
    feed.wait_fact(proto.NODE, node_uid(server))


def test_no_line_has_what_authenticates(directory, make_agent, server, feed):
    server.tokens = {"geheim-1": "x"}
    token = directory / "token"
    token.write_text("geheim-1")
    config = directory / "account.conf"
    config.write_text(json.dumps(server.config({"tokenFile": str(token)})))
    one = make_agent(config, node_name=NODE)
    feed.wait_fact(proto.NODE, node_uid(server))
    server.tokens = {}
    assert feed.order(**set_capacity()).outcome == proto.AGAIN
    assert "geheim" not in one.log() and "PRIVATE" not in one.log()
    assert not any(b"geheim" in report.SerializeToString() for report in feed.reports)


def test_off_it_waits_to_be_stopped(directory, server, feed, make_agent):
    one = make_agent(enabled=False)
    one.wait_log("cluster.enabled is false")
    one.terminate()
    assert (feed.watches, server.requests) == (0, [])
