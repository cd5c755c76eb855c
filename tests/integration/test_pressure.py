"""Much at once: peers that stop reading, many connections, many calls held on one of them."""

import contextlib
import select
import struct
import threading

import pytest

import rawpair
from asking import by_annotation
from capture import DATA, END_STREAM, PREFACE, TO_SERVER, Frame, FrameReader
from criclient import pod_config
from h2runtime import H2Runtime, Script, script_of
from process import MIB, is_sanitized, open_files, rss_bytes
from protos import RUNTIME, cri
from rawh2 import Connection, framed
from waiting import GENEROUS_S, wait_until

CREATE = RUNTIME + "CreateContainer"
LIST_BYTES = 64 * MIB
# The sockets' own buffers are some 200 KiB each way, the shim's queue is a little over 256 KiB.
STALLED_BYTES_MAX = 2 * MIB
STILL_S = 1
GPU = "vendor.com/gpu"
HELD = 1000


@pytest.fixture
def runtime(runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


@pytest.fixture
def pair(runtime, shim, closing):
    return [closing(sock) for sock in rawpair.connected(runtime, shim)]


@pytest.fixture
def quiet(runtime, shim):
    rawpair.wait_quiet(shim)


def request_head(path):
    return rawpair.headers(1, rawpair.request_fields(path)).encode()


LIST_HEAD = request_head(RUNTIME + "ListContainers")


def large_body():
    """DATA frames of LIST_BYTES in all, each other bytes."""
    for number in range(LIST_BYTES // 16384):
        yield Frame(DATA, 0, 1, struct.pack(">I", number) * 4096).encode()


class Sender(threading.Thread):
    """Sends to a peer that may stop reading; `taken` is how much its socket took so far."""

    def __init__(self, sock, pieces):
        super().__init__(daemon=True)
        self._socket = sock
        self._pieces = pieces
        self.taken = 0

    def run(self):
        for piece in self._pieces:
            view = memoryview(piece)
            while len(view):
                select.select([], [self._socket], [])
                taken = self._socket.send(view, 0x40)  # MSG_DONTWAIT
                self.taken += taken
                view = view[taken:]

    def wait_still(self, sock):
        """Until nothing more is taken: the socket is not writable for a while."""
        while select.select([], [sock], [], STILL_S)[1]:
            pass


@pytest.mark.release
@pytest.mark.parametrize("reader", ["client", "runtime"])
def test_a_peer_that_stops_reading(shim, pair, reader):
    """64 MiB towards an end that does not read: the shim stops too, its memory stays bounded; then
    all of it arrives."""
    client, runtime = pair
    client.sendall(LIST_HEAD)
    rawpair.receive_all(runtime, [LIST_HEAD])
    before = rss_bytes(shim.pid)
    source, sink = (runtime, client) if reader == "client" else (client, runtime)
    sender = Sender(source, large_body())
    sender.start()
    sender.wait_still(source)
    assert sender.taken < STALLED_BYTES_MAX
    assert rss_bytes(shim.pid) < before + 2 * STALLED_BYTES_MAX
    rawpair.receive_all(sink, large_body())
    sender.join(GENEROUS_S)
    assert sender.taken == sum(len(piece) for piece in large_body())
    if not is_sanitized(shim.pid):  # what was freed there is kept for a while
        assert rss_bytes(shim.pid) < before + 2 * STALLED_BYTES_MAX


def test_a_peer_that_stops_reading_delays_nobody(shim, pair):
    """While one client does not read its list, others are served."""
    client, runtime = pair
    client.sendall(LIST_HEAD)
    rawpair.receive_all(runtime, [LIST_HEAD])
    sender = Sender(runtime, large_body())
    sender.start()
    sender.wait_still(runtime)
    with Connection(shim.socket) as other:
        for _ in range(20):
            assert other.wait_end(other.call("/x/Bytes300000", framed(b""))).status == 0
    rawpair.receive_all(client, large_body())


@pytest.mark.release
def test_a_runtime_that_stops_reading_a_withheld_message(shim, pair):
    """A 15 MiB CreateContainer for a runtime that gives all the window and does not read it."""
    client, runtime = pair
    request = cri.CreateContainerRequest(pod_sandbox_id="none")
    request.config.annotations["x"] = "y" * (15 * MIB)
    message = framed(request.SerializeToString())
    before = rss_bytes(shim.pid)
    pieces = [request_head(CREATE)] + [Frame(DATA, 0, 1, message[at:at + 16384]).encode()
                              for at in range(0, len(message), 16384)]
    sender = Sender(client, [*pieces, Frame(DATA, END_STREAM, 1, b"").encode()])
    sender.start()
    sender.join(GENEROUS_S)
    assert not sender.is_alive(), "the shim takes the whole message in"
    assert rss_bytes(shim.pid) < before + 4 * 16 * MIB
    reader, body, ended = FrameReader(TO_SERVER), bytearray(), False
    reader.feed(PREFACE)
    while not ended:
        for frame in reader.feed(runtime.recv(1 << 18)):
            if frame.type == DATA:
                body += frame.payload
                ended = frame.flags & END_STREAM
    assert body == message


@pytest.mark.release
def test_200_connections(runtime, quiet, shim):
    """200 clients at once, each with a runtime connection of its own; all of it goes with them."""
    rss_before = rss_bytes(shim.pid)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Connection(shim.socket)) for _ in range(200)]
        streams = [client.call("/x/Echo", framed(b"%d" % number))
                   for number, client in enumerate(clients)]
        for number, (client, stream) in enumerate(zip(clients, streams)):
            assert client.wait_end(stream).payload == b"%d" % number
        opened = len(open_files(shim.pid))
        if not is_sanitized(shim.pid):
            assert rss_bytes(shim.pid) < rss_before + 16 * MIB
    wait_until(lambda: len(open_files(shim.pid)) == opened - 400, "all that is closed again")


