"""The bridge under a service manager that keeps its listening sockets: killed, no name of its own
leads nowhere, and nothing is kept that nobody serves."""

import os
import socket

import pytest

from bare_kubelet import BareKubelet
from bridge_process import Bridge
from feed_server import FeedServer, Shown
from supervisor import NAME_THAT_TAKES_ALL, Supervisor, supervised
from waiting import GENEROUS_S, wait_until

GPU, NIC = "vendor.com/gpu", "vendor.com/nic"
HEALTHY = {"g0": "Healthy", "g1": "Healthy"}


@pytest.fixture
def feed(directory, closing):
    one = closing(FeedServer(directory / "run" / "bridge.sock"))
    one.resources = {GPU: Shown(["g0", "g1"])}
    one.start()
    return one


@pytest.fixture
def kubelet(directory, closing):
    one = closing(BareKubelet(directory / "device-plugins"))
    one.start()
    return one


@pytest.fixture
def bridge(directory, closing, feed, kubelet, manager):
    one = closing(supervised(Bridge, manager)(directory))
    one.start()
    kubelet.wait_health(GPU, HEALTHY)
    wait_saved(one)
    return one


def wait_saved(bridge):
    """What is shown is in the file: a killed one would not know of it."""
    wait_until(bridge.snapshot.exists, "the snapshot")


def inode(bridge, resource=GPU):
    return os.stat(bridge.endpoint(resource)).st_ino


def stored(resource):
    """What the name of its listener in the store begins with."""
    return f"endpoint/{resource.replace('/', '_')}.sock/"


def listeners(names):
    return [name for name in names if name.startswith("endpoint/")]


def are_stored(*resources):
    return lambda names: len(listeners(names)) == len(resources) and all(
        any(name.startswith(stored(one)) for name in names) for one in resources)


def connect(bridge, resource=GPU):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(GENEROUS_S)
    one.connect(str(bridge.endpoint(resource)))
    return one


