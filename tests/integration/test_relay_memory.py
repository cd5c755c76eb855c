"""What hostile clients make the relay hold, against the sums at the end of shim/relay/limits.h."""

import gzip
import select
import struct

import pytest

import rawpair
from asking import by_annotation
from bound import Bound
from capture import DATA, END_HEADERS, PADDED, Frame, connect
from criclient import pod_config
from h2runtime import H2Runtime
from limits import limits_of
from process import MIB, is_sanitized, open_files, rss_bytes
from protos import RUNTIME, cri
from rawh2 import Connection, framed
from waiting import GENEROUS_S, wait_until

pytestmark = pytest.mark.release

LIMITS = limits_of("shim/relay/limits.h")
CREATE = RUNTIME + "CreateContainer"
GPU = "vendor.com/gpu"
STILL_S = 1


@pytest.fixture
def runtime(runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


@pytest.fixture
def shim(runtime, make_shim):
    one = make_shim()
    rawpair.wait_quiet(one)
    return one


def head(stream, path=CREATE, extra=()):
    return rawpair.headers(stream, [*rawpair.request_fields(path), *extra],
                           flags=END_HEADERS).encode()


def data(stream, payload, flags=0):
    return Frame(DATA, flags, stream, payload).encode()


def send_all_that_is_taken(sock, piece, most=64 * MIB):
    """Copies of `piece` until nothing more is taken for a while; how much it was."""
    sent = 0
    sock.setblocking(False)
    while sent < most and select.select([], [sock], [], STILL_S)[1]:
        try:
            sent += sock.send(memoryview(piece)[sent % len(piece):])
        except BlockingIOError:
            pass
    return sent


def test_padding_and_a_client_that_does_not_read(runtime, shim, closing):
    """All padding on an undecided create, while the runtime is in the middle of a frame: each frame
    is credited, and none of that can be written."""
    client, server = (closing(sock) for sock in rawpair.connected(runtime, shim))
    bound = Bound(shim)
    server.sendall(data(1, bytes(1000))[:500])
    client.sendall(head(1))
    sent = send_all_that_is_taken(client, data(1, b"\0", PADDED) * 1000)
    assert sent < 64 * MIB, "the shim reads on"
    bound.check(LIMITS["RELAY_WAITING_BYTES_MAX"])


def test_many_clients_that_do_not_read(runtime, shim, closing):
    """Each is sent 4 MiB and takes none of it."""
    bound = Bound(shim)
    clients = [closing(connect(shim.socket)) for _ in range(30)]
    for client in clients:
        client.sendall(rawpair.PREFACE_WIDE_OPEN + head(1, f"/x/Bytes{4 * MIB}")
                       + data(1, framed(b""), 1))
    wait_until(lambda: all(select.select([client], [], [], 0)[0] for client in clients), "answers")
    for _ in range(20):
        with Connection(shim.socket) as other:
            assert other.wait_end(other.call("/x/Echo", framed(b""))).status == 0
    bound.check(len(clients) * (LIMITS["RELAY_READ_BYTES"] * 2 + 32 * 1024))
    for client in clients:
        client.close()
    bound.wait_gone()


@pytest.fixture
def holding(runtime, make_shim, make_plugin):
    """A shim that holds the creates that ask for GPU: its plugin has gone away."""
    shim = make_shim(plugins={"hold": "60s", "grace": "5m"})
    shim.wait_log("runtime listed")
    plugin = make_plugin(shim, GPU, ["g0"])
    shim.wait_log("1 devices")
    plugin.stop()
    return shim


def bomb(number, size):
    """A compressed create of some hundred bytes that asks for a device and inflates to `size`."""
    request = cri.CreateContainerRequest(pod_sandbox_id=f"sandbox-{number}")
    request.config.metadata.name = "app"
    request.config.working_dir = "x" * size
    request.sandbox_config.CopyFrom(
        pod_config(f"pod-{number}", annotations=by_annotation("app", f"{GPU}=1")))
    packed = gzip.compress(request.SerializeToString(), 1)
    return b"\1" + struct.pack(">I", len(packed)) + packed


def test_a_thousand_bombs(holding):
    """Held creates of a few kilobytes that inflate to two megabytes each."""
    bombs = [bomb(number, 2 * MIB) for number in range(50)]
    with Connection(holding.socket) as connection:
        assert connection.wait_end(connection.call("/x/Echo", framed(b""))).status == 0
        bound = Bound(holding)
        streams = [connection.call(CREATE, bombs[number % 50], [("grpc-encoding", "gzip")])
                   for number in range(1000)]
        assert connection.wait_end(connection.call("/x/Echo", framed(b""))).status == 0
        refused = [stream for stream in streams if connection.answers[stream].ended]
        assert len(refused) > 900
        # The runtime knows none of these sandboxes: a list in between makes them gone (9).
        assert {connection.answers[stream].status for stream in refused} <= {8, 9, 10}
        bound.check(LIMITS["RELAY_INFLATED_BYTES_MAX"] + LIMITS["RELAY_WORK_BYTES_MAX"] // 4
                    + 1000 * 32 * 1024)
    bound.wait_gone()


def test_bombs_that_decode(shim):
    """Messages whose every two bytes are a mount of their own."""
    mounts = b"\x22\x00" * (4 * MIB)
    config = b"\x12" + varint(len(mounts)) + mounts
    with Connection(shim.socket) as connection:
        assert connection.wait_end(connection.call("/x/Echo", framed(b""))).status == 0
        bound = Bound(shim)
        for path in (CREATE, RUNTIME + "RunPodSandbox"):
            answer = connection.wait_end(connection.call(path, framed(config)))
            assert answer.status == (8 if path == CREATE else 0)
        bound.check(LIMITS["RELAY_WORK_BYTES_MAX"] + 2 * len(mounts))
        bound.wait_gone()


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def test_observed_calls_that_are_never_answered(runtime, shim, closing):
    """As many as may be under way, with names as long as they may be and some more in them. Their
    requests are kept, too, in buffers that double as they grow."""
    client, server = (closing(sock) for sock in rawpair.connected(runtime, shim))
    streams = LIMITS["RELAY_STREAMS_MAX"]
    request = cri.RunPodSandboxRequest()
    request.config.metadata.name = "n" * 3900
    for number in range(200):
        request.config.labels[f"label-{number}"] = "x"
    body = framed(request.SerializeToString())
    bound = Bound(shim)
    server.settimeout(GENEROUS_S)
    for stream in range(1, 2 * streams, 2):
        sent = head(stream, RUNTIME + "RunPodSandbox") + data(stream, body, 1)
        client.sendall(sent)
        rawpair.receive_all(server, [sent])
    bound.check(streams * LIMITS["RELAY_ENTRY_BYTES"]
                + min(2 * streams * len(body), LIMITS["RELAY_OBSERVED_BYTES_MAX"]))


def large_create(number):
    request = cri.CreateContainerRequest(pod_sandbox_id=f"sandbox-{number}")
    request.config.metadata.name = "app"
    request.config.working_dir = "x" * MIB
    request.sandbox_config.CopyFrom(
        pod_config(f"pod-{number}", annotations=by_annotation("app", f"{GPU}=1")))
    return framed(request.SerializeToString())


def test_half_closed_clients_that_die(holding):
    """Their held creates end, and all of it goes."""
    rawpair.wait_quiet(holding)
    bound = Bound(holding)
    before = len(open_files(holding.pid))
    clients = [Connection(holding.socket) for _ in range(20)]
    for number, client in enumerate(clients):
        client.call(CREATE, large_create(number))
        client.half_close()
    wait_until(lambda: is_sanitized(holding.pid) or
               rss_bytes(holding.pid) > bound.before + 15 * MIB, "they are held")
    for client in clients:
        client.close()
    # Of the shim's own, to plugin and runtime, one may come and go.
    wait_until(lambda: len(open_files(holding.pid)) <= before + 2, "their connections are closed")
    bound.check(2 * len(clients) * MIB)
    bound.wait_gone()
