"""A kubelet whose bridge is killed again and again under a service manager that keeps descriptors: its
connection goes on, each call is answered once, and no list is lost or sent twice for nothing."""

import json
import os
import random
import stat
import threading
import time

import pytest

from bare_kubelet import BareKubelet
from bridge_process import BINARY, Bridge
from feed_server import FeedServer, Shown
from protos import deviceplugin
from supervisor import supervised
from waiting import wait_until

GPU = "vendor.com/gpu"
# The bridge is back within milliseconds; what it takes to answer a call is far below that.
ANSWER_S = 20
KILLS = int(os.environ.get("SHIM_BRIDGE_KILLS", "100"))
# A process that lived so long with a connection was not killed by it (KEPT_SETTLED_MS).
SETTLED_S = 0.015
# Another release, which keeps its connections in another way.
OTHER = BINARY.parents[1] / "tests" / "points" / "cri-device-shim-bridge-points"
TOKEN = "devices.cri-device-shim/vendor.com_gpu"


def Kept(directory, manager):
    """A bridge that waits until a life of it has said that it is ready."""
    class Ready(supervised(Bridge, manager)):
        def start(self):
            self.said = len(manager.states)
            super().start()

        def wait_ready(self):
            wait_until(lambda: any("READY" in one for one in manager.states[self.said:]), "READY=1",
                       pause_s=0.001)

    return Ready(directory, preferred_timeout="10s")


@pytest.fixture
def feed(directory, closing):
    one = closing(FeedServer(directory / "run" / "bridge.sock", prefer=prefer))
    one.resources = {GPU: Shown(["g0", "g1"])}
    one.start()
    return one


def prefer(request, _context):
    return sorted(request.available)[:request.size]


@pytest.fixture
def kubelet(directory, closing):
    one = closing(BareKubelet(directory / "device-plugins"))
    one.start()
    return one


@pytest.fixture
def bridge(directory, closing, feed, kubelet, manager):
    one = closing(Kept(directory, manager))
    one.start()
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Healthy"})
    feed.wait_report(GPU, lambda report: report.stored)
    wait_until(one.snapshot.exists, "the snapshot")
    return one


def settle(bridge):
    """Until it has lived with what it took over, so that its end is not taken to come from that."""
    bridge.wait_ready()
    time.sleep(SETTLED_S)


def again(bridge, pause_s=0.0):
    settle(bridge)
    bridge.kill()
    time.sleep(pause_s)
    bridge.start()


def allocate(kubelet, *ids):
    request = deviceplugin.AllocateRequest()
    request.container_requests.add().devices_ids.extend(ids)
    return kubelet.clients[GPU].call("Allocate", request, timeout=ANSWER_S)


def tokens_of(answer):
    return [json.loads(one.annotations[TOKEN])["ids"] for one in answer.container_responses]


def preferred(kubelet, available, size):
    request = deviceplugin.PreferredAllocationRequest()
    request.container_requests.add(available_deviceIDs=available, allocation_size=size)
    answer = kubelet.clients[GPU].call("GetPreferredAllocation", request, timeout=ANSWER_S)
    return [list(one.deviceIDs) for one in answer.container_responses]


def nothing_broke(kubelet):
    assert not kubelet.of("end")
    assert len(kubelet.of("register")) == 1


def test_the_stream_and_the_calls_go_on(bridge, feed, kubelet):
    for count in range(5):
        again(bridge, 0.02)
        assert tokens_of(allocate(kubelet, f"g{count}")) == [[f"g{count}"]]
        feed.wait_watched(count + 2)
        assert preferred(kubelet, ["b", "a"], 1) == [["a"]]
    nothing_broke(kubelet)
    assert len(kubelet.of("list")) == 1


def test_what_is_asked_while_it_is_away_is_answered(bridge, kubelet):
    bridge.kill()
    answers = []
    asking = [threading.Thread(target=lambda name=name: answers.append(allocate(kubelet, name)))
              for name in ("g0", "g1")]
    for one in asking:
        one.start()
    time.sleep(0.2)  # nobody answers meanwhile
    assert not answers
    bridge.start()
    for one in asking:
        one.join()
    assert sorted(tokens_of(one)[0][0] for one in answers) == ["g0", "g1"]
    nothing_broke(kubelet)


