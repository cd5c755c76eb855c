"""A plugin whose server says of a call that it has not looked at it (RFC 9113 §8.7), byte by byte."""

import threading

import grpc
import h2.errors
import pytest

from asking import by_annotation, envs, refused
from h2runtime import H2Runtime, Script
from limits import limits_of
from plugin import allocate_answer, register
from protos import deviceplugin
from rawh2 import framed
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
EXTRA_MAX = limits_of("shim/plugins/extra_channels.h")["EXTRA_CHANNELS_MAX"]
REFUSED = Script(reset=h2.errors.ErrorCodes.REFUSED_STREAM)


class HandMade(H2Runtime):
    """`first`: how Allocate is answered, one after the other, before it is answered well; None: well."""

    def __init__(self, plugin_dir, first, number):
        super().__init__(plugin_dir / "hand_made.sock", script=self._script)
        self.first = list(first)
        self.number = number

    def _script(self, call):
        if call.method == "Allocate":
            request = deviceplugin.AllocateRequest.FromString(call.body[5:])
            return self.first and self.first.pop(0) or Script(
                framed(allocate_answer(request).SerializeToString()))
        if call.method == "ListAndWatch":
            answer = deviceplugin.ListAndWatchResponse()
            for number in range(self.number):
                answer.devices.add(ID=f"g{number}", health="Healthy")
            return Script(framed(answer.SerializeToString()), ends=False)
        return Script(framed(b""))

    def of(self, method):
        return [call for call in self.calls if call.method == method]


@pytest.fixture
def shim(runtime, make_shim):
    """One that asks a plugin for many containers at once: else there are no more calls than one."""
    return make_shim(plugins={"hold": "300ms", "grace": "1m", "allocates_at_once": 0})


@pytest.fixture
def hand_made(shim, closing):
    def make(*first, number=4):
        one = closing(HandMade(shim.plugin_dir, first, number))
        one.start()
        register(shim.plugin_dir, GPU, one.path.name)
        shim.wait_log(f"{number} of {number} devices healthy")
        return one

    return make


def create(client, name):
    return client.create(client.run_pod(name, annotations=by_annotation("app", f"{GPU}=1")), "app")


def test_refused_it_is_asked_once_more(hand_made, client, runtime):
    plugin = hand_made(REFUSED)
    create(client, "web")
    assert envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"].startswith("g")
    once, again = plugin.of("Allocate")
    assert once.body == again.body
    assert once.headers[:-1] == again.headers[:-1]
    assert once.headers[-1][0] == again.headers[-1][0] == "grpc-timeout"


def test_and_not_more_than_that(hand_made, client):
    plugin = hand_made(REFUSED, REFUSED)
    with refused(grpc.StatusCode.UNAVAILABLE, "REFUSED_STREAM"):
        create(client, "web")
    assert len(plugin.of("Allocate")) == 2


def test_what_it_may_have_looked_at_is_not_repeated(hand_made, client):
    plugin = hand_made(Script(reset=h2.errors.ErrorCodes.CANCEL))
    with refused(grpc.StatusCode.UNAVAILABLE, "CANCEL"):
        create(client, "web")
    assert len(plugin.of("Allocate")) == 1


def test_where_a_connection_takes_no_more_calls_there_is_another(hand_made, shim, client):
    """The list stays where it is, as with a server that limits a connection's age."""
    plugin = hand_made(Script(goes_after=3))
    for number in range(3):
        create(client, f"web{number}")
    assert len(plugin.of("Allocate")) == 4
    assert len(plugin.of("ListAndWatch")) == 1
    assert "lost" not in shim.log()


def test_another_one_that_goes_away_has_not_looked_at_it_either(hand_made, client):
    """The second creation's call was never sent where the list is, so it is asked once more."""
    plugin = hand_made(Script(goes_after=3), None, Script(goes_after=1))
    for number in range(2):
        create(client, f"web{number}")
    assert len(plugin.of("Allocate")) == 4


def test_beside_one_that_is_going_away_there_is_another(hand_made, shim, client, background):
    """Each takes one call and no more, and goes when that is answered. There are four beside the
    list's, which is where it ends."""
    release = threading.Event()
    last = Script(framed(allocate_answer(deviceplugin.AllocateRequest(container_requests=[{}]))
                         .SerializeToString()), leaves=True, release=release)
    plugin = hand_made(Script(goes_after=3), *[last] * EXTRA_MAX, number=EXTRA_MAX + 1)
    slow = []
    for number in range(EXTRA_MAX):
        slow.append(background.submit(create, client, f"slow{number}"))
        wait_until(lambda n=number: len(plugin.of("Allocate")) == n + 2, "it is asked")
    with refused(grpc.StatusCode.UNAVAILABLE, "takes no more calls"):
        create(client, "many")
    assert not any(one.done() for one in slow)
    release.set()
    for one in slow:
        one.result(GENEROUS_S)
    create(client, "web")
    assert len(plugin.of("ListAndWatch")) == 1
    assert "lost" not in shim.log()
