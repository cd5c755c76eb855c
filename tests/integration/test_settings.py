"""Settings whose effect is seen from outside, by what reaches plugins, the runtime and the kubelet:
sharing, asking anew, PreStartContainer's time, and what is passed on of a device's NUMA nodes."""

import grpc
import pytest

import kubelet_checkpoint
from asking import by_annotation, by_token, envs, refused
from bare_kubelet import BareKubelet
from node import Bridge, Node
from plugin import never
from waiting import wait_until

GPU = "vendor.com/gpu"


def given(runtime):
    return [envs(one.config)["PLUGIN_DEVICES"] for one in runtime.create_requests()]


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "shared"])
def test_exclusive(runtime, make_shim, make_client, make_plugin, exclusive):
    """A device is in one live container, unless its resource is one to be shared; then it may be in
    any number of them, however they ask. Other resources are as ever."""
    shim = make_shim(plugins={"hold": "100ms"}, resources=[{"name": GPU, "exclusive": exclusive}])
    make_plugin(shim, GPU, ["g0"])
    make_plugin(shim, "other.com/nic", ["n0"])
    client = make_client(shim)
    pods = [client.run_pod("one"), client.run_pod("two"),
            client.run_pod("three", annotations=by_annotation("main", f"{GPU}=1"))]
    client.run(pods[0], "main", annotations={**by_token(GPU, "g0"),
                                             **by_token("other.com/nic", "n0")})
    if exclusive:
        with refused(grpc.StatusCode.UNAVAILABLE, "g0", "one"):
            client.create(pods[1], "main", annotations=by_token(GPU, "g0"))
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU, "free 0"):
            client.create(pods[2], "main")
    else:
        client.run(pods[1], "main", annotations=by_token(GPU, "g0"))
        client.run(pods[2], "main")
        assert given(runtime)[1:] == ["g0", "g0"]
    with refused(grpc.StatusCode.UNAVAILABLE, "n0", "one"):
        client.create(client.run_pod("four"), "main", annotations=by_token("other.com/nic", "n0"))


@pytest.mark.parametrize("refresh,asked", [("reboot", 1), ("never", 1), ("plugin", 2)])
def test_refresh_options(runtime, make_shim, make_client, make_plugin, refresh, asked):
    """A container that is made again gets what its plugin gave, which is asked anew after it has
    come back only where that is set. (After a reboot: test_restarts.py.)"""
    shim = make_shim(plugins={"refresh_options": refresh, "hold": "60s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web")
    for attempt in range(2):
        container = client.run(pod, "main", annotations=by_token(GPU, "g0"), attempt=attempt)
        client.StopContainer(container_id=container)
    assert len(plugin.allocated()) == 1
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    plugin.start()
    client.run(pod, "main", annotations=by_token(GPU, "g0"), attempt=2)
    assert len(plugin.allocated()) == asked and given(runtime) == ["g0"] * 3


def test_prestart_timeout(runtime, make_shim, make_client, make_plugin):
    """A PreStartContainer that is not answered in time refuses the container, which is tried again;
    its time is not that of Allocate."""
    shim = make_shim(plugins={"prestart_timeout": "200ms", "allocate_timeout": "1h"})
    plugin = make_plugin(shim, GPU, ["g0"], prestart=True)
    works = plugin.on_prestart
    plugin.on_prestart = never
    client = make_client(shim)
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.DEADLINE_EXCEEDED, "PreStartContainer", GPU, "web"):
        client.create(pod, "main", annotations=by_token(GPU, "g0"))
    assert not runtime.calls_of("CreateContainer")
    plugin.on_prestart = works
    client.create(pod, "main", annotations=by_token(GPU, "g0"))
    assert given(runtime) == ["g0"]


def test_numa_nodes_reach_the_kubelet(runtime, make_shim, make_plugin, closing):
    """What a plugin lists of its devices' NUMA nodes is what the kubelet is told through daemon and
    bridge, as are changes: its topology manager has the same to go by as without the shim."""
    shim = make_shim()
    kubelet = closing(BareKubelet(shim.kubelet_plugin_dir))
    kubelet.start()
    closing(Bridge(shim.config_path, shim.directory / "bridge.log")).start()
    plugin = make_plugin(shim, GPU, ["g0", "g1", "g2"], numa={"g0": 0, "g1": 1})

    def nodes():
        lists = kubelet.of("list", GPU)
        return lists and {one.ID: [node.ID for node in one.topology.nodes]
                          for one in lists[-1].detail.devices}

    wait_until(lambda: nodes() == {"g0": [0], "g1": [1], "g2": []}, "the nodes")
    plugin.numa = {"g0": 1, "g2": 0}
    plugin.set_devices(["g0", "g1", "g2"])
    wait_until(lambda: nodes() == {"g0": [1], "g1": [], "g2": [0]}, "the other nodes")


def test_the_kubelets_own_books(directory, make_plugin, closing):
    """What the kubelet keeps of a container, which PodResources reads: the plugin's own ids, on the
    nodes that the plugin said; and the container has these."""
    node = closing(Node(directory / "n", {}))
    node.start()
    make_plugin(node.daemon, GPU, ["g0", "g1", "g2"], numa={"g0": 0, "g1": 1})
    kubelet = node.kubelet
    kubelet.wait_event("list", resource=GPU, healthy=["g0", "g1", "g2"])
    pod = kubelet.add_pod("web", {GPU: 3})
    kubelet.wait_phase(pod)
    (entry,), registered = kubelet_checkpoint.read(node.kubelet_dir)
    assert (entry.pod_uid, entry.container, entry.resource) == (pod.uid, "main", GPU)
    assert entry.ids == {0: ["g0"], 1: ["g1"], -1: ["g2"]}
    assert sorted(registered[GPU]) == ["g0", "g1", "g2"]
    (request,) = node.runtime.running_in(pod.uid).values()
    assert set(envs(request.config)["PLUGIN_DEVICES"].split(",")) == {"g0", "g1", "g2"}
