"""What the agent sees of the cluster's DRA objects in each version that API servers have them in."""

import json

import pytest

import api_groups
from agent_feed import AgentFeed
from agent_process import Agent
from api_server import ApiServer, Fault
from protos import agent as proto
from waiting import wait_until

NODE = "node-1"
GROUP = "/apis/resource.k8s.io"
SLICES = {"1.32": "v1beta1", "1.33": "v1beta2", "1.34": "v1", "1.36": "v1"}
RULES = {"1.35": "v1alpha3", "1.36": "v1beta2"}
TAINT = {"key": "vendor.com/hot", "value": "very", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}


def node():
    return {"metadata": {"name": NODE}, "spec": {}, "status": {"capacity": {"cpu": "8"}}}


def slice_of(name="s1", taints=()):
    return {"metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {"nodeName": NODE, "driver": "gpu.example", "pool": {"name": NODE, "generation": 3},
                     "devices": [{"name": "gpu-0"}, {"name": "gpu-1", "taints": list(taints)}]}}


def rule(name="r1", **spec):
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"taint": TAINT, **spec}}


@pytest.fixture
def feed(directory, closing):
    one = closing(AgentFeed(directory / "run" / "agent.sock", kinds=(proto.SLICE, proto.TAINT_RULE)))
    one.start()
    return one


@pytest.fixture
def make_server(directory, closing):
    def make(release, **more):
        one = closing(ApiServer(directory / "pki", release=release, **more))
        one.start()
        one.put("nodes", node())
        return one

    return make


@pytest.fixture
def start(directory, closing, feed):
    """An agent with a node's credentials, or (account) with those of one who may see all."""
    def start(server, account=False):
        path = directory / "kubelet.conf"
        if account:
            server.tokens = {"t": "system:serviceaccount:kube-system:shim"}
            path.write_text(json.dumps(server.config({"token": "t"})))
        else:
            server.kubeconfig(path, NODE)
        one = closing(Agent(directory, path, node_name=NODE))
        one.start()
        return one

    return start


def told(taint):
    return {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}


@pytest.mark.parametrize("release", list(SLICES))
def test_slices_with_their_taints(make_server, start, feed, release):
    server = make_server(release)
    server.put("resourceslices", slice_of(taints=[TAINT, {**TAINT, "key": "b"}]))
    start(server)
    one = feed.wait_fact(proto.SLICE, "uid-s1")
    assert (list(one.devices), one.generation) == (["gpu-0", "gpu-1"], 3)
    assert [(each.device, told(each.taint)) for each in one.taints] == [("gpu-1", TAINT), ("gpu-1", {**TAINT, "key": "b"})]
    server.wait_watched("resourceslices")
    server.put("resourceslices", slice_of())
    feed.wait_fact(proto.SLICE, "uid-s1", lambda one: not one.taints)
    assert feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example")).outcome == proto.DONE
    feed.wait_gone(proto.SLICE, "uid-s1")
    assert {one.path for one in server.requests if "resourceslices" in one.path} == {
        f"{GROUP}/{SLICES[release]}/resourceslices"}


