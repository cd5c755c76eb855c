"""Pools of ResourceSlices that the agent is ordered to publish, at a scripted API server that has upstream's rules for them."""

import itertools

import pytest

from agent_feed import AgentFeed
from agent_process import Agent
from api_groups import as_version
from api_server import ApiServer, Fault
from process import MIB, Peak, is_sanitized
from protos import agent as proto
from telling import tell
from waiting import wait_until

NODE = "node-1.example"
DRIVER = "plugins.cri-device-shim"
POOL = f"{NODE}/vendor.com.gpu"
OTHER_POOL = f"{NODE}/vendor.com.nic"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
UNHEALTHY = proto.Taint(key="devices.cri-device-shim/unhealthy", effect="NoSchedule")


@pytest.fixture
def make_server(directory, closing):
    def make(**how):
        one = closing(ApiServer(directory / "pki", streaming=False, **how))
        one.start()
        one.put("nodes", {"metadata": {"name": NODE}, "spec": {}, "status": {"capacity": {}}})
        return one

    return make


@pytest.fixture
def server(make_server):
    return make_server()


@pytest.fixture
def feed(directory, closing):
    one = closing(AgentFeed(directory / "run" / "agent.sock", kinds=()))
    one.start()
    return one


@pytest.fixture
def start_agent(directory, closing, feed):
    def start(server):
        one = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
        one.start()
        wait_ready(feed)
        del server.requests[:]
        return one

    return start


@pytest.fixture
def agent(start_agent, server):
    return start_agent(server)


def wait_ready(feed):
    """It may be asked before it knows in which version the server has slices."""
    wait_until(lambda: feed.order(publish_pool=pool([], name="none")).outcome == proto.DONE, "it knows what is served")


def device(name, taints=(), **attributes):
    kinds = {str: "text", bool: "flag", int: "number"}
    return proto.PoolDevice(name=name, taints=taints, attributes=[
        proto.Attribute(name=key, **{kinds[type(value)]: value}) for key, value in attributes.items()])


def pool(slices, name=POOL, driver=DRIVER):
    """`slices`: the devices of each, or their names."""
    return proto.PublishPool(driver=driver, pool=name, slices=[
        proto.PoolSlice(devices=[device(one) if isinstance(one, str) else one for one in devices]).SerializeToString()
        for devices in slices])


def publish(feed, slices, **how):
    answer = feed.order(publish_pool=pool(slices, **how))
    assert answer.outcome == proto.DONE, answer
    return answer


def there(server, name=POOL):
    """The pool's slices, by name."""
    return {one["metadata"]["name"]: one for one in list(server.objects["resourceslices"].values())
            if (one["spec"]["pool"]["name"], one["spec"]["driver"]) == (name, DRIVER)}


def names(server, name=POOL):
    return [[one["name"] for one in there(server, name)[key]["spec"]["devices"]] for key in sorted(there(server, name))]


def generations(server, name=POOL):
    """Of each slice: the pool's generation, and how many slices it says there are."""
    return [(one["spec"]["pool"]["generation"], one["spec"]["pool"]["resourceSliceCount"])
            for _, one in sorted(there(server, name).items())]


def writes(server):
    """Since the last time."""
    found = [one.method for one in server.requests if one.method != "GET"]
    del server.requests[:]
    return found


# ---- what is published ----

