"""A driver that was ours and registers with the kubelet itself: it is the kubelet's from then on, and we are out of
the way. All while it is shown as ours, by a mask that lasts, or by an agent."""

import itertools
import json
import os
import signal
import socket
import threading
import time

import grpc
import pytest

from ctl import ctl_json
from dra_driver import HEALTH, V1, Driver, Registrar
from kubelet_drivers import claim
from protos import dra as dra_messages
from waiting import wait_until

GPU, NIC = "gpu.example.com", "nic.example.com"
NODE = "node-1"


@pytest.fixture
def dra():
    """Of the shim's settings."""
    return {"mask": "1h"}


@pytest.fixture
def with_agent():
    """Whether its settings have one."""
    return False


@pytest.fixture
def shim(runtime, directory, make_shim, dra, with_agent):
    cluster = {"enabled": True, "socket": str(directory / "run" / "agent.sock")} if with_agent else {}
    return make_shim(dra=dra, cluster=cluster)


@pytest.fixture
def make_direct(kubelet, directory, closing):
    """make_direct(ours): the same driver, with what it has prepared, of which nothing is started yet."""
    def make(ours, **settings):
        one = closing(Driver(kubelet.registry, directory / "plugins", ours.name, **settings))
        one.prepared = ours.prepared
        return one

    return make


def wait_only(kubelet, driver):
    """The kubelet has this instance of the driver, and no other."""
    wait_until(lambda: [one.endpoint for one in kubelet.instances if one.name == driver.name] == [str(driver.endpoint)],
               f"{driver.name} is the kubelet's alone")
    kubelet.wait_registered(driver.name)


def write_books(path):
    """The kubelet's, in which c-1 is prepared by GPU."""
    claims = [{"ClaimUID": "c-1", "DriverState": {GPU: {"Devices": [{"PoolName": NODE, "DeviceName": "dev-0"}]}}}]
    path.write_text(json.dumps({"Data": json.dumps({"ClaimInfoStateList": claims}), "Checksum": 1}))


def wait_taken(kubelet, driver):
    """The kubelet has this instance of the driver, and asks it, whether ours is still there or not."""
    wait_until(lambda: (one := kubelet.instance(driver.name)) and one.endpoint == str(driver.endpoint)
               and one.is_connected(), f"the kubelet asks {driver.name} itself")


def publish(server, *drivers):
    """A device of this node for each."""
    for driver in drivers:
        server.put("resourceslices", {"metadata": {"name": f"{NODE}-{driver}"}, "spec": {
            "driver": driver, "nodeName": NODE, "pool": {"name": NODE, "generation": 1}, "devices": [{"name": "dev-0"}]}})


def row(shim, driver=GPU):
    (one,) = ctl_json(shim, "drivers", driver)["items"]
    return one


def test_it_is_the_kubelet_s_alone(shim, bridge, kubelet, make_driver, make_direct):
    """Over restarts of the kubelet, whose choice between two instances would be by chance, and of ours."""
    ours = make_driver()
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1")])
    wait_until(lambda: row(shim)["kubelet"] == "registered", "it is known that the kubelet has ours")
    ours.stop()
    direct = make_direct(ours)
    direct.start()
    wait_until(lambda: row(shim)["state"] == "moved", "it is known that it has moved")
    kubelet.stop()
    shim.terminate()
    bridge.kill()
    shim.start()
    bridge.start()
    kubelet.start()
    make_driver(NIC)  # what is to be shown is
    kubelet.wait_registered(NIC)
    wait_only(kubelet, direct)
    assert row(shim)["state"] == "moved"
    assert [one["kind"] for one in ctl_json(shim, "events", "-r", GPU)["items"] if one["kind"].startswith("driver-")] == [
        "driver-came", "driver-went", "driver-moved"]  # once
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error
    assert direct.calls_of("NodeUnprepareResources") == ["c-1"] and direct.prepared == {}
    assert ctl_json(shim, "claims")["items"] == []  # the kubelet's to unprepare


def test_both_at_once_and_back(shim, bridge, kubelet, make_driver, make_direct):
    """It is moved while both are there, as a rolling update does it: it is the kubelet's when the last of ours has gone,
    and ours again when one is back, whether ours was withdrawn meanwhile or not."""
    ours = make_driver()
    kubelet.wait_registered(GPU)
    direct = make_direct(ours, instance="direct")
    direct.start()
    direct.wait_registered()
    assert len(kubelet.instances) == 2 and row(shim)["state"] == "connected"
    ours.stop()
    wait_until(lambda: row(shim)["state"] == "moved", "it has moved")
    ours.start()
    wait_until(lambda: row(shim)["state"] == "connected", "it is back")
    wait_until(lambda: len(kubelet.instances) == 2, "ours is shown")
    direct.stop()
    wait_until(lambda: str(direct.endpoint) not in [one.endpoint for one in kubelet.instances], "ours is the only one")
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
    assert ours.calls_of("NodePrepareResources") == ["c-1"] and row(shim)["state"] == "connected"


