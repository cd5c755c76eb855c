"""Devices seen from inside real containers, plugins that go and come, a shim that is killed."""

import os
import stat
import threading

import grpc
import pytest

from asking import by_annotation, by_token, refused
from plugin import (PluginProcess, allocate_answer, answering, failing, late, never)
from protos import deviceplugin
from waiting import wait_until

GPU = "vendor.com/gpu"
NIC = "other.com/nic"
SLEEP = ["sleep", "infinity"]


def asking_pod(client, name, resource=GPU, count=1):
    return client.run_pod(name, annotations=by_annotation("app", f"{resource}={count}"))


def devices_of(client, container):
    return client.exec(container, "sh", "-c", "echo $PLUGIN_DEVICES").strip()


@pytest.fixture
def gpu(shim, make_plugin, directory):
    """A plugin with two GPUs, each an env, a mount with a file and two device nodes."""
    driver = directory / "driver"
    driver.mkdir()
    (driver / "VERSION").write_text("driver 1.2.3\n")
    # No driver has this minor: opening it says so where the device cgroup allows it.
    os.mknod(driver / "ctl", 0o600 | stat.S_IFCHR, os.makedev(1, 200))
    plugin = make_plugin(shim, GPU, ["g0", "g1"])

    def allocate(request, _context):
        ids = request.container_requests[0].devices_ids
        return allocate_answer(
            request, annotations={"vendor.com/driver": "1.2.3"},
            mounts=[deviceplugin.Mount(container_path="/opt/driver", host_path=str(driver),
                                       read_only=True)],
            devices=[deviceplugin.DeviceSpec(container_path=f"/dev/{one}{suffix}", host_path=path,
                                             permissions=permissions)
                     for one in ids for suffix, path, permissions in (
                         ("", "/dev/zero", "rw"), ("-ctl", str(driver / "ctl"), "r"))])

    plugin.on_allocate = allocate
    return plugin


def assert_has_gpu(client, container, one):
    assert f"PLUGIN_DEVICES={one}\n" in client.exec(container, "env")
    assert client.exec(container, "cat", "/opt/driver/VERSION") == "driver 1.2.3\n"
    listed = client.exec(container, "ls", "-l", f"/dev/{one}")
    assert listed.startswith("c") and "1,   5" in listed, listed  # /dev/zero
    assert client.exec(container, "sh", "-c", f"head -c 4 /dev/{one} | wc -c").strip() == "4"
    for redirect, words in (("<", b"No such device or address"), (">", b"Operation not permitted")):
        refusal = client.ExecSync(container_id=container,
                                  cmd=["sh", "-c", f"true {redirect} /dev/{one}-ctl"])
        assert words in refusal.stderr  # permissions "r"
    refusal = client.ExecSync(container_id=container, cmd=["touch", "/opt/driver/x"])
    assert refusal.exit_code != 0  # mounted read-only
    annotations = client.ContainerStatus(container_id=container).status.annotations
    assert annotations["vendor.com/driver"] == "1.2.3"


def test_plugin_device_by_annotation(client, gpu):
    """A container whose pod asks by annotation has its env, mount, device node and annotation, seen
    inside the real container."""
    container = client.run(asking_pod(client, "web"), "app", SLEEP)
    assert_has_gpu(client, container, gpu.allocated()[0][0])


def test_plugin_device_by_token(client, gpu):
    """A container with the kubelet's token has its env, mount, device node and annotation, seen
    inside the real container."""
    container = client.run(client.run_pod("web"), "app", SLEEP, annotations=by_token(GPU, "g1"))
    assert gpu.allocated() == [["g1"]]
    assert_has_gpu(client, container, "g1")


def test_pod_env_wins(client, gpu):
    """Where the pod sets the same env, the pod wins, seen by `env` in the real container."""
    container = client.run(asking_pod(client, "web"), "app", SLEEP,
                           envs={"PLUGIN_DEVICES": "the pod's", "OTHER": "1"})
    lines = client.exec(container, "env").splitlines()
    assert [line for line in lines if line.startswith("PLUGIN_DEVICES=")] == [
        "PLUGIN_DEVICES=the pod's"]
    assert "OTHER=1" in lines


def test_args_name_its_env(client, gpu):
    """`$(VAR)` of the plugin's in the arguments is its value in the real container."""
    container = client.run(asking_pod(client, "web"), "app", [
        "sh", "-c", "echo $0 >/argument; exec sleep infinity", "$(PLUGIN_DEVICES)"])
    argument = wait_until(lambda: client.exec(container, "sh", "-c", "cat /argument || true"),
                          "it has written its argument")
    assert argument == gpu.allocated()[0][0] + "\n"


def test_builtin_device(make_shim, make_client, direct, directory):
    """A built-in device has its node, under its path and with its permissions, in the real
    container; a container that does not ask has not."""
    node = directory / "node"
    os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 7))  # as /dev/full
    shim = make_shim(devices=[{"resource": "host.example/full", "path": str(node),
                               "container_path": "/dev/demo", "permissions": "rw"}])
    client = make_client(shim)
    container = client.run(asking_pod(client, "web", "host.example/full"), "app", SLEEP)
    assert "1,   7" in client.exec(container, "ls", "-l", "/dev/demo")
    answer = client.ExecSync(container_id=container, cmd=["sh", "-c", "echo x > /dev/demo"])
    assert answer.exit_code != 0 and b"No space left" in answer.stderr
    plain = client.run(client.run_pod("plain"), "app", SLEEP)
    assert client.ExecSync(container_id=plain, cmd=["ls", "/dev/demo"]).exit_code != 0


