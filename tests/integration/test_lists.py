"""The lists of cri-device-shimctl: resources, plugins, devices, allocations, pods."""

import concurrent.futures
import json
import re
import threading
import time

import grpc
import pytest

from asking import by_annotation, by_token, refused
from busy import busy
from criclient import Client
from ctl import ctl, ctl_json
from process import MIB, Peak, is_sanitized, rss_bytes
from protos import CONTROL, control
from rawh2 import Connection, framed
from telling import tell
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
NIC = "other.com/nic"
LISTS = ("resources", "plugins", "devices", "allocations", "pods")
PAGE_ROWS_MAX = 1000  # CONTROL_PAGE_ROWS_MAX


def items(shim, command, *arguments):
    return ctl_json(shim, command, *arguments)["items"]


def item(shim, command, *arguments):
    (one,) = items(shim, command, *arguments)
    return one


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def columns(shim, *arguments):
    """The table, its cells; for cells without a blank."""
    return [line.split() for line in ctl(shim, *arguments).stdout.splitlines()]


@pytest.fixture
def two_pods(at_work, make_client, make_plugin):
    """A shim with two plugins; pod "web" has g0, pod "db" was refused."""
    make_plugin(at_work, GPU, ["g0"], numa={"g0": 1})
    make_plugin(at_work, NIC, {"n2": True, "n10": False})
    client = make_client(at_work)
    web = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    client.run(web, "main")
    other = client.run_pod("db", namespace="shop", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        client.create(other, "main")
    return at_work, web, other


# ---- each list ----

def test_nothing_yet(at_work):
    for command in LISTS:
        assert items(at_work, command) == []
        assert ctl(at_work, command, "-o", "name").stdout == ""
        assert ctl(at_work, command).returncode == 0


def test_resources(two_pods):
    shim, _, _ = two_pods
    nic, gpu = items(shim, "resources")
    assert gpu == {"name": GPU, "state": "active", "exclusive": True, "devices": 1, "healthy": 1,
                   "held": 1, "free": 0, "kubelet": {"devices": 1, "healthy": 0}, "cordoned": 0,
                   "withdrawn": False, "withdrawal": None}
    assert nic == {"name": NIC, "state": "active", "exclusive": True, "devices": 2, "healthy": 1,
                   "held": 0, "free": 1, "kubelet": {"devices": 2, "healthy": 1}, "cordoned": 0,
                   "withdrawn": False, "withdrawal": None}
    assert item(shim, "resources", GPU) == gpu
    head, row = columns(shim, "resources", GPU, "-o", "wide")
    assert dict(zip(head, row)) == {"NAME": GPU, "STATE": "active", "DEVICES": "1", "HEALTHY": "1",
                                    "HELD": "1", "FREE": "0", "KUBELET": "0/1",
                                    "ORDERS": "-", "EXCLUSIVE": "yes", "REASON": "-"}
    assert ctl(shim, "resources", "-o", "name").stdout == f"resource/{NIC}\nresource/{GPU}\n"


def test_plugins(two_pods):
    shim, _, _ = two_pods
    gpu = item(shim, "plugins", GPU)
    assert without(gpu, "since") == {"resource": GPU, "socket": "vendor.com_gpu.sock",
                                     "state": "active", "away": None,
                                     "options": {"preferredAllocation": False, "preStart": False}}
    assert columns(shim, "plugins", GPU)[0] == ["RESOURCE", "STATE", "SINCE", "GRACE-LEFT",
                                                "EXTENDED", "SOCKET", "ERROR"]
    assert ctl(shim, "plugins", "-o", "name").stdout == f"plugin/{NIC}\nplugin/{GPU}\n"


@pytest.mark.usefixtures("away")
def test_a_plugin_that_is_away(at_work):
    one = wait_until(lambda: (row := item(at_work, "plugins"))["away"] and row, "it is away")
    assert 0 < one["away"]["graceLeftSeconds"] <= 60 and one["away"]["error"]
    assert item(at_work, "resources")["free"] == 0
    head, row = columns(at_work, "plugins")
    assert row[head.index("GRACE-LEFT")].endswith("s")


def test_built_in_devices(runtime, make_shim):
    shim = make_shim(devices=[{"resource": "local.dev/null", "path": "/dev/null"}])
    wait_until(lambda: ctl(shim, "resources").stdout.count("\n") == 2, "it is listed")
    assert item(shim, "resources")["state"] == "builtin"
    assert items(shim, "plugins") == []
    assert ctl(shim, "plugins", "local.dev/null").returncode == 3


def test_devices(two_pods):
    shim, web, _ = two_pods
    n2, n10, g0 = items(shim, "devices")
    assert without(g0, "since") == {
        "resource": GPU, "id": "g0", "health": "healthy", "free": False, "kubelet": "unhealthy",
        "numaNodes": [1], "holdersTotal": 1, "cordon": None, "withdrawn": False,
        "withdrawal": None, "published": None,
        "holders": [{"namespace": "default", "pod": "web", "uid": web.uid, "container": "main",
                     "state": "running"}]}
    assert (n2["id"], n2["health"], n2["free"], n2["holders"]) == ("n2", "healthy", True, [])
    assert (n10["id"], n10["health"], n10["free"]) == ("n10", "unhealthy", False)
    assert [without(one, "since") for one in items(shim, "devices", NIC)] == [without(n2, "since"), without(n10, "since")]
    head, row = columns(shim, "devices", GPU)
    assert dict(zip(head, row)) == {"RESOURCE": GPU, "ID": "g0", "HEALTH": "healthy", "NUMA": "1",
                                    "STATE": "running", "HOLDER": "default/web/main", "CORDON": "-"}
    assert ctl(shim, "devices", NIC, "-o", "name").stdout == f"device/{NIC}/n2\ndevice/{NIC}/n10\n"


def test_a_device_that_is_not_listed_any_more(two_pods, make_plugin):
    shim, web, _ = two_pods
    plugin = make_plugin(shim, GPU, ["g1"])
    wait_until(lambda: len(items(shim, "devices", GPU)) == 2, "another list")
    g0, g1 = items(shim, "devices", GPU)
    assert (g0["health"], g0["since"], g0["free"]) == ("unlisted", None, False)
    assert g0["holders"][0]["uid"] == web.uid
    assert (g1["health"], g1["free"]) == ("healthy", True)
    assert plugin


def test_allocations(two_pods):
    shim, web, _ = two_pods
    one = item(shim, "allocations")
    assert without(one, "since") == {
        "namespace": "default", "pod": "web", "uid": web.uid, "container": "main",
        "resource": GPU, "ids": ["g0"], "asked": [], "state": "running", "chosenBy": "shim", "stored": True,
        "optionsCached": True, "waitsFor": []}
    for filters in ((GPU,), ("-p", "web"), ("--pod", web.uid), ("-p", "default/web"),
                    ("-n", "default")):
        assert without(item(shim, "allocations", *filters), "since") == without(one, "since")
    for filters in ((NIC,), ("-p", "db"), ("-n", "shop"), ("-n", "default", "-p", "db")):
        assert items(shim, "allocations", *filters) == []
    chosen = {who: ctl(shim, "allocations", "--chosen-by", who, "-o", "name").stdout for who in ("shim", "kubelet", "claim")}
    assert chosen == {"shim": f"allocation/default/web/main/{GPU}\n", "kubelet": "", "claim": ""}
    wrong = ctl(shim, "allocations", "--chosen-by", "me")
    assert wrong.returncode == 2 and '"me" is none of those who choose' in wrong.stderr
    head, row = columns(shim, "allocations", "-o", "wide")
    assert "WAITS-FOR" in head and row[:6] == ["default", "web", "main", GPU, "g0", "running"]
    assert ctl(shim, "allocations", "-o", "name").stdout == f"allocation/default/web/main/{GPU}\n"


def test_what_the_kubelet_chose(at_work, make_client, make_plugin):
    make_plugin(at_work, GPU, ["g0"])
    client = make_client(at_work)
    client.run(client.run_pod("web"), "main", annotations=by_token(GPU, "g0"))
    assert item(at_work, "allocations", "--chosen-by", "kubelet")["chosenBy"] == "kubelet"
    assert items(at_work, "allocations", "--chosen-by", "shim") == []


def test_pods(two_pods):
    shim, web, other = two_pods
    running, was_refused = items(shim, "pods")
    assert running == {"namespace": "default", "name": "web", "uid": web.uid, "sandbox": "ready",
                       "containersTotal": 1,
                       "containers": [{"name": "main", "devices": 1, "state": "running",
                                       "waitsSince": None, "lastRefusal": None}]}
    (container,) = was_refused["containers"]
    assert (container["devices"], container["state"]) == (0, None)
    assert (container["lastRefusal"]["word"], container["lastRefusal"]["times"]) == (
        "too-few-devices", 1)
    assert items(shim, "pods", "web") == items(shim, "pods", "-n", "default") == [running]
    for filters in (("shop/db",), (other.uid,), ("db", "-n", "shop")):
        assert item(shim, "pods", *filters)["uid"] == other.uid
    assert ctl(shim, "pods", "-o", "name").stdout == "pod/default/web\npod/shop/db\n"
    table = columns(shim, "pods")
    assert table[0] == ["NAMESPACE", "NAME", "CONTAINERS", "DEVICES", "STATE", "WAITED", "REFUSED"]
    assert table[1][:5] == ["default", "web", "1", "1", "running"]
    assert table[2][:7] == ["shop", "db", "1", "0", "refused", "-", "too-few-devices"]


def test_a_pod_that_waits(runtime, make_shim, make_client, make_plugin):
    shim = make_shim(resources=[{"name": GPU, "hold": "60s"}])
    plugin = make_plugin(shim, GPU, ["g0"])
    shim.wait_log("is active: ")
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        call = pool.submit(client.run, pod, "main")
        try:
            one = wait_until(lambda: (rows := items(shim, "pods")) and rows[0], "it waits")
            assert one["containers"][0]["waitsSince"]
            assert columns(shim, "pods")[1][4] == "waits"
        finally:
            plugin.start()
        call.result(GENEROUS_S)
    assert items(shim, "pods")[0]["containers"][0]["waitsSince"] is None


@pytest.mark.parametrize("arguments, words", [
    (("resources", "a.b/c"), "no such resource is known; see cri-device-shimctl resources"),
    (("devices", "a.b/c"), "no device of such a resource is known; see cri-device-shimctl resources"),
    (("plugins", "a.b/c"), "no plugin serves such a resource; see cri-device-shimctl plugins"),
    (("pods", "nobody"), "no such pod has devices, waits for any or was refused"),
])
def test_what_there_is_not(at_work, arguments, words):
    done = ctl(at_work, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"error: {words}\n")


# ---- pages ----

def page(client, method, **request):
    answer = client.unary(CONTROL + method, control.ListRequest(**request).SerializeToString())[0]
    return getattr(control, f"{method}Response").FromString(answer)


def test_pages_are_bounded_and_go_on(at_work, make_plugin):
    ids = [f"g{number}" for number in range(2500)]
    make_plugin(at_work, GPU, ids)
    wait_until(lambda: item(at_work, "resources")["devices"] == len(ids), "they are listed")
    found, after = [], []
    with Client(at_work.control) as client:
        while True:
            one = page(client, "Devices", after=after)
            assert len(one.rows) <= PAGE_ROWS_MAX
            found += [row.id for row in one.rows]
            after = one.next
            if not after:
                break
    assert found == ids
    assert [row["id"] for row in items(at_work, "devices")] == ids


def test_an_allocation_of_very_many_ids_is_one(at_work, make_client, make_plugin):
    """On the wire it is in several pages."""
    ids = [f"GPU-{number:036d}" for number in range(12000)]
    make_plugin(at_work, GPU, ids)
    client = make_client(at_work)
    client.run(client.run_pod("a"), "main", annotations=by_token(GPU, "GPU-" + "0" * 36))
    client.run(client.run_pod("b"), "main", annotations=by_token(GPU, *ids[1:]))
    client.run_pod("c")
    first, second = items(at_work, "allocations")
    assert (len(first["ids"]), second["ids"]) == (1, ids[1:])
    assert "and 11996 more" in ctl(at_work, "allocations").stdout
    with Client(at_work.control) as control_client:
        one = page(control_client, "Allocations")
        assert len(one.next) == 6 and one.rows[1].ids_total == 11999 > len(one.rows[1].ids)


CUT = re.compile(r"x{1024}\.\.\.\((\d+) bytes, [0-9a-f]{16}\)")


def test_ids_of_any_length_are_listed(at_work, make_client, make_plugin):
    """Longer than a request may be, alike at their beginning, and more than a page has room for: each is
    told once, cut; a page may end with one, and so may what is counted for one."""
    short = [f"a{number:04}" for number in range(1990)]
    long = [f"{'x' * 70_000}{number:03}" for number in range(200)]
    make_plugin(at_work, GPU, short + long)
    client = make_client(at_work)
    wait_until(lambda: item(at_work, "resources")["devices"] == 2190, "they are listed")
    client.run(client.run_pod("a"), "main", annotations=by_token(GPU, *short, *long[:20]))
    told = [one["id"] for one in items(at_work, "devices")]
    assert told[:1990] == short and len(set(told)) == 2190
    assert {CUT.fullmatch(one)[1] for one in told[1990:]} == {"70003"}
    holding = [one["id"] for one in items(at_work, "devices") if one["holders"]]
    assert item(at_work, "allocations")["ids"] == holding == told[:2010]
    resource = item(at_work, "resources")
    assert (resource["held"], resource["free"]) == (2010, 180)
    [container] = ctl_json(at_work, "why", "a")["items"]
    assert [one["idsTotal"] for one in container["now"]] == [2010]
    names = ctl(at_work, "devices", "-o", "name").stdout.splitlines()
    assert names == [f"device/{GPU}/{one}" for one in told]


def test_a_place_by_a_long_id_that_is_gone_is_none(at_work, make_plugin):
    """Nobody can say what comes after it."""
    make_plugin(at_work, GPU, ["g0", "x" * 2000])
    wait_until(lambda: item(at_work, "resources")["devices"] == 2, "they are listed")
    told = items(at_work, "devices")[-1]["id"]
    with Client(at_work.control) as client:
        assert list(page(client, "Devices", after=[GPU, told]).rows) == []
        with pytest.raises(grpc.RpcError) as error:
            page(client, "Devices", after=[GPU, told.replace("2000", "2001")])
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as error:
            page(client, "Resources", after=[GPU, told.replace("2000", "2001"), *"0000"])
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_one_id_that_fills_a_message(at_work, make_plugin):
    make_plugin(at_work, GPU, ["g0", "x" * (16 * MIB - 64), "z0"])
    wait_until(lambda: item(at_work, "resources")["devices"] == 3, "they are listed")
    first, long, last = (one["id"] for one in items(at_work, "devices"))
    assert (first, CUT.fullmatch(long)[1], last) == ("g0", str(16 * MIB - 64), "z0")


def test_names_without_end_leave_the_lists_whole(at_work, make_client, make_plugin):
    """Who is refused for them is not remembered; the others are."""
    make_plugin(at_work, GPU, ["g0"])
    client = make_client(at_work)
    for name in ("x" * 5000, *(f"{'x' * 100_000}{number}" for number in range(4)), "web"):
        pod = client.run_pod(name, annotations=by_annotation("main", f"{GPU}=2"))
        with pytest.raises(grpc.RpcError):
            client.create(pod, "main")
    assert [one["name"] for one in items(at_work, "pods")] == ["web", "x" * 5000]
    assert len(items(at_work, "why")) == 2


def test_orders_of_long_ids(at_work):
    """As long as a command line takes; what is set by one is taken back by it."""
    ids = [f"{'x' * 30_000}{number}" for number in range(10)]
    for one in ids:
        ctl_json(at_work, "cordon", GPU, one)
    told = ctl_json(at_work, "orders")["items"]
    assert len({one["id"] for one in told}) == 10 and all(CUT.fullmatch(one["id"]) for one in told)
    assert CUT.search(ctl(at_work, "orders").stdout)
    assert CUT.fullmatch(ctl_json(at_work, "status")["orders"][0]["newest"]["id"])
    for one in ids:
        ctl_json(at_work, "uncordon", GPU, one)
    assert ctl_json(at_work, "orders")["items"] == []


@pytest.mark.parametrize("method", ["Resources", "Plugins", "Devices", "Allocations", "Pods", "Orders", "Taints", "Endings", "Drivers", "Claims",
                                    "DriverDevices"])
def test_a_place_that_is_none(at_work, method):
    with Client(at_work.control) as client, pytest.raises(grpc.RpcError) as error:
        page(client, method, after=["a"] * 9)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


# ---- a daemon that has much to do ----

def test_under_load(at_work, make_client, make_plugin):
    """Creates go on, and each answer is as its schema says."""
    shim = at_work
    make_plugin(shim, GPU, [f"g{number}" for number in range(64)])
    with busy(shim, make_client, f"{GPU}=2"):
        for _ in range(4):
            for command in LISTS:
                items(shim, command)
    assert item(shim, "resources")["devices"] == 64


@pytest.mark.release
def test_a_hundred_thousand_devices(request, at_work, make_client, make_plugin):
    """One list, in its order; calls of the runtime go on between the pages, and memory goes back."""
    ids = [f"GPU-{number:06d}-aaaaaaaaaaaaaaaaaaaa" for number in range(100_000)]
    make_plugin(at_work, GPU, ids)
    client = make_client(at_work)
    wait_until(lambda: item(at_work, "resources")["devices"] == len(ids), "they are listed")
    client.run(client.run_pod("a"), "main", annotations=by_token(GPU, *ids[:20_000]))
    before = rss_bytes(at_work.pid)
    longest_s, over = [0.0], threading.Event()

    def look():
        while not over.is_set():
            began = time.monotonic()
            client.Version()
            longest_s[0] = max(longest_s[0], time.monotonic() - began)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        began = time.monotonic()
        names = ctl(at_work, "devices", "-o", "name").stdout.splitlines()
        seconds = time.monotonic() - began
    finally:
        over.set()
        looking.join(GENEROUS_S)
    assert names == [f"device/{GPU}/{one}" for one in ids]
    tell(request, f"100,000 devices listed in {seconds:.1f} s; the longest call through the relay "
                  f"meanwhile: {longest_s[0] * 1000:.0f} ms")
    resource = item(at_work, "resources")
    assert (resource["held"], resource["free"]) == (20_000, 80_000)
    assert resource["kubelet"] == {"devices": 100_000, "healthy": 100_000}
    if not is_sanitized(at_work.pid):
        assert rss_bytes(at_work.pid) < before + 4 * MIB
    assert json.loads(ctl(at_work, "devices", "-o", "json").stdout)["items"][-1]["id"] == ids[-1]


def test_many_held_devices_are_counted_in_pieces(at_work, make_client, make_plugin):
    """Each page looks at so many devices at the most; the rows are what they would be in one."""
    ids = [f"g{number}" for number in range(5000)]
    for name in (GPU, NIC):
        make_plugin(at_work, name, ids)
    make_plugin(at_work, "small.com/one", ["s0"])
    client = make_client(at_work)
    wait_until(lambda: sum(one["devices"] for one in items(at_work, "resources")) == 10_001, "listed")
    client.run(client.run_pod("a"), "main",
               annotations={**by_token(GPU, *ids[:3000]), **by_token(NIC, *ids[:2500])})
    assert ctl(at_work, "cordon", NIC, "g1", "g4999", "g9999").returncode == 0
    with Connection(at_work.control) as connection:
        pages, rows, after = 0, {}, []
        while pages == 0 or after:
            request = control.ListRequest(after=after)
            stream = connection.call(CONTROL + "Resources", framed(request.SerializeToString()))
            page = control.ResourcesResponse.FromString(connection.wait_end(stream).payload)
            rows |= {row.name: row for row in page.rows}
            pages, after = pages + 1, list(page.next)
    assert pages >= 6 and len(rows) == 3
    told = {name: (row.devices, row.held, row.free, row.cordoned) for name, row in rows.items()}
    assert told == {GPU: (5000, 3000, 2000, 0), NIC: (5000, 2500, 2499, 3), "small.com/one": (1, 0, 1, 0)}
    devices = items(at_work, "devices", NIC)
    assert rows[NIC].shown_healthy == sum(one["kubelet"] == "healthy" for one in devices)
    assert [one["free"] for one in items(at_work, "resources")] == [2499, 1, 2000]


# ---- clients that mean no good ----

@pytest.mark.release
def test_a_client_that_never_reads(at_work, make_client, make_plugin):
    """It asks for page after page; what waits for it is bounded as limits.h says, for all clients
    that there may be, and nobody else notices."""
    make_plugin(at_work, GPU, [f"GPU-{number:036d}" for number in range(5000)])
    wait_until(lambda: item(at_work, "resources")["devices"] == 5000, "they are listed")
    bad = [Connection(at_work.control) for _ in range(15)]
    try:
        peak = Peak(at_work.pid)
        for _ in range(40):
            for one in bad:
                one.call(CONTROL + "Devices", framed(b""))
        make_client(at_work).Version()
        assert len(items(at_work, "devices")) == 5000
        if not is_sanitized(at_work.pid):
            assert peak.growth() < 16 * MIB
    finally:
        for one in bad:
            one.close()
