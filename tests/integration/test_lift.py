"""Devices of plugins that are published as those of a DRA driver: daemon, agent and a scripted API server."""

import grpc
import pytest

from agent_process import Agent
from api_server import Fault
from asking import by_annotation, by_token, refused
from ctl import ctl, ctl_json
from dra_node import DraNode
from kubelet_drivers import claim
from lift_scheduler import LiftScheduler, Request, Unallocatable
from protos import cri
from telling import tell
from waiting import wait_until

NODE = "node-1"  # of the fixtures
DRIVER = "plugins.cri-device-shim"
GPU, NIC = "vendor.com/gpu", "vendor.com/NIC"
POOL = f"{NODE}/{GPU}"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
AWAY, CORDONED, HELD, UNHEALTHY = (f"devices.cri-device-shim/{one}" for one in ("plugin-away", "cordoned", "held", "unhealthy"))
ATTRIBUTES = [{"device": "g1", "name": "model", "value": "small"}, {"name": "model", "value": "large"},
              {"device": "g1", "name": "firmware", "value": "1.10.0-rc.1+b7", "version": True},
              {"device": "g*", "name": "memory", "value": 80}]


@pytest.fixture
def make_lifting(directory, make_shim, runtime):
    def make(resources=None, mask="300ms", **settings):
        return make_shim(
            annotations={"enabled": True, "namespaces": ["*"]}, cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")}, bridge={"mask": mask},
            plugins={"grace": "1h"}, **settings,
            resources=[{"name": GPU, "dra": True, "attribute": ATTRIBUTES}] if resources is None else resources)

    return make


@pytest.fixture
def shim(make_lifting):
    return make_lifting()


def slices(server, driver=DRIVER):
    return [one["spec"] for one in list(server.objects["resourceslices"].values()) if one["spec"]["driver"] == driver]


def devices(server, pool=POOL):
    """{name: its taints' keys}, of those that count."""
    found = [one for one in slices(server) if one["pool"]["name"] == pool]
    newest = max((one["pool"]["generation"] for one in found), default=0)
    return {device["name"]: [taint["key"] for taint in device.get("taints", [])]
            for one in found if one["pool"]["generation"] == newest for device in one["devices"]}


def wait_devices(server, expected, pool=POOL):
    wait_until(lambda: devices(server, pool) == expected, f"{pool} has {expected}; it has {devices(server, pool)}")


def writes(server):
    return [one for one in server.requests if one.method != "GET" and one.path.startswith(SLICES)]


def test_what_a_plugin_lists_is_published(shim, server, agent, make_plugin):
    plugin = make_plugin(shim, GPU, ["g0", "g1", "GPU_2"], numa={"g1": 3})
    wait_until(lambda: len(devices(server)) == 3, "its devices are published")
    shim.wait_log(f"resource {GPU}: 3 devices are published as pool {POOL}")
    (one,) = slices(server)
    assert one["pool"] == {"name": POOL, "generation": 1, "resourceSliceCount": 1}
    said = {device["attributes"]["id"]["string"]: device for device in one["devices"]}
    assert said["g1"] == {"name": "g1", "attributes": {
        "resource": {"string": GPU}, "id": {"string": "g1"}, "numaNode": {"int": 3}, "model": {"string": "small"},
        "firmware": {"version": "1.10.0-rc.1+b7"}, "memory": {"int": 80}}}
    assert said["g0"]["attributes"]["model"] == {"string": "large"}
    assert said["GPU_2"]["name"].startswith("gpu-2--") and "memory" not in said["GPU_2"]["attributes"]
    strange = said["GPU_2"]["name"]

    plugin.set_devices({"g0": True, "g1": False, "GPU_2": True})
    wait_devices(server, {"g0": [], "g1": [UNHEALTHY], strange: []})
    plugin.set_devices(["g0", "g1", "GPU_2"])
    wait_devices(server, {"g0": [], "g1": [], strange: []})
    assert ctl(shim, "cordon", GPU, "g0").returncode == 0
    wait_devices(server, {"g0": [CORDONED], "g1": [], strange: []})
    assert ctl(shim, "uncordon", GPU, "g0").returncode == 0
    plugin.set_devices(["g0", "g1"])
    wait_devices(server, {"g0": [], "g1": []})
    assert {one["pool"]["generation"] for one in slices(server)} == {1}  # it is one slice's own

    plugin.stop()
    wait_devices(server, {"g0": [AWAY], "g1": [AWAY]})
    plugin.start()
    wait_devices(server, {"g0": [], "g1": []})
    plugin.stop()
    wait_devices(server, {"g0": [AWAY], "g1": [AWAY]})
    assert ctl(shim, "grace", "end", GPU).returncode == 0
    wait_until(lambda: slices(server) == [], "nothing is published of what is removed")


