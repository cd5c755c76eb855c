"""DRA drivers at the kubelet, in whose place the bridge stands: what the daemon says of them by a scripted
feed, and what a scripted kubelet sees and is answered."""

import os
import socket
import threading
import time

import grpc
import pytest

from bridge_process import Bridge
from dra_driver import HEALTH
from feed_server import FeedServer
from kubelet_drivers import claim
from protos import bridge as feed_messages
from protos import dra, dra_health
from stream_hoarder import StreamHoarder
from supervisor import supervised
from waiting import GENEROUS_S, wait_until

GPU = "gpu.example.com"
BOTH = ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


def prepared(_method, request, _context):
    """A device for each claim, with a field that no release knows yet."""
    answers = []
    for one in request.claims:
        response = dra.NodePrepareResourceResponse(devices=[dra.Device(
            request_names=["r"], pool_name="node", device_name=f"dev-{one.uid}",
            cdi_device_ids=[f"example.com/gpu={one.uid}"], share_id="s")])
        answers.append(feed_messages.ClaimAnswer(
            response=response.SerializeToString() + b"\xa2\x06\x03new"))
    return answers


@pytest.fixture
def feed(directory, closing):
    one = closing(FeedServer(directory / "run" / "bridge.sock"))
    one.drivers = {GPU: BOTH}
    one.claims = prepared
    one.start()
    return one


@pytest.fixture
def bridge(directory, closing, feed):
    one = closing(Bridge(directory))
    one.start()
    return one


@pytest.fixture
def kept(directory, closing, feed, manager):
    """Under a service manager that keeps its descriptors."""
    one = closing(supervised(Bridge, manager)(directory))
    one.start()
    return one


def registrations(bridge):
    return sorted(path.name for path in bridge.registry.iterdir())


def test_the_kubelet_registers_a_driver_and_prepares(bridge, kubelet, feed):
    instance = kubelet.wait_registered(GPU)
    assert instance.versions == BOTH
    answers = kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    assert {uid: [list(one.cdi_device_ids) for one in answer.devices]
            for uid, answer in answers.items()} == {
                "c-1": [["example.com/gpu=c-1"]], "c-2": [["example.com/gpu=c-2"]]}
    assert answers["c-1"].devices[0].share_id == "s"
    assert answers["c-1"].SerializeToString().endswith(b"\xa2\x06\x03new")
    assert feed.asked == [("PrepareClaims", ["c-1", "c-2"])]
    feed.claims = lambda *_call: [feed_messages.ClaimAnswer()]
    assert kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error == ""


def test_an_error_is_the_claim_s_own(bridge, kubelet, feed):
    kubelet.wait_registered(GPU)

    def half(_method, request, _context):
        return [prepared(None, request, None)[0], feed_messages.ClaimAnswer(code=14, message="driver gpu.example.com is away")]

    feed.claims = half
    answers = kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    assert answers["c-1"].devices and not answers["c-1"].error
    assert answers["c-2"].error == "driver gpu.example.com is away"


@pytest.mark.parametrize("method", ["prepare", "unprepare"])
def test_an_error_without_words_is_one(bridge, kubelet, feed, method):
    """An empty text would tell the kubelet that it worked: it would start the pod without its devices,
    or give them to another."""
    kubelet.wait_registered(GPU)
    feed.claims = lambda *_call: [feed_messages.ClaimAnswer(code=13)]
    assert getattr(kubelet, method)(GPU, [claim("c-1")])["c-1"].error == "INTERNAL"


def test_an_answer_that_is_not_one_is_an_error(bridge, kubelet, feed):
    kubelet.wait_registered(GPU)
    feed.claims = lambda *_call: []
    with pytest.raises(grpc.RpcError) as raised:
        kubelet.prepare(GPU, [claim("c-1")])
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    feed.claims = lambda *_call: [feed_messages.ClaimAnswer(response=b"\xff\xff")]
    assert "garbled" in kubelet.prepare(GPU, [claim("c-1")])["c-1"].error


