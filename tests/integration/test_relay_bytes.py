"""Any HTTP/2 that only passes is the same behind the daemon, byte for byte, whoever is killed or told
to stop in the middle of it: of a header block, a frame, a frame's head."""

import os
import random
import signal
import socket
import struct
import threading
import time

import hpack
import pytest

import rawpair
from capture import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PRIORITY,
                     PRIORITY_FLAG, SETTINGS, WINDOW_UPDATE, Frame)
from h2runtime import H2Runtime
from kept_shim import kept_shim
from protos import RUNTIME
from rawh2 import framed
from waiting import GENEROUS_S, wait_until

METHODS = ("Version", "ListContainers", "StartContainer", "StopPodSandbox", "RunPodSandbox",
           "GetContainerEvents", "NoMethod")
SETTINGS_MOST = 200  # none is acknowledged
STREAMS = 60  # that are spoken of
CHUNKS = (1, 3, 9, 10, 100, 5000, 70_000, 1 << 20)


class Talk:
    """What one end says: frames of all kinds, on `streams` that the client begins."""

    def __init__(self, draw, is_client, streams):
        self._draw = draw
        self._is_client = is_client
        self._streams = streams
        self._encoder = hpack.Encoder()
        self._settings = 0

    def burst(self):
        return b"".join(self._piece() for _ in range(self._draw.randrange(1, 30)))

    def _piece(self):
        draw, stream = self._draw, self._draw.choice(self._streams)
        kind = draw.randrange(11)
        if kind < 4:
            return self._request() if self._is_client else self._answer(stream)
        if kind < 6:
            body = draw.randbytes(draw.choice((0, 1, 300, 16_000)))
            return self._data(stream, body, draw.random() < .2)
        if kind == 6:
            return Frame(PING, draw.choice((0, ACK)), 0, draw.randbytes(8)).encode()
        if kind == 7 and self._settings < SETTINGS_MOST:
            self._settings += 1
            return Frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 16384) * draw.randrange(3)).encode()
        if kind == 8:
            more = struct.pack(">I", 1 + draw.randrange(999))
            return Frame(WINDOW_UPDATE, 0, draw.choice((0, stream)), more).encode()
        if kind == 9:  # of types that nobody knows
            body = draw.randbytes(draw.randrange(99))
            return Frame(draw.choice((10, 77, 200)), draw.randrange(256), 0, body).encode()
        return Frame(PRIORITY, 0, stream, bytes(5)).encode()

    def _request(self):
        draw, stream = self._draw, self._streams[-1] + 2
        self._streams.append(stream)
        del self._streams[:-STREAMS]
        fields = rawpair.request_fields(RUNTIME + draw.choice(METHODS))
        fields.append((f"x-{draw.randrange(20)}", "v" * draw.choice((0, 5, 3000))))
        return (self._block(stream, fields, False)
                + self._data(stream, framed(draw.randbytes(draw.choice((0, 3, 2000, 20_000)))), True))

    def _answer(self, stream):
        draw = self._draw
        trailers = [("grpc-status", draw.choice("05")), ("grpc-message", "m" * draw.randrange(99))]
        return (self._block(stream, [(":status", "200"), ("content-type", "application/grpc")], False)
                + self._data(stream, framed(draw.randbytes(draw.choice((0, 40, 2000, 100_000)))), False)
                + self._block(stream, trailers, True))

    def _padded(self, flags, body):
        pad = self._draw.randrange(256)
        if self._draw.random() > .1:
            return flags, body
        return flags | PADDED, bytes([pad]) + body + bytes(pad)

    def _block(self, stream, fields, ends):
        """In one frame or some, CONTINUATIONs without a byte among them."""
        draw = self._draw
        if draw.random() < .1:
            self._encoder.header_table_size = draw.choice((0, 100, 1000, 4096))
        block, cuts = self._encoder.encode(fields, huffman=draw.random() < .5), []
        if draw.random() < .4:
            cuts = sorted(draw.randrange(len(block) + 1) for _ in range(draw.randrange(6)))
        parts = [block[a:b] for a, b in zip([0, *cuts], [*cuts, len(block)])]
        flags = [END_STREAM if ends else 0, *(0 for _ in cuts)]
        flags[-1] |= END_HEADERS
        if draw.random() < .1:
            flags[0], parts[0] = flags[0] | PRIORITY_FLAG, bytes(5) + parts[0]
        flags[0], parts[0] = self._padded(flags[0], parts[0])
        kinds = [HEADERS, *(CONTINUATION for _ in cuts)]
        return b"".join(Frame(kind, flag, stream, part).encode()
                        for kind, flag, part in zip(kinds, flags, parts))

    def _data(self, stream, body, ends):
        out, more = b"", True
        while more:
            size = self._draw.randrange(1, 16_001)
            part, body = body[:size], body[size:]
            more = len(body) > 0
            flags, part = self._padded(END_STREAM if ends and not more else 0, part)
            out += Frame(DATA, flags, stream, part).encode()
        return out


def speak(sock, talk, draw, said, over):
    while not over.is_set():
        burst, at = talk.burst(), 0
        said += burst
        while at < len(burst):
            size = draw.choice(CHUNKS)
            sock.sendall(burst[at:at + size])
            at += size


def listen(sock, draw, heard):
    while data := sock.recv(draw.choice((100, 5000, 1 << 18))):
        heard += data


@pytest.fixture
def runtime(runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


def test_bytes_are_the_same_under_kills(directory, runtime_socket, runtime, manager, closing, background):
    seed = int(os.environ.get("RELAY_SEED", random.randrange(1 << 32)))
    rounds = int(os.environ.get("RELAY_ROUNDS", 12))
    print(f"RELAY_SEED={seed}")
    draw, over = random.Random(seed), threading.Event()
    sockets, speakers, ways = [], [], []
    shim = closing(kept_shim(manager)(directory, runtime_socket))
    shim.start()
    for _ in range(3):
        pair, streams = [closing(sock) for sock in rawpair.connected(runtime, shim)], [1]
        sockets += pair
        for end, other in ((0, 1), (1, 0)):
            own, said, heard = random.Random(draw.random()), bytearray(), bytearray()
            talk = Talk(own, end == 0, streams)
            ways.append((said, heard))
            speakers.append(background.submit(speak, pair[end], talk, own, said, over))
            background.submit(listen, pair[other], random.Random(draw.random()), heard)
    for _ in range(rounds):
        time.sleep(draw.uniform(0.01, 0.25))
        os.kill(shim.pid, draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        shim.wait_exit()
        shim.start()
    over.set()
    for one in speakers:
        one.result(GENEROUS_S)
    wait_until(lambda: all(len(said) == len(heard) for said, heard in ways), "all has come")
    assert all(said == heard for said, heard in ways)
    assert "cannot be gone on with" not in shim.log()
    for sock in sockets:
        sock.shutdown(socket.SHUT_RDWR)  # nobody listens any more
