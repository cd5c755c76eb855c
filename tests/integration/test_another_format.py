"""A release that goes on with connections in another way takes the place of one that runs, and back."""

import array
import concurrent.futures
import fcntl
import os
import pathlib
import signal
import termios

import grpc
import pytest

import rawpair
from asking import by_token, refused
from capture import (TO_CLIENT, TO_SERVER, Frames, connect, load, random_chunks, rechunked, replay,
                     sent, streams_of_path)
from h2runtime import H2Runtime
from kept_shim import kept_shim
from protos import RUNTIME
from shim import BINARY
from slow import Slow
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
# What a release leaves to another (JOURNAL_MOVED_FORMAT), and this one's own (JOURNAL_FORMAT).
MOVED, JOURNAL = b"SHMOVE01", b"SHJRNL0"
LEFT = b"SHLEFT01"  # LEFT_STREAMS_READER
STRIKES_MAX = 10  # each delays the exchange
LIVES_S = 0.05
# Keeps connections in another way, of which it leaves the same.
RECORDED = sorted((pathlib.Path(__file__).parent / "captures").glob("kubelet*-runtime.cap"))
OTHER = BINARY.parents[1] / "tests" / "points" / "cri-device-shim-points"


def this_release():
    return BINARY.read_bytes()


def other_release():
    program = OTHER.read_bytes()
    assert JOURNAL in this_release() and JOURNAL not in program
    return program


def distant_release():
    """One that cannot go on with what others leave."""
    program = this_release()
    assert b"goes on with " + MOVED in program
    return program.replace(MOVED, b"SHMOVE99")


def deaf_release():
    """One that does not listen to plugins on streams that others have opened."""
    program = this_release()
    assert b"goes on with streams of plugins " + LEFT in program
    return program.replace(LEFT, b"SHLEFT99")


class Installed:
    """A program that is replaced as an installer does it."""

    def __init__(self, path):
        self.path = path

    def put(self, program):
        new = self.path.with_suffix(".new")
        new.write_bytes(program)
        new.chmod(0o755)
        new.rename(self.path)


@pytest.fixture
def installed(directory):
    return Installed(directory / "cri-device-shim")


@pytest.fixture
def start(directory, runtime_socket, manager, installed, closing):
    def begin(program, **settings):
        installed.put(program)
        shim = closing(kept_shim(manager)(directory, runtime_socket, **settings))
        shim.binary = installed.path
        shim.start()
        return shim

    return begin