def test_plugin_killed_and_back(make_shim, make_client, direct, closing):
    """Plugin killed: refused UNAVAILABLE within `hold`, with the resource and the grace left; what
    runs goes on; plugin back: created without any retry delay; grace over: FAILED_PRECONDITION and
    the resource is gone."""
    shim = make_shim(plugins={"hold": "300ms", "grace": "3s"})
    client = make_client(shim)
    plugin = closing(PluginProcess(shim.plugin_dir, GPU, ["g0", "g1"]))
    plugin.start()
    running = client.run(asking_pod(client, "running"), "app", SLEEP)
    plugin.kill()
    pod = asking_pod(client, "web")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "grace", "web", "app"):
        client.create(pod, "app", SLEEP, timeout=30)
    assert devices_of(client, running) in ("g0", "g1")
    plugin.start()
    container = client.run(pod, "app", SLEEP)
    assert {devices_of(client, container), devices_of(client, running)} == {"g0", "g1"}
    plugin.kill()
    client.remove_pod(pod.id)
    late_pod = asking_pod(client, "late")

    def code():
        with pytest.raises(grpc.RpcError) as caught:
            client.create(late_pod, "app", SLEEP)
        return caught.value.code()

    wait_until(lambda: code() == grpc.StatusCode.FAILED_PRECONDITION, "the resource is gone")
    assert devices_of(client, running) in ("g0", "g1")


def test_shim_killed_between_creates(shim, client, gpu):
    """kill -9 of the shim between creates: the containers run on; after restart the container's
    cached options are used (no second Allocate) and no device is given twice."""
    pod = asking_pod(client, "web")
    first = client.run(pod, "app", SLEEP)
    one = devices_of(client, first)
    shim.kill()
    shim.start()
    client.reconnect()
    assert devices_of(client, first) == one
    client.StopContainer(container_id=first)
    second = client.run(pod, "app", SLEEP, attempt=1)
    assert_has_gpu(client, second, one)
    assert len(gpu.allocated()) == 1
    other = client.run(asking_pod(client, "other"), "app", SLEEP)
    assert {one, devices_of(client, other)} == {"g0", "g1"}
    third = asking_pod(client, "third")
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU):
        client.create(third, "app", SLEEP)
    client.remove_pod(pod.id)
    assert devices_of(client, client.run(third, "app", SLEEP)) == one


def test_containers_outlive_everything(containerd, shim, client, gpu):
    """A container with a device runs on while plugin, shim and containerd are away, and its devices
    stay its own."""
    pod = asking_pod(client, "web")
    container = client.run(pod, "app", SLEEP)
    one = devices_of(client, container)
    gpu.stop()
    shim.kill()
    containerd.kill()
    containerd.start()
    shim.start()
    client.reconnect()
    gpu.start()
    assert devices_of(client, container) == one
    other = client.run(asking_pod(client, "other"), "app", SLEEP)
    assert {one, devices_of(client, other)} == {"g0", "g1"}


def others_go_on(client, name):
    container = client.run(client.run_pod(f"plain-{name}"), "app", ["echo", "hello"])
    assert client.wait_exit(container).exit_code == 0
    container = client.run(asking_pod(client, f"nic-{name}", NIC), "app", SLEEP)
    assert devices_of(client, container).startswith("n")


def test_bad_plugins_hurt_only_their_own(make_shim, make_plugin, make_client, direct, closing):
    """A plugin that answers late, never, with an error, with garbage, or that dies inside Allocate,
    hurts only the container that asked; others go on in the meantime."""
    shim = make_shim(plugins={"hold": "300ms", "allocate_timeout": "1s"})
    client = make_client(shim)
    make_plugin(shim, NIC, [f"n{number}" for number in range(20)])
    gpu = make_plugin(shim, GPU, ["g0"])
    pod = asking_pod(client, "web")
    request = client.create_request(pod, "app", SLEEP)

    for name, handler, code in (
            ("never", never, grpc.StatusCode.DEADLINE_EXCEEDED),
            ("error", failing(grpc.StatusCode.INTERNAL, "broken"), grpc.StatusCode.UNAVAILABLE),
            ("garbage", answering(b"\xff\xff"), grpc.StatusCode.UNAVAILABLE)):
        gpu.on_allocate = handler
        asked = len(gpu.allocated())
        waiting = client.begin("CreateContainer", request)
        gpu.wait_calls("Allocate", asked + 1)
        others_go_on(client, name)
        assert waiting.code() == code
        assert GPU in waiting.details()

    gpu.stop()
    dying = closing(PluginProcess(shim.plugin_dir, GPU, ["g0"], allocate="die"))
    dying.start()
    waiting = client.begin("CreateContainer", request)
    dying.wait()
    others_go_on(client, "dies")
    assert waiting.code() == grpc.StatusCode.UNAVAILABLE

    release = threading.Event()
    gpu.on_allocate = late(release)
    gpu.start()
    asked = len(gpu.allocated())
    waiting = client.begin("CreateContainer", request)
    gpu.wait_calls("Allocate", asked + 1)
    release.set()
    container = waiting.result().container_id
    client.StartContainer(container_id=container)
    assert devices_of(client, container) == "g0"
