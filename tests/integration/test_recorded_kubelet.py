"""What a real kubelet sent, played to the bridge, to the gate and to the daemon.

The captures are of grpc-go on both ends. A client's bytes go to the process under test as they are,
however they are cut; what it answers is decoded, and must be right for that client.
"""

import collections
import contextlib
import json
import os
import re
import shutil
import socket
import threading

import h2.settings
import pytest

import kubelet_checkpoint
import rawpair
from asking import by_token
from bridge_process import Bridge
from capture import (ACK, DATA, END_STREAM, GOAWAY, HEADERS, PING, PREFACE,
                     RST_STREAM, SETTINGS, TO_CLIENT, TO_SERVER, Frame, FrameReader, Frames,
                     StreamReader, connect, frames_of, load, random_chunks, rechunked, replay, sent,
                     streams_of, wait_taken, without_table)
from feed import Feed
from feed_server import FeedServer, Shown
from h2runtime import H2Runtime, Script, script_of
from named_socket import NamedProcess
from protos import DEVICE_PLUGIN, RUNTIME, deviceplugin
from rawh2 import framed
from shim import ROOT
from waiting import GENEROUS_S, wait_until

CAPTURES = ROOT / "tests/integration/captures"
CHECKPOINT = CAPTURES / kubelet_checkpoint.NAME
WIDGET = "vendor.example/widget"
IDS = ["w0", "w1", "w2", "w3"]
HELD = {"w0", "w2"}  # by the recorded checkpoint
LIST_AND_WATCH = DEVICE_PLUGIN + "ListAndWatch"
LIST_CONTAINERS = RUNTIME + "ListContainers"
RELIST = framed(b"\n\x00")  # ListContainers with the empty filter
ENDLESS = {LIST_AND_WATCH}  # answered when the first message has come

CUTS = {"as recorded": lambda records: records,
        "byte by byte": lambda records: rechunked(records, lambda: 1),
        "at random, seed 1": lambda records: rechunked(records, random_chunks(1)),
        "at random, seed 2": lambda records: rechunked(records, random_chunks(2))}

NICE = -10


@pytest.fixture(autouse=True)
def in_front():
    """Of who waits for a processor, what a test plays comes first, and so do the threads and processes
    that it starts, where that may be. Byte by byte an exchange is thousands of turns between them, each
    behind all others on a busy machine; a kubelet that takes as long is given up or let go."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, before)


def recorded(name):
    """As it would have been with the bridge, which allows its client no header table."""
    records = load(CAPTURES / f"{name}.cap")
    return without_table(records) if name == "kubelet-to-plugin" else records


def pieces(records, direction, cut):
    """What is sent at a time: one direction's records, cut; "at once": all of it."""
    if cut == "at once":
        return [sent(records, direction)]
    return [record.data for record in CUTS[cut](records) if record.direction == direction]


class Peer:
    """An end that sends what the test gives it, and keeps what it is sent."""

    def __init__(self, sock, outgoing):
        incoming = TO_CLIENT if outgoing == TO_SERVER else TO_SERVER
        self.socket = sock
        self.sent = StreamReader(outgoing)
        self.got = StreamReader(incoming)
        self.frames = []
        self._frames = FrameReader(incoming)

    def close(self):
        self.socket.close()

    def send(self, data):
        self.sent.feed(data)
        self.socket.sendall(data)
        wait_taken(self.socket)

    def send_aside(self, chunks):
        """From a thread, for more than the sockets may hold; join it."""
        def send_all():
            for chunk in chunks:
                self.socket.sendall(chunk)
                wait_taken(self.socket)

        self.sent.feed(b"".join(chunks))
        thread = threading.Thread(target=send_all, daemon=True)
        thread.start()
        return thread

    def ask(self, number, path, body):
        """Calls it; the header block leaves no trace in the recorded client's header table."""
        self.send(rawpair.headers(number, rawpair.request_fields(path)).encode()
                  + Frame(DATA, END_STREAM, number, body).encode())

    def receive_until(self, condition):
        while not condition():
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError(f"the connection ended; came: {self.frames}")
            self.frames += self._frames.feed(data)
            self.got.feed(data)

    def answered(self):
        """The calls of it that are answered."""
        return {number for number, one in self.sent.streams.items() if one.ended
                and (self.got.streams[number].ended
                     or one.fields[":path"] in ENDLESS and self.got.streams[number].messages)}

    def asked(self):
        return {number for number, one in self.sent.streams.items() if one.ended}

    def acknowledged(self):
        """All of its SETTINGS and PINGs are."""
        return all(_count(self.got, kind, ACK) == _count(self.sent, kind, 0)
                   for kind in (SETTINGS, PING))

    def settle(self, but=frozenset()):
        """Takes all that is owed to it, but answers of the calls in `but`."""
        self.receive_until(lambda: self.asked() - but <= self.answered() and self.acknowledged())

    def check_conduct(self):
        """What grpc-go insists on of the other end, whichever it is: SETTINGS come first, its PINGs
        are acknowledged in order; nothing is torn down, and it is not pinged (its servers hang up
        on clients that ping)."""
        assert (self.frames[0].type, self.frames[0].flags) == (SETTINGS, 0)
        others = self.got.others
        assert not [frame for frame in others if frame.type in (GOAWAY, RST_STREAM)]
        assert [frame.payload for frame in others if (frame.type, frame.flags) == (PING, ACK)] == [
            frame.payload for frame in self.sent.others if (frame.type, frame.flags) == (PING, 0)]
        assert _count(self.got, PING, 0) == 0
        assert _count(self.got, SETTINGS, ACK) == _count(self.sent, SETTINGS, 0)
        for stream in self.got.streams.values():
            for name, _ in (field for block in stream.blocks for field in block):
                assert name == name.lower() and name not in ("connection", "transfer-encoding")


