"""The whole daemon on a file system that is full for a while."""

from datetime import datetime, timedelta, timezone

import grpc
import pytest

from asking import by_token, refused
from ctl import ctl, ctl_json
from small_disk import SmallDisk
from waiting import wait_until

GPU = "vendor.com/gpu"


@pytest.fixture
def disk(directory, closing):
    """Where the daemon's state is. Ask for it before the shim, which is to end first."""
    return closing(SmallDisk(directory / "state"))


@pytest.fixture
def node(runtime, disk, make_shim, make_plugin):
    """A shim whose plugin has sixteen devices: (shim, plugin)."""
    shim = make_shim(plugins={"hold": "200ms"})
    return shim, make_plugin(shim, GPU, [f"g{number}" for number in range(16)])


def create(client, name, device, attempt=0, pod=None):
    pod = pod or client.run_pod(name)
    client.run(pod, "main", annotations=by_token(GPU, device), attempt=attempt)
    return pod


def use_up(client, disk):
    """Until an allocation cannot be stored; what the file had room for is taken by more of them."""
    disk.fill()
    for number in range(1, 16):
        try:
            create(client, f"more{number}", f"g{number}")
        except grpc.RpcError as error:
            return error, f"g{number}"
    raise AssertionError("all are stored")


def test_recovery_from_a_full_disk(runtime, disk, node, make_client):
    """What needs a new allocation is refused with the reason; whatever is stored, or needs nothing,
    goes on; when there is room again so does all, and nothing was lost or given twice."""
    shim, plugin = node
    client = make_client(shim)
    pod = create(client, "first", "g0")
    error, device = use_up(client, disk)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    for word in ("cannot be stored", "full", GPU):
        assert word in error.details()
    client.create(client.run_pod("plain"), "main")
    (container,) = [one.id for one in client.ListContainers().containers
                    if one.pod_sandbox_id == pod.id]
    client.StopContainer(container_id=container)
    create(client, "first", "g0", attempt=1, pod=pod)
    with refused(grpc.StatusCode.UNAVAILABLE, "cannot be stored"):
        create(client, "late", device)
    disk.free()
    create(client, "late", device)
    shim.kill()
    asked = len(plugin.allocated())
    shim.start()
    with refused(grpc.StatusCode.UNAVAILABLE, "g0", "first"):
        create(make_client(shim), "thief", "g0")
    assert len(plugin.allocated()) == asked


def test_a_start_on_a_full_disk(runtime, disk, node, make_client):
    """A daemon that is started while the disk is full knows what is stored, relays, refuses what it
    cannot store, and goes on by itself."""
    shim, _plugin = node
    create(make_client(shim), "first", "g0")
    shim.kill()
    disk.fill()
    shim.start()
    client = make_client(shim)
    client.create(client.run_pod("plain"), "main")
    with refused(grpc.StatusCode.UNAVAILABLE, "g0", "first"):
        create(client, "thief", "g0")
    _error, device = use_up(client, disk)
    disk.free()
    create(client, "late", device)


def test_events_of_a_full_disk(runtime, disk, node, make_client):
    """They are told while the process lives, said to be lost with it, and since when, and kept again
    when there is room."""
    began = datetime.now(timezone.utc)
    shim, plugin = node
    client = make_client(shim)
    create(client, "first", "g0")

    def kinds():
        return [one["kind"] for one in ctl_json(shim, "events")["items"]]

    def troubles():
        return {one["what"]: one["why"] for one in ctl_json(shim, "status")["degraded"]}

    wait_until(lambda: kinds() == ["registered", "allocated"], "they are told")
    disk.fill()
    plugin.stop()
    wait_until(lambda: kinds()[-1] == "lost", "one that is not written is told")
    if "events" not in troubles():  # it had room in the file's last page
        for number in range(200):
            with refused(grpc.StatusCode.UNAVAILABLE):
                client.create(client.run_pod(f"pod-{number}"), "main",
                              annotations=by_token(GPU, f"g{number % 16}"))
            if "events" in troubles():
                break
    assert "are lost with the process" in troubles()["events"]
    (since,) = [one["since"] for one in ctl_json(shim, "status")["degraded"] if one["what"] == "events"]
    # To a second or two, as a wall clock's time is made of another clock's.
    assert datetime.fromisoformat(since) > began - timedelta(seconds=5)
    told = kinds()
    disk.free()
    wait_until(lambda: "events" not in troubles(), "they are kept again")
    shim.kill()
    shim.start()
    wait_until(lambda: kinds()[:len(told)] == told, "none was lost")


def test_orders_on_a_full_disk(runtime, disk, node, make_client):
    """What cannot be stored is an error, and nothing of it is done, then or later; what is set stays
    in force."""
    shim, plugin = node
    shim.wait_control()
    many = [f"x{number}" for number in range(500)]

    def orders():
        return {(one["kind"], one["id"]): one["reason"] for one in ctl_json(shim, "orders")["items"]}

    def ask(*words, fails=False):
        """What is set after it."""
        before, done = orders(), ctl(shim, *words)
        if done.returncode == 0:
            assert not fails
            return orders()
        assert done.stdout == "" and "nothing has changed, since it cannot be stored" in done.stderr
        assert orders() == before
        return before

    ctl_json(shim, "cordon", GPU, "g0", "--reason", "dust")
    wait_until(lambda: ctl_json(shim, "plugins")["items"][0]["state"] == "active", "it serves")
    disk.fill()
    assert ask("cordon", GPU, "g1", *many, "--reason", "r" * 256, fails=True) == {
        ("cordon", "g0"): "dust"}
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    for words in (("withdraw", GPU, "--reason", "m" * 256), ("grace", "extend", GPU, "1h"),
                  ("cordon", GPU, "g0", "--reason", "rust"), ("uncordon", GPU, "g0", "g1")):
        ask(*words)  # a small one may find room in the log's file
    left = ask("cordon", GPU, *many, "--reason", "r" * 256, fails=True)
    shim.kill()
    disk.free()
    shim.start()
    shim.wait_control()
    assert orders() == left
    assert ask("cordon", GPU, "g1") == {**left, ("cordon", "g1"): None}
