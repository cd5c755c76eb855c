"""`why` for every reason that a claim waits or is refused for: each is provoked in a daemon that runs.

A kind of devicemgr/words/claim.h without a row here fails test_every_kind_has_a_row.
"""

import contextlib
import re
import threading

import grpc
import pytest

from agent_process import Agent
from api_server import ApiServer
from ctl import ctl, ctl_json
from dra_driver import Driver
from hung_workers import HungWorkers
from protos import FEED, bridge, dra
from shim import ROOT
from waiting import GENEROUS_S, wait_until

GPU = "gpu.example.com"
CLAIMS_MAX = 4096
CLAIMS_OF_ONE = 512
RESPONSE_BYTES_MAX = 64 * 1024


class Node:
    """Daemon and runtime; what a scenario needs besides, it starts itself."""

    def __init__(self, directory, make_shim, closing):
        self.directory, self._make_shim, self._closing = directory, make_shim, closing
        self.shim = None
        self._stack = contextlib.ExitStack()
        self.calls = []
        self.releases = []

    def start(self, **settings):
        self.shim = self._make_shim(**settings)
        self.shim.wait_control()
        return self

    def close(self):
        for release in self.releases:
            release.set()
        for call in self.calls:
            call.cancel()
        self._stack.close()

    def driver(self, name=GPU):
        one = self._closing(Driver(self.shim.registry_dir, self.directory / "plugins", name))
        one.start()
        one.wait_registered()
        wait_until(lambda: ctl_json(self.shim, "drivers", name)["items"][0]["state"] == "connected", "it is there")
        return one

    def begin(self, method, *uids, driver=GPU, name="claim-{}"):
        """What the bridge asks; a future of the answers."""
        channel = self._stack.enter_context(grpc.insecure_channel(f"unix:{self.shim.feed}"))
        request = bridge.ClaimsRequest(driver=driver, claims=[
            bridge.Claim(namespace="default", uid=uid, name=name.format(uid)) for uid in uids])
        call = channel.unary_unary(FEED + method, request_serializer=lambda message: message.SerializeToString(),
                                   response_deserializer=bridge.ClaimsResponse.FromString).future(
                                       request, timeout=GENEROUS_S)
        self.calls.append(call)
        return call

    def ask(self, method, *uids, **more):
        return list(self.begin(method, *uids, **more).result(GENEROUS_S).answers)

    def hang_workers(self):
        self._stack.enter_context(contextlib.closing(HungWorkers(self.shim.pid)))

    def hang(self, driver, what):
        """Its calls of that kind do not end before the test; an event: that one has come."""
        asked, release = threading.Event(), threading.Event()
        real = getattr(driver, what)
        self.releases.append(release)

        def hanging(one):
            asked.set()
            release.wait(GENEROUS_S)
            return real(one)

        setattr(driver, what, hanging)
        return asked

    def why(self, name):
        (one,) = ctl_json(self.shim, "why", name)["claims"]
        return one

    def wait_why(self, name, word):
        """What it waits for, once it does."""
        def look():
            claims = ctl_json(self.shim, "why")["claims"]
            return [one for one in claims if one["name"] == name and one["reason"] and one["reason"]["word"] == word]
        wait_until(look, f"{name} waits: {word}")
        return self.why(name)


@pytest.fixture
def node(directory, runtime, make_shim, closing):  # pylint: disable=unused-argument
    one = Node(directory, make_shim, closing)
    with contextlib.closing(one):
        yield one


# ---- each kind: what `why` says of the claim ----

def claim_names_wrong(node):
    (answer,) = node.start().ask("PrepareClaims", "", name="claim-x")
    return "claim-x", answer


def too_many_claims(node):
    node.start().driver()
    for first in range(0, CLAIMS_MAX, CLAIMS_OF_ONE):
        answers = node.ask("PrepareClaims", *(f"c-{n}" for n in range(first, first + CLAIMS_OF_ONE)))
        assert not any(answer.code for answer in answers)
    (answer,) = node.ask("PrepareClaims", "more")
    return "claim-more", answer


def driver_away(node):
    node.start().begin("PrepareClaims", "c-1")
    return "claim-c-1", None


def claim_owed(node):
    """Its prepare was asked for, and never sent."""
    call = node.start().begin("PrepareClaims", "c-1")
    node.wait_why("claim-c-1", "driver-away")
    call.cancel()
    assert node.ask("UnprepareClaims", "c-1")[0].code == 0
    return "claim-c-1", None


def other_claim_owed(node):
    """The driver is back, and busy with that one's unprepare."""
    claim_owed(node)
    driver = Driver(node.shim.registry_dir, node.directory / "plugins", GPU)
    asked = node.hang(driver, "on_unprepare")
    node._closing(driver).start()
    assert asked.wait(GENEROUS_S)
    node.begin("PrepareClaims", "c-2")
    return "claim-c-2", None