def _count(reader, kind, flags):
    return sum((frame.type, frame.flags) == (kind, flags) for frame in reader.others)


# ---- the bridge as the device plugin ----


@pytest.fixture
def feed(directory, closing):
    one = closing(FeedServer(directory / "run" / "bridge.sock"))
    one.resources = {WIDGET: Shown(IDS, numa={one_id: [0] for one_id in IDS})}
    one.start()
    return one


@pytest.fixture
def bridge(directory, feed, closing):
    """Not started."""
    return closing(Bridge(directory))


@pytest.fixture
def kubelet_sock(bridge, closing):
    """Where a kubelet listens: nobody accepts by himself."""
    bridge.kubelet_dir.mkdir()
    listener = closing(socket.socket(socket.AF_UNIX))
    listener.settimeout(GENEROUS_S)
    listener.bind(str(bridge.kubelet_dir / "kubelet.sock"))
    listener.listen()
    return listener


class Registrar(Peer):
    """The kubelet's end of the connection on which the bridge registers, with recorded words."""

    def __init__(self, listener):
        sock, _ = listener.accept()
        sock.settimeout(GENEROUS_S)
        super().__init__(sock, TO_CLIENT)
        self._records = recorded("plugin-register")

    def greet(self, cut="as recorded"):
        """The words it says on its own: it takes the whole request."""
        self._play(self._records[:3], cut)
        self.receive_until(lambda: self.request.ended)

    def answer(self, cut="as recorded", end=None):
        """All of it, or so many bytes."""
        if end is not None:
            self.socket.sendall(sent(self._records[3:], TO_CLIENT)[:end])
            return
        self._play(self._records[3:], cut)
        self.receive_until(self.acknowledged)

    def _play(self, records, cut):
        for piece in pieces(records, TO_CLIENT, cut):
            self.send(piece)

    @property
    def request(self):
        return self.got.streams[1]


@pytest.mark.parametrize("cut", [*CUTS, "at once"])
def test_registers_as_a_go_plugin_does(feed, bridge, kubelet_sock, closing, cut):
    """... with a Go server, which refuses requests that others would take."""
    bridge.start()
    registrar = closing(Registrar(kubelet_sock))
    registrar.greet(cut)
    registrar.answer(cut)
    kubelet = closing(Peer(connect(bridge.endpoint(WIDGET)), TO_SERVER))
    kubelet.send(sent(recorded("kubelet-to-plugin"), TO_SERVER))
    feed.wait_report(WIDGET)
    registrar.check_conduct()
    assert list(registrar.got.streams) == [1], "one resource, one call"

    theirs = streams_of(sent(recorded("plugin-register"), TO_SERVER), TO_SERVER)[1]
    ours = registrar.request
    check_request_head(ours, theirs)
    assert len(ours.messages) == 1 and len(ours.body) == 5 + len(ours.messages[0])
    request = deviceplugin.RegisterRequest.FromString(ours.messages[0])
    as_theirs = deviceplugin.RegisterRequest.FromString(theirs.messages[0])
    assert request.version == as_theirs.version == "v1beta1"
    assert request.resource_name == as_theirs.resource_name == WIDGET
    assert request.endpoint == f"cri-device-shim/{as_theirs.endpoint}"
    assert (bridge.kubelet_dir / request.endpoint).is_socket()
    assert request.options == deviceplugin.DevicePluginOptions(
        get_preferred_allocation_available=True)


def check_request_head(ours, theirs):
    """Our header fields are a Go client's: the same names once each, pseudo-headers first; the same
    values, but for who it is and how long it waits."""
    assert len(ours.blocks) == 1
    names = [name for name, _ in ours.blocks[0]]
    assert sorted(names) == sorted({*names})
    assert not [name for name in names[4:] if name.startswith(":")]
    free = {"user-agent", "grpc-timeout", "grpc-accept-encoding"}  # the last one: what it can read
    assert ({name: value for name, value in ours.fields.items() if name not in free}
            == {name: value for name, value in theirs.fields.items() if name not in free})
    assert ours.fields["user-agent"].startswith("cri-device-shim/")
    assert re.fullmatch(r"\d{1,8}[HMSmun]", ours.fields["grpc-timeout"])