def test_only_a_list_that_differs_is_sent(bridge, feed, kubelet):
    """Also one that the daemon has said while there was no bridge."""
    again(bridge)
    feed.wait_report(GPU, lambda report: report.registered and report.stored)
    assert len(kubelet.of("list")) == 1
    bridge.kill()
    feed.resources = {GPU: Shown({"g0": True, "g1": False}, version=2)}
    bridge.start()
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Unhealthy"})
    feed.wait_report(GPU, lambda report: report.version == 2 and report.stored)
    assert len(kubelet.of("list")) == 2
    nothing_broke(kubelet)


def test_without_a_daemon_the_last_list_stays(bridge, feed, kubelet):
    """What the file says may be older than that."""
    feed.show({GPU: Shown({"g0": True, "g1": False}, version=2)})
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Unhealthy"})
    bridge.kill()
    feed.stop()
    bridge.start()
    assert tokens_of(allocate(kubelet, "g0")) == [["g0"]]
    time.sleep(0.5)  # no list comes without the daemon
    assert len(kubelet.of("list")) == 2
    nothing_broke(kubelet)


def test_a_large_list_is_not_torn(bridge, feed, kubelet):
    """Killed while it is being sent, too."""
    ids = [f"device-{number:05}-{'x' * 40}" for number in range(20_000)]
    for version in range(2, 12):
        feed.show({GPU: Shown({one: place != version for place, one in enumerate(ids)},
                              version=version)})
        for _ in range(3):
            time.sleep(random.random() * 0.1)
            again(bridge)
        wait_until(lambda version=version: (kubelet.health(GPU) or {}).get(ids[version]) ==
                   "Unhealthy", "the list came")
        assert list(kubelet.health(GPU).values()).count("Unhealthy") == 1
    nothing_broke(kubelet)


@pytest.mark.parametrize("releases", [(BINARY,), (BINARY, OTHER)], ids=["one", "two"])
def test_killed_again_and_again(bridge, feed, kubelet, releases):
    """Under calls of every kind and lists: each is answered once, with what it asked for. Nor does it
    matter which release comes next, whether the one before was told to stop or not."""
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}")
    over, wrong, counts = threading.Event(), [], [0] * 4

    def ask(place):
        try:
            while not over.is_set():
                counts[place] += 1
                ids = [f"{place}-{counts[place]}-{number}" for number in range(1 + place * 40)]
                if place % 2:
                    answer = preferred(kubelet, ids, 1)
                    if answer != [[sorted(ids)[0]]]:
                        wrong.append((ids, answer))
                elif tokens_of(allocate(kubelet, *ids)) != [ids]:
                    wrong.append(ids)
        except Exception as error:  # told below
            wrong.append(repr(error))

    asking = [threading.Thread(target=ask, args=(place,)) for place in range(len(counts))]
    for one in asking:
        one.start()
    for version in range(2, KILLS + 2):
        feed.show({GPU: Shown({"g0": True, "g1": version % 2 == 0}, version=version)})
        if rng.random() < 0.75:
            settle(bridge)
        time.sleep(rng.random() * 0.1)
        bridge.binary = rng.choice(releases)
        end_one_way_or_another(bridge, rng.random() < 0.5 or len(releases) == 1)
        time.sleep(rng.random() * 0.02)
        bridge.start()
        if wrong:
            break
    over.set()
    for one in asking:
        one.join()
    assert not wrong
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Healthy" if KILLS % 2 else "Unhealthy"})
    nothing_broke(kubelet)
    print(f"{KILLS} kills, {sum(counts)} calls, {len(kubelet.of('list'))} lists")


def end_one_way_or_another(bridge, kills):
    if kills:
        bridge.kill()
    else:
        bridge.terminate()


@pytest.mark.parametrize("kills", [True, False], ids=["killed", "stopped"])
def test_another_release_goes_on_and_back(bridge, feed, kubelet, kills):
    """With a list of which the kubelet has not read yet, and a call that is open."""
    ids = [f"device-{number:05}-{'x' * 40}" for number in range(20_000)]
    for version, binary in enumerate((OTHER, BINARY) * 3, start=2):
        answers = []
        asking = threading.Thread(target=lambda answers=answers: answers.append(
            allocate(kubelet, *ids[:2000])))
        settle(bridge)
        feed.show({GPU: Shown({one: place != version for place, one in enumerate(ids)},
                              version=version)})
        asking.start()
        end_one_way_or_another(bridge, kills)
        bridge.binary = binary
        bridge.start()
        asking.join()
        assert tokens_of(answers[0]) == [ids[:2000]]
        wait_until(lambda version=version: (kubelet.health(GPU) or {}).get(ids[version]) ==
                   "Unhealthy", "the list came")
    assert "cannot be gone on with" not in bridge.log()
    nothing_broke(kubelet)


