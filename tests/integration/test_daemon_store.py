"""The daemon under a service manager that keeps its listening sockets: killed, no name of its own
leads nowhere, who watches them sees nothing, and a plugin need not register anew."""

import contextlib
import ctypes
import os
import signal
import socket
import sqlite3
import struct
import threading
import uuid

import grpc
import pytest

from asking import by_annotation
from feed import Feed
from kept_shim import kept_shim
from plugin import OneChannelPlugin, Plugin, PluginProcess, never
from shim import accepts, locked
from supervisor import NAME_THAT_TAKES_ALL, Supervisor
from waiting import GENEROUS_S, wait_until

GPU, NIC = "vendor.com/gpu", "vendor.com/nic"
CRI, PLUGINS, FEED, CONTROL = "cri", "plugins", "feed", "control"
PLACES = {CRI: lambda shim: shim.socket, PLUGINS: lambda shim: shim.plugin_dir / "kubelet.sock",
          FEED: lambda shim: shim.feed, CONTROL: lambda shim: shim.control}
# inotify(7)
_IN_CHANGES = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # all but open and close
_IN_EVENT = struct.Struct("iIII")


class Watch:
    """What becomes of a directory's entries, as a plugin looks at it for kubelet.sock."""

    def __init__(self, directory):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._libc.inotify_add_watch(self._fd, bytes(directory), _IN_CHANGES) >= 0

    def names(self):
        """Of the entries that have changed since the last call."""
        try:
            left, names = os.read(self._fd, 65536), []
        except BlockingIOError:
            return []
        while left:
            length = _IN_EVENT.unpack(left[:_IN_EVENT.size])[3]
            names.append(left[_IN_EVENT.size:][:length].rstrip(b"\0").decode())
            left = left[_IN_EVENT.size + length:]
        return names

    def stop(self):
        os.close(self._fd)


@pytest.fixture
def make_kept(directory, runtime, runtime_socket, closing):
    """make_kept(manager, **settings of Shim): a shim of that manager's, not yet started."""
    def make(manager, plugins=None, **settings):
        times = {"hold": "300ms", "grace": "1m", **(plugins or {})}
        return closing(kept_shim(manager)(directory, runtime_socket, plugins=times, **settings))

    return make


@pytest.fixture
def kept(manager, make_kept):
    one = make_kept(manager)
    one.start()
    manager.wait_names(are_stored(*PLACES))
    return one


def listeners(names):
    """Of what is kept those; connections come and go."""
    return {name for name in names if name.startswith("endpoint/")}


def are_stored(*which):
    return lambda names: len(listeners(names)) == len(which) and all(
        any(name.startswith(f"endpoint/{one}/") for name in names) for one in which)


def inodes(shim):
    return {which: os.stat(place(shim)).st_ino for which, place in PLACES.items()}


def connect(path):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(GENEROUS_S)
    one.connect(str(path))
    return one


