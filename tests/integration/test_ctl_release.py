"""cri-device-shimctl release: devices are taken from a pod that should not have them."""

import os
import signal

import pytest

from asking import by_token, envs
from criclient import Client
from ctl import answered, ctl, ctl_json
from protos import CONTROL, control, cri
from rawh2 import Connection, framed
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
UID = os.getuid()


@pytest.fixture
def left(shim, make_client, make_plugin, runtime):
    """A shim, with a pod "web" whose container had g0: it has ended with its sandbox, behind the
    shim's back."""
    shim.wait_control()
    make_plugin(shim, GPU, ["g0", "g1"])
    client = make_client(shim)
    pod = client.run_pod("web")
    container = client.run(pod, "main", annotations=by_token(GPU, "g0"))
    runtime.state.containers[container].state = cri.CONTAINER_EXITED
    runtime.state.pods[pod.id].state = cri.SANDBOX_NOTREADY
    return shim


def has(shim):
    return [(one["pod"], one["ids"]) for one in ctl_json(shim, "allocations")["items"]]


def test_what_should_not_be_there_is_freed(left, make_client):
    shim, client = left, make_client(left)
    told = ctl_json(shim, "release", "default/web", "--yes")
    [row] = told["allocations"]
    assert (row["pod"], row["container"], row["resource"], row["ids"]) == ("web", "main", GPU, ["g0"])
    assert row["state"] in {"kept", "over"} and told["refused"] is None
    assert told["released"] == f"released: {GPU}: g0"
    assert has(shim) == []
    shim.kill()
    shim.start()
    assert has(shim) == []  # it was stored
    client.reconnect()
    other = client.run_pod("other")
    client.run(other, "main", annotations=by_token(GPU, "g0"))
    assert has(shim) == [("other", ["g0"])]


def taken(shim):
    return [(one["pod"], one["container"], one["resource"], one["ids"], one["text"])
            for one in ctl_json(shim, "events")["items"] if one["kind"] == "taken"]


def test_who_took_them_and_why_is_an_event(left):
    ctl_json(left, "release", "web", "--yes", "--reason", "left over")
    wait_until(lambda: taken(left) == [("web", "main", GPU, ["g0"], f"by uid {UID}: left over")],
               "it is told")


def test_what_a_client_asked_for_that_has_gone_is_done_and_an_event(left):
    request = control.ReleaseRequest(pod="web")
    with Connection(left.control) as connection:
        os.kill(left.pid, signal.SIGSTOP)  # it finds the request, and that its client has gone
        connection.call(CONTROL + "Release", framed(request.SerializeToString()))
    os.kill(left.pid, signal.SIGCONT)
    wait_until(lambda: taken(left) == [("web", "main", GPU, ["g0"], f"by uid {UID}")], "it is told")
    assert has(left) == []


def test_orders_and_releases_are_answered_each_with_its_own(left):
    """They are asked at once, and their numbers are one row."""
    release = control.ReleaseRequest(pod="web", dry_run=True)
    cordon = control.SteerRequest(what="CORDON", resource=GPU, ids=["g1"])
    with Client(left.control) as client:
        calls = [client.channel.unary_unary(CONTROL + method).future(request.SerializeToString(),
                                                                    timeout=GENEROUS_S)
                 for method, request in (("Release", release), ("Steer", cordon)) * 3]
        answers = [call.result(GENEROUS_S) for call in calls]
    for told, set_ in zip(answers[::2], answers[1::2]):
        [row] = control.ReleaseResponse.FromString(told).rows
        assert row.pod_name == "web"
        assert control.SteerResponse.FromString(set_).text == f"{GPU}: cordoned: g1"


def test_by_uid_and_as_a_name(left):
    [row] = ctl_json(left, "release", "web", "--dry-run")["allocations"]
    assert ctl(left, "release", row["uid"], "-y", "-o", "name").stdout == "pod/default/web\n"
    assert has(left) == []