@pytest.fixture
def serving(feed, bridge, kubelet_sock, closing):
    """The bridge, about to be registered."""
    bridge.start()
    registrar = closing(Registrar(kubelet_sock))
    registrar.greet()
    registrar.answer()
    return bridge


@pytest.mark.parametrize("cut", [*CUTS, "at once"])
def test_answers_the_recorded_kubelet(serving, closing, cut):
    kubelet = closing(Peer(connect(serving.endpoint(WIDGET)), TO_SERVER))
    for piece in pieces(recorded("kubelet-to-plugin"), TO_SERVER, cut):
        kubelet.send(piece)
        if cut == "as recorded":
            kubelet.settle()
    kubelet.settle()
    check_answers(kubelet, preferred=[[], []])


def test_answers_what_the_feed_prefers(feed, serving, closing):
    """The recorded plugin's own choice."""
    feed.prefer = lambda request, _: [*request.must_include, *(
        one for one in ("w2", "w0") if one not in request.must_include)][:request.size]
    kubelet = closing(Peer(connect(serving.endpoint(WIDGET)), TO_SERVER))
    kubelet.send(sent(recorded("kubelet-to-plugin"), TO_SERVER))
    kubelet.settle()
    check_answers(kubelet, preferred=[["w2"], ["w2", "w0"]])
    asked = {one.size: one for one in feed.prefers}  # each came to a thread of its own
    assert [(size, sorted(one.available), list(one.must_include))
            for size, one in sorted(asked.items())] == [(1, IDS, []), (2, IDS, ["w2"])]
    theirs = streams_of(sent(recorded("kubelet-to-plugin"), TO_CLIENT), TO_CLIENT)
    for number, one in kubelet.sent.streams.items():
        if one.fields[":path"].endswith(("GetPreferredAllocation", "ListAndWatch")):
            assert kubelet.got.streams[number].messages == theirs[number].messages


def take_on(kubelet_sock, directory, closing, dial=connect):
    """The kubelet takes on the bridge that registers: it dials back and asks for the options before
    it answers Register, and for the list, and all else, after it. `dial`: as the process that
    listens."""
    registrar = closing(Registrar(kubelet_sock))
    registrar.greet()
    request = deviceplugin.RegisterRequest.FromString(registrar.request.messages[0])
    kubelet = closing(Peer(dial(directory / request.endpoint), TO_SERVER))
    played = pieces(recorded("kubelet-to-plugin"), TO_SERVER, "as recorded")
    watches = next(at for at, piece in enumerate(played)
                   if any((frame.type, frame.stream) == (HEADERS, 3)
                          for frame in frames_of(piece, TO_CLIENT)))
    for piece in played[:watches]:
        kubelet.send(piece)
        kubelet.settle()
    registrar.answer()
    for piece in played[watches:]:
        kubelet.send(piece)
        kubelet.settle()
    registrar.check_conduct()
    return kubelet


def test_registers_and_serves_in_the_recorded_order(feed, bridge, kubelet_sock, closing):
    bridge.start()
    kubelet = take_on(kubelet_sock, bridge.kubelet_dir, closing)
    feed.wait_report(WIDGET)
    assert not any(one.stored for report in feed.reports for one in report.resources)
    kubelet_checkpoint.write(bridge.kubelet_dir, CHECKPOINT.read_text())
    assert feed.wait_report(WIDGET, lambda one: one.registered and one.stored).version == 1
    check_answers(kubelet, preferred=[[], []])


def test_kubelet_dies_at_every_byte_of_its_calls(serving, closing):
    """The bridge is none the worse for it."""
    data = sent(recorded("kubelet-to-plugin"), TO_SERVER)
    for end in range(len(data)):
        with connect(serving.endpoint(WIDGET)) as sock:
            sock.sendall(data[:end])
    check_one_that_lives(serving, data, closing)


def check_one_that_lives(bridge, data, closing):
    """When the bridge learns that a stream has ended it ends all connections, also that of a kubelet
    that has just come, or has its answers: that comes again, as often as others died before it."""
    for _ in data:
        kubelet = closing(Peer(connect(bridge.endpoint(WIDGET)), TO_SERVER))
        try:
            kubelet.send(data)
            kubelet.settle()
            check_answers(kubelet, preferred=[[], []])
            return
        except ConnectionError:
            kubelet.close()
    raise AssertionError("the bridge ends every connection")


