"""Dynamic resource allocation from end to end: a driver that registers with the shim, the kubelet that prepares
claims, and each of driver, daemon, bridge and kubelet gone for a while."""

import shutil
import socket
import threading

import grpc
import pytest

from bound import Bound
from dra_driver import ALPHA, HEALTH, V1, V1BETA1, Driver
from kubelet_drivers import claim
from process import MIB
from protos import dra, dra_health
from telling import tell
from waiting import GENEROUS_S, wait_until

GPU = "gpu.example.com"


def cdi_ids(answers):
    return {uid: [one for device in answer.devices for one in device.cdi_device_ids]
            for uid, answer in answers.items()}


NOW, BEFORE = (V1, V1BETA1), (V1BETA1,)  # what a kubelet of 1.34 knows, and one of 1.32


@pytest.mark.parametrize("known", [NOW, BEFORE])
@pytest.mark.parametrize("services, serves", [
    ([V1, V1BETA1], None), ([V1BETA1, V1], None), ([V1BETA1], None), ([ALPHA], None), (["1.0.0"], [ALPHA])])
def test_a_claim_is_prepared_and_unprepared(bridge, kubelet, make_driver, services, serves, known):
    """Whatever of the services a driver has, and even if it names none, as those of the alpha's time."""
    kubelet.known = known
    driver = make_driver(services=services, serves=serves)
    kubelet.wait_registered(GPU)
    assert cdi_ids(kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])) == {
        "c-1": [f"{GPU}/device=c-1"], "c-2": [f"{GPU}/device=c-2"]}
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error
    assert list(driver.prepared) == ["c-2"]


def test_a_kubelet_that_knows_none_of_its_services(bridge, kubelet, make_driver):
    """It says so, as to the driver itself; the next one may know them."""
    kubelet.known = BEFORE
    make_driver(services=[V1])
    bridge.wait_log("the kubelet does not register it: none of services supported by the plugin (['v1.DRAPlugin'])")
    kubelet.stop()
    kubelet.known = NOW
    kubelet.start()
    kubelet.wait_registered(GPU)


def test_a_driver_s_error_is_the_kubelet_s(bridge, kubelet, make_driver):
    driver = make_driver()
    kubelet.wait_registered(GPU)
    driver.on_prepare = lambda one: "no such device" if one.uid == "c-2" else driver._devices(one)
    answers = kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    assert answers["c-1"].devices and "no such device" in answers["c-2"].error


def test_the_claims_of_one_call_are_asked_for_in_one(bridge, kubelet, make_driver):
    """In its order, as by a kubelet: SR-IOV's driver numbers the network interfaces of a pod within a call."""
    driver = make_driver()
    calls = []

    def noted(does):
        def call(service, request, context):
            calls.append([one.uid for one in request.claims])
            return does(service, request, context)
        return call

    driver._prepare, driver._unprepare = noted(driver._prepare), noted(driver._unprepare)
    kubelet.wait_registered(GPU)
    answers = kubelet.prepare(GPU, [claim("c-2"), claim("c-1")])
    assert calls == [["c-2", "c-1"]]
    assert answers["c-1"].devices and answers["c-2"].devices
    kubelet.unprepare(GPU, [claim("c-2"), claim("c-1")])
    assert calls[1:] == [["c-2", "c-1"]] and not driver.prepared


def test_a_driver_that_is_gone_is_gone_at_the_kubelet(bridge, kubelet, make_driver):
    """So that the kubelet wipes its slices; it is registered again within moments of its return."""
    driver = make_driver()
    for _ in range(3):
        kubelet.wait_registered(GPU)
        driver.stop()
        kubelet.wait_gone(GPU)
        driver.start()
    kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices


@pytest.mark.alone
@pytest.mark.parametrize("before", ["registered", "refused", "dead sockets", "no directory"])
def test_a_kubelet_that_starts_registers_it_at_once(bridge, kubelet, make_driver, before):
    """Within 2 s, whatever there was before: it looks each second, and at once."""
    make_driver()
    kubelet.wait_registered(GPU)
    kubelet.stop()
    if before == "refused":
        kubelet.refuses = "not now"
        kubelet.start()
        bridge.wait_log("the kubelet does not register it: not now", 3)
        kubelet.stop()
        kubelet.refuses = None
    elif before == "dead sockets":
        for number in range(16):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(kubelet.registry / f"{GPU}-{number}-reg.sock"))
    elif before == "no directory":
        shutil.rmtree(kubelet.registry)
    kubelet.speed = 1
    for _ in range(2):
        kubelet.start()
        kubelet.wait_registered(GPU)
        assert kubelet.passes_until(GPU) <= 3
        kubelet.stop()


