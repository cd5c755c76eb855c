"""Who is evicted for taints, with an agent: each holder for itself, as its own disruption budgets allow."""

import collections

import pytest

import kubelet_checkpoint
from api_pods import Budget
from asking import by_token
from ctl import ctl_json
from metrics import scrape
from waiting import wait_until

NODE = "node-1"  # of the fixtures
GPU = "vendor.com/gpu"
BROKEN = "example.com/broken"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture
def shim(runtime, directory, make_shim):
    """All may go within a minute; a device of vendor.com/gpu may have several holders."""
    one = make_shim(start=False, plugins={"evict_per_minute": 600}, metrics={"listen": str(directory / "metrics.sock")},
                    resources=[{"name": GPU, "exclusive": False}],
                    cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})
    one.kubelet_plugin_dir.mkdir()
    one.start()
    one.wait_control()
    return one


@pytest.fixture
def node(shim, make_plugin, client, agent):
    make_plugin(shim, GPU, ["g0", "g1"])
    shim.wait_log("cluster: agent")
    return shim


def put(server, name, uid):
    server.put("pods", {"metadata": {"namespace": "default", "name": name, "uid": uid, "labels": {"app": name}},
                        "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 30}, "status": {"phase": "Running"}})


def holder(client, server, name, device="g0"):
    """A pod with a container that runs with the device, which the API server knows, too."""
    pod = client.run_pod(name)
    client.run(pod, "main", annotations=by_token(GPU, device))
    put(server, name, pod.uid)
    return pod


def is_deleted(server, name):
    return "deletionTimestamp" in server.get("pods", name, "default")["metadata"]


def evictions(server):
    """{pod: how often it was asked for}"""
    return collections.Counter(one.path[len(PODS) + 1:-len("/eviction")]
                               for one in server.asked(PODS, "POST") if one.path.endswith("/eviction"))


def told(server, name):
    """What Events of our reason say of a pod, by their messages' beginning."""
    return {one["message"].partition(":")[0]: one["count"] for one in server.objects["events"].values()
            if one["involvedObject"]["name"] == name and one["reason"] == "CRIDeviceShimEviction"}


def ended(shim):
    """{pod: how it has ended}, of each event once."""
    return [(one["pod"], one["reason"], one["times"]) for one in ctl_json(shim, "events")["items"]
            if one["kind"] == "ended"]


def taint(shim, device="g0"):
    ctl_json(shim, "taint", GPU, device, f"{BROKEN}:NoExecute", "--reason", "smoke")


def test_all_holders_of_a_shared_device_go_but_stale_ones(node, client, server):
    """Of 256, each third is stale (only the kubelet's checkpoint has it), is missing at the API server, or is another
    pod by now; one is under a budget of zero. All others are evicted, each once."""
    names = [f"web-{number}" for number in range(256)]
    stale, missing, anew = names[0::9], names[3::9], names[6::9]
    go = [name for number, name in enumerate(names) if number % 3]
    for name in names:
        if name in stale:
            continue
        pod = client.run_pod(name)
        client.run(pod, "main", annotations=by_token(GPU, "g0"))
        if name not in missing:
            put(server, name, f"new-{name}" if name in anew else pod.uid)
    kubelet_checkpoint.write(node.kubelet_plugin_dir, kubelet_checkpoint.encode(
        [kubelet_checkpoint.Entry(f"uid-of-{name}", "main", GPU, {-1: ["g0"]}, b"") for name in stale], {GPU: ["g0"]}))
    bystander = holder(client, server, "bystander", "g1")
    held, *free = go
    server.budgets.append(Budget({"app": held}, allowed=0))
    taint(node)
    wait_until(lambda: all(is_deleted(server, name) for name in free), "all others are evicted")
    wait_until(lambda: len(ended(node)) == len(free) + len(missing) + len(anew), "and those that are not there are over")
    asked = evictions(server)
    assert asked.pop(held) >= 1 and not is_deleted(server, held)
    assert asked == {name: 1 for name in free}
    assert not any(is_deleted(server, name) for name in anew + ["bystander"])
    assert sorted(ended(node)) == sorted((name, "evicted", 1) for name in free + missing + anew)
    wait_until(lambda: scrape(node.metrics["listen"])["taint_holders_stale"].value() == len(stale), "those are passed over")
    figures = scrape(node.metrics["listen"])
    assert figures["taint_evictions"].value(state="asked") == len(go) + len(missing) + len(anew)
    assert figures["taint_evictions"].value(state="waiting") == 0
    # The last one goes once its budget allows it.
    server.budgets[:] = [Budget({"app": held}, allowed=1)]
    wait_until(lambda: is_deleted(server, held), "it is evicted, too")
    client.create(bystander, "again", attempt=1)


def test_it_is_marked_and_told_of(node, client, server):
    """The condition, and an Event, in the words of upstream's controller, with a reason of ours."""
    holder(client, server, "web")
    taint(node)
    wait_until(lambda: is_deleted(server, "web"), "it is evicted")

    def marked():
        [one] = server.get("pods", "web", "default")["status"]["conditions"]
        return one["reason"] == "DeletionByCRIDeviceShim" and one

    # The API server has marked it with its own reason first.
    condition = wait_until(marked, "our reason is told")
    why = f"device g0 of {GPU} is tainted {BROKEN}:NoExecute: smoke"
    assert (condition["type"], condition["status"], condition["message"]) == (
        "DisruptionTarget", "True", why)
    [event] = [one.json() for one in server.wait_asked(EVENTS, "POST")]
    assert (event["reason"], event["type"], event["message"]) == (
        "CRIDeviceShimEviction", "Normal", f"Marking for deletion: {why}")
    assert event["involvedObject"]["name"] == "web"


def test_an_untaint_cancels_it(node, client, server):
    """Of one that its budget does not let go: its Event says so, and nobody asks for it any more."""
    pod, other = holder(client, server, "web"), holder(client, server, "other", "g1")
    server.budgets += [Budget({"app": "web"}, allowed=0), Budget({"app": "other"}, allowed=0)]
    taint(node)
    server.wait_asked(f"{PODS}/web/eviction", "POST")
    ctl_json(node, "untaint", GPU, "g0", BROKEN)
    wait_until(lambda: "Cancelling deletion" in told(server, "web"), "it is told")
    server.budgets.clear()
    taint(node, "g1")  # the agent has heard of the other before
    wait_until(lambda: is_deleted(server, "other"), "another goes")
    assert not is_deleted(server, "web")
    assert [(one["kind"], one["pod"]) for one in ctl_json(node, "events")["items"] if one["kind"] == "spared"] == [
        ("spared", "web")]
    figures = scrape(node.metrics["listen"])
    assert figures["taint_evictions_taken_back_total"].value() == 1
    client.create(pod, "again", attempt=1, annotations=by_token(GPU, "g0"))
    assert other.uid in {one.json()["deleteOptions"]["preconditions"]["uid"]
                         for one in server.asked(f"{PODS}/other/eviction", "POST")}


def test_over_restarts_each_goes_once(node, client, server, agent):
    """Of daemon, agent and API server, while budgets are in the way: each that is let go used one up once, and is told
    once."""
    names = [f"web-{number}" for number in range(6)]
    for name in names:
        holder(client, server, name)
    budgets = [Budget({"app": name}, allowed=0) for name in names]
    server.budgets += budgets
    taint(node)
    wait_until(lambda: len(evictions(server)) == len(names), "all are asked for")
    for number, restart in enumerate((node, agent, server, node)):
        budgets[number].allowed = 1
        if restart is server:
            server.stop()
        else:
            restart.kill()
        restart.start()
    node.wait_control()
    wait_until(lambda: len(ended(node)) == 4, "those have gone")
    for budget in budgets[4:]:
        budget.allowed = 1
    wait_until(lambda: len(ended(node)) == len(names), "all have")
    assert sorted(ended(node)) == [(name, "evicted", 1) for name in names]
    assert [budget.allowed for budget in budgets] == [0] * len(names)
    assert len([one for one in server.asked(PODS, "PATCH") if one.path.endswith("/status")]) == len(names)
