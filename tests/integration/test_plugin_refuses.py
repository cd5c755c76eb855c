"""A plugin whose server says of a call that it has not looked at it (RFC 9113 §8.7), byte by byte."""

import grpc
import h2.errors
import pytest

from asking import by_annotation, envs, refused
from h2runtime import H2Runtime, Script
from plugin import allocate_answer, register
from protos import deviceplugin
from rawh2 import framed

GPU = "vendor.com/gpu"
REFUSED = Script(reset=h2.errors.ErrorCodes.REFUSED_STREAM)


class HandMade(H2Runtime):
    """`first`: how Allocate is answered, one after the other, before it is answered well."""

    def __init__(self, plugin_dir, first):
        super().__init__(plugin_dir / "hand_made.sock", script=self._script)
        self.first = list(first)

    def _script(self, call):
        if call.method == "Allocate":
            request = deviceplugin.AllocateRequest.FromString(call.body[5:])
            return self.first.pop(0) if self.first else Script(
                framed(allocate_answer(request).SerializeToString()))
        if call.method == "ListAndWatch":
            answer = deviceplugin.ListAndWatchResponse()
            for number in range(4):
                answer.devices.add(ID=f"g{number}", health="Healthy")
            return Script(framed(answer.SerializeToString()), ends=False)
        return Script(framed(b""))

    def of(self, method):
        return [call for call in self.calls if call.method == method]


@pytest.fixture
def hand_made(shim, closing):
    def make(*first):
        one = closing(HandMade(shim.plugin_dir, first))
        one.start()
        register(shim.plugin_dir, GPU, one.path.name)
        shim.wait_log("4 of 4 devices healthy")
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
