"""HTTP/2 against the rules: one bad client is answered or passed on, and never harms another.

What the shim need not understand passes, and is the runtime's to judge; so the runtime's end of the
bad connection is a bare socket that takes everything and says nothing, the worst it could do.
"""

import functools
import itertools
import select
import socket
import struct
import threading

import hpack
import pytest

import rawpair
from capture import (CONTINUATION, DATA, END_HEADERS, GOAWAY, HEADERS, PADDED, PING,
                     PREFACE, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, TO_CLIENT,
                     WINDOW_UPDATE, Frame, FrameReader, connect)
from h2runtime import H2Runtime
from process import MIB, Peak, is_sanitized, open_files
from protos import RUNTIME
from rawh2 import Connection, framed
from waiting import wait_until

CREATE = RUNTIME + "CreateContainer"
FLOOD_BYTES = 16 * MIB
NO_ERROR, PROTOCOL_ERROR, _, FLOW_CONTROL_ERROR = range(4)
FRAME_SIZE_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 6, 9, 11


@pytest.fixture
def runtime(small_quarantine, runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


class Drain(threading.Thread):
    """Takes all that comes, until the end."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self._socket = sock
        self.start()

    def run(self):
        try:
            while self._socket.recv(1 << 18):
                pass
        except OSError:
            pass  # an end by force is an end
        finally:
            self._socket.close()


class Growth:
    """The most memory that the shim used beyond what it had at first."""

    def __init__(self, shim):
        self._peak = Peak(shim.pid)
        # The sanitizer keeps 8 MiB of what was freed, and has fences around all that is not.
        self._most = 24 * MIB if is_sanitized(shim.pid) else 4 * MIB

    def check(self, more=0):
        assert self._peak.growth() < self._most + more


@pytest.fixture
def bystander(runtime, shim, closing):
    """A good client of the same shim: check() makes it call."""
    rawpair.wait_quiet(shim)
    connection = closing(Connection(shim.socket))

    class Bystander:
        @staticmethod
        def check():
            for path in ("/x/Echo", CREATE):
                stream = connection.call(path, framed(b""))
                assert connection.wait_end(stream).status == 0

    Bystander.check()
    return Bystander


@pytest.fixture
def bad(runtime, shim, bystander, closing):
    """A bare client socket whose runtime takes everything and says nothing."""
    client, server = rawpair.connected(runtime, shim)
    Drain(server)
    return closing(client)


@functools.lru_cache(maxsize=100)
def _head(path, flags, end):
    return rawpair.headers(0, rawpair.request_fields(path), flags=flags, end=end)


def head(stream, path=CREATE, flags=END_HEADERS, end=False):
    return _head(path, flags, end)._replace(stream=stream).encode()


def frame(kind, flags, stream, payload=b""):
    return Frame(kind, flags, stream, payload).encode()


NOT_HTTP2 = {"HTTP/1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "zeros": bytes(100_000),
             "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
             "almost": PREFACE[:-1] + b"x"}


@pytest.mark.parametrize("words", NOT_HTTP2.values(), ids=NOT_HTTP2.keys())
def test_not_http2(shim, bystander, words):
    """Whoever does not speak HTTP/2 is cut off at once; whoever says nothing harms nobody."""
    with connect(shim.socket) as silent, connect(shim.socket) as client:
        client.sendall(words)
        received_until_closed(client)
        silent.sendall(PREFACE[:10])
        bystander.check()


def received_until_closed(sock):
    """What still comes before the peer closes, which it must."""
    got = bytearray()
    try:
        while data := sock.recv(1 << 16):
            got += data
    except ConnectionError:
        pass  # closed with bytes of ours unread
    return bytes(got)


def goaway_code(data):
    """The error code of the last frame, which must be a GOAWAY."""
    last = FrameReader(TO_CLIENT).feed(data)[-1]
    assert last.type == GOAWAY
    return struct.unpack(">I", last.payload[4:8])[0]


OFFENCES = {
    "frame inside a header block": (
        PROTOCOL_ERROR, [head(1, flags=0), frame(PING, 0, 0, bytes(8))]),
    "continuation of another stream": (
        PROTOCOL_ERROR, [head(1, flags=0), frame(CONTINUATION, END_HEADERS, 3)]),
    "continuation of nothing": (PROTOCOL_ERROR, [frame(CONTINUATION, END_HEADERS, 1)]),
    "push": (PROTOCOL_ERROR, [frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4))]),
    "headers without a stream": (PROTOCOL_ERROR, [head(0)]),
    "padding longer than the frame": (PROTOCOL_ERROR, [frame(HEADERS, PADDED, 1, b"\xff123")]),
    "padding longer than withheld data": (
        PROTOCOL_ERROR, [head(1), frame(DATA, PADDED, 1, b"\xff123")]),
    "not HPACK": (COMPRESSION_ERROR, [frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff")]),
    "a string of a gigabyte": (
        COMPRESSION_ERROR,
        [frame(HEADERS, 0, 1, b"\x00\x7f\x81\xff\xff\xff\x03")]
        + [frame(CONTINUATION, 0, 1, bytes(16384))] * 100),
    "a header list without end": (  # RFC 9113 §10.5.1 leaves the choice
        COMPRESSION_ERROR,
        [head(1, flags=0)] + [frame(CONTINUATION, 0, 1, b"\x82" * 16384)] * 2000),
    "empty continuations without end": (
        ENHANCE_YOUR_CALM, [head(1, flags=0)] + [frame(CONTINUATION, 0, 1)] * 1_000_000),
    "settings without end": (ENHANCE_YOUR_CALM, [frame(SETTINGS, 0, 0)] * 10_000),
    "calls without end": (ENHANCE_YOUR_CALM, [head(2 * n + 1) for n in range(10_000)]),
    "a withheld frame over the size": (
        FRAME_SIZE_ERROR, [head(1), frame(DATA, 0, 1, bytes(1 << 20))]),
}


@pytest.mark.release
@pytest.mark.parametrize("name", OFFENCES)
def test_offences(shim, bystander, bad, name):
    """What would get the shim out of step is answered as RFC 9113 says, and ends that client."""
    code, frames = OFFENCES[name]
    growth = Growth(shim)
    try:
        for at in range(0, len(frames), 1000):
            bad.sendall(b"".join(frames[at:at + 1000]))
    except ConnectionError:
        pass
    assert goaway_code(received_until_closed(bad)) == code
    growth.check()
    bystander.check()


@pytest.mark.parametrize("length, indexing", [(200_000, False), (200_000, True), (2_000_000, False)])
def test_a_long_field_passes(runtime, shim, bystander, closing, length, indexing):
    """Less than the 16 MiB that grpc-go takes: as it came, both ways, on a connection that goes on."""
    client, server = (closing(sock) for sock in rawpair.connected(runtime, shim))
    encoder = hpack.Encoder()
    for stream in (1, 3):
        for sender, receiver, fields in (
                (client, server, rawpair.request_fields(CREATE) + [("x-long", "y" * length)]),
                (server, client, [(":status", "200"), ("grpc-message", "z" * length)])):
            block = encoder.encode([(*field, not indexing) for field in fields], huffman=indexing)
            pieces = [block[at:at + 16384] for at in range(0, len(block), 16384)]
            for piece in pieces:
                one = frame(HEADERS if piece is pieces[0] else CONTINUATION,
                            END_HEADERS if piece is pieces[-1] else 0, stream, piece)
                sender.sendall(one)
                rawpair.receive_all(receiver, [one])
    bystander.check()


def rapid_reset(path, data=b""):
    """Calls that are begun, perhaps some of their message sent, and reset."""
    cancel = struct.pack(">I", 8)
    for first in itertools.count(1, 200):
        yield b"".join(head(stream, path) + (frame(DATA, 0, stream, data) if data else b"")
                       + frame(RST_STREAM, 0, stream, cancel)
                       for stream in range(first, first + 200, 2))


FLOODS = {
    "rapid reset": lambda: rapid_reset("/x/Echo"),
    "rapid reset of creates": lambda: rapid_reset(CREATE),
    "half creates": lambda: rapid_reset(CREATE, framed(bytes(100))[:50]),
    "pings": lambda: itertools.repeat(frame(PING, 0, 0, bytes(8)) * 100),
    "priorities": lambda: itertools.repeat(frame(PRIORITY, 0, 1, bytes(5)) * 100),
    "window updates": lambda: itertools.repeat(frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 100),
    "acknowledgements": lambda: itertools.repeat(frame(SETTINGS, 1, 0) * 100),
    "unknown frames": lambda: itertools.repeat(frame(0xee, 0, 0, bytes(1 << 20))),
    "oversized data": lambda: itertools.chain(
        [head(1, "/x/Echo")], itertools.repeat(frame(DATA, 0, 1, bytes((1 << 24) - 1)))),
    "data on closed streams": lambda: itertools.chain(
        [head(1, "/x/Echo", end=True)], itertools.repeat(frame(DATA, 0, 1, bytes(1000)) * 10)),
    "data on idle streams": lambda: itertools.repeat(frame(DATA, 0, 999, bytes(1000)) * 10),
    "empty data": lambda: itertools.chain(
        [head(1, "/x/Echo")], itertools.repeat(frame(DATA, 0, 1) * 100)),
    "empty data of a create": lambda: itertools.chain(
        [head(1)], itertools.repeat(frame(DATA, 0, 1) * 100)),
    "header blocks": lambda: (head(2 * number + 1, "/x/" + "y" * 8000, end=True)
                              for number in itertools.count()),
}


@pytest.mark.release
@pytest.mark.parametrize("name", FLOODS)
def test_floods(shim, bystander, bad, name):
    """Much of what passes, for a runtime that never objects: memory stays bounded, others are
    served in the meantime."""
    growth = Growth(shim)
    Drain(bad.dup())
    sent = calls = 0
    for piece in FLOODS[name]():
        bad.sendall(piece)
        sent += len(piece)
        if sent > (calls + 1) * FLOOD_BYTES // 4:
            bystander.check()
            calls += 1
        if sent > FLOOD_BYTES:
            break
    growth.check()
    before = len(open_files(shim.pid))
    bad.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: len(open_files(shim.pid)) == before - 2, "its connections are closed")
    bystander.check()


@pytest.mark.release
def test_a_client_that_reads_nothing(shim, bystander, bad):
    """It gets credit for what was withheld and never reads it: it is not read any more either."""
    growth = Growth(shim)
    for piece in rapid_reset(CREATE, framed(bytes(100))[:50]):
        if not select.select([], [bad], [], 1)[1]:
            break
        bad.send(piece, socket.MSG_DONTWAIT)
    else:
        pytest.fail("the shim read on")
    growth.check()
    bystander.check()


@pytest.mark.release
def test_withheld_bytes_are_limited(shim, bystander, bad):
    """Messages that never become whole, on as many streams as it takes: held up to a limit, then
    refused, for whoever keeps to his windows."""
    growth = Growth(shim)
    Drain(bad.dup())
    message_head = b"\0" + struct.pack(">I", 15 * MIB)
    for stream in range(1, 41, 2):
        bad.sendall(head(stream) + frame(DATA, 0, stream, message_head))
        for _ in range(14 * MIB // 16384):
            bad.sendall(frame(DATA, 0, stream, bytes(16384)))
    growth.check(more=80 * MIB)  # the limit is 64
    bad.shutdown(socket.SHUT_RDWR)
    bystander.check()
