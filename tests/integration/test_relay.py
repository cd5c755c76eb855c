"""The relay between two foreign gRPC implementations: what is not ours passes as it came."""

import os
import queue
import signal
import socket
import threading

import grpc
import pytest

from asking import outcome, refused
from criclient import CGROUP_PARENT
from protos import IMAGE, RUNTIME, cri
from rawh2 import Connection, framed
from runtime import Reply, Runtime
from waiting import GENEROUS_S, wait_until

MIB = 1 << 20
# Field 1000, length-delimited, and field 1001, varint: in no version of the API.
UNKNOWN_FIELDS = b"\xc2\x3e\x05\x00\xff\x00\xff\x00" + b"\xc8\x3e\xff\xff\xff\xff\x0f"
# grpc's own keys are not passed on to applications; everything else is.
METADATA = (("x-plain", "a value"), ("x-plain", "the same key again"), ("x-empty", ""),
            ("x-bytes-bin", bytes(range(256))), ("x-long", "v" * 4000),
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))


@pytest.fixture
def direct(runtime, make_client):
    return make_client(runtime)


@pytest.fixture
def same(direct, client):
    """same(path, request, ...): the call directly and through the shim; both outcomes are equal."""
    def ask(path, request=b"", **options):
        directly = outcome(direct, path, request, **options)
        assert outcome(client, path, request, **options) == directly
        return directly

    return ask


def last_two(runtime, method):
    """The direct call and the one through the shim, as the runtime got them."""
    return runtime.calls_of(method)[-2:]


def test_unknown_method_passes(runtime, same):
    """Unknown methods pass: any path, any bytes, both ways."""
    request = bytes(range(256)) * 50
    answer, code, *_rest = same("/some.future.Service/DoIt", request)
    assert (answer, code) == (request, grpc.StatusCode.OK)
    assert [call.messages for call in last_two(runtime, "DoIt")] == [[request], [request]]


def test_unimplemented_comes_from_the_runtime(runtime, same):
    """Unknown methods pass: what the runtime says of one it does not know comes back word by
    word."""
    runtime.on("Nothing", lambda call: Reply((), grpc.StatusCode.UNIMPLEMENTED,
                                             "unknown method Nothing for service 100% ünknown"))
    _, code, details, *_rest = same(RUNTIME + "Nothing")
    assert (code, details) == (grpc.StatusCode.UNIMPLEMENTED,
                               "unknown method Nothing for service 100% ünknown")


@pytest.mark.parametrize("method", ["RunPodSandbox", "StopPodSandbox", "RemovePodSandbox",
                                    "CreateContainer", "RemoveContainer", "ContainerStatus"])
def test_unknown_fields_pass(runtime, same, method):
    """Unknown protobuf fields pass, in calls the shim reads and in others, in requests and
    answers."""
    request = UNKNOWN_FIELDS + b"\x0a\x02id" + UNKNOWN_FIELDS
    runtime.on(method, lambda call: Reply((b"\x0a\x02id" + UNKNOWN_FIELDS,)))
    answer, code, *_rest = same(RUNTIME + method, request)
    assert (answer, code) == (b"\x0a\x02id" + UNKNOWN_FIELDS, grpc.StatusCode.OK)
    assert [call.request for call in last_two(runtime, method)] == [request, request]


def test_create_without_devices_byte_for_byte(runtime, client):
    """A CreateContainer without devices reaches a recording runtime byte for byte.

    The bytes are such as no encoder makes: split embedded messages, fields out of order, a varint
    longer than it need be, unknown fields at two levels, an annotation that only looks like ours.
    """
    pod = client.run_pod("web")
    config = client.create_request(pod, "app", ["sh"], annotations={
        "devices.cri-device-shim": "vendor.com/gpu=1", "else": "devices.cri-device-shim/app"})
    tail = cri.CreateContainerRequest(config=config.config).SerializeToString()
    request = (UNKNOWN_FIELDS
               + cri.CreateContainerRequest(sandbox_config=pod.config).SerializeToString()
               + tail
               + b"\x12\x0c" + UNKNOWN_FIELDS[:8] + b"\x60\x80\x80\x00"
               + b"\x0a\xc0\x80\x00" + pod.id.encode())
    answer, _ = client.unary(RUNTIME + "CreateContainer", request)
    assert cri.CreateContainerResponse.FromString(answer).container_id in runtime.state.containers
    assert runtime.calls_of("CreateContainer")[-1].messages == [request]


def test_metadata_passes(runtime, same):
    """Request metadata passes: every pair, in order, repeated keys and binary values too."""
    for method in ("Status", "CreateContainer"):
        same(RUNTIME + method, metadata=METADATA)
        directly, through = (call.metadata for call in last_two(runtime, method))
        assert through == directly
        assert [pair for pair in through if pair in METADATA] == list(METADATA)


