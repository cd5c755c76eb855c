"""Frames by hand, where grpcio is too polite: one HTTP/2 connection with python3-h2 over a socket.

    with Connection(path) as connection:
        stream = connection.call("/runtime.v1.RuntimeService/CreateContainer", framed(b"..."))
        answer = connection.wait_end(stream)
        answer.status, answer.message, answer.body
"""

import dataclasses
import socket
import struct
import urllib.parse

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from waiting import GENEROUS_S


def framed(message, compressed=False):
    """A gRPC message: its 5-byte head and its bytes."""
    return struct.pack(">BI", int(compressed), len(message)) + message


@dataclasses.dataclass
class Answer:
    headers: list = dataclasses.field(default_factory=list)
    trailers: list = dataclasses.field(default_factory=list)
    body: bytearray = dataclasses.field(default_factory=bytearray)
    ended: bool = False
    reset: int = None  # error code of a RST_STREAM

    def field(self, name):
        """From the trailers, or from the headers of an answer that has only those."""
        return dict(self.headers + self.trailers).get(name)

    @property
    def status(self):
        value = self.field("grpc-status")
        return None if value is None else int(value)

    @property
    def message(self):
        return urllib.parse.unquote(self.field("grpc-message") or "")

    @property
    def payload(self):
        """The one gRPC message of the body."""
        length = struct.unpack(">I", self.body[1:5])[0]
        assert len(self.body) == 5 + length, "not exactly one message"
        return bytes(self.body[5:])


class _Tolerant(h2.connection.H2Connection):
    """As grpc's own clients: a header block for a stream that has ended is read and dropped.

    grpc's C core, as a runtime, answers even a stream that was reset, behind the ACK of a later
    SETTINGS; the relay must pass that block, or the header tables would get out of step.
    """

    def _receive_headers_frame(self, frame):
        try:
            return super()._receive_headers_frame(frame)
        except (h2.exceptions.StreamClosedError, h2.exceptions.StreamIDTooLowError):
            return [], []


class Connection:
    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(GENEROUS_S)
        self._socket.connect(str(path))
        self.h2 = _Tolerant(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.answers = {}
        self.pongs = []
        self.closed = False
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def close(self):
        self._socket.close()

    def half_close(self):
        """Nothing more is sent; answers are still read."""
        self._socket.shutdown(socket.SHUT_WR)

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self._socket.sendall(data)

    def begin(self, path, headers=(), end_stream=False):
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
            ("te", "trailers"), ("content-type", "application/grpc"), *headers],
            end_stream=end_stream)
        self.flush()
        return stream

    def send(self, stream, data, end_stream=True, frame_bytes_max=None, pad_bytes=None):
        """All of `data` as the peer's windows allow; less if the stream is answered first.

        `pad_bytes`: padding of each frame, which takes one byte more; None: not padded.
        """
        view = memoryview(data)
        padding = 0 if pad_bytes is None else 1 + pad_bytes
        while len(view) or end_stream:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size,
                       frame_bytes_max or 1 << 24)
            part = view[:max(room - padding, 0)]
            last = len(part) == len(view)
            if (len(part) or last) and room >= padding:
                self.h2.send_data(stream, bytes(part), end_stream=end_stream and last,
                                  pad_length=pad_bytes)
                self.flush()
                view = view[len(part):]
                if last:
                    return
            else:
                self.receive()
            if self.answers[stream].ended or self.answers[stream].reset is not None:
                return

    def call(self, path, body, headers=(), **options):
        stream = self.begin(path, headers)
        self.send(stream, body, **options)
        return stream

    def set(self, **settings):
        """SETTINGS of ours, by their names in h2.settings.SettingCodes."""
        self.h2.update_settings({h2.settings.SettingCodes[name]: value
                                 for name, value in settings.items()})
        self.flush()

    def ping(self, data):
        """Sends a PING and waits for its ACK."""
        self.h2.ping(data)
        self.flush()
        while data not in self.pongs:
            self.receive()

    def reset(self, stream, code=8):
        self.h2.reset_stream(stream, code)
        self.flush()

    def receive(self):
        """Waits for the next bytes and takes them in."""
        data = self._socket.recv(1 << 16)
        if not data:
            self.closed = True
            raise ConnectionResetError("the peer closed the connection")
        self.take(data)

    def take(self, data):
        for event in self.h2.receive_data(data):
            self._take(event)
        self.flush()

    def _take(self, event):
        if isinstance(event, h2.events.PingAckReceived):
            self.pongs.append(event.ping_data)
        answer = self.answers.get(getattr(event, "stream_id", None))
        if answer is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            answer.headers = list(event.headers)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = list(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = event.error_code

    def wait_end(self, stream):
        answer = self.answers[stream]
        while not answer.ended and answer.reset is None:
            self.receive()
        return answer
