"""Who holds a device in real containers: over restarts, init containers, rivals, lost state."""

import json
import os
import signal

import grpc
import kubelet_checkpoint
import pytest

from asking import by_annotation, by_token, refused
from protos import cri
from waiting import wait_until

GPU = "vendor.com/gpu"
SLEEP = ["sleep", "infinity"]


def asking(**containers):
    """Pod annotations for several containers: asking(setup=1, main=2)."""
    return {key: value for name, count in containers.items()
            for key, value in by_annotation(name, f"{GPU}={count}").items()}


def devices_of(client, container):
    return set(client.exec(container, "sh", "-c", "echo $PLUGIN_DEVICES").strip().split(","))


def test_restarted_container_keeps_its_device(shim, client, make_plugin, directory):
    """A container that exits and is made anew, three times, has the same device each time, though
    others are free, and the plugin is asked once."""
    gpu = make_plugin(shim, GPU, [f"g{number}" for number in range(8)])
    pod = client.run_pod("web", annotations=asking(app=1))
    seen = set()
    for attempt in range(4):
        container = client.run(
            pod, "app", ["sh", "-c", f"until [ -e /told/{attempt} ]; do sleep 0.1; done; exit 3"], attempt=attempt,
            mounts=[cri.Mount(container_path="/told", host_path=str(directory))])
        seen |= devices_of(client, container)
        (directory / str(attempt)).touch()
        assert client.wait_exit(container).exit_code == 3
        other = client.run(client.run_pod(f"other{attempt}", annotations=asking(app=1)), "app",
                           SLEEP)
        assert not devices_of(client, other) & seen
    assert len(seen) == 1
    assert len(gpu.allocated()) == 5  # once for it, once for each of the others


def test_sandbox_made_anew_keeps_the_device(shim, client, make_plugin):
    """A pod whose sandbox died gets a new one: its container has its device again."""
    make_plugin(shim, GPU, ["g0", "g1", "g2"])
    pod = client.run_pod("web", uid="the-uid", annotations=asking(app=1))
    before = devices_of(client, client.run(pod, "app", SLEEP))
    client.StopPodSandbox(pod_sandbox_id=pod.id)
    again = client.run_pod("web", uid="the-uid", attempt=1, annotations=asking(app=1))
    assert devices_of(client, client.run(again, "app", SLEEP, attempt=1)) == before
    client.RemovePodSandbox(pod_sandbox_id=pod.id)
    late = client.run_pod("late", annotations=asking(app=2))
    assert not devices_of(client, client.run(late, "app", SLEEP)) & before


def test_two_pods_fight_for_the_last_device(shim, client, make_client, make_plugin):
    """Of two pods that ask for the last device at the same moment one gets it, the other is told
    that there is none, and gets it when the winner is gone."""
    make_plugin(shim, GPU, ["g0", "g1"])
    client.run(client.run_pod("first", annotations=asking(app=1)), "app", SLEEP)
    for number in range(5):
        pods = [client.run_pod(f"{name}{number}", annotations=asking(app=1)) for name in "ab"]
        calls = [make_client(shim).begin("CreateContainer",
                                         client.create_request(pod, "app", SLEEP))
                 for pod in pods]
        codes = [call.code() for call in calls]
        assert sorted(code.name for code in codes) == ["OK", "RESOURCE_EXHAUSTED"]
        winner = codes.index(grpc.StatusCode.OK)
        assert GPU in calls[1 - winner].details()
        client.StartContainer(container_id=calls[winner].result().container_id)
        client.remove_pod(pods[winner].id)
        container = client.run(pods[1 - winner], "app", SLEEP)
        assert len(devices_of(client, container)) == 1
        client.remove_pod(pods[1 - winner].id)


def apart():
    """The kubelet's containers have process namespaces of their own: they outlive their pause
    process."""
    return cri.LinuxContainerConfig(security_context=cri.LinuxContainerSecurityContext(
        namespace_options=cri.NamespaceOption(network=cri.NODE, pid=cri.CONTAINER)))