def test_it_stays_as_it_is_over_restarts(make_lifting, server, directory, closing, make_plugin):
    """Of daemon, agent and API server; a kubelet that starts deletes all slices of its node."""
    shim = make_lifting(mask="1h")  # however long its plugin takes to be back
    agent = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
    agent.start()
    make_plugin(shim, GPU, ["g0", "g1"])
    wait_devices(server, {"g0": [], "g1": []})
    lists = len(server.asked(SLICES, watch=False))
    shim.kill()
    shim.start()
    wait_until(lambda: len(server.asked(SLICES, watch=False)) > lists, "the next daemon has it looked at")
    agent.kill()
    agent.start()
    server.wait_watched("resourceslices")
    assert [one.method for one in writes(server)] == ["POST"]
    server.stop()
    server.start()
    server.wait_watched("resourceslices")
    for name in [name for _, name in server.objects["resourceslices"]]:
        server.remove("resourceslices", name)
    wait_devices(server, {"g0": [], "g1": []})


def test_many(shim, server, agent, make_plugin, request):
    """One that is tainted is one slice's; the others' are not touched."""
    names = [f"g{number}" for number in range(1000)]
    plugin = make_plugin(shim, GPU, names)
    wait_until(lambda: len(devices(server)) == 1000, "all are published")
    assert [len(one["devices"]) for one in slices(server)] == [64] * 15 + [40]
    before = len(server.requests)
    plugin.set_devices({**dict.fromkeys(names, True), "g500": False})
    wait_until(lambda: devices(server)["g500"] == [UNHEALTHY], "it is tainted")
    tell(request, f"a taint among 1000 devices: {len(server.requests) - before} requests")
    assert len(writes(server)) == 16 + 1


def published(shim, resource=GPU):
    """{id: (name, the slice's)} as people are told."""
    return {one["id"]: one["published"] and (one["published"]["name"], one["published"]["slice"])
            for one in ctl_json(shim, "devices", resource)["items"]}


def test_people_see_what_is_published(shim, server, agent, make_plugin):
    """And what is not, and why."""
    server.fault(Fault(status=403), path=SLICES, method="POST", times=None)
    names = [f"g{number}" for number in range(70)]
    make_plugin(shim, GPU, [*names, "GPU_2"])
    make_plugin(shim, NIC, ["n0"])
    wait_until(lambda: published(shim)["g0"] is not None, "it is to be published")
    assert (set(published(shim).values()), published(shim, NIC)) == (
        {(name, None) for name in names} | {(published(shim)["GPU_2"][0], None)}, {"n0": None})
    wait_until(lambda: "403" in (ctl_json(shim, "status")["published"][0]["trouble"] or ""), "the API server's word is told")
    said = ctl_json(shim, "status")
    (pool,) = said["published"]
    assert (pool["resource"], pool["pool"], pool["devices"], pool["leftOut"], pool["atApiServer"]) == (GPU, POOL, 71, 0, False)
    (trouble,) = [one for one in said["degraded"] if one["what"] == "cluster"]
    assert trouble["why"].startswith(f"resource {GPU} is not published: ") and "403" in trouble["why"]
    assert "not yet" in ctl(shim, "devices", GPU, "-o", "wide").stdout

    server.mend()
    agent.kill()  # the next may have other credentials: it is tried at once
    agent.start()
    wait_until(lambda: all(published(shim).values()) and all(one[1] for one in published(shim).values()), "all are published")
    wait_until(lambda: [(one["atApiServer"], one["trouble"]) for one in ctl_json(shim, "status")["published"]] == [(True, None)],
               "the API server has it as it is to be")
    assert not [one for one in ctl_json(shim, "status")["degraded"] if one["what"] == "cluster"]
    there = {(device["name"], one["metadata"]["name"]) for one in list(server.objects["resourceslices"].values())
             for device in one["spec"]["devices"]}
    assert set(published(shim).values()) == there and len(there) == 71

    server.fault(Fault(status=403), path=SLICES, method="POST", times=None)
    for _, name in list(server.objects["resourceslices"]):
        server.remove("resourceslices", name)
    wait_until(lambda: [(one["atApiServer"], "403" in (one["trouble"] or "")) for one in ctl_json(shim, "status")["published"]] == [(False, True)],
               "that others have deleted it is told, and why it is not there again")