def test_a_daemon_that_is_killed_costs_no_call(shim, bridge, kubelet, make_driver):
    """The kubelet sees neither driver nor call end; the driver is asked again, which it allows."""
    driver = make_driver()
    instance = kubelet.wait_registered(GPU)
    for count in range(3):
        begun, release = threading.Event(), threading.Event()

        def hanging(one, begun=begun, release=release):
            begun.set()
            release.wait(GENEROUS_S)
            return driver._devices(one)

        driver.on_prepare = hanging
        asked = kubelet.begin(GPU, "NodePrepareResources", [claim(f"c-{count}")])
        assert begun.wait(GENEROUS_S)
        shim.kill()
        driver.on_prepare = driver._devices
        release.set()
        shim.start()
        assert cdi_ids(asked.result().claims) == {f"c-{count}": [f"{GPU}/device=c-{count}"]}
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_both_killed_under_a_call(shim, bridge, kubelet, make_driver):
    driver = make_driver()
    instance = kubelet.wait_at_work(GPU)
    begun, release = threading.Event(), threading.Event()

    def hanging(one):
        begun.set()
        release.wait(GENEROUS_S)
        return driver._devices(one)

    driver.on_prepare = hanging
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    assert begun.wait(GENEROUS_S)
    shim.kill()
    bridge.kill()
    driver.on_prepare = driver._devices
    release.set()
    bridge.start()
    shim.start()
    assert cdi_ids(asked.result().claims) == {"c-1": [f"{GPU}/device=c-1"]}
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_both_killed_at_rest(shim, bridge, kubelet, make_driver):
    """No claim says that there is a driver: its row does."""
    make_driver()
    instance = kubelet.wait_at_work(GPU)
    shim.kill()
    bridge.kill()
    bridge.start()
    shim.start()
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_a_claim_outlives_the_daemon(shim, bridge, kubelet, make_driver):
    """What is prepared is unprepared after any restart, by the driver that has it."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1")])
    shim.kill()
    shim.start()
    wait_until(lambda: not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error, "it is unprepared")
    assert driver.prepared == {}


def test_what_waits_for_a_daemon_is_asked_in_turn(shim, bridge, kubelet, make_driver):
    """A kubelet unprepares for a pod that was deleted by force while that one's prepare still waits: were it
    asked for the other way around, the claim would stay prepared."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    shim.kill()
    prepare = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    unprepare = kubelet.begin(GPU, "NodeUnprepareResources", [claim("c-1")])
    shim.start()
    assert prepare.result().claims["c-1"].devices
    assert not unprepare.result().claims["c-1"].error
    assert [method for _, method, _ in driver.calls] == ["NodePrepareResources", "NodeUnprepareResources"]
    assert driver.prepared == {}


def test_a_rolling_update(bridge, kubelet, make_driver):
    """The new instance comes before the old one goes; the kubelet sees one driver all the time."""
    old = make_driver(instance="a")
    instance = kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1")])
    new = make_driver(instance="b")
    old.stop()
    wait_until(lambda: not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error, "it is unprepared")
    assert new.calls_of("NodeUnprepareResources") == ["c-1"]
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_a_rolling_update_there_and_back(bridge, kubelet, make_driver):
    """Each new instance is asked from its coming on, and a claim goes from one to the next."""
    instance, old = None, make_driver(instance="v1")
    for count, name in enumerate(["v2", "v1", "v2"]):
        instance = instance or kubelet.wait_registered(GPU)
        kubelet.prepare(GPU, [claim(f"c-{count}")])
        new = make_driver(instance=name)
        assert not kubelet.unprepare(GPU, [claim(f"c-{count}")])[f"c-{count}"].error
        assert new.calls_of("NodeUnprepareResources") == [f"c-{count}"]
        old.stop()
        old = new
    assert instance.losses() == 0 and kubelet.deregistered == []