def test_initial_metadata_and_trailers_pass(runtime, same):
    """Initial metadata and trailers pass, with an answer and with an error, in any method."""
    initial, trailing = (("a", "1"), ("b-bin", b"\0\xff")), (("c", "2"), ("c", "3"),
                                                          ("grpc-status-details-bin", b"\x08\x05"))
    for method in ("Status", "CreateContainer"):
        runtime.on(method, lambda call: Reply((b"",), initial=initial, trailing=trailing))
        _, code, _, got_initial, got_trailing = same(RUNTIME + method)
        assert (code, got_initial) == (grpc.StatusCode.OK, initial)
        assert got_trailing == trailing
        runtime.on(method, lambda call: Reply((), grpc.StatusCode.ABORTED, "no", initial, trailing))
        _, code, details, got_initial, got_trailing = same(RUNTIME + method)
        assert (code, details, got_initial) == (grpc.StatusCode.ABORTED, "no", initial)
        assert got_trailing == trailing


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0]])
def test_errors_pass(runtime, same, code):
    """Errors pass: every code, with its text, of calls relayed, observed and intercepted."""
    for method in ("Status", "RunPodSandbox", "CreateContainer"):
        runtime.on(method, lambda call: Reply((), code, f"100% {method}: naïve ☃\nsecond line"))
        _, got, details, *_rest = same(RUNTIME + method)
        assert (got, details) == (code, f"100% {method}: naïve ☃\nsecond line")


def test_a_long_error_passes(runtime, client):
    """An error's text of 2 MiB, which grpc-go takes, passes whole, and the connection goes on."""
    text = "path too long: " + "x" * (2 * MIB)
    for method in ("Status", "CreateContainer"):
        runtime.on(method, lambda call: Reply((), grpc.StatusCode.UNKNOWN, text))
        _, code, details, *_rest = outcome(client, RUNTIME + method)
        assert (code, details == text) == (grpc.StatusCode.UNKNOWN, True)
    assert client.Version().runtime_name == "recorder"


def test_server_stream_passes(runtime, client):
    """A server stream (GetContainerEvents) passes: each message when it is sent, then its error."""
    runtime.wait_calls("GetContainerEvents")  # the shim's own, once
    feed = queue.SimpleQueue()
    runtime.on("GetContainerEvents", lambda call: Reply(
        iter(feed.get, None), grpc.StatusCode.RESOURCE_EXHAUSTED, "too many events"))
    stream = client.events(timeout=GENEROUS_S)
    for number in range(20):
        event = cri.ContainerEventResponse(container_id=f"c{number}", created_at=number)
        event.pod_sandbox_status.labels["x"] = "y" * number * 1000
        feed.put(event.SerializeToString())
        assert next(stream) == event  # nothing else is under way: it came by itself
    feed.put(None)
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many events"):
        next(stream)


def test_server_stream_cancelled(runtime, client):
    """A server stream that the client gives up ends at the runtime too."""
    def events(call):
        yield b""
        call.over.wait(GENEROUS_S)

    runtime.wait_calls("GetContainerEvents")  # the shim's own, once
    runtime.on("GetContainerEvents", lambda call: Reply(events(call)))
    stream = client.events(timeout=GENEROUS_S)
    next(stream)
    stream.cancel()
    assert runtime.wait_calls("GetContainerEvents", 2)[1].over.wait(GENEROUS_S)
    assert client.Version().runtime_name == "recorder"


