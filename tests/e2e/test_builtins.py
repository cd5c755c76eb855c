"""Built-in devices in real containers: nodes that come, go and change, and what they bring."""

import os
import stat

import grpc
import pytest

from asking import by_annotation, refused
from waiting import wait_until

SERIAL = "host.example/serial"
SLEEP = ["sleep", "infinity"]


def make_node(path, minor):
    """As a driver does it: under another name first, so that the node is there at once."""
    new = path.with_name(f".{path.name}")
    os.mknod(new, 0o600 | stat.S_IFCHR, os.makedev(1, minor))
    new.rename(path)


def created(client, pod, **config):
    """The container's id, or None while its device is not usable."""
    try:
        return client.create(pod, "app", SLEEP, **config)
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
        return None


@pytest.fixture
def node(directory):
    folder = directory / "dev"
    folder.mkdir()
    return folder / "tty0"


@pytest.mark.parametrize("pattern", ["tty0", "tty*"], ids=["path", "glob"])
def test_hot_plug(make_shim, make_client, direct, node, pattern):
    """A node that goes away: what runs goes on, a new container is refused; it comes back: the
    same create runs, with the device."""
    make_node(node, 7)  # as /dev/full
    shim = make_shim(plugins={"hold": "300ms"},
                     devices=[{"resource": SERIAL, "path": str(node.with_name(pattern)),
                               "container_path": "/dev/x/" if "*" in pattern else "/dev/x/tty0",
                               "count": 2}])
    client = make_client(shim)
    ask = by_annotation("app", f"{SERIAL}=1")
    first = client.run(client.run_pod("first", annotations=ask), "app", SLEEP)
    assert "1,   7" in client.exec(first, "ls", "-l", "/dev/x/tty0")
    node.unlink()
    shim.wait_log(f"resource {SERIAL}: 0 of {0 if '*' in pattern else 2} devices healthy")
    second = client.run_pod("second", annotations=ask)
    with pytest.raises(grpc.RpcError) as caught:
        client.create(second, "app", SLEEP)
    assert SERIAL in caught.value.details()
    assert client.exec(first, "true") == ""
    make_node(node, 7)
    container = wait_until(lambda: created(client, second), "the device is back")
    client.StartContainer(container_id=container)
    assert "1,   7" in client.exec(container, "ls", "-l", "/dev/x/tty0")


def test_held_until_it_is_plugged_in(make_shim, make_client, direct, node):
    """A create that waits for a missing node goes on the moment it is there."""
    shim = make_shim(plugins={"hold": "60s"}, devices=[{"resource": SERIAL, "path": str(node)}])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{SERIAL}=1"))
    waiting = client.begin("CreateContainer", client.create_request(pod, "app", SLEEP))
    shim.wait_log("held: container \"app\"")
    make_node(node, 7)
    container = waiting.result().container_id
    client.StartContainer(container_id=container)
    assert "1,   7" in client.exec(container, "ls", "-l", str(node))


def test_node_with_new_numbers(make_shim, make_client, direct, node):
    """A node that changes its numbers is the new device, for the next container; the one that has
    the old one keeps it."""
    make_node(node, 7)
    shim = make_shim(devices=[{"resource": SERIAL, "path": str(node), "count": 2}])
    client = make_client(shim)
    ask = by_annotation("app", f"{SERIAL}=1")
    old = client.run(client.run_pod("old", annotations=ask), "app", SLEEP)
    make_node(node, 5)  # as /dev/zero, in place of the other without a gap
    shim.wait_log(f"device {SERIAL}: {node} is another device now")
    new = client.run(client.run_pod("new", annotations=ask), "app", SLEEP)
    assert "1,   5" in client.exec(new, "ls", "-l", str(node))
    assert client.exec(new, "sh", "-c", f"head -c 4 {node} | wc -c").strip() == "4"
    assert "1,   7" in client.exec(old, "ls", "-l", str(node))


def test_several_paths_mounts_and_envs(make_shim, make_client, direct, directory, node):
    """Several nodes as one device, with its mounts and envs; the pod's own env wins; without one of
    the nodes the device is unhealthy."""
    other = node.with_name("ctl")
    make_node(node, 5)
    make_node(other, 7)
    (directory / "driver").mkdir()
    (directory / "driver/VERSION").write_text("7\n")
    shim = make_shim(plugins={"hold": "300ms"}, devices=[{
        "resource": SERIAL,
        "paths": [str(node), {"host": str(other), "container": "/dev/ctl"}],
        "mounts": [{"host": str(directory / "driver"), "container": "/opt/driver"}],
        "envs": {"SERIAL": str(node), "MODE": "fast"}}])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{SERIAL}=1"))
    container = client.run(pod, "app", SLEEP, envs={"MODE": "slow"})
    assert "1,   5" in client.exec(container, "ls", "-l", str(node))
    assert "1,   7" in client.exec(container, "ls", "-l", "/dev/ctl")
    assert client.exec(container, "cat", "/opt/driver/VERSION") == "7\n"
    assert client.ExecSync(container_id=container, cmd=["touch", "/opt/driver/x"]).exit_code != 0
    assert f"SERIAL={node}\n" in client.exec(container, "env")
    assert "MODE=slow\n" in client.exec(container, "env")
    client.remove_pod(pod.id)
    other.unlink()
    shim.wait_log(f"resource {SERIAL}: 0 of 1 devices healthy")
    with refused(grpc.StatusCode.UNAVAILABLE, SERIAL):
        client.create(client.run_pod("late", annotations=by_annotation("app", f"{SERIAL}=1")),
                      "app", SLEEP)