@pytest.mark.parametrize("release", ["1.32", "1.36"])
def test_claims_with_their_tolerations(make_server, start, feed, release):
    server = make_server(release)
    tolerations = [{"key": "vendor.com/hot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
                   {"operator": "Exists"}]
    server.put("resourceclaims", {
        "metadata": {"name": "c1", "namespace": "default", "uid": "u1",
                     "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}, "spec": {},
        "status": {"reservedFor": [{"resource": "pods", "name": "a", "uid": "uid-a"},
                                   {"apiGroup": "other.example", "resource": "jobs", "name": "j", "uid": "uid-j"}],
                   "allocation": {"devices": {"results": [
                       {"request": "r", "driver": "gpu.example", "pool": NODE, "device": "gpu-0",
                        "tolerations": tolerations}]}}}})
    server.put("pods", {"metadata": {"name": "a", "namespace": "default", "uid": "uid-a"},
                        "spec": {"nodeName": NODE, "resourceClaims": [{"name": "x", "resourceClaimName": "c1"}]}})
    start(server)
    server.wait_watched("resourceslices")
    claim = feed.order(get_claim=proto.GetClaim(namespace="default", name="c1", uid="u1")).claim
    assert (list(claim.reserved_for), claim.extended) == (["uid-a"], True)
    assert [(one.key, one.operator, one.effect, one.limited, one.seconds)
            for one in claim.devices[0].tolerations] == [("vendor.com/hot", "Exists", "NoExecute", True, 0),
                                                         ("", "Exists", "", False, 0)]


@pytest.mark.parametrize("release", list(RULES))
def test_rules_of_taints(make_server, start, feed, release):
    """With the selectors that there are: one that says nothing, none, and one of a version before."""
    server = make_server(release)
    server.put("devicetaintrules", rule("r1", deviceSelector={"driver": "gpu.example", "pool": NODE, "device": "gpu-0"}))
    server.put("devicetaintrules", rule("all", deviceSelector={}))
    server.put("devicetaintrules", rule("none"))
    server.put("devicetaintrules", rule("old", deviceSelector={"deviceClassName": "gpu"}))
    start(server, account=True)
    one = feed.wait_fact(proto.TAINT_RULE, "uid-r1")
    assert (one.name, one.selector.driver, one.selector.pool, one.selector.device, told(one.taint)) == (
        "r1", "gpu.example", NODE, "gpu-0", TAINT)
    assert not one.selector.more
    one = feed.wait_fact(proto.TAINT_RULE, "uid-all")
    assert one.HasField("selector") and one.selector == proto.TaintSelector()
    assert not feed.wait_fact(proto.TAINT_RULE, "uid-none").HasField("selector")
    assert feed.wait_fact(proto.TAINT_RULE, "uid-old").selector.more
    server.wait_watched("devicetaintrules")
    server.put("devicetaintrules", rule("r1", taint={**TAINT, "effect": "None"}))
    feed.wait_fact(proto.TAINT_RULE, "uid-r1", lambda one: one.taint.effect == "None")
    server.remove("devicetaintrules", "r1")
    feed.wait_gone(proto.TAINT_RULE, "uid-r1")
    found = {one.path for one in server.watches_of("devicetaintrules")}
    assert found == {f"{GROUP}/{RULES[release]}/devicetaintrules"}


def test_rules_that_a_node_may_not_see_are_no_trouble(make_server, start, feed):
    server = make_server("1.36")
    server.put("devicetaintrules", rule())
    one = start(server)
    one.wait_log("DeviceTaintRules may not be seen")
    feed.wait_state(lambda state: sorted(state.complete) == [proto.NODE, proto.SLICE, proto.TAINT_RULE],
                    "the rest is known, and nobody is to wait for them")
    assert (feed.state.trouble, feed.state.reached) == ("", True)


@pytest.mark.parametrize("release", ["1.31", "1.34"])
def test_what_no_server_has_is_no_trouble(make_server, start, feed, release):
    """Slices before 1.32, rules where nobody has switched them on."""
    server = make_server(release)
    start(server, account=True)
    feed.wait_state(lambda state: proto.NODE in state.complete, "the node is known")
    wait_until(lambda: feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example")).outcome == proto.DONE,
               "what the server has is known")
    server.put("nodes", {**node(), "spec": {"unschedulable": True}})
    feed.wait_state(lambda state: (proto.SLICE in state.complete) == (release == "1.34"), "all there is is known")
    feed.wait_state(lambda state: proto.TAINT_RULE in state.complete, "there are no rules to be waited for")
    assert (feed.state.trouble, feed.state.reached) == ("", True)


def test_a_server_that_is_upgraded_past_a_version(make_server, start, feed):
    """What was known stays so, and is asked for in the next version."""
    server = make_server("1.33")
    server.put("resourceslices", slice_of())
    start(server)
    feed.wait_fact(proto.SLICE, "uid-s1")
    server.wait_watched("resourceslices")
    server.served = api_groups.served("1.33")
    del server.served[api_groups.V1BETA2]
    server.end_watches()
    server.wait_asked(f"{GROUP}/v1beta1/resourceslices", watch=True)
    server.put("resourceslices", slice_of("s2"))
    feed.wait_fact(proto.SLICE, "uid-s2")
    assert (proto.SLICE, "uid-s1") in feed.facts
    assert not any(fact.key == "uid-s1" and not fact.value for report in feed.reports for fact in report.facts)


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(body=b"[]"), Fault(body=b"{}"), Fault(cut=5),
                                   Fault(endless=True)], ids=["500", "an-array", "empty", "cut", "endless"])
def test_versions_that_the_server_does_not_say(make_server, start, feed, fault):
    """It is asked again; orders wait so long."""
    server = make_server("1.32")
    server.put("resourceslices", slice_of())
    server.fault(fault, path=GROUP, times=2)
    start(server)
    feed.wait_fact(proto.SLICE, "uid-s1")
    assert len([one for one in server.asked(GROUP) if one.path == GROUP]) == 3


def test_versions_that_the_server_does_not_allow_to_see(make_server, start, feed):
    server = make_server("1.34")
    server.put("resourceslices", slice_of())
    server.fault(Fault(status=403), path=GROUP, times=1)
    start(server)
    feed.wait_fact(proto.SLICE, "uid-s1")


def test_a_404_of_who_is_no_api_server_says_nothing(make_server, start, feed):
    """A load balancer without a server behind it: were it believed, slices of a driver that is away would stay, and all
    would be known, until somebody asks again in ten minutes."""
    server = make_server("1.36")
    server.put("resourceslices", slice_of())
    server.fault(Fault(status=404), path="/apis", times=None)
    start(server)
    server.wait_asked("/apis", count=4)
    assert feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example")).outcome == proto.AGAIN
    assert proto.TAINT_RULE not in feed.state.complete
    server.mend()
    feed.wait_fact(proto.SLICE, "uid-s1")
    server.wait_watched("resourceslices")
    # Likewise in the middle, whatever it answered before.
    server.fault(Fault(status=404), path="/apis", times=None)
    server.end_watches()
    for _ in range(3):
        assert feed.order(wipe_slices=proto.WipeSlices(driver="gpu.example")).outcome == proto.AGAIN
    server.mend()
    server.put("resourceslices", slice_of("s2"))
    feed.wait_fact(proto.SLICE, "uid-s2")
    assert (proto.SLICE, "uid-s1") in feed.facts