def test_kubelet_dies_at_every_byte_of_its_answer_to_register(feed, bridge, kubelet_sock, closing):
    """The bridge comes again each time, and is registered in the end."""
    bridge.start()
    for end in range(len(sent(recorded("plugin-register")[3:], TO_CLIENT))):
        registrar = Registrar(kubelet_sock)
        registrar.greet()
        registrar.answer(end=end)
        registrar.close()
    kubelet = take_on(kubelet_sock, bridge.kubelet_dir, closing)
    feed.wait_report(WIDGET)
    check_answers(kubelet, preferred=[[], []])


def check_answers(kubelet, preferred):
    """Of a bridge to all of kubelet-to-plugin.cap."""
    # what it would send of its own accord comes before the last ACK
    kubelet.send(Frame(PING, 0, 0, b"the last").encode())
    kubelet.settle()
    kubelet.check_conduct()
    assert kubelet.got.streams.keys() == kubelet.sent.streams.keys()
    answers = {}
    for number, asked in kubelet.sent.streams.items():
        path, answer = asked.fields[":path"], kubelet.got.streams[number]
        head = dict(answer.blocks[0])
        assert (head[":status"], head["content-type"]) == ("200", "application/grpc"), path
        assert answer.blocks[0][0] == (":status", "200")
        assert len(answer.messages) == 1
        assert len(answer.body) == 5 + len(answer.messages[0]), path
        if path in ENDLESS:
            assert not answer.ended and len(answer.blocks) == 1
        else:
            assert answer.ended and len(answer.blocks) == 2
            assert dict(answer.blocks[1])["grpc-status"] == "0", path
        answers.setdefault(path.removeprefix(DEVICE_PLUGIN), []).append(answer.messages[0])
    assert {name: len(messages) for name, messages in answers.items()} == {
        "GetDevicePluginOptions": 1, "ListAndWatch": 1, "GetPreferredAllocation": 2, "Allocate": 2,
        "PreStartContainer": 3}
    check_messages(answers, preferred)


def check_messages(answers, preferred):
    assert deviceplugin.DevicePluginOptions.FromString(answers["GetDevicePluginOptions"][0]) == (
        deviceplugin.DevicePluginOptions(get_preferred_allocation_available=True))
    theirs = streams_of(sent(recorded("kubelet-to-plugin"), TO_CLIENT), TO_CLIENT)[3].messages[0]
    shown = deviceplugin.ListAndWatchResponse.FromString(answers["ListAndWatch"][0])
    assert shown == deviceplugin.ListAndWatchResponse.FromString(theirs)
    assert [[list(container.deviceIDs) for container in
             deviceplugin.PreferredAllocationResponse.FromString(one).container_responses]
            for one in answers["GetPreferredAllocation"]] == [[ids] for ids in preferred]
    for message, ids in zip(answers["Allocate"], (["w2"], ["w2", "w0"])):
        (container,) = deviceplugin.AllocateResponse.FromString(message).container_responses
        assert list(container.annotations) == ["devices.cri-device-shim/vendor.example_widget"]
        (token,) = container.annotations.values()
        assert json.loads(token) == {"resource": WIDGET, "ids": ids}
        container.annotations.clear()
        assert container == deviceplugin.ContainerAllocateResponse()
    assert answers["PreStartContainer"] == [b""] * 3


# ---- the gate, before a recorded kubelet ----


def answers_of(*names):
    """{(path, body): Script} of all that was asked in captures; the last answer, where it was asked
    more than once."""
    answers = {}
    for name in names:
        records = recorded(name)
        given = streams_of(sent(records, TO_CLIENT), TO_CLIENT)
        for number, one in streams_of(sent(records, TO_SERVER), TO_SERVER).items():
            fields = given[number].fields
            answers[one.fields[":path"], one.body] = Script(
                given[number].body, int(fields["grpc-status"]), fields.get("grpc-message", ""))
    return answers


@pytest.fixture
def make_runtime(runtime_socket, closing):
    """make_runtime(*captures): one that answers as the recorded one did."""
    def make(*names):
        answers = answers_of(*names)
        one = closing(H2Runtime(
            runtime_socket, {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000},
            lambda call: answers.get((call.path, call.body)) or script_of(call)))
        one.start()
        return one

    return make


@pytest.fixture
def start_shim(make_shim, make_plugin):
    """start_shim(gate_timeout): one with WIDGET to be shown, and the kubelet's checkpoint in its
    place."""
    def start(gate_timeout="60s"):
        shim = make_shim(start=False, bridge={"gate_timeout": gate_timeout})
        shim.kubelet_plugin_dir.mkdir()
        shutil.copyfile(CHECKPOINT, shim.kubelet_plugin_dir / CHECKPOINT.name)
        shim.start()
        make_plugin(shim, WIDGET, IDS, numa=dict.fromkeys(IDS, 0))
        shim.wait_log("4 of 4 devices healthy")  # before that there is nothing to show
        rawpair.wait_quiet(shim)
        return shim

    return start


