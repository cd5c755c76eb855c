"""DRA with an agent: a driver that is away stays with the kubelet, and its slices are wiped by us."""

import os
import signal
import time

import pytest

from agent_process import Agent
from api_server import Fault
from ctl import ctl_json
from dra_driver import HEALTH, V1
from kubelet_drivers import claim
from protos import dra as dra_messages
from protos import dra_health
from waiting import wait_until

NODE = "node-1"  # of the fixtures
GPU, NIC = "gpu.example.com", "nic.example.com"


@pytest.fixture
def dra():
    """Of the shim's settings."""
    return {"wipe_after": "200ms"}


@pytest.fixture
def shim(runtime, directory, make_shim, dra):
    return make_shim(dra=dra, cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})


def publish(server, *drivers, node=NODE):
    for driver in drivers:
        name = f"{node}-{driver}"
        server.put("resourceslices", {"metadata": {"name": name}, "spec": {
            "driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1}, "devices": [{"name": "dev-0"}]}})


def slices(server):
    return sorted(name for _namespace, name in list(server.objects["resourceslices"]))


def reached(shim):
    """From here on drivers that go stay with the kubelet."""
    shim.wait_log("cluster: the API server can be told")


def wiped(shim, name=GPU, count=1):
    shim.wait_log(f"DRA driver {name}: its ResourceSlices of this node are gone", count)


def test_a_driver_that_is_away_stays_with_the_kubelet(shim, agent, bridge, kubelet, server, make_driver):
    """Its slices of this node go, once; what others have stays."""
    publish(server, GPU, NIC)
    publish(server, GPU, node="node-2")
    driver = make_driver()
    make_driver(NIC)
    instance = kubelet.wait_registered(GPU)
    reached(shim)
    driver.stop()
    wiped(shim)
    assert slices(server) == [f"{NODE}-{NIC}", f"node-2-{GPU}"]
    assert instance.losses() == 0 and kubelet.deregistered == []
    # One that was moved to the kubelet publishes by itself: it is not wiped twice, nor after a restart.
    publish(server, GPU)
    shim.terminate()  # killed, it may not have stored yet that they were wiped
    shim.start()
    shim.wait_log("cluster: agent", 2)
    publish(server, "other.example.com")
    other = make_driver("other.example.com")
    other.stop()
    wiped(shim, "other.example.com")
    assert f"{NODE}-{GPU}" in slices(server)
    driver.start()
    driver.wait_registered()
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    driver.stop()
    wiped(shim, count=2)


@pytest.mark.parametrize("dra", [{"wipe_after": "1h"}])
def test_health_is_over_with_its_driver(shim, agent, bridge, kubelet, server, make_driver, dra):
    """The kubelet forgets it when a driver's stream ends; here the stream goes on, and it is told so. Once: neither
    a daemon nor a bridge that is started anew says it again, nor is it said to a kubelet that comes later."""
    driver = make_driver(services=[V1, HEALTH])
    instance = kubelet.wait_registered(GPU)
    reached(shim)
    driver.say_health("gpu-0", "fine", health=dra_health.HEALTHY)
    driver.say_health("gpu-1", "too hot", health=dra_health.UNHEALTHY)
    instance.wait_said(["fine", "too hot"])
    driver.stop()
    over = "its driver is away, or says no more of its health"
    instance.wait_said(["fine", "too hot", over, over])
    assert {(one.device.pool_name, one.device.device_name, one.health) for one in instance.said[2:]} == {
        ("node-1", "gpu-0", dra_health.UNKNOWN), ("node-1", "gpu-1", dra_health.UNKNOWN)}
    bridge.kill()
    bridge.start()
    shim.kill()
    shim.start()
    driver.health = {}
    driver.start()
    driver.say_health("gpu-0", "fine again", health=dra_health.HEALTHY)
    instance.wait_said(["fine", "too hot", over, over, "fine again"])
    assert instance.losses() == 0
    kubelet.stop()
    kubelet.start()
    kubelet.wait_registered(GPU).wait_said(["fine again"])


def test_health_is_over_with_its_stream(shim, bridge, kubelet, make_driver):
    """As the kubelet forgets it; what the driver says on its next one counts."""
    driver = make_driver(services=[V1, HEALTH])
    instance = kubelet.wait_registered(GPU)
    driver.say_health("gpu-0", "fine", health=dra_health.HEALTHY)
    instance.wait_said(["fine"])
    driver.end_health()
    wait_until(lambda: len(instance.said) == 3, "it is over, and said anew")
    assert [one.health for one in instance.said] == [dra_health.HEALTHY, dra_health.UNKNOWN, dra_health.HEALTHY]


def test_a_call_waits_for_its_driver(shim, agent, bridge, kubelet, server, make_driver):
    """In place of an error, after which the kubelet would try again more than a minute later."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    reached(shim)
    driver.stop()
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    wiped(shim)
    driver.start()
    assert asked.result().claims["c-1"].devices


@pytest.mark.parametrize("dra", [{"wipe_after": "1h"}])
@pytest.mark.parametrize("where", [{"allNodes": True}, {"nodeName": "node-2"}, {"nodeSelector": {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}]}}])
def test_devices_of_more_nodes_are_never_owed(shim, agent, bridge, kubelet, server, make_driver, dra, where):
    """Without its driver a claim of them is not unprepared, nor one that has one of them among others: the answer would
    give it free for other nodes. One of this node's alone is, at once."""
    for pool, place in ((NODE, {"nodeName": NODE}), ("fabric", where)):
        server.put("resourceslices", {"metadata": {"name": pool}, "spec": {
            "driver": GPU, "pool": {"name": pool, "generation": 1}, "devices": [{"name": "dev-0"}], **place}})
    driver = make_driver()
    pools = {"c-1": [NODE], "c-2": ["fabric"], "c-3": [NODE, "fabric"]}
    driver.on_prepare = lambda one: [dra_messages.Device(pool_name=pool, device_name="dev-0")
                                     for pool in pools[one.uid]]
    kubelet.wait_registered(GPU)
    server.wait_watched("resourceslices")
    kubelet.prepare(GPU, [claim(uid) for uid in pools])
    driver.stop()
    waiting = [kubelet.begin(GPU, "NodeUnprepareResources", [claim(uid)]) for uid in ("c-2", "c-3")]
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error
    assert not any(call.done() for call in waiting) and sorted(driver.prepared) == ["c-1", "c-2", "c-3"]
    driver.start()
    for call in waiting:
        assert [one.error for one in call.result().claims.values()] == [""]
    wait_until(lambda: driver.prepared == {}, "all are unprepared")


@pytest.mark.parametrize("dra", [{"wipe_after": "1s"}])
def test_slices_are_not_wiped_too_early(shim, agent, bridge, kubelet, server, make_driver, dra):
    publish(server, GPU)
    driver = make_driver()
    kubelet.wait_registered(GPU)
    reached(shim)
    before = time.monotonic()
    driver.stop()
    wiped(shim)
    (wipe,) = server.asked("/apis/resource.k8s.io/v1/resourceslices", "DELETE")
    assert wipe.at >= before + 1


def test_without_an_agent_it_is_the_kubelet_s(shim, bridge, kubelet, server, make_driver, directory, closing):
    publish(server, GPU)
    driver = make_driver()
    kubelet.wait_registered(GPU)
    driver.stop()
    kubelet.wait_gone(GPU)
    assert slices(server) == [f"{NODE}-{GPU}"]
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    wiped(shim)
    kubelet.wait_registered(GPU)


def test_an_api_server_that_refuses_is_asked_on(shim, agent, bridge, kubelet, server, make_driver):
    publish(server, GPU)
    driver = make_driver()
    kubelet.wait_registered(GPU)
    reached(shim)
    path = "/apis/resource.k8s.io/v1/resourceslices"
    server.fault(Fault(status=500), path=path, method="DELETE", times=1)
    driver.stop()
    wiped(shim)
    assert slices(server) == []


def test_who_may_not_wipe_leaves_it_to_the_kubelet(shim, agent, bridge, kubelet, server, make_driver):
    """Or nobody would, and pods would be scheduled by what nobody stands for."""
    publish(server, GPU)
    driver = make_driver()
    kubelet.wait_registered(GPU)
    reached(shim)
    server.fault(Fault(status=403), path="/apis/resource.k8s.io/v1/resourceslices", method="DELETE", times=None)
    driver.stop()
    kubelet.wait_gone(GPU)
    driver.start()
    assert kubelet.wait_registered(GPU)


@pytest.mark.parametrize("dra", [{"wipe_after": "1500ms", "mask": "1s"}])  # the agent is at work before the mask ends
def test_an_agent_that_is_started_anew_takes_no_driver_away(shim, agent, bridge, kubelet, server, make_driver, dra):
    driver = make_driver()
    instance = kubelet.wait_registered(GPU)
    reached(shim)
    driver.stop()
    wiped(shim)
    agent.kill()
    shim.wait_log("cluster: the agent is gone")
    agent.start()
    shim.wait_log("cluster: agent", 2)
    driver.start()
    driver.wait_registered()
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert instance.losses() == 0 and kubelet.deregistered == []


@pytest.mark.parametrize("dra", [{"wipe_after": "1h"}])
def test_one_that_is_back_in_time_is_not_wiped(shim, agent, bridge, kubelet, server, make_driver, dra):
    publish(server, GPU)
    driver = make_driver()
    kubelet.wait_registered(GPU)
    reached(shim)
    for _ in range(3):
        driver.stop()
        driver.start()
        driver.wait_registered()
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert slices(server) == [f"{NODE}-{GPU}"]


@pytest.mark.parametrize("dra", [{"wipe_after": "1h"}])
def test_one_that_does_not_come_back_after_a_restart_is_wiped(shim, agent, bridge, kubelet, server, make_driver, dra):
    """It went while there was no daemon; one that is there by then is not."""
    publish(server, GPU, NIC)
    driver, other = make_driver(), make_driver(NIC)
    for name in (GPU, NIC):
        kubelet.wait_registered(name)
    reached(shim)
    shim.kill()
    driver.stop()
    other.registrar.statuses.clear()
    shim.start()
    other.wait_registered()
    wait_until(lambda: [one["state"] for one in ctl_json(shim, "drivers", NIC)["items"]] == ["connected"], "it is here")
    assert slices(server) == [f"{NODE}-{GPU}", f"{NODE}-{NIC}"]
    shim.dra["wipe_after"] = "1ms"
    shim.config_path.write_text(shim.config_text())
    os.kill(shim.pid, signal.SIGHUP)
    wiped(shim)
    assert slices(server) == [f"{NODE}-{NIC}"]


@pytest.mark.parametrize("dra", [{"wipe_after": "1h", "wipe_at_start": True}])
def test_all_are_wiped_at_the_start(shim, server, directory, closing, dra):
    publish(server, GPU, NIC)
    publish(server, GPU, node="node-2")
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    wait_until(lambda: slices(server) == [f"node-2-{GPU}"], "those of this node are gone")


def allocate(server, uid, device):
    """As the scheduler does, for a pod of this node."""
    results = [{"driver": GPU, "pool": NODE, "device": device, "request": "gpu"}]
    server.put("resourceclaims", {"metadata": {"name": f"claim-{uid}", "namespace": "default", "uid": uid}, "status": {
        "allocation": {"devices": {"results": results}}}})
    server.put("pods", {"metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": f"pod-{uid}"}, "spec": {
        "nodeName": NODE, "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{uid}"}]}, "status": {}})


