"""Our gRPC layer against a foreign implementation (grpcio), in both roles.

rpc_peer.c is our side; SHIM_BUILD_DIR names the build that holds it.
"""

import concurrent.futures
import os
import pathlib
import queue
import subprocess
import threading

import grpc
import pytest

from protos import deviceplugin
from waiting import GENEROUS_S, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SHIM_BUILD_DIR", ROOT / "build"))
PEER = BUILD / "tests/integration/rpc_peer"
MESSAGE_BYTES_MAX = 16 * 1024 * 1024
LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


@pytest.fixture(scope="module", autouse=True)
def library_up():
    """Keeps grpcio up between tests. Shutting down with its last channel, it now and then waits 10 s
    for a descriptor of a large message that was refused, and gives up."""
    with grpc.insecure_channel("unix:/nonexistent"):
        yield


@pytest.fixture
def socket(directory):
    return directory / "peer.sock"


# ---- our client ----


def device_list(count, name="w"):
    answer = deviceplugin.ListAndWatchResponse()
    for number in range(count):
        answer.devices.add(ID=f"{name}{number}", health="Healthy")
    return answer


class ForeignServer(grpc.GenericRpcHandler):
    """A grpcio server; `unary` or `stream` is what it does with any call, `seen` what came."""

    def __init__(self, socket, unary=None, stream=None, compression=None):
        self.seen = queue.Queue()
        self.metadata = None
        self.over = threading.Event()
        self._handler = (self._unary(unary) if unary else self._stream(stream))
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4),
                                   options=LARGE, compression=compression)
        self._server.add_generic_rpc_handlers([self])
        assert self._server.add_insecure_port(f"unix:{socket}")
        self._server.start()

    def _unary(self, behaviour):
        return grpc.unary_unary_rpc_method_handler(
            self._noted(behaviour), deviceplugin.RegisterRequest.FromString, self._pack)

    def _stream(self, behaviour):
        return grpc.unary_stream_rpc_method_handler(
            self._noted(behaviour), deviceplugin.RegisterRequest.FromString, self._pack)

    @staticmethod
    def _pack(message):
        return message if isinstance(message, bytes) else message.SerializeToString()

    def _noted(self, behaviour):
        def handler(request, context):
            self.metadata = dict(context.invocation_metadata())
            self.seen.put(request)
            context.add_callback(self.over.set)
            return behaviour(request, context)

        return handler

    def service(self, details):
        return self._handler if details.method == "/test.Peer/Call" else None

    def stop(self):
        self._server.stop(grace=None).wait(GENEROUS_S)


@pytest.fixture
def foreign_server(socket, closing):
    return lambda **settings: closing(ForeignServer(socket, **settings))


def our_call(socket, kind="unary", deadline_ms=0, path="/test.Peer/Call", cancel_after=None):
    """The lines our client prints."""
    more = [] if cancel_after is None else [str(cancel_after)]
    run = subprocess.run([PEER, "call", socket, path, kind, str(deadline_ms), *more],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=GENEROUS_S, check=False)
    assert run.returncode == 0 and not run.stderr, run.stderr
    return run.stdout.splitlines()


def test_client_gets_an_answer(foreign_server, socket):
    server = foreign_server(unary=lambda _request, _context: device_list(2))
    assert our_call(socket) == ["message 2 w0", "done OK "]
    assert server.seen.get().resource_name == "example.com/widget"
    assert server.metadata["user-agent"].startswith("cri-device-shim/")


def test_client_gets_code_and_text(foreign_server, socket):
    foreign_server(unary=lambda _request, context: context.abort(
        grpc.StatusCode.FAILED_PRECONDITION, "wörker is 100% gone"))
    assert our_call(socket) == ["done FAILED_PRECONDITION wörker is 100% gone"]


def test_client_gets_unimplemented(foreign_server, socket):
    foreign_server(unary=lambda _request, _context: device_list(1))
    lines = our_call(socket, path="/test.Peer/Other")
    assert len(lines) == 1 and lines[0].startswith("done UNIMPLEMENTED")


def test_client_gets_a_stream(foreign_server, socket):
    foreign_server(stream=lambda _request, _context: (device_list(n) for n in range(4)))
    assert our_call(socket, "stream") == ["message 0 -", "message 1 w0", "message 2 w0",
                                          "message 3 w0", "done OK "]