@pytest.fixture
def kubelet(closing):
    return closing(NamedProcess("kubelet"))


@pytest.fixture
def report(closing, kubelet):
    """report(shim): a bridge comes, and says that the kubelet has all."""
    def make(shim):
        feed = closing(Feed(shim.feed))
        watcher = closing(feed.watch())
        watcher.wait(lambda shown: shown[WIDGET].health() == dict.fromkeys(IDS, True))
        feed.report(kubelet.pid, watcher.shown, stored=True)

    return make


class Counted:
    """A socket, and how many bytes came on it."""

    def __init__(self, sock):
        self._socket = sock
        self.received = 0

    def recv(self, size):
        data = self._socket.recv(size)
        self.received += len(data)
        return data

    def __getattr__(self, name):
        return getattr(self._socket, name)


def first_relist(records):
    """(its stream, how many bytes to the server come before its DATA)."""
    data = sent(records, TO_SERVER)
    at = len(PREFACE)
    lists = {number for number, one in streams_of(data, TO_SERVER).items()
             if one.fields[":path"] == LIST_CONTAINERS}
    for frame in frames_of(data, TO_SERVER):
        if frame.type == DATA and frame.stream in lists and frame.payload == RELIST:
            return frame.stream, at
        at += len(frame.encode())
    raise AssertionError("no relist")


RECORDED = ["kubelet-restart-runtime", "kubelet-runtime"]


def creates_of(records):
    return {number for number, one in
            streams_of(sent(records, TO_SERVER), TO_SERVER).items()
            if one.fields[":path"] == RUNTIME + "CreateContainer"}


def check_same(records, client_got, server_got):
    """Both ends got what was recorded; only calls of which the shim withholds the message, the
    creates and the relist that was held, may be cut anew."""
    loose = creates_of(records) | {first_relist(records)[0]}
    for direction, got in ((TO_CLIENT, client_got), (TO_SERVER, server_got)):
        assert not Frames(got, direction, loose).differences(
            Frames(sent(records, direction), direction, loose))


class Played:
    """A recorded kubelet's connection to the runtime, through the shim, in a thread: up to its
    first relist, which is held, and then to its end."""

    def __init__(self, runtime, shim, kubelet, name, cut="as recorded"):
        self._records = recorded(name)
        self._got = []
        self._stream, self._before = first_relist(self._records)
        runtime.want_raw()
        client = kubelet.connect(shim.socket)
        self._server = Counted(runtime.take_raw())
        self._thread = threading.Thread(target=self._play, args=(client, cut), daemon=True)
        self._thread.start()

    def _play(self, client, cut):
        self._got += replay(CUTS[cut](self._records), client, self._server,
                            loose=creates_of(self._records) | {self._stream},
                            one_by_one=cut == "byte by byte")

    def wait_held(self):
        wait_until(lambda: self._server.received >= self._before,
                   f"the head of call {self._stream} has come to the runtime")

    def check_held(self):
        assert self._server.received == self._before

    def check_rest(self):
        self._thread.join(2 * GENEROUS_S)
        assert self._got, "the exchange came to a stand"
        check_same(self._records, *self._got)


@pytest.mark.parametrize("name,cut", [
    (name, cut) for name in RECORDED for cut in CUTS
    if (name, cut) != ("kubelet-runtime", "byte by byte")])  # long, and the start is much the same
def test_exchange_is_the_same_after_the_hold(make_runtime, start_shim, kubelet, report, closing,
                                             name, cut):
    """A whole life of a kubelet, whose first relist is held until the bridge has reported: nothing
    of it tells that from a slow answer."""
    runtime = make_runtime()
    shim = start_shim()
    played = Played(runtime, shim, kubelet, name, cut)
    played.wait_held()
    aside = closing(Peer(kubelet.connect(shim.socket), TO_SERVER))
    aside.send(PREFACE + Frame(SETTINGS, 0, 0, b"").encode())
    aside.ask(1, LIST_CONTAINERS, framed(b""))
    aside.settle()
    played.check_held()
    report(shim)
    played.check_rest()
    assert "all resources (1) are registered and stored" in shim.log()


@pytest.mark.parametrize("name", RECORDED)
def test_exchange_is_the_same_after_the_time_limit(make_runtime, start_shim, kubelet, name):
    runtime = make_runtime()
    shim = start_shim("300ms")
    records = recorded(name)
    runtime.want_raw()
    client = kubelet.connect(shim.socket)
    loose = creates_of(records) | {first_relist(records)[0]}
    check_same(records, *replay(records, client, runtime.take_raw(), loose=loose))
    assert re.search(rf"kubelet \(process {kubelet.pid}\): its first relist goes on after \d+ ms, "
                     r"the time limit \(bridge.gate_timeout without a bridge\): no bridge has reported",
                     shim.log())


