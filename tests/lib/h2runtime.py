"""A runtime on python3-h2: every byte it gets is known, and it does what its script says, at once.

Of each connection the frames and of each call what came are kept. Calls are answered by the path's
last word, see script_of(). want_raw() and take_raw() hand out a connection's bare socket instead.
"""

import dataclasses
import queue
import socket
import struct
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from rawh2 import framed
from waiting import GENEROUS_S, wait_until


@dataclasses.dataclass
class Call:
    """What one stream brought."""

    path: str
    headers: list
    body: bytes = b""
    trailers: list = dataclasses.field(default_factory=list)
    end: object = None  # "end", or the error code of a reset

    @property
    def method(self):
        return self.path.rpartition("/")[2]


class _Served:
    """One connection, in a thread of its own."""

    def __init__(self, runtime, sock):
        self._runtime = runtime
        self._socket = sock
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8", validate_inbound_headers=False))
        self._h2.local_settings = h2.settings.Settings(
            client=False, initial_values=runtime.settings)
        self._calls = {}
        self._out = {}  # stream: [bytes left, trailers]

    def run(self):
        try:
            self._h2.initiate_connection()
            self._flush()
            while data := self._socket.recv(1 << 16):
                for event in self._h2.receive_data(data):
                    self._take(event)
                self._pump()
                self._flush()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            self._socket.close()

    def _flush(self):
        data = self._h2.data_to_send()
        if data:
            self._socket.sendall(data)

    def _go_away(self, last_stream):
        self._flush()
        self._socket.sendall(struct.pack(">BHBBIII", 0, 8, 7, 0, 0, last_stream, 0))

    def _take(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            headers = list(event.headers)
            self._calls[stream] = Call(dict(headers)[":path"], headers)
            self._runtime.add(self._calls[stream])
        elif isinstance(event, h2.events.DataReceived):
            self._calls[stream].body += event.data
            if event.flow_controlled_length:
                self._h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.TrailersReceived):
            self._calls[stream].trailers = list(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            self._answer(stream)
        elif isinstance(event, h2.events.StreamReset):
            self._calls[stream].end = event.error_code
            self._out.pop(stream, None)

    def _answer(self, stream):
        call = self._calls[stream]
        script = self._runtime.script(call)
        call.end = "end"
        if script.goes_after is not None:  # past h2, which would take the connection for closed
            self._go_away(script.goes_after)
            return
        if script.leaves:
            self._go_away(stream)
        if script.release:
            script.release.wait(GENEROUS_S)
        if script.reset is not None:
            self._h2.reset_stream(stream, script.reset)
            return
        self._h2.send_headers(stream, [
            (":status", "200"), ("content-type", "application/grpc"), *script.headers])
        trailers = [("grpc-status", str(script.status)), ("grpc-message", script.message),
                    *script.trailers]
        self._out[stream] = [memoryview(script.body), trailers if script.ends else None]

    def _pump(self):
        for stream, (left, trailers) in list(self._out.items()):
            while len(left):
                room = min(self._h2.local_flow_control_window(stream),
                           self._h2.max_outbound_frame_size)
                if room <= 0:
                    break
                self._h2.send_data(stream, bytes(left[:room]))
                left = left[room:]
            self._out[stream][0] = left
            if not len(left):
                if trailers is not None:
                    self._h2.send_headers(stream, trailers, end_stream=True)
                del self._out[stream]


@dataclasses.dataclass
class Script:
    """How a call is answered."""

    body: bytes = b""
    status: int = 0
    message: str = ""
    headers: tuple = ()
    trailers: tuple = ()
    reset: int = None
    ends: bool = True
    goes_after: int = None  # a GOAWAY with that last stream is all that comes
    leaves: bool = False  # a GOAWAY comes before the answer: it is the connection's last
    release: threading.Event = None  # the answer comes after that; the connection waits


def script_of(call):
    """Echo: the request; Fail: an error; Reset: RST_STREAM; Bytes<n>: an answer of n bytes;
    GetContainerEvents: not there; any other method: an empty message, which every CRI answer may
    be."""
    marks = tuple(pair for pair in call.headers if pair[0].startswith("x-"))
    if call.method == "Echo":
        return Script(call.body, headers=marks, trailers=marks)
    if call.method == "Fail":
        return Script(b"", 13, "it%20failed", marks, marks)
    if call.method == "Reset":
        return Script(reset=h2.errors.ErrorCodes.REFUSED_STREAM)
    if call.method.startswith("Bytes"):
        size = int(call.method[len("Bytes"):])
        return Script(framed((bytes(range(256)) * (size // 256 + 1))[:size]), trailers=marks)
    if call.method == "GetContainerEvents":
        return Script(b"", 12, "not%20here")
    return Script(framed(b""))


class H2Runtime:
    """`calls` in the order in which their headers came, the shim's own among them."""

    def __init__(self, path, settings=None, script=script_of):
        self.path = path
        self.settings = settings or {}
        self.script = script
        self.calls = []
        self._raw = queue.SimpleQueue()
        self._raw_wanted = 0
        self._lock = threading.Lock()
        self._sockets = []
        self._listener = None

    def start(self):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(256)
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        if self._listener is None:
            return
        self._listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._listener.close()
        self._listener = None
        self.path.unlink()
        with self._lock:
            for sock in self._sockets:
                _shut(sock)

    def add(self, call):
        self.calls.append(call)

    def wait_ended(self):
        """Until no call is under way."""
        wait_until(lambda: all(call.end is not None for call in list(self.calls)),
                   "the calls at the runtime have ended")

    def want_raw(self):
        """The next connection is not served; take it with take_raw()."""
        with self._lock:
            self._raw_wanted += 1

    def take_raw(self):
        return self._raw.get(timeout=GENEROUS_S)

    def _accept(self):
        listener = self._listener
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self._sockets.append(sock)
                raw = self._raw_wanted > 0
                self._raw_wanted -= raw
            if raw:
                sock.settimeout(GENEROUS_S)
                self._raw.put(sock)
            else:
                threading.Thread(target=_Served(self, sock).run, daemon=True).start()


def _shut(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # closed already
