"""[[resource]] replace: a container that is made again gets another device when its own is lost."""

import grpc
import pytest

from asking import by_annotation, envs, refused
from ctl import ctl, ctl_json
from metrics import scrape
from waiting import wait_until

GPU = "vendor.com/gpu"
AT_ONCE = {"name": GPU, "replace": True, "replace_after": "0s", "hold": "0s"}


def devices_of(runtime):
    """With which the container was made that was made last."""
    return envs(runtime.create_requests()[-1].config).get("PLUGIN_DEVICES")


def gone(client, container):
    client.StopContainer(container_id=container)
    client.RemoveContainer(container_id=container)


def made(client, pod):
    """The kubelet tries again until it is."""
    try:
        return client.run(pod, "main")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error.details()
        return None


@pytest.fixture
def shim(make_shim, directory):
    return make_shim(resources=[AT_ONCE], metrics={"listen": str(directory / "metrics.sock")})


@pytest.fixture
def client(shim, make_client):
    return make_client(shim)


@pytest.fixture
def gpu(shim, make_plugin):
    return make_plugin(shim, GPU, ["g0", "g1"])


def listed(shim):
    (item,) = ctl_json(shim, "allocations")["items"]
    return item["ids"], item["asked"]


def test_what_the_shim_chose(runtime, shim, client, gpu, directory):
    """A crash loop whose device goes from the list gets the other one, as long as its pod lives, and over a restart;
    without a free one it waits, and says so."""
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    container = client.run(pod, "main")
    assert devices_of(runtime) == "g0"
    gone(client, container)
    gpu.set_devices(["g1"])
    shim.wait_log("1 of 1 devices healthy")
    container = client.run(pod, "main")
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])
    assert "g1 (for g0)" in ctl(shim, "allocations").stdout
    (event,) = wait_until(lambda: [one for one in ctl_json(shim, "events")["items"] if one["kind"] == "replaced"], "the event")
    assert (event["ids"], event["text"], event["pod"]) == (["g1"], "in the place of g0", "web")
    shim.wait_log("has now device ids g1 in the place of g0, lost")
    assert scrape(directory / "metrics.sock")["replacements_total"].value() == 1
    gone(client, container)
    gpu.set_devices(["g0", "g1"])
    shim.terminate()
    shim.start()
    client.reconnect()
    shim.wait_log("2 of 2 devices healthy")
    container = client.run(pod, "main")
    assert devices_of(runtime) == "g1" and listed(shim) == (["g1"], ["g0"])
    gone(client, container)
    gpu.set_devices(["g2"])
    other = client.run_pod("other", annotations=by_annotation("main", f"{GPU}=1"))
    wait_until(lambda: [one["id"] for one in ctl_json(shim, "devices", GPU)["items"] if one["free"]] == ["g2"], "the list")
    client.run(other, "main")
    with refused(grpc.StatusCode.UNAVAILABLE, "not listed by the plugin: device ids g1", "no other is free"):
        client.create(pod, "main")
    (why,) = [one for one in ctl_json(shim, "why")["items"] if one["pod"] == "web"]
    assert why["lastRefusal"]["reason"]["word"] == "no-other-device"
    client.remove_pod(other.id)
    wait_until(lambda: made(client, pod), "it is known that its last container is gone")
    assert devices_of(runtime) == "g2" and listed(shim) == (["g2"], ["g0"])