def test_a_driver_is_moved_over_and_back(bridge, kubelet, make_driver, directory, closing):
    """Under claims that are prepared: what one of the two ways has prepared is unprepared by the other, and a claim that
    is asked for again is the driver's own affair. The driver has it all on its disk."""
    direct = closing(Driver(kubelet.registry, directory / "plugins", GPU))
    direct.start()
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    direct.stop()
    kubelet.wait_gone(GPU)
    ours = make_driver()
    ours.prepared = direct.prepared
    instance = kubelet.wait_registered(GPU)
    assert instance.endpoint != str(ours.endpoint)
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error
    assert cdi_ids(kubelet.prepare(GPU, [claim("c-2"), claim("c-3")])) == {
        "c-2": [f"{GPU}/device=c-2"], "c-3": [f"{GPU}/device=c-3"]}
    ours.stop()
    kubelet.wait_gone(GPU)
    direct.start()
    assert kubelet.wait_registered(GPU).endpoint == str(direct.endpoint)
    for uid in "c-2", "c-3":
        assert not kubelet.unprepare(GPU, [claim(uid)])[uid].error
    assert direct.prepared == {} and len([name for name in kubelet.registered if name == GPU]) == 3
    direct.stop()  # and over again: what is kept of them is not told to the driver a second time
    kubelet.wait_gone(GPU)
    ours.start()
    kubelet.wait_registered(GPU)
    assert cdi_ids(kubelet.prepare(GPU, [claim("c-4")])) == {"c-4": [f"{GPU}/device=c-4"]}
    assert ours.calls_of("NodeUnprepareResources") == ["c-1"]


def test_one_that_dies_without_a_word(bridge, kubelet, make_driver):
    """Its registration's socket stays, as a crash leaves it; what it was asked is asked of the next process of it."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1")])
    driver.stop_serving()
    kubelet.wait_gone(GPU)
    driver.serve()
    kubelet.wait_registered(GPU)
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error
    assert driver.prepared == {}


def test_health_reaches_the_kubelet(bridge, kubelet, make_driver):
    driver = make_driver(services=[V1, HEALTH])
    instance = kubelet.wait_registered(GPU)
    driver.say_health("gpu-0", "too hot", health=dra_health.UNHEALTHY, health_check_timeout_seconds=90)
    instance.wait_said(["too hot"])
    assert instance.said[0] == driver.health["gpu-0"]
    driver.say_health("gpu-0", "fine", health=dra_health.HEALTHY)
    instance.wait_said(["too hot", "fine"])


def test_health_of_a_driver_that_has_none(bridge, kubelet, make_driver):
    make_driver(services=[V1])
    instance = kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert instance.said == [] and not instance.health.done()


@pytest.mark.parametrize("how", ["kill", "terminate"])
@pytest.mark.parametrize("which", ["shim", "bridge"])
def test_health_goes_on_after_an_end(shim, bridge, kubelet, make_driver, which, how):
    """On the very stream, and nothing is over; the driver tells the next daemon anew what it knows."""
    process = {"shim": shim, "bridge": bridge}[which]
    driver = make_driver(services=[V1, HEALTH])
    instance = kubelet.wait_registered(GPU)
    driver.say_health("gpu-0", "0")
    wait_until(lambda: instance.said, "the first is heard")
    for count in range(1, 4):
        getattr(process, how)()
        driver.say_health("gpu-0", str(count))
        process.start()
        wait_until(lambda count=count: instance.said[-1].message == str(count), "the newest is heard")
    assert [one.message for one in instance.said] == ["0", "1", "2", "3"]
    assert instance.losses() == 0 and not instance.health.done()


def test_health_of_a_driver_that_went_is_forgotten(bridge, kubelet, make_driver):
    """What the one before has said is not said to a kubelet that comes later."""
    driver = make_driver(services=[V1, HEALTH])
    driver.say_health("gpu-0", "before")
    kubelet.wait_registered(GPU).wait_said(["before"])
    driver.stop()
    kubelet.wait_gone(GPU)
    driver.health = {}
    driver.start()
    driver.say_health("gpu-1", "after")
    kubelet.wait_registered(GPU).wait_said(["after"])
    bridge.kill()  # the next one has from the daemon what that knows
    bridge.start()
    kubelet.stop()
    kubelet.start()
    kubelet.wait_registered(GPU).wait_said(["after"])


def test_64_drivers_with_1000_claims(shim, bridge, kubelet, make_driver, directory, closing):
    """All over a restart of everything; and one driver more is refused."""
    drivers = [make_driver(f"d{number}.example.com") for number in range(64)]
    claims = {driver.name: [f"c-{number}" for number in range(at, 1000, len(drivers))]
              for at, driver in enumerate(drivers)}

    def ask(method):
        calls = {name: kubelet.begin(name, method, [claim(uid) for uid in uids]) for name, uids in claims.items()}
        return {name: call.result().claims for name, call in calls.items()}

    for driver in drivers:
        kubelet.wait_registered(driver.name)
    assert all(len(one.devices) == 1 for of in ask("NodePrepareResources").values() for one in of.values())
    more = closing(Driver(shim.registry_dir, directory / "plugins", "d64.example.com"))
    more.start()
    assert "too many drivers are registered already" in more.registrar.wait_refused()
    bridge.kill()
    shim.kill()
    shim.start()
    bridge.start()
    answers = ask("NodeUnprepareResources")
    assert not any(one.error for of in answers.values() for one in of.values())
    assert sum(len(of) for of in answers.values()) == 1000 and not any(driver.prepared for driver in drivers)


def test_two_pods_share_a_claim(bridge, kubelet, make_driver):
    """Two calls for one claim at once: the driver is asked by one at a time, and both are answered."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    calls = [kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")]) for _ in range(2)]
    assert [cdi_ids(call.result().claims) for call in calls] == [{"c-1": [f"{GPU}/device=c-1"]}] * 2
    assert set(driver.calls_of("NodePrepareResources")) == {"c-1"}


