"""The control socket, and cri-device-shimctl at it: a daemon that works, under load and in trouble,
and clients that mean no good."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import threading

import grpc
import pytest

from asking import by_annotation, by_token, refused
from bridge_process import Bridge
from busy import busy
from criclient import Client
from ctl import AS_NOBODY, CTL, ctl, ctl_json
from hung_workers import HungWorkers
from kept_shim import kept_shim
from process import MIB, rss_bytes
from protos import CONTROL
from rawh2 import Connection, framed
from rawpair import PREFACE_WIDE_OPEN
from runtime import Reply
from shim import locked
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
CONNECTIONS_MAX = 16  # CONTROL_CONNECTIONS_MAX


def wait_status(shim, holds, what):
    """The first JSON of `status` for which holds(it) is true."""
    def look():
        status = ctl_json(shim, "status")
        return status if holds(status) else None

    return wait_until(look, what)


def troubles(shim):
    return {one["what"]: one["why"] for one in ctl_json(shim, "status")["degraded"]}


# ---- status ----

def test_status_of_a_node_at_work(at_work, directory, closing):
    shim = at_work
    bridge = closing(Bridge(directory, socket=str(shim.feed)))
    bridge.start()
    status = wait_status(shim, lambda one: not one["degraded"] and one["runtime"]["name"],
                         "nothing is degraded")
    daemon, second = status["processes"]
    assert (daemon["name"], daemon["pid"]) == ("cri-device-shim", shim.pid)
    assert (second["name"], second["pid"]) == ("cri-device-shim-bridge", bridge.pid)
    version = subprocess.run([CTL, "--version"], check=True, capture_output=True, text=True,
                             timeout=60).stdout.split(" ", 1)[1].strip()
    assert daemon["version"] == version
    assert daemon["uptimeSeconds"] <= GENEROUS_S and second["uptimeSeconds"] <= GENEROUS_S
    runtime = status["runtime"]
    assert (runtime["connected"], runtime["listed"]) == (True, True)
    assert (runtime["name"], runtime["version"]) == ("recorder", "1")
    settings = {one["key"]: (one["value"], one["default"]) for one in status["settings"]}
    assert settings["plugins.hold"] == ("300ms", "5s")
    assert settings["log.level"] == ("debug", "info")
    assert "plugins.allocate_timeout" not in settings and "control.socket" not in settings


def test_status_in_each_form(at_work):
    shim = at_work
    table = ctl(shim, "status").stdout
    lines = table.splitlines()
    assert lines[0].split() == ["NAME", "STATE", "PID", "UPTIME", "VERSION"]
    assert lines[1].split()[:3] == ["cri-device-shim", "running", str(shim.pid)]
    assert "\x1b" not in table, "colours are for a terminal only"
    assert "DETAIL" in ctl(shim, "status", "-o", "wide").stdout
    assert ctl(shim, "-o", "name", "status").stdout == "status/degraded\n"  # there is no bridge
    assert "none is connected" in troubles(shim)["bridge"]


def test_what_is_degraded_is_said_until_it_is_mended(at_work, runtime):
    shim = at_work
    wait_status(shim, lambda one: one["runtime"]["listed"], "the runtime has listed")
    runtime.stop()
    status = wait_status(shim, lambda one: not one["runtime"]["connected"], "the runtime is away")
    (one,) = [one for one in status["degraded"] if one["what"] == "runtime"]
    assert one["since"] == status["runtime"]["since"]
    runtime.start()
    wait_status(shim, lambda one: one["runtime"]["connected"], "the runtime is back")
    assert "runtime" not in troubles(shim)


def test_lists_of_the_runtimes_that_fail_are_said(at_work, runtime):
    shim = at_work
    wait_status(shim, lambda one: one["runtime"]["listed"], "the runtime has listed")
    runtime.on("ListContainers", lambda call: Reply((), grpc.StatusCode.INTERNAL, "its disk fails"))
    why = wait_until(lambda: troubles(shim).get("runtime"), "that is said")
    assert "ListContainers: INTERNAL: its disk fails" in why
    runtime.on("ListContainers")
    wait_until(lambda: "runtime" not in troubles(shim), "nor is it when they come")


def test_a_checkpoint_that_cannot_be_read_is_said(runtime, make_shim):
    shim = make_shim()
    shim.terminate()
    with locked(shim):
        shim.spawn()
        shim.wait_control()
        wait_status(shim, lambda one: any(it["what"] == "store" and "has it open" in it["why"]
                                          for it in one["degraded"]), "the store is not read")
    wait_status(shim, lambda one: all(it["what"] != "store" for it in one["degraded"]),
                "the store is read")


def test_a_disk_that_hangs_is_said(at_work, make_plugin, client, background):
    """A commit that does not end has no error; whoever waits for it has a deadline of minutes."""
    shim = at_work
    make_plugin(shim, GPU, ["g0"])
    pod = client.run_pod("web")
    with contextlib.closing(HungWorkers(shim.pid)):
        created = background.submit(client.create, pod, "main", annotations=by_token(GPU, "g0"))
        wait_status(shim, lambda one: any(it["what"] == "store" and "has not taken a commit" in it["why"]
                                          for it in one["degraded"]), "the store hangs")
    created.result(GENEROUS_S)
    assert "store" not in troubles(shim)


def test_settings_of_the_last_start_that_worked_are_said(runtime, make_shim):
    shim = make_shim()
    wait_until((shim.state_dir / "config.last-good.toml").exists, "the settings are kept")
    shim.terminate()
    text = shim.config_text
    shim.config_text = lambda: text() + "\nnonsense = 1\n"
    shim.start()
    shim.wait_control()
    assert "is wrong; the settings are those of the last start" in troubles(shim)["settings"]


def test_the_socket_of_plugins_is_missed(at_work):
    shim = at_work
    registrar = shim.plugin_dir / "kubelet.sock"
    registrar.unlink()
    registrar.mkdir()
    (registrar / "something").write_text("")
    wait_until(lambda: "registrar" in troubles(shim), "the registrar's socket is missed")
    assert "not empty" in troubles(shim)["registrar"]
    (registrar / "something").unlink()
    wait_until(lambda: "registrar" not in troubles(shim), "it is back")


def test_the_registrys_directory_is_missed(runtime, make_shim):
    shim = make_shim(start=False)
    shim.registry_dir.write_text("")
    shim.start()
    shim.wait_control()
    wait_until(lambda: "registry" in troubles(shim), "the registry's directory is missed")
    assert troubles(shim)["registry"] == "Not a directory"
    shim.registry_dir.unlink()
    wait_until(lambda: "registry" not in troubles(shim), "it is back")


# ---- why ----

def why(shim, *arguments):
    """The one container that it is about."""
    answer = ctl_json(shim, "why", *arguments)
    (item,) = answer["items"]
    assert not answer["more"]
    return item


def test_why_a_container_waits_and_was_refused(at_work, make_client, make_plugin, background):
    shim = at_work
    shim.terminate()
    shim.resources = [{"name": GPU, "hold": "60s"}]
    shim.start()
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    call = background.submit(client.run, pod, "main")
    wait_until(lambda: ctl(shim, "why", "web").returncode == 0, "the creation waits")
    item = why(shim, "default/web", "main")
    assert (item["namespace"], item["pod"], item["uid"], item["container"]) == (
        "default", "web", pod.uid, "main")
    assert 0 < item["pending"]["refusedInSeconds"] <= 60 and not item["pending"]["forwarded"]
    (finding,) = item["now"]
    assert (finding["resource"], finding["asked"], finding["step"]) == (GPU, 1, "wait")
    assert finding["reason"]["word"] == "plugin-away"
    wait_until(lambda: "stop grace period ends in" in why(shim, "web")["now"][0]["reason"]["text"],
               "it is said how long the plugin may be away")
    assert item["lastRefusal"] is None
    words = ctl(shim, "why", pod.uid).stdout
    assert "its creation waits for" in words and "clears: start the resource's plugin" in words
    plugin.start()
    call.result(GENEROUS_S)
    item = why(shim, "web")
    assert item["pending"] is None
    assert item["now"] == [{"resource": GPU, "asked": 1, "step": "go", "has": True, "ids": ["g0"],
                            "idsTotal": 1, "reason": None}]
    assert "has its devices; made again now it would get what it asks for" in ctl(
        shim, "why", "web").stdout
    assert ctl(shim, "why", "web", "-o", "name").stdout == "container/default/web/main\n"


def test_why_without_a_pod_is_all_that_wait_or_were_refused(at_work, make_client, make_plugin):
    make_plugin(at_work, "other.com/nic", ["n0"])
    client = make_client(at_work)
    client.run(client.run_pod("has", annotations=by_annotation("main", "other.com/nic=1")), "main")
    assert ctl(at_work, "why").stdout == ""
    web = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION):
        client.create(web, "main")
    assert ctl(at_work, "why", "-o", "name").stdout == "container/default/web/main\n"
    make_plugin(at_work, GPU, ["g0"])
    client.run(web, "main")
    assert ctl(at_work, "why").stdout == "" and why(at_work, "web")["lastRefusal"], "it was made since"


def test_why_one_was_refused(at_work, make_client):
    shim, client = at_work, make_client(at_work)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    for _ in range(3):
        with refused(grpc.StatusCode.FAILED_PRECONDITION) as error:
            client.create(pod, "main")
    item = why(shim, "web")
    last = item["lastRefusal"]
    assert (last["reason"]["word"], last["code"], last["times"]) == (
        "resource-unknown", "FAILED_PRECONDITION", 3)
    assert last["reason"]["text"] in error.value.details()
    assert [(one["step"], one["reason"]["word"]) for one in item["now"]] == [
        ("refuse", "resource-unknown")]
    words = ctl(shim, "why", "web").stdout
    assert "3 times since" in words and "FAILED_PRECONDITION" in words


def test_why_a_pod_that_nobody_knows(at_work):
    done = ctl(at_work, "why", "nobody")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == ("error: no container of such a pod waits for devices, was refused or has "
                           "any, and no claim is known by that\n")


def test_why_changes_nothing(at_work, make_client, make_plugin):
    """Neither plugin nor runtime is asked for it, nothing is stored."""
    shim, client = at_work, make_client(at_work)
    plugin = make_plugin(shim, GPU, ["g0"])
    client.run(client.run_pod("one", annotations=by_annotation("main", f"{GPU}=1")), "main")
    other = client.run_pod("two", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        client.create(other, "main")
    log, calls = shim.log(), list(plugin.calls)
    for _ in range(20):
        assert why(shim, "two")["now"][0]["reason"]["word"] == "too-few-devices"
        assert why(shim, "one")["now"][0]["ids"] == ["g0"]
    assert plugin.calls == calls
    new = [line for line in shim.log()[len(log):].splitlines() if "control.sock" not in line]
    assert new == []


# ---- the socket ----

def test_the_socket_is_roots_alone(at_work):
    mode = at_work.control.stat()
    assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o600


def test_no_socket_is_made_if_none_is_wanted(runtime, make_shim):
    shim = make_shim(control={"socket": ""})
    assert not shim.control.exists()
    done = ctl(shim, "status")
    assert done.returncode == 4


def test_one_that_is_removed_comes_back(at_work):
    at_work.control.unlink()
    wait_until(lambda: ctl(at_work, "status").returncode == 0, "the socket is back")


def test_one_that_cannot_be_made_is_not_the_relays_matter(runtime, make_shim, make_client):
    shim = make_shim(start=False)
    shim.control.mkdir()
    (shim.control / "something").write_text("")
    shim.start()
    make_client(shim).Version()
    shim.wait_log(f'control.socket = "{shim.control}": a directory that is not empty')
    (shim.control / "something").unlink()
    wait_until(lambda: ctl(shim, "status").returncode == 0, "the socket is made at last")


def test_it_outlives_the_daemon(directory, runtime, runtime_socket, manager, closing):
    """With a manager that keeps descriptors who asks meanwhile waits, and is answered."""
    shim = closing(kept_shim(manager)(directory, runtime_socket))
    shim.start()
    wait_until(lambda: any("control" in name for name in manager.names()), "the socket is kept")
    identity = shim.control.stat().st_ino
    shim.kill()
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(ctl(shim, "status")))
    waiting.start()
    shim.start()
    waiting.join(GENEROUS_S)
    assert answers[0].returncode == 0, answers[0]
    assert shim.control.stat().st_ino == identity


# ---- clients that mean no good ----

def test_an_unprivileged_process_does_not_get_in(at_work):
    done = ctl(at_work, "status", prefix=AS_NOBODY)
    assert (done.returncode, done.stdout) == (5, "")
    assert "permission denied" in done.stderr and done.stderr.count("\n") == 1


def test_an_unprivileged_process_is_refused_where_the_file_lets_it_in(at_work):
    """The mode is one thing; who it is, another."""
    at_work.control.chmod(0o666)
    done = ctl(at_work, "status", prefix=AS_NOBODY)
    assert (done.returncode, done.stdout) == (5, "")
    assert "only for root" in done.stderr
    assert ctl(at_work, "status").returncode == 0


def test_garbage_ends_its_own_connection(at_work):
    with socket.socket(socket.AF_UNIX) as bad, Client(at_work.control) as good:
        bad.connect(str(at_work.control))
        good.wait_ready()
        bad.sendall(b"\xff" * 5000)
        bad.settimeout(GENEROUS_S)
        try:
            while bad.recv(4096):
                pass
        except ConnectionResetError:
            pass
        assert good.unary(CONTROL + "Status")[0]


@pytest.mark.parametrize("method", ["Events", "Steer", "Release"])
def test_a_field_that_cannot_be_is_refused(at_work, method):
    """One of number 0, in a request that is kept until it is answered: it does not parse."""
    with Client(at_work.control) as client, pytest.raises(grpc.RpcError) as error:
        client.unary(CONTROL + method, b"\x81\x00" + bytes(8))
    assert error.value.code() == grpc.StatusCode.INTERNAL
    assert ctl(at_work, "status").returncode == 0


def test_requests_are_small(at_work):
    with Client(at_work.control) as one, pytest.raises(grpc.RpcError) as error:
        one.unary(CONTROL + "Status", b"\x0a\x80\x80\x08" + b"a" * (128 * 1024))
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert ctl(at_work, "status").returncode == 0


def test_no_more_connections_than_there_may_be(at_work):
    """One more waits for one that has no call, or whose call ends."""
    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(Connection(at_work.control)) for _ in range(CONNECTIONS_MAX)]
        for one in busy:
            stream = one.call(CONTROL + "Events", framed(b"\x28\x01"))  # follow
            while not one.answers[stream].body:
                one.receive()
        waits = stack.enter_context(Client(at_work.control))
        call = waits.channel.unary_unary(CONTROL + "Status").future(b"", timeout=GENEROUS_S)
        at_work.client().Version()
        assert not call.done()
        busy[0].reset(1)
        call.result()


def test_clients_that_hang_make_room(at_work):
    """Whoever is silent makes room for who comes; he is sent a PING, and has gone if he does not answer it."""
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX):
            hangs = stack.enter_context(socket.socket(socket.AF_UNIX))
            hangs.connect(str(at_work.control))
            hangs.sendall(PREFACE_WIDE_OPEN)
        with Client(at_work.control) as waits:
            waits.unary(CONTROL + "Status", b"", timeout=GENEROUS_S)
        at_work.wait_log("hangs: it has not answered")


def test_a_client_that_never_reads_is_bounded(at_work, make_client):
    """It asks and asks; what waits for it stops growing, and nobody else notices."""
    bad = Connection(at_work.control)
    try:
        before = rss_bytes(at_work.pid)
        for _ in range(200):
            bad.call(CONTROL + "Status", framed(b""))
        make_client(at_work).Version()
        assert ctl(at_work, "status").returncode == 0
        assert rss_bytes(at_work.pid) - before < 16 * MIB
    finally:
        bad.close()


def test_it_answers_while_the_daemon_has_much_to_do(at_work, make_client, make_plugin):
    """And what the daemon does goes on."""
    shim = at_work
    make_plugin(shim, GPU, [f"g{number}" for number in range(64)])
    with busy(shim, make_client, f"{GPU}=1"):
        for _ in range(20):
            ctl_json(shim, "status")
            ctl(shim, "why", "pod0-1")


# ---- the command line ----

@pytest.mark.parametrize("arguments, words, of", [
    ((), "no command", ""),
    (("nonsense",), 'unknown command "nonsense"', ""),
    (("-o", "xml", "status"), 'unknown format "xml"', ""),
    (("status", "more"), "too many arguments for status", "status "),
    (("cordon", GPU), "an argument is missing: RESOURCE ID...", "cordon "),
    (("grace", "end"), "an argument is missing: RESOURCE", "grace end "),
    (("status", "--nonsense"), "unknown option --nonsense", "status "),
    (("status", "-o"), "-o needs a value", "status "),
])
def test_a_wrong_command_line(directory, arguments, words, of):
    """One line, what to do, and the exit status of that kind."""
    done = ctl(directory / "none", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {words}; see cri-device-shimctl {of}--help\n"


def test_an_answer_that_cannot_be_written(at_work, make_plugin):
    """Is told, be it short or long, unless whoever read it has enough."""
    make_plugin(at_work, "vendor.com/gpu", [f"a-device-with-a-long-name-{number:04}" for number in range(500)])
    wait_until(lambda: len(ctl(at_work, "devices").stdout) > 20_000, "they are listed")
    for command in ("status", "devices"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([CTL, "-s", at_work.control, command], check=False, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (
            1, "error: the answer cannot be written: No space left on device\n")
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as gone:
        done = subprocess.run([CTL, "-s", at_work.control, "status"], check=False, stdout=gone,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("closed, status, words", [
    ("<&-", 0, ""), ("2>&-", 0, ""), ("<&- 2>&-", 0, ""),
    (">&-", 1, "error: the answer cannot be written: Bad file descriptor\n"),
    ("<&- >&-", 1, "error: the answer cannot be written: Bad file descriptor\n"),
    ("<&- >&- 2>&-", 1, "")])
def test_one_that_is_started_without_stdin_or_stdout(at_work, closed, status, words):
    done = subprocess.run(["sh", "-c", f"{CTL} -s {at_work.control} status -o name {closed}"], check=False,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (status, words)
    assert done.stdout == ("" if ">&-" in closed.replace("2>&-", "") else "status/degraded\n")


def test_a_daemon_that_is_not_there(directory):
    path = directory / "none"
    done = ctl(path, "status")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"error: cannot reach the daemon at {path}: no such file")
    assert done.stderr.count("\n") == 1 and "systemctl status" in done.stderr


def test_the_option_wins_over_the_environment(at_work, directory):
    assert ctl(directory / "none", "status", "--socket", str(at_work.control)).returncode == 0
    assert ctl(at_work, "-s", str(directory / "none"), "status").returncode == 4


def test_a_daemon_of_another_release(at_work):
    """It does not know the call: as the server that plugins register with, which knows no other."""
    done = ctl(at_work.plugin_dir / "kubelet.sock", "status")
    assert done.returncode == 1 and "of another release" in done.stderr


def test_watching_goes_on_over_a_restart(at_work):
    """What is new is shown; a daemon that is away is said to be, and is asked again."""
    shim = at_work
    with subprocess.Popen([CTL, "status", "-w", "-o", "name", "-s", shim.control],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout.readline() == "status/degraded\n"
            shim.kill()
            assert "cannot reach the daemon" in watching.stderr.readline()
            shim.start()
            shim.wait_control()
        finally:
            watching.kill()


def test_watching_at_long_intervals(at_work):
    """A client that is silent for so long hangs, for the daemon (CONTROL_PINGS_MS)."""
    with subprocess.Popen([CTL, "status", "--watch=17", "-o", "json", "-s", at_work.control],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout.readline() and watching.stdout.readline()
        finally:
            watching.kill()
        assert watching.stderr.read() == ""
    assert "hangs" not in at_work.log()


def test_watching_ends_when_nobody_reads_it(at_work):
    """Also while there is nothing new: it would stay for ever."""
    with subprocess.Popen([CTL, "status", "--watch=1", "-o", "name", "-s", at_work.control],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout.readline() == "status/degraded\n"
            watching.stdout.close()
            assert (watching.wait(GENEROUS_S), watching.stderr.read()) == (1, "")
        finally:
            watching.kill()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([CTL, "-s", at_work.control, "status", "-w"], check=False, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=GENEROUS_S)
    assert (done.returncode, done.stderr) == (
        1, "error: the answer cannot be written: No space left on device\n")


def test_watched_json_is_one_document_a_line(at_work):
    with subprocess.Popen([CTL, "status", "--watch=1", "-o", "json", "-s", at_work.control],
                          stdout=subprocess.PIPE, text=True) as watching:
        try:
            lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
        finally:
            watching.kill()
    assert {line["processes"][0]["pid"] for line in lines} == {at_work.pid}
