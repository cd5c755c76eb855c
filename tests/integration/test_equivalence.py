"""The shim is not there: recorded and made-up exchanges come out of it as they went in.

Each is played directly and through the shim, and every byte that either end receives is compared.
Only the DATA of calls that the shim intercepts may be cut into frames anew.
"""

import collections
import json
import pathlib
import random
import re
import subprocess

import grpc
import pytest

import rawpair
from asking import outcome
from capture import (DATA, END_STREAM, PADDED, PREFACE, SETTINGS, TO_CLIENT, TO_SERVER,
                     WINDOW_UPDATE, Frame, FrameReader, Frames, connect, load, random_chunks,
                     rechunked, replay, sent, streams_of_path)
from criclient import Client
from exchange import Exchange
from forwarder import Forwarder
from h2runtime import H2Runtime
from protos import IMAGE, RUNTIME, cri
from rawh2 import Connection, framed

CREATE = RUNTIME + "CreateContainer"
CAPTURES = sorted((pathlib.Path(__file__).parent / "captures").glob("*.cap"))
SEEDS = range(25)
CHUNKS = {"as recorded": lambda records: records,
          "byte by byte": lambda records: rechunked(records, lambda: 1),
          "at random, seed 1": lambda records: rechunked(records, random_chunks(1)),
          "at random, seed 2": lambda records: rechunked(records, random_chunks(2))}


@pytest.fixture
def runtime(runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


@pytest.fixture
def quiet(runtime, shim):
    rawpair.wait_quiet(shim)
    runtime.wait_ended()


@pytest.fixture
def play(runtime, quiet):
    """play(path, records, ...): an exchange over a connection to `path`, runtime's or shim's."""

    def play_on(path, records, **options):
        runtime.want_raw()
        client = connect(path)
        return replay(records, client, runtime.take_raw(), **options)

    return play_on


def check_same(play, shim, records, **options):
    """What both ends receive through the shim is what they sent each other."""
    to_client, to_server = sent(records, TO_CLIENT), sent(records, TO_SERVER)
    loose = streams_of_path(to_server, CREATE)
    client_got, server_got = play(shim.socket, records, loose=loose, **options)
    if not loose:
        assert client_got == to_client
        assert server_got == to_server
        return
    for direction, got, wanted in ((TO_CLIENT, client_got, to_client),
                                   (TO_SERVER, server_got, to_server)):
        assert not Frames(got, direction, loose).differences(Frames(wanted, direction, loose))


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_recorded(runtime, shim, play, path, chunks):
    """A real kubelet's, crictl's and a plugin's exchanges, however they are cut."""
    records = CHUNKS[chunks](load(path))
    assert play(runtime.path, records) == (sent(records, TO_CLIENT), sent(records, TO_SERVER))
    check_same(play, shim, records, one_by_one=chunks == "byte by byte")


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up(shim, play, seed):
    """Legal exchanges with odd framings that no library would send."""
    rng = random.Random(seed)
    records = Exchange(rng).run(streams=60)
    check_same(play, shim, records)
    check_same(play, shim, rechunked(records, random_chunks(seed)), one_by_one=True)



def test_nothing_comes_before_the_runtimes_settings(runtime, quiet, shim, closing):
    """Credit for withheld padding waits for the runtime's SETTINGS, which must come first (RFC 9113
    §3.4)."""
    runtime.want_raw()
    client = closing(connect(shim.socket))
    server = closing(runtime.take_raw())
    request = (PREFACE + Frame(SETTINGS, 0, 0, b"").encode()
               + rawpair.headers(1, rawpair.request_fields(CREATE)).encode()
               + Frame(DATA, PADDED | END_STREAM, 1, b"\xff" + framed(b"") + bytes(255)).encode())
    client.sendall(request)
    reader, frames = FrameReader(TO_SERVER), []
    while not frames or not frames[-1].flags & END_STREAM:
        frames += reader.feed(server.recv(1 << 16))
    assert frames[-1].payload == framed(b"")
    first = Frame(SETTINGS, 0, 0, b"").encode()
    server.sendall(first)
    rawpair.receive_all(client, [first, Frame(WINDOW_UPDATE, 0, 0, b"\0\0\1\0").encode()])


# ---- foreign clients against a scripted runtime ----


@pytest.fixture
def compare(runtime, quiet, shim):
    """compare(client): client(path) directly and through the shim; what it returns is what it saw,
    and that and what the runtime saw must be the same."""
    def run(client, path):
        del runtime.calls[:]
        seen = client(path)
        runtime.wait_ended()
        return seen, collections.Counter(_as_seen(call) for call in runtime.calls
                                         if not _is_shims_own(call))

    def check(client):
        directly, through = run(client, runtime.path), run(client, shim.socket)
        for seen_through, seen_directly in zip(through, directly):
            if isinstance(seen_directly, collections.Counter):
                assert seen_through - seen_directly == {}, "only through the shim"
                assert seen_directly - seen_through == {}, "only directly"
            assert seen_through == seen_directly
        assert directly[1], "no call was made"

    return check


def _is_shims_own(call):
    return dict(call.headers).get("user-agent", "").startswith("cri-device-shim/")


def _as_seen(call):
    """All of a call, but for the deadline, which is another at another moment."""
    headers = [pair for pair in call.headers if pair[0] != "grpc-timeout"]
    return json.dumps([headers, call.body.hex(), call.trailers, str(call.end)])


def _create_request(annotation_bytes):
    request = cri.CreateContainerRequest(pod_sandbox_id="none")
    request.config.annotations["x"] = "y" * annotation_bytes
    return request.SerializeToString()


CREATES = [_create_request(size) for size in (0, 3000, 100_000, 3_000_000)]
METADATA = (("x-a", "1"), ("x-b-bin", bytes(range(256))), ("x-long", "v" * 4000))


def test_grpcio(compare):
    """python3-grpcio: answers, errors, resets, large messages, gzip, streams, metadata."""
    def client(path):
        with Client(path) as one:
            seen = [outcome(one, f"/x/{method}", payload, metadata=METADATA)
                    for method in ("Echo", "Fail", "Reset", "Bytes0", "Bytes70000", "Bytes3000000")
                    for payload in (b"", b"x" * 70_000)]
            seen += [outcome(one, CREATE, create, compression=compression) for create in CREATES
                     for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip)]
            messages = [bytes([number]) * number * 100 for number in range(40)]
            seen.append(list(one.channel.stream_stream("/x/Echo")(iter(messages))))
            return seen

    compare(client)


