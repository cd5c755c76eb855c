"""What outlives a crash of the shim, and what it makes of a damaged state."""

import contextlib
import os
import sqlite3
import stat

import grpc
import pytest

from asking import by_annotation, by_token, envs, outcome, refused
from plugin import PluginProcess
from protos import RUNTIME
from runtime import Reply
from shim import accepts
from waiting import wait_until

GPU = "vendor.com/gpu"


def given(runtime):
    return envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"]


def request_of(client, name):
    return client.run_pod(name, annotations=by_annotation("app", f"{GPU}=1"))


def test_cached_options_after_kill(runtime, shim, client, make_plugin):
    """kill -9 between creates: the container's cached options are used, the plugin sees no second
    Allocate, and no device is given twice."""
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    pod = request_of(client, "web")
    first = client.run(pod, "app")
    before = given(runtime)
    shim.kill()
    shim.start()
    client.reconnect()
    client.StopContainer(container_id=first)
    client.create(pod, "app", attempt=1)
    assert given(runtime) == before and len(plugin.allocated()) == 1
    client.create(request_of(client, "other"), "app")
    assert {before, given(runtime)} == {"g0", "g1"}
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, GPU):
        client.create(request_of(client, "third"), "app")


def test_kill_after_each_create(runtime, shim, client, make_plugin):
    """kill -9 after each of ten creates: every device is given once."""
    make_plugin(shim, GPU, [f"g{number}" for number in range(10)])
    seen = []
    for number in range(10):
        client.run(request_of(client, f"web{number}"), "app")
        seen.append(given(runtime))
        shim.kill()
        shim.start()
        client.reconnect()
    assert len(set(seen)) == 10