def test_a_kubelet_that_went_meanwhile_is_registered_with_anew(bridge, kubelet, directory, closing,
                                                               manager):
    bridge.kill()
    kubelet.stop()
    another = closing(BareKubelet(directory / "device-plugins"))
    another.start()
    bridge.start()
    another.wait_health(GPU, {"g0": "Healthy", "g1": "Healthy"})
    assert tokens_of(allocate(another, "g0")) == [["g0"]]
    manager.wait_names(lambda names: len(names) == 3)


def test_a_stream_that_never_came_is_registered_anew(directory, closing, feed, manager):
    """The bridge died while the kubelet was at its Register."""
    kubelet = closing(BareKubelet(directory / "device-plugins", watches=False))
    kubelet.start()
    bridge = closing(Kept(directory, manager))
    bridge.start()
    kubelet.wait("options", GPU)
    wait_until(bridge.snapshot.exists, "the snapshot")
    time.sleep(0.1)  # the kubelet has answered Register by now, and asks for no list
    bridge.kill()
    kubelet.watches = True
    bridge.start()
    kubelet.wait_health(GPU, {"g0": "Healthy", "g1": "Healthy"})
    assert len(kubelet.of("register")) == 2


def test_restarted_as_told_it_goes_on(bridge, kubelet):
    for _ in range(3):
        bridge.terminate()
        bridge.start()
        assert tokens_of(allocate(kubelet, "g0")) == [["g0"]]
    nothing_broke(kubelet)
    assert len(kubelet.of("list")) == 1


def test_an_older_stream_is_left_open_by_the_next_one_too(bridge, feed, kubelet):
    """Of a resource that was registered anew: its end would disconnect the newer."""
    feed.show({GPU: Shown(["g0", "g1"], lost=1)})
    kubelet.wait("list", GPU, 2)
    for version in range(2, 6):
        feed.wait_report(GPU, lambda report: report.registered and report.stored)
        again(bridge)
        feed.wait_watched(version)
        feed.show({GPU: Shown({"g0": True, "g1": version % 2 == 1}, version=version, lost=1)})
        wait_until(lambda version=version: len(kubelet.clients[GPU].lists) == version,
                   "the newer stream has it")
        assert tokens_of(allocate(kubelet, "g0")) == [["g0"]]
    assert not kubelet.of("end")
    assert len(kubelet.of("register")) == 2
    assert len(kubelet.of("list")) == 6


def test_stopped_its_connections_end(bridge, kubelet, manager):
    """What the manager keeps, it ends."""
    bridge.terminate()
    manager.give_up()
    kubelet.wait("end", GPU)


# In the memfd's head, by offset: the format, and how many took it over in a row.
FORMAT_AT, TAKEOVERS_AT = 8, 24


@pytest.mark.parametrize("at, value, why", [
    (FORMAT_AT, 200, "another release's"), (TAKEOVERS_AT, 100, "processes that did died at once")])
def test_what_cannot_be_gone_on_with_is_ended(bridge, kubelet, manager, at, value, why):
    """The kubelet has time to work that off, and is registered with anew."""
    settle(bridge)
    bridge.kill()
    kept = [(name, fd) for name, fd in manager.kept() if name.startswith("connection/")]
    ((name, memory),) = [(name, fd) for name, fd in kept if stat.S_ISREG(os.fstat(fd).st_mode)]
    assert len(kept) == 2
    os.pwrite(memory, bytes([value]), at)
    bridge.start()
    bridge.wait_log(why)
    kubelet.wait("register", GPU, 2)
    (ended,), (_, anew) = kubelet.wait("end", GPU), kubelet.of("register", GPU)
    assert anew.time - ended.time > 0.08
    kubelet.wait("list", GPU, 2)
    assert tokens_of(allocate(kubelet, "g0")) == [["g0"]]
    assert name not in manager.names()
    again(bridge)
    assert tokens_of(allocate(kubelet, "g0")) == [["g0"]]
    assert len(kubelet.of("register")) == 2