def test_pools_that_are_refused_keep_no_other_from_being_published(make_lifting, server, closing, directory, make_plugin):
    """As by an admission policy that knows some of them: those are tried on, for ever."""
    bad = [f"bad.example.com/gpu-{number}" for number in range(6)]  # more than are ordered at once
    server.fault(Fault(status=403, of=b"bad.example.com"), path=SLICES, method="POST", times=None)
    shim = make_lifting([{"name": name, "dra": True} for name in [*bad, GPU]])
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    for name in bad:
        make_plugin(shim, name, ["g0"])
    wait_until(lambda: len(refused_pools(shim)) == len(bad), "all of them are refused")
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    wait_devices(server, {"g0": [], "g1": []})
    plugin.set_devices(["g0"])
    wait_devices(server, {"g0": []})
    assert refused_pools(shim) == set(bad)


def refused_pools(shim):
    return {one["resource"] for one in ctl_json(shim, "status")["published"] if "403" in (one["trouble"] or "")}


def test_what_is_lifted_no_more_is_taken_away(make_lifting, server, closing, directory, make_plugin):
    """By the settings; slices of other drivers stay."""
    shim = make_lifting([{"name": GPU, "dra": True}, {"name": NIC, "dra": True}])
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    make_plugin(shim, GPU, ["g0"])
    make_plugin(shim, NIC, ["n0"])
    make_plugin(shim, "vendor.com/other", ["x0"])
    wait_until(lambda: len(slices(server)) == 2, "both are published")
    wait_devices(server, {"g0": []})
    server.put("resourceslices", {"metadata": {"name": "foreign"}, "spec": {
        "driver": "gpu.example.com", "nodeName": NODE, "devices": [{"name": "a"}],
        "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1}}})
    shim.stop()
    shim.resources = [{"name": GPU, "dra": True}]
    shim.start()
    wait_until(lambda: len(slices(server)) == 1, "one is taken away")
    wait_devices(server, {"g0": []})
    assert len(slices(server, "gpu.example.com")) == 1


# ---- claims of them ----

@pytest.fixture
def node(shim, server, directory, closing):
    """With a kubelet and an agent; its `allocate` is the scheduler's stand-in."""
    one = DraNode(directory, shim, closing)
    agent = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE)))
    agent.start()
    one.agent = agent
    one.kubelet.wait_registered(DRIVER)
    return one


def select(server, **wanted):
    """As a scheduler would by CEL: untainted devices with these attributes."""
    return [device["name"] for one in slices(server) for device in one["devices"] if not device.get("taints")
            and all(device["attributes"].get(name) == value for name, value in wanted.items())]


def allocate(server, uid, *names, pool=POOL, request="gpu", **more):
    """These devices, to a claim that a pod of this node names."""
    results = [{"driver": DRIVER, "pool": pool, "device": name, "request": request, **more} for name in names]
    server.put("resourceclaims", {"metadata": {"name": f"claim-{uid}", "namespace": "default", "uid": uid}, "spec": {},
                                  "status": {"allocation": {"devices": {"results": results}}}})
    server.put("pods", {"metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": f"pod-{uid}"}, "status": {},
                        "spec": {"nodeName": NODE, "resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{uid}"}]}})


def prepare(kubelet, *uids):
    """The CDI names, as the kubelet gives them to a container."""
    answers = kubelet.prepare(DRIVER, [claim(uid) for uid in uids])
    assert not any(answer.error for answer in answers.values()), answers
    names = [cdi for uid in uids for device in answers[uid].devices for cdi in device.cdi_device_ids]
    return {"CDI_devices": [cri.CDIDevice(name=name) for name in names]}


def created(runtime):
    return runtime.calls_of("CreateContainer")[-1].parsed().config


def envs(config):
    return {one.key: one.value.decode() for one in config.envs}