def greets(connection):
    """Whether somebody serves HTTP/2 there: its SETTINGS come unasked."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    return connection.recv(9)[3] == 4


def test_killed_no_name_vanishes(bridge, kubelet, manager, closing):
    """Who connects while there is no bridge waits for the next one; it is the same socket, however
    often, and kept once."""
    manager.wait_names(are_stored(GPU))
    before, names = inode(bridge), listeners(manager.names())
    for _ in range(10):
        bridge.kill()
        waiting = closing(connect(bridge))
        assert inode(bridge) == before
        bridge.start()
        assert greets(waiting)
        assert inode(bridge) == before
    assert listeners(manager.names()) == names
    assert bridge.log().count(".sock: goes on") == 10
    assert kubelet.health(GPU) == HEALTHY


def test_without_a_store_it_is_as_ever(directory, closing, feed, kubelet):
    manager = closing(Supervisor(directory, keeps=False))
    bridge = closing(supervised(Bridge, manager)(directory))
    bridge.start()
    kubelet.wait_health(GPU, HEALTHY)
    wait_saved(bridge)
    for count in range(2, 4):
        bridge.kill()
        with pytest.raises(ConnectionRefusedError):
            connect(bridge)
        bridge.start()
        kubelet.wait("list", GPU, count)
    assert not manager.names()


def test_without_room_for_its_names_it_is_as_without_a_store(directory, closing, feed, kubelet):
    """One that had them kept all the same would not be started any more. It says so once."""
    passed = closing(socket.socket(socket.AF_UNIX))
    manager = closing(Supervisor(directory, passed={NAME_THAT_TAKES_ALL: passed.fileno()}))
    bridge = closing(supervised(Bridge, manager)(directory))
    for count in range(1, 4):
        bridge.start()
        kubelet.wait("list", GPU, count)
        wait_until(lambda: kubelet.health(GPU) == HEALTHY, "it is served")
        wait_saved(bridge)
        bridge.kill()
        assert not manager.names() and bridge.log().count("has no room for another") == count


@pytest.mark.parametrize("what", ["nothing", "a socket", "a link"])
def test_a_name_that_is_not_its_own_any_more(bridge, kubelet, manager, closing, directory, what):
    """Removed or replaced while it was dead: made anew, and the old one is let go of."""
    manager.wait_names(are_stored(GPU))
    (before,) = listeners(manager.names())
    bridge.kill()
    endpoint = bridge.endpoint(GPU)
    endpoint.rename(directory / "moved")
    if what == "a socket":
        closing(socket.socket(socket.AF_UNIX)).bind(str(endpoint))
    elif what == "a link":
        endpoint.symlink_to(directory / "moved")
    bridge.start()
    manager.wait_names(lambda names: are_stored(GPU)(names) and before not in names)
    assert greets(closing(connect(bridge))) and not endpoint.is_symlink()
    with pytest.raises(ConnectionRefusedError):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(directory / "moved"))


def test_removed_while_it_runs(bridge, manager):
    manager.wait_names(are_stored(GPU))
    (before,) = listeners(manager.names())
    bridge.endpoint(GPU).unlink()
    manager.wait_names(lambda names: are_stored(GPU)(names) and before not in names)
    bridge.kill()
    made = inode(bridge)
    bridge.start()
    bridge.wait_log(".sock: goes on")
    assert inode(bridge) == made


def test_what_is_withdrawn_is_not_kept(bridge, feed, kubelet, manager):
    feed.show({GPU: Shown(["g0", "g1"]), NIC: Shown(["n0"])})
    kubelet.wait_health(NIC, {"n0": "Healthy"})
    manager.wait_names(are_stored(GPU, NIC))
    feed.show({GPU: Shown(["g0", "g1"])})
    manager.wait_names(are_stored(GPU))
    assert not bridge.endpoint(NIC).exists()


def test_ended_as_told_it_leaves_all_to_the_manager(bridge, manager):
    """Who restarts it hands it over; who stops it ends it."""
    manager.wait_names(are_stored(GPU))
    names = manager.names()
    bridge.terminate()
    assert manager.names() == names
    assert bridge.endpoint(GPU).exists()


def test_stopped_without_a_store_nothing_is_left(directory, closing, feed, kubelet):
    bridge = closing(Bridge(directory))
    bridge.start()
    kubelet.wait_health(GPU, HEALTHY)
    endpoint = bridge.endpoint(GPU)
    bridge.terminate()
    assert not endpoint.exists()


def test_what_the_next_one_does_not_know_is_not_kept(bridge, feed, kubelet, manager, closing):
    """Its file is gone, and the daemon is away: who connects must not wait for ever."""
    manager.wait_names(are_stored(GPU))
    feed.stop()
    bridge.kill()
    waiting = closing(connect(bridge))
    bridge.snapshot.unlink()
    bridge.start()
    manager.wait_names(lambda names: not names)
    with pytest.raises(ConnectionResetError):
        waiting.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(bridge)
    feed.start()
    kubelet.wait("list", GPU, 2)
    manager.wait_names(are_stored(GPU))
    assert greets(closing(connect(bridge)))


def test_what_only_the_daemon_knows_goes_on(bridge, kubelet, manager):
    """Its file is gone, but the daemon says what there is."""
    manager.wait_names(are_stored(GPU))
    before = inode(bridge)
    bridge.kill()
    bridge.snapshot.unlink()
    bridge.start()
    bridge.wait_log(".sock: goes on")
    assert inode(bridge) == before


def test_killed_as_soon_as_it_shows_something_new(bridge, feed, kubelet, manager, closing):
    """The next one knows it, also without a daemon."""
    feed.show({GPU: Shown(["g0", "g1"]), NIC: Shown(["n0"])})
    kubelet.wait_health(NIC, {"n0": "Healthy"})
    bridge.kill()
    feed.stop()
    bridge.start()
    assert greets(closing(connect(bridge, NIC)))
    assert not kubelet.of("end")


def test_not_wanted_nothing_is_kept(bridge, manager):
    """bridge.enabled is set to false: what was kept of before goes."""
    manager.wait_names(are_stored(GPU))
    bridge.kill()
    bridge.settings["enabled"] = False
    bridge.start()
    manager.wait_names(lambda names: not names)


def test_a_manager_that_gives_up(bridge, kubelet, manager):
    """All it kept goes; a bridge that is started all the same makes its sockets anew."""
    manager.wait_names(are_stored(GPU))
    bridge.kill()
    manager.give_up()
    with pytest.raises(ConnectionRefusedError):
        connect(bridge)
    bridge.start()
    kubelet.wait("list", GPU, 2)
    manager.wait_names(are_stored(GPU))
    assert ".sock: goes on" not in bridge.log()
