"""`cri-device-shimctl drivers`, `claims`, and the devices of DRA drivers."""

import threading
from datetime import datetime

import grpc
import pytest

from busy import busy
from criclient import Client
from ctl import ctl, ctl_json
from dra_driver import HEALTH, V1, Driver
from dra_node import DraNode
from kubelet_drivers import claim
from metrics import scrape
from process import MIB, Peak, is_sanitized
from protos import CONTROL, FEED, bridge, control, dra_health
from rawh2 import Connection, framed
from waiting import GENEROUS_S, wait_until

GPU, NIC = "gpu.example.com", "nic.example.com"
PLUGIN = "vendor.com/gpu"
PAGE_ROWS_MAX = 1000  # CONTROL_PAGE_ROWS_MAX
CLAIMS, DRIVERS = 1000, 64


@pytest.fixture
def node(directory, shim, closing):
    return DraNode(directory, shim, closing)


def items(shim, *arguments):
    return ctl_json(shim, *arguments)["items"]


def item(shim, *arguments):
    (one,) = items(shim, *arguments)
    return one


def columns(shim, *arguments):
    return [line.split() for line in ctl(shim, *arguments).stdout.splitlines()]


def ask(shim, method, driver, uids, timeout=GENEROUS_S):
    """What the bridge asks of the daemon: an answer for each claim."""
    request = bridge.ClaimsRequest(driver=driver, claims=[
        bridge.Claim(namespace="default", uid=uid, name=f"claim-{uid}") for uid in uids])
    with Client(shim.feed) as client:
        body, _ = client.unary(f"{FEED}{method}", request.SerializeToString(), timeout=timeout)
        return list(bridge.ClaimsResponse.FromString(body).answers)


# ---- drivers ----

def test_nothing_yet(at_work):
    for command in ("drivers", "claims"):
        assert items(at_work, command) == []
        assert ctl(at_work, command).returncode == 0
        assert ctl(at_work, command, "-o", "name").stdout == ""
    assert ctl_json(at_work, "devices")["driverDevices"] == []


def test_a_driver(node):
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    wait_until(lambda: item(node.shim, "drivers")["kubelet"] == "registered", "the bridge reports it")
    one = item(node.shim, "drivers", GPU)
    (endpoint,) = one.pop("endpoints")
    since = one.pop("since")
    assert one == {"name": GPU, "state": "connected", "why": None, "services": driver.services, "slices": None,
                   "claims": {"known": 2, "prepared": 2, "owed": 0, "waits": 0}, "health": None,
                   "kubelet": "registered"}
    assert endpoint == {"path": str(driver.endpoint), "connected": True, "since": since, "called": True,
                        "services": driver.services}
    assert columns(node.shim, "drivers")[0] == ["NAME", "STATE", "SINCE", "SERVICES", "ENDPOINTS", "CLAIMS", "PREPARED",
                                                "OWED", "WAITS", "HEALTH", "KUBELET", "SLICES", "WHY"]
    assert ctl(node.shim, "drivers", "-o", "name").stdout == f"driver/{GPU}\n"


def test_a_rolling_update_has_two_endpoints(node):
    old = node.driver(GPU, instance="a", services=[V1])
    new = node.driver(GPU, instance="b")
    one = wait_until(lambda: (row := item(node.shim, "drivers"))["endpoints"][-1]["called"] and row, "both are there")
    assert [(row["path"], row["called"], row["services"]) for row in one["endpoints"]] == [
        (str(old.endpoint), False, [V1]), (str(new.endpoint), True, new.services)]
    assert one["services"] == new.services
    assert str(new.endpoint) in ctl(node.shim, "drivers", "-o", "wide").stdout


def test_a_driver_that_is_away(node):
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1")])
    driver.stop_serving()
    one = wait_until(lambda: (row := item(node.shim, "drivers"))["state"] == "away" and row, "it is away")
    assert one["why"] and one["slices"] == "kept" and not one["endpoints"][0]["connected"]
    assert one["kubelet"] is None
    driver.registrar.stop()
    gone = wait_until(lambda: (row := item(node.shim, "drivers"))["state"] == "gone" and row, "it is deregistered")
    assert gone["endpoints"] == [] and gone["services"] == driver.services and gone["claims"]["known"] == 1