def test_a_container_gets_what_its_claim_has(shim, server, node, runtime, make_plugin):
    """Picked by attributes; nobody has asked the plugin before, and the kubelet is shown no such resource."""
    plugin = make_plugin(shim, GPU, ["g0", "g1", "g2", "GPU_3"])
    wait_until(lambda: len(devices(server)) == 4, "they are published")
    allocate(server, "c-1", *select(server, model={"string": "small"}))
    allocate(server, "c-2", *select(server, id={"string": "GPU_3"}), *select(server, id={"string": "g0"}))
    one, two = prepare(node.kubelet, "c-1"), prepare(node.kubelet, "c-2")
    assert [name.name for name in one["CDI_devices"]] == [f"{DRIVER}/device=vendor.com:gpu:g1:c-1"]
    pod = node.client.run_pod("first")
    node.client.run(pod, "main", **one)
    config = created(runtime)
    assert (plugin.allocated(), envs(config)["PLUGIN_DEVICES"], list(config.CDI_devices)) == ([["g1"]], "g1", [])
    assert dict(config.annotations)[f"devices.cri-device-shim/{GPU.replace('/', '_')}"] == \
        f'{{"resource":"{GPU}","ids":["g1"]}}'  # by which it is known without a checkpoint
    node.client.run(node.client.run_pod("second"), "main", ["run", "$(PLUGIN_DEVICES)"], **two, annotations={"cdi.k8s.io/x": "vendor.com/x=y"})
    config = created(runtime)
    assert (envs(config)["PLUGIN_DEVICES"], dict(config.annotations)["cdi.k8s.io/x"]) == ("GPU_3,g0", "vendor.com/x=y")
    assert config.command == ["run", "GPU_3,g0"]
    assert ctl_json(shim, "resources", GPU)["items"][0]["kubelet"]["devices"] == 0


def test_claims_by_selection_get_exactly_those(shim, server, node, runtime, make_plugin):
    """An unmodified plugin of eight devices on three NUMA nodes, and a scheduler that knows what is published."""
    numa = {f"g{number}": number % 3 for number in range(8)}
    plugin = make_plugin(shim, GPU, list(numa), numa=numa)
    wait_devices(server, {name: [] for name in numa})
    scheduler = LiftScheduler(server, DRIVER, NODE)
    has = {
        "c-1": scheduler.allocate("c-1", Request("gpu", 2, lambda a: a["numaNode"] == 1)),
        "c-2": scheduler.allocate("c-2", Request("one", 1, lambda a: a["numaNode"] == 0),
                                  Request("other", 1, lambda a: a["numaNode"] == 2 and a["model"] == "large")),
        "c-3": scheduler.allocate("c-3", Request("gpu", 2, lambda a: a["numaNode"] != 1 and a["memory"] >= 80)),
    }
    assert has == {"c-1": ["g1", "g4"], "c-2": ["g0", "g2"], "c-3": ["g3", "g5"]}
    with pytest.raises(Unallocatable):
        scheduler.allocate("c-4", Request("gpu", 2, lambda a: a["numaNode"] == 1))
    plugin.set_devices({**dict.fromkeys(numa, True), "g6": False})
    wait_until(lambda: devices(server)["g6"] == [UNHEALTHY], "it is tainted")
    has["c-4"] = scheduler.allocate("c-4", Request("gpu"))
    assert has["c-4"] == ["g7"]
    for uid, ids in has.items():
        node.client.run(node.client.run_pod(f"pod-{uid}"), "main", **prepare(node.kubelet, uid))
        assert envs(created(runtime))["PLUGIN_DEVICES"] == ",".join(ids)
    assert plugin.allocated() == list(has.values())


def test_who_has_what_by_claims_is_known_without_a_checkpoint(shim, server, node, runtime, make_plugin):
    """By what the runtime lists: it is given to no other claim, and is no pod's to ask for otherwise."""
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    wait_devices(server, {"g0": [], "g1": []})
    allocate(server, "c-1", "g0")
    pod = node.client.run_pod("before")
    node.client.run(pod, "main", **prepare(node.kubelet, "c-1"))
    shim.kill()
    lost = [path for path in shim.state_dir.iterdir() if path.name.startswith("checkpoint")]
    assert lost, list(shim.state_dir.iterdir())
    for path in lost:
        path.unlink()
    shim.start()
    node.client.reconnect()
    plugin.stop()
    plugin.start()
    wait_devices(server, {"g0": [HELD], "g1": []})
    allocate(server, "c-2", "g0", "g1")
    other = node.client.run_pod("other")
    names = prepare(node.kubelet, "c-2")
    with refused(grpc.StatusCode.UNAVAILABLE, "g0"):
        node.client.create(other, "main", **names)
    node.client.StopPodSandbox(pod_sandbox_id=pod.id)
    node.client.RemovePodSandbox(pod_sandbox_id=pod.id)
    node.client.run(other, "main", attempt=1, **names)
    assert envs(created(runtime))["PLUGIN_DEVICES"] == "g0,g1"


