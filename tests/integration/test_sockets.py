"""Our sockets, whatever stands in their place or becomes of them: the relay goes on, and each comes
back by itself."""

import os
import shutil
import socket

import pytest

from feed import Feed
from passed_shim import PassedShim
from plugin import Plugin
from shim import Shim, accepts
from waiting import wait_until

GPU = "vendor.com/gpu"

PLACES = {"listen": lambda shim: shim.socket,
          "plugin_dir": lambda shim: shim.plugin_dir / "kubelet.sock",
          "bridge.socket": lambda shim: shim.feed,
          "control.socket": lambda shim: shim.control}


class Listener:
    """Somebody else, who serves the socket."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(16)

    def remove(self):
        self.socket.close()


class Directory:
    """With something in it, so that nobody may remove it."""

    def __init__(self, path):
        self.path = path
        (path / "something").mkdir(parents=True)

    def remove(self):
        """At once: as soon as it is empty the shim removes it."""
        shutil.rmtree(self.path.rename(self.path.with_suffix(".aside")))


class File:
    """With something in it."""

    def __init__(self, path):
        self.path = path
        self.path.write_text("precious")

    def remove(self):
        assert self.path.read_text() == "precious"
        self.path.unlink()


class NoDirectory:
    """A file where the socket's directory is to be."""

    def __init__(self, path):
        self.path = path.parent
        self.path.write_text("")

    def remove(self):
        self.path.unlink()


def empty_directory(path):
    path.mkdir()


def a_file(path):
    path.write_text("")


def a_symlink(path):
    (path.parent / "target").write_text("kept")
    path.symlink_to(path.parent / "target")


def apart(directory, runtime_socket):
    """A shim whose sockets have a directory each."""
    shim = Shim(directory, runtime_socket, control={"socket": str(directory / "c/control.sock")})
    shim.control = directory / "c" / "control.sock"
    for name, path in (("listen", directory / "l" / "s.sock"), ("socket", directory / "f/feed.sock")):
        (shim.top if name == "listen" else shim.bridge)[name] = str(path)
    shim.socket, shim.feed = directory / "l" / "s.sock", directory / "f" / "feed.sock"
    return shim


@pytest.mark.parametrize("obstacle", [Listener, Directory, File, NoDirectory])
@pytest.mark.parametrize("place", PLACES)
def test_something_that_cannot_be_removed(runtime, directory, runtime_socket, closing, make_client,
                                          place, obstacle):
    """All else is served at once; that socket as soon as there is room for it."""
    shim = closing(apart(directory, runtime_socket))
    path = PLACES[place](shim)
    if obstacle is not NoDirectory:
        path.parent.mkdir()
    one = obstacle(path)
    shim.spawn()
    for name, other in PLACES.items():
        if name != place:
            wait_until(lambda: accepts(other(shim)), f"{name} is served")
    shim.wait_log("trying again until it works")
    if place != "listen":
        make_client(shim).Version()
    one.remove()
    shim.wait_log(": works now")
    assert accepts(path)
    make_client(shim).Version()
    assert shim.log().count("trying again until it works") == 1


@pytest.mark.parametrize("stray", [empty_directory, a_file, a_symlink])
@pytest.mark.parametrize("place", PLACES)
def test_something_stray(runtime, directory, runtime_socket, closing, place, stray):
    """It is replaced, as the kubelet does it; an untyped hostPath of a missing file is an empty
    directory."""
    shim = closing(apart(directory, runtime_socket))
    path = PLACES[place](shim)
    path.parent.mkdir()
    stray(path)
    shim.start()
    wait_until(lambda: accepts(path), f"{place} is served")
    if stray is a_symlink:
        assert (path.parent / "target").read_text() == "kept"


@pytest.mark.parametrize("how", ["file", "content", "directory"])
def test_removed_sockets_come_back(runtime, directory, runtime_socket, closing, make_client, how):
    """Who is connected stays so."""
    shim = closing(apart(directory, runtime_socket))
    shim.start()
    wait_until(lambda: accepts(shim.feed), "the feed is served")
    before = make_client(shim)
    before.Version()
    for place in PLACES.values():
        path = place(shim)
        if how == "directory":
            shutil.rmtree(path.parent)
        else:
            path.unlink()
        if how == "content":
            path.write_text("")  # and another thing in its place
    for name, place in PLACES.items():
        wait_until(lambda: accepts(place(shim)), f"{name} is back")
    before.Version()
    make_client(shim).Version()
    feed = closing(Feed(shim.feed))
    watcher = closing(feed.watch())
    plugin = closing(Plugin(shim.plugin_dir, GPU, ["g0"]))
    plugin.start()
    watcher.wait(lambda shown: GPU in shown)
    for place in PLACES.values():
        assert place(shim).stat().st_mode & 0o777 == 0o600


def test_another_s_socket_is_left_alone(runtime, directory, runtime_socket, closing):
    """Bound in place of ours while we ran: it is not taken over, nor removed at the end."""
    shim = closing(apart(directory, runtime_socket))
    shim.start()
    path = shim.plugin_dir / "kubelet.sock"
    path.unlink()
    other = Listener(path)
    shim.wait_log("kubelet.sock: another process serves this socket")
    shim.stop()
    assert accepts(path)
    other.remove()


def test_a_passed_socket_that_is_removed(runtime, directory, runtime_socket, closing, make_client):
    """The next daemon, too, is passed the socket that nobody can reach any more."""
    shim = closing(PassedShim(directory, runtime_socket, top={"drain": "100ms"}))
    shim.listen()
    shim.start()
    shim.socket.unlink()
    wait_until(lambda: accepts(shim.socket), "the socket is back")
    make_client(shim).Version()
    shim.kill()  # leaves a file that nobody serves
    assert not accepts(shim.socket)
    shim.start()
    make_client(shim).Version()
    shim.stop()
    assert not shim.socket.exists()
    shim.listener.close()


def test_the_umask_does_not_matter(runtime, directory, runtime_socket, closing):
    shim = closing(apart(directory, runtime_socket))
    before = os.umask(0o777)
    try:
        shim.log_path.touch(0o600)
        shim.log_path.chmod(0o600)
        shim.config_path.touch()
        shim.config_path.chmod(0o600)
        shim.spawn()
    finally:
        os.umask(before)
    for place in PLACES.values():
        wait_until(lambda: accepts(place(shim)), "it is served")
        assert place(shim).stat().st_mode & 0o777 == 0o600
        assert place(shim).parent.stat().st_mode & 0o777 == 0o755