def ask_again(kubelet, *uids):
    return kubelet.begin(GPU, "NodePrepareResources", [claim(uid) for uid in uids])


def test_what_a_driver_answered_before_counts_while_it_is_away(shim, agent, bridge, kubelet, server, make_driver):
    """Where the settings say so, and the agent that the same device is allocated still; else the driver is waited
    for."""
    publish(server, GPU)
    driver = make_driver()
    kubelet.wait_registered(GPU)
    reached(shim)
    for uid in ("c-1", "c-2", "c-3"):
        allocate(server, uid, f"claim-{uid}-0")
    first = kubelet.prepare(GPU, [claim("c-1"), claim("c-2"), claim("c-3")])
    driver.stop()
    wiped(shim)
    waits = ask_again(kubelet, "c-3")  # it is not set yet
    shim.drivers = [{"name": GPU, "cached_prepare": True}]
    shim.config_path.write_text(shim.config_text())
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log("reload: changed: [[driver]]; needs a restart: nothing")
    assert ask_again(kubelet, "c-1").result().claims["c-1"] == first["c-1"]
    allocate(server, "c-2", "another-0")
    others = ask_again(kubelet, "c-2")
    assert ask_again(kubelet, "c-1").result().claims["c-1"] == first["c-1"]
    assert not others.done() and sorted(driver.calls_of("NodePrepareResources")) == ["c-1", "c-2", "c-3"]
    driver.start()
    assert others.result().claims["c-2"].devices and waits.result().claims["c-3"].devices