def test_a_driver_that_cannot_be_reached(node):
    """As of a new pod that registers with an endpoint that is not there: not for what it was away before."""
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1")])
    driver.stop()
    wait_until(lambda: item(node.shim, "drivers")["state"] == "gone", "it is deregistered")
    driver.registrar.start()
    wait_until(lambda: (item(node.shim, "drivers")["why"] or "").startswith("cannot connect: "), "it is said why")
    node.shim.wait_log(f"DRA driver {GPU}: endpoint {driver.endpoint} cannot be reached: cannot connect: ")
    driver.serve()
    wait_until(lambda: item(node.shim, "drivers")["state"] == "connected", "it is there")


def test_a_driver_that_the_kubelet_does_not_know(directory, shim, closing):
    """There is no bridge."""
    shim.wait_control()
    driver = closing(Driver(shim.registry_dir, directory / "plugins", GPU))
    driver.start()
    driver.wait_registered()
    assert wait_until(lambda: (row := item(shim, "drivers"))["state"] == "connected" and row,
                      "it is connected")["kubelet"] is None


# ---- claims ----

def test_a_claim(node):
    node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1", "one")])
    pod = node.use("web", "main", f"{GPU}/device=c-1")
    one = item(node.shim, "claims")
    assert one.pop("since") and one.pop("preparedSince")
    assert one == {"namespace": "default", "name": "one", "uid": "c-1", "driver": GPU, "state": "prepared",
                   "stored": True, "local": False, "waits": 0,
                   "devices": [{"pool": "node-1", "name": "one-0", "shareId": None, "adminAccess": False,
                                "cdi": [f"{GPU}/device=c-1"], "health": None}],
                   "usedBy": [{"pod": "default/web", "uid": pod.uid, "container": "main"}], "usedByTotal": 1}
    head, row = columns(node.shim, "claims")
    assert dict(zip(head, row)) == {
        "NAMESPACE": "default", "NAME": "one", "DRIVER": GPU, "STATE": "prepared", "PREPARED": row[4],
        "DEVICES": "node-1/one-0", "HEALTH": "-", "USED-BY": "default/web/main", "WAITS": "0"}
    assert f"{GPU}/device=c-1" in ctl(node.shim, "claims", "-o", "wide").stdout
    assert ctl(node.shim, "claims", "-o", "name").stdout == f"claim/default/one/{GPU}\n"


def test_which_claims(node):
    for name in (GPU, NIC):
        node.driver(name)
        node.kubelet.prepare(name, [claim("c-1", "one"), claim("c-2", "two", namespace="shop")])
    pod = node.use("web", "main", f"{GPU}/device=c-1")
    names = [(one["namespace"], one["name"], one["driver"]) for one in items(node.shim, "claims")]
    assert names == [("default", "one", GPU), ("default", "one", NIC), ("shop", "two", GPU), ("shop", "two", NIC)]
    assert [one["name"] for one in items(node.shim, "claims", NIC)] == ["one", "two"]
    assert [one["driver"] for one in items(node.shim, "claims", "-n", "shop")] == [GPU, NIC]
    for who in ("web", "default/web", pod.uid):
        assert [(one["name"], one["driver"]) for one in items(node.shim, "claims", "-p", who)] == [("one", GPU)]
    assert items(node.shim, "claims", "-p", "other") == []