@pytest.mark.parametrize("cut", ["at once", "byte by byte", "at random, seed 1"])
@pytest.mark.parametrize("release", ["report", "time limit"])
@pytest.mark.parametrize("name", RECORDED)
def test_only_relists_are_held(make_runtime, start_shim, kubelet, report, closing, name, release,
                               cut):
    """A kubelet that waits for nothing has all it ever asks answered, on both its connections, but
    its relists; these are, too, once they are let go, and what it asks then."""
    image = name.replace("-runtime", "-image")
    runtime = make_runtime(name, image)
    shim = start_shim("60s" if release == "report" else "300ms")
    both = [closing(Peer(kubelet.connect(shim.socket), TO_SERVER)) for _ in range(2)]
    for peer, capture in zip(both, (name, image)):
        play_ahead(peer, capture, cut)
    if release == "report":
        for peer in both:
            peer.ask(max(peer.sent.streams) + 2, LIST_CONTAINERS, framed(b""))
            peer.settle(but=relists_of(peer))
            assert not peer.answered() & relists_of(peer)
        assert relists_of(both[0]) and not relists_of(both[1])
        assert not [call for call in runtime.calls
                    if not is_shims_own(call) and call.body == RELIST]
        report(shim)
    for peer in both:
        peer.settle()
        for body in (RELIST, framed(b""), RELIST):
            peer.ask(max(peer.sent.streams) + 2, LIST_CONTAINERS, body)
        peer.settle()
    check_answered(runtime, both, answers_of(name, image))


def play_ahead(peer, name, cut):
    """All of a recorded client's bytes; returns when they are sent, and what is not to be held is
    answered."""
    sending = peer.send_aside(pieces(recorded(name), TO_SERVER, cut))
    peer.settle(but=relists_of(peer))
    sending.join(GENEROUS_S)
    assert not sending.is_alive()


def relists_of(peer):
    return {number for number, one in peer.sent.streams.items()
            if (one.fields[":path"], one.body) == (LIST_CONTAINERS, RELIST)}


def is_shims_own(call):
    return dict(call.headers).get("user-agent", "").startswith("cri-device-shim/")


def check_answered(runtime, peers, answers):
    """Each call came to the runtime as it was sent, and has the runtime's answer."""
    asked = collections.Counter()
    for peer in peers:
        assert peer.got.streams.keys() == peer.sent.streams.keys()
        for number, one in peer.sent.streams.items():
            path, answer = one.fields[":path"], peer.got.streams[number]
            asked[str(sorted(one.fields.items())), one.body] += 1
            script = answers.get((path, one.body), Script(framed(b"")))
            assert answer.ended and answer.body == script.body, (path, number)
            assert answer.blocks == [
                [(":status", "200"), ("content-type", "application/grpc")],
                [("grpc-status", str(script.status)), ("grpc-message", script.message)]]
        assert not [frame for frame in peer.got.others if frame.type in (GOAWAY, RST_STREAM)]
    came = collections.Counter((str(sorted(call.headers)), call.body) for call in runtime.calls
                               if not is_shims_own(call) and not call.path.startswith("/x/"))
    assert came == asked


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_kubelet_starts(make_runtime, start_shim, kubelet, closing, directory, name):
    """... in front of the daemon and the bridge: its relist waits for what it does with the bridge,
    until its checkpoint is written, and all it asks of the runtime then is as it was. The
    checkpoint of its last life, which names the same devices, is no proof."""
    runtime = make_runtime()
    shim = start_shim()
    bridge = closing(Bridge(directory, socket=str(shim.feed),
                            kubelet_plugin_dir=str(shim.kubelet_plugin_dir)))
    bridge.start()
    played = Played(runtime, shim, kubelet, name)
    played.wait_held()
    listener = closing(kubelet.listen(shim.kubelet_plugin_dir / "kubelet.sock"))
    plugin_client = take_on(listener, shim.kubelet_plugin_dir, closing, kubelet.connect)
    played.check_held()
    kubelet_checkpoint.write(shim.kubelet_plugin_dir, CHECKPOINT.read_text())
    played.check_rest()
    check_answers(plugin_client, preferred=[[], []])
    assert re.search(rf"kubelet \(process {kubelet.pid}\): its first relist goes on after \d+ ms: "
                     r"all resources \(1\) are registered and stored", shim.log())


