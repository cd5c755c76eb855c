"""cri-device-shimctl cordon, uncordon, withdraw, grace and orders, at a daemon that works."""

import grpc
import pytest

from asking import by_annotation, refused
from ctl import ctl, ctl_json

GPU = "vendor.com/gpu"


def test_a_cordoned_device_has_no_new_holder(at_work, make_client, make_plugin):
    shim, client = at_work, make_client(at_work)
    make_plugin(shim, GPU, ["g0"])
    told = ctl_json(shim, "cordon", GPU, "g0", "g9", "--reason", "dust in the fan")
    assert told == {"resource": GPU,
                    "text": f"{GPU}: cordoned: g0,g9; 1 of them is not listed now"}
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.UNAVAILABLE, "device g0 is cordoned: dust in the fan"):
        client.create(pod, "main")
    assert '"too-few-are-uncordoned"' in ctl(shim, "why", "web", "-o", "json").stdout
    assert [(one["kind"], one["id"], one["reason"]) for one in ctl_json(shim, "orders")] == [
        ("cordon", "g0", "dust in the fan"), ("cordon", "g9", "dust in the fan")]
    assert ctl(shim, "orders", "-o", "name").stdout == f"cordon/{GPU}/g0\ncordon/{GPU}/g9\n"
    ctl_json(shim, "uncordon", GPU, "g0", "g9")
    assert ctl_json(shim, "orders") == []
    client.run(pod, "main")


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
    assert ctl_json(shim, "orders") == []


@pytest.mark.parametrize("words", [("gpu", "g0"), (GPU, ""), (GPU, "g0", "-r", "x" * 257)])
def test_what_makes_no_sense_is_a_wrong_command_line(at_work, words):
    done = ctl(at_work, "cordon", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert ctl_json(at_work, "orders") == []