@pytest.mark.parametrize("services, told", [
    (["v1beta1.DRAPlugin", "v1.DRAPlugin"], ["v1beta1.DRAPlugin", "v1.DRAPlugin"]),
    (["v1.DRAPlugin", "v1alpha1.DRAResourceHealth", "v9.Unknown"],
     ["v1.DRAPlugin", "v1alpha1.DRAResourceHealth"]),
    (["v1alpha3.Node"], BOTH),
    (["1.0.0"], BOTH),
])
def test_the_kubelet_is_told_what_it_knows(bridge, kubelet, feed, services, told):
    kubelet.wait_registered(GPU)
    feed.show_drivers({"other.example.com": services})
    assert kubelet.wait_registered("other.example.com").versions == told


@pytest.fixture
def under_way(kubelet, feed):
    """A prepare that is answered when this is called, with its devices."""
    begun, release = threading.Event(), threading.Event()

    def hanging(*call):
        begun.set()
        release.wait(GENEROUS_S)
        return prepared(*call)

    def answered():
        release.set()
        return asked.result().claims["c-1"].devices

    kubelet.wait_registered(GPU)
    feed.claims = hanging
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    assert begun.wait(GENEROUS_S)
    yield answered
    release.set()


def looked_after(bridge, kubelet, other):
    """Waits until the bridge has looked after its drivers' sockets: it has made one anew."""
    (bridge.registry / kubelet.wait_registered(other).path.name).unlink()
    kubelet.wait_gone(other)
    kubelet.wait_registered(other)


OTHER = "it has other services now"


@pytest.mark.parametrize("services", [["v1beta1.DRAPlugin"], ["v1.DRAPlugin"], ["1.0.0"], BOTH + [HEALTH]])
def test_a_driver_that_has_other_services_stays_registered(bridge, kubelet, feed, under_way, services):
    """As one that is upgraded. A kubelet calls on what it has chosen, and what it asked is answered; one that
    comes later is told what there is."""
    before = registrations(bridge)
    feed.show_drivers({GPU: services})
    bridge.wait_log(OTHER)
    assert under_way()
    feed.claims = prepared
    assert kubelet.prepare(GPU, [claim("c-2")])["c-2"].devices
    feed.show_drivers({GPU: services, "other.example.com": BOTH})
    looked_after(bridge, kubelet, "other.example.com")
    assert GPU not in kubelet.deregistered and set(before) < set(registrations(bridge))
    kubelet.stop()
    kubelet.start()
    assert kubelet.wait_registered(GPU).versions == (BOTH if services == ["1.0.0"] else services)


def test_the_next_process_shows_its_other_services(kept, kubelet, feed):
    kubelet.wait_at_work(GPU)
    feed.show_drivers({GPU: ["v1.DRAPlugin"]})
    kept.wait_log(OTHER)
    feed.stop()
    kept.kill()
    kept.start()
    kubelet.stop()
    kubelet.start()
    assert kubelet.wait_registered(GPU).versions == ["v1.DRAPlugin"]


@pytest.fixture
def late_hearer(kubelet):
    kubelet.stop()
    kubelet.hears_all = False
    kubelet.start()
    return kubelet


def test_health_that_comes_with_other_services_is_told(bridge, late_hearer, feed, under_way):
    """To a kubelet that asks only whoever announced it (from 1.37 on): it registers the driver anew, when it has had
    its answers."""
    before = late_hearer.wait_registered(GPU)
    feed.show_drivers({GPU: BOTH + [HEALTH]})
    bridge.wait_log(OTHER)
    assert under_way() and before.versions == BOTH
    wait_until(lambda: (one := late_hearer.instance(GPU)) and one.versions == BOTH + [HEALTH],
               "the kubelet is told the new services")
    feed.say_health(GPU, word("dev-0", "fine"))
    late_hearer.wait_registered(GPU).wait_said(["fine"])
    feed.show_drivers({GPU: BOTH})  # what it does not have any more is quiet
    bridge.wait_log(OTHER, 2)
    feed.claims = prepared
    assert late_hearer.prepare(GPU, [claim("c-2")])["c-2"].devices
    assert late_hearer.deregistered == [GPU]