@pytest.mark.parametrize("settings", [
    {}, {"INITIAL_WINDOW_SIZE": 10}, {"HEADER_TABLE_SIZE": 0}, {"MAX_FRAME_SIZE": 1 << 20},
], ids=str)
def test_h2_by_hand(compare, settings):
    """python3-h2 with padding, priorities, long header blocks, and settings changed under way."""
    def client(path):
        seen = []
        with Connection(path) as one:
            one.set(**settings)
            for body in map(framed, CREATES[:3]):
                seen += [_odd_call(one, method, body, pad)
                         for method in (CREATE, "/x/Echo", RUNTIME + "RunPodSandbox")
                         for pad in (None, 0, 255)]
                one.set(HEADER_TABLE_SIZE=len(seen) * 100, INITIAL_WINDOW_SIZE=len(seen) * 1000)
        return seen

    compare(client)


def _odd_call(connection, path, body, pad):
    long = 20_000 if pad is None else 300  # in a CONTINUATION; slow to encode, so not always
    stream = connection.begin(path, headers=[("x-pad", str(pad)), ("x-long", "v" * long)])
    connection.h2.prioritize(stream, weight=7, depends_on=0)
    connection.send(stream, body, pad_bytes=pad)
    answer = connection.wait_end(stream)
    return answer.headers, answer.body, answer.trailers, answer.reset


def _run(*command):
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("method", [CREATE, "/x/Echo", IMAGE + "ListImages", "/x/Bytes50000"])
def test_h2load(compare, directory, method):
    """nghttp2's load generator: several connections, many streams at once."""
    body = directory / "body"
    body.write_bytes(framed(CREATES[1]))

    def client(path):
        printed = _run("h2load", "-n", 200, "-c", 4, "-m", 10, "-w", 20, "-d", body,
                       "-H", "content-type: application/grpc", "-B", f"unix:{path}",
                       f"http://localhost{method}")
        return re.findall(r"^(?:requests|status codes|traffic): .*", printed, re.MULTILINE)

    compare(client)


NGHTTP = {"padding and trailers": ["-b", "200", "--trailer", "x-t: 1"],
          "continuation": ["--continuation"], "no header table": ["-c", "0"],
          "small windows": ["-w", "10", "-W", "14"], "many": ["-m", "50"]}


@pytest.mark.parametrize("options", NGHTTP.values(), ids=NGHTTP.keys())
def test_nghttp(compare, directory, closing, options):
    """nghttp2's client, which prints every frame: the same frames, whatever order they come in."""
    forwarder = closing(Forwarder())
    body = directory / "body"

    def call(method, message):
        body.write_bytes(framed(message))
        printed = _run("nghttp", "-v", "-n", "-t", 30, "-d", body, *options,
                       "-H", "content-type: application/grpc", f"{forwarder.url}{method}")
        return _nghttp_frames(printed)

    def client(path):
        forwarder.target = path
        # not over the runtime's window: there a withheld message would be dropped for the trailers
        # that follow it, which no gRPC client sends (from_client_headers_head())
        return call(CREATE, CREATES[1]) + call("/x/Echo", CREATES[2])

    compare(client)


def _nghttp_frames(printed):
    """What nghttp received, without what depends on the moment: times, the order in which calls
    are answered and with it the length of header blocks, the cuts of DATA, WINDOW_UPDATEs, ACKs."""
    frames = collections.Counter()
    for entry in re.split(r"^\[ *[0-9.]+\] ", printed, flags=re.MULTILINE):
        head = re.match(r"recv (\w+) frame <length=(\d+), flags=0x(\w+), stream_id=(\d+)>", entry)
        if head and head[1] == "DATA":
            frames[f"DATA on stream {head[4]}"] += int(head[2])
        elif head and head[1] != "WINDOW_UPDATE" and (head[1], head[3]) != ("SETTINGS", "01"):
            frames[re.sub(r"length=\d+", "", entry)] += 1
        elif entry.startswith("recv ("):  # a header field
            frames[entry] += 1
    return frames
