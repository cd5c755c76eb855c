"""Exchanges between an HTTP/2 client and a server, recorded or made up, and how they are replayed.

An exchange is a list of Records, in an order in which both ends could have done it. Replayed, each
end sends its next record only once it has received all that the other had sent by then.

    records = load("captures/crictl-version.cap")
    client_got, server_got = replay(records, client_socket, server_socket)

What an end received is compared as it is, or, of connections with intercepted calls, as frames:
see Frames.
"""

import collections
import fcntl
import itertools
import os
import random
import socket
import struct
import termios
import threading
import typing

import hpack

from waiting import GENEROUS_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = range(5)
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(5, 10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY_FLAG = 1, 1, 4, 8, 32

TO_SERVER, TO_CLIENT, CLIENT_CLOSED, SERVER_CLOSED = "><)("


class Record(typing.NamedTuple):
    """`data` in one direction, or none: an end closed the connection."""

    direction: str
    data: bytes = b""


class Frame(typing.NamedTuple):
    type: int
    flags: int
    stream: int
    payload: bytes

    @property
    def body(self):
        """The payload without padding and priority fields."""
        fixed = self.payload
        if self.type in (DATA, HEADERS) and self.flags & PADDED:
            fixed = fixed[1:len(fixed) - fixed[0]]
        if self.type == HEADERS and self.flags & PRIORITY_FLAG:
            fixed = fixed[5:]
        return fixed

    def encode(self):
        return (struct.pack(">I", len(self.payload))[1:]
                + struct.pack(">BBI", self.type, self.flags, self.stream) + self.payload)


def load(path):
    """The records of a capture file (captures/README.md)."""
    with open(path, "rb") as file:
        data = file.read()
    records, at = [], 0
    while at < len(data):
        direction, _microseconds, length = struct.unpack_from(">cQI", data, at)
        at += 13
        records.append(Record(direction.decode(), data[at:at + length]))
        at += length
    return records


def sent(records, direction):
    """All bytes of one direction."""
    return b"".join(record.data for record in records if record.direction == direction)


def rechunked(records, chunk_bytes):
    """The same exchange in records of chunk_bytes() bytes each, or what is left of one."""
    out = []
    for record in records:
        if record.direction in (CLIENT_CLOSED, SERVER_CLOSED):
            out.append(record)
        at = 0
        while at < len(record.data):
            size = chunk_bytes()
            out.append(Record(record.direction, record.data[at:at + size]))
            at += size
    return out


def random_chunks(seed):
    """Mostly small pieces, now and then a large one."""
    rng = random.Random(seed)
    return lambda: min(rng.choice((1, 2, 3, 5, 8, 13, 100, 5000)), 1 + rng.randrange(5000))


class FrameReader:
    """feed() returns the frames that bytes of one direction complete."""

    def __init__(self, direction):
        self._rest = b""
        self._preface = len(PREFACE) if direction == TO_SERVER else 0

    def feed(self, data):
        rest = self._rest + data
        if self._preface:
            skip = min(self._preface, len(rest))
            self._preface -= skip
            rest = rest[skip:]
        frames, at = [], 0
        while len(rest) - at >= HEAD_BYTES:
            length = int.from_bytes(rest[at:at + 3], "big")
            if len(rest) - at < HEAD_BYTES + length:
                break
            kind, flags, stream = struct.unpack_from(">BBI", rest, at + 3)
            at += HEAD_BYTES
            frames.append(Frame(kind, flags, stream & 0x7fffffff, rest[at:at + length]))
            at += length
        self._rest = rest[at:]
        return frames


def frames_of(data, direction):
    return FrameReader(direction).feed(data)


def without_table(records):
    """The same exchange as the client would have had it with a server that allows its header table no
    bytes (SETTINGS_HEADER_TABLE_SIZE 0, RFC 7541 §4.2)."""
    reader, out, begun = FrameReader(TO_SERVER), [], False
    decoder, encoder = hpack.Decoder(), hpack.Encoder()
    encoder.header_table_size = 0
    for record in records:
        data = b""
        if record.direction != TO_SERVER:
            out.append(record)
            continue
        for frame in reader.feed(record.data):
            if frame.type == HEADERS:
                assert frame.flags & END_HEADERS
                fields = decoder.decode(frame.body, raw=True)
                frame = Frame(HEADERS, frame.flags & ~(PADDED | PRIORITY_FLAG), frame.stream,
                              encoder.encode(fields))
            data += frame.encode()
        out.append(Record(TO_SERVER, data if begun else PREFACE + data))
        begun = True
    return out


class Stream:
    """What one direction of a stream carried."""

    def __init__(self):
        self.blocks = []  # header blocks, each a list of (name, value)
        self.body = b""
        self.ended = False

    @property
    def fields(self):
        """Of all header blocks."""
        return dict(itertools.chain(*self.blocks))

    @property
    def messages(self):
        """Of the body those gRPC messages that are whole."""
        found, at = [], 0
        while len(self.body) - at >= 5:
            end = at + 5 + int.from_bytes(self.body[at + 1:at + 5], "big")
            if end > len(self.body):
                break
            found.append(self.body[at + 5:end])
            at = end
        return found


class StreamReader:
    """feed() sorts bytes of one direction into `streams` by their number, and all other frames, in
    their order, into `others`."""

    def __init__(self, direction):
        self._reader = FrameReader(direction)
        self._decoder = hpack.Decoder()
        self._block = b""
        self.streams = collections.defaultdict(Stream)
        self.others = []

    def feed(self, data):
        for frame in self._reader.feed(data):
            if frame.type == DATA:
                self.streams[frame.stream].body += frame.body
            elif frame.type in (HEADERS, CONTINUATION):
                self._take_block(frame)
            else:
                self.others.append(frame)
            if frame.type in (DATA, HEADERS) and frame.flags & END_STREAM:
                self.streams[frame.stream].ended = True

    def _take_block(self, frame):
        self._block += frame.body
        if frame.flags & END_HEADERS:
            self.streams[frame.stream].blocks.append(self._decoder.decode(self._block))
            self._block = b""


def streams_of(data, direction):
    """{number: Stream} of all bytes of one direction."""
    reader = StreamReader(direction)
    reader.feed(data)
    return reader.streams


class _PathFinder:
    """The streams whose request has a given :path."""

    def __init__(self, path):
        self._path = path.encode()
        self._decoder = hpack.Decoder(max_header_list_size=1 << 24)
        self._decoder.max_allowed_table_size = 1 << 20
        self._block = b""
        self.streams = set()

    def take(self, frame):
        if frame.type not in (HEADERS, CONTINUATION):
            return
        self._block += frame.body
        if frame.flags & END_HEADERS:
            if (b":path", self._path) in self._decoder.decode(self._block, raw=True):
                self.streams.add(frame.stream)
            self._block = b""


def streams_of_path(data, path):
    """The streams on which a client that sent `data` called `path`."""
    finder = _PathFinder(path)
    for frame in frames_of(data, TO_SERVER):
        finder.take(frame)
    return finder.streams


class Frames:
    """What one end received, as far as the shim may not change it.

    `order` has all frames but the DATA towards the server of `loose` streams and WINDOW_UPDATEs; of
    the loose ones `streams` has the calls' own frames, DATA joined. `windows` sums
    the WINDOW_UPDATEs of each stream, loose ones left out: their credit may come early.
    """

    def __init__(self, data, direction, loose):
        self.order = []
        self.streams = collections.defaultdict(list)
        self.windows = collections.Counter()
        for frame in frames_of(data, direction):
            if frame.type == WINDOW_UPDATE:
                if frame.stream not in loose:
                    self.windows[frame.stream] += int.from_bytes(frame.payload, "big") & 0x7fffffff
            elif direction == TO_SERVER and frame.stream in loose and frame.type == DATA:
                self._join(frame)
            else:
                self.order.append(frame)
                if frame.stream in loose and frame.type in (HEADERS, CONTINUATION, RST_STREAM):
                    self.streams[frame.stream].append(frame)

    def _join(self, frame):
        frames = self.streams[frame.stream]
        if frames and frames[-1].type == DATA:
            last = frames.pop()
            frames.append(Frame(DATA, last.flags | frame.flags & END_STREAM, frame.stream,
                                last.payload + frame.body))
        else:
            frames.append(Frame(DATA, frame.flags & END_STREAM, frame.stream, frame.body))

    def differences(self, other):
        """In words, at most one per stream; empty if there are none."""
        found = [] if self.windows == other.windows else [f"{self.windows} is not {other.windows}"]
        for name, mine, others in [("order", self.order, other.order)] + [
                (f"stream {stream}", self.streams[stream], other.streams[stream])
                for stream in sorted({*self.streams, *other.streams})]:
            pairs = enumerate(itertools.zip_longest(mine, others))
            at, pair = next((one for one in pairs if one[1][0] != one[1][1]), (0, None))
            if pair:
                found.append(f"{name}, frame {at}: {pair[0]!s:.200} is not {pair[1]!s:.200}")
        return found


class _Progress:
    """How far one direction has come, counted so that what the shim may do changes nothing.

    Only whole frames count. A DATA frame of a loose stream counts when it ends the stream, since
    it may be withheld until then; of WINDOW_UPDATEs what they sum up to.
    """

    def __init__(self, direction, loose):
        self._reader = FrameReader(direction)
        self._loose = loose if direction == TO_SERVER else ()
        self.frames = 0
        self.windows = 0

    def feed(self, data):
        for frame in self._reader.feed(data):
            if frame.type == WINDOW_UPDATE:
                self.windows += int.from_bytes(frame.payload, "big") & 0x7fffffff
            elif frame.type != DATA or frame.stream not in self._loose:
                self.frames += 1
            elif frame.flags & END_STREAM:
                self.frames += 1

    def reached(self, mark):
        return self.frames >= mark[0] and self.windows >= mark[1]

    @property
    def mark(self):
        return self.frames, self.windows


def wait_taken(sock):
    """Until the peer has read all that was sent, so that the next bytes come by a read of their
    own. Linux says for unix sockets what of it lies in the peer's queue."""
    while struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]:
        os.sched_yield()


