"""Exchanges that no peer would have but any might: random, seeded, legal HTTP/2 with odd framings.

    records = Exchange(random.Random(seed)).run(streams=60)

Both ends keep to RFC 9113: windows, frame sizes and header tables as they stand. All else varies:
padding, priorities, CONTINUATION runs, empty frames, unknown frames and settings, tables and
windows changed under way, trailers of the client, resets, calls of every kind side by side. Of
CreateContainers, whose DATA the shim withholds, the answer begins when the request has ended, no
end resets them, and windows do not shrink while one is under way: what is recorded then can be
replayed with the request later than recorded.
"""

import struct

import hpack

from capture import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED,
                     PING, PREFACE, PRIORITY, PRIORITY_FLAG, RST_STREAM, SETTINGS, TO_CLIENT,
                     TO_SERVER, WINDOW_UPDATE, Frame, Record)
from protos import IMAGE, RUNTIME, cri
from rawh2 import framed

_HEADER_TABLE_SIZE, _MAX_CONCURRENT, _INITIAL_WINDOW, _MAX_FRAME, _UNKNOWN = 1, 3, 4, 5, 0x4242
_METHODS = ([RUNTIME + "CreateContainer"] * 3
            + [RUNTIME + "RunPodSandbox", RUNTIME + "StopPodSandbox", RUNTIME + "RemoveContainer",
               RUNTIME + "Version", IMAGE + "ListImages", "/x/Echo", "/"])
_OTHER = {TO_SERVER: TO_CLIENT, TO_CLIENT: TO_SERVER}


def _resize(encoder, table_bytes):
    """RFC 7541 §4.2: the next block tells the smallest size since the last one, then the final
    one. Left alone, python3-hpack tells them all, or none if the last two are the same."""
    encoder.header_table_size = table_bytes
    changes = encoder.table_size_changes + [table_bytes]
    least = [min(changes)] if min(changes) < table_bytes else []
    encoder.table_size_changes = least + [table_bytes]
    encoder.header_table.resized = True


class _Sender:
    """What binds one end in what it sends, by the other's word."""

    def __init__(self):
        self.encoder = hpack.Encoder()
        self.window = 65535
        self.initial_window = 65535
        self.frame_bytes_max = 16384
        self.unacked = []  # SETTINGS of the other end without an ACK


class _Stream:
    def __init__(self, number, intercepted, body, windows):
        self.id = number
        self.intercepted = intercepted
        self.left = {TO_SERVER: body, TO_CLIENT: b""}
        self.windows = windows
        self.ended = {TO_SERVER: False, TO_CLIENT: False}
        self.answering = False

    @property
    def over(self):
        return all(self.ended.values())


