"""Calls under way while the daemon is killed, under a service manager that keeps descriptors: they
end as if nothing had been, each done once at the runtime, none cancelled there."""

import concurrent.futures
import os
import random
import signal
import stat
import threading
import time

import grpc
import pytest

from asking import by_token, envs, refused
from ctl import ctl_json
from h2runtime import H2Runtime
from kept_shim import kept_shim
from protos import cri
from rawh2 import Connection, framed
from runtime import Reply
from slow import Slow
from supervisor import Supervisor
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"


@pytest.fixture
def make_kept(directory, runtime_socket, manager, closing):
    def make(**settings):
        shim = closing(kept_shim(manager)(directory, runtime_socket, **settings))
        shim.start()
        return shim

    return make


def relayed(manager):
    """Names of the connections that are kept, each of three descriptors."""
    return {name for name in manager.names() if name.startswith("relayed/")}


def memory(manager, name):
    """The descriptor of the journal that is kept under that name."""
    (journal,) = {fd for kept, fd in manager.kept() if kept == name
                  and stat.S_ISREG(os.fstat(fd).st_mode)}
    return journal


def end(shim, number=signal.SIGKILL):
    os.kill(shim.pid, number)
    shim.wait_exit()


def restart(shim, number=signal.SIGKILL):
    end(shim, number)
    shim.start()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("method", ["StartContainer", "RunPodSandbox", "StopPodSandbox"])
def test_a_call_under_way_goes_on(runtime, manager, make_kept, make_client, background, number,
                                  method):
    shim = make_kept(top={"drain": "1h"})
    client = make_client(shim)
    slow = Slow(runtime, method)
    call = background.submit(getattr(client, method))
    assert slow.came.wait(GENEROUS_S)
    wait_until(lambda: len(relayed(manager)) == 1, "only that is kept")
    before = relayed(manager)
    restart(shim, number)
    shim.wait_log("go on")
    slow.release()
    call.result(GENEROUS_S)
    assert len(slow.calls) == 1
    client.Version()  # on the same connection
    assert before <= relayed(manager)


def test_one_that_is_answered_while_nobody_is_there(runtime, make_kept, make_client, background):
    shim = make_kept()
    client = make_client(shim)
    slow = Slow(runtime, "StartContainer")
    call = background.submit(client.StartContainer, container_id="one")
    assert slow.came.wait(GENEROUS_S)
    end(shim)
    slow.release()
    wait_until(slow.calls[0].over.is_set, "the runtime has answered")
    shim.start()
    call.result(GENEROUS_S)
    assert len(slow.calls) == 1


def test_one_that_is_made_while_nobody_is_there(runtime, make_kept, make_client, background):
    shim = make_kept()
    client = make_client(shim)
    client.Version()
    runtime.on("StartContainer", lambda call: Reply())
    end(shim)
    call = background.submit(client.StartContainer, container_id="one")
    fresh = background.submit(make_client(shim).StartContainer, container_id="two")
    shim.start()
    call.result(GENEROUS_S)
    fresh.result(GENEROUS_S)
    assert len(runtime.calls_of("StartContainer")) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_create_that_is_held_is_held_on(runtime, make_kept, make_client, make_plugin, background,
                                          number):
    """Its plugin is away: the next daemon holds it until that is back."""
    shim = make_kept(plugins={"hold": "50s", "grace": "1m"})
    client = make_client(shim)
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    pod = client.run_pod("web")
    client.create(pod, "side", annotations=by_token(GPU, "g1"))  # by now its resource is stored
    plugin.stop()
    call = background.submit(client.create, pod, "main", annotations=by_token(GPU, "g0"))
    shim.wait_log("held: container")
    restart(shim, number)
    shim.wait_log("held: container", 2)
    assert len(runtime.calls_of("CreateContainer")) == 1
    plugin.start()
    call.result(GENEROUS_S)
    assert len(runtime.calls_of("CreateContainer")) == 2
    assert envs(runtime.create_requests()[1].config)["PLUGIN_DEVICES"] == "g0"
    assert "refused" not in shim.log()
    assert "refused" not in {event["kind"] for event in ctl_json(shim, "events")["items"]}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_is_held_for_a_built_in_device_is_held_on(runtime, make_kept, make_client, background, directory,
                                                       number):
    """The next daemon knows which there are before it decides."""
    node = directory / "tty0"
    shim = make_kept(plugins={"hold": "50s"}, devices=[{"resource": "local.dev/tty", "path": str(node)}])
    client = make_client(shim)
    call = background.submit(client.create, client.run_pod("web"), "main",
                             annotations=by_token("local.dev/tty", "tty0"))
    shim.wait_log("held: container")
    restart(shim, number)
    shim.wait_log("held: container", 2)
    node.symlink_to("/dev/null")
    call.result(GENEROUS_S)
    assert len(runtime.calls_of("CreateContainer")) == 1
    assert "refused" not in shim.log()


