"""The agent at a server that begins a watch with all there is, and at those that do not know that."""

import pytest

from agent_feed import AgentFeed
from agent_process import Agent
from api_server import ApiServer, Fault
from protos import agent as proto
from waiting import GENEROUS_S, wait_until

NODE = "node-1"
PODS = "/api/v1/pods"
_SILENCE_S = 180  # shim/agent/limits.h


def pod(name):
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"nodeName": NODE}, "status": {"phase": "Running"}}


@pytest.fixture
def make_server(directory, closing):
    def make(release="1.36"):
        one = closing(ApiServer(directory / "pki", release=release))
        one.start()
        one.put("nodes", {"metadata": {"name": NODE}, "spec": {}, "status": {"capacity": {"cpu": "8"}}})
        for name in ("a", "b"):
            one.put("pods", pod(name))
        return one

    return make


@pytest.fixture
def feed(directory, closing):
    one = closing(AgentFeed(directory / "run" / "agent.sock"))
    one.start()
    return one


@pytest.fixture
def start(directory, closing, feed):
    def start(server):
        one = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
        one.start()
        return one

    return start


def streams(server):
    return [one for one in server.asked(PODS) if one.streams]


def lists(server):
    return server.asked(PODS, watch=False)


def wait_known(feed):
    feed.wait_state(lambda state: proto.POD in state.complete, "all pods are known")


def gone_in(feed, uid):
    return [report for report in feed.reports for fact in report.facts if fact.key == uid and not fact.value]


def test_all_is_told_by_one_watch(make_server, start, feed):
    server = make_server()
    start(server)
    wait_known(feed)
    assert {key for key in feed.facts if key[0] == proto.POD} == {(proto.POD, "uid-a"), (proto.POD, "uid-b")}
    server.put("pods", pod("c"))
    feed.wait_fact(proto.POD, "uid-c")
    server.remove("pods", "a", "default")
    feed.wait_gone(proto.POD, "uid-a")
    server.end_watches()  # as it would after some minutes: it is gone on with
    server.wait_asked(PODS, watch=True)
    server.put("pods", pod("d"))
    feed.wait_fact(proto.POD, "uid-d")
    assert (len(streams(server)), len(lists(server))) == (1, 0)
    (one,) = streams(server)
    assert (one.query["resourceVersion"], one.query["resourceVersionMatch"]) == ("0", "NotOlderThan")


def test_what_is_too_old_is_told_anew(make_server, start, feed):
    server = make_server()
    start(server)
    wait_known(feed)
    server.fault(Fault(status=500), path=PODS, watch=True)
    server.end_watches()
    server.wait_asked(PODS, watch=True)
    server.remove("pods", "a", "default")
    server.compact()
    feed.wait_gone(proto.POD, "uid-a")
    assert (proto.POD, "uid-b") in feed.facts
    assert (len(streams(server)), len(lists(server))) == (2, 0)


def test_one_that_ends_before_all_was_told(make_server, start, feed):
    """What was told counts; what was not is not taken to be gone; and it is asked again."""
    server = make_server()
    start(server)
    wait_known(feed)
    server.mute_end = True
    server.fault(Fault(status=500), path=PODS, watch=True)
    server.end_watches()
    server.wait_asked(PODS, watch=True)
    server.compact()
    server.put("pods", pod("c"))
    feed.wait_fact(proto.POD, "uid-c")
    server.remove("pods", "c", "default")
    feed.wait_gone(proto.POD, "uid-c")  # an event as any
    server.mute_end = False
    server.remove("pods", "a", "default")
    server.end_watches()
    feed.wait_gone(proto.POD, "uid-a")
    assert not gone_in(feed, "uid-b")


def test_a_store_that_was_restored_from_before_is_told_anew(make_server, start, feed):
    """Its server tells nothing of what changes until it has come to the version that was seen: a watch on which not even
    a bookmark has come for three minutes is not gone on with."""
    server = make_server()
    backup = server.backup()
    start(server)
    wait_known(feed)
    for name in ("c", "d", "e"):
        server.put("pods", pod(name))
        feed.wait_fact(proto.POD, f"uid-{name}")
    server.stop()
    server.restore(backup)
    server.start()
    wait_until(lambda: server.watches_of("pods"), "it goes on from what it saw")
    server.put("pods", pod("f"))
    server.remove("pods", "a", "default")
    wait_until(lambda: (proto.POD, "uid-f") in feed.facts, "it is told anew", seconds=_SILENCE_S + GENEROUS_S)
    feed.wait_gone(proto.POD, "uid-a")
    feed.wait_gone(proto.POD, "uid-e")
    assert [one.query.get("resourceVersion") for one in streams(server)] == ["0", None]


@pytest.mark.parametrize("release", ["1.31", "1.33"])
def test_a_server_that_does_not_know_it_is_asked_for_lists(make_server, start, feed, release):
    server = make_server(release)
    start(server)
    wait_known(feed)
    server.compact()
    server.end_watches()
    server.put("pods", pod("c"))
    feed.wait_fact(proto.POD, "uid-c")
    assert (len(streams(server)), len(lists(server))) == (1, 2)  # it is not tried again
    feed.wait_state(lambda state: not state.trouble, "all is well")


def test_a_server_that_never_says_that_it_was_all(make_server, start, feed):
    """One that takes what it does not know for nothing. It is listed after half a minute. Nor is an order's request
    waited for longer that it does not answer; meanwhile all else goes on."""
    server = make_server()
    server.mute_end = True
    server.fault(Fault(silence=True), path=f"/api/v1/nodes/{NODE}", times=1)
    start(server)
    feed.wait_state(lambda state: state.node_name == NODE, "it knows whose node it is")
    order = {"set_capacity": proto.SetCapacity(resource="vendor.com/none", quantity="0")}
    slow = feed.begin(**order)
    server.wait_asked(f"/api/v1/nodes/{NODE}")
    assert feed.order(**order).outcome == proto.DONE and not feed.answers_to(slow)
    server.wait_asked(PODS, watch=False)
    server.wait_asked(PODS, watch=True)
    wait_known(feed)
    assert len(streams(server)) == 1
    assert feed.wait_answer(slow).outcome == proto.AGAIN


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=504), Fault(status=410),
                                   Fault(status=429, headers={"retry-after": "1"}), Fault(body=b"[]"),
                                   Fault(body=b"{}"), Fault(body=b""), Fault(endless=True)],
                         ids=["500", "504", "410", "429", "an-array", "empty", "nothing", "endless"])
def test_streams_that_fail_are_asked_for_again(make_server, start, feed, fault):
    server = make_server()
    server.fault(fault, path=PODS, times=1)
    start(server)
    wait_known(feed)
    assert (len(streams(server)), len(lists(server))) == (2, 0)
    # What a cache does not have yet, or any more, the store has.
    assert ("resourceVersion" not in streams(server)[1].query) == (fault.status in (410, 504))


def test_what_is_refused_is_told(make_server, start, feed):
    server = make_server()
    server.fault(Fault(status=403), path=PODS, times=None)
    start(server)
    feed.wait_state(lambda state: "403" in state.trouble and state.reached, "it is refused")
    server.mend()
    wait_known(feed)