def test_one_that_was_with_the_kubelet_before_ours_came(shim, bridge, kubelet, make_driver, directory, closing):
    """It was asked who it is while another driver was away, when nobody here knew of it."""
    other = make_driver(NIC)
    kubelet.wait_registered(NIC)
    other.stop()
    wait_until(lambda: row(shim, NIC)["state"] == "gone", "another driver is away")
    direct = closing(Driver(kubelet.registry, directory / "plugins", GPU, instance="direct"))
    direct.start()
    direct.wait_registered()
    wait_until(lambda: direct.registrar.asked == 2, "who it is is asked here, too")
    ours = make_driver()
    wait_until(lambda: len([one for one in kubelet.instances if one.name == GPU]) == 2, "the kubelet has both")
    ours.stop()
    wait_until(lambda: row(shim)["state"] == "moved", "it has moved")


class Arrivals:
    """Pods that come and go all the time: each has a claim prepared, and unprepared. What the kubelet could not do of
    that at once, and would try again after more than a minute."""

    def __init__(self, kubelet):
        self.failed = []
        self.done = 0
        self._kubelet = kubelet
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._come, daemon=True)
        self._thread.start()

    def _come(self):
        for number in itertools.count():
            if self._over.is_set():
                return
            one = claim(f"arrives-{number}")
            try:
                answers = self._kubelet.prepare(GPU, [one]) | self._kubelet.unprepare(GPU, [one])
                self.failed += [answer.error for answer in answers.values() if answer.error]
            except (LookupError, grpc.RpcError) as error:
                self.failed.append(repr(error))
            self.done += 1

    def wait_more(self):
        before = self.done
        wait_until(lambda: self.done > before + 1, "pods come and go")

    def close(self):
        self._over.set()
        self._thread.join()


def test_pods_come_all_the_while(shim, bridge, kubelet, make_driver, make_direct, closing):
    """Ours is withdrawn once the kubelet has had the time to take the other one; to and fro, none sees that there is no
    such driver."""
    ours = make_driver(services=[V1, HEALTH])
    instance = kubelet.wait_registered(GPU)
    wait_until(lambda: row(shim)["kubelet"] == "registered", "it is known that the kubelet has ours")
    direct = make_direct(ours)
    with kubelet.standing_still():  # it takes the other one at the next pass of its watcher, which is a second apart
        ours.stop()
        direct.start()
        assert instance.health.code() is grpc.StatusCode.OK  # its end cannot take away what the other will say
        arrivals = closing(Arrivals(kubelet))
        arrivals.wait_more()
    wait_only(kubelet, direct)
    wait_until(lambda: row(shim)["kubelet"] is None, "it is known that the kubelet has not ours any more")
    assert (row(shim)["state"], row(shim)["slices"]) == ("moved", "kept")
    arrivals.wait_more()
    ours.start()
    wait_until(lambda: len([one for one in kubelet.instances if one.is_connected()]) == 2, "ours is shown again")
    arrivals.wait_more()  # by ours: what the other one is still asked would end with it
    direct.stop()
    wait_until(lambda: str(direct.endpoint) not in [one.endpoint for one in kubelet.instances], "ours is the only one")
    arrivals.wait_more()
    arrivals.close()
    assert arrivals.failed == []


def test_a_bridge_that_is_killed_while_both_are_there(shim, bridge, kubelet, make_driver, make_direct, closing):
    """The next one goes on with ours, which is to be there until the kubelet has had its time, and answers what was asked
    of the one before."""
    ours = make_driver()
    kubelet.wait_at_work(GPU)
    wait_until(lambda: row(shim)["kubelet"] == "registered", "it is known that the kubelet has ours")
    arrivals = closing(Arrivals(kubelet))
    direct = make_direct(ours)
    with kubelet.standing_still():
        bridge.kill()
        ours.stop()
        direct.start()
        wait_until(lambda: row(shim)["state"] == "moved", "it is known that it has moved")
    bridge.start()
    bridge.wait_log(f"driver {GPU}: shown to the kubelet", 2)
    wait_taken(kubelet, direct)
    arrivals.wait_more()
    arrivals.close()
    assert arrivals.failed == []