def test_one_that_was_refused_for_its_services_is_tried_with_others(bridge, kubelet, feed):
    """At once, under a name that the kubelet has not put off."""
    kubelet.stop()
    kubelet.known = ["v1beta1.DRAPlugin"]
    feed.show_drivers({GPU: ["v1.DRAPlugin"]})
    kubelet.start()
    bridge.wait_log("the kubelet does not register it: none of services", 2)
    before = registrations(bridge)
    feed.show_drivers({GPU: BOTH})
    instance = kubelet.wait_registered(GPU)
    assert instance.versions == BOTH and instance.path.name not in before


def test_a_driver_that_is_away_is_withdrawn(bridge, kubelet, feed):
    """So that the kubelet wipes its slices, as if nobody stood between; and back at once with it, under
    names that nothing is put off for."""
    kubelet.wait_registered(GPU)
    before = registrations(bridge)
    feed.show_drivers({GPU: None})
    kubelet.wait_gone(GPU)
    assert registrations(bridge) == []
    feed.show_drivers({GPU: BOTH})
    kubelet.wait_registered(GPU)
    assert registrations(bridge) != before
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices


def test_each_kubelet_registers_it(bridge, kubelet):
    for _ in range(3):
        kubelet.wait_registered(GPU)
        kubelet.stop()
        kubelet.start()
    kubelet.wait_registered(GPU)


def test_a_kubelet_that_refuses_it_is_asked_anew(bridge, kubelet):
    """Under another name each time, since it puts off what has failed under one; that it tries this one again meanwhile
    puts nothing off."""
    kubelet.refuses = "not now"
    bridge.wait_log("the kubelet does not register it: not now")
    before = registrations(bridge)
    wait_until(lambda: registrations(bridge) not in ([], before), "it has another name")
    kubelet.refuses = None
    kubelet.wait_registered(GPU)


def test_a_registry_that_is_emptied_is_filled_again(bridge, kubelet):
    kubelet.wait_registered(GPU)
    for path in bridge.registry.iterdir():
        path.unlink()
    kubelet.wait_gone(GPU)
    kubelet.wait_registered(GPU)


def test_a_call_waits_for_the_daemon(bridge, kubelet, feed):
    """And one that was asked of a daemon that died is asked of the next one."""
    kubelet.wait_registered(GPU)
    begun, release = threading.Event(), threading.Event()

    def hanging(*call):
        begun.set()
        release.wait(GENEROUS_S)
        return prepared(*call)

    feed.claims = hanging
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    assert begun.wait(GENEROUS_S)
    feed.stop()
    release.set()
    feed.claims = prepared
    later = kubelet.begin(GPU, "NodePrepareResources", [claim("c-2")])
    bridge.wait_log("a call waits for the daemon")
    feed.start()
    assert asked.result().claims["c-1"].devices and later.result().claims["c-2"].devices
    assert kubelet.deregistered == []


def test_the_calls_of_all_pods_of_a_node_reach_the_daemon_at_once(bridge, kubelet, feed):
    """As behind a reboot, when the driver comes later than they do: the daemon says what they wait for."""
    kubelet.wait_registered(GPU)
    feed.stop()
    feed.workers, feed.drivers = 128, {GPU: BOTH}
    release = threading.Event()
    feed.claims = lambda *call: release.wait(GENEROUS_S) and prepared(*call)
    feed.start()
    uids = [f"c-{number}" for number in range(110)]
    asked = [kubelet.begin(GPU, "NodePrepareResources", [claim(uid)]) for uid in uids]
    wait_until(lambda: len(feed.asked) == len(uids), "all of them have come")
    release.set()
    assert all(one.result().claims[uid].devices for one, uid in zip(asked, uids))


def test_a_daemon_that_has_just_started_withdraws_nothing_at_once(bridge, kubelet, feed):
    """It knows the driver, and has not reached it yet."""
    kubelet.wait_registered(GPU)
    feed.stop()
    feed.drivers = {GPU: None}
    feed.start()
    feed.wait_watched(2)
    feed.show_drivers({GPU: BOTH})
    feed.show_drivers({GPU: BOTH, "other.example.com": BOTH})
    kubelet.wait_registered("other.example.com")
    assert kubelet.deregistered == []


