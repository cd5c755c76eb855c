"""cri-device-shimctl cordon, uncordon, withdraw, grace and orders, at a daemon that works."""

import datetime
import os
import pathlib
import signal
import subprocess
import time

import grpc
import pytest

from asking import by_annotation, refused
from ctl import CTL, ctl, ctl_json
from process import open_files
from protos import CONTROL, control
from rawh2 import Connection, framed
from waiting import wait_until

GPU = "vendor.com/gpu"
UID = os.getuid()


def test_a_cordoned_device_has_no_new_holder(at_work, make_client, make_plugin):
    shim, client = at_work, make_client(at_work)
    make_plugin(shim, GPU, ["g0"])
    wait_until(lambda: ctl_json(shim, "devices")["items"], "it is listed")
    told = ctl_json(shim, "cordon", GPU, "g0", "g9", "--reason", "dust in the fan")
    assert told == {"resource": GPU,
                    "text": f"{GPU}: cordoned: g0,g9; 1 of them is not listed now"}
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.UNAVAILABLE, "device g0 is cordoned: dust in the fan"):
        client.create(pod, "main")
    assert '"too-few-are-uncordoned"' in ctl(shim, "why", "web", "-o", "json").stdout
    assert [(one["kind"], one["id"], one["reason"]) for one in ctl_json(shim, "orders")["items"]] == [
        ("cordon", "g0", "dust in the fan"), ("cordon", "g9", "dust in the fan")]
    head, *rows = [line.split() for line in ctl(shim, "orders").stdout.splitlines()]
    assert head == ["KIND", "RESOURCE", "ID", "SINCE", "CHANGE", "REASON"]
    assert [row[:3] + row[4:] for row in rows] == [
        ["cordon", GPU, one, "-", "dust", "in", "the", "fan"] for one in ("g0", "g9")]
    assert ctl(shim, "orders", "-o", "name").stdout == f"cordon/{GPU}/g0\ncordon/{GPU}/g9\n"
    ctl_json(shim, "uncordon", GPU, "g0", "g9")
    assert ctl_json(shim, "orders")["items"] == []
    client.run(pod, "main")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "none"])
def test_a_table_has_a_reason_in_any_language(at_work, locale):
    """As the sentences and JSON have it; what a terminal would obey is shown as what it is."""
    prefix = ("env", f"LC_ALL={locale}")
    ctl_json(at_work, "cordon", GPU, "g0", "g1", "--reason", "Lüfter kaputt, 風扇壞了\x1b[31m")
    head, *rows = ctl(at_work, "orders", prefix=prefix).stdout.splitlines()
    assert [row[head.index("REASON"):] for row in rows] == ["Lüfter kaputt, 風扇壞了\\x1b[31m"] * 2


def test_a_resource_that_is_counted_in_pieces_is_found_by_its_name(at_work, make_plugin):
    """The first page has no row: it is a part of the way to one."""
    make_plugin(at_work, GPU, [f"g{i}" for i in range(2500)])
    ctl_json(at_work, "cordon", GPU, "g0")
    wait_until(lambda: [one["devices"] for one in ctl_json(at_work, "resources")["items"]] == [2500],
               "they are listed")
    [row] = ctl_json(at_work, "resources", GPU)["items"]
    assert (row["devices"], row["free"], row["cordoned"]) == (2500, 2499, 1)
    assert ctl(at_work, "resources", GPU, "-o", "name").stdout == f"resource/{GPU}\n"


def test_what_is_withdrawn_is_refused_at_once(at_work, make_client, make_plugin):
    shim, client = at_work, make_client(at_work)
    make_plugin(shim, GPU, ["g0"])
    ctl_json(shim, "withdraw", GPU, "--reason", "moved")
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "withdrawn it: moved"):
        client.create(pod, "main")
    ctl_json(shim, "withdraw", GPU, "--undo")
    client.run(pod, "main")


def test_a_grace_period_that_is_under_way(at_work, make_plugin):
    shim = at_work
    plugin = make_plugin(shim, GPU, ["g0"])
    done = ctl(shim, "grace", "extend", GPU, "1h")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no stop grace period" in done.stderr
    assert ctl(shim, "grace", "extend", GPU, "soon").returncode == 2
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    assert "its stop grace period ends in 1h" in ctl(shim, "grace", "extend", GPU, "1h").stdout
    assert ctl(shim, "grace", "end", GPU).stdout == f"{GPU}: its stop grace period ends now\n"
    shim.wait_log("its grace period was ended by the operator")
    assert ctl_json(shim, "orders")["items"] == []


# ---- where people look ----