class Exchange:
    def __init__(self, rng):
        self._rng = rng
        self._records = []
        self._senders = {TO_SERVER: _Sender(), TO_CLIENT: _Sender()}
        self._streams = []
        self._last = -1

    def run(self, streams):
        window = self._rng.choice((10, 65535))
        self._records.append(Record(TO_SERVER, PREFACE))
        self._emit(TO_SERVER, self._settings({_INITIAL_WINDOW: window}))
        self._emit(TO_CLIENT, self._settings({_MAX_CONCURRENT: 1000}))
        self._emit(TO_CLIENT, Frame(SETTINGS, ACK, 0, b""))
        self._emit(TO_SERVER, Frame(SETTINGS, ACK, 0, b""))
        self._senders[TO_CLIENT].initial_window = window
        moves = [self._open] + 8 * [self._data] + 3 * [self._answer] + 3 * [self._update] + [
            self._change_settings, self._acknowledge, self._ping, self._priority, self._unknown,
            self._reset]
        while self._last < 2 * streams:
            self._rng.choice(moves)()
        self._finish()
        return self._records

    # ---- frames ----

    def _emit(self, direction, *frames):
        data = b"".join(frame.encode() for frame in frames)
        if self._records[-1].direction == direction and self._rng.random() < 0.5:
            data = self._records.pop().data + data
        self._records.append(Record(direction, data))

    def _either(self):
        return self._rng.choice((TO_SERVER, TO_CLIENT))

    def _padding(self, flags, body, room):
        """(flags, payload) with padding now and then; `room` is what the payload may grow by."""
        if room < 1 or self._rng.random() < 0.7:
            return flags, body
        pad = self._rng.randrange(min(room, 256))
        return flags | PADDED, bytes([pad]) + body + bytes(pad)

    def _headers(self, direction, stream, fields, ends):
        block = self._senders[direction].encoder.encode(fields, huffman=self._rng.random() < 0.5)
        cuts = [self._rng.randrange(len(block) + 1) for _ in range(self._rng.choice((0, 0, 3)))]
        cuts = sorted([0, *cuts, *range(16000, len(block), 16000), len(block)])
        parts = [block[start:end] for start, end in zip(cuts, cuts[1:])]
        flags, body = END_STREAM if ends else 0, parts[0]
        if self._rng.random() < 0.3:
            flags, body = flags | PRIORITY_FLAG, struct.pack(">IB", 0, 15) + body
        flags, body = self._padding(flags, body, 300)
        frames = [Frame(HEADERS, flags, stream.id, body)]
        frames += [Frame(CONTINUATION, 0, stream.id, part) for part in parts[1:]]
        frames[-1] = frames[-1]._replace(flags=frames[-1].flags | END_HEADERS)
        self._emit(direction, *frames)
        stream.ended[direction] |= ends

    def _fields(self):
        fields = [(f"x-{self._rng.randrange(8)}", str(self._rng.randrange(20)))
                  for _ in range(self._rng.randrange(6))]
        if self._rng.random() < 0.1:
            fields.append(("x-long", "v" * self._rng.randrange(30_000)))
        return fields

    # ---- moves ----

    def _open(self):
        path = self._rng.choice(_METHODS)
        intercepted = path.endswith("CreateContainer")
        body = self._create() if intercepted else self._rng.randbytes(
            self._rng.choice((0, 5, 100, 20_000)))
        self._last += 2
        stream = _Stream(self._last, intercepted, body, {
            direction: sender.initial_window for direction, sender in self._senders.items()})
        self._headers(TO_SERVER, stream, [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
            ("te", "trailers"), *self._fields()], ends=not body)
        self._streams.append(stream)

    def _create(self):
        request = cri.CreateContainerRequest(pod_sandbox_id="made-up")
        request.config.annotations["x"] = "y" * self._rng.choice((0, 10, 1000, 40_000, 100_000))
        return framed(request.SerializeToString())

    def _data(self):
        direction = self._either()
        stream = self._pick(lambda one: not one.ended[direction] and (
            direction == TO_SERVER or one.answering))
        if stream:
            self._send_data(direction, stream, self._rng.choice((0, 1, 9, 500, 1 << 20)))

    def _send_data(self, direction, stream, wanted):
        sender, left = self._senders[direction], stream.left[direction]
        room = min(sender.window, stream.windows[direction], sender.frame_bytes_max)
        if room < 0 or stream.ended[direction]:
            return
        body = left[:min(wanted, room)]
        rest = left[len(body):]
        end = direction == TO_SERVER and not rest and self._rng.random() < 0.7
        flags, payload = END_STREAM if end else 0, body
        if not stream.intercepted:  # padding of withheld frames is dropped and credited by the shim
            flags, payload = self._padding(flags, body, room - len(body))
        self._emit(direction, Frame(DATA, flags, stream.id, payload))
        stream.left[direction] = rest
        stream.windows[direction] -= len(payload)
        sender.window -= len(payload)
        stream.ended[direction] |= end
        if direction == TO_SERVER and not rest and not end:
            self._end_request(stream)

    def _end_request(self, stream):
        """The end in a frame of its own: empty DATA, or trailers where nothing is withheld."""
        if not stream.intercepted and self._rng.random() < 0.5:
            self._headers(TO_SERVER, stream, [("x-trailer", "of the client")], ends=True)
        else:
            self._emit(TO_SERVER, Frame(DATA, END_STREAM, stream.id, b""))
            stream.ended[TO_SERVER] = True

    def _answer(self):
        stream = self._pick(lambda one: not one.ended[TO_CLIENT] and (
            one.ended[TO_SERVER] or not one.intercepted))
        if stream is None:
            return
        if not stream.answering:
            stream.answering = True
            stream.left[TO_CLIENT] = framed(self._rng.randbytes(self._rng.choice((0, 30, 70_000))))
            self._headers(TO_CLIENT, stream, [(":status", "200"), *self._fields()], ends=False)
        elif not stream.left[TO_CLIENT] and stream.ended[TO_SERVER]:
            self._headers(TO_CLIENT, stream, [("grpc-status", "0"), *self._fields()], ends=True)

    def _update(self):
        direction = self._either()
        stream = self._pick(lambda one: not one.ended[direction])
        if self._rng.random() < 0.5:
            stream = None
        self._grant(direction, stream, self._rng.choice((1, 1000, 60_000)))

    def _grant(self, direction, stream, increment):
        """A WINDOW_UPDATE for what goes in `direction`, of a stream or of the connection."""
        if stream:
            stream.windows[direction] += increment
        else:
            self._senders[direction].window += increment
        self._emit(_OTHER[direction], Frame(WINDOW_UPDATE, 0, stream.id if stream else 0,
                                            struct.pack(">I", increment)))

    def _settings(self, values):
        return Frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in values.items()))

    def _change_settings(self):
        direction = self._either()
        values = {_UNKNOWN: self._rng.randrange(1 << 32)}
        if self._rng.random() < 0.7:
            values[_HEADER_TABLE_SIZE] = self._rng.choice((0, 50, 200, 4096, 65536))
        if self._rng.random() < 0.5:
            values[_MAX_FRAME] = self._rng.choice((16384, 16385, 100_000, (1 << 24) - 1))
        if self._rng.random() < 0.5 and not self._pick(lambda one: one.intercepted):
            values[_INITIAL_WINDOW] = self._rng.choice((0, 1, 100, 65535, 1 << 20))
        self._emit(direction, self._settings(values))
        self._senders[_OTHER[direction]].unacked.append(values)
        if _INITIAL_WINDOW in values:
            while self._senders[_OTHER[direction]].unacked:
                self._acknowledge(_OTHER[direction])

    def _acknowledge(self, direction=None):
        direction = direction or self._either()
        sender = self._senders[direction]
        if not sender.unacked:
            return
        values = sender.unacked.pop(0)
        if _HEADER_TABLE_SIZE in values:
            _resize(sender.encoder, values[_HEADER_TABLE_SIZE])
        sender.frame_bytes_max = values.get(_MAX_FRAME, sender.frame_bytes_max)
        if _INITIAL_WINDOW in values:
            for stream in self._streams:
                stream.windows[direction] += values[_INITIAL_WINDOW] - sender.initial_window
            sender.initial_window = values[_INITIAL_WINDOW]
        self._emit(direction, Frame(SETTINGS, ACK, 0, b""))

    def _ping(self):
        direction, data = self._either(), self._rng.randbytes(8)
        self._emit(direction, Frame(PING, 0, 0, data))
        self._emit(_OTHER[direction], Frame(PING, ACK, 0, data))

    def _priority(self):
        self._emit(self._either(), Frame(PRIORITY, 0, self._last + 2, struct.pack(">IB", 0, 7)))

    def _unknown(self):
        self._emit(self._either(), Frame(self._rng.choice((0x0a, 0x20, 0xff)),
                                         self._rng.randrange(256), self._rng.choice((0, 1, 999)),
                                         self._rng.randbytes(self._rng.choice((0, 4, 300)))))

    def _reset(self):
        stream = self._pick(lambda one: not one.intercepted)
        if stream and self._rng.random() < 0.3:
            self._emit(self._either(), Frame(RST_STREAM, 0, stream.id, struct.pack(">I", 8)))
            stream.ended = dict.fromkeys(stream.ended, True)

    # ---- the end ----

    def _pick(self, condition):
        found = [one for one in self._streams if not one.over and condition(one)]
        return self._rng.choice(found) if found else None

    def _finish(self):
        """Every stream comes to its end, and every credit is paid back."""
        for direction in _OTHER:
            self._grant(direction, None, 1 << 24)
        while stream := self._pick(lambda one: True):
            for direction in _OTHER:
                if stream.left[direction] and stream.windows[direction] < 1 << 18:
                    self._grant(direction, stream, 1 << 18)
                elif stream.left[direction]:
                    self._send_data(direction, stream, 1 << 20)
            if not stream.left[TO_SERVER] and not stream.ended[TO_SERVER]:
                self._end_request(stream)
            self._answer()
        for direction in _OTHER:
            self._grant(direction, None, 1 << 24)
            self._emit(direction, Frame(GOAWAY, 0, 0, struct.pack(">II", self._last, 0)))