def claim_used(node):
    node.start().driver()
    node.ask("PrepareClaims", "c-1")
    with node.shim.client() as client:
        pod = client.run_pod("web")
        request = client.create_request(pod, "main")
        request.config.CDI_devices.add(name=f"{GPU}/device=c-1")
        client.StartContainer(container_id=client.CreateContainer(request).container_id)
    (answer,) = node.ask("UnprepareClaims", "c-1")
    return "claim-c-1", answer


def driver_busy(node):
    """With a prepare that nobody waits for any more."""
    driver = node.start().driver()
    asked = node.hang(driver, "on_prepare")
    call = node.begin("PrepareClaims", "c-1")
    assert asked.wait(GENEROUS_S)
    call.cancel()
    node.begin("UnprepareClaims", "c-1")
    return "claim-c-1", None


def driver_asked(node):
    asked = node.hang(node.start().driver(), "on_prepare")
    node.begin("PrepareClaims", "c-1")
    assert asked.wait(GENEROUS_S)
    return "claim-c-1", None


def claim_unstored(node):
    """The workers hang, so that no commit begins."""
    node.start().driver()
    node.hang_workers()
    node.begin("PrepareClaims", "c-1")
    return "claim-c-1", None


def claim_store_failed(node):
    node.start().driver()
    ctl(node.shim, "checkpoint", "verify")  # behind what is being stored, which has the files open
    for name in ("checkpoint.db", "checkpoint.db-wal"):
        (node.shim.state_dir / name).unlink()
    (answer,) = node.ask("PrepareClaims", "c-1")
    return "claim-c-1", answer


def driver_answer_too_large(node):
    driver = node.start().driver()
    driver.on_prepare = lambda one: [dra.Device(pool_name="p", device_name="d", cdi_device_ids=["x" * RESPONSE_BYTES_MAX])]
    (answer,) = node.ask("PrepareClaims", "c-1")
    return "claim-c-1", answer


def driver_failed(node):
    driver = node.start().driver()
    driver.on_prepare = lambda one: "no such device"
    (answer,) = node.ask("PrepareClaims", "c-1")
    return "claim-c-1", answer


def driver_lost(node):
    """It ends each time that it is asked for this claim."""
    driver = node.start().driver()
    asked, ended = threading.Semaphore(0), threading.Semaphore(0)

    def never_answered(_claim):
        asked.release()
        ended.acquire(timeout=GENEROUS_S)  # pylint: disable=consider-using-with
        return []

    driver.on_prepare = never_answered
    call = node.begin("PrepareClaims", "c-1")
    call.add_done_callback(lambda _: asked.release())
    while not call.done():  # how often it was asked is not told: a call that arrives as it ends is lost as well
        assert asked.acquire(timeout=GENEROUS_S)  # pylint: disable=consider-using-with
        driver.stop()
        ended.release()
        driver.start()
    (answer,) = call.result(GENEROUS_S).answers
    return "claim-c-1", answer


# By its word; the scenarios have the names of their words.
ROWS = {scenario.__name__.replace("_", "-"): scenario for scenario in (
    claim_names_wrong, too_many_claims, driver_away, claim_owed, other_claim_owed, claim_used, driver_busy,
    driver_asked, claim_unstored, claim_store_failed, driver_answer_too_large, driver_failed,
    driver_lost)}
# Nobody can ask a daemon of these; the device manager's own tests provoke them.
UNSEEN = {"claims-unread": "the feed begins when the checkpoint is read",
          "too-many-claims-asked": "the feed takes fewer at once",
          "shim-stops": "the control socket is closed first (test_one_that_is_stopped_says_so)"}


def kinds():
    """{word: gRPC code} of the device manager's table."""
    text = (ROOT / "devicemgr/words/claim.c").read_text()
    return dict(re.findall(r'\[CLAIM_\w+\] =\s+\{"([a-z-]+)",\s+CODE_(\w+),', text))


def test_every_kind_has_a_row():
    header = (ROOT / "devicemgr/words/claim.h").read_text()
    named = re.search(r"enum claim_refusal_kind \{(.*?)\};", header, re.DOTALL)[1]
    assert len(kinds()) == len(set(re.findall(r"^    (CLAIM_\w+),", named, re.MULTILINE)) - {"CLAIM_REFUSAL_KINDS"})
    assert set(ROWS) | set(UNSEEN) == set(kinds()) and not set(ROWS) & set(UNSEEN)