def test_what_waits_is_asked_there(shim, bridge, kubelet, make_driver, make_direct):
    """The kubelet tries what failed again only after more than a minute."""
    ours = make_driver()
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1")])
    ours.stop()
    asked = [kubelet.begin(GPU, "NodePrepareResources", [claim("c-2")]),
             kubelet.begin(GPU, "NodeUnprepareResources", [claim("c-1")])]
    wait_until(lambda: row(shim)["claims"]["waits"] == 2, "both wait")
    direct = make_direct(ours)
    direct.start()
    assert asked[0].result().claims["c-2"].devices and not asked[1].result().claims["c-1"].error
    assert sorted(uid for _service, _method, uid in direct.calls) == ["c-1", "c-2"]
    wait_taken(kubelet, direct)
    wait_until(lambda: ctl_json(shim, "claims")["items"] == [], "the kubelet has all of it")


def test_one_that_is_at_both_is_ours_over_a_restart(shim, bridge, kubelet, make_driver, make_direct):
    """It is away for nobody but the daemon that has just begun."""
    ours = make_driver()
    kubelet.wait_registered(GPU)
    kubelet.prepare(GPU, [claim("c-1")])
    direct = make_direct(ours, instance="direct")
    direct.start()
    direct.wait_registered()
    info = ours.registrar.info
    ours.registrar.on_info = lambda _request, _context: time.sleep(0.2) or info  # it is the later one for sure
    shim.kill()
    shim.start()
    wait_until(lambda: row(shim)["state"] == "connected", "it is known that it is here")
    assert len(ctl_json(shim, "claims")["items"]) == 1
    assert "driver-moved" not in [one["kind"] for one in ctl_json(shim, "events", "-r", GPU)["items"]]


@pytest.mark.parametrize("restarted", ["shim", "bridge"])
def test_what_is_asked_there_outlives_a_restart(shim, bridge, kubelet, make_driver, make_direct, restarted):
    """Also if that takes longer than one that is only away has to come back (STAND_INS_SETTLE_MS)."""
    goes_on = threading.Event()
    ours = make_driver()
    kubelet.wait_registered(GPU)
    ours.stop()
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    direct = make_direct(ours)
    devices = direct.on_prepare
    direct.on_prepare = lambda one: goes_on.wait(30) and devices(one)
    direct.start()
    wait_until(lambda: direct.calls, "it is asked there")
    one = {"shim": shim, "bridge": bridge}[restarted]
    one.kill()
    one.start()
    with pytest.raises(grpc.FutureTimeoutError):
        asked.result(timeout=12)
    goes_on.set()
    assert asked.result().claims["c-1"].devices


def test_a_socket_that_nobody_serves_says_nothing(shim, bridge, kubelet, make_driver, make_direct, closing):
    """A driver that has died there has left it; and others are asked only while a driver is away."""
    csi = closing(Registrar(kubelet.registry / "csi-reg.sock", "CSIPlugin", "csi.example.com"))
    csi.start()
    csi.wait_registered()
    ours = make_driver()
    kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices and csi.asked == 1
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(kubelet.registry / f"{GPU}-reg.sock"))
    ours.stop()
    wait_until(lambda: csi.asked == 2, "who stands there is asked")
    assert row(shim)["state"] == "gone"
    asked = kubelet.begin(GPU, "NodeUnprepareResources", [claim("c-1")])
    ours.start()
    assert not asked.result().claims["c-1"].error and ours.prepared == {}


# ---- with an agent ----

@pytest.mark.parametrize("dra", [{"mask": "0s", "wipe_after": "1h"}])
@pytest.mark.parametrize("with_agent", [True])
@pytest.mark.parametrize("seen", [True, False], ids=["seen", "while there is no daemon"])
def test_its_slices_are_its_own(shim, agent, bridge, kubelet, server, make_driver, make_direct, seen):
    """Those that it has published there are not wiped, as are those of one that is only away."""
    publish(server, GPU, NIC)
    ours, other = make_driver(), make_driver(NIC)
    kubelet.wait_registered(GPU)
    kubelet.wait_registered(NIC)
    server.wait_watched("resourceslices")
    shim.wait_log("cluster: the API server can be told")
    direct = make_direct(ours)
    if not seen:
        shim.kill()
    ours.stop()
    direct.start()
    wait_taken(kubelet, direct)
    if not seen:
        shim.start()
    wait_until(lambda: row(shim)["state"] == "moved", "it is known that it has moved")
    other.stop()
    shim.dra["wipe_after"] = "1ms"
    shim.config_path.write_text(shim.config_text())
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log(f"DRA driver {NIC}: its ResourceSlices of this node are gone")
    assert [name for _namespace, name in server.objects["resourceslices"]] == [f"{NODE}-{GPU}"]
    assert len(server.asked("/apis/resource.k8s.io/v1/resourceslices", "DELETE")) == 1


