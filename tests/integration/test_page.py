"""The page for people, in a real browser, and what it asks the daemon."""

import contextlib
import http.client
import http.server
import json
import re
import socket
import threading

import grpc
import pytest

from asking import by_token, refused
from browser import Browser
from ctl import checked, ctl, ctl_json
from metrics import get
from shim import ROOT, accepts, check_config
from waiting import wait_until

GPU = "vendor.com/gpu"
NIC = "example.com/nic"
MANY = 2000
PAGE = 50


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("browser"))
    one.start()
    yield one
    one.close()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def page(browser, runtime, make_shim, closing):
    """page(**settings of Shim): a shim that shows it, and a tab with it, in which nothing may go wrong."""
    tabs = []

    def make(**settings):
        port = _free_port()
        shim = make_shim(metrics={"listen": f"127.0.0.1:{port}", "page": True}, **settings)
        tab = closing(browser.tab())
        tab.size(1280, 900)
        tab.port = port
        tab.forgiven = False
        tab.hurry()
        wait_until(lambda: asked(port, "/")[0] == 200, "the page is served")
        tab.open(f"http://127.0.0.1:{port}/")
        tab.wait_text("#live", "Live")
        tabs.append(tab)
        return shim, tab

    yield make
    assert runtime
    for tab in tabs:
        assert tab.forgiven or tab.wrong() == []


def asked(port, path, method="GET", **headers):
    """(status, headers, body) of a request of its own."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as one:
        try:
            one.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        except ConnectionRefusedError:
            return 0, {}, ""
        answer = one.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def named(shim, path, port):
    """One list of the page's, to its end."""
    items, after = [], []
    while True:
        query = "&".join(["rows=7"] + [f"after={part.replace('/', '%2F')}" for part in after])
        status, _, text = asked(port, f"/json/{path}?{query}")
        assert status == 200, text
        answer = json.loads(text)
        items += answer["items"]
        after = answer["next"]
        if not after:
            return items


def choose(tab, resource):
    tab.wait_text("#resources", resource)
    tab.value(f"[...document.querySelectorAll('#resources button')].find((b) => b.innerText === {resource!r}).click()")
    tab.wait_text("#devices h2", resource)


def contrasts(tab):
    """{what: WCAG 2's contrast of its text} of all kinds of text that are there."""
    return tab.value("""(() => {
        const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92
            : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = (element) => {
            for (let one = element; one; one = one.parentElement) {
                const color = rgb(getComputedStyle(one).backgroundColor);
                if (color.length === 3)
                    return color;
            }
            return [255, 255, 255];
        };
        const found = {};
        for (const kind of ["h1", "h2", "td", "th", ".quiet", "#live", "#version", "button.link", ".good", ".warn", ".bad"]) {
            const element = [...document.querySelectorAll(kind)].find((one) => one.offsetParent !== null);
            if (element) {
                const [a, b] = [light(rgb(getComputedStyle(element).color)), light(ground(element))];
                found[kind] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            }
        }
        return found;
    })()""")


def overflow(tab):
    """How far it could be scrolled to the side."""
    return tab.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")


# ---- in the browser ----