def create_message(number):
    """A CreateContainer of its own pod that asks for one device."""
    request = cri.CreateContainerRequest(pod_sandbox_id=f"sandbox-{number}")
    request.config.metadata.name = "app"
    request.sandbox_config.CopyFrom(
        pod_config(f"pod-{number}", annotations=by_annotation("app", f"{GPU}=1")))
    return framed(request.SerializeToString())


def answer_creates(call):
    if call.method == "ListPodSandbox":
        return Script(b"", 14, "busy")  # no list could name the pods that the test makes up
    if call.method != "CreateContainer":
        return script_of(call)
    sandbox = cri.CreateContainerRequest.FromString(call.body[5:]).pod_sandbox_id
    response = cri.CreateContainerResponse(container_id=f"c-{sandbox}")
    return Script(framed(response.SerializeToString()))


@pytest.fixture
def away(runtime, make_shim, make_plugin):
    """away(hold): a shim, and a plugin with devices for all that has gone away."""
    def make(hold):
        shim = make_shim(plugins={"hold": hold, "grace": "5m"})
        shim.wait_log("runtime listed")
        runtime.script = answer_creates
        plugin = make_plugin(shim, GPU, [f"g{number}" for number in range(HELD)])
        shim.wait_log("1000 devices")
        plugin.stop()
        return shim, plugin

    return make


def hold_all(connection):
    """HELD creates on one connection, and a relayed call behind them that is answered at once."""
    streams = [connection.call(CREATE, create_message(number)) for number in range(HELD)]
    echo = connection.wait_end(connection.call("/x/Echo", framed(b"not held")))
    assert echo.payload == b"not held"
    assert not any(connection.answers[stream].ended for stream in streams), "they are held"
    return streams


def test_1000_held_creates_are_refused(runtime, away):
    """A thousand creates held at once on one connection; when hold is over each is refused."""
    shim, _ = away("20s")  # longer than a busy machine takes to hold them
    with Connection(shim.socket) as connection:
        for stream in hold_all(connection):
            answer = connection.wait_end(stream)
            assert answer.status == 14 and GPU in answer.message
        assert connection.wait_end(connection.call("/x/Echo", framed(b"ok"))).payload == b"ok"


def test_1000_held_creates_go_on(runtime, away):
    """A thousand creates held at once on one connection; the plugin is back and each goes on with
    a device of its own."""
    shim, plugin = away("60s")
    with Connection(shim.socket) as connection:
        streams = hold_all(connection)
        plugin.start()
        for number, stream in enumerate(streams):
            answer = connection.wait_end(stream)
            assert (answer.status, answer.message) == (0, "")
            response = cri.CreateContainerResponse.FromString(answer.payload)
            assert response.container_id == f"c-sandbox-{number}"
    creates = [cri.CreateContainerRequest.FromString(call.body[5:])
               for call in runtime.calls if call.method == "CreateContainer" and call.end == "end"]
    given = [env.value for create in creates for env in create.config.envs]
    assert len(creates) == len(given) == len(set(given)) == HELD