def greets(connection):
    """Whether HTTP/2 is spoken there, by us or by the runtime: its SETTINGS come."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    return connection.recv(9)[3] == 4


def test_killed_no_name_vanishes(kept, manager, closing):
    """Who connects while there is no daemon waits for the next one; they are the same sockets,
    however often, and kept once."""
    before, names = inodes(kept), listeners(manager.names())
    for _ in range(10):
        kept.kill()
        waiting = [closing(connect(place(kept))) for place in PLACES.values()]
        kept.start()
        assert all(map(greets, waiting))
        assert inodes(kept) == before
    assert listeners(manager.names()) == names
    assert kept.log().count(": goes on") == 10 * len(PLACES)


def left_streams(names):
    return {name for name in names if name.startswith("plugin/")}


def test_a_plugin_sees_nothing(kept, manager, runtime, make_plugin, make_client, closing):
    """It looks at kubelet.sock and registers whenever that is made anew: it need not. The daemon
    dials its endpoint again and gives out what it lists."""
    plugin = make_plugin(kept, GPU, ["g0", "g1"])
    first = make_client(kept)
    first.run(first.run_pod("web", annotations=by_annotation("app", f"{GPU}=1")), "app")
    watch = closing(Watch(kept.plugin_dir))
    for count in range(2, 5):
        kept.kill()
        kept.start()
        manager.wait_names(lambda names, count=count: len(left_streams(names)) == count)
        assert plugin.stream_count() == count  # those of the dead daemons are listened to, too
    plugin.set_devices(["g0", "g1", "g2"])
    client = make_client(kept)
    for name in "mail", "news":
        client.run(client.run_pod(name, annotations=by_annotation("app", f"{GPU}=1")), "app")
    assert sorted(sum(plugin.allocated(), [])) == ["g0", "g1", "g2"]
    assert watch.names() == []
    (kept.plugin_dir / "kubelet.sock").unlink()
    wait_until(lambda: "kubelet.sock" in watch.names(), "a removed name is seen by the watch")


@pytest.mark.skipif(os.getuid() != 0, reason="it takes another user")
def test_a_plugin_that_is_not_roots_is_dialled_again(kept, closing):
    """It has registered once, and sees nothing of a death: the next daemon knows whose its socket is."""
    plugin = closing(PluginProcess(kept.plugin_dir, GPU, ["g0", "g1"], uid=1234))
    plugin.start()
    assert (kept.plugin_dir / "vendor.com_gpu.sock").stat().st_uid == 1234
    kept.wait_log("2 of 2 devices healthy")
    kept.wait_plugins_stored()
    for count in range(2, 4):
        kept.kill()
        kept.start()
        kept.wait_log("2 of 2 devices healthy", count)


def test_what_a_plugin_says_next_is_heard_after_a_death(kept, manager, closing):
    """Though it says so on the stream that it opened first, which was a dead daemon's; however often one died."""
    plugin = closing(OneChannelPlugin(kept.plugin_dir, GPU, ["g0", "g1", "g2", "g3", "g4", "g5"]))
    plugin.start()
    kept.wait_log("6 of 6 devices healthy")
    kept.wait_plugins_stored()
    for count in range(2, 5):
        kept.kill()
        kept.start()
        manager.wait_names(lambda names, count=count: len(left_streams(names)) == count)
    for well in range(5, -1, -1):  # those of all four streams, and some once more
        plugin.set_devices({f"g{i}": i < well for i in range(6)})
        kept.wait_log(f"{well} of 6 devices healthy")
    plugin.stop()
    manager.wait_names(lambda names: not left_streams(names))
    plugin.set_devices(["g0"])
    plugin.start()
    kept.wait_log("1 of 1 devices healthy")