def test_a_uid_is_no_other_pods_name(left, make_client, runtime):
    """Who may make pods may call one as he likes; what was shown first is what is released."""
    [row] = ctl_json(left, "release", "web", "--dry-run")["allocations"]
    client = make_client(left)
    other = client.run_pod(row["uid"], namespace="aaa")
    container = client.run(other, "main", annotations=by_token(GPU, "g1"))
    runtime.state.containers[container].state = cri.CONTAINER_EXITED
    runtime.state.pods[other.id].state = cri.SANDBOX_NOTREADY
    assert ctl_json(left, "release", row["uid"], "--dry-run")["allocations"] == [row]
    assert ctl(left, "release", row["uid"], "--yes").stdout == f"default/web: released: {GPU}: g0\n"
    assert has(left) == [(row["uid"], ["g1"])]


@pytest.mark.parametrize("words", [("--dry-run",), ("--dry-run", "--yes"), ()])
def test_nothing_is_done_untold(left, words):
    done = ctl(left, "release", "web", *words)
    assert has(left) == [("web", ["g0"])]
    if words:
        assert (done.returncode, done.stderr) == (0, "")
        assert f"container main: {GPU} g0 (" in done.stdout
        told = ctl_json(left, "release", "web", *words)
        assert (told["refused"], told["released"]) == (None, None)
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert "without --yes" in done.stderr


@pytest.mark.parametrize("said, status", [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked(left, said, status):
    code, out, shown = answered(left, said, "release", "web")
    assert code == status
    assert f"container main: {GPU} g0" in shown and "Take these from the pod? [y/N]" in shown
    assert (f"released: {GPU}: g0" in out) == (status == 0)
    assert has(left) == ([] if status == 0 else [("web", ["g0"])])


def test_a_person_may_take_his_time(left):
    """A client that is silent for so long hangs, for the daemon (CONTROL_PINGS_MS)."""
    code, out, _ = answered(left, "y\n", "release", "web", after_s=17)
    assert (code, f"released: {GPU}: g0" in out) == (0, True)
    assert "hangs" not in left.log()


def test_what_runs_keeps_what_it_has(left, runtime):
    [container] = runtime.state.containers.values()
    container.state = cri.CONTAINER_RUNNING  # as the shim learns when it asks
    done = ctl(left, "release", "web", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"runs, by the runtime's word ({container.id[:12]})" in done.stderr
    told = ctl_json(left, "release", "web", "--dry-run")
    assert "runs, by the runtime's word" in told["refused"]
    assert told["allocations"][0]["state"] == "running"
    assert has(left) == [("web", ["g0"])]


def test_a_pod_that_is_there_keeps_what_it_has(left, runtime):
    [pod] = runtime.state.pods.values()
    pod.state = cri.SANDBOX_READY
    done = ctl(left, "release", "web", "--yes")
    assert done.returncode == 1 and "the pod is there, by the runtime's word" in done.stderr
    assert has(left) == [("web", ["g0"])]


def test_a_runtime_that_is_away_frees_nothing(left, runtime):
    runtime.stop()
    done = ctl(left, "release", "web", "--yes")
    assert done.returncode == 1 and "the runtime does not say what runs" in done.stderr
    assert has(left) == [("web", ["g0"])]


def test_who_has_nothing(left):
    done = ctl(left, "release", "nobody", "--yes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no such pod has any devices" in done.stderr


def test_a_container_that_is_made_again_gets_them_again(left, make_client, runtime):
    """The pod was not gone after all: what it asks for is asked of the plugin anew."""
    client = make_client(left)
    ctl_json(left, "release", "web", "-y")
    again = client.run_pod("web", uid=next(iter(runtime.state.pods.values())).metadata.uid, attempt=1)
    client.run(again, "main", annotations=by_token(GPU, "g0"))
    assert has(left) == [("web", ["g0"])]
    assert envs(runtime.create_requests()[-1].config)