def kill_pause(client, pod):
    status = client.PodSandboxStatus(pod_sandbox_id=pod.id, verbose=True)
    os.kill(json.loads(status.info["info"])["pid"], signal.SIGKILL)
    wait_until(lambda: client.PodSandboxStatus(pod_sandbox_id=pod.id).status.state ==
               cri.SANDBOX_NOTREADY, "the sandbox is dead")


def test_container_outlives_its_sandbox(shim, client, make_plugin):
    """The pause process of a pod is killed: its sandbox is not ready, its container runs on. Its
    device is given to nobody before the container is stopped with its sandbox."""
    make_plugin(shim, GPU, ["g0"])
    pod = client.run_pod("old")
    container = client.run(pod, "app", ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"],
                           annotations=by_token(GPU, "g0"), linux=apart())
    kill_pause(client, pod)
    assert client.ContainerStatus(container_id=container).status.state == cri.CONTAINER_RUNNING
    shim.kill()
    shim.start()
    client.reconnect()
    shim.wait_log("runtime listed: ")
    new = client.run_pod("new")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0", 'container "app"', "default/old"):
        client.create(new, "app", SLEEP, annotations=by_token(GPU, "g0"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU):
        client.create(client.run_pod("chosen", annotations=asking(app=1)), "app", SLEEP)
    client.StopPodSandbox(pod_sandbox_id=pod.id)
    assert client.ContainerStatus(container_id=container).status.state == cri.CONTAINER_EXITED
    assert devices_of(client, client.run(new, "app", SLEEP,
                                         annotations=by_token(GPU, "g0"))) == {"g0"}


@pytest.fixture
def moved(make_shim, direct, make_plugin):
    """moved(command): a shim, and a pod whose container was made before it, without a token: it has
    g0 by the kubelet's checkpoint, and the plugin has moved over since. The shim, a function that
    strikes the pod out of that file as the kubelet does with one that is deleted by force, the pod
    and its container."""
    def make(command):
        pod = direct.run_pod("old")
        container = direct.run(pod, "app", command)
        shim = make_shim(start=False, plugins={"hold": "300ms", "grace": "1m"})
        shim.kubelet_plugin_dir.mkdir()
        entry = kubelet_checkpoint.Entry(pod.uid, "app", GPU, {-1: ["g0"]}, b"")

        def write(*entries):
            kubelet_checkpoint.write(shim.kubelet_plugin_dir,
                                     kubelet_checkpoint.encode(entries, {GPU: ["g0"]}))

        write(entry)
        shim.start()
        make_plugin(shim, GPU, ["g0"])
        shim.wait_log("runs without a token")
        return shim, write, pod, container

    return make


def run_in_time(client, pod):
    """Tries to make its container with g0 until it is made, as the kubelet does."""
    def run():
        try:
            return client.run(pod, "app", SLEEP, annotations=by_token(GPU, "g0"))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error.details()
            return None

    return wait_until(run, "the container is made")


def test_container_from_before_the_move(moved, make_client):
    """Its pod is deleted by force while it runs on: the kubelet strikes it out, and gives its device
    to the next pod, which gets it once that container has ended, also over restarts of the shim."""
    shim, strike_out, _, container = moved(
        ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    client = make_client(shim)
    strike_out()
    new = client.run_pod("new")
    for _ in range(2):
        with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0", 'container "app"', "default/old"):
            client.create(new, "app", SLEEP, annotations=by_token(GPU, "g0"))
        shim.kill()
        shim.start()
        client.reconnect()
    client.StopContainer(container_id=container)
    assert devices_of(client, run_in_time(client, new)) == {"g0"}


def test_container_made_anew_from_before_the_move(moved, make_client):
    """It ends and is made anew by the kubelet, without a token as ever: that is passed on, and
    holds its device as the one before it did."""
    shim, strike_out, old, first = moved(SLEEP)
    client = make_client(shim)
    client.StopContainer(container_id=first)
    client.RemoveContainer(container_id=first)
    again = client.run(old, "app", SLEEP, attempt=1)
    assert "PLUGIN_DEVICES" not in client.exec(again, "env")
    strike_out()
    new = client.run_pod("new")

    def refusal():
        with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0", 'container "app"',
                     "default/old") as caught:
            client.create(new, "app", SLEEP, annotations=by_token(GPU, "g0"))
        return caught.value.details()

    wait_until(lambda: refusal().endswith("which still runs"), "it is known to run")
    client.StopContainer(container_id=again)
    assert devices_of(client, run_in_time(client, new)) == {"g0"}


def test_init_container_hands_its_device_on(shim, client, make_plugin):
    """An init container that has run hands its device on to the next ones of its pod: all of them
    fit into two devices."""
    gpu = make_plugin(shim, GPU, ["g0", "g1"])
    pod = client.run_pod("web", annotations=asking(setup=1, check=2, main=2))
    for name in ("setup", "check"):
        container = client.run(pod, name, ["sh", "-c", "test -n \"$PLUGIN_DEVICES\""])
        assert client.wait_exit(container).exit_code == 0
    container = client.run(pod, "main", SLEEP)
    assert devices_of(client, container) == {"g0", "g1"}
    assert len(gpu.allocated()) == 3  # each container has options of its own
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU):
        client.create(client.run_pod("other", annotations=asking(app=1)), "app", SLEEP)


