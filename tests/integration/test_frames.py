"""The relay at HTTP/2's own level, with frames that grpcio would not send."""

import pytest

from asking import by_annotation
from criclient import pod_config
from protos import RUNTIME, cri
from rawh2 import Connection, framed
from runtime import Reply

CREATE = RUNTIME + "CreateContainer"
FAILED_PRECONDITION = 9


@pytest.fixture
def refusable(client):
    """A CreateContainer that the shim refuses, framed."""
    pod = client.run_pod("bad", annotations=by_annotation("app", "no.such/thing=1"))
    return framed(client.create_request(pod, "app").SerializeToString())


@pytest.fixture
def plain(client):
    """A CreateContainer without devices, framed."""
    return framed(client.create_request(client.run_pod("plain"), "app").SerializeToString())


def exercise(connection, refusable, plain, headers=()):
    """Refused, created and echoed in turn: header tables and windows stay in step."""
    for number in range(20):
        marked = [("x-number", str(number)), ("x-same", "always"), *headers]
        refused = connection.wait_end(connection.call(CREATE, refusable, headers=marked))
        assert refused.status == FAILED_PRECONDITION and "no.such/thing" in refused.message
        assert connection.wait_end(connection.call(CREATE, plain, headers=marked)).status == 0
        stream = connection.call("/x/Echo", framed(b"z" * 3000), headers=marked)
        echoed = connection.wait_end(stream)
        assert (echoed.status, echoed.payload) == (0, b"z" * 3000)


@pytest.mark.parametrize("settings", [
    {}, {"HEADER_TABLE_SIZE": 0}, {"HEADER_TABLE_SIZE": 65536}, {"INITIAL_WINDOW_SIZE": 100},
    {"MAX_FRAME_SIZE": (1 << 24) - 1, "INITIAL_WINDOW_SIZE": (1 << 31) - 1}, {"ENABLE_PUSH": 0},
], ids=str)
def test_client_settings(runtime, shim, refusable, plain, settings):
    """Whatever settings the client announces, and changes later, both ends stay in step."""
    with Connection(shim.socket) as connection:
        exercise(connection, refusable, plain)
        if settings:
            connection.set(**settings)
        exercise(connection, refusable, plain)
        connection.set(HEADER_TABLE_SIZE=4096, INITIAL_WINDOW_SIZE=65535)
        exercise(connection, refusable, plain)


def test_ping_passes(runtime, shim, refusable, plain):
    """PINGs are answered by the runtime, also between refusals."""
    with Connection(shim.socket) as connection:
        for number in range(10):  # with calls in between, or grpc's C core hangs up
            connection.ping(b"%08d" % number)
            exercise(connection, refusable, plain)


def test_header_blocks_in_several_frames(runtime, shim, refusable, plain):
    """Header blocks over 16 KiB come in CONTINUATION frames, both ways, in every kind of call."""
    metadata = [(f"x-long-{number}", "v" * 1500) for number in range(20)]
    for method in ("CreateContainer", "Echo"):
        runtime.on(method, lambda call: Reply(call.messages, initial=metadata, trailing=metadata))
    with Connection(shim.socket) as connection:
        exercise(connection, refusable, plain, headers=metadata)
        answer = connection.wait_end(connection.call("/x/Echo", framed(b""), headers=metadata))
        assert set(metadata) <= set(answer.headers) and set(metadata) <= set(answer.trailers)
    assert set(metadata) <= set(runtime.calls_of("Echo")[-1].metadata)


def test_refusal_in_the_middle_of_an_upload(runtime, shim, client, refusable):
    """Refusals while another call's message is half sent: it arrives whole."""
    body = framed(bytes(range(256)) * 1000)
    with Connection(shim.socket) as connection:
        stream = connection.begin("/x/Echo")
        for at in range(0, len(body), 25_000):
            connection.send(stream, body[at:at + 25_000], end_stream=False)
            assert connection.wait_end(connection.call(CREATE, refusable)).status
        connection.send(stream, b"")
        assert connection.wait_end(stream).payload == body[5:]


def test_withheld_messages_side_by_side(runtime, shim, client):
    """Forty CreateContainers of 100 KB at once, each withheld until it is whole: far more than the
    connection's window holds, so the shim must give credit for what it withholds."""
    request = cri.CreateContainerRequest(sandbox_config=pod_config("web"))
    request.config.annotations["big"] = "x" * 100_000
    runtime.on("CreateContainer", lambda call: Reply((b"",)))
    body = framed(request.SerializeToString())
    with Connection(shim.socket) as connection:
        streams = [connection.begin(CREATE) for _ in range(40)]
        for at in range(0, len(body), 10_000):
            for stream in streams:
                connection.send(stream, body[at:at + 10_000], end_stream=False)
        for stream in streams:
            connection.send(stream, b"")
        for stream in streams:
            assert connection.wait_end(stream).status == 0
    assert [call.request for call in runtime.calls_of("CreateContainer")] == [body[5:]] * 40


def test_reset_while_refused(runtime, shim, client, refusable, plain):
    """A client that resets its call at the moment it is refused; the next calls are answered."""
    with Connection(shim.socket) as connection:
        for _ in range(100):
            connection.reset(connection.call(CREATE, refusable))
        exercise(connection, refusable, plain)


def test_second_message_after_the_first(runtime, shim, client, plain):
    """More bytes behind a whole CreateContainer message: the runtime's own error comes back."""
    answers = []
    for path in (runtime.path, shim.socket):
        with Connection(path) as connection:
            stream = connection.begin(CREATE)
            connection.send(stream, plain, end_stream=False)
            connection.send(stream, plain)
            answers.append(connection.wait_end(stream).status)
    assert answers[0] == answers[1]
