"""What an operator sets, over kills, and as a kubelet sees it."""

import os
import random
import subprocess
import time

import grpc
import pytest

from asking import by_annotation, by_token, refused
from ctl import CTL, ctl, ctl_json
from node import Node
from telling import tell
from waiting import wait_until

GPU = "vendor.com/gpu"
IDS = [f"g{number}" for number in range(6)]
KILLS = int(os.environ.get("SHIM_ORDER_KILLS", "20"))
SEED = os.environ.get("SHIM_ORDER_SEED", "orders")


def orders(shim):
    """{(kind, id): reason}"""
    return {(one["kind"], one["id"]): one["reason"] for one in ctl_json(shim, "orders")["items"]}


def start(shim):
    shim.start()
    shim.wait_control()


def killed_at_once(shim, *words):
    """A command, and SIGKILL as soon as it was answered."""
    done = ctl(shim, *words)
    shim.kill()
    assert (done.returncode, done.stderr) == (0, "")
    start(shim)


# ---- killed ----

def test_what_was_answered_outlives_a_kill(at_work, make_client, make_plugin):
    shim = at_work
    make_plugin(shim, GPU, ["g0", "g1"])
    killed_at_once(shim, "cordon", GPU, "g0", "g1", "--reason", "dust in the fan")
    assert orders(shim) == {("cordon", "g0"): "dust in the fan", ("cordon", "g1"): "dust in the fan"}
    killed_at_once(shim, "uncordon", GPU, "g1")
    assert orders(shim) == {("cordon", "g0"): "dust in the fan"}
    killed_at_once(shim, "withdraw", GPU, "--reason", "moved")
    assert orders(shim)[("withdrawal", None)] == "moved"
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "withdrawn it: moved"):
        client.create(pod, "main")
    killed_at_once(shim, "withdraw", GPU, "--undo")
    assert orders(shim) == {("cordon", "g0"): "dust in the fan"}
    client.reconnect()
    with refused(grpc.StatusCode.UNAVAILABLE, "device g0 is cordoned: dust in the fan"):
        client.create(client.run_pod("other"), "main", annotations=by_token(GPU, "g0"))
    client.run(pod, "main")


def test_more_orders_than_a_page_has(at_work):
    ids = [f"g{number}" for number in range(1200)]
    for first in range(0, len(ids), 400):
        assert ctl(at_work, "cordon", GPU, *ids[first:first + 400]).returncode == 0
    assert ctl(at_work, "withdraw", GPU).returncode == 0
    assert list(orders(at_work)) == [("cordon", one) for one in ids] + [("withdrawal", None)]


@pytest.mark.usefixtures("away")
def test_a_grace_period_outlives_a_kill(at_work):
    shim = at_work
    killed_at_once(shim, "grace", "extend", GPU, "1h")
    wait_until(lambda: ctl_json(shim, "plugins")["items"][0]["state"] == "grace", "it is away")
    (row,) = ctl_json(shim, "plugins")["items"]
    assert row["away"]["graceExtendedSeconds"] == 3600
    assert row["away"]["graceLeftSeconds"] > 3600 - 60
    killed_at_once(shim, "grace", "end", GPU)
    wait_until(lambda: not ctl_json(shim, "resources")["items"], "it is gone")
    assert orders(shim) == {}


class Operator:
    """Who sets this and that at random, and what is set."""

    def __init__(self, shim):
        self._shim = shim
        self._random = random.Random(SEED)
        self.set = {}

    def command(self, number):
        """A command line, and what would be set after it."""
        ids = self._random.sample(IDS, self._random.randint(1, len(IDS)))
        kind = self._random.choice(["cordon", "cordon", "uncordon", "withdraw", "undo"])
        after, reason = dict(self.set), f"round {number}"
        if kind == "cordon":
            after.update({("cordon", one): reason for one in ids})
            return ["cordon", GPU, *ids, "--reason", reason], after
        if kind == "uncordon":
            return ["uncordon", GPU, *ids], {key: value for key, value in after.items()
                                             if key[1] not in ids}
        if kind == "withdraw":
            after[("withdrawal", None)] = reason
            return ["withdraw", GPU, "--reason", reason], after
        after.pop(("withdrawal", None), None)
        return ["withdraw", GPU, "--undo"], after

    def killed_meanwhile(self, words, within_s):
        """Whether it said yes."""
        environment = {**os.environ, "CRI_DEVICE_SHIM_CONTROL": str(self._shim.control)}
        with subprocess.Popen([CTL, *words], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            time.sleep(self._random.uniform(0, within_s))
            self._shim.kill()
            process.communicate(timeout=60)
        start(self._shim)
        return process.returncode == 0


def test_killed_at_any_moment_of_a_command(request, at_work, make_plugin):
    """All of it is set, or nothing; and all of it, if the command said so."""
    shim, operator = at_work, Operator(at_work)
    make_plugin(shim, GPU, IDS)
    began = time.monotonic()
    ctl_json(shim, "orders")["items"]
    within_s = time.monotonic() - began
    said = done = 0
    for number in range(KILLS):
        words, after = operator.command(number)
        yes = operator.killed_meanwhile(words, within_s)
        now = orders(shim)
        what = f"seed {SEED!r}, round {number}: {words}, {'yes' if yes else 'no answer'}"
        assert now == after or (not yes and now == operator.set), (what, operator.set, now)
        said, done = said + yes, done + (now == after)
        operator.set = now
    tell(request, f"{KILLS} kills, seed {SEED!r}: {said} answered, {done} done")


# ---- as a kubelet sees it ----

@pytest.fixture
def node(directory, closing):
    """Without a mask the kubelet sees all as it is."""
    one = closing(Node(directory / "n", {GPU: ["g0", "g1"]}, bridge={"mask": "0s"}))
    one.start()
    return one


def test_what_a_kubelet_is_shown(node):
    kubelet, control = node.kubelet, node.run_dir / "control.sock"

    def after(*words):
        since = time.monotonic()
        ctl_json(control, *words)
        return since

    def sees(since, healthy, unhealthy):
        kubelet.wait_event("list", since=since, resource=GPU, healthy=healthy, unhealthy=unhealthy)

    sees(0, ["g0", "g1"], [])
    sees(after("cordon", GPU, "g0"), ["g1"], ["g0"])
    pod = kubelet.add_pod("web", {GPU: 1})
    kubelet.wait_phase(pod)
    (request,) = node.runtime.running_in(pod.uid).values()
    assert "g1" in str(request.config.annotations)
    sees(after("cordon", GPU, "g1"), [], ["g0", "g1"])
    sees(after("withdraw", GPU), [], ["g1"])  # what the pod has
    assert pod.phase == "Running"
    kubelet.delete_pod(pod)
    kubelet.wait_event("disconnected", resource=GPU)
    kubelet.wait_gone(pod)
    since = after("withdraw", GPU, "--undo")
    sees(since, [], ["g0", "g1"])
    sees(after("uncordon", GPU, "g0", "g1"), ["g0", "g1"], [])
    other = kubelet.add_pod("other", {GPU: 2})
    kubelet.wait_phase(other)
    assert not node.violations + node.check_running()