def test_init_container_that_still_runs_keeps_its_device(shim, client, make_plugin):
    """One that goes on running (a sidecar) keeps its device, also when the kubelet says otherwise:
    the refusal names it."""
    make_plugin(shim, GPU, ["g0", "g1"])
    pod = client.run_pod("web")
    sidecar = client.run(pod, "sidecar", SLEEP, annotations=by_token(GPU, "g0"))
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0", "sidecar"):
        client.create(pod, "main", SLEEP, annotations=by_token(GPU, "g0"))
    client.StopContainer(container_id=sidecar)
    container = client.run(pod, "main", SLEEP, annotations=by_token(GPU, "g0"))
    assert devices_of(client, container) == {"g0"}


@pytest.mark.parametrize("damage", [b"this is no database\n" * 500, b""], ids=["text", "empty"])
def test_damaged_checkpoint(direct, make_shim, make_client, make_plugin, damage):
    """The checkpoint is rubbish: it is set aside, and the state rebuilt from the running
    containers; they run on, none of their devices is given twice, and a restart has the same. New
    ones wait for a second list of the runtime."""
    shim = make_shim(plugins={"hold": "20s"})
    client = make_client(shim)
    make_plugin(shim, GPU, ["g0", "g1", "g2"])
    chosen = client.run_pod("chosen", annotations=asking(app=1))
    by_us = client.run(chosen, "app", SLEEP)
    own = devices_of(client, by_us)
    rest = sorted({"g0", "g1", "g2"} - own)
    by_kubelet = client.run(client.run_pod("told"), "app", SLEEP,
                            annotations=by_token(GPU, rest[0]))
    shim.stop()
    for path in shim.state_dir.glob("checkpoint.db*"):
        path.unlink()
    (shim.state_dir / "checkpoint.db").write_bytes(damage)
    shim.start()
    client.reconnect()
    shim.wait_log("it was set aside as")
    shim.wait_log("(2 of them rebuilt from containers)")
    aside = list(shim.state_dir.glob("checkpoint.db.damaged-*"))
    assert [path.read_bytes() for path in aside] == [damage]
    make_plugin(shim, GPU, ["g0", "g1", "g2"])
    third = client.run(client.run_pod("third", annotations=asking(app=1)), "app", SLEEP)
    assert devices_of(client, third) == {rest[1]}
    fourth = client.run_pod("fourth", annotations=asking(app=1))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU):
        client.create(fourth, "app", SLEEP)
    with refused(grpc.StatusCode.UNAVAILABLE, "told"):
        client.create(client.run_pod("greedy"), "app", SLEEP,
                      annotations=by_token(GPU, rest[0]))
    assert devices_of(client, by_us) == own
    assert devices_of(client, by_kubelet) == {rest[0]}
    client.StopContainer(container_id=by_us)
    again = client.run(chosen, "app", SLEEP, attempt=1)
    assert devices_of(client, again) == own