class _End:
    """One end: a list of steps, each ("send", bytes), ("await", mark) or ("close", None)."""

    def __init__(self, sock, incoming, loose, one_by_one):
        self._socket = sock
        self._progress = _Progress(incoming, loose)
        self._one_by_one = one_by_one
        self.steps = []
        self.got = bytearray()
        self.error = None

    def run(self):
        try:
            for action, argument in self.steps:
                getattr(self, f"_{action}")(argument)
        except (OSError, AssertionError) as error:
            self.error = error
        finally:
            self._socket.close()

    def _send(self, data):
        self._socket.sendall(data)
        if self._one_by_one:
            wait_taken(self._socket)

    def _receive(self):
        data = self._socket.recv(1 << 16)
        self.got += data
        self._progress.feed(data)
        return data

    def _await(self, mark):
        while not self._progress.reached(mark):
            assert self._receive(), f"the connection ended at {self._progress.mark}, before {mark}"

    def _await_end(self, _):
        while self._receive():
            pass

    def _close(self, _):
        self._socket.close()


def replay(records, client, server, loose=(), one_by_one=False):
    """Plays an exchange over two connected sockets; returns what (client, server) received.

    `loose`: the streams whose DATA towards the server may be withheld. The sockets are closed.
    `one_by_one`: a record is sent only when the peer has read the one before.
    """
    ends = {TO_SERVER: _End(client, TO_CLIENT, loose, one_by_one),
            TO_CLIENT: _End(server, TO_SERVER, loose, one_by_one)}
    other = {TO_SERVER: TO_CLIENT, TO_CLIENT: TO_SERVER}
    recorded = {direction: _Progress(direction, loose) for direction in other}
    closer = TO_SERVER
    for record in records:
        if record.direction in (CLIENT_CLOSED, SERVER_CLOSED):
            closer = TO_SERVER if record.direction == CLIENT_CLOSED else TO_CLIENT
            break
        _add_await(ends[record.direction].steps, recorded[other[record.direction]].mark)
        ends[record.direction].steps.append(("send", record.data))
        recorded[record.direction].feed(record.data)
    for direction, end in ends.items():
        _add_await(end.steps, recorded[other[direction]].mark)
        end.steps.append(("close", None) if direction == closer else ("await_end", None))
    _run(ends.values())
    return bytes(ends[TO_SERVER].got), bytes(ends[TO_CLIENT].got)


def _add_await(steps, mark):
    if steps[-1:] != [("await", mark)]:
        steps.append(("await", mark))


def _run(ends):
    threads = [threading.Thread(target=end.run, daemon=True) for end in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * GENEROUS_S)
    errors = [repr(end.error) for end in ends if end.error]
    assert not errors, f"the exchange came to a stand: {errors}"
    assert not any(thread.is_alive() for thread in threads), "the exchange came to a stand"


def connect(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(GENEROUS_S)
    sock.connect(str(path))
    return sock