@pytest.mark.parametrize("dra", [{"mask": "0s", "wipe_after": "1h"}])
@pytest.mark.parametrize("with_agent", [True])
@pytest.mark.parametrize("used", ["not at all", "for a while", "by a pod that runs"])
def test_it_is_told_what_it_is_owed(shim, agent, bridge, kubelet, server, make_driver, make_direct, directory, used):
    """The kubelet has let go of that; unless it has had it prepared again meanwhile, by its own books: nobody takes from
    a pod what it runs with."""
    books = directory / "dra_manager_state"
    publish(server, GPU)
    ours = make_driver()
    ours.on_prepare = lambda one: [dra_messages.Device(pool_name=NODE, device_name="dev-0")]
    kubelet.wait_registered(GPU)
    server.wait_watched("resourceslices")
    shim.wait_log("cluster: the API server can be told")
    kubelet.prepare(GPU, [claim("c-1")])
    ours.stop()
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error and list(ours.prepared) == ["c-1"]
    if used != "not at all":
        write_books(books)
    direct = make_direct(ours)
    direct.start()
    wait_taken(kubelet, direct)
    if used == "not at all":
        wait_until(lambda: direct.prepared == {} and row(shim)["claims"]["known"] == 0, "it is unprepared")
        assert direct.calls_of("NodeUnprepareResources") == ["c-1"]
        return
    shim.wait_log("the kubelet uses it, and has not unprepared it yet")
    assert direct.calls == [] and row(shim)["claims"]["owed"] == 1
    if used == "for a while":
        books.unlink()
        wait_until(lambda: direct.prepared == {} and row(shim)["claims"]["known"] == 0, "it is unprepared")
        assert direct.calls_of("NodeUnprepareResources") == ["c-1"]
        return
    direct.stop()  # and it moves back here, the pod runs on, and the kubelet, which has restarted, asks here for another one
    ours.start()
    wait_until(lambda: row(shim)["state"] == "connected", "it is back")
    wait_until(lambda: str(direct.endpoint) not in [one.endpoint for one in kubelet.instances], "ours is the only one")
    ours.calls.clear()
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices and ours.calls_of("NodeUnprepareResources") == []
    assert row(shim)["claims"] == {**row(shim)["claims"], "owed": 0, "known": 1}


@pytest.mark.parametrize("dra", [{"mask": "0s", "wipe_after": "1h"}])
@pytest.mark.parametrize("with_agent", [True])
def test_there_and_back_while_there_is_no_daemon(shim, agent, bridge, kubelet, server, make_driver, make_direct, directory):
    """Nobody of ours has seen it there: what was put off before is not taken from a pod that has it since, and what
    was prepared there is unprepared here."""
    publish(server, GPU)
    ours = make_driver()
    ours.on_prepare = lambda one: [dra_messages.Device(pool_name=NODE, device_name="dev-0")]
    kubelet.wait_registered(GPU)
    server.wait_watched("resourceslices")
    shim.wait_log("cluster: the API server can be told")
    kubelet.prepare(GPU, [claim("c-1")])
    ours.stop()
    assert not kubelet.unprepare(GPU, [claim("c-1")])["c-1"].error and list(ours.prepared) == ["c-1"]
    shim.kill()
    direct = make_direct(ours)
    direct.start()
    wait_taken(kubelet, direct)
    kubelet.prepare(GPU, [claim("c-1"), claim("c-2")])
    write_books(directory / "dra_manager_state")
    direct.stop()
    ours.start()
    shim.start()
    wait_until(lambda: row(shim)["state"] == "connected", "it is known that it is here")
    shim.wait_log("the kubelet uses it, and has not unprepared it yet")
    assert ours.calls == [("v1.DRAPlugin", "NodePrepareResources", "c-1")] and sorted(ours.prepared) == ["c-1", "c-2"]
    wait_until(lambda: str(direct.endpoint) not in [one.endpoint for one in kubelet.instances], "ours is the only one")
    for uid in "c-1", "c-2":
        assert not kubelet.unprepare(GPU, [claim(uid)])[uid].error
    (directory / "dra_manager_state").unlink()
    wait_until(lambda: ours.prepared == {} and ctl_json(shim, "claims")["items"] == [], "all is unprepared")
