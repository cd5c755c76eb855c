"""Taints of the devices of DRA drivers, with an agent: what the cluster's own controller evicts is left to it."""

import time

import pytest

from api_pods import Budget
from ctl import ctl_json
from kubelet_drivers import claim
from waiting import wait_until

NODE = "node-1"  # of the fixtures
GPU = "gpu.example.com"
BROKEN = "example.com/broken"
PODS = "/api/v1/namespaces/default/pods"
EXTENDED = {"resource.kubernetes.io/extended-resource-claim": "true"}
FOR_EVER = [{"key": BROKEN, "operator": "Exists", "effect": "NoExecute"}]


@pytest.fixture
def shim(runtime, directory, make_shim):
    one = make_shim(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})
    one.wait_control()
    return one


@pytest.fixture
def user(client, kubelet, server, bridge, agent, make_driver):
    """user(name, **metadata of its claim): a pod that has reserved the claim of its name, which is prepared."""
    make_driver()
    kubelet.wait_registered(GPU)
    server.wait_watched("resourceslices")

    def make(name, tolerations=(), **metadata):
        pod = client.run_pod(name)
        result = {"driver": GPU, "pool": NODE, "device": f"claim-{name}-0", "request": "gpu", "tolerations": list(tolerations)}
        server.put("resourceclaims", {
            "metadata": {"name": f"claim-{name}", "namespace": "default", "uid": name, **metadata}, "spec": {},
            "status": {"reservedFor": [{"resource": "pods", "name": name, "uid": pod.uid}],
                       "allocation": {"devices": {"results": [result]}}}})
        server.put("pods", {
            "metadata": {"name": name, "namespace": "default", "uid": pod.uid}, "status": {"phase": "Running"},
            "spec": {"nodeName": NODE, "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{name}"}]}})
        assert kubelet.prepare(GPU, [claim(name)])[name].devices
        return pod

    return make


def publish(server, taints, *names):
    """The only slice of the driver: the devices of these claims have these taints."""
    server.put("resourceslices", {"metadata": {"name": "slice"}, "spec": {
        "driver": GPU, "nodeName": NODE, "pool": {"name": NODE, "generation": 1},
        "devices": [{"name": f"claim-{name}-0", "taints": taints} for name in names]}})


def is_deleted(server, name):
    return "deletionTimestamp" in server.get("pods", name, "default")["metadata"]


def evictions(server, name):
    return len(server.asked(f"{PODS}/{name}/eviction", "POST"))


def test_what_the_cluster_does_not_see_is_evicted_here(shim, server, user):
    """A claim that stands for extended resources; not one of a pod's own, and none that tolerates it. Once, over restarts."""
    user("plain")
    user("tolerant", FOR_EVER, annotations=EXTENDED)
    user("extended", annotations=EXTENDED)
    publish(server, [{"key": BROKEN, "effect": "NoExecute"}], "plain", "tolerant", "extended")
    wait_until(lambda: is_deleted(server, "extended"), "it is evicted")
    shim.kill()
    shim.start()
    shim.wait_control()
    user("another", annotations=EXTENDED)
    publish(server, [{"key": BROKEN, "effect": "NoExecute"}], "plain", "tolerant", "extended", "another")
    wait_until(lambda: is_deleted(server, "another"), "so is another, after all that is to be told was")
    assert [evictions(server, name) for name in ("plain", "tolerant", "extended")] == [0, 0, 1]
    assert "spared" not in [one["kind"] for one in ctl_json(shim, "events", "--pod", "extended")["items"]]


def test_what_is_lifted_while_no_agent_is_there_evicts_nobody(shim, server, user, agent):
    """The next one is not told to evict the pod before it has told what is tainted now."""
    user("extended", annotations=EXTENDED)
    server.budgets.append(Budget({}, allowed=0))
    publish(server, [{"key": BROKEN, "effect": "NoExecute"}], "extended")
    server.wait_asked(f"{PODS}/extended/eviction", "POST")
    agent.kill()
    shim.wait_log("the agent is gone")
    asked = evictions(server, "extended")
    publish(server, [], "extended")
    server.budgets.clear()
    agent.start()
    wait_until(lambda: "spared" in [one["kind"] for one in ctl_json(shim, "events", "--pod", "extended")["items"]],
               "it need not go any more")
    assert evictions(server, "extended") == asked and not is_deleted(server, "extended")


@pytest.mark.parametrize("ahead_s", [-7200, 7200])
def test_a_node_whose_clock_is_not_the_servers(shim, server, user, ahead_s):
    """How long a taint is tolerated counts from when it was added, by the server's clock, not by the node's: which may show
    anything when the machine starts."""
    server.ahead_s = ahead_s
    added = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + ahead_s - 600))
    user("patient", [{"key": BROKEN, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}],
         annotations=EXTENDED)
    user("other", annotations=EXTENDED)
    publish(server, [{"key": BROKEN, "effect": "NoExecute", "timeAdded": added}], "patient", "other")
    wait_until(lambda: is_deleted(server, "other"), "the other one is evicted")
    [waits] = [one for one in ctl_json(shim, "endings")["items"] if one["name"] == "patient"]
    assert 1000 < waits["dueInSeconds"] <= 3001
    assert not is_deleted(server, "patient")


def test_who_tolerates_it_by_his_claim_stays_over_a_restart(shim, server, user, agent):
    """The operator's taint is known before the cluster has told of the claim: nobody goes for it until then."""
    user("tolerant", FOR_EVER)
    user("other")
    ctl_json(shim, "taint", GPU, f"{NODE}/claim-tolerant-0", f"{BROKEN}:NoExecute")
    agent.kill()
    shim.kill()
    shim.start()
    shim.wait_control()
    agent.start()
    ctl_json(shim, "taint", GPU, f"{NODE}/claim-other-0", f"{BROKEN}:NoExecute")
    wait_until(lambda: is_deleted(server, "other"), "the other one is evicted")
    assert evictions(server, "tolerant") == 0 and not is_deleted(server, "tolerant")
    agent.kill()
    shim.kill()
    shim.start()
    shim.wait_control()
    ctl_json(shim, "untaint", GPU, f"{NODE}/claim-other-0", BROKEN)
    agent.start()
    wait_until(lambda: "spared" in [one["kind"] for one in ctl_json(shim, "events", "--pod", "other")["items"]],
               "nobody waits for rules that the agent may not see")