def test_client_gets_a_streams_late_error(foreign_server, socket):
    def behaviour(_request, context):
        yield device_list(1)
        context.abort(grpc.StatusCode.DATA_LOSS, "half of it")

    foreign_server(stream=behaviour)
    assert our_call(socket, "stream") == ["message 1 w0", "done DATA_LOSS half of it"]


def test_client_takes_gzip(foreign_server, socket):
    foreign_server(stream=lambda _request, _context: (device_list(n) for n in (1000, 1, 5000)),
                   compression=grpc.Compression.Gzip)
    assert our_call(socket, "stream") == ["message 1000 w0", "message 1 w0", "message 5000 w0",
                                          "done OK "]


def test_client_refuses_a_gzip_bomb(foreign_server, socket):
    bomb = device_list(0).SerializeToString() + bytes([0x7a, 0xff, 0xff, 0xff, 0x0f]) \
        + bytes(2 * MESSAGE_BYTES_MAX)
    foreign_server(unary=lambda _request, _context: bomb, compression=grpc.Compression.Gzip)
    assert our_call(socket) == [
        "done RESOURCE_EXHAUSTED message inflates to more than 16 MiB"]


def test_client_takes_a_hundred_thousand_devices(foreign_server, socket):
    large = device_list(100_000, "GPU-00000000-0000-0000-0000-000000000000-with-a-long-name-")
    foreign_server(stream=lambda _request, _context: iter([large]))
    assert our_call(socket, "stream")[0].startswith("message 100000 GPU-")


def test_client_refuses_too_large_a_message(foreign_server, socket):
    foreign_server(unary=lambda _request, _context: bytes(MESSAGE_BYTES_MAX + 1))
    assert our_call(socket) == ["done RESOURCE_EXHAUSTED message is larger than 16 MiB"]


def test_client_refuses_garbage(foreign_server, socket):
    foreign_server(unary=lambda _request, _context: b"\xff\xff\xff")
    assert our_call(socket) == ["done INTERNAL the answer's message does not parse"]


def test_client_deadline_reaches_the_server(foreign_server, socket):
    def behaviour(_request, context):
        remaining.put(context.time_remaining())
        server.over.wait(GENEROUS_S)
        return b""

    remaining = queue.Queue()
    server = foreign_server(unary=behaviour)
    assert our_call(socket, deadline_ms=300)[0].startswith("done DEADLINE_EXCEEDED")
    assert server.over.wait(GENEROUS_S)
    assert 0 < remaining.get() <= 0.3


def test_client_cancel_reaches_the_server(foreign_server, socket):
    def behaviour(_request, _context):
        yield device_list(1)
        server.over.wait(GENEROUS_S)

    server = foreign_server(stream=behaviour)
    assert our_call(socket, "stream", cancel_after=1) == ["message 1 w0", "cancelled"]
    assert server.over.wait(GENEROUS_S)