def test_kubelet_is_held_after_every_cut_of_its_start(make_runtime, start_shim, kubelet, report,
                                                      closing):
    """Its connection is lost at any byte of what comes before its relist is answered. It does not
    announce itself again then, and is held all the same, and no other way than before."""
    runtime = make_runtime()
    shim = start_shim()
    data = sent(recorded("kubelet-restart-runtime"), TO_SERVER)
    _, before = first_relist(recorded("kubelet-restart-runtime"))
    for end in range(before + len(Frame(DATA, END_STREAM, 1, RELIST).encode())):
        with kubelet.connect(shim.socket) as sock:
            sock.sendall(data[:end])
            assert sock.recv(1), "the runtime's first words"  # it keeps up with the connections
    again = closing(Peer(kubelet.connect(shim.socket), TO_SERVER))
    again.send(PREFACE + Frame(SETTINGS, 0, 0, b"").encode())
    again.ask(1, LIST_CONTAINERS, RELIST)
    again.ask(3, LIST_CONTAINERS, framed(b""))
    again.settle(but={1})
    assert again.answered() == {3}
    assert not [call for call in runtime.calls if not is_shims_own(call) and call.body == RELIST]
    report(shim)
    again.settle()
    assert again.answered() == {1, 3}


def test_crictl_is_never_held(make_runtime, start_shim, kubelet, report, closing):
    """While a kubelet is, all that crictl does is as if the shim were not there."""
    runtime = make_runtime()
    shim = start_shim()
    played = Played(runtime, shim, kubelet, "kubelet-restart-runtime")
    played.wait_held()
    crictl = closing(NamedProcess("crictl"))
    for path in sorted(CAPTURES.glob("crictl-*.cap")):
        records = load(path)
        loose = creates_of(records)
        runtime.want_raw()
        client = crictl.connect(shim.socket)
        got = replay(records, client, runtime.take_raw(), loose=loose)
        for direction, one in zip((TO_CLIENT, TO_SERVER), got):
            assert not Frames(one, direction, loose).differences(
                Frames(sent(records, direction), direction, loose)), path
    asking = closing(Peer(crictl.connect(shim.socket), TO_SERVER))
    asking.send(PREFACE + Frame(SETTINGS, 0, 0, b"").encode())
    asking.ask(1, RUNTIME + "Version", framed(b""))
    asking.ask(3, LIST_CONTAINERS, RELIST)
    asking.settle()
    played.check_held()
    report(shim)
    played.check_rest()


# ---- a kubelet with the feature gate CRIListStreaming, made by hand ----

EMPTY = framed(b"")

# What a kubelet of 1.36 asks on its runtime connection until its first relist is answered
# (cmd/kubelet/app/server.go; pkg/kubelet/kubelet.go, Run; pkg/kubelet/cm/helpers.go;
# pkg/kubelet/kuberuntime/kuberuntime_manager.go, getPods; cri-client/pkg/remote_runtime.go): the
# container manager's lists have no filter, the relist's an empty one.
STREAMING_START = [
    ("Version", EMPTY), ("RuntimeConfig", EMPTY), ("Version", framed(b"\n\x050.1.0")),
    ("StreamContainers", RELIST),  # the container garbage collector's
    ("Status", EMPTY),
    ("StreamPodSandboxes", EMPTY), ("StreamContainers", EMPTY),  # the container manager's
    ("StreamPodSandboxes", RELIST), ("StreamContainers", RELIST)]


def streams_to(call):
    """A runtime that knows the streams, and sends two messages on each."""
    if call.method.startswith("Stream"):
        return Script(framed(b"\n\x03\n\x01a") + framed(b"\n\x03\n\x01b"))
    return script_of(call)


def knows_no_streams(call):
    return Script(b"", 12, "unknown%20method") if call.method.startswith("Stream") else script_of(call)


class Streaming:
    """Its runtime connection."""

    def __init__(self, peer):
        self.peer = peer
        self.relists = set()
        peer.send(PREFACE + Frame(SETTINGS, 0, 0, b"").encode())

    def ask(self, method, body):
        number = max(self.peer.sent.streams, default=-1) + 2
        self.peer.ask(number, RUNTIME + method, body)
        if method.endswith("Containers") and body == RELIST:
            self.relists.add(number)
        return number

    def start(self, calls=STREAMING_START):
        """All but its relists is answered, which are not."""
        for method, body in calls:
            self.ask(method, body)
        self.peer.settle(but=self.relists)
        assert not self.peer.answered() & self.relists


@pytest.fixture
def start_streaming(runtime_socket, start_shim, kubelet, closing):
    """start_streaming(script): (runtime, shim, the kubelet, which is held)."""
    def make(script):
        runtime = closing(H2Runtime(
            runtime_socket, {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000}, script))
        runtime.start()
        shim = start_shim()
        one = Streaming(closing(Peer(kubelet.connect(shim.socket), TO_SERVER)))
        one.start()
        assert not [call for call in runtime.calls
                    if not is_shims_own(call) and call.body == RELIST and "Containers" in call.path]
        return runtime, shim, one

    return make


def answers_with(peer, numbers, script):
    for number in numbers:
        answer = peer.got.streams[number]
        assert (answer.body, answer.fields["grpc-status"]) == (script.body, str(script.status))


