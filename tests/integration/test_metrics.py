"""What those who watch the node are told over HTTP, and that they cost nothing."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import threading
import time

import grpc
import pytest

from asking import by_annotation, by_token, refused
from criclient import pod_config
from ctl import ctl, ctl_json
from feed import Feed
from metrics import get, scrape
from process import MIB, is_sanitized, open_files, rss_bytes
from protos import agent as agent_feed
from protos import cri
from runtime import Reply
from scripted_agent import ScriptedAgent
from shim import Shim, accepts, check_config, locked
from supervisor import supervised
from telling import tell
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
PODS = 10_000


@pytest.fixture
def watched(directory, make_shim):
    """watched(**settings of Shim): a shim with metrics, and where they are."""
    def make(start=True, **settings):
        path = directory / "metrics.sock"
        shim = make_shim(start=start, metrics={"listen": str(path)}, **settings)
        if start:
            wait_until(lambda: accepts(path), "the metrics are served")
        return shim, path

    return make


def test_a_scrape(watched, runtime, make_plugin, make_client):
    shim, path = watched()
    assert os.stat(path).st_mode & 0o777 == 0o600
    make_plugin(shim, GPU, ["g0", "g1"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.run(pod, "app")
    wait_until(lambda: scrape(path)["devices"].total(resource=GPU) == 2, "its devices are there")
    families = scrape(path)
    assert families["devices"].value(resource=GPU, health="healthy") == 2
    assert families["allocations"].value() == 1
    assert families["pods"].value() == 1
    assert families["ready"].value() == 1
    (version,) = families["build_info"].samples
    assert "0." in dict(version[1])["version"]
    assert runtime.create_requests()


def test_the_other_pages(watched):
    shim, path = watched()
    assert get(path, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
    wait_until(lambda: get(path, "/readyz")[0] == 200, "it is ready")
    status, kind, text = get(path, "/status.json")
    assert (status, kind) == (200, "application/json")
    told = json.loads(text)
    assert told["pid"] == shim.pid and told["ready"] and told["not_ready"] is None
    assert get(path, "/healthz", "HEAD") == (200, "text/plain; charset=utf-8", "")
    assert get(path, "/nothing")[0] == 404
    assert get(path, "/metrics", "POST")[0] == 405


def test_what_is_degraded(watched, runtime):
    """Every trouble there is, in the words of `cri-device-shimctl status`; an alert has a sample of
    each part."""
    shim, path = watched()

    def troubles():
        return {one["what"]: one["why"] for one in json.loads(get(path, "/status.json")[2])["degraded"]}

    def samples():
        return {dict(labels)["part"]: value
                for (_, labels), value in scrape(path)["degraded"].samples.items()}

    wait_until(lambda: set(troubles()) == {"bridge"}, "nothing but the bridge is missing")
    assert set(samples()) == {"settings", "relay", "registrar", "feed", "control", "registry", "store", "events",
                              "runtime", "bridge", "cluster", "shutdown"}
    assert [part for part, value in samples().items() if value] == ["bridge"]
    runtime.stop()
    wait_until(lambda: "runtime" in troubles(), "the runtime is away")
    told = {one["what"]: one["why"] for one in ctl_json(shim, "status")["degraded"]}
    assert troubles() == told
    assert samples()["runtime"] == 1
    shim.control.unlink()
    shim.control.mkdir()
    (shim.control / "something").write_text("")
    wait_until(lambda: "not empty" in troubles().get("control", ""), "the control socket is missed")
    assert samples()["control"] == 1


def test_what_is_degraded_in_words_that_are_no_text(watched, directory, closing):
    """What an agent says is not looked at: what is wrong is told all the same."""
    shim, path = watched(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})
    agent = closing(ScriptedAgent(directory / "run" / "agent.sock"))
    agent.start()
    report = agent_feed.ReportRequest(whole=True, state=agent_feed.State(trouble="it says XX"))
    agent.tell_bytes(report.SerializeToString().replace(b"XX", b"\xe2\x82"))
    told = {one["what"]: one["why"] for one in json.loads(get(path, "/status.json")[2])["degraded"]}
    assert told["cluster"] == "it says ??"
    assert scrape(path)["degraded"].value(part="cluster") == 1


def test_not_ready_before_the_checkpoint_is_read(watched, runtime):
    """What serves nothing that needs it says so; that it lives is another matter."""
    shim, path = watched()
    shim.terminate()
    with locked(shim):
        shim.spawn()
        wait_until(lambda: accepts(path) and get(path, "/readyz")[0] == 503, "it is not ready")
        assert "checkpoint" in get(path, "/readyz")[2] or "relay" in get(path, "/readyz")[2]
        assert get(path, "/healthz")[0] == 200
        assert scrape(path)["ready"].value() == 0
    wait_until(lambda: get(path, "/readyz")[0] == 200, "it is ready")
    assert runtime


def test_on_loopback(make_shim):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    make_shim(metrics={"listen": f"127.0.0.1:{port}"})

    def health():
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as one:
            one.request("GET", "/healthz")
            return one.getresponse().read()

    def answers():
        with contextlib.suppress(ConnectionError):
            return health() == b"ok\n"
        return False

    wait_until(answers, "it answers on loopback")


@pytest.mark.parametrize("address", ["0.0.0.0:9100", "9100", ":9100", "localhost:9100", "[::]:9100",
                                     "10.0.0.1:9100", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1",
                                     "128.0.0.1:80", "[::1]", "[::1]:", "[::ffff:127.0.0.1]:80",
                                     "m.sock", "/" + "x" * 107, "127.0.0.1:09100"])
def test_only_this_node_is_told(directory, address):
    status, words = check_config(f'[metrics]\nlisten = "{address}"\n', directory)
    assert status == 1 and ":2:10: listen is" in words and "a loopback address" in words


def test_the_socket_of_another(directory):
    status, words = check_config('listen = "/run/x.sock"\n[metrics]\nlisten = "/run//x.sock"\n',
                                 directory)
    assert status == 1 and ":3:10: listen and metrics.listen are the same socket" in words


def test_the_file_is_made_again(watched):
    _, path = watched()
    path.unlink()
    wait_until(lambda: accepts(path), "it is made again")
    assert get(path, "/healthz")[0] == 200


def test_off_as_before(make_shim):
    """Nothing of the HTTP library is in a daemon that does not need it."""
    shim = make_shim()
    with open(f"/proc/{shim.pid}/maps", encoding="utf-8") as maps:
        text = maps.read()
    assert "libmicrohttpd" not in text and "libgnutls" not in text


def test_calls(watched, runtime, make_plugin, make_client):
    """Each is counted once, by method, class and end, with its time; so are their bytes."""
    shim, path = watched(plugins={"hold": "0s"})
    make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    for _ in range(7):
        client.Version()
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.run(pod, "app")
    for number in range(3):
        other = client.run_pod(f"late-{number}")
        with refused(grpc.StatusCode.UNAVAILABLE, "g0"):
            client.create(other, "app", annotations=by_token(GPU, "g0"))
    with pytest.raises(grpc.RpcError):
        client.ContainerStatus(container_id="nothing")

    families = scrape(path)
    calls = families["calls_total"]
    assert calls.value(method="Version", code="OK", **{"class": "relayed"}) == 7
    assert calls.value(method="RunPodSandbox", code="OK", **{"class": "observed"}) == 4
    create = {"method": "CreateContainer", "class": "intercepted"}
    assert calls.value(code="OK", **create) == 1
    assert calls.value(code="UNAVAILABLE", **create) == 3
    assert calls.value(method="other", code="NOT_FOUND", **{"class": "relayed"}) == 1
    begun = families["calls_begun_total"]
    assert begun.value(**create) == 4
    times = families["call_duration_seconds"]
    assert times.value("_count", **create) == 4
    assert times.value("_sum", **create) > 0
    assert families["create_decision_seconds"].value("_count", outcome="forwarded") == 1
    assert families["create_decision_seconds"].value("_count", outcome="refused") == 3
    assert families["create_held_seconds"].value("_count", outcome="forwarded") == 0
    refusals = families["refusals_total"]
    assert refusals.total(code="UNAVAILABLE") == refusals.total() == 3
    assert sum(refusals.total(reason=f"holder-{what}") for what in ("runs", "asked")) == 3
    for to in ("client", "runtime"):
        assert families["relayed_bytes_total"].value(to=to) > 1000
    assert families["devices_held"].value(resource=GPU) == 1
    assert families["endpoints"].value(state="active") == 1
    assert families["allocates_total"].value(code="OK") == 1
    assert families["allocate_duration_seconds"].value("_count") == 1
    assert families["commit_duration_seconds"].value("_count") >= 1
    assert families["commits_failed_total"].value() == 0
    assert families["registrations_total"].value(code="OK") == 1
    assert families["connections"].value() == 1
    assert families["runtime_reachable"].value() == 1
    assert 0 < families["uptime_seconds"].value() < 600
    assert families["feed_connected"].value() == 0
    assert len(runtime.calls_of("Version")) >= 7


def test_a_call_that_its_client_gives_up(watched, runtime, make_client):
    shim, path = watched()
    client = make_client(shim)
    runtime.on("Version", lambda call: call.over.wait() and Reply())
    with pytest.raises(grpc.RpcError):
        client.Version(timeout=0.2)
    wait_until(lambda: scrape(path)["calls_total"].total(method="Version") == 1, "it has ended")
    calls = scrape(path)["calls_total"]  # the runtime has the deadline, too
    assert 1 == sum(calls.total(method="Version", code=code)
                    for code in ("CANCELLED", "DEADLINE_EXCEEDED"))


def test_a_scrape_under_load(watched, runtime, make_plugin, make_client):
    """Every scrape holds together: each family is as it should be, no count goes back, each call is
    open or over, and all are over at the end."""
    shim, path = watched(plugins={"hold": "100ms"})
    plugin = make_plugin(shim, GPU, ["g0"])
    stop = threading.Event()

    def calls(number):
        client = make_client(shim)
        while not stop.is_set():
            pod = client.run_pod(f"web-{number}")
            with contextlib.suppress(grpc.RpcError):
                client.run(pod, "app", annotations=by_token(GPU, "g0"))
            client.remove_pod(pod.id)

    def world():
        while not stop.is_set():
            plugin.set_devices({"g0": False})
            plugin.set_devices({"g0": True})

    with concurrent.futures.ThreadPoolExecutor() as pool:
        busy = [pool.submit(calls, number) for number in range(8)] + [pool.submit(world)]
        try:
            before, seen = {}, 0
            while seen < 2000 or before["refusals_total"].total() == 0:
                families = scrape(path)
                for name, family in before.items():
                    for key, value in family.samples.items():
                        assert family.kind == "gauge" or families[name].samples[key] >= value, key
                for _, labels in families["calls_begun_total"].samples:
                    labels = dict(labels)
                    assert families["calls_begun_total"].value(**labels) == families[
                        "calls_open"].value(**labels) + families["calls_total"].total(**labels)
                before, seen = families, families["calls_total"].total()
        finally:
            stop.set()
        for one in busy:
            one.result()
    assert scrape(path)["calls_open"].total() == 0
    assert scrape(path)["calls_untimed_total"].value() == 0
    assert runtime


def test_what_clients_leave_waiting(watched, make_plugin, closing):
    shim, path = watched()
    assert scrape(path)["queue_peak_bytes"].total() == 0
    assert ctl(shim, "status").returncode == 0
    peaks = scrape(path)["queue_peak_bytes"]
    assert peaks.value(queue="feed") == 0
    before = peaks.value(queue="control")
    assert 100 < before < 4096
    make_plugin(shim, GPU, [f"GPU-{number:036d}" for number in range(500)])
    wait_until(lambda: ctl(shim, "devices").stdout.count("\n") == 501, "they are listed")
    assert scrape(path)["queue_peak_bytes"].value(queue="control") > 500 * 36
    closing(closing(Feed(shim.feed)).watch()).wait(lambda shown: GPU in shown)
    assert scrape(path)["queue_peak_bytes"].value(queue="feed") > 500 * 36


def test_held_creates_and_a_plugin_away(watched, runtime, make_plugin, make_client):
    shim, path = watched(plugins={"hold": "60s"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    wait_until(lambda: scrape(path)["devices"].total(resource=GPU, health="healthy") == 1, "listed")
    plugin.stop()
    wait_until(lambda: scrape(path)["endpoints"].value(state="grace") == 1, "it is away")
    assert scrape(path)["devices"].total(resource=GPU, health="unhealthy") == 1
    pod = client.run_pod("web")
    asked = client.begin("CreateContainer",
                         client.create_request(pod, "app", annotations=by_token(GPU, "g0")))
    wait_until(lambda: scrape(path)["creates_held"].value() == 1, "it is held")
    asked.cancel()
    wait_until(lambda: scrape(path)["creates_held"].value() == 0, "it is not any more")
    assert not runtime.create_requests()
    asked = client.begin("CreateContainer",
                         client.create_request(pod, "app", annotations=by_token(GPU, "g0")))
    wait_until(lambda: scrape(path)["creates_held"].value() == 1, "another is held")
    time.sleep(0.3)
    plugin.start()
    asked.result()
    held = scrape(path)["create_held_seconds"]
    assert held.value("_count", outcome="forwarded") == 1
    assert 0.3 <= held.value("_sum", outcome="forwarded") < 60
    assert held.value("_count", outcome="refused") == 0


def test_a_commit_that_fails(watched, runtime, make_plugin, make_client):
    shim, path = watched(plugins={"hold": "0s"})
    make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    wait_until(lambda: scrape(path)["devices"].total(resource=GPU) == 1, "listed")
    ctl(shim, "checkpoint", "verify")  # behind what is being stored, which has the files open
    (shim.state_dir / "checkpoint.db").unlink()
    (shim.state_dir / "checkpoint.db-wal").unlink()
    with contextlib.suppress(grpc.RpcError):
        client.create(pod, "app")
    wait_until(lambda: scrape(path)["commits_failed_total"].value() >= 1, "it has failed")
    assert runtime


def test_connections_that_go_on_are_counted(directory, runtime, runtime_socket, manager, closing):
    path = directory / "metrics.sock"
    shim = closing(supervised(Shim, manager)(directory, runtime_socket,
                                             metrics={"listen": str(path)}))
    shim.start()
    client = closing(shim.client())
    client.Version()
    shim.kill()
    shim.start()
    client.Version()
    wait_until(lambda: accepts(path), "the metrics are served")
    assert scrape(path)["connections_resumed_total"].value() == 1
    assert scrape(path)["calls_total"].total(method="Version", code="OK") == 1
    assert len(runtime.calls_of("Version")) >= 2


def test_what_an_operator_keeps_back_is_no_fault(watched, runtime, make_plugin):
    """It is healthy, and counted besides."""
    shim, path = watched()
    make_plugin(shim, GPU, ["g0", "g1", "g2"])
    wait_until(lambda: scrape(path)["devices"].total() == 3, "listed")
    for words, kept_back in ((("cordon", GPU, "g0", "g9"), 1), (("withdraw", GPU), 3),
                             (("withdraw", GPU, "--undo"), 1), (("uncordon", GPU, "g0"), 0)):
        ctl_json(shim, *words)
        families = scrape(path)
        assert families["devices_kept_back"].value(resource=GPU) == kept_back
        assert families["devices"].value(resource=GPU, health="healthy") == 3


def test_labels_are_bounded(watched, runtime, make_plugin, make_client):
    """However many pods there are, and whatever they are called; of resources the first 64 by name."""
    shim, path = watched()
    make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    client.run_pod("first")

    def labels():
        return {key for family in scrape(path).values() for key in family.samples}

    wait_until(lambda: scrape(path)["devices"].total() == 1, "listed")
    before = labels()
    for start in range(0, PODS, 500):
        begun = [client.begin("RunPodSandbox",
                              cri.RunPodSandboxRequest(config=pod_config(f"pod-{n}")))
                 for n in range(start, min(start + 500, PODS))]
        for one in begun:
            one.result()
    assert scrape(path)["pods"].value() == PODS + 1
    assert labels() == before
    for number in reversed(range(80)):
        make_plugin(shim, f"vendor-{number:02}.com/x", ["d"])
    wait_until(lambda: scrape(path)["endpoints"].value(state="active") == 81, "all are there")
    families = scrape(path)
    first = sorted(f"vendor-{number:02}.com/x" for number in range(64))
    for name in ("devices_held", "devices_kept_back"):
        assert sorted(dict(found)["resource"] for _, found in families[name].samples) == first
    assert sorted(dict(found)["resource"] for _, found in families["devices"].samples) == sorted(first * 2)
    assert runtime


# ---- who scrapes ----

def test_those_who_are_slow_or_send_garbage(watched, runtime, make_client):
    """Connections and memory are bounded, the relay goes on, and the next one is answered."""
    shim, path = watched()
    client = make_client(shim)
    client.Version()
    with contextlib.ExitStack() as stack:
        peers = []
        for number in range(100):
            peer = stack.enter_context(socket.socket(socket.AF_UNIX))
            peer.setblocking(False)
            try:
                peer.connect(str(path))
            except BlockingIOError:
                break  # the backlog is full
            peers.append(peer)
            with contextlib.suppress(OSError):
                peer.send((b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20, b"G", b"\0\xff" * 3000,
                           b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 2000)[number % 4])
        assert len(peers) > 8
        for _ in range(20):
            client.Version()
        if not is_sanitized(shim.pid):
            assert rss_bytes(shim.pid) < 12 * MIB
        assert sum("socket" in link for link in open_files(shim.pid).values()) < 30
    wait_until(lambda: get(path, "/healthz")[0] == 200, "the next one is answered")
    assert runtime.calls_of("Version")


def test_without_a_descriptor_left_it_waits(watched):
    """It does not try to take who comes without a pause, and takes him when it can."""
    def sleeps():
        status = pathlib.Path(f"/proc/{shim.pid}/status").read_text()
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)[1])

    shim, path = watched()
    wait_until(lambda: get(path, "/healthz")[0] == 200, "it serves")
    limits = resource.prlimit(shim.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(shim.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waits = pool.submit(get, path, "/healthz")
        before = sleeps()
        try:
            wait_until(lambda: sleeps() >= before + 20, "it has slept")
            assert not waits.done()
        finally:
            resource.prlimit(shim.pid, resource.RLIMIT_NOFILE, limits)
        assert waits.result(GENEROUS_S)[0] == 200


def test_as_many_as_there_may_be_who_say_nothing(watched):
    """When their time is over all together, the daemon listens again, though nobody has said a word."""
    shim, path = watched()
    assert get(path, "/healthz")[0] == 200  # and no connection waits that was there before
    silent = [socket.socket(socket.AF_UNIX) for _ in range(8)]  # HTTP_CONNECTIONS_MAX
    os.kill(shim.pid, signal.SIGSTOP)  # so that it takes them, and ends them, at one time
    for one in silent:
        one.settimeout(GENEROUS_S)
        one.connect(str(path))
    os.kill(shim.pid, signal.SIGCONT)
    for one in silent:
        assert one.recv(1) == b""
        one.close()
    assert get(path, "/healthz")[0] == 200


def test_a_crowd_that_says_nothing(watched):
    """Who comes behind it is answered while he still waits: get() does for 30 s."""
    _, path = watched()
    with contextlib.ExitStack() as stack:
        for _ in range(64):
            stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
        assert get(path, "/healthz")[0] == 200


def test_as_many_as_there_may_be_who_never_end(watched):
    """Who sends a little now and then keeps his place until others want it."""
    _, path = watched()
    over = threading.Event()

    def drip(one):
        with contextlib.suppress(OSError):  # it is ended
            one.sendall(b"GET / HTTP/1.1\r\n")
            while not over.wait(0.5):
                one.sendall(b"X: y\r\n")

    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(8)]  # HTTP_CONNECTIONS_MAX
        for one in slow:
            one.connect(str(path))
        with concurrent.futures.ThreadPoolExecutor(len(slow)) as pool:
            for one in slow:
                pool.submit(drip, one)
            try:
                for _ in range(3):
                    assert get(path, "/healthz")[0] == 200
            finally:
                over.set()


@pytest.mark.release
def test_memory(request, watched, runtime, make_plugin, make_client):
    """With all of it on, after scrapes: at most 8 MiB."""
    shim, path = watched()
    make_plugin(shim, GPU, [f"g{n}" for n in range(8)])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.run(pod, "app")
    for _ in range(50):
        scrape(path)
    if not is_sanitized(shim.pid):
        tell(request, f"the daemon with metrics: {rss_bytes(shim.pid) / MIB:.1f} MiB")
        assert rss_bytes(shim.pid) <= 8 * MIB
    assert runtime