def test_since_when_it_is_prepared_outlives_the_daemon(node):
    node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1")])
    before = item(node.shim, "claims")["preparedSince"]
    node.shim.kill()
    node.shim.start()
    node.shim.wait_control()
    after = item(node.shim, "claims")["preparedSince"]
    # It is kept on the clock of the boot, and told in whole seconds of the wall's.
    assert abs((datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()) <= 1


def test_a_claim_that_waits(node, background):
    driver = node.driver(GPU)
    asked, release = threading.Event(), threading.Event()
    driver.on_prepare = lambda one: asked.set() or release.wait(GENEROUS_S) and driver._devices(one)
    call = background.submit(node.kubelet.prepare, GPU, [claim("c-1")])
    try:
        assert asked.wait(GENEROUS_S)
        one = item(node.shim, "claims")
        assert (one["state"], one["waits"], one["devices"], one["preparedSince"]) == ("sent", 1, [], None)
        assert item(node.shim, "drivers")["claims"]["waits"] == 1
    finally:
        release.set()
    call.result(GENEROUS_S)


# ---- health ----

def test_health(node):
    driver = node.driver(GPU, services=[V1, HEALTH])
    node.kubelet.prepare(GPU, [claim("c-1", "one")])
    driver.say_health("one-0", "too hot", health=dra_health.UNHEALTHY, health_check_timeout_seconds=900)
    driver.say_health("spare", "", health=dra_health.HEALTHY, health_check_timeout_seconds=900)
    used, spare = wait_until(lambda: len(rows := ctl_json(node.shim, "devices")["driverDevices"]) == 2 and rows,
                             "both are told")
    assert used["health"].pop("said") and spare["health"].pop("said")
    assert used == {"driver": GPU, "pool": "node-1", "name": "one-0", "claimsTotal": 1,
                    "health": {"state": "unhealthy", "message": "too hot"},
                    "claims": [{"namespace": "default", "name": "one", "uid": "c-1", "state": "prepared"}]}
    assert (spare["name"], spare["health"]["state"], spare["claims"]) == ("spare", "healthy", [])
    health = item(node.shim, "claims")["devices"][0]["health"]
    assert (health["state"], health["message"]) == ("unhealthy", "too hot")
    assert item(node.shim, "drivers")["health"] == {"unhealthy": 1}
    table = columns(node.shim, "devices", GPU)
    assert table[1][:3] == [GPU, "node-1/one-0", "unhealthy"]
    assert columns(node.shim, "claims")[1][6] == "unhealthy"
    assert ctl(node.shim, "devices", "-o", "name").stdout.splitlines() == [
        f"device/{GPU}/node-1/one-0", f"device/{GPU}/node-1/spare"]


def test_health_that_is_old_says_nothing(node):
    driver = node.driver(GPU, services=[V1, HEALTH])
    driver.say_health("gpu-0", "fine", health=dra_health.HEALTHY, health_check_timeout_seconds=1)
    driver.say_health("gpu-1", "too hot", health=dra_health.UNHEALTHY, health_check_timeout_seconds=1)
    wait_until(lambda: [one["health"]["state"] for one in ctl_json(node.shim, "devices")["driverDevices"]] ==
               ["unknown", "unknown"], "their time is over")
    assert item(node.shim, "drivers")["health"] == {"unhealthy": 0}


@pytest.mark.parametrize("arguments, words", [
    (("drivers", "a.b"), "no such driver is known; see cri-device-shimctl drivers"),
    (("devices", "a.b"), "no device of such a resource is known; see cri-device-shimctl resources"),
])
def test_what_there_is_not(at_work, arguments, words):
    done = ctl(at_work, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"error: {words}\n")


# ---- what is told besides ----

def kinds(shim, *arguments):
    return [one["kind"] for one in items(shim, "events", *arguments) if one["resource"]]


def test_events(node):
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1", "one")])
    node.kubelet.unprepare(GPU, [claim("c-1", "one")])
    driver.stop()
    wait_until(lambda: "driver-went" in kinds(node.shim), "it went")
    assert kinds(node.shim, "-r", GPU) == ["driver-came", "claim-prepared", "claim-unprepared", "driver-went"]
    came, prepared, unprepared, went = items(node.shim, "events", "-r", GPU)
    assert came["text"] == str(driver.endpoint) and went["text"]
    for one in (prepared, unprepared):
        assert one["claim"] == {"namespace": "default", "name": "one", "uid": "c-1"}
        assert one["ids"] == ["node-1/one-0"]
    assert came["claim"] is None
    shown = ctl(node.shim, "events").stdout
    assert "claim-prepared" in shown and "default/one" in shown


def test_a_restart_is_no_news(node):
    """Neither that the driver is there, nor that the claim is prepared."""
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1")])
    node.shim.terminate()
    node.shim.start()
    node.shim.wait_control()
    wait_until(lambda: node.kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices, "it is asked again")
    assert len(driver.calls_of("NodePrepareResources")) >= 2
    driver.stop()
    wait_until(lambda: "driver-went" in kinds(node.shim), "it went")
    assert [one for one in kinds(node.shim) if one != "driver-went"] == ["driver-came", "claim-prepared"]


def test_an_unprepare_that_is_put_off(shim):
    shim.wait_control()
    with Client(shim.feed) as client, pytest.raises(grpc.RpcError):
        client.unary(f"{FEED}PrepareClaims", bridge.ClaimsRequest(driver=GPU, claims=[bridge.Claim(
            namespace="default", uid="c-1", name="one")]).SerializeToString(), timeout=1)
    assert ask(shim, "UnprepareClaims", GPU, ["c-1"])[0].code == 0
    wait_until(lambda: kinds(shim) == ["claim-owed"], "it is told")


def test_status(node):
    assert ctl_json(node.shim, "status")["dra"] is None
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    assert ctl_json(node.shim, "status")["dra"] == {"drivers": 1, "connected": 1, "claims": 2, "prepared": 2, "owed": 0,
                                                    "waits": 0}
    assert "DRIVERS" in ctl(node.shim, "status").stdout
    driver.stop()
    wait_until(lambda: ctl_json(node.shim, "status")["dra"]["connected"] == 0, "it is gone")


def test_metrics(directory, make_shim, closing):
    path = directory / "metrics.sock"
    node = DraNode(directory, make_shim(metrics={"listen": str(path)}), closing)
    driver = node.driver(GPU)
    node.kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    node.kubelet.unprepare(GPU, [claim("c-1")])
    driver.on_prepare = lambda one: "no such device"
    node.kubelet.prepare(GPU, [claim("c-3")])
    families = scrape(path)
    assert families["drivers"].value(state="connected") == 1 and families["drivers"].value(state="away") == 0
    assert families["claims"].value(state="prepared") == 1 and families["claims"].value(state="owed") == 0
    requests = families["claim_requests_total"]
    assert requests.value(call="prepare", outcome="done") == 2
    assert requests.value(call="unprepare", outcome="done") == 1
    assert requests.value(call="prepare", outcome="driver-failed") == 1
    assert requests.value(call="unprepare", outcome="owed") == 0
    assert families["claim_requests_waiting"].value() == families["driver_wipes_total"].value() == 0


# ---- many ----

@pytest.fixture
def many(directory, shim, closing):
    """A daemon with 64 drivers, and 1,000 claims that one of them has prepared."""
    shim.wait_control()
    for number in range(DRIVERS):
        one = closing(Driver(shim.registry_dir, directory / "plugins", f"gpu{number}.example.com"))
        one.start()
    wait_until(lambda: [one["state"] for one in items(shim, "drivers")] == ["connected"] * DRIVERS, "all are there")
    answers = ask(shim, "PrepareClaims", "gpu0.example.com", [f"c-{number}" for number in range(CLAIMS)])
    assert {answer.code for answer in answers} == {0}
    return shim


def page(client, method, **request):
    answer = client.unary(CONTROL + method, control.ListRequest(**request).SerializeToString())[0]
    return getattr(control, f"{method}Response").FromString(answer)


def test_a_thousand_claims_of_sixty_four_drivers(many, make_client, make_plugin):
    """Pages go on where the one before ended, in the natural order, beside a daemon that has much to do."""
    make_plugin(many, PLUGIN, [f"g{number}" for number in range(64)])
    with busy(many, make_client, f"{PLUGIN}=2"):
        assert [one["name"] for one in items(many, "drivers")] == [f"gpu{number}.example.com" for number in range(DRIVERS)]
        assert [one["uid"] for one in items(many, "claims")] == [f"c-{number}" for number in range(CLAIMS)]
        devices = ctl_json(many, "devices")["driverDevices"]
        assert [one["name"] for one in devices] == [f"claim-c-{number}-0" for number in range(CLAIMS)]
    assert item(many, "drivers", "gpu0.example.com")["claims"]["prepared"] == CLAIMS


@pytest.mark.parametrize("method, of", [("Claims", lambda row: row.uid), ("DriverDevices", lambda row: row.name),
                                        ("Drivers", lambda row: row.name)])
def test_pages_are_bounded_and_go_on(many, method, of):
    with Client(many.control) as client:
        found, after, pages = [], [], 0
        while pages == 0 or after:
            one = page(client, method, after=after)
            assert len(one.rows) <= PAGE_ROWS_MAX and one.ByteSize() < 300 * 1024
            found += [of(row) for row in one.rows]
            after, pages = list(one.next), pages + 1
    assert len(found) == len(set(found)) == (DRIVERS if method == "Drivers" else CLAIMS)
    assert pages >= (1 if method == "Drivers" else 2)


@pytest.mark.release
def test_clients_that_never_read(many, make_client):
    bad = [Connection(many.control) for _ in range(15)]
    try:
        peak = Peak(many.pid)
        for _ in range(40):
            for one in bad:
                one.call(CONTROL + "Claims", framed(b""))
        make_client(many).Version()
        assert len(items(many, "claims")) == CLAIMS
        if not is_sanitized(many.pid):
            assert peak.growth() < 16 * MIB
    finally:
        for one in bad:
            one.close()
