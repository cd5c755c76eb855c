"""Daemon and agent together, at a scripted API server."""

import json
import os
import signal

import grpc
import pytest

import kubelet_checkpoint
from agent_process import Agent
from api_server import Fault
from asking import by_token, refused
from ctl import ctl_json
from dra_driver import Driver
from feed import Feed
from protos import agent as agent_feed
from scripted_agent import ScriptedAgent
from waiting import wait_until

NODE = "node-1"  # of the fixtures
GPU = "vendor.com/gpu"


@pytest.fixture
def server(server):
    """With a node that has devices."""
    server.put("nodes", {"metadata": {"name": NODE}, "spec": {}, "status": {"capacity": {"cpu": "8", GPU: "2"}}})
    return server


@pytest.fixture
def shim(runtime, directory, make_shim):
    return make_shim(plugins={"hold": "300ms", "grace": "300ms"},
                     cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})


def capacity(server):
    return server.get("nodes", NODE)["status"]["capacity"][GPU]


def lose_plugin(shim, make_plugin):
    """Its grace ends."""
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    shim.wait_log(f"{GPU}: plugin endpoint \"vendor.com_gpu.sock\" is active")
    plugin.stop()


def troubles(shim):
    return {one["what"]: one["why"] for one in ctl_json(shim, "status")["degraded"]}


def test_the_node_is_told_what_is_removed(shim, agent, server, make_plugin):
    lose_plugin(shim, make_plugin)
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")
    shim.wait_log(f"resource {GPU}: the node's capacity of it is 0")
    assert len(server.asked(method="PATCH")) == 1
    # It is seen, and not told again when somebody else publishes the name.
    server.put("nodes", {"metadata": {"name": NODE}, "spec": {}, "status": {"capacity": {GPU: "4"}}})
    lose_plugin_again = make_plugin(shim, "vendor.com/other", ["x"])
    shim.wait_log("\"vendor.com_other.sock\" is active")
    lose_plugin_again.stop()
    shim.wait_log("resource vendor.com/other: the node's capacity of it is 0")
    assert capacity(server) == "4"


def test_without_an_agent_it_waits_for_one(shim, directory, closing, server, make_plugin):
    lose_plugin(shim, make_plugin)
    shim.wait_log(f"resource {GPU}")
    assert "no agent is connected" in troubles(shim)["cluster"]
    assert capacity(server) == "2"
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")
    wait_until(lambda: "cluster" not in troubles(shim), "all is well")


@pytest.mark.parametrize("before", ["", "!"], ids=["even", "odd"])
def test_what_is_refused_in_many_words_is_shown(shim, directory, closing, server, before):
    """Cut between two characters: a strict client takes no half of one."""
    server.fault(Fault(status=403, words=before + "\u00e9" * 1000), path="/api/v1/pods", times=None)
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    wait_until(lambda: troubles(shim).get("cluster", "").endswith("\u00e9"), "it is shown")


def test_an_api_server_that_is_away_is_asked_on(shim, agent, server, make_plugin):
    server.wait_watched("nodes")
    server.fault(Fault(status=500), path=f"/api/v1/nodes/{NODE}", method="GET", times=2)
    lose_plugin(shim, make_plugin)
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")
    assert len(server.asked(f"/api/v1/nodes/{NODE}")) == 3


def test_what_waits_for_minutes_does_not_once_the_api_server_is_back(shim, agent, server, make_plugin):
    """However long it was away, or said that it would be."""
    for resource in ("nodes", "pods", "resourceslices"):
        server.wait_watched(resource)
    agent.wait_log("DeviceTaintRules may not be seen")
    server.fault(Fault(silence=True), path="/apis/resource.k8s.io/v1beta2/devicetaintrules", times=None)  # which is an answer
    server.fault(Fault(status=503, headers={"retry-after": "300"}), path=f"/api/v1/nodes/{NODE}", method="GET")
    lose_plugin(shim, make_plugin)
    wait_until(lambda: "503" in str(troubles(shim)), "the daemon has heard of it")
    server.bookmark()  # it answers again
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")


def test_what_the_kubelet_publishes_is_left_to_it(runtime, directory, make_shim, closing, server, make_plugin):
    """It has the resource in its checkpoint, ours or another's: it says 0 by itself, when it forgets it."""
    shim = make_shim(plugins={"grace": "300ms"}, start=False,
                     cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_checkpoint.encode([], {GPU: []}))
    shim.start()
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    lose_plugin(shim, make_plugin)
    other = make_plugin(shim, "vendor.com/other", ["x"])  # which the kubelet does not know
    shim.wait_log("\"vendor.com_other.sock\" is active")
    other.stop()
    shim.wait_log("resource vendor.com/other: the node's capacity of it is 0")
    assert capacity(server) == "2"
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_checkpoint.encode([], {}))
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")


