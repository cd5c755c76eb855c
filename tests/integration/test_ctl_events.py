"""cri-device-shimctl events: what came to pass, over kills and restarts, with and without a disk; who
follows, and who never reads."""

import datetime
import json
import signal
import subprocess
import time
import uuid

import grpc
import jsonschema
import pytest

from asking import by_annotation, by_token, refused
from ctl import AS_NOBODY, CTL, ctl, ctl_json, schema_of
from limits import limits_of
from process import MIB, rss_bytes
from protos import CONTROL
from rawh2 import Connection, framed
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
FOLLOWERS_MAX = 32  # CONTROL_FOLLOWERS_MAX
PINGS_S = limits_of("shim/control/limits.h")["CONTROL_PINGS_MS"] / 1000
LARGE_EVENTS = 2000  # many times EVENTS_BYTES_MAX, and what sockets hold


def events(shim, *arguments):
    return ctl_json(shim, "events", *arguments)["items"]


def kinds(shim, *arguments):
    return [one["kind"] for one in events(shim, *arguments)]


def wait_kinds(shim, expected, *arguments):
    """They come when they are written."""
    wait_until(lambda: kinds(shim, *arguments) == expected, f"the events are {expected}")


@pytest.fixture
def has_run(at_work, make_client, make_plugin):
    """(shim, client, plugin, pod): a container came with g0, and went."""
    plugin = make_plugin(at_work, GPU, ["g0"])
    client = make_client(at_work)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    client.run(pod, "main")
    client.remove_pod(pod.id)
    wait_kinds(at_work, ["registered", "allocated", "released"])
    return at_work, client, plugin, pod


# ---- what is told ----

def test_the_life_of_a_container_and_its_plugin(has_run):
    shim, client, plugin, pod = has_run
    registered, allocated, released = events(shim)
    assert registered["resource"] == GPU and registered["ids"] == []
    assert registered["pod"] is None and registered["uid"] is None
    for one in (allocated, released):
        assert (one["resource"], one["ids"], one["idsTotal"]) == (GPU, ["g0"], 1)
        assert (one["namespace"], one["pod"], one["uid"], one["container"]) == (
            "default", "web", pod.uid, "main")
    assert [one["id"] for one in (registered, allocated, released)] == [1, 2, 3]
    plugin.stop()
    wait_kinds(shim, ["registered", "allocated", "released", "lost"])
    plugin.start()
    wait_until(lambda: kinds(shim)[-1] == "back", "it is back")
    again = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=2"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as error:
        client.create(again, "main")
    wait_until(lambda: kinds(shim)[-1] == "refused", "the refusal is told")
    last = events(shim)[-1]
    assert (last["reason"], last["container"]) == ("too-few-devices", "main")
    assert last["text"] in error.value.details()


def test_what_comes_again_is_counted(at_work, make_client):
    client = make_client(at_work)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    for _ in range(5):
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(pod, "main")
    wait_until(lambda: [one["times"] for one in events(at_work)] == [5], "five times")
    (one,) = events(at_work)
    assert (one["kind"], one["id"]) == ("refused", 5)


def test_in_each_form(has_run):
    shim = has_run[0]
    lines = ctl(shim, "events").stdout.splitlines()
    assert lines[0].split() == ["LAST", "TIMES", "EVENT", "RESOURCE", "DEVICES", "POD", "CONTAINER",
                                "REASON"]
    assert lines[2].split()[1:] == ["1", "allocated", GPU, "g0", "default/web", "main", "-"]
    assert "TEXT" in ctl(shim, "events", "-o", "wide").stdout
    assert ctl(shim, "events", "-o", "name").stdout == "event/1\nevent/2\nevent/3\n"


def test_filters(has_run):
    shim, _, _, pod = has_run
    assert kinds(shim, "--resource", GPU) == ["registered", "allocated", "released"]
    assert kinds(shim, "--resource", "vendor.com/other") == []
    for name in (pod.uid, "web", "default/web"):
        assert kinds(shim, "--pod", name) == ["allocated", "released"]
    assert kinds(shim, "--pod", "other/web") == []
    assert kinds(shim, "--since", "1h30m") == ["registered", "allocated", "released"]


