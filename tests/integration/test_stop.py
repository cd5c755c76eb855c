"""The end of the shim on SIGTERM, and a start on a socket that the service manager passed."""

import os
import signal
import socket
import struct
import threading

import grpc
import pytest

from asking import by_token, refused
from capture import END_STREAM, GOAWAY, HEADERS, TO_CLIENT, FrameReader
from passed_shim import PassedShim
from protos import RUNTIME, cri
from rawh2 import Connection, framed
from runtime import Reply
from shim import accepts
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"


class SlowStatus:
    """A Status call that the runtime does not answer before release()."""

    def __init__(self, runtime):
        self.came = threading.Event()
        gate = threading.Event()
        self.release = gate.set

        def answer(call):
            self.came.set()
            gate.wait(GENEROUS_S)
            return Reply((b"",))

        runtime.on("Status", answer)


def terminate(shim):
    os.kill(shim.pid, signal.SIGTERM)
    shim.wait_log("stopping")


def test_a_call_under_way_is_finished(runtime, make_shim, make_client, background):
    """SIGTERM: nobody new is let in, the call that runs gets its answer, then the shim ends by itself."""
    shim = make_shim(top={"drain": "60s"})
    client = make_client(shim)
    slow = SlowStatus(runtime)
    call = background.submit(client.Status)
    assert slow.came.wait(GENEROUS_S)
    terminate(shim)
    wait_until(lambda: not accepts(shim.socket), "the socket is closed")
    assert not call.done()
    slow.release()
    call.result(GENEROUS_S)
    assert shim.wait_exit() == 0


class Leaving(Connection):
    """One that reads on after a GOAWAY, which python3-h2 does not: all frames, as they came."""

    def __init__(self, path):
        self._reader = FrameReader(TO_CLIENT)
        self.frames = []
        super().__init__(path)

    def take(self, data):
        self.frames += self._reader.feed(data)
        if not self.of(GOAWAY):
            super().take(data)

    def of(self, kind):
        return [frame for frame in self.frames if frame.type == kind]

    def read_until(self, kind, flag=0):
        while not any(frame.flags & flag == flag for frame in self.of(kind)):
            self.receive()


def test_clients_are_asked_to_go_elsewhere(runtime, make_shim, closing):
    """SIGTERM: GOAWAY without an error, which takes back no call that runs (RFC 9113 §6.8); that has
    its answer, and the client goes."""
    shim = make_shim(top={"drain": "60s"})
    slow = SlowStatus(runtime)
    connection = closing(Leaving(shim.socket))
    stream = connection.call(RUNTIME + "Status", framed(b""))
    assert slow.came.wait(GENEROUS_S)
    terminate(shim)
    connection.read_until(GOAWAY)
    assert not connection.of(HEADERS)
    slow.release()
    connection.read_until(HEADERS, END_STREAM)
    last, codes = zip(*[struct.unpack(">II", one.payload[:8]) for one in connection.of(GOAWAY)])
    assert set(codes) == {0} and min(last) >= stream
    assert list(last) == sorted(last, reverse=True), "the last stream is never a later one again"
    assert connection.of(HEADERS)[-1].stream == stream
    connection.close()
    assert shim.wait_exit() == 0


def test_a_hangup_is_no_end(runtime, make_shim, make_client):
    """The settings are read again, and calls go on."""
    shim = make_shim()
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log("reload: changed: nothing; needs a restart: nothing")
    make_client(shim).Version()


def test_the_drain_has_an_end(runtime, make_shim, make_client, background):
    """A call that goes on longer than `drain` is cut off."""
    shim = make_shim(top={"drain": "100ms"})
    client = make_client(shim)
    slow = SlowStatus(runtime)
    call = background.submit(client.Status)
    assert slow.came.wait(GENEROUS_S)
    terminate(shim)
    assert shim.wait_exit() == 0
    with pytest.raises(grpc.RpcError) as error:
        call.result(GENEROUS_S)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    slow.release()


def test_container_events_are_not_waited_for(runtime, make_shim, make_client):
    """A stream that never ends by itself is ended, so that the shim need not wait for it."""
    over = threading.Event()

    def events(_call):
        yield cri.ContainerEventResponse(container_id="one").SerializeToString()
        over.wait()

    shim = make_shim(top={"drain": "1h"})
    runtime.on("GetContainerEvents", lambda call: Reply(events(call)))
    stream = make_client(shim).events(timeout=GENEROUS_S)
    assert next(stream).container_id == "one"
    terminate(shim)
    with pytest.raises(grpc.RpcError) as error:
        next(stream)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "cri-device-shim stops" in error.value.details()
    assert shim.wait_exit() == 0
    over.set()


def said(notify):
    """The next message that is not about a descriptor."""
    while (message := notify.recv(1000)).startswith(b"FDSTORE"):
        pass
    return message


def test_what_waits_is_not_waited_for(runtime, directory, make_shim, make_client, make_plugin,
                                      background, closing, monkeypatch):
    """A container that waits for its device is refused, so that all others need not wait for the
    next daemon. systemd is told how long the rest may take."""
    notify = closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    notify.bind(str(directory / "notify"))
    notify.settimeout(GENEROUS_S)
    monkeypatch.setenv("NOTIFY_SOCKET", str(directory / "notify"))
    shim = make_shim(top={"drain": "1h"}, plugins={"hold": "1m"})
    assert said(notify) == b"READY=1\nSTATUS="
    client = make_client(shim)
    make_plugin(shim, GPU, ["g0"])
    pod = client.run_pod("web")
    call = background.submit(client.create, pod, "main", annotations=by_token(GPU, "g9"))
    shim.wait_log("held: container")
    terminate(shim)
    with refused(grpc.StatusCode.UNAVAILABLE, "g9", "the shim is being stopped"):
        call.result(GENEROUS_S)
    assert shim.wait_exit() == 0
    assert said(notify) == b"STOPPING=1\nEXTEND_TIMEOUT_USEC=3610000000"


def test_a_second_signal_ends_it_at_once(runtime, make_shim, make_client, background):
    shim = make_shim(top={"drain": "1h"})
    client = make_client(shim)
    slow = SlowStatus(runtime)
    call = background.submit(client.Status)
    assert slow.came.wait(GENEROUS_S)
    terminate(shim)
    os.kill(shim.pid, signal.SIGTERM)
    assert shim.wait_exit() == 0
    with pytest.raises(grpc.RpcError):
        call.result(GENEROUS_S)
    slow.release()


def test_a_socket_passed_by_systemd(runtime, directory, runtime_socket, closing, make_client, background):
    """The socket outlives the daemon: a call made while none runs waits in it for the next."""
    shim = closing(PassedShim(directory, runtime_socket, top={"drain": "100ms"}))
    shim.listen()
    shim.start()
    make_client(shim).Version()
    shim.stop()
    assert shim.socket.exists()
    call = background.submit(lambda: make_client(shim).Version())
    shim.start()
    assert call.result(GENEROUS_S).runtime_name == "recorder"
    shim.stop()
    shim.listener.close()
