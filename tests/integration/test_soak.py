"""Everything at once for a while, at random, then quiet: nothing may be left over.

Clients call, create, cancel and break off; the plugin comes and goes; the runtime restarts.
What reaches the runtime is looked at: each container has as many devices as its pod asks for, and
none that another has which the runtime has not ended.
SHIM_SOAK_SECONDS sets how long, SHIM_SOAK_SEED makes other choices (the timing is always another).
"""

import collections
import gc
import os
import random
import re
import statistics
import threading
import time

import grpc
import h2.exceptions

from asking import by_annotation, envs, outcome
from capture import GOAWAY, TO_CLIENT, FrameReader
from criclient import Client
from process import MIB, open_files, rss_bytes, unix_clients
from protos import RUNTIME, cri
from rawh2 import Connection, framed
from runtime import Reply
from waiting import GENEROUS_S, wait_until

SECONDS = float(os.environ.get("SHIM_SOAK_SECONDS", 75))
SEED = int(os.environ.get("SHIM_SOAK_SEED", 1))
GPU = "vendor.com/gpu"
DEVICES = [f"g{number}" for number in range(8)]
CREATE = RUNTIME + "CreateContainer"
STOP_S = 15  # SIGTERM to the end, with no client left
SAMPLE_S = 0.25
CALL_S = GENEROUS_S
BIG_BYTES_MAX = 3 * MIB

_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}  # runtimes restart in mid-call
# How a call may end besides OK, by what it is. None takes so long that its deadline passes.
MAY = {
    "relayed": _LOST,
    "create": _LOST,
    "create with devices": _LOST | {grpc.StatusCode.RESOURCE_EXHAUSTED},
    "removal": _LOST,
    "call given up": _LOST | {grpc.StatusCode.DEADLINE_EXCEEDED},
    "create given up": _LOST | {grpc.StatusCode.DEADLINE_EXCEEDED,
                                grpc.StatusCode.RESOURCE_EXHAUSTED},
}


class GoneAway(ConnectionError):
    """The runtime is about to end the connection; python3-h2 takes nothing after its GOAWAY."""


class Breakable(Connection):
    """`bytes_max`: of an answer, so that it comes in some hundred frames at most, for Python's sake."""

    def __init__(self, path):
        self._frames = FrameReader(TO_CLIENT)
        self.bytes_max = BIG_BYTES_MAX
        super().__init__(path)

    def take(self, data):
        if any(frame.type == GOAWAY for frame in self._frames.feed(data)):
            raise GoneAway
        super().take(data)

    def set_window(self, size):
        self.set(INITIAL_WINDOW_SIZE=size)
        self.bytes_max = min(300 * size, BIG_BYTES_MAX)