@pytest.mark.parametrize("arguments, words", [
    (("--since", "soon"), "--since soon is no duration: 90s, 15m, 2h, 1d"),
    (("--since", "0s"), "--since 0s is no duration: 90s, 15m, 2h, 1d"),
    (("--since", "1s1h"), "--since 1s1h is no duration: 90s, 15m, 2h, 1d"),
])
def test_a_wrong_option(directory, arguments, words):
    done = ctl(directory / "none", "events", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {words}\n")


def test_the_gate_is_told(at_work, make_client):
    """A kubelet that starts is an event, whether it is held or not."""
    at_work.terminate()
    at_work.bridge["kubelet_processes"] = ["python3"]
    at_work.start()
    make_client(at_work).Version()
    wait_until(lambda: "gate" in kinds(at_work), "the gate is told of")
    (one,) = [one for one in events(at_work) if one["kind"] == "gate"]
    assert "has started" in one["text"] and one["reason"] in ("armed", "off")


# ---- over restarts ----

def test_they_outlive_kills(at_work, make_client):
    """Of each that was told the id stays its own, and those that come have higher ones."""
    shim = at_work
    seen = {}
    for number in range(5):
        client = make_client(shim)
        pod = client.run_pod(f"pod-{number}", annotations=by_annotation("main", f"{GPU}=1"))
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(pod, "main")
        wait_until(lambda: f"pod-{number}" in [one["pod"] for one in events(shim)], "it is told")
        told = {one["id"]: one["pod"] for one in events(shim)}
        assert {number: told[number] for number in seen} == seen
        assert max(told) > max(seen, default=0)
        seen = told
        shim.kill()
        shim.start()
        shim.wait_control()
    assert len(seen) == 5


def test_what_was_told_is_not_told_again_after_a_restart(at_work, make_client, make_plugin):
    shim = at_work
    make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    client.run(client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1")), "main")
    wait_kinds(shim, ["registered", "allocated"])
    shim.kill()
    shim.start()
    client.reconnect()
    shim.wait_control()
    wait_until(lambda: ctl_json(shim, "why", "web")["items"][0]["now"][0]["step"] == "go",
               "the plugin is back, and the runtime has listed")
    pod = client.run_pod("two", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        client.create(pod, "main")
    wait_kinds(shim, ["registered", "allocated", "refused"])


def test_they_outlive_a_reboot(shim, make_client, directory):
    """In another boot, whose clock begins anew: how long ago they were is told by the wall clock."""
    boot = directory / "boot_id"

    def spawn():
        shim.config_path.write_text(shim.config_text())
        shim._spawn("unshare", "--mount", "sh", "-c",
                    'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"', boot,
                    shim.binary, "--config", shim.config_path)

    shim.terminate()
    shim.spawn = spawn
    began = time.time()
    for number in range(3):
        boot.write_text(f"{uuid.uuid4()}\n")
        shim.start()
        shim.wait_control()
        refuse_one(make_client(shim), f"pod-{number}")
        wait_until(lambda: len(events(shim)) == number + 1, "it is told")
        shim.terminate()
    shim.start()
    shim.wait_control()
    told = events(shim)
    assert [(one["id"], one["pod"]) for one in told] == [(1, "pod-0"), (2, "pod-1"), (3, "pod-2")]
    for one in told:
        last = datetime.datetime.fromisoformat(one["last"].replace("Z", "+00:00")).timestamp()
        assert began - 2 <= last <= time.time() + 2


def test_a_file_of_another_is_not_read(at_work):
    at_work.terminate()
    path = at_work.state_dir / "events"
    path.unlink(missing_ok=True)
    path.write_bytes(b"\x05\x00\x00\x00garbage, and more of it")
    at_work.start()
    at_work.wait_log("what stands behind a damaged record is left out")
    at_work.wait_control()
    assert events(at_work) == []


# ---- who follows ----

class Following:
    """`events -f` as a process; its lines of JSON, which are as the schema says."""

    def __init__(self, shim, *arguments):
        self.process = subprocess.Popen(
            [CTL, "events", "-f", "-o", "json", "-s", shim.control, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        schema = schema_of("events")
        self._validator = jsonschema.Draft7Validator(
            {**schema["definitions"]["event"], "definitions": schema["definitions"]})

    def next(self):
        one = json.loads(self.process.stdout.readline())
        self._validator.validate(one)
        return one

    def close(self):
        self.process.kill()
        self.process.communicate()


def refuse_one(client, name):
    pod = client.run_pod(name, annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION):
        client.create(pod, "main")


def test_following_goes_on_over_a_restart_without_gap_or_repeat(at_work, make_client, closing):
    shim = at_work
    client = make_client(shim)
    refuse_one(client, "pod-0")
    following = closing(Following(shim))
    assert [following.next()["pod"]] == ["pod-0"]
    refuse_one(client, "pod-1")
    assert following.next()["pod"] == "pod-1"
    shim.kill()
    assert "cannot reach the daemon" in following.process.stderr.readline()
    shim.start()
    client.reconnect()
    for number in range(2, 5):
        refuse_one(client, f"pod-{number}")
    told = [following.next() for _ in range(3)]
    assert [one["pod"] for one in told] == ["pod-2", "pod-3", "pod-4"]
    assert [one["id"] for one in told] == [3, 4, 5]


def test_a_follower_learns_that_events_begin_anew(at_work, make_client, closing):
    """Its place is one that the daemon does not know any more."""
    shim = at_work
    client = make_client(shim)
    for number in range(3):
        refuse_one(client, f"pod-{number}")
    following = closing(Following(shim))
    assert [following.next()["id"] for _ in range(3)] == [1, 2, 3]
    shim.kill()
    (shim.state_dir / "events").unlink()
    shim.start()
    client.reconnect()
    refuse_one(client, "another")
    one = following.next()
    assert (one["id"], one["pod"]) == (1, "another")


def test_following_one_pod(at_work, make_client, closing):
    client = make_client(at_work)
    following = closing(Following(at_work, "--pod", "default/this"))
    for name in ("that", "this", "other"):
        refuse_one(client, name)
    one = following.next()
    assert one["pod"] == "this"
    refuse_one(client, "this")
    another = following.next()
    assert another["pod"] == "this" and another["uid"] != one["uid"]


def test_lines_for_people(at_work, make_client, closing):
    refuse_one(make_client(at_work), "web")
    assert ctl(at_work, "end", "web").returncode == 0
    with subprocess.Popen([CTL, "events", "-f", "-s", at_work.control], stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            refused_one, ending = process.stdout.readline(), process.stdout.readline()
        finally:
            process.kill()
    assert f" refused        {GPU} default/web/main: container" in refused_one
    assert ending.endswith(" ending         default/web\n")


@pytest.mark.parametrize("more", [True, False], ids=["more", "quiet"])
@pytest.mark.parametrize("form", [["-o", "json"], []], ids=["json", "lines"])
def test_following_ends_when_its_reader_has_enough(at_work, make_client, form, more):
    """As of `events -f | head -1`: it does not go on for nobody, and hold one of the places that there are, also if
    nothing comes to pass any more."""
    client = make_client(at_work)
    refuse_one(client, "pod-0")
    following = subprocess.Popen([CTL, "events", "-f", *form, "-s", at_work.control],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "pod-0" in following.stdout.readline()
        following.stdout.close()
        if more:
            refuse_one(client, "pod-1")
        assert (following.wait(GENEROUS_S), following.stderr.read()) == (1, "")
    finally:
        following.kill()
        following.stderr.close()


def test_who_reads_may_take_his_time(at_work, make_client):
    """As a pager. A client that is silent for so long hangs, for the daemon (CONTROL_PINGS_MS)."""
    client = make_client(at_work)
    pod = client.run_pod("web")
    for number in range(200):  # more than a pipe holds
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(pod, f"{number}-{'x' * 250}", annotations=by_token(GPU, "g0"))
    wait_until(lambda: events(at_work)[-1]["id"] == 200, "all are told of")
    with subprocess.Popen([CTL, "events", "-f", "-o", "json", "-s", at_work.control],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        try:
            time.sleep(3.5 * PINGS_S)
            ids = [json.loads(following.stdout.readline())["id"] for _ in range(200)]
            refuse_one(client, "another")
            ids.append(json.loads(following.stdout.readline())["id"])
        finally:
            following.kill()
        assert (ids, following.stderr.read()) == (list(range(1, 202)), "")
    assert "hangs" not in at_work.log()


def test_what_a_reader_has_not_taken_yet_is_not_too_old(at_work, make_client):
    """--since is of the moment in which the command was given."""
    client = make_client(at_work)
    pod = client.run_pod("web")
    for number in range(20):  # more than the pipe holds
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(pod, f"{number}-{'x' * 250}", annotations=by_token(GPU, "g0"))
    wait_until(lambda: len(events(at_work)) == 20, "all are told of")
    with subprocess.Popen([CTL, "events", "-f", "--since", "8s", "-o", "json", "-s", at_work.control],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=4096) as following:
        try:
            time.sleep(9)  # all that the pipe has no room for is older now than --since says
            refuse_one(client, "another")
            ids = [json.loads(following.stdout.readline())["id"]]
            while ids[-1] != 21:
                ids.append(json.loads(following.stdout.readline())["id"])
        finally:
            following.kill()
    assert ids == list(range(1, 22))


def test_following_ends_when_the_disk_is_full(at_work, make_client):
    refuse_one(make_client(at_work), "pod-0")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([CTL, "events", "-f", "-s", at_work.control], check=False, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=GENEROUS_S)
    assert (done.returncode, done.stderr) == (
        1, "error: the answer cannot be written: No space left on device\n")


def test_a_daemon_that_is_not_there_is_an_error(directory):
    done = ctl(directory / "none", "events", "-f")
    assert (done.returncode, done.stdout) == (4, "")


def test_no_more_follow_than_there_may_be(at_work):
    with Connection(at_work.control) as connection:
        streams = [connection.call(CONTROL + "Events", framed(b"\x28\x01"))
                   for _ in range(FOLLOWERS_MAX)]
        one_more = connection.call(CONTROL + "Events", framed(b"\x28\x01"))
        answer = connection.wait_end(one_more)
        assert answer.status == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
        connection.reset(streams[0])
        wait_until(lambda: ctl(at_work, "events").returncode == 0, "there is room for another")


def test_one_that_never_reads_misses_them(at_work, make_client, closing):
    """It takes no memory but its queue's; who reads at last is told what it has missed."""
    shim = at_work
    client = make_client(shim)
    following = closing(Following(shim))
    refuse_one(client, "first")
    assert following.next()["pod"] == "first"
    following.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: ctl(shim, "events").returncode == 0, "others are served")
    for number in range(50):
        refuse_one(client, f"pod-{number}")
    wait_until(lambda: len(events(shim)) == 51, "they are told")
    following.process.send_signal(signal.SIGCONT)
    assert [following.next()["id"] for _ in range(50)] == list(range(2, 52))


def test_one_that_reads_too_slowly_is_told_how_many_it_missed(at_work, make_client, closing):
    """Those that are kept no more; what is kept comes, in order, to the last, and what comes then."""
    client = make_client(at_work)
    pod = client.run_pod("web")
    following = closing(Following(at_work))

    def refuse(number):
        """One of the largest: it is not seen again."""
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(pod, f"{number}-{'x' * 250}", annotations=by_token(GPU, "g0"))

    refuse(0)
    assert following.next()["id"] == 1
    following.process.send_signal(signal.SIGSTOP)
    for number in range(1, LARGE_EVENTS):
        refuse(number)
    wait_until(lambda: events(at_work)[-1]["id"] == LARGE_EVENTS, "all are told of")
    assert events(at_work)[0]["id"] > LARGE_EVENTS / 4  # many are not kept
    following.process.send_signal(signal.SIGCONT)
    ids = [1]
    while ids[-1] < LARGE_EVENTS:
        ids.append(following.next()["id"])
    gaps = [(a, b) for a, b in zip(ids, ids[1:]) if b != a + 1]
    ((before, behind),) = gaps
    told = following.process.stderr.readline()
    if "cannot reach the daemon" in told:  # it was stopped for so long that it answered no PING: it has come back by itself
        told = following.process.stderr.readline()
    assert told == f"warning: {behind - before - 1} events were missed: no more are kept\n"
    refuse(LARGE_EVENTS)
    assert following.next()["id"] == LARGE_EVENTS + 1  # and it goes on


@pytest.mark.release
def test_a_connection_that_is_never_read_takes_its_queue_and_no_more(at_work, make_client):
    """As many streams as there may be, with all that there is to tell."""
    client = make_client(at_work)
    for number in range(200):
        refuse_one(client, f"pod-{number}")
    wait_until(lambda: len(events(at_work)) == 200, "they are told")
    bad = Connection(at_work.control)
    try:
        before = rss_bytes(at_work.pid)
        for _ in range(FOLLOWERS_MAX - 1):
            bad.call(CONTROL + "Events", framed(b"\x28\x01"))
        for number in range(50):
            refuse_one(client, f"later-{number}")
        wait_until(lambda: len(events(at_work)) == 250, "others are served")
        assert rss_bytes(at_work.pid) - before < 8 * MIB
    finally:
        bad.close()


def test_an_unprivileged_process_reads_none(at_work):
    for arguments in (("events",), ("events", "-f"), ("reload",), ("log-level", "debug")):
        done = ctl(at_work, *arguments, prefix=AS_NOBODY)
        assert (done.returncode, done.stdout) == (5, ""), done
    at_work.control.chmod(0o666)
    for arguments in (("events",), ("events", "-f"), ("reload",), ("log-level", "debug")):
        done = ctl(at_work, *arguments, prefix=AS_NOBODY)
        assert (done.returncode, done.stdout) == (5, ""), done