def test_large_messages_pass(runtime, same):
    """Messages up to the kubelet's 16 MiB pass whole, both ways, relayed and intercepted."""
    payload = bytes(range(256)) * (15 * MIB // 256)
    answer, code, *_rest = same(IMAGE + "PullImage", payload)
    assert (code, answer == payload) == (grpc.StatusCode.OK, True)
    request = cri.CreateContainerRequest()
    request.config.annotations["big"] = "x" * (15 * MIB)
    runtime.on("CreateContainer", lambda call: Reply((b"\x0a\x01c",)))
    answer, code, *_rest = same(RUNTIME + "CreateContainer", request.SerializeToString())
    assert (answer, code) == (b"\x0a\x01c", grpc.StatusCode.OK)
    assert runtime.calls_of("CreateContainer")[-1].parsed() == request


def test_calls_do_not_wait_for_each_other(runtime, client):
    """One connection, many calls: slow ones stand still, quick ones and a big one pass them."""
    release = threading.Event()

    def slow(call):
        release.wait(GENEROUS_S)
        return Reply(call.messages)

    runtime.on("Slow", slow)
    waiting = [client.channel.unary_unary("/x/Slow").future(b"%d" % number, timeout=GENEROUS_S)
               for number in range(8)]
    runtime.wait_calls("Slow", 8)
    for number in range(100):
        assert client.unary("/x/Quick", b"%d" % number)[0] == b"%d" % number
    assert len(client.unary("/x/Quick", bytes(8 * MIB))[0]) == 8 * MIB
    release.set()
    assert [call.result() for call in waiting] == [b"%d" % number for number in range(8)]


def test_deadline_passes(runtime, client):
    """The client's deadline reaches the runtime, and its end ends the call there."""
    runtime.on("Slow", lambda call: Reply(() if call.over.wait(GENEROUS_S) else ()))
    with refused(grpc.StatusCode.DEADLINE_EXCEEDED):
        client.unary("/x/Slow", timeout=3)
    call = runtime.wait_calls("Slow")[0]
    assert 0 < call.time_remaining < 4
    assert call.over.wait(GENEROUS_S)


def test_cancel_passes(runtime, client):
    """A call that the client cancels ends at the runtime; the connection goes on."""
    runtime.on("Slow", lambda call: Reply(() if call.over.wait(GENEROUS_S) else ()))
    waiting = client.channel.unary_unary("/x/Slow").future(b"", timeout=GENEROUS_S)
    call = runtime.wait_calls("Slow")[0]
    waiting.cancel()
    assert call.over.wait(GENEROUS_S)
    assert client.Version().runtime_name == "recorder"


def test_client_crash_ends_its_calls(runtime, shim, client):
    """A client that is gone in the middle of a call is gone for the runtime too; others go on."""
    runtime.on("Slow", lambda call: Reply(() if call.over.wait(GENEROUS_S) else ()))
    with Connection(shim.socket) as connection:
        connection.call("/x/Slow", framed(b""))
        call = runtime.wait_calls("Slow")[0]
    assert call.over.wait(GENEROUS_S)
    assert client.Version().runtime_name == "recorder"


def test_who_comes_while_the_shim_is_busy_waits(shim):
    """As many as at a runtime's own socket: none is turned away."""
    clients = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
               for _ in range(600)]
    os.kill(shim.pid, signal.SIGSTOP)
    try:
        for client in clients:
            client.connect(str(shim.socket))
    finally:
        for client in clients:
            client.close()
        os.kill(shim.pid, signal.SIGCONT)


def test_runtime_restart(runtime, client):
    """A runtime that restarts: the client's calls fail UNAVAILABLE, then it is reconnected by
    itself."""
    runtime.on("Slow", lambda call: Reply(() if call.over.wait(GENEROUS_S) else ()))
    pod = client.run_pod("web")
    waiting = client.channel.unary_unary("/x/Slow").future(b"", timeout=GENEROUS_S)
    runtime.wait_calls("Slow")
    runtime.stop()
    assert waiting.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    with refused(grpc.StatusCode.UNAVAILABLE):
        client.Version()
    runtime.start()
    client.wait_ready()
    assert client.create(pod, "app") in runtime.state.containers


def test_runtime_missing_at_start(directory, make_shim, make_client, closing):
    """A missing runtime socket: the shim listens, says so, and works when the runtime comes."""
    shim = make_shim()
    shim.wait_log(str(directory / "r.sock"))
    client = make_client(shim)
    with refused(grpc.StatusCode.UNAVAILABLE):
        client.Version()
    runtime = closing(Runtime(directory / "r.sock"))
    runtime.start()
    client.wait_ready()
    assert client.Version().runtime_name == "recorder"


MALFORMED = {
    "truncated": b"\x12\x7f\x0a",
    "bad tag": b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    "wrong wire type": b"\x10\x01" * 3,
    "group that never ends": b"\x13\x0a\x00",
    "field number 0": b"\x02\x00",
    "metadata that is cut off": b"\x12\x03\x0a\x7f\x0a",
    "devices' annotations, then rubbish": cri.CreateContainerRequest(
        sandbox_config=cri.PodSandboxConfig(annotations={"devices.cri-device-shim/app": "a.b/c=1"})
    ).SerializeToString() + b"\x12\xff",
}


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_create(runtime, same, request_bytes):
    """A malformed CreateContainer passes to the runtime unchanged; its own error comes back."""
    runtime.on("CreateContainer", lambda call: Reply(
        (), grpc.StatusCode.INTERNAL, f"grpc: failed to unmarshal {call.request!r}"))
    _, code, details, *_rest = same(RUNTIME + "CreateContainer", request_bytes)
    assert (code, details) == (grpc.StatusCode.INTERNAL,
                               f"grpc: failed to unmarshal {request_bytes!r}")
    assert [call.messages for call in last_two(runtime, "CreateContainer")] == [[request_bytes]] * 2


def raw_create(connection, body, **options):
    stream = connection.call(RUNTIME + "CreateContainer", body, **options)
    answer = connection.wait_end(stream)
    return answer.status, answer.message, answer.body