@pytest.mark.parametrize("deaths", [0, 1])
def test_what_it_says_next_is_heard_when_it_has_registered_since(kept, manager, closing, deaths):
    """A daemon that starts dials it before it registers, which it does without another server: the stream of then
    hears the next change."""
    plugin = closing(OneChannelPlugin(kept.plugin_dir, GPU, ["g0", "g1", "g2", "g3", "g4", "g5"]))
    plugin.start()
    kept.wait_log("6 of 6 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    plugin.wait_calls("ListAndWatch", 2)
    plugin.register()
    plugin.wait_calls("ListAndWatch", 3)
    for count in range(deaths):
        manager.wait_names(lambda names: len(left_streams(names)) == 3)
        kept.kill()
        kept.start()
        plugin.wait_calls("ListAndWatch", 4 + count)
    manager.wait_names(lambda names: len(left_streams(names)) == 3 + deaths)
    for well in range(5, -1, -1):
        plugin.set_devices({f"g{i}": i < well for i in range(6)})
        kept.wait_log(f"{well} of 6 devices healthy")


def test_what_is_told_at_a_socket_that_it_has_left_is_not_waited_for(kept, manager, closing):
    """Who has registered at another one, with the same server, has those streams ended: what comes there would be
    lost each time."""
    plugin = closing(Plugin(kept.plugin_dir, GPU, ["g0"]))
    plugin.start()
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    manager.wait_names(lambda names: len(left_streams(names)) == 2)
    os.link(kept.plugin_dir / plugin.endpoint, kept.plugin_dir / "moved.sock")
    plugin.endpoint = "moved.sock"
    plugin.register()
    plugin.wait_calls("ListAndWatch", 3)
    manager.wait_names(lambda names: [name.endswith("/moved.sock") for name in left_streams(names)] == [True])
    wait_until(lambda: plugin.stream_count() == 1, "the others have ended")


def test_what_comes_compressed_is_heard_after_a_death(kept, manager, closing):
    plugin = closing(OneChannelPlugin(kept.plugin_dir, GPU, [f"g{i}" for i in range(100)]))
    plugin.compression = grpc.Compression.Gzip
    plugin.start()
    kept.wait_log("100 of 100 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    manager.wait_names(lambda names: len(left_streams(names)) == 2)
    for well in 70, 60, 50:
        plugin.set_devices({f"g{i}": i < well for i in range(100)})
        kept.wait_log(f"{well} of 100 devices healthy")


def test_a_plugin_has_few_of_such_streams(kept, manager, make_plugin):
    """It may have a thread for each call, and not many: those of more than four dead daemons are ended."""
    plugin = make_plugin(kept, GPU, ["g0"])
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()  # else it would have to register anew
    for count in range(2, 10):
        kept.kill()
        kept.start()
        manager.wait_names(lambda names, most=min(count, 5): len(left_streams(names)) == most)
        wait_until(lambda: plugin.stream_count() == min(count, 5), "the others have ended")


def run_at_last(client, request):
    """A pod with such a request by annotation, as often as it takes, and its container."""
    def attempt():
        pod = client.run_pod(f"web-{uuid.uuid4().hex[:8]}", annotations=by_annotation("app", request))
        with contextlib.suppress(grpc.RpcError):
            return client.run(pod, "app")
        return None

    return wait_until(attempt, "it runs")


def test_what_the_instance_before_says_counts_no_more(kept, manager, make_plugin, make_client, closing):
    """It has ended late, with an empty list, on a stream of a dead daemon's; another one serves at its path by
    then."""
    first = make_plugin(kept, GPU, ["g0"])
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    kept.wait_log("1 of 1 devices healthy", 2)
    manager.wait_names(lambda names: len(left_streams(names)) == 2)
    closing(PluginProcess(kept.plugin_dir, GPU, ["g0", "g1"])).start()
    kept.wait_log("2 of 2 devices healthy")
    first.set_devices([])
    first.send(None)
    manager.wait_names(lambda names: len(left_streams(names)) == 1)
    client = make_client(kept)
    for name in "mail", "news":
        client.run(client.run_pod(name, annotations=by_annotation("app", f"{GPU}=1")), "app")


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_plugin_has_its_threads_for_calls(manager, make_kept, make_plugin, make_client, deaths):
    """It has a thread for each call, and no more than two: streams of dead daemons have taken the one that it
    answers on, or both. They are ended when it does not."""
    kept = make_kept(manager, plugins={"allocate_timeout": "500ms"})
    kept.start()
    plugin = make_plugin(kept, GPU, ["g0"], start=False)
    plugin.workers = 2
    plugin.start()
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    for count in range(deaths):
        kept.kill()
        lists = kept.log().count("1 of 1 devices healthy")  # one may die before it has its own
        kept.start()
        manager.wait_names(lambda names: len(left_streams(names)) == 2)
        assert count or plugin.stream_count() == 2
    kept.wait_log("1 of 1 devices healthy", lists + 1)
    run_at_last(make_client(kept), f"{GPU}=1")


def test_what_it_says_next_is_heard_though_a_call_was_slow(manager, make_kept, make_client, closing):
    """Its device hangs, and Allocate with it. It answers other calls, so that the dead daemon's stream is in nobody's
    way, and tells of the device next."""
    kept = make_kept(manager, plugins={"allocate_timeout": "500ms"})
    kept.start()
    plugin = closing(OneChannelPlugin(kept.plugin_dir, GPU, ["g0", "g1"]))
    plugin.on_allocate = never
    plugin.start()
    kept.wait_log("2 of 2 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    manager.wait_names(lambda names: len(left_streams(names)) == 2)
    kept.wait_log("2 of 2 devices healthy", 2)
    client = make_client(kept)
    with pytest.raises(grpc.RpcError):
        client.run(client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1")), "app")
    plugin.set_devices({"g0": False, "g1": True})
    kept.wait_log("1 of 2 devices healthy")


def test_a_plugin_that_hangs_as_the_daemon_starts_is_back(kept, manager, closing):
    """As with its node. It is asked again, and the dead daemon's stream goes on."""
    plugin = closing(PluginProcess(kept.plugin_dir, GPU, ["g0"]))
    plugin.start()
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    os.kill(plugin.pid, signal.SIGSTOP)
    kept.start()
    kept.wait_log("no options within 10 s")
    os.kill(plugin.pid, signal.SIGCONT)
    kept.wait_log("1 of 1 devices healthy", 2)
    manager.wait_names(lambda names: len(left_streams(names)) == 2)


class OneStreamPlugin(Plugin):
    """It serves one ListAndWatch after the other."""

    def __init__(self, *args):
        super().__init__(*args)
        self._one = threading.Lock()

    def _list_and_watch(self, request, context):
        with self._one:
            yield from super()._list_and_watch(request, context)


def test_a_plugin_that_serves_one_stream_at_a_time(kept, manager, closing):
    """The dead daemon's is ended when no list comes beside it."""
    plugin = closing(OneStreamPlugin(kept.plugin_dir, GPU, ["g0"]))
    plugin.start()
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    kept.wait_log("1 of 1 devices healthy", 2)
    manager.wait_names(lambda names: len(left_streams(names)) == 1)


def test_a_stream_goes_on_over_a_restart_that_a_plugin_does_not_see(kept, manager, closing):
    """It does not look at kubelet.sock, which is a new one then."""
    plugin = closing(OneChannelPlugin(kept.plugin_dir, GPU, ["g0", "g1"]))
    plugin.start()
    kept.wait_log("2 of 2 devices healthy")
    kept.wait_plugins_stored()
    kept.terminate()
    kept.start()
    plugin.wait_calls("ListAndWatch", 2)
    plugin.set_devices({"g0": True, "g1": False})
    kept.wait_log("1 of 2 devices healthy")


def lose_checkpoint(shim, how):
    for path in shim.state_dir.glob("checkpoint.db*"):
        if how == "damaged":
            path.write_bytes(b"no checkpoint")
        else:
            path.unlink()


@pytest.mark.parametrize("how", ["damaged", "removed"])
def test_plugins_that_were_forgotten_register_anew(kept, make_plugin, closing, how):
    """The checkpoint is damaged or removed, and with it who has registered is lost: the socket is a new one, which
    plugins see."""
    plugin = make_plugin(kept, GPU, ["g0"])
    kept.wait_log("1 of 1 devices healthy")
    watch = closing(Watch(kept.plugin_dir))
    kept.kill()
    lose_checkpoint(kept, how)
    kept.start()
    assert "kubelet.sock" in watch.names()
    plugin.stop()
    plugin.start()
    kept.wait_log("1 of 1 devices healthy", 2)


@pytest.mark.parametrize("how", ["damaged", "removed"])
def test_plugins_that_look_at_their_own_socket_register_anew(kept, make_plugin, how):
    """As many do: they do not look at kubelet.sock, since a kubelet that starts removes theirs."""
    plugin = make_plugin(kept, GPU, ["g0"])
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    lose_checkpoint(kept, how)
    kept.start()
    wait_until(lambda: not (kept.plugin_dir / plugin.endpoint).exists(), "the plugin's socket is removed")
    plugin.stop()
    plugin.start()
    kept.wait_log("1 of 1 devices healthy", 2)


def test_of_plugins_one_that_is_forgotten_registers_anew(kept, make_plugin):
    """Its row is damaged. The other, which is known, is dialled."""
    plugin, other = make_plugin(kept, GPU, ["g0"]), make_plugin(kept, NIC, ["n0"])
    kept.wait_log("1 of 1 devices healthy", 2)
    kept.wait_plugins_stored()
    kept.kill()
    with contextlib.closing(sqlite3.connect(kept.state_dir / "checkpoint.db")) as connection:
        connection.execute("UPDATE resources SET value = x'ffff' WHERE name = ?", (GPU,))
        connection.commit()
    kept.start()
    other.wait_calls("ListAndWatch", 2)
    assert not (kept.plugin_dir / plugin.endpoint).exists()
    plugin.stop()
    plugin.start()
    kept.wait_log("1 of 1 devices healthy", 4)


def test_a_plugin_whose_socket_was_removed_registers_anew(kept, make_plugin, closing):
    """As by an instance before it that ends late: it serves whoever is connected, and cannot be dialled again."""
    plugin = make_plugin(kept, GPU, ["g0"])
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    (kept.plugin_dir / plugin.endpoint).unlink()
    watch = closing(Watch(kept.plugin_dir))
    kept.kill()
    kept.start()
    assert "kubelet.sock" in watch.names()
    plugin.stop()
    plugin.start()
    kept.wait_log("1 of 1 devices healthy", 2)


class SlowPlugin(Plugin):
    """It lists no device until its `lists` is set."""

    def __init__(self, *args):
        super().__init__(*args)
        self.lists = threading.Event()

    def _list_and_watch(self, request, context):
        self.lists.wait(GENEROUS_S)
        yield from super()._list_and_watch(request, context)


def test_a_plugin_that_was_not_stored_yet_registers_anew(kept, closing):
    """It was told that it is registered and has not listed its devices: the next daemon does not know
    of it, but knows that there was one."""
    plugin = closing(SlowPlugin(kept.plugin_dir, GPU, ["g0"]))
    plugin.start()
    watch = closing(Watch(kept.plugin_dir))
    for _ in range(2):
        kept.kill()
        kept.start()
        assert "kubelet.sock" in watch.names()
        assert not (kept.plugin_dir / plugin.endpoint).exists()
        plugin.stop()
        plugin.start()
    plugin.lists.set()
    kept.wait_log("1 of 1 devices healthy")
    kept.wait_plugins_stored()
    kept.kill()
    kept.start()
    kept.wait_log("1 of 1 devices healthy", 2)
    assert "kubelet.sock" not in watch.names()


def test_the_bridge_s_connection_waits(kept, closing):
    kept.kill()
    feed = closing(Feed(kept.feed))
    watcher = closing(feed.watch())
    kept.start()
    watcher.wait(lambda shown: shown is not None)


def test_without_a_store_it_is_as_ever(directory, make_kept, closing):
    manager = closing(Supervisor(directory, keeps=False))
    shim = make_kept(manager)
    shim.start()
    shim.kill()
    assert not any(accepts(place(shim)) for place in PLACES.values())
    shim.start()
    for name, place in PLACES.items():
        wait_until(lambda: accepts(place(shim)), f"{name} is served")
    assert not manager.names() and ": goes on" not in shim.log()


def test_without_room_for_its_names_it_is_as_without_a_store(make_kept, make_client, make_plugin, directory,
                                                             closing):
    """One that had them kept all the same would not be started any more. It says so once."""
    passed = closing(socket.socket(socket.AF_UNIX))
    manager = closing(Supervisor(directory, passed={NAME_THAT_TAKES_ALL: passed.fileno()}))
    shim = make_kept(manager)
    shim.start()
    make_plugin(shim, GPU, ["g0"])
    shim.wait_plugins_stored()
    for count in range(1, 4):
        wait_until(lambda count=count: shim.log().count("1 of 1 devices healthy") == count, "it is heard")
        make_client(shim).Version()
        shim.kill()
        assert not manager.names() and shim.log().count("has no room for another") == count
        shim.start()


@pytest.mark.parametrize("which", PLACES)
@pytest.mark.parametrize("what", ["nothing", "a socket"])
def test_a_name_that_is_not_its_own_any_more(kept, manager, closing, directory, which, what):
    """Removed or replaced while it was dead: made anew, and the old one is let go of."""
    path = PLACES[which](kept)
    before = listeners(manager.names())
    kept.kill()
    path.rename(directory / "moved")
    if what == "a socket":
        closing(socket.socket(socket.AF_UNIX)).bind(str(path))
    kept.start()
    manager.wait_names(lambda names: are_stored(*PLACES)(names) and len(before & set(names)) == len(PLACES) - 1)
    wait_until(lambda: accepts(path), "it is served")
    wait_until(lambda: not accepts(directory / "moved"), "the old one is let go of")


@pytest.mark.parametrize("which", PLACES)
def test_removed_while_it_runs(kept, manager, which):
    path = PLACES[which](kept)
    before = listeners(manager.names())
    path.unlink()
    manager.wait_names(lambda names: are_stored(*PLACES)(names) and len(before & set(names)) == len(PLACES) - 1)
    made = inodes(kept)
    kept.kill()
    kept.start()
    assert inodes(kept) == made


def test_what_a_socket_unit_passes_is_not_stored(directory, make_kept, make_client, closing):
    """It would come twice. One that was made in its place is ours, and is."""
    listener = closing(socket.socket(socket.AF_UNIX))
    manager = closing(Supervisor(directory, passed={"a.socket": listener.fileno()}))
    shim = make_kept(manager)
    listener.bind(str(shim.socket))
    listener.listen(16)
    for _ in range(2):
        shim.start()
        manager.wait_names(are_stored(PLUGINS, FEED, CONTROL))
        make_client(shim).Version()
        shim.kill()
    shim.start()
    shim.socket.unlink()
    manager.wait_names(are_stored(*PLACES))
    for _ in range(2):
        made = inodes(shim)
        shim.kill()
        waiting = closing(connect(shim.socket))
        shim.start()
        assert greets(waiting) and inodes(shim) == made
        make_client(shim).Version()


def test_stopped_no_listener_is_kept(kept, manager):
    """Connections are, for a next one: that it is no restart only the manager knows."""
    kept.terminate()
    manager.wait_names(are_stored())
    assert not any(place(kept).exists() for place in PLACES.values())


def test_what_is_not_wanted_any_more_is_not_kept(kept, manager):
    kept.kill()
    kept.bridge["enabled"] = False
    kept.start()
    manager.wait_names(are_stored(CRI, PLUGINS, CONTROL))
    assert not accepts(kept.feed)


def test_stopped_before_it_serves_plugins(kept, manager):
    """Another process has its checkpoint, so that it never gets there: who waits is let go."""
    kept.kill()
    with connect(PLACES[PLUGINS](kept)) as waiting, locked(kept):
        kept.spawn()
        kept.wait_log(" -> ", 2)
        kept.terminate()
        manager.wait_names(are_stored())
        with pytest.raises(ConnectionResetError):
            waiting.recv(1)


def test_a_manager_that_gives_up(kept, manager):
    """All it kept goes; a daemon that is started all the same makes its sockets anew."""
    kept.kill()
    manager.give_up()
    assert not any(accepts(place(kept)) for place in PLACES.values())
    kept.start()
    manager.wait_names(are_stored(*PLACES))
    assert ": goes on" not in kept.log()