def test_a_call_that_the_kubelet_gives_up(bridge, kubelet, make_driver):
    driver = make_driver()
    kubelet.wait_registered(GPU)
    release = threading.Event()
    driver.on_prepare = lambda one: release.wait(GENEROUS_S) and driver._devices(one)
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    wait_until(lambda: driver.calls_of("NodePrepareResources"), "the driver is asked")
    asked.cancel()
    with pytest.raises(grpc.FutureCancelledError):
        asked.result()
    release.set()
    driver.on_prepare = driver._devices
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices


@pytest.mark.release
def test_an_answer_that_is_too_large_costs_little(request, shim, bridge, kubelet, make_driver):
    """It is refused by its length; the most that is taken costs 16 times its size while it is read.
    Of that each claim may have 64 KiB."""
    driver = make_driver(services=[V1])
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-0")])

    def answering(size):
        device = dra.Device(request_names=["gpu"], pool_name="p", device_name="d")
        return lambda _claim: [device] * (size // (device.ByteSize() + 2))

    bound = Bound(shim)
    for uid, size in (("c-1", 15 * MIB), ("c-2", 4 * MIB - 32 * 1024)):
        driver.on_prepare = answering(size)
        assert kubelet.prepare(GPU, [claim(uid)])[uid].error
    tell(request, f"a DRA driver's answers of 15 MiB and 4 MiB: the daemon grew by {bound.growth_mib():.1f} MiB")
    bound.check(72 * MIB)
    driver.on_prepare = driver._devices
    assert kubelet.prepare(GPU, [claim("c-3")])["c-3"].devices


def test_each_claim_of_a_call_may_have_the_largest_answer(bridge, kubelet, make_driver):
    """As many as the kubelet takes in one message."""
    driver = make_driver(services=[V1])
    kubelet.wait_registered(GPU)
    device = dra.Device(request_names=["gpu"], pool_name="p", device_name="d", cdi_device_ids=[f"{GPU}/device=" + 230 * "x"])
    driver.on_prepare = lambda _claim: [device] * (63 * 1024 // (device.ByteSize() + 4))
    claims = [claim(f"c-{n}") for n in range(60)]
    answers = kubelet.prepare(GPU, claims)
    assert [uid for uid, answer in answers.items() if answer.error or not answer.devices] == []