def test_streamed_relist_is_held(start_streaming, report):
    runtime, shim, kubelet = start_streaming(streams_to)
    report(shim)
    kubelet.peer.settle()
    answers_with(kubelet.peer, kubelet.relists, streams_to(runtime.calls[-1]))
    assert "all resources (1) are registered and stored" in shim.log()
    later = kubelet.ask("StreamContainers", RELIST)  # and never again
    kubelet.peer.settle()
    answers_with(kubelet.peer, {later}, streams_to(runtime.calls[-1]))


def test_streamed_relist_of_a_runtime_without_streams(start_streaming, report):
    """The runtime's UNIMPLEMENTED is the kubelet's to hear: it asks for the list."""
    runtime, shim, kubelet = start_streaming(knows_no_streams)
    report(shim)
    kubelet.peer.settle()
    answers_with(kubelet.peer, kubelet.relists, knows_no_streams(runtime.calls[-1]))
    later = kubelet.ask("ListContainers", RELIST)
    kubelet.peer.settle()
    answers_with(kubelet.peer, {later}, Script(framed(b"")))


def test_kubelet_falls_back_to_lists_before_its_relist(runtime_socket, start_shim, kubelet, closing,
                                                       report):
    """The container manager has learned that there are no streams, so that the relist is a list."""
    runtime = closing(H2Runtime(
        runtime_socket, {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000}, knows_no_streams))
    runtime.start()
    shim = start_shim()
    one = Streaming(closing(Peer(kubelet.connect(shim.socket), TO_SERVER)))
    one.start([*STREAMING_START[:5], ("StreamPodSandboxes", EMPTY), ("ListPodSandbox", EMPTY),
               ("ListContainers", EMPTY), ("ListPodSandbox", RELIST), ("ListContainers", RELIST)])
    report(shim)
    one.peer.settle()


def test_held_streams_are_refused_when_the_daemon_stops(start_streaming):
    """... with a status that is not UNIMPLEMENTED, so that the kubelet asks for a stream again."""
    _runtime, shim, kubelet = start_streaming(streams_to)
    stopping = threading.Thread(target=shim.stop, daemon=True)
    stopping.start()
    kubelet.peer.settle()
    for number in kubelet.relists:
        fields = kubelet.peer.got.streams[number].fields
        assert fields["grpc-status"] == "14"
        assert fields["grpc-message"] == "StreamContainers: cri-device-shim stops; ask again"
    kubelet.peer.close()
    stopping.join(GENEROUS_S)


# ---- the recorded checkpoint ----


@pytest.fixture
def watch(closing):
    """watch(shim): an open Watch, from which something has come."""
    def make(shim):
        watcher = closing(closing(Feed(shim.feed)).watch())
        watcher.wait(lambda shown: True)
        return watcher

    return make


@pytest.fixture
def shim_with_checkpoint(make_runtime, make_shim):
    """Its pods are not known to the runtime, and may come until the kubelet has listed."""
    make_runtime()
    shim = make_shim(start=False, plugins={"kubelet_wait": "1h"})
    shim.kubelet_plugin_dir.mkdir()
    shutil.copyfile(CHECKPOINT, shim.kubelet_plugin_dir / CHECKPOINT.name)
    shim.start()
    return shim


def held(shown):
    return {one for one, device in shown[WIDGET].devices.items() if device.held}


def test_recorded_checkpoint_keeps_what_it_holds_healthy(shim_with_checkpoint, make_plugin, watch):
    """Whatever the plugin says of it."""
    make_plugin(shim_with_checkpoint, WIDGET, {"w0": False, "w1": False})
    watcher = watch(shim_with_checkpoint)
    watcher.wait(lambda shown: WIDGET in shown and held(shown) == HELD)
    assert watcher.shown[WIDGET].health() == {"w0": True, "w1": False, "w2": True}


def test_recorded_checkpoint_counts_from_the_start_on(shim_with_checkpoint, make_plugin,
                                                      make_client, watch):
    """A daemon that knows the resource of old shows it with its first words, without the plugin."""
    shim = shim_with_checkpoint
    plugin = make_plugin(shim, WIDGET, {"w0": False, "w1": True})
    client = make_client(shim)
    client.create(client.run_pod("web"), "app", annotations=by_token(WIDGET, "w1"))  # is stored
    shim.kill()
    plugin.stop()
    shim.start()
    watcher = watch(shim)
    first = {one.name: {device.id: (device.healthy, device.held) for device in one.list.devices}
             for one in watcher.messages[0].resources}
    assert first[WIDGET]["w0"] == first[WIDGET]["w2"] == (True, True)


def test_recorded_checkpoint_shows_no_resource_of_others(shim_with_checkpoint, make_plugin, watch):
    """Its plugin registers with the kubelet itself: shown by us, too, it would be taken from it."""
    make_plugin(shim_with_checkpoint, "other.example/thing", ["t0"])
    watcher = watch(shim_with_checkpoint)
    watcher.wait(lambda shown: shown)
    assert list(watcher.shown) == ["other.example/thing"]