def test_a_daemon_that_knows_of_no_drivers_has_none(directory, closing, kubelet, feed):
    feed.stop()
    feed.drivers = None
    feed.start()
    one = closing(Bridge(directory))
    one.start()
    feed.wait_watched()
    feed.stop()
    feed.drivers = {GPU: BOTH}
    feed.start()
    kubelet.wait_registered(GPU)


def test_a_killed_bridge_s_connection_goes_on(kept, kubelet, feed, manager):
    """With the call that was under way: the kubelet sees a pause, and no registration comes or goes."""
    instance = kubelet.wait_at_work(GPU)
    before = registrations(kept)
    for _ in range(5):
        begun, release = threading.Event(), threading.Event()

        def hanging(*call, begun=begun, release=release):
            begun.set()
            release.wait(GENEROUS_S)
            return prepared(*call)

        feed.claims = hanging
        asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
        assert begun.wait(GENEROUS_S)
        kept.kill()
        feed.claims = prepared
        release.set()
        kept.start()
        assert asked.result().claims["c-1"].devices
    assert registrations(kept) == before
    assert instance.losses() == 0 and kubelet.deregistered == []
    assert kubelet.registered == [GPU]


def test_one_that_was_refused_before_is_gone_on_with(kept, kubelet, feed):
    """Its socket has another name by then than the first one that a bridge makes."""
    kubelet.refuses = "not now"
    kept.wait_log("the kubelet does not register it: not now")
    kubelet.stop()
    first = registrations(kept)
    wait_until(lambda: len(registrations(kept)) == 1 and registrations(kept) != first, "it has another name")
    kubelet.refuses = None
    kubelet.start()
    instance = kubelet.wait_at_work(GPU)
    before = registrations(kept)
    for count in range(2):
        kept.kill()
        kept.start()
        feed.wait_watched(2 + count)
        assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
        assert registrations(kept) == before
    assert instance.losses() == 0 and kubelet.deregistered == []
    assert kubelet.registered == [GPU]


def test_a_refused_socket_is_not_gone_on_with(kept, kubelet, feed):
    """The next process makes another one at once: the kubelet has put off that one's name."""
    kubelet.refuses = "not now"
    kept.wait_log("the kubelet does not register it: not now")
    kept.kill()
    kubelet.stop()
    before = registrations(kept)
    kept.start()
    feed.wait_watched(2)
    wait_until(lambda: len(registrations(kept)) == 1 and registrations(kept) != before,
               "there is one of another name")
    kubelet.refuses = None
    kubelet.start()
    kubelet.wait_registered(GPU)


def test_a_driver_that_the_daemon_is_about_to_reach_is_gone_on_with(kept, kubelet, feed):
    """Both were killed: what is kept for it waits until it serves."""
    instance = kubelet.wait_at_work(GPU)
    kept.kill()
    feed.stop()
    feed.drivers = {GPU: None}
    feed.start()
    kept.start()
    feed.wait_watched(2)
    feed.show_drivers({GPU: BOTH})
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_one_that_has_moved_is_handed_over_by_the_next_process(kept, kubelet, feed):
    """A bridge that is killed while the kubelet is given the time to take the driver's own: ours is there until that
    is over, and answers."""
    instance = kubelet.wait_at_work(GPU)
    not_over_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 + 3_600_000
    feed.show_drivers({GPU: None}, moved={GPU: not_over_ms})
    for count in range(2):
        kept.kill()
        kept.start()
        feed.wait_watched(2 + count)
        assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert instance.losses() == 0 and kubelet.deregistered == []
    kept.kill()
    feed.show_drivers({GPU: None}, moved={GPU: 1})  # long ago
    kept.start()
    kubelet.wait_gone(GPU)
    assert registrations(kept) == []