def test_a_create_at_the_runtime_keeps_its_device(runtime, make_kept, make_client, make_plugin,
                                                  background):
    """No list shows its container before the runtime has made it, which takes longer than the next
    daemon would wait for one that was cancelled."""
    shim = make_kept(plugins={"hold": "50s", "grace": "1m"})
    client = make_client(shim)
    make_plugin(shim, GPU, ["g0"])
    pods = [client.run_pod(name) for name in ("web", "mail")]
    go, came = threading.Event(), threading.Event()
    create = runtime.state.answer

    def slow(call):
        came.set()
        assert go.wait(GENEROUS_S)
        return create(call)

    runtime.on("CreateContainer", slow)
    first = background.submit(client.create, pods[0], "main", annotations=by_token(GPU, "g0"))
    assert came.wait(GENEROUS_S)
    restart(shim)
    second = background.submit(make_client(shim).create, pods[1], "main",
                               annotations=by_token(GPU, "g0"))
    shim.wait_log("held: container")
    time.sleep(6)  # more than OUTCOME_MS, and a list
    assert not second.done()
    go.set()
    first.result(GENEROUS_S)
    with refused(grpc.StatusCode.UNAVAILABLE, 'held by container "main" of pod "default/web"'):
        second.result(GENEROUS_S)
    assert len(runtime.calls_of("CreateContainer")) == 1


def test_a_stream_of_events_goes_on(runtime, make_kept, make_client):
    more = threading.Event()

    def events(_call):
        yield cri.ContainerEventResponse(container_id="one").SerializeToString()
        assert more.wait(GENEROUS_S)
        yield cri.ContainerEventResponse(container_id="two").SerializeToString()

    shim = make_kept()
    runtime.on("GetContainerEvents", lambda call: Reply(events(call)))
    stream = make_client(shim).events(timeout=GENEROUS_S)
    assert next(stream).container_id == "one"
    restart(shim)
    more.set()
    assert next(stream).container_id == "two"


def test_a_client_that_goes_meanwhile(runtime, manager, make_kept, make_client, background):
    """Its call is cancelled at the runtime, and nothing is kept of it."""
    shim = make_kept()
    over = threading.Event()
    came = threading.Event()

    def slow(call):
        came.set()
        assert call.over.wait(GENEROUS_S)
        over.set()
        return Reply()

    runtime.on("StartContainer", slow)
    client = make_client(shim)
    call = background.submit(client.StartContainer, container_id="one")
    assert came.wait(GENEROUS_S)
    end(shim)
    client.close()
    with pytest.raises((grpc.RpcError, concurrent.futures.CancelledError, ValueError)):
        call.result(GENEROUS_S)
    shim.start()
    assert over.wait(GENEROUS_S)
    wait_until(lambda: not relayed(manager), "nothing is kept")


def test_a_runtime_that_goes_meanwhile(runtime, manager, make_kept, make_client):
    shim = make_kept()
    client = make_client(shim)
    client.Version()
    end(shim)
    runtime.stop()
    shim.start()
    wait_until(lambda: not relayed(manager), "nothing is kept")
    with pytest.raises(grpc.RpcError) as error:
        client.Version()
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    runtime.start()
    client.reconnect()
    client.Version()


def test_deaths_in_a_row_cost_nothing(runtime, manager, make_kept, make_client, background):
    """However soon each comes after the one before it."""
    shim = make_kept()
    client, slow = make_client(shim), Slow(runtime, "StartContainer")
    call = background.submit(client.StartContainer, container_id="one")
    assert slow.came.wait(GENEROUS_S)
    for _ in range(12):
        restart(shim)
    slow.release()
    call.result(GENEROUS_S)
    assert "cannot be gone on with" not in shim.log()


def test_what_cannot_be_read_is_ended(runtime, manager, make_kept, make_client, background):
    """A journal of a format that the next one does not know. Other connections go on."""
    shim = make_kept()
    client, slow = make_client(shim), Slow(runtime, "StartContainer")
    call = background.submit(client.StartContainer, container_id="one")
    assert slow.came.wait(GENEROUS_S)
    (name,) = relayed(manager)
    other = Slow(runtime, "StopContainer")
    kept = background.submit(make_client(shim).StopContainer, container_id="two")
    assert other.came.wait(GENEROUS_S)
    shim.kill()
    os.pwrite(memory(manager, name), bytes(8), 0)
    shim.start()
    with pytest.raises(grpc.RpcError) as error:
        call.result(GENEROUS_S)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    other.release()
    kept.result(GENEROUS_S)
    slow.release()
    shim.wait_log("cannot be gone on with")


