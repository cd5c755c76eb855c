"""A bare client socket and the bare runtime socket that the shim connected for it, for frames that
no library sends. Needs an H2Runtime, which goes on serving all other connections."""

import struct

import hpack

from capture import (ACK, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE, Frame,
                     connect)
from rawh2 import Connection, framed

# Both ends' first words: the widest stream windows, and a wide one for the connection.
_WIDE_OPEN = (Frame(SETTINGS, 0, 0, struct.pack(">HI", 4, (1 << 31) - 1)).encode()
              + Frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)).encode())
# A client's, for who does not want to wait for the other end.
PREFACE_WIDE_OPEN = PREFACE + _WIDE_OPEN
_ACKNOWLEDGED = Frame(SETTINGS, ACK, 0, b"").encode()


def wait_quiet(shim):
    """The shim has connected to the runtime and listed: what connects from now on is the test's."""
    shim.wait_log("runtime listed")
    # Connections come to the runtime in the order in which the shim made them.
    with Connection(shim.socket) as first:
        assert first.wait_end(first.call("/x/Echo", framed(b""))).status == 0


def connected(runtime, shim):
    """(client, server), which have spoken their first words."""
    wait_quiet(shim)
    runtime.want_raw()
    client = connect(shim.socket)
    server = runtime.take_raw()
    client.sendall(PREFACE + _WIDE_OPEN)
    receive_all(server, [PREFACE + _WIDE_OPEN])
    server.sendall(_WIDE_OPEN + _ACKNOWLEDGED)
    receive_all(client, [_WIDE_OPEN + _ACKNOWLEDGED])
    client.sendall(_ACKNOWLEDGED)
    receive_all(server, [_ACKNOWLEDGED])
    return client, server


def receive_all(sock, expected):
    """Reads what `expected` yields, piece by piece, and not a byte more."""
    for piece in expected:
        got = bytearray()
        while len(got) < len(piece):
            data = sock.recv(len(piece) - len(got))
            assert data, "the connection ended"
            got += data
        assert got == piece


def request_fields(path):
    return [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
            ("content-type", "application/grpc")]


def headers(stream, fields, flags=END_HEADERS, end=False):
    """One HEADERS frame, which leaves no trace in the header table."""
    block = hpack.Encoder().encode([(*field, True) for field in fields], huffman=False)
    return Frame(HEADERS, flags | (END_STREAM if end else 0), stream, block)