NOT_ONE_MESSAGE = {"no message": b"", "half a head": b"\0\0",
                   "half a message": framed(b"\x0a\x01x")[:-1],
                   "two messages": framed(b"") + framed(b""), "unknown flag": b"\x02\0\0\0\0"}


@pytest.mark.parametrize("body", NOT_ONE_MESSAGE.values(), ids=NOT_ONE_MESSAGE.keys())
def test_create_that_is_not_one_message(runtime, shim, body):
    """A malformed CreateContainer at gRPC's own level: the runtime's own error comes back."""
    with Connection(runtime.path) as directly, Connection(shim.socket) as through:
        assert raw_create(through, body)[:2] == raw_create(directly, body)[:2]
        assert through.wait_end(through.call("/x/y", framed(b"ok"))).payload == b"ok"


def test_create_in_small_frames(runtime, shim, client):
    """A CreateContainer that comes byte by byte, its end in an empty frame, is whole at the
    runtime."""
    request = client.create_request(client.run_pod("web"), "app").SerializeToString()
    with Connection(shim.socket) as connection:
        stream = connection.begin(RUNTIME + "CreateContainer")
        connection.send(stream, framed(request), end_stream=False, frame_bytes_max=1)
        connection.send(stream, b"")
        assert connection.wait_end(stream).status == 0
    assert runtime.calls_of("CreateContainer")[-1].messages == [request]


@pytest.mark.parametrize("announced", [16 * MIB + 1, 0xffffffff])
def test_create_over_16_mib(runtime, shim, client, announced):
    """A message over 16 MiB is refused RESOURCE_EXHAUSTED; the connection and other calls go on."""
    with Connection(shim.socket) as connection:
        head = b"\0" + announced.to_bytes(4, "big")
        stream = connection.call(RUNTIME + "CreateContainer", head + bytes(17 * MIB))
        answer = connection.wait_end(stream)
        assert answer.status == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
        assert str(16 * MIB) in answer.message or "16 MiB" in answer.message
        assert connection.wait_end(connection.call("/x/y", framed(b"ok"))).payload == b"ok"
    request = cri.CreateContainerRequest()
    request.config.annotations["big"] = "x" * announced if announced < 1 << 30 else "x" * 20 * MIB
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        client.CreateContainer(request)
    assert client.Version().runtime_name == "recorder"
    assert not runtime.calls_of("CreateContainer")


def test_create_given_up_half_way(runtime, shim):
    """A client that resets a CreateContainer in the middle of its message leaves nothing behind."""
    with Connection(shim.socket) as connection:
        for number in range(50):
            stream = connection.begin(RUNTIME + "CreateContainer")
            connection.send(stream, framed(bytes(100_000))[:1 + number * 2000], end_stream=False)
            connection.reset(stream)
        assert connection.wait_end(connection.call("/x/y", framed(bytes(MIB)))).status == 0
    assert not runtime.calls_of("CreateContainer")


def test_create_compressed(runtime, client):
    """A gzip-compressed CreateContainer without devices passes."""
    request = client.create_request(client.run_pod("web"), "app", ["x" * 10_000])
    client.unary(RUNTIME + "CreateContainer", request.SerializeToString(),
                 compression=grpc.Compression.Gzip)
    assert runtime.calls_of("CreateContainer")[-1].parsed() == request


def test_pods_are_followed_through_bad_answers(runtime, client):
    """Answers that make no sense to the shim, in calls it observes, pass and hurt nobody."""
    for method in ("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "RemoveContainer"):
        runtime.on(method, lambda call: Reply((b"\xff\xff\xff",)))
        assert client.unary(RUNTIME + method, b"\xff\xff")[0] == b"\xff\xff\xff"
        runtime.on(method)
    pod = client.run_pod("web")
    assert pod.config.linux.cgroup_parent == CGROUP_PARENT
    assert client.create(pod, "app") in runtime.state.containers


def test_many_connections(runtime, shim, make_client):
    """Each client connection has one runtime connection of its own, and all end with it."""
    clients = [make_client(shim) for _ in range(20)]
    for number, client in enumerate(clients):
        assert client.unary("/x/y", b"%d" % number)[0] == b"%d" % number
    for client in clients[:10]:
        client.close()
    for client in clients[10:]:
        assert client.unary("/x/y", b"still")[0] == b"still"


def test_clients_that_speak_no_http2(runtime, shim, client):
    """Bytes that are no HTTP/2 end that connection only."""
    for words in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 100,
                  b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(shim.socket))
            peer.settimeout(GENEROUS_S)
            try:
                peer.sendall(words)
                while peer.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
    wait_until(lambda: client.Version().runtime_name == "recorder", "other clients go on")