def test_what_the_kubelet_publishes_meanwhile_is_left_to_it(runtime, directory, make_shim, closing, server, make_plugin):
    """What was ordered while the API server was away is not to come behind what the kubelet says by then."""
    shim = make_shim(plugins={"grace": "300ms"}, start=False,
                     cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})
    shim.kubelet_plugin_dir.mkdir()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_checkpoint.encode([], {}))
    shim.start()
    server.fault(Fault(status=503, headers={"retry-after": "300"}), path=f"/api/v1/nodes/{NODE}", times=None)
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    lose_plugin(shim, make_plugin)
    server.wait_asked(f"/api/v1/nodes/{NODE}")
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_checkpoint.encode([], {GPU: []}))
    shim.wait_log(f"resource {GPU}: the kubelet has it")
    server.mend()
    other = make_plugin(shim, "vendor.com/other", ["x"])
    shim.wait_log("\"vendor.com_other.sock\" is active")
    other.stop()
    shim.wait_log("resource vendor.com/other: the node's capacity of it is 0")
    assert (capacity(server), owed(shim)) == ("2", [GPU])
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, kubelet_checkpoint.encode([], {}))
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")


def test_a_new_agent_takes_over(shim, agent, server, make_plugin, directory, closing):
    """And the daemon's restart is none of its business."""
    server.wait_watched("nodes")
    agent.kill()
    shim.wait_log("the agent is gone")
    agent.start()
    shim.kill()
    shim.start()
    lose_plugin(shim, make_plugin)
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")


def test_two_agents_at_once_are_told(shim, directory, closing, server):
    """As from a package and a DaemonSet. One that takes the place of another for good is no reason."""
    paths = [directory / name for name in ("one", "other")]
    agents = []
    for path in paths:
        path.mkdir()
        one = closing(Agent(path, server.kubeconfig(path / "kubelet.conf", NODE)))
        one.settings["socket"] = str(directory / "run" / "agent.sock")
        one.start()
        agents.append(one)
        shim.wait_log(f"(process {one.pid})")
    first, second = agents
    shim.wait_log("two agents take over from each other, processes")
    wait_until(lambda: all(str(one.pid) in troubles(shim).get("cluster", "") for one in agents), "it is shown")
    second.stop()
    wait_until(lambda: "cluster" not in troubles(shim), "all is well, after a while")
    assert shim.log().count("two agents take over") == 1


def test_no_container_waits_for_the_cluster(shim, agent, server, make_plugin, make_client):
    """The API server answers nothing, the agent stands still, then there is none."""
    server.wait_watched("nodes")
    server.fault(Fault(silence=True), times=None)
    server.end_watches()
    make_plugin(shim, GPU, ["g0", "g1", "g2"])
    shim.wait_log("\"vendor.com_gpu.sock\" is active")
    client = make_client(shim)
    client.run(client.run_pod("one"), "main", annotations=by_token(GPU, "g0"))
    os.kill(agent.pid, signal.SIGSTOP)
    client.run(client.run_pod("two"), "main", annotations=by_token(GPU, "g1"))
    agent.kill()
    client.run(client.run_pod("three"), "main", annotations=by_token(GPU, "g2"))


def owed(shim):
    """What the next daemon is to tell the node."""
    path = shim.state_dir / "removed-resources"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_the_node_was_not_told_the_next_daemon_tells(shim, directory, closing, server, make_plugin, end):
    lose_plugin(shim, make_plugin)
    wait_until(lambda: owed(shim) == [GPU], "it is kept")
    getattr(shim, end)()
    shim.start()
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")
    wait_until(lambda: owed(shim) == [], "nothing is left to be told")


def test_a_plugin_that_is_back_after_a_restart_ends_it(shim, directory, closing, server, make_plugin):
    lose_plugin(shim, make_plugin)
    wait_until(lambda: owed(shim) == [GPU], "it is kept")
    shim.kill()
    shim.start()
    make_plugin(shim, GPU, ["g0", "g1"])
    wait_until(lambda: owed(shim) == [], "there is nothing to be told")
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    other = make_plugin(shim, "vendor.com/other", ["x"])
    shim.wait_log("\"vendor.com_other.sock\" is active")
    other.stop()
    shim.wait_log("resource vendor.com/other: the node's capacity of it is 0")
    assert capacity(server) == "2"


def test_a_plugin_that_is_back_stops_what_is_under_way(shim, agent, server, make_plugin):
    """The agent is told, and gives up its request."""
    server.wait_watched("nodes")
    server.fault(Fault(silence=True), path=f"/api/v1/nodes/{NODE}", method="GET", times=1)
    lose_plugin(shim, make_plugin)
    server.wait_asked(f"/api/v1/nodes/{NODE}")
    make_plugin(shim, GPU, ["g0", "g1"])
    wait_until(lambda: [one.path for one in server.cut_off] == [f"/api/v1/nodes/{NODE}"], "it is given up")
    assert (capacity(server), owed(shim), server.asked(method="PATCH")) == ("2", [], [])