def told(shim):
    """What operators did, of the events."""
    return [(one["kind"], one["resource"], one["ids"], one["text"])
            for one in ctl_json(shim, "events")["items"] if (one["text"] or "").startswith("by uid")]


def wait_told(shim, *expected):
    wait_until(lambda: told(shim) == list(expected), f"it is told: {expected}")


def first_row(shim, *command):
    """{column: its word}"""
    head, row = [line.split() for line in ctl(shim, *command).stdout.splitlines()[:2]]
    return dict(zip(head, row))


def test_lists_and_status_show_what_is_cordoned(at_work, make_client, make_plugin):
    shim, client = at_work, make_client(at_work)
    make_plugin(shim, GPU, ["g0", "g1"])
    assert ctl_json(shim, "status")["orders"] == []
    client.run(client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1")), "main")
    ctl_json(shim, "cordon", GPU, "g0", "g1", "--reason", "dust")
    held, free = sorted(ctl_json(shim, "devices")["items"], key=lambda one: not one["holders"])
    for one in (held, free):
        assert one["cordon"]["reason"] == "dust" and not one["withdrawn"] and not one["free"]
    assert held["holders"]
    (row,) = ctl_json(shim, "resources")["items"]
    assert (row["cordoned"], row["withdrawn"], row["free"]) == (2, False, 0)
    (orders,) = ctl_json(shim, "status")["orders"]
    assert (orders["kind"], orders["count"]) == ("cordon", 2)
    ages = [datetime.datetime.fromisoformat(one.removesuffix("Z"))
            for one in (orders["oldest"], free["cordon"]["since"])]
    assert abs(ages[0] - ages[1]) <= datetime.timedelta(seconds=1)  # each is told by its age
    head, *rows = [line.split() for line in ctl(shim, "devices").stdout.splitlines()]
    assert head[-1] == "CORDON" and [row[-1] for row in rows] == ["cordoned"] * 2
    assert first_row(shim, "devices", "-o", "wide")["REASON"] == "dust"
    assert ctl(shim, "resources").stdout.splitlines()[1].split()[-2:] == ["2", "cordoned"]
    assert ["cordon", "2"] in [line.split()[:2] for line in
                               ctl(shim, "status").stdout.splitlines()]


def test_lists_and_status_show_what_is_withdrawn(at_work, make_plugin):
    shim = at_work
    make_plugin(shim, GPU, ["g0"])
    wait_until(lambda: ctl_json(shim, "devices")["items"], "it is listed")
    ctl_json(shim, "withdraw", GPU, "--reason", "moved")
    (device,) = ctl_json(shim, "devices")["items"]
    assert (device["withdrawn"], device["cordon"], device["free"]) == (True, None, False)
    (row,) = ctl_json(shim, "resources")["items"]
    assert (row["cordoned"], row["withdrawn"], row["free"], row["kubelet"]) == (
        0, True, 0, {"devices": 0, "healthy": 0})
    for command, column in (("devices", "CORDON"), ("resources", "ORDERS")):
        assert first_row(shim, command)[column] == "withdrawn"
        assert first_row(shim, command, "-o", "wide")["REASON"] == "moved"
    assert device["withdrawal"]["reason"] == row["withdrawal"]["reason"] == "moved"
    (orders,) = ctl_json(shim, "status")["orders"]
    assert (orders["kind"], orders["newest"]["resource"], orders["newest"]["reason"]) == (
        "withdrawal", GPU, "moved")
    assert f"{GPU}: moved" in ctl(shim, "status").stdout


def test_status_has_the_newest_of_each_kind(at_work):
    """Of those that were set in one second it is the first in their order."""
    shim = at_work
    ctl_json(shim, "cordon", GPU, "g2", "--reason", "dust")
    began = time.time()
    wait_until(lambda: time.time() > began + 1, "they are of different seconds")
    ctl_json(shim, "cordon", GPU, "g1", "--reason", "rust")
    (orders,) = ctl_json(shim, "status")["orders"]
    assert (orders["count"], orders["newest"]["id"], orders["newest"]["reason"]) == (2, "g1", "rust")
    assert f"{GPU} g1: rust" in ctl(shim, "status").stdout


@pytest.mark.usefixtures("away")
def test_the_grace_that_is_left_is_that_with_the_order(at_work):
    shim = at_work
    ctl_json(shim, "grace", "extend", GPU, "1h")
    (row,) = ctl_json(shim, "plugins")["items"]
    assert 3600 <= row["away"]["graceLeftSeconds"] <= 3660
    assert row["away"]["graceExtendedSeconds"] == 3600
    head, row = [line.split() for line in ctl(shim, "plugins").stdout.splitlines()]
    assert row[head.index("EXTENDED")] == "1h0m"
    assert [one["kind"] for one in ctl_json(shim, "status")["orders"]] == ["grace"]
    ctl_json(shim, "grace", "end", GPU)
    wait_told(shim, ("grace-extended", GPU, [], f"by uid {UID}: 3600 s longer"),
              ("grace-ended", GPU, [], f"by uid {UID}"))


@pytest.mark.usefixtures("away")
def test_status_has_all_kinds_at_once(at_work):
    shim = at_work
    ctl_json(shim, "cordon", GPU, "g0", "--reason", "dust")
    ctl_json(shim, "withdraw", GPU, "--reason", "moved")
    ctl_json(shim, "grace", "extend", GPU, "1h")
    ctl_json(shim, "taint", GPU, "g0", "example.com/old:None", "--reason", "rust")
    ctl_json(shim, "taint", GPU, "g1", "example.com/old:None")
    assert [(one["kind"], one["count"]) for one in ctl_json(shim, "status")["orders"]] == [
        ("cordon", 1), ("withdrawal", 1), ("grace", 1), ("taint", 2)]
    lines = [line.split() for line in ctl(shim, "status").stdout.splitlines()]
    at = lines.index(["ORDERS", "COUNT", "OLDEST", "NEWEST"])
    assert [line[:2] for line in lines[at + 1:at + 5]] == [
        ["cordon", "1"], ["withdrawal", "1"], ["grace", "1"], ["taint", "2"]]


def test_each_that_changes_something_is_an_event(at_work, make_plugin):
    shim = at_work
    make_plugin(shim, GPU, ["g0", "g1"])
    ctl_json(shim, "cordon", GPU, "g0", "g1", "--reason", "dust")
    ctl_json(shim, "cordon", GPU, "g0", "g1", "--reason", "dust")  # so it was
    ctl_json(shim, "uncordon", GPU, "g1")
    ctl_json(shim, "withdraw", GPU, "--reason", "moved")
    ctl_json(shim, "withdraw", GPU, "--undo")
    ctl_json(shim, "withdraw", GPU, "--undo")
    expected = [("cordoned", GPU, ["g0", "g1"], f"by uid {UID}: dust"),
                ("uncordoned", GPU, ["g1"], f"by uid {UID}"),
                ("withdrawn", GPU, [], f"by uid {UID}: moved"),
                ("given-back", GPU, [], f"by uid {UID}")]
    wait_told(shim, *expected)
    assert all(one["times"] == 1 for one in ctl_json(shim, "events")["items"])
    shim.kill()
    shim.start()
    shim.wait_control()
    wait_told(shim, *expected)


def test_what_a_client_asked_for_that_has_gone_is_an_event(at_work, make_plugin):
    """It is done all the same."""
    shim = at_work
    make_plugin(shim, GPU, ["g0"])
    request = control.SteerRequest(what="CORDON", resource=GPU, ids=["g0"])
    with Connection(shim.control) as connection:
        os.kill(shim.pid, signal.SIGSTOP)  # it finds the request, and that its client has gone
        connection.call(CONTROL + "Steer", framed(request.SerializeToString()))
    os.kill(shim.pid, signal.SIGCONT)
    wait_told(shim, ("cordoned", GPU, ["g0"], f"by uid {UID}"))


@pytest.mark.parametrize("words, unsure", [
    (("cordon", GPU, "g0"), True), (("end", "web"), True), (("taint", GPU, "g0", "k:None", "--dry-run"), False),
    (("orders",), False)])
def test_who_is_not_answered_is_told_that_it_may_be_done(at_work, words, unsure):
    """The daemon has the request, and ends: nobody knows."""
    shim = at_work
    os.kill(shim.pid, signal.SIGSTOP)
    with subprocess.Popen([CTL, "-s", shim.control, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as asking:
        wait_until(lambda: any(link.startswith("socket:") for link in open_files(asking.pid).values()) and
                   pathlib.Path(f"/proc/{asking.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S",
                   "it has asked, and waits")
        shim.kill()
        said = asking.stderr.read()
    assert asking.returncode == 4 and "cannot reach the daemon" in said
    assert said.endswith("; it may be done all the same: see cri-device-shimctl events\n") == unsure


@pytest.mark.parametrize("words", [("gpu", "g0"), (GPU, ""), (GPU, "g0", "-r", "x" * 257)])
def test_what_makes_no_sense_is_a_wrong_command_line(at_work, words):
    done = ctl(at_work, "cordon", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert ctl_json(at_work, "orders")["items"] == []
