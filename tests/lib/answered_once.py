"""A kubelet's connection to a plugin's socket that notices what it is told twice.

    connection = AnsweredOnce(path, tell); grpc.insecure_channel(connection.target)

gRPC takes no notice of most frames that come again: an answer of a call that is over, an
acknowledgement, a whole list. `tell(text)` is called for each that should not have come; without
it nobody looks.
"""

import collections
import os
import socket
import threading

from capture import (ACK, DATA, END_STREAM, HEADERS, PING, SETTINGS, TO_CLIENT, TO_SERVER,
                     FrameReader)


class Once:
    """The frames of one connection; feed() returns what was wrong with a server's."""

    def __init__(self):
        self._readers = {way: FrameReader(way) for way in (TO_SERVER, TO_CLIENT)}
        self._asked = collections.Counter()  # PING and SETTINGS by the client, not acknowledged
        self._settings = False
        self._headed = set()
        self._ended = set()
        self._bodies = {}  # stream: what has come of it
        self._before = {}  # stream: the message before

    def feed(self, way, data):
        return [wrong for frame in self._readers[way].feed(data)
                if (wrong := self._look(way, frame))]

    def _look(self, way, frame):
        if way == TO_SERVER:
            if frame.type in (PING, SETTINGS) and not frame.flags & ACK:
                self._asked[frame.type] += 1
            return None
        if frame.type in (PING, SETTINGS) and frame.flags & ACK:
            self._asked[frame.type] -= 1
            return "acknowledged twice" if self._asked[frame.type] < 0 else None
        if frame.type == SETTINGS:
            again, self._settings = self._settings, True
            return "SETTINGS twice" if again else None
        if frame.type in (HEADERS, DATA):
            return self._look_at_answer(frame)
        return None

    def _look_at_answer(self, frame):
        if frame.stream in self._ended:
            return f"stream {frame.stream} goes on behind its end"
        if frame.flags & END_STREAM:
            self._ended.add(frame.stream)
            self._bodies.pop(frame.stream, None)
            self._before.pop(frame.stream, None)
            return None
        if frame.type == HEADERS:
            again = frame.stream in self._headed
            self._headed.add(frame.stream)
            return f"stream {frame.stream} is answered twice" if again else None
        return self._look_at_messages(frame)

    def _look_at_messages(self, frame):
        wrong = None
        body = self._bodies.get(frame.stream, b"") + frame.payload
        while len(body) >= 5 and len(body) >= (whole := 5 + int.from_bytes(body[1:5], "big")):
            message, body = body[:whole], body[whole:]
            if self._before.get(frame.stream) == message:
                wrong = f"stream {frame.stream} has the same message twice"
            self._before[frame.stream] = message
        self._bodies[frame.stream] = body
        return wrong


class AnsweredOnce:
    """In front of the socket `path`, on an abstract one."""

    _numbers = iter(range(1 << 62))

    def __init__(self, path, tell):
        self._to = str(path)
        self._tell = tell
        self._listener = socket.socket(socket.AF_UNIX)
        name = f"cds-once-{os.getpid()}-{next(self._numbers)}"
        self.target = f"unix-abstract:{name}"
        self._listener.bind(f"\0{name}")
        self._listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._to)
            except OSError:
                near.close()
                continue
            once = Once() if self._tell else None
            for pair in ((near, far, once, TO_SERVER), (far, near, once, TO_CLIENT)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source, sink, once, way):
        try:
            while data := source.recv(1 << 16):
                for wrong in once.feed(way, data) if once else ():
                    self._tell(wrong)
                sink.sendall(data)
        except OSError:
            pass
        for one in source, sink:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other direction's thread has seen to it