def test_what_is_refused_is_tried_by_the_next_agent(shim, agent, server, make_plugin):
    """Which may have other credentials; this one tries each five minutes."""
    server.fault(Fault(status=403), method="PATCH", times=1)
    lose_plugin(shim, make_plugin)
    shim.wait_log("is refused: HTTP status 403")
    assert capacity(server) == "2"
    agent.kill()
    agent.start()
    wait_until(lambda: capacity(server) == "0", "the node's capacity is 0")


@pytest.mark.parametrize("events_after, expected", [("300ms", True), ("0s", False)], ids=["on", "off"])
def test_a_refusal_that_lasts_is_told_on_its_pod(runtime, directory, make_shim, closing, server, make_plugin, make_client,
                                                 events_after, expected):
    """Once, and counted on; another container's is another, and what it gets ends it."""
    shim = make_shim(plugins={"hold": "100ms", "grace": "1h"},
                     cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock"),
                              "events_after": events_after})
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    shim.wait_log("\"vendor.com_gpu.sock\" is active")
    plugin.stop()
    shim.wait_log("stop grace period ends")
    client = make_client(shim)
    sandbox = client.run_pod("pod", uid="uid-1")

    def refuse():
        with refused(grpc.StatusCode.UNAVAILABLE, GPU):
            client.create(sandbox, "main", annotations=by_token(GPU, "g0"))

    def events():
        return list(server.objects["events"].values())

    refuse()
    if not expected:
        for _ in range(5):
            refuse()
        assert events() == []
        return
    wait_until(lambda: refuse() or events(), "an event is made")
    (one,) = events()
    assert one["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "pod",
                                     "uid": "uid-1"}
    assert (one["type"], one["reason"]) == ("Warning", "PluginAway")
    assert one["message"].startswith("container \"main\" has been refused for 0m0") and GPU in one["message"]
    for _ in range(5):
        refuse()
    assert [one["count"] for one in events()] == [1]  # not again so soon


def test_rules_of_taints_come_to_the_daemon(shim, directory, closing, server):
    """By credentials that may see them; one that is for every device is not followed."""
    taint = {"key": "vendor.com/hot", "effect": "NoExecute"}
    server.put("devicetaintrules", {"metadata": {"name": "all"}, "spec": {"deviceSelector": {}, "taint": taint}})
    server.put("devicetaintrules", {"metadata": {"name": "none"}, "spec": {"taint": taint}})
    server.tokens = {"t": "system:serviceaccount:kube-system:shim"}
    path = directory / "account.conf"
    path.write_text(json.dumps(server.config({"token": "t"})))
    closing(Agent(directory, path, node_name=NODE)).start()
    shim.wait_log("the DeviceTaintRule all is not followed")
    assert "DeviceTaintRule none" not in shim.log()


def slice_of(name, driver, device):
    return {"metadata": {"name": name, "uid": f"uid-{name}"},
            "spec": {"nodeName": NODE, "driver": driver, "pool": {"name": "node-1", "generation": 1},
                     "devices": [{"name": device}]}}


def test_what_is_known_outlives_the_agent(shim, agent, server, directory, closing):
    """The next one, which has listed nothing yet, takes nothing back; what it has not when all is listed is no more."""
    one = slice_of("s1", "gpu.example.com", "g0")
    one["spec"]["devices"][0]["taints"] = [{"key": "example.com/broken", "effect": "NoExecute"}]
    server.put("resourceslices", one)

    def tainted():
        return [one["id"] for one in ctl_json(shim, "taints")["items"]]

    wait_until(lambda: tainted() == ["node-1/g0"], "the taint is known")
    agent.kill()
    shim.wait_log("the agent is gone")
    following = closing(ScriptedAgent(directory / "run" / "agent.sock"))
    following.start()
    report = agent_feed.ReportRequest(whole=True, state=agent_feed.State(node_name=NODE))
    following.tell_bytes(report.SerializeToString())
    assert tainted() == ["node-1/g0"]
    report = agent_feed.ReportRequest(state=agent_feed.State(node_name=NODE, complete=[agent_feed.SLICE]))
    following.tell_bytes(report.SerializeToString())
    assert tainted() == []


def test_what_is_this_nodes_alone_is_unprepared_without_its_driver(shim, directory, closing, agent, server):
    """And told to it as soon as it is back. A claim of what is not in a slice of this node is waited for."""
    server.put("resourceslices", slice_of("s1", "gpu.example.com", "c-1-0"))
    server.wait_watched("resourceslices")
    driver = closing(Driver(shim.registry_dir, directory / "plugins", "gpu.example.com"))
    driver.start()
    driver.wait_registered()
    feed = closing(Feed(shim.feed))
    assert not any(one.code for one in feed.claims("PrepareClaims", "gpu.example.com", ["c-1", "c-2"]))
    driver.stop()
    shim.wait_log("sock is lost")
    assert not feed.claims("UnprepareClaims", "gpu.example.com", ["c-1"])[0].code
    assert sorted(driver.prepared) == ["c-1", "c-2"]
    driver.start()
    wait_until(lambda: sorted(driver.prepared) == ["c-2"], "what was put off is done")