@pytest.fixture
def h2runtime(runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


def begun(runtime, client, background):
    slow = Slow(runtime, "StartContainer")
    call = background.submit(client.StartContainer, container_id="one")
    assert slow.came.wait(GENEROUS_S)
    return slow, call


def one_held(shim, client, make_plugin, background):
    """A creation that waits for a device whose plugin is gone."""
    plugin = make_plugin(shim, GPU, ["g0"])
    pod = client.run_pod("web")
    shim.wait_log("1 of 1 devices healthy")
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    held = background.submit(client.create, pod, "main", annotations=by_token(GPU, "g0"))
    shim.wait_log("held: container")
    return held


def stop_and_start(shim, installed, program):
    """As an upgrade."""
    before = shim.log().count(" go on")
    installed.put(program)
    os.kill(shim.pid, signal.SIGTERM)
    assert shim.wait_exit() == 0
    shim.start()
    wait_until(lambda: shim.log().count(" go on") > before, "connections go on")


def releases(forth):
    return (this_release, other_release) if forth else (other_release, this_release)


@pytest.mark.parametrize("forth", [True, False])
def test_killed_it_leaves_nothing_to_another(runtime, start, installed, make_client, background,
                                             forth):
    """What has come since the last state only the same release does again."""
    before, after = releases(forth)
    shim = start(before())
    slow, call = begun(runtime, make_client(shim), background)
    installed.put(after())
    shim.kill()
    shim.start()
    with pytest.raises(grpc.RpcError):
        call.result(GENEROUS_S)
    shim.wait_log("cannot be gone on with")
    assert slow.calls[0].over.wait(GENEROUS_S), "it is cancelled"
    slow.release()


@pytest.mark.parametrize("forth", [True, False])
def test_told_to_stop_it_leaves_all_to_another(runtime, start, installed, make_client, make_plugin,
                                               background, forth):
    """Calls under way at the runtime, and those that wait for a device."""
    before, after = releases(forth)
    shim = start(before(), top={"drain": "1h"}, plugins={"hold": "50s", "grace": "1m"})
    client = make_client(shim)
    held = one_held(shim, client, make_plugin, background)
    slow, call = begun(runtime, client, background)
    for program in after, before, after:
        stop_and_start(shim, installed, program())
    assert not held.done() and not call.done()
    make_plugin(shim, GPU, ["g0"])
    held.result(GENEROUS_S)
    slow.release()
    call.result(GENEROUS_S)
    client.Version()
    assert len(slow.calls) == 1
    assert "cannot be gone on with" not in shim.log()


def check_played(records, got):
    """Both ends, by what `got` has of (client, server), have got what they sent each other."""
    loose = streams_of_path(sent(records, TO_SERVER), RUNTIME + "CreateContainer")
    for direction, have in zip((TO_CLIENT, TO_SERVER), got):
        want = sent(records, direction)
        if not loose:
            assert have == want
        assert not Frames(have, direction, loose).differences(Frames(want, direction, loose))


@pytest.mark.parametrize("how", ["killed", "upgraded"])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_exchanges_go_on(h2runtime, manager, start, installed, background, path, how):
    """A real kubelet's and a real runtime's, of grpc-go, cut anywhere, while the daemon is killed and
    comes back, or is replaced by another release and back, again and again."""
    records = rechunked(load(path), random_chunks(1))
    shim = start(this_release())
    rawpair.wait_quiet(shim)
    h2runtime.want_raw()
    client = connect(shim.socket)
    server = h2runtime.take_raw()
    loose = streams_of_path(sent(records, TO_SERVER), RUNTIME + "CreateContainer")
    played = background.submit(replay, records, client, server, loose=loose, one_by_one=True)
    wait_until(lambda: any(name.startswith("relayed/") for name in manager.names()), "it is kept")
    strikes = 0
    while not played.done() and strikes < STRIKES_MAX:
        concurrent.futures.wait([played], LIVES_S)
        if how == "upgraded":
            installed.put((other_release if strikes % 2 == 0 else this_release)())
            os.kill(shim.pid, signal.SIGTERM)
            assert shim.wait_exit() == 0
        else:
            shim.kill()
        shim.start()
        strikes += 1
    check_played(records, played.result(2 * GENEROUS_S))
    assert strikes
    assert "cannot be gone on with" not in shim.log()


class Torn:
    """A connection by hand, with half a header block on its way from one end; `rest` is the rest."""

    def __init__(self, h2runtime, shim, end, closing):
        client, server = (closing(sock) for sock in rawpair.connected(h2runtime, shim))
        request = rawpair.headers(1, rawpair.request_fields("/x/Any")).encode()
        answer = rawpair.headers(1, [(":status", "200")]).encode()
        self.words = answer if end == "runtime" else request
        if end == "runtime":
            client.sendall(request)
            rawpair.receive_all(server, [request])
        self._from, self.to = (server, client) if end == "runtime" else (client, server)
        half = len(self.words) // 2
        self.rest = self.words[half:]
        self.send(self.words[:half])
        wait_until(self._is_read, "the shim has read of it")

    def send(self, piece):
        self._from.sendall(piece)

    def _is_read(self):
        left = array.array("i", [0])
        fcntl.ioctl(self._from, termios.TIOCOUTQ, left)
        return left[0] == 0

    def check_whole(self):
        rawpair.receive_all(self.to, [self.words])


@pytest.mark.parametrize("end", ["client", "runtime"])
@pytest.mark.parametrize("forth", [True, False])
def test_told_to_stop_within_a_header_block(h2runtime, start, installed, closing, forth, end):
    """The rest of it comes, and then there is what another release can read."""
    before, after = releases(forth)
    shim = start(before())
    torn = Torn(h2runtime, shim, end, closing)
    installed.put(after())
    os.kill(shim.pid, signal.SIGTERM)
    shim.wait_log("stopping: Terminated")
    torn.send(torn.rest)
    assert shim.wait_exit() == 0
    shim.start()
    torn.check_whole()
    assert "cannot be gone on with" not in shim.log()


def test_told_to_stop_within_a_block_that_does_not_end(h2runtime, start, installed, closing):
    """It is not waited for long. The same release goes on within it, another ends the connection."""
    shim = start(this_release())
    torn = Torn(h2runtime, shim, "client", closing)
    for program in this_release, other_release:
        installed.put(program())
        os.kill(shim.pid, signal.SIGTERM)
        assert shim.wait_exit() == 0
        shim.start()
        if program == this_release:
            shim.wait_log(" go on")
    shim.wait_log("cannot be gone on with")
    torn.to.settimeout(GENEROUS_S)
    while torn.to.recv(1 << 16):
        pass


def test_an_image_that_takes_longer_than_drain(runtime, start, installed, make_client, background):
    shim = start(this_release(), top={"drain": "1ms"})
    client = make_client(shim)
    slow = Slow(runtime, "PullImage")
    pulled = background.submit(client.PullImage)
    assert slow.came.wait(GENEROUS_S)
    for program in other_release, this_release, other_release:
        stop_and_start(shim, installed, program())
        client.Version()
    assert not pulled.done()
    slow.release()
    pulled.result(GENEROUS_S)
    assert len(slow.calls) == 1


@pytest.mark.parametrize("forth", [True, False])
def test_calls_end_first(runtime, manager, start, installed, make_client, make_plugin, background,
                         forth):
    """Told to stop, one that sees a release come which is too distant asks its clients for other
    connections, and ends when their calls are over. Nothing is cancelled; who waits asks again."""
    before, after = this_release(), distant_release()
    if not forth:
        before, after = after, before
    shim = start(before, top={"drain": "1h"}, plugins={"hold": "50s", "grace": "1m"})
    client = make_client(shim)
    held = one_held(shim, client, make_plugin, background)
    slow, call = begun(runtime, client, background)
    installed.put(after)
    os.kill(shim.pid, signal.SIGTERM)
    shim.wait_log("cannot go on with connections; calls under way end first")
    with refused(grpc.StatusCode.UNAVAILABLE, "the shim is being stopped"):
        held.result(GENEROUS_S)
    slow.release()
    call.result(GENEROUS_S)
    assert shim.wait_exit() == 0
    wait_until(lambda: not any(name.startswith("relayed/") for name in manager.names()),
               "nothing is left to the next one")
    shim.start()
    client.reconnect()
    client.Version()
    assert len(slow.calls) == 1
    assert "cannot be gone on with" not in shim.log()


def test_streams_of_plugins_end_first(runtime, manager, start, installed, make_plugin):
    """Those of the one that is told to stop, and of one before it that died."""
    def left():
        return [name for name in manager.names() if name.startswith("plugin/")]

    shim = start(this_release())
    plugin = make_plugin(shim, GPU, ["g0"])
    shim.wait_log("1 of 1 devices healthy")
    shim.wait_plugins_stored()
    shim.kill()
    shim.start()
    wait_until(lambda: len(left()) == 2, "both are left")
    installed.put(deaf_release())
    os.kill(shim.pid, signal.SIGTERM)
    assert shim.wait_exit() == 0
    wait_until(lambda: not left() and plugin.stream_count() == 0, "none is left to the next one")


def test_of_the_same_format_they_are_left(runtime, start, installed, make_client, background):
    """Another file, and another release perhaps, that can read them."""
    shim = start(this_release(), top={"drain": "1h"})
    slow, call = begun(runtime, make_client(shim), background)
    installed.put(this_release() + b"and more")
    os.kill(shim.pid, signal.SIGTERM)
    assert shim.wait_exit() == 0
    shim.start()
    shim.wait_log("1 connections of the daemon before this one go on")
    slow.release()
    call.result(GENEROUS_S)