class Soak:
    """The workers, each with choices of its own; start() and finish() them."""

    def __init__(self, shim, runtime, plugin):
        self._shim, self._runtime, self._plugin = shim, runtime, plugin
        self._over = threading.Event()
        self._threads = []
        self._errors = []
        self.counts = {}

    def start(self):
        work = [self._grpc_worker] * 8 + [self._raw_worker] * 2 + [
            self._plugin_worker, self._runtime_worker]
        for number, worker in enumerate(work):
            thread = threading.Thread(target=self._run, daemon=True,
                                      args=(worker, random.Random(SEED + number)))
            self._threads.append(thread)
            thread.start()

    def running(self):
        return not self._errors

    def finish(self):
        self._over.set()
        for thread in self._threads:
            thread.join(2 * GENEROUS_S)
        assert not any(thread.is_alive() for thread in self._threads), "a call never ended"
        assert not self._errors, self._errors

    def _run(self, worker, rng):
        try:
            worker(rng)
        except Exception as error:  # whatever it is, the test reports it
            self._errors.append(f"{worker.__name__}: {error!r}")
            raise

    def _count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    # ---- a client on python3-grpcio ----

    def _grpc_worker(self, rng):
        while not self._over.is_set():
            with Client(self._shim.socket, timeout_s=CALL_S) as client:
                for _ in range(rng.randrange(1, 40)):
                    if self._over.is_set():
                        break
                    rng.choice((self._echo, self._big, self._pod, self._give_up))(client, rng)

    def _expect(self, what, error):
        """Errors that must not happen end the soak."""
        lost = error.code() is grpc.StatusCode.UNKNOWN and "Stream removed" in error.details()
        assert lost or error.code() in MAY[what], f"{what}: {error.code()}: {error.details()}"
        self._count(f"{what}: {error.code().name}")

    def _echo(self, client, rng):
        message = rng.randbytes(rng.choice((0, 10, 1000, 200_000)))
        compression = rng.choice((grpc.Compression.NoCompression, grpc.Compression.Gzip))
        try:
            answer, _ = client.unary("/x/Echo", message, compression=compression)
        except grpc.RpcError as error:
            self._expect("relayed", error)
        else:
            assert answer == message
            self._count("echo")

    def _big(self, client, rng):
        size = rng.choice((1, 5)) * rng.randrange(MIB)
        try:
            answer, _ = client.unary("/x/Big", b"%d" % size)
        except grpc.RpcError as error:
            self._expect("relayed", error)
        else:
            assert answer == bytes(size)
            self._count("big")

    def _pod(self, client, rng):
        """The life of a pod, with or without a device; the create may be held or compressed."""
        wanted = rng.choice((0, 1, 1, 3))
        try:
            pod = client.run_pod(f"pod-{rng.randrange(1 << 40)}", annotations=by_annotation(
                "app", f"{GPU}={wanted}") if wanted else None)
        except grpc.RpcError as error:
            self._expect("relayed", error)
            return
        what = "create with devices" if wanted else "create"
        try:
            request = client.create_request(pod, "app", ["x" * rng.choice((1, 50_000))])
            client.unary(CREATE, request.SerializeToString(), compression=rng.choice(
                (grpc.Compression.NoCompression, grpc.Compression.Gzip)))
            self._count(what)
        except grpc.RpcError as error:
            self._expect(what, error)
        finally:
            self._remove(client, pod)

    def _remove(self, client, pod):
        """As the kubelet does: again until it is gone, so that its devices are free."""
        def removed():
            try:
                client.remove_pod(pod.id)
                return True
            except grpc.RpcError as error:
                self._expect("removal", error)
                return False

        wait_until(removed, "the pod is removed")

    def _give_up(self, client, rng):
        """A held create, or a relayed call, that its caller cancels or whose deadline passes."""
        what = rng.choice(("call given up", "create given up"))
        if what == "call given up":
            call = client.channel.unary_unary("/x/Big").future(
                b"5000000", timeout=rng.random() * 0.05)
        else:
            try:
                pod = client.run_pod("given-up", annotations=by_annotation("app", f"{GPU}=20"))
                request = client.create_request(pod, "app").SerializeToString()
            except grpc.RpcError as error:
                self._expect("relayed", error)
                return
            call = client.channel.unary_unary(CREATE).future(request, timeout=rng.random())
        self._over.wait(rng.random() * 0.02)
        if rng.random() < 0.5:
            call.cancel()
        try:
            call.result()
        except grpc.FutureCancelledError:
            self._count("cancelled")
        except grpc.RpcError as error:
            self._expect(what, error)

    # ---- a client that breaks off anywhere ----

    def _raw_worker(self, rng):
        while not self._over.is_set():
            try:
                with Breakable(self._shim.socket) as connection:
                    for _ in range(rng.randrange(1, 30)):
                        if not self._over.is_set():
                            self._raw_call(connection, rng)
            except h2.exceptions.StreamClosedError:
                self._count("answered before it was asked")
            except ConnectionError:
                self._count("connection lost")
                self._over.wait(0.01)  # the runtime may be away: do not try like mad

    def _raw_call(self, connection, rng):
        path = rng.choice((CREATE, RUNTIME + "RunPodSandbox", "/x/Echo", "/x/Big"))
        body = framed(b"%d" % rng.randrange(connection.bytes_max) if path == "/x/Big" else
                      b"\xff" * rng.choice((0, 20, 100_000)))  # no protobuf message
        stream = connection.begin(path)
        cut = rng.choice((0, 3, len(body) // 2, len(body)))
        connection.send(stream, body[:cut], end_stream=False,
                        frame_bytes_max=rng.choice((5, 1000, 16384)) if cut < 10_000 else None)
        if rng.random() < 0.4:
            connection.reset(stream)
            self._count("reset")
        elif rng.random() < 0.1:
            raise ConnectionError("enough of it")
        else:
            connection.send(stream, body[cut:])
            connection.wait_end(stream)
            self._count("raw call")
        if rng.random() < 0.1:
            # not HEADER_TABLE_SIZE: grpc's C core, as a runtime, forgets to signal it now and then
            connection.set_window(rng.choice((100, 65535, MIB)))

    # ---- the plugin and the runtime ----

    def _plugin_worker(self, rng):
        while not self._over.wait(rng.random()):
            self._plugin.start()
            for _ in range(rng.randrange(4)):
                if self._over.wait(rng.random() * 0.25):
                    break
                self._plugin.set_devices({one: rng.random() < 0.8 for one in DEVICES})
            self._over.wait(rng.random() * 0.5)
            self._plugin.stop()
            self._count("plugin gone")

    def _runtime_worker(self, rng):
        while not self._over.wait(1.5 + rng.random() * 2.5):
            self._runtime.stop()
            self._over.wait(rng.random() * 0.15)
            self._runtime.start()
            del self._runtime.calls[:]
            self._count("runtime restart")


class Truth:
    """Which container has which device, as the runtime knows it. `wrong`: what must not be."""

    def __init__(self, runtime):
        self._state = runtime.state
        self._ids = {}  # of containers that were made, by their id
        self._lock = threading.Lock()
        self.wrong = []
        self.most = 0   # devices in use at a time
        runtime.on("CreateContainer", self._created)

    def _created(self, call):
        with self._lock:
            reply = self._state.answer(call)
            if reply.code is grpc.StatusCode.OK:
                self._look(call.parsed(), cri.CreateContainerResponse.FromString(
                    reply.messages[0]).container_id)
        return reply

    def _look(self, request, container_id):
        given = envs(request.config).get("PLUGIN_DEVICES")
        ids = set(given.split(",")) if given else set()
        asked = dict(request.sandbox_config.annotations)
        wanted = int(next(iter(asked.values())).partition("=")[2]) if asked else 0
        where = request.sandbox_config.metadata.name
        if len(ids) != wanted:
            self.wrong.append(f"{where} asks for {wanted} devices and has {ids}")
        # What was just removed is not in the way, whatever is done to it meanwhile.
        alive = {key for key, one in list(self._state.containers.items())
                 if one.state != cri.CONTAINER_EXITED}
        self._ids = {key: held for key, held in self._ids.items() if key in alive}
        for held in self._ids.values():
            if held & ids:
                self.wrong.append(f"{where} has {ids}, another container {held}")
        self._ids[container_id] = ids
        self.most = max(self.most, sum(map(len, self._ids.values())))


def _sample(pid, soak, seconds):
    """The daemon's memory over the time, as (first half's, second half's) median: a peak is how many
    large answers were under way at once, by chance, and what is lost for good raises both."""
    medians = []
    for _ in range(2):
        end, sizes = time.monotonic() + seconds / 2, [rss_bytes(pid)]
        while time.monotonic() < end and soak.running():
            sizes.append(rss_bytes(pid))
            time.sleep(SAMPLE_S)  # the distance of samples, nothing waits for it
        medians.append(statistics.median(sizes))
    return medians


def test_soak(runtime, small_quarantine, make_shim, make_plugin):
    """After the soak: no live call, no file, no memory is left over; SIGTERM ends it in time."""
    print(f"SHIM_SOAK_SECONDS={SECONDS} SHIM_SOAK_SEED={SEED}")
    runtime.on("Big", lambda call: Reply((bytes(int(call.request or b"0")),)))
    shim = make_shim(plugins={"hold": "400ms", "grace": "1m"}, top={"log_level": "warning"})
    plugin = make_plugin(shim, GPU, DEVICES)
    with Client(shim.socket) as client:  # from now on the resource is known
        pod = client.run_pod("first", annotations=by_annotation("app", f"{GPU}=1"))
        wait_until(lambda: outcome(client, CREATE, client.create_request(
            pod, "app").SerializeToString())[1] is grpc.StatusCode.OK, "the plugin is there")
        client.remove_pod(pod.id)
    plugin.stop()
    wait_until(lambda: plugin.stream_count() == 0, "the plugin's stream has ended")
    before = _settled_files(shim.pid)
    truth = Truth(runtime)
    soak = Soak(shim, runtime, plugin)
    soak.start()
    first, second = _sample(shim.pid, soak, SECONDS)
    soak.finish()
    assert not truth.wrong, truth.wrong[:10]
    assert truth.most > 1, "no two devices were ever in use"
    print(soak.counts, f"{first / MIB:.1f} MiB, then {second / MIB:.1f} MiB")
    gc.collect()  # a client's socket may still hang in the traceback of an error that ended it
    try:
        wait_until(lambda: not _left_over(shim, before), "all connections are closed")
    finally:
        print("open more than before:", _left_over(shim, before), "before:", before)
    assert second < 1.25 * first + 16 * MIB, (first, second)
    with Client(shim.socket) as client:
        client.wait_ready()
        assert client.unary("/x/Echo", b"still there")[0] == b"still there"
    started = time.monotonic()
    shim.stop()
    assert time.monotonic() - started < STOP_S
    seen = {"echo", "big", "create", "create with devices", "cancelled", "reset", "raw call",
            "plugin gone"} & set(soak.counts)
    assert len(seen) == 8, f"too short a soak: only {seen}"


def _files(pid):
    """How many files of each kind are open: a socket's kind is its path, if it has one."""
    return collections.Counter(re.sub(r"\[\d+\]", "", link) for link in open_files(pid).values())


def _left_over(shim, before):
    """What is open that was not before, but for connections that are their client's to close: gRPC's C
    core keeps one now and then, long after its channel was closed. Each has one to the runtime."""
    kept = unix_clients(shim.pid, shim.socket)
    clients = collections.Counter({"socket:": kept, f"socket: {shim.socket}": kept})
    return _files(shim.pid) - before - clients


def _settled_files(pid):
    """What is open once nothing but the daemon's own is: the same for a second."""
    seen = []

    def settled():
        seen.append(_files(pid))
        return len(seen) > 100 and all(one == seen[-1] for one in seen[-100:])

    wait_until(settled, "the daemon's files are settled")
    return seen[-1]