def test_what_there_is(page, make_plugin, make_client):
    """Devices and who has them, what waits and why, what was ordered, what came to pass; as it comes, by no
    reload. On a screen, on a telephone, in the dark, and by the keyboard alone."""
    shim, tab = page(plugins={"hold": "0s"})
    tab.value("window.first = true")
    tab.wait_text("#verdict", "1 thing not as it should be")
    tab.wait_text("#troubles", "bridge")
    assert "No container" in tab.text("#waiting")
    tab.wait_text("#none", "resources, pods")
    assert not tab.text("#resources")

    plugin = make_plugin(shim, GPU, ["g0", "g1", "g2", "g3"])
    make_plugin(shim, NIC, ["eth0"])
    client = make_client(shim)
    client.run(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    late = client.run_pod("late")
    with refused(grpc.StatusCode.UNAVAILABLE, "g0"):
        client.create(late, "main", annotations=by_token(GPU, "g0"))
    choose(tab, GPU)
    tab.wait_text("#devices", "g0", "running", "default/web/app", "g3", "free")
    tab.wait_text("#waiting", "default/late", "container main", 'pod "default/web"', "clears")
    tab.wait_text("#pods", "default/web", "default/late", "refused")
    tab.wait_text("#events", "allocated", "refused", "default/late/main")
    tab.wait_text("#verdict", "1 container or claim waiting")
    tab.wait("document.querySelector('#none').innerText === 'None: pods that are ended, DRA drivers, claims, taints, orders.'",
             "what there is none of")

    plugin.set_devices({"g0": True, "g1": False, "g2": True, "g3": True})
    tab.wait_text("#devices", "unhealthy")
    assert ctl(shim, "cordon", GPU, "g2", "--reason", "dust in the fan").returncode == 0
    assert ctl(shim, "taint", GPU, "g3", "example.com/hot=very:NoSchedule").returncode == 0
    tab.wait_text("#devices", "dust in the fan")
    tab.wait_text("#resources", "1 cordoned")
    tab.wait_text("#taints", "example.com/hot=very", "NoSchedule", "operator")
    tab.wait_text("#orders", "cordon", "dust in the fan")

    assert overflow(tab) <= 0
    for scheme, dark in (("light", False), ("dark", True)):
        tab.colors(scheme)
        assert tab.value("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0] < 100") is dark
        found = contrasts(tab)
        assert len(found) == 11 and min(found.values()) >= 4.5, (scheme, found)
    tab.size(360, 740, mobile=True)
    assert tab.value("innerWidth") == 360
    assert overflow(tab) <= 0
    tab.size(1280, 900)

    # By the keyboard: the other resource, on which the reader stands whatever comes meanwhile.
    tab.value("document.querySelector('#main').focus()")
    tab.press("Tab")
    assert tab.value("document.activeElement.innerText") == NIC
    tab.press("Enter")
    tab.wait_text("#devices", "eth0")
    plugin.set_devices({"g0": True, "g1": True, "g2": True, "g3": True})
    tab.wait("!document.querySelector('#resources tbody .bad')", "all are healthy")
    assert tab.value("document.activeElement.innerText") == NIC
    tab.press("Tab")
    assert tab.value("document.activeElement.innerText") == GPU

    # What a screen reader is told.
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    told = {(node["role"]["value"], node.get("name", {}).get("value")) for node in nodes if not node["ignored"]}
    assert {("table", "Resources 2"), ("table", f"Devices of {NIC}"), ("columnheader", "Holder"),
            ("rowheader", "eth0")} <= told, told
    assert "status" in {role for role, _ in told}

    plugin.stop()
    tab.wait_text("#resources", "grace", "left")
    plugin.start()
    tab.wait("!document.querySelector('#resources').innerText.includes('grace')", "it is back")
    assert tab.value("window.first"), "it was loaded anew"
    assert ctl_json(shim, "status")["node"] == tab.text("h1")


def test_names_that_are_no_markup(page, make_plugin, make_client):
    """Whatever a plugin, a pod or an operator calls things: it is shown as text, and within a telephone."""
    hostile = ["<script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "\"'><svg onload=window.hacked=1>",
               "\u202edrow\u202c", "x" * 300, "new\nline", "&lt;b&gt;", "__proto__"]
    shim, tab = page(plugins={"hold": "0s"})
    make_plugin(shim, GPU, hostile)
    client = make_client(shim)
    pod = client.run_pod("<script>hacked()</script>", namespace="<b>bold</b>")
    client.run(pod, "<i>app</i>", annotations=by_token(GPU, hostile[0]))
    late = client.run_pod("<img src=y onerror=window.hacked=1>")
    with refused(grpc.StatusCode.UNAVAILABLE):
        client.create(late, "constructor", annotations=by_token(GPU, hostile[0]))
    assert ctl(shim, "cordon", GPU, hostile[1], "--reason", "<h1>dust</h1>").returncode == 0
    tab.wait_text("#devices", *(name for name in hostile if "\n" not in name and "\u202e" not in name))
    tab.wait_text("#devices", "<b>bold</b>/<script>hacked()</script>/<i>app</i>", "<h1>dust</h1>")
    tab.wait_text("#waiting", "<img src=y onerror=window.hacked=1>", "constructor")
    tab.wait_text("#events", "<h1>dust</h1>")
    assert tab.value("document.querySelectorAll('main script, main img, main svg, main b, main i, main h1').length") == 0
    assert tab.value("window.hacked === undefined && ({}).made === undefined")
    tab.size(360, 740, mobile=True)
    assert overflow(tab) <= 0


def test_many_devices(page, make_plugin):
    """Page by page, so that neither the daemon nor the browser has to have all of them at once."""
    shim, tab = page()
    plugin = make_plugin(shim, GPU, [f"g{number}" for number in range(MANY)])
    tab.wait_text("#resources", str(MANY))
    tab.wait_text("#devices", "g0", f"g{PAGE - 1}")
    assert tab.value("document.querySelectorAll('#devices tbody tr').length") == PAGE

    def press(words, times=1):
        tab.value(f"for (const one of [...document.querySelectorAll('#devices button')])"
                  f" for (let n = 0; n < {times} && one.innerText === {words!r}; n++) one.click()")

    press("Next", times=3)  # before it is known where the page behind the next one begins
    tab.wait_text("#devices", "page 2", f"g{PAGE}", f"g{2 * PAGE - 1}")
    press("Next")
    tab.wait_text("#devices", "page 3", f"g{2 * PAGE}")
    press("Previous")
    tab.wait_text("#devices", "page 2", f"g{PAGE}")
    assert tab.value("document.querySelectorAll('#devices tbody tr').length") == PAGE
    assert len(asked(tab.port, f"/json/devices?resource={GPU}&rows=1000000")[2]) < 100_000

    # The row behind which the page begins is gone, and all behind it.
    plugin.set_devices({"g0": True, "g1": True})
    tab.wait_text("#resources", "2")
    tab.wait("document.querySelectorAll('#devices tbody tr').length === 2", "it begins anew")
    assert not tab.value("document.querySelector('#devices .pager').offsetParent")


def test_a_daemon_that_does_not_answer(page, make_plugin):
    """It says so, and since when; what was last known stays, and is not said to be live. A daemon that is back
    is shown again."""
    shim, tab = page()
    make_plugin(shim, GPU, ["g0"])
    tab.wait_text("#devices", "g0")
    assert tab.text("#lost") == ""
    shim.kill()
    tab.wait_text("#lost", "does not answer since", "no connection")
    assert re.search(r"since \d\d:\d\d:\d\d", tab.text("#lost"))
    assert re.search(r"As of \d\d:\d\d:\d\d, \d+s ago", tab.text("#live"))
    assert "g0" in tab.text("#devices")
    assert tab.value("document.querySelector('#lost').getAttribute('role')") == "alert"
    shim.start()
    tab.wait_text("#live", "Live")
    assert tab.text("#lost") == ""
    tab.forgiven = True  # it did not get what it asked for


# ---- in the browser, of a daemon that is scripted ----

THEN = "2026-01-02T03:04:05Z"
REASON = {"word": "driver-away", "text": "driver gpu.example.com is away", "clears": "start the driver"}
REFUSAL = {"reason": REASON, "code": "UNAVAILABLE", "times": 3, "first": THEN, "last": THEN}


def ending(name, state, due):
    return {"namespace": "prod", "name": name, "uid": f"u-{name}", "state": state, "since": None if state == "waits" else THEN,
            "dueInSeconds": due, "asked": [{"by": "eviction", "reason": "example.com/hot:NoExecute", "graceSeconds": None,
                                            "here": False}]}


def driver(name, **other):
    return {"name": name, "state": "connected", "since": THEN, "why": None, "services": ["v1.DRAPlugin"], "endpoints": [],
            "slices": None, "claims": {"known": 2, "prepared": 1, "owed": 0, "waits": 0}, "health": {"unhealthy": 1},
            "kubelet": "registered", **other}


def claim(name, state, health):
    return {"namespace": "prod", "name": name, "uid": f"u-{name}", "driver": "gpu.example.com", "state": state, "since": THEN,
            "stored": True, "preparedSince": THEN, "local": True, "waits": 1,
            "devices": [{"pool": "pool-a", "name": f"gpu-{name}", "shareId": None, "adminAccess": False, "cdi": [],
                         "health": {"state": health, "message": None, "said": THEN}}],
            "usedBy": [{"pod": f"prod/{name}", "uid": None, "container": "app"}], "usedByTotal": 3}


SCRIPTED = {
    "status": {
        "node": "node-7",
        "processes": [{"name": "cri-device-shim", "version": "1.2.3", "pid": 7, "uptimeSeconds": 86400},
                      {"name": "cri-device-shim-bridge", "version": None, "pid": None, "uptimeSeconds": None}],
        "runtime": {"endpoint": "/run/c.sock", "connected": False, "since": THEN, "name": None, "version": None, "listed": False},
        "kubelet": {"pid": 8, "uptimeSeconds": 5, "gate": "holding", "gateHeldSeconds": 4, "taken": "it has not taken vendor.com/gpu"},
        "degraded": [{"what": "store", "why": "state cannot be stored: disk full", "since": THEN}], "orders": [],
        "dra": {"drivers": 2, "connected": 1, "claims": 2, "prepared": 1, "owed": 1, "waits": 1},
        "published": [], "publishedMore": 0,
        "shutdown": {"state": "groups", "since": THEN, "delayed": True, "limitSeconds": 60, "wantedSeconds": 50, "knownPods": 9,
                     "group": {"number": 2, "of": 3, "priority": -5, "leftSeconds": 17}, "pods": 9, "remaining": 4,
                     "firstRemaining": ["prod/slow-1", "prod/slow-2"], "planned": None},
        "settings": [], "logLevelSet": None},
    "why": {"items": [], "more": False, "endings": [], "claims": [
        {"namespace": "prod", "name": "late", "uid": "u-late", "driver": "gpu.example.com", "state": "asked", "since": THEN,
         "waits": [{"asks": "prepare", "since": THEN, "refusedInSeconds": 31}], "step": "wait", "reason": REASON,
         "retryInSeconds": 12, "lastRefusal": {**REFUSAL, "asked": "prepare"}}]},
    "endings": [ending("hot", "evicting", None), ending("next", "waits", 42)],
    "drivers": [driver("gpu.example.com", state="away", why="the driver hung up",
                       claims={"known": 2, "prepared": 1, "owed": 1, "waits": 1}), driver("nic.example.com")],
    "claims": [claim("one", "prepared", "unhealthy"), claim("two", "owed", "healthy")],
    "taints": [{"resource": "vendor.com/gpu", "id": "g1", "key": "devices.cri-device-shim/unhealthy", "value": None,
                "effect": "NoSchedule", "source": "health", "reason": None, "since": THEN, "endsInSeconds": None,
                "heldBack": True, "followed": True, "pods": 2},
               {"resource": None, "id": None, "key": "example.com/all", "value": "x", "effect": "NoExecute", "source": "rule",
                "reason": "rule-1", "since": THEN, "endsInSeconds": 90, "heldBack": False, "followed": False, "pods": 0}],
    "orders": [{"kind": "grace", "resource": "vendor.com/gpu", "id": None, "reason": "a new driver", "since": THEN,
                "moreSeconds": 3600, "over": False}],
    "events": [{"id": 5, "last": THEN, "first": THEN, "times": 4, "kind": "claim-owed", "resource": "gpu.example.com", "ids": [],
                "idsTotal": 0, "namespace": None, "pod": None, "uid": None, "container": None,
                "claim": {"namespace": "prod", "name": "two", "uid": "u-two"}, "reason": None, "text": "the driver is away"}],
    "resources": [], "plugins": [], "pods": [],
}


@pytest.fixture
def scripted(browser, closing):
    """A tab with the page, whose daemon says SCRIPTED, each document as its schema has it."""
    answers = {}
    for name, value in SCRIPTED.items():
        document = value if isinstance(value, dict) else {"items": value}
        checked(name, json.dumps(document))
        answers[f"/json/{name}"] = (document if isinstance(value, dict) else {**document, "next": []}, "application/json")
    files = {"/": "page.html", "/page.css": "page.css", "/page.js": "page.js"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            if path in files:
                kind = {"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript"}[path]
                body = (ROOT / "shim/page" / files[path]).read_bytes()
            else:
                document, kind = answers[path]
                body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    tab = closing(browser.tab())
    tab.size(1280, 900)
    tab.open(f"http://127.0.0.1:{server.server_port}/")
    yield tab
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_else_there_may_be(scripted):
    """A shutdown, claims and their drivers, evictions, taints that are not followed, a kubelet that is held."""
    tab = scripted
    tab.wait_text("#live", "Live")
    tab.wait_text("#verdict", "1 thing not as it should be, 1 container or claim waiting")
    assert tab.text("h1") == "node-7"
    assert tab.value("document.title").startswith("! node-7")
    for section, words in {
            "shutdown": ("pods are ended", "2 of 3, priority -5, 17s left", "4 of 9 have not ended", "prod/slow-1, prod/slow-2 and 2 more"),
            "troubles": ("store", "state cannot be stored: disk full"),
            "waiting": ("prod/late", "claim, driver gpu.example.com", "prepare, for", "is refused in 31s", "in 12s", "driver-away",
                        "start the driver", "3 times"),
            "endings": ("prod/hot", "evicting", "prod/next", "in 42s", "eviction: example.com/hot:NoExecute"),
            "drivers": ("gpu.example.com", "away", "the driver hung up", "nic.example.com", "connected"),
            "claims": ("prod/one", "pool-a/gpu-one", "unhealthy", "prod/one/app and 2 more", "prod/two", "owed"),
            "taints": ("held back", "not followed", "any each", "example.com/all=x", "in 90s"),
            "orders": ("grace", "1h0m longer", "a new driver"),
            "events": ("claim-owed", "× 4", "claim prod/two", "the driver is away"),
            "processes": ("cri-device-shim-bridge", "away", "gate holding", "it has not taken vendor.com/gpu"),
    }.items():
        said = tab.text(f"#{section}")
        assert [one for one in words if one not in said] == [], (section, said)
    assert tab.text("#none") == "None: resources, pods."
    tab.size(360, 740, mobile=True)
    assert overflow(tab) <= 0
    assert tab.wrong() == []


# ---- what it asks ----

def test_the_same_as_ctl(make_shim, runtime, make_plugin, make_client, directory):
    """Each list, page by page, is as its command says, and status, why and events as well."""
    port = _free_port()
    shim = make_shim(metrics={"listen": f"127.0.0.1:{port}", "page": True}, plugins={"hold": "0s"})
    make_plugin(shim, GPU, [f"g{number}" for number in range(20)])
    make_plugin(shim, NIC, ["eth0"])
    client = make_client(shim)
    for number in range(9):
        client.run(client.run_pod(f"web-{number}"), "app", annotations=by_token(GPU, f"g{number}"))
    late = client.run_pod("late")
    with refused(grpc.StatusCode.UNAVAILABLE, "g0"):
        client.create(late, "main", annotations=by_token(GPU, "g0"))
    assert ctl(shim, "cordon", GPU, "g12").returncode == 0
    assert ctl(shim, "taint", GPU, "g13", "example.com/hot:NoSchedule").returncode == 0

    def timeless(value):
        """Without what may be another a moment later."""
        text = re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"time"', json.dumps(value))
        return json.loads(re.sub(r'"(uptime\w*)": \d+', r'"\1": 0', text))

    lengths = {}
    for name in ("resources", "plugins", "devices", "allocations", "pods", "orders", "taints", "endings", "drivers", "claims"):
        items = named(shim, name, port)
        assert timeless(items) == timeless(ctl_json(shim, name)["items"]), name
        lengths[name] = len(items)
    assert lengths == {"resources": 2, "plugins": 2, "devices": 21, "allocations": 9, "pods": 10, "orders": 2, "taints": 1,
                       "endings": 0, "drivers": 0, "claims": 0}
    assert named(shim, "driver-devices", port) == []
    for name in ("status", "why", "events"):
        answer = checked(name, asked(port, f"/json/{name}?rows=200")[2]) if name != "events" else \
            json.loads(asked(port, "/json/events?rows=200")[2])
        assert timeless(answer) == timeless(ctl_json(shim, name)), name
    assert [one["id"] for one in json.loads(asked(port, "/json/events?rows=2")[2])["items"]] == \
        [one["id"] for one in ctl_json(shim, "events")["items"][-2:]]
    assert len(json.loads(asked(port, "/json/why?pod=late")[2])["items"]) == 1
    assert json.loads(asked(port, "/json/why?pod=nobody")[2])["items"] == []
    assert {one["pod"] for one in json.loads(asked(port, "/json/allocations?pod=web-3")[2])["items"]} == {"web-3"}
    assert runtime and directory


def test_who_is_answered(make_shim, runtime):
    """GET and HEAD alone; nobody who was sent by a name that is not ours; nothing that another page could use, or a
    browser keeps."""
    port = _free_port()
    make_shim(metrics={"listen": f"127.0.0.1:{port}", "page": True})
    wait_until(lambda: asked(port, "/")[0] == 200, "the page is served")
    for path in ("/", "/page.css", "/page.js", "/json/status", "/json/why", "/json/devices"):
        status, headers, body = asked(port, path)
        assert status == 200 and body
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Connection"].lower() == "close"
        assert "Access-Control-Allow-Origin" not in headers
        assert asked(port, path, "HEAD")[::2] == (200, "")
        assert asked(port, path, "POST")[0] == asked(port, path, "DELETE")[0] == 405
        for host in ("evil.example", "evil.example:80", f"127.0.0.1.evil.example:{port}", ""):
            status, _, text = asked(port, path, Host=host)
            assert status in (400, 421) and "pid" not in text, host
        for host in (f"localhost:{port}", "localhost", "[::1]:80", "127.0.0.1"):
            assert asked(port, path, Host=host)[0] == 200, host
    assert asked(port, "/healthz", Host="node.example")[0] == 200  # as before
    assert asked(port, "/metrics", Host="node.example")[0] == 200
    for path in ("/json/", "/json/nothing", "/page.html", "/json", "/json/../metrics"):
        assert asked(port, path)[0] == 404, path
    for query in ("after=x", "after=x&after=y&after=z", "&".join(["after=x"] * 9)):
        assert asked(port, f"/json/devices?{query}")[0] == 400, query
    for query in ("rows=-1", "rows=x", "rows=", "rows=99999999999999999999", "nothing=else", "%00=%ff", "resource=%3Cb%3E"):
        assert asked(port, f"/json/devices?{query}")[0] == 200, query
    assert runtime


def test_what_is_as_before_is_not_sent_again(make_shim, runtime, make_plugin):
    port = _free_port()
    shim = make_shim(metrics={"listen": f"127.0.0.1:{port}", "page": True})
    plugin = make_plugin(shim, GPU, ["g0", "g1"])

    def told():
        return json.loads(asked(port, "/json/devices")[2])["items"]

    wait_until(lambda: len(told()) == 2, "they are listed")
    for path in ("/json/devices", "/page.js"):
        tag = asked(port, path)[1]["ETag"]
        status, headers, body = asked(port, path, If_None_Match=f'"other", W/{tag}')
        assert (status, headers["ETag"], body) == (304, tag, "")
        assert asked(port, path, If_None_Match='"other"')[0] == 200
    tag = asked(port, "/json/devices")[1]["ETag"]
    plugin.set_devices({"g0": True, "g1": False})
    wait_until(lambda: asked(port, "/json/devices", If_None_Match=tag)[0] == 200, "it is another answer")
    assert runtime


def test_off_unless_it_is_wanted(make_shim, runtime, directory):
    """It tells of pods, so nobody is shown it by a metrics.listen of before; behind a unix socket it is root's."""
    path = directory / "metrics.sock"
    make_shim(metrics={"listen": str(path)})
    wait_until(lambda: accepts(path), "the metrics are served")
    assert get(path, "/metrics")[0] == 200
    for what in ("/", "/page.js", "/json/status", "/json/pods"):
        assert get(path, what)[0] == 404
    status, words = check_config("[metrics]\npage = true\n", directory)
    assert status == 1 and "page is true, and listen says nowhere" in words
    assert runtime


def test_behind_a_unix_socket(make_shim, runtime, directory):
    path = directory / "metrics.sock"
    make_shim(metrics={"listen": str(path), "page": True})
    wait_until(lambda: accepts(path), "the page is served")
    assert path.stat().st_mode & 0o777 == 0o600
    assert get(path, "/")[1] == "text/html; charset=utf-8"
    assert json.loads(get(path, "/json/status")[2])["processes"][0]["name"] == "cri-device-shim"
    assert runtime