def test_one_whose_plugin_is_away_waits_for_it(shim, server, node, runtime, make_plugin):
    """The claim is prepared meanwhile; what was given before is given again without it."""
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    wait_devices(server, {"g0": [], "g1": []})
    allocate(server, "c-1", "g0")
    held = prepare(node.kubelet, "c-1")
    pod = node.client.run_pod("held")
    node.client.run(pod, "main", **held)
    plugin.stop()
    wait_devices(server, {"g0": [AWAY], "g1": [AWAY]})
    allocate(server, "c-2", "g1")
    names, waiting = prepare(node.kubelet, "c-2"), node.client.run_pod("waiting")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        node.client.create(waiting, "main", **names)
    shim.kill()
    shim.start()
    node.client.reconnect()
    plugin.start()
    wait_devices(server, {"g0": [], "g1": []})
    node.client.run(waiting, "main", **names)
    assert envs(created(runtime))["PLUGIN_DEVICES"] == "g1"


def test_a_claim_that_pods_share(shim, server, node, runtime, make_plugin):
    """Its devices are in several containers at once; another claim's are not."""
    make_plugin(shim, GPU, ["g0"])
    wait_devices(server, {"g0": []})
    allocate(server, "c-1", "g0")
    names = prepare(node.kubelet, "c-1")
    pod = node.client.run_pod("one")
    node.client.run(pod, "main", **names)
    node.client.run(pod, "side", **names)
    node.client.run(node.client.run_pod("two"), "main", **names)
    allocate(server, "c-2", "g0")  # as after a pod was deleted by force
    other = prepare(node.kubelet, "c-2")
    with refused(grpc.StatusCode.UNAVAILABLE, "device g0 of claim claim-c-2"):
        node.client.create(node.client.run_pod("three"), "main", **other)


def test_the_cluster_says_what_is_allocated(shim, server, node, make_plugin):
    """Nothing else does: a claim without devices here, one that is not there, and no agent."""
    make_plugin(shim, GPU, ["g0"])
    wait_devices(server, {"g0": []})
    allocate(server, "c-1")
    assert "nothing is allocated to it" in node.kubelet.prepare(DRIVER, [claim("c-1")])["c-1"].error
    assert "cannot be read" in node.kubelet.prepare(DRIVER, [claim("c-2")])["c-2"].error
    allocate(server, "c-3", "x", pool="other")
    assert "none of those published here" in node.kubelet.prepare(DRIVER, [claim("c-3")])["c-3"].error
    allocate(server, "c-5", "g0", shareID="a671734a-e8e5-11e4-8fde-42010af09327", consumedCapacity={"memory": "1Gi"})
    assert "a share of a device (consumable capacity)" in node.kubelet.prepare(DRIVER, [claim("c-5")])["c-5"].error
    allocate(server, "c-4", "g0")
    prepare(node.kubelet, "c-4")
    (row,) = [one for one in ctl_json(shim, "claims")["items"] if one["uid"] == "c-4"]
    assert row["state"] == "prepared"
    assert not node.kubelet.unprepare(DRIVER, [claim("c-4")])["c-4"].error


def test_why_a_claim_cannot_be_read_is_told(make_lifting, server, directory, closing, make_plugin):
    """Also where the API server answers each time that it cannot now."""
    shim = make_lifting(dra={"enabled": True, "call_timeout": "3s"})
    node = DraNode(directory, shim, closing)
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    node.kubelet.wait_registered(DRIVER)
    make_plugin(shim, GPU, ["g0"])
    wait_devices(server, {"g0": []})
    allocate(server, "c-1", "g0")
    server.fault(Fault(status=429), path="/apis/resource.k8s.io/v1/namespaces", times=None)
    assert "is not known: HTTP status 429" in node.kubelet.prepare(DRIVER, [claim("c-1")])["c-1"].error
    server.mend()
    prepare(node.kubelet, "c-1")