def test_kill_while_held(runtime, make_shim, make_plugin, make_client):
    """kill -9 while a create is held: the client sees UNAVAILABLE, the runtime saw nothing, and its
    next try succeeds."""
    shim = make_shim(plugins={"hold": "60s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    client.create(request_of(client, "warm"), "app")
    client.remove_all_pods()
    created = len(runtime.calls_of("CreateContainer"))
    plugin.stop()
    request = client.create_request(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    waiting = client.begin("CreateContainer", request)
    client.Version()
    shim.kill()
    assert waiting.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    assert len(runtime.calls_of("CreateContainer")) == created
    shim.start()
    client.reconnect()
    plugin.start()
    client.CreateContainer(request)
    assert given(runtime) == "g0"


def test_plugin_still_serves(runtime, shim, client, make_plugin):
    """A plugin that went on serving is active again after a restart without registering anew."""
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.wait_calls("ListAndWatch")
    client.create(request_of(client, "warm"), "app")
    client.remove_all_pods()
    shim.kill()
    shim.start()
    plugin.wait_calls("ListAndWatch", 2)
    client.reconnect()
    client.create(request_of(client, "web"), "app")
    assert given(runtime) == "g0"


def test_resource_comes_back_in_grace(runtime, shim, client, closing):
    """After a restart a resource whose plugin is gone is in grace: refused for now, not unknown."""
    plugin = closing(PluginProcess(shim.plugin_dir, GPU, ["g0"]))
    plugin.start()
    client.create(request_of(client, "warm"), "app")
    client.remove_all_pods()
    plugin.kill()
    shim.kill()
    shim.start()
    client.reconnect()
    pod = request_of(client, "web")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(pod, "app")
    plugin.start()
    client.create(pod, "app")
    assert given(runtime) == "g0"


def test_pods_removed_meanwhile(runtime, shim, client, make_plugin):
    """A pod that went while the shim was down holds its devices no longer."""
    make_plugin(shim, GPU, ["g0"])
    pod = request_of(client, "web")
    client.run(pod, "app")
    shim.kill()
    with runtime.client() as directly:
        directly.remove_pod(pod.id)
    shim.start()
    client.reconnect()
    other = request_of(client, "other")
    wait_until(lambda: _created(client, other), "the device is free again")
    assert given(runtime) == "g0"


def _created(client, pod):
    try:
        return client.create(pod, "app")
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
        return None


def test_runtime_lists_nothing_yet(runtime, shim, client, make_plugin):
    """A runtime that takes calls but does not list yet (containerd says "server is not initialized
    yet"): no pod counts as gone, and the list is asked for again until it comes."""
    make_plugin(shim, GPU, ["g0"])
    pod = request_of(client, "web")
    client.run(pod, "app")
    shim.kill()
    for method in ("ListPodSandbox", "ListContainers"):
        runtime.on(method, lambda call: Reply((), grpc.StatusCode.UNKNOWN, "not initialized yet"))
    asked = len(runtime.calls_of("ListPodSandbox") + runtime.calls_of("ListContainers"))
    shim.start()
    client.reconnect()
    with refused(grpc.StatusCode.UNAVAILABLE, "has not listed"):
        client.create(request_of(client, "other"), "app")
    wait_until(lambda: len(runtime.calls_of("ListPodSandbox")
                           + runtime.calls_of("ListContainers")) > asked + 1, "asked again")
    with runtime.client() as directly:
        directly.remove_pod(pod.id)
    for method in ("ListPodSandbox", "ListContainers"):
        runtime.on(method)
    third = request_of(client, "third")
    wait_until(lambda: _created(client, third), "the device is free again")


def test_stop_and_start(runtime, shim, client, make_plugin):
    """SIGTERM and a new start are no worse than a crash; the sockets are gone in between."""
    plugin = make_plugin(shim, GPU, ["g0"])
    pod = request_of(client, "web")
    first = client.run(pod, "app")
    shim.stop()
    assert not shim.socket.exists() and not (shim.plugin_dir / "kubelet.sock").exists()
    shim.start()
    client.reconnect()
    client.StopContainer(container_id=first)
    client.create(pod, "app", attempt=1)
    assert given(runtime) == "g0" and len(plugin.allocated()) == 1


def database(shim):
    """The checkpoint: the largest file of the state directory."""
    return max((path for path in shim.state_dir.iterdir() if path.is_file()),
               key=lambda path: path.stat().st_size)


DAMAGE = {
    "text": lambda content: b"this is no database\n" * 100,
    "zeros": lambda content: bytes(len(content)),
    "truncated": lambda content: content[:len(content) // 2],
    "header only": lambda content: content[:50],
    "rubbish in the middle": lambda content: content[:4096] + b"\xa5" * 8192 + content[12288:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_checkpoint(runtime, make_shim, make_client, make_plugin, damage):
    """A damaged checkpoint is set aside and reported, and the shim starts and works; what the
    containers' tokens say still holds: no device is given twice. New ones wait for a second list
    of the runtime."""
    shim = make_shim(plugins={"hold": "20s"})
    client = make_client(shim)
    make_plugin(shim, GPU, ["g0", "g1"])
    client.run(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    shim.stop()
    path = database(shim)
    damaged = damage(path.read_bytes())
    for extra in shim.state_dir.glob(f"{path.name}-*"):
        extra.unlink()  # the write-ahead log would mend it
    path.write_bytes(damaged)
    shim.start()
    client.reconnect()
    (aside,) = shim.state_dir.glob(f"{path.name}.damaged-*")
    assert aside.read_bytes() == damaged and str(aside) in shim.log()
    make_plugin(shim, GPU, ["g0", "g1"])
    other = client.run_pod("other")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "g0"):
        client.create(other, "app", annotations=by_token(GPU, "g0"))
    client.create(other, "app", annotations=by_token(GPU, "g1"))
    assert given(runtime) == "g1"


def test_checkpoint_taken_away(runtime, shim, client, make_plugin):
    """The checkpoint is removed while the shim runs: with the next allocation, which is refused for
    once, all there was is written anew, and outlives the shim."""
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    pod, other = client.run_pod("web"), client.run_pod("other")
    first = client.run(pod, "app", annotations=by_token(GPU, "g0"))
    for path in shim.state_dir.glob(f"{database(shim).name}*"):
        path.unlink()
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "was lost, and is written anew"):
        client.create(other, "app", annotations=by_token(GPU, "g1"))
    client.create(other, "app", annotations=by_token(GPU, "g1"))
    shim.kill()
    shim.start()
    client.reconnect()
    client.StopContainer(container_id=first)
    client.create(pod, "app", attempt=1, annotations=by_token(GPU, "g0"))
    assert given(runtime) == "g0"
    assert plugin.allocated() == [["g0"], ["g1"], ["g1"]]


def test_damaged_row(runtime, make_shim, make_client, make_plugin):
    """A damaged row of the checkpoint is dropped and reported; the other rows are kept. What was in
    it is given anew once the runtime was listed again."""
    shim = make_shim(plugins={"hold": "20s"})
    client = make_client(shim)
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    pods = [client.run_pod(name) for name in ("web", "other")]
    containers = [client.run(pod, "app", annotations=by_token(GPU, f"g{number}"))
                  for number, pod in enumerate(pods)]
    shim.stop()
    with contextlib.closing(sqlite3.connect(database(shim))) as connection:
        connection.execute("UPDATE allocations SET value = x'ffff' WHERE pod_uid = ?",
                           (pods[0].uid,))
        connection.commit()
    shim.start()
    client.reconnect()
    assert pods[0].uid in shim.log() and "row" in shim.log()
    for number, pod in enumerate(pods):
        client.StopContainer(container_id=containers[number])
        client.create(pod, "app", attempt=1, annotations=by_token(GPU, f"g{number}"))
        assert given(runtime) == f"g{number}"
    # The options of the damaged row had to be asked for again, those of the other not.
    assert plugin.allocated() == [["g0"], ["g1"], ["g0"]]


def test_stale_sockets_are_replaced(shim, client, runtime):
    """Socket files that a crash left behind are replaced; they are 0600, their folders 0755."""
    shim.kill()
    assert shim.socket.exists() and not accepts(shim.socket)
    shim.start()
    client.reconnect()
    for path in (shim.socket, shim.plugin_dir / "kubelet.sock"):
        status = path.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, 0), path
    assert stat.S_IMODE(shim.plugin_dir.stat().st_mode) == 0o755


def test_state_cannot_be_stored(runtime, make_shim, make_plugin, make_client):
    """A state directory that cannot be one is reported; what needs a new allocation is refused with
    that reason, all else passes, and the file in its place stays as it was."""
    shim = make_shim(start=False, plugins={"hold": "300ms"})
    shim.state_dir.write_text("precious")
    shim.start()
    assert str(shim.state_dir) in shim.log()
    make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    client.create(client.run_pod("plain"), "app")
    with refused(grpc.StatusCode.UNAVAILABLE, GPU, "web", "app", "Not a directory"):
        client.create(request_of(client, "web"), "app")
    assert shim.state_dir.read_text() == "precious"


def _fd_links(pid):
    folder = f"/proc/{pid}/fd"
    return [f"{folder}/{name}" for name in os.listdir(folder)]


def test_no_descriptor_leaks(runtime, shim, make_client, make_plugin):
    """After clients, plugins and a runtime have come and gone, no descriptor more is open."""
    keeper = make_client(shim)
    keeper.Version()
    count = len(_fd_links(shim.pid))
    for number in range(10):
        plugin = make_plugin(shim, GPU, ["g0"])
        client = make_client(shim)
        client.create(request_of(client, f"web{number}"), "app")
        client.remove_all_pods()
        client.close()
        plugin.stop()
    wait_until(lambda: len(_fd_links(shim.pid)) <= count, f"{count} descriptors again")
    runtime.stop()
    runtime.start()
    # Its channel may not have noticed yet that its connection has gone.
    wait_until(lambda: outcome(keeper, f"{RUNTIME}Version")[1] is grpc.StatusCode.OK,
               "the keeper's calls are answered again")
    wait_until(lambda: len(_fd_links(shim.pid)) <= count, f"{count} descriptors again")