def test_a_killed_bridge_goes_on_without_the_daemon(kept, kubelet, feed, manager):
    """However long that is away: the kubelet has the driver on, and what it asks waits. A resource without
    a list is in no file, so that the next process lets go of what is kept of it."""
    def has_kept(resource):
        return any(name.startswith(f"endpoint/vendor.com_{resource}.sock/") for name in manager.names())

    instance = kubelet.wait_at_work(GPU)
    kept.kubelet_dir.mkdir()
    feed.send(feed_messages.WatchResponse(resources=[feed_messages.Resource(name="vendor.com/nic", version=1)]))
    wait_until(lambda: has_kept("nic"), "it is kept")
    feed.stop()
    kept.kill()
    kept.start()
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    wait_until(lambda: not has_kept("nic"), "it has let go of what it does not show")
    assert not asked.done() and instance.is_connected()
    feed.start()
    assert asked.result(GENEROUS_S).claims["c-1"].devices
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_a_bridge_told_to_restart_leaves_it_all(kept, kubelet, feed):
    instance = kubelet.wait_at_work(GPU)
    for _ in range(3):
        kept.terminate()
        kept.start()
        assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_without_a_store_what_it_left_is_removed(bridge, kubelet):
    """A killed one leaves a socket that nobody serves, which the kubelet would keep."""
    kubelet.wait_registered(GPU)
    before = registrations(bridge)
    bridge.kill()
    assert registrations(bridge) == before
    bridge.start()
    wait_until(lambda: len(now := registrations(bridge)) == 1 and now != before,
               "only the new one's registration is there")
    kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices


def test_what_is_others_stays(directory, bridge, kubelet, closing):
    """Sockets of drivers that register themselves, dead or alive, are none of its business."""
    kubelet.wait_registered(GPU)
    other = closing(socket.socket(socket.AF_UNIX))
    other.bind(str(bridge.registry / "csi.example.com-reg.sock"))
    bridge.kill()
    bridge.start()
    kubelet.wait_registered(GPU)
    bridge.wait_log("of a bridge that is gone, removed")
    assert "csi.example.com-reg.sock" in registrations(bridge)


def test_its_health_is_quiet(bridge, kubelet):
    """Held open, as the kubelet asks a driver that answers otherwise again every five seconds."""
    instance = kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert not instance.health.done()


def word(device, message, **fields):
    return dra_health.DeviceHealth(
        device=dra_health.DeviceIdentifier(pool_name="node", device_name=device), message=message, **fields)


def test_health_is_passed_on_as_it_was_said(bridge, kubelet, feed):
    """With every field, also one that no release knows yet; and nothing is said twice."""
    instance = kubelet.wait_registered(GPU)
    said = word("dev-0", "too hot", health=dra_health.UNHEALTHY, last_updated_time=17,
                health_check_timeout_seconds=90).SerializeToString() + b"\xa2\x06\x03new"
    feed.say_health(GPU, said)
    instance.wait_said(["too hot"])
    assert instance.said[0].SerializeToString() == said
    feed.say_health("other.example.com", word("dev-0", "another's"))
    feed.say_health(GPU, word("dev-1", "fine"))
    feed.say_health(GPU, word("dev-0", "cooled down"))
    instance.wait_said(["too hot", "fine", "cooled down"])


def test_a_kubelet_that_comes_later_hears_the_newest(bridge, kubelet, feed):
    """But nothing that is older than its own timeout, which would look new."""
    first = kubelet.wait_registered(GPU)
    now_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    feed.say_health(GPU, word("old", "was fine", health_check_timeout_seconds=10), said_ms=now_ms - 10_000)
    feed.say_health(GPU, word("dev-0", "fine"), word("dev-1", "fine, too"))
    feed.say_health(GPU, word("dev-0", "too hot"))
    first.wait_said(["fine", "fine, too", "too hot"])
    kubelet.stop()
    kubelet.start()
    kubelet.wait_registered(GPU).wait_said(["fine, too", "too hot"])


def test_the_next_daemon_says_it_again_and_the_kubelet_hears_nothing(bridge, kubelet, feed):
    instance = kubelet.wait_registered(GPU)
    feed.say_health(GPU, word("dev-0", "fine"))
    instance.wait_said(["fine"])
    feed.stop()
    feed.start()
    feed.wait_watched(2)
    feed.say_health(GPU, word("dev-1", "fine, too"))
    instance.wait_said(["fine", "fine, too"])