@pytest.mark.usefixtures("agent")
def test_a_pool_is_made_changed_and_taken_away(server, feed):
    publish(feed, [[device("gpu-0", resource="vendor.com/gpu", numaNode=1, fast=True), "gpu-1"]])
    (one,) = there(server).values()
    uid = server.get("nodes", NODE)["metadata"]["uid"]
    assert one["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid, "controller": True}]
    assert one["spec"] == {
        "driver": DRIVER, "nodeName": NODE, "pool": {"name": POOL, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"resource": {"string": "vendor.com/gpu"}, "numaNode": {"int": 1},
                                                     "fast": {"bool": True}}}, {"name": "gpu-1"}]}
    publish(feed, [["nic"]], name=OTHER_POOL)
    assert writes(server) == ["POST", "POST"]

    publish(feed, [[device("gpu-0", resource="vendor.com/gpu", numaNode=1, fast=True), "gpu-1"]])
    assert writes(server) == []  # as it was

    publish(feed, [[device("gpu-0", [UNHEALTHY]), "gpu-1"]])
    (one,) = there(server).values()
    added = one["spec"]["devices"][0]["taints"][0]["timeAdded"]
    assert (generations(server), writes(server)) == ([(1, 1)], ["PATCH"])
    publish(feed, [[device("gpu-0", [UNHEALTHY]), device("gpu-1", [UNHEALTHY]), "gpu-2"]])
    (one,) = there(server).values()
    assert [device.get("taints", [{}])[0].get("timeAdded") == added for device in one["spec"]["devices"]] == [
        True, False, False]  # what was tainted is so since then; the other from now on
    publish(feed, [[device("gpu-0", [UNHEALTHY]), device("gpu-1", [UNHEALTHY]), "gpu-2"]])
    assert (generations(server), writes(server)) == ([(1, 1)], ["PATCH"])

    publish(feed, [])
    assert (there(server), names(server, OTHER_POOL), writes(server)) == ({}, [["nic"]], ["DELETE"])


@pytest.mark.usefixtures("agent")
def test_a_pool_of_several_slices(server, feed):
    publish(feed, [["a", "b"], ["c", "d"], ["e"]])
    assert (names(server), generations(server)) == ([["a", "b"], ["c", "d"], ["e"]], [(1, 3)] * 3)
    publish(feed, [["a", "b"], ["c", device("d", [UNHEALTHY])], ["e"]])
    assert generations(server) == [(1, 3)] * 3  # one slice's own
    publish(feed, [["a", "b"], ["c", "e"], ["d"]])
    assert (names(server), generations(server)) == ([["a", "b"], ["c", "e"], ["d"]], [(2, 3)] * 3)
    publish(feed, [["a", "b"]])
    assert (names(server), generations(server)) == ([["a", "b"]], [(3, 1)])
    publish(feed, [["a", "b"], ["c"]])
    assert (names(server), generations(server)) == ([["a", "b"], ["c"]], [(4, 2)] * 2)


@pytest.mark.usefixtures("agent")
def test_what_is_in_the_way_goes(server, feed):
    """Slices of the pool under other names, as a release before may have left them; not those of others."""
    def put(name, driver=DRIVER, node=NODE, of=POOL):
        server.put("resourceslices", {"metadata": {"name": name}, "spec": {
            "driver": driver, "nodeName": node, "pool": {"name": of, "generation": 9, "resourceSliceCount": 1},
            "devices": [{"name": "a"}]}})

    put("left-0")
    put("left-x")
    put("foreign", driver="gpu.example.com")
    put("elsewhere", node="node-2", of="node-2/vendor.com.gpu")
    put("other-pool", of=OTHER_POOL)
    publish(feed, [["a"]])
    assert (names(server), generations(server)) == ([["a"]], [(10, 1)])
    assert {"foreign", "elsewhere", "other-pool"} < {name for _, name in server.objects["resourceslices"]}


@pytest.mark.usefixtures("agent")
def test_what_others_have_done_is_mended(server, feed):
    publish(feed, [["a"], ["b"]])
    first, second = sorted(there(server))
    server.remove("resourceslices", second)
    publish(feed, [["a"], ["b"]])
    assert (names(server), generations(server)) == ([["a"], ["b"]], [(1, 2)] * 2)
    spoilt = server.get("resourceslices", first)
    spoilt["spec"]["devices"] = [{"name": "x"}]
    spoilt["spec"]["pool"]["resourceSliceCount"] = 7
    server.put("resourceslices", spoilt)
    publish(feed, [["a"], ["b"]])
    assert (names(server), generations(server)) == ([["a"], ["b"]], [(2, 2)] * 2)


# ---- versions ----

@pytest.mark.parametrize("release", ["1.32", "1.33", "1.35"])
def test_older_servers(make_server, start_agent, feed, release):
    server = make_server(release=release)
    start_agent(server)
    version = "v1beta1" if release == "1.32" else "v1beta2" if release == "1.33" else "v1"
    for taints in ((), [UNHEALTHY]):
        publish(feed, [[device("gpu-0", taints, numaNode=0)]])
    publish(feed, [[device("gpu-0", taints, numaNode=0)]])
    (one,) = there(server).values()
    assert one["spec"]["devices"][0]["attributes"] == {"numaNode": {"int": 0}}
    assert [taint["key"] for taint in one["spec"]["devices"][0]["taints"]] == [UNHEALTHY.key]
    assert ("basic" in as_version(one, f"resource.k8s.io/{version}")["spec"]["devices"][0]) == (release == "1.32")
    assert {one.path.split("/")[3] for one in server.requests if "resourceslices" in one.path} == {version}
    assert writes(server) == ["POST", "PATCH"]