def test_client_outlives_the_server(foreign_server, socket):
    def behaviour(_request, _context):
        yield device_list(1)
        server.over.wait(GENEROUS_S)

    server = foreign_server(stream=behaviour)
    with subprocess.Popen([PEER, "call", socket, "/test.Peer/Call", "stream", "0"],
                          stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout.readline() == "message 1 w0\n"
        server.stop()
        assert client.stdout.readline().split()[1] in ("UNAVAILABLE", "CANCELLED")
        assert client.wait(GENEROUS_S) == 0


def test_client_without_a_server(socket):
    assert our_call(socket) == ["done UNAVAILABLE connection lost: no such file or directory"]


# ---- our server ----


class OurServer:
    def __init__(self, socket):
        self._process = subprocess.Popen([PEER, "serve", socket], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.line() == "listening"

    def line(self):
        return self._process.stdout.readline().rstrip("\n")

    def stop(self):
        if self._process.returncode is not None:
            return
        _, errors = self._process.communicate(timeout=GENEROUS_S)
        assert self._process.returncode == 0 and not errors, errors


@pytest.fixture
def our_server(socket, closing):
    return closing(OurServer(socket))


@pytest.fixture
def connect(our_server, socket, closing):
    """connect(**channel settings): a grpcio channel to our server."""
    assert our_server
    return lambda **settings: closing(grpc.insecure_channel(
        f"unix:{socket}", options=[*LARGE, ("grpc.use_local_subchannel_pool", 1)], **settings))


def unary(channel, name):
    return channel.unary_unary(f"/test.Peer/{name}",
                               request_serializer=ForeignServer._pack,
                               response_deserializer=deviceplugin.ListAndWatchResponse.FromString)


def stream(channel, name):
    return channel.unary_stream(f"/test.Peer/{name}",
                                request_serializer=ForeignServer._pack,
                                response_deserializer=deviceplugin.ListAndWatchResponse.FromString)


def request(**fields):
    return deviceplugin.RegisterRequest(**{"resource_name": "example.com/widget", **fields})


def test_server_answers(connect):
    call = unary(connect(), "Echo")
    for name in ("one", "two", "x" * 100_000):
        answer = call(request(resource_name=name), timeout=GENEROUS_S)
        assert [device.ID for device in answer.devices] == [name]


def test_server_answers_many_at_once(connect):
    call = unary(connect(), "Echo")
    futures = [call.future(request(resource_name=f"r{n}"), timeout=GENEROUS_S) for n in range(1000)]
    assert [future.result().devices[0].ID for future in futures] == [f"r{n}" for n in range(1000)]


def refused(call, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as error:
        call(*args, timeout=GENEROUS_S, **kwargs)
    return error.value.code(), error.value.details()


def test_server_refuses_with_code_and_text(connect):
    call = unary(connect(), "Fail")
    assert refused(call, request(version="14", endpoint="grace left: 4 m; 100% wörker\n")) == (
        grpc.StatusCode.UNAVAILABLE, "grace left: 4 m; 100% wörker\n")
    assert refused(call, request(version="8")) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "")
    code, text = refused(call, request(version="3", endpoint="ä" * 5000))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and text == "ä" * 512


def test_server_knows_no_other_method(connect):
    assert refused(unary(connect(), "Other"), request())[0] == grpc.StatusCode.UNIMPLEMENTED


def test_server_streams(connect):
    answers = list(stream(connect(), "Stream")(request(version="50"), timeout=GENEROUS_S))
    assert [len(answer.devices) for answer in answers] == list(range(50))


def test_server_sends_a_hundred_thousand_devices(connect):
    name = "GPU-00000000-0000-0000-0000-000000000000-with-a-long-name"
    answer = unary(connect(), "Large")(request(version="100000", resource_name=name),
                                       timeout=GENEROUS_S)
    assert len(answer.devices) == 100_000


def test_server_takes_gzip(connect):
    call = unary(connect(compression=grpc.Compression.Gzip), "Echo")
    name = "widget " * 10_000
    assert call(request(resource_name=name), timeout=GENEROUS_S).devices[0].ID == name


def test_server_refuses_what_it_cannot_take(connect):
    call = unary(connect(), "Echo")
    assert refused(call, b"\xff\xff")[0] == grpc.StatusCode.INTERNAL
    assert refused(call, bytes(MESSAGE_BYTES_MAX + 1)) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED, "message is larger than 16 MiB")
    assert call(request(), timeout=GENEROUS_S).devices  # the connection lives on


def test_server_refuses_another_compression(connect):
    call = unary(connect(compression=grpc.Compression.Deflate), "Echo")
    assert refused(call, request(resource_name="a" * 10_000))[0] == grpc.StatusCode.UNIMPLEMENTED


def test_server_hears_of_a_cancel(connect, our_server):
    call = stream(connect(), "Hang")(request())
    assert next(call).devices[0].ID == "hanging"
    call.cancel()
    assert our_server.line() == "cancelled"


def test_server_hears_of_a_deadline(connect, our_server):
    call = stream(connect(), "Hang")(request(), timeout=0.2)
    with pytest.raises(grpc.RpcError) as error:
        list(call)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert our_server.line() == "cancelled"


def test_server_hears_of_a_lost_client(connect, our_server):
    channel = connect()
    assert next(stream(channel, "Hang")(request())).devices
    channel.close()
    assert our_server.line() == "cancelled"


def test_server_that_ends_leaves_its_clients_unavailable(connect, our_server, socket):
    call = stream(connect(), "Hang")(request())
    assert next(call).devices
    our_server.stop()
    with pytest.raises(grpc.RpcError) as error:
        next(call)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    wait_until(lambda: not socket.exists(), "the socket is removed")