def test_a_driver_that_was_away_has_said_nothing(bridge, kubelet, feed):
    kubelet.wait_registered(GPU).wait_said([])
    feed.say_health(GPU, word("dev-0", "before"))
    kubelet.instance(GPU).wait_said(["before"])
    feed.show_drivers({GPU: None})
    kubelet.wait_gone(GPU)
    feed.show_drivers({GPU: BOTH})
    instance = kubelet.wait_registered(GPU)
    feed.say_health(GPU, word("dev-1", "after"))
    instance.wait_said(["after"])


def test_a_killed_bridge_s_stream_of_health_goes_on(kept, kubelet, feed):
    instance = kubelet.wait_registered(GPU)
    feed.say_health(GPU, word("dev-0", "0"))
    instance.wait_said(["0"])
    for count in range(1, 4):
        kept.kill()
        feed.health = []
        feed.say_health(GPU, word("dev-0", str(count)))
        kept.start()
        instance.wait_said([str(i) for i in range(count + 1)])
    assert instance.losses() == 0 and not instance.health.done()


def test_a_killed_bridge_s_stream_hears_what_holds_no_longer(kept, kubelet, feed):
    """Of what the process before had passed on; who has just come has heard nothing of it."""
    instance = kubelet.wait_registered(GPU)
    feed.say_health(GPU, word("dev-0", "too hot", health_check_timeout_seconds=3600))
    instance.wait_said(["too hot"])
    kept.kill()
    feed.health = []
    feed.say_health(GPU, word("dev-0", "its driver is away"))
    feed.health[0].over = True
    kept.start()
    instance.wait_said(["too hot", "its driver is away"])


def test_streams_of_another_process_do_not_keep_the_kubelet_s_out(bridge, kubelet, feed, closing):
    endpoint = kubelet.wait_registered(GPU).endpoint
    feed.say_health(GPU, word("dev-0", "fine"))
    kubelet.stop()
    hoarder = closing(StreamHoarder(endpoint))
    hoarder.open(8)
    kubelet.start()
    instance = kubelet.wait_registered(GPU)
    instance.wait_said(["fine"])
    hoarder.open(8)
    feed.say_health(GPU, word("dev-0", "too hot"))
    instance.wait_said(["fine", "too hot"])


def test_a_daemon_that_knows_of_no_health(directory, closing, kubelet, feed):
    feed.stop()
    feed.health = None
    feed.start()
    closing(Bridge(directory)).start()
    instance = kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    feed.stop()
    feed.health = []
    feed.start()
    feed.wait_watched(2)
    feed.say_health(GPU, word("dev-0", "fine"))
    instance.wait_said(["fine"])


def test_too_many_claims_at_once(bridge, kubelet):
    kubelet.wait_registered(GPU)
    with pytest.raises(grpc.RpcError) as raised:
        kubelet.prepare(GPU, [claim(f"c-{i}") for i in range(257)])
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_names_of_any_length_have_sockets(bridge, kubelet, feed):
    longest = "d" * 50 + ".example.com"
    names = {f"{longest[:-1]}{i}": BOTH for i in range(3)}
    feed.show_drivers(names)
    for name in names:
        kubelet.wait_registered(name)
        assert len(os.fsencode(kubelet.instance(name).endpoint)) <= 107


@pytest.mark.parametrize("name", ["gpu:1.example.com", "gpü.example.com", "a/b.example.com", "", "x" * 300])
def test_a_name_that_no_driver_has(kept, kubelet, feed, name):
    """Of a daemon of another release, perhaps: it is not shown, and all others are."""
    kubelet.wait_registered(GPU)
    feed.show_drivers({GPU: BOTH, name: BOTH})
    kept.wait_log("that is no driver's name")
    feed.show_drivers({GPU: BOTH, name: BOTH, "nic.example.com": BOTH})
    kubelet.wait_registered("nic.example.com")
    assert len(registrations(kept)) == 2