def test_closed_connections_are_not_kept(runtime, manager, make_kept, make_client):
    shim = make_kept()
    clients = [make_client(shim) for _ in range(5)]
    for client in clients:
        client.Version()
    wait_until(lambda: len(relayed(manager)) == 5, "all are kept")
    for client in clients:
        client.close()
    wait_until(lambda: not relayed(manager), "nothing is kept")


def test_a_manager_without_a_store(directory, runtime, runtime_socket, closing, make_client,
                                   background):
    """All is as ever: the call is cut."""
    manager = closing(Supervisor(directory, keeps=False))
    shim = closing(kept_shim(manager)(directory, runtime_socket))
    shim.start()
    came, over = threading.Event(), threading.Event()

    def slow(call):
        came.set()
        assert call.over.wait(GENEROUS_S)
        over.set()
        return Reply()

    runtime.on("StartContainer", slow)
    call = background.submit(make_client(shim).StartContainer, container_id="one")
    assert came.wait(GENEROUS_S)
    restart(shim)
    with pytest.raises(grpc.RpcError) as error:
        call.result(GENEROUS_S)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    assert over.wait(GENEROUS_S)


def test_a_manager_that_promises_nothing(directory, runtime, runtime_socket, closing, make_client,
                                         background, monkeypatch):
    """It may keep nothing: told to stop the daemon waits for the call's end."""
    manager = closing(Supervisor(directory, keeps=False))
    shim = closing(kept_shim(manager)(directory, runtime_socket, top={"drain": "1h"}))
    shim.start()
    slow = Slow(runtime, "StartContainer")
    call = background.submit(make_client(shim).StartContainer, container_id="one")
    assert slow.came.wait(GENEROUS_S)
    os.kill(shim.pid, signal.SIGTERM)
    shim.wait_log("stopping")
    slow.release()
    call.result(GENEROUS_S)
    assert shim.wait_exit() == 0


# ---- at any moment ----


@pytest.fixture
def echoes(runtime_socket, closing):
    one = closing(H2Runtime(runtime_socket))
    one.start()
    return one


def begun(shim):
    """A connection that a call came back on. (One that is not accepted yet ends with the socket.)"""
    connection = Connection(shim.socket)
    connection.wait_end(connection.call("/x/Echo", framed(b"")))
    return connection


def exchange(connection, seed, over):
    """Calls of all sizes on one connection until `over`: each comes back as it was sent. How many
    there were, with the one that it began with."""
    draw, count = random.Random(seed), 1
    with connection:
        while not over.is_set():
            streams = {}
            for _ in range(draw.randrange(1, 5)):
                body = framed(draw.randbytes(draw.choice((0, 10, 1000, 30_000, 300_000))))
                streams[connection.call("/x/Echo", body)] = body
            size = draw.choice((1, 20_000, 1_000_000))
            large = connection.call(f"/x/Bytes{size}", framed(b""))
            for stream, body in streams.items():
                answer = connection.wait_end(stream)
                assert answer.status == 0 and answer.body == body
            answer = connection.wait_end(large)
            assert answer.status == 0 and len(answer.body) == size + 5
            count += 1 + len(streams)
    return count


def test_killed_under_load(echoes, directory, runtime_socket, manager, closing, background):
    """At random moments; connections of each round are of that round, so that none is killed twice
    within its time."""
    seed = int(os.environ.get("RELAY_SEED", random.randrange(1 << 32)))
    rounds = int(os.environ.get("RELAY_ROUNDS", 25))
    print(f"RELAY_SEED={seed}")
    draw, total = random.Random(seed), 0
    shim = closing(kept_shim(manager)(directory, runtime_socket))
    shim.start()
    for number in range(rounds):
        over = threading.Event()
        calls = [background.submit(exchange, begun(shim), draw.random(), over) for _ in range(3)]
        time.sleep(draw.uniform(0.01, 0.25))
        end(shim, draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        shim.start()
        over.set()
        total += sum(call.result(GENEROUS_S) for call in calls)
    echoed = [call for call in echoes.calls if call.method == "Echo" or "Bytes" in call.method]
    assert len(echoed) == total
    assert all(call.end == "end" for call in echoed)
    assert "cannot be gone on with" not in shim.log()
    assert shim.log().count("go on") >= rounds