# ---- what goes wrong ----

FAULTS = {"a list that is cut": (dict(cut=40), dict(method="GET", path=SLICES)),
          "429": (dict(status=429, headers={"retry-after": "3"}), dict(method="POST")),
          "500": (dict(status=500), dict(method="PATCH")),
          "gone meanwhile": (dict(status=404), dict(method="PATCH")),
          "changed meanwhile": (dict(status=409), dict(method="PATCH")),
          "there already": (dict(status=409), dict(method="POST")),
          "cut, and done": (dict(cut=10, reset=True), dict(method="POST")),
          "no node": (dict(status=404), dict(path="/api/v1/nodes/"))}


@pytest.mark.usefixtures("agent")
def test_each_failure_is_mended_by_another_attempt(server, feed):
    """Wherever it breaks off, the next one does what is missing."""
    wanted = itertools.count()
    for what, (fault, where) in FAULTS.items():
        publish(feed, [])
        publish(feed, [["a"], ["b"], ["c"]])
        devices = [["a", f"x{next(wanted)}"], ["b", f"y{next(wanted)}"], ["c"], ["d"]]
        server.fault(Fault(**fault), **where)
        answer = feed.order(publish_pool=pool(devices))
        assert (what, answer.outcome) == (what, proto.AGAIN), answer
        assert answer.message and answer.retry_after_ms == (3000 if what == "429" else 0)
        publish(feed, devices)
        assert (what, names(server), generations(server)) == (what, devices, [(2, 4)] * 4)


@pytest.mark.usefixtures("agent")
def test_what_will_not_work_is_refused(server, feed):
    def refused(answer, words):
        assert (answer.outcome, words in answer.message) == (proto.REFUSED, True), answer

    server.fault(Fault(status=403), method="POST")
    refused(feed.order(publish_pool=pool([["a"]])), "403")
    refused(feed.order(publish_pool=pool([["a"]], driver="x,spec.nodeName=y")), "no driver's name")
    broken = proto.PublishPool(driver=DRIVER, pool=POOL, slices=[b"\xff"])
    refused(feed.order(publish_pool=broken), "not UTF-8")
    assert there(server) == {}


def test_a_daemon_or_agent_that_ends_in_the_middle(agent, server, feed):
    """The one that is cut leaves a pool that is not whole; the next order of it finds out how far it has come."""
    publish(feed, [["a"], ["b"], ["c"]])
    server.fault(Fault(silence=True), method="PATCH")
    feed.begin(publish_pool=pool([["b"], ["a"], ["c"]]))
    server.wait_asked(SLICES, method="PATCH")
    agent.kill()
    agent.start()
    feed.wait_watched(2)  # else the one that is dead may be given the next order
    wait_ready(feed)
    publish(feed, [["b"], ["a"], ["c"]])
    assert (names(server), generations(server)) == ([["b"], ["a"], ["c"]], [(2, 3)] * 3)


# ---- how much ----

@pytest.mark.release
def test_ten_thousand_devices(agent, server, feed, request):
    def device_of(number, taints=()):
        return device(f"gpu-{number}", taints, resource="vendor.com/gpu", id=f"GPU-{number:032}", numaNode=number % 8)

    def slices_of(**how):
        return [[device_of(number, **how) for number in range(first, min(first + 64, 10_000))]
                for first in range(0, 10_000, 64)]

    peak = Peak(agent.pid)
    publish(feed, slices_of())
    assert len(there(server)) == 157
    assert writes(server) == ["POST"] * 157
    publish(feed, slices_of(taints=[UNHEALTHY]))
    lists_and_gets = len(server.asked(SLICES))
    assert (writes(server), lists_and_gets) == (["PATCH"] * 157, 158)
    tell(request, f"publishing 10,000 devices takes {peak.growth() / MIB:.1f} MiB of the agent")
    assert is_sanitized(agent.pid) or peak.growth() < 16 * MIB