@pytest.mark.parametrize("word", ROWS)
def test_why(node, word):
    name, answer = ROWS[word](node)
    if answer is None:  # it waits
        one = node.wait_why(name, word)
        assert one["step"] in ("ask", "wait") and one["reason"]["text"] and one["reason"]["clears"]
        assert one["waits"] or word == "claim-owed"
    else:
        one = node.why(name)
        last = one["lastRefusal"]
        assert (last["reason"]["word"], last["code"], last["times"]) == (word, kinds()[word], 1)
        said = last["reason"]["text"]
        assert answer.message in (said, said.partition("the driver said: ")[2])
    shown = ctl(node.shim, "why", name)
    assert shown.returncode == 0 and f"[{word}]" in shown.stdout and name in shown.stdout


# ---- what it says besides ----

def test_a_claim_of_which_nothing_is_in_the_way(node):
    node.start().driver()
    node.ask("PrepareClaims", "c-1")
    one = node.why("claim-c-1")
    assert (one["step"], one["state"], one["reason"], one["waits"], one["lastRefusal"]) == ("go", "prepared", None, [], None)
    assert ctl_json(node.shim, "why")["claims"] == []
    assert ctl(node.shim, "why", "c-1", "-o", "name").stdout == f"claim/default/claim-c-1/{GPU}\n"


def test_what_waits_says_until_when(node):
    node.start().begin("PrepareClaims", "c-1")
    (wait,) = node.wait_why("claim-c-1", "driver-away")["waits"]
    assert wait["asks"] == "prepare" and 0 < wait["refusedInSeconds"] <= 40
    assert "the kubelet waits for its prepare for" in ctl(node.shim, "why").stdout


def test_what_its_driver_is_asked_has_no_end_of_ours(node):
    driver_asked(node)
    (wait,) = node.wait_why("claim-c-1", "driver-asked")["waits"]
    assert wait["refusedInSeconds"] is None


def test_a_pod_that_terminates(node):
    """Its claim was made for it, by its name; the driver is away when it is to be unprepared."""
    driver = node.start().driver()
    node.ask("PrepareClaims", "c-1", name="web-gpu-x7k2p")
    driver.stop()
    wait_until(lambda: ctl_json(node.shim, "drivers")["items"][0]["state"] == "gone", "it is gone")
    node.begin("UnprepareClaims", "c-1", name="web-gpu-x7k2p")
    wait_until(lambda: ctl_json(node.shim, "why")["claims"], "it waits")
    for pod in ("web", "default/web"):
        one = node.why(pod)
        assert (one["reason"]["word"], one["waits"][0]["asks"]) == ("driver-away", "unprepare")
        assert "start the driver" in one["reason"]["clears"]
    for other in ("we", "other/web", "web-gpu", "default/web-gpu-x7k2"):
        assert ctl(node.shim, "why", other).returncode == 3, other


@pytest.mark.parametrize("of_pod", [
    {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}},
    {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "shared", "requestMappings": []}}}])
def test_a_pod_whose_claims_the_agent_knows(node, directory, closing, of_pod):
    """Its own, or what the scheduler has made for its extended resources."""
    server = closing(ApiServer(directory / "pki"))
    server.start()
    server.put("nodes", {"metadata": {"name": "node-1"}, "spec": {}, "status": {}})
    node.start(cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")})
    agent = closing(Agent(directory, server.kubeconfig(directory / "kubelet.conf", "node-1")))
    agent.start()
    node.begin("PrepareClaims", "c-1", name="shared")
    wait_until(lambda: ctl_json(node.shim, "why")["claims"], "it waits")
    assert ctl(node.shim, "why", "web").returncode == 3
    server.put("pods", {"metadata": {"name": "web", "namespace": "default", "uid": "u-1"},
                        "spec": {"nodeName": "node-1", **of_pod.get("spec", {})}, "status": of_pod.get("status", {})})
    for pod in ("web", "default/web", "u-1"):
        wait_until(lambda pod=pod: ctl(node.shim, "why", pod).returncode == 0, "the agent has told of it")
        assert node.why(pod)["name"] == "shared"
    assert ctl(node.shim, "why", "other/web").returncode == 3


def test_refusals_are_counted(node):
    driver_failed(node)
    node.ask("PrepareClaims", "c-1")
    last = node.why("c-1")["lastRefusal"]
    assert (last["times"], last["asked"], last["reason"]["text"]) == (
        2, "prepare", f"claim default/claim-c-1, driver {GPU}: the driver said: no such device")


def test_asking_changes_nothing(node):
    driver_asked(node)
    node.begin("UnprepareClaims", "c-1")
    wait_until(lambda: len(node.why("c-1")["waits"]) == 2, "both wait")
    for _ in range(20):
        assert [one["asks"] for one in node.why("c-1")["waits"]] == ["prepare", "unprepare"]


def test_one_that_is_stopped_says_so(node):
    call = node.start().begin("PrepareClaims", "c-1")
    node.wait_why("claim-c-1", "driver-away")
    node.shim.terminate()
    try:
        (answer,) = call.result(GENEROUS_S).answers
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.UNAVAILABLE
    else:
        assert answer.message.endswith("the shim is being stopped")