@pytest.mark.parametrize("foreign", [{"limit": 2 ** 64 - 1}, {"half": "\ud800"}, {"\0": "\0"}], ids=["uint64", "surrogate", "nul"])
def test_what_others_put_into_a_claim_is_theirs(server, node, make_plugin, foreign):
    """Parameters for drivers, and what drivers say of its devices, may be any JSON (runtime.RawExtension)."""
    make_plugin(node.shim, GPU, ["g0"])
    wait_devices(server, {"g0": []})
    allocate(server, "c-1", "g0")
    one = server.get("resourceclaims", "claim-c-1", "default")
    config = [{"requests": ["gpu"], "opaque": {"driver": DRIVER, "parameters": foreign}}]
    one["spec"]["devices"] = {"config": config}
    one["status"]["allocation"]["devices"]["config"] = config
    one["status"]["devices"] = [{"driver": DRIVER, "pool": POOL, "device": "g0", "data": foreign}]
    server.put("resourceclaims", one)
    assert prepare(node.kubelet, "c-1")["CDI_devices"][0].name.endswith(":g0:c-1")


@pytest.mark.parametrize("service", ["v1.DRAPlugin", "v1beta1.DRAPlugin"])
def test_a_claim_of_alternatives(server, node, runtime, make_plugin, service):
    """The cluster says "request/subrequest" (firstAvailable), the container the request: what the kubelet compares."""
    make_plugin(node.shim, GPU, ["g0", "g1"])
    wait_devices(server, {"g0": [], "g1": []})
    node.kubelet.known = (service,)
    allocate(server, "c-1", "g1", request="gpu/big")
    (device,) = node.kubelet.prepare(DRIVER, [claim("c-1")])["c-1"].devices
    assert list(device.request_names) == ["gpu"]
    node.client.run(node.client.run_pod("web"), "main", **prepare(node.kubelet, "c-1"))
    assert envs(created(runtime))["PLUGIN_DEVICES"] == "g1"


def test_without_the_cluster_nothing_is_prepared(shim, server, node, make_plugin):
    """The kubelet may ask for what was prepared before the settings had no cluster any more; it is unprepared."""
    make_plugin(shim, GPU, ["g0"])
    wait_devices(server, {"g0": []})
    allocate(server, "c-1", "g0")
    prepare(node.kubelet, "c-1")
    shim.stop()
    shim.cluster, shim.resources = {"enabled": False}, []
    shim.start()
    allocate(server, "c-2", "g0")
    for uid in ("c-1", "c-2"):
        assert "nothing is known of the cluster here" in node.kubelet.prepare(DRIVER, [claim(uid)])[uid].error
    assert not node.kubelet.unprepare(DRIVER, [claim("c-1")])["c-1"].error


def test_a_device_that_is_none_is_refused(shim, node, make_plugin):
    make_plugin(shim, GPU, ["g0"])
    pod = node.client.run_pod("pod")
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "stands for no resource that is published from here"):
        node.client.create(pod, "main", CDI_devices=[cri.CDIDevice(name=f"{DRIVER}/device=x.com:y:z:c")])


def test_a_resource_moves_over_under_its_pods(make_lifting, server, directory, closing, make_plugin, make_client):
    """What they have stays theirs, and is nobody's by a claim, until they are gone."""
    shim = make_lifting([])
    shim.wait_control()
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    client = make_client(shim)
    pod = client.run_pod("before")
    client.run(pod, "main", annotations=by_token(GPU, "g0"))
    chosen = client.run_pod("chosen-before", annotations=by_annotation("main", f"{GPU}=1"))
    client.run(chosen, "main")
    plugin.stop()
    shim.stop()
    shim.resources = [{"name": GPU, "dra": True}]
    shim.start()
    plugin.start()
    closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))).start()
    client.reconnect()
    wait_devices(server, {"g0": [HELD], "g1": [HELD]})
    client.create(pod, "main", attempt=1, annotations=by_token(GPU, "g0"))  # as ever
    client.create(chosen, "main", attempt=1)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, f"resource {GPU} is asked for by ResourceClaims on this node"):
        client.create(client.run_pod("by-annotation", annotations=by_annotation("main", f"{GPU}=1")), "main")
    for gone in pod, chosen:
        client.StopPodSandbox(pod_sandbox_id=gone.id)
        client.RemovePodSandbox(pod_sandbox_id=gone.id)
    wait_devices(server, {"g0": [], "g1": []})
