"""A DRA driver that is only restarted: the kubelet, which would refuse its pods for a minute, sees nothing of it."""

import queue
import threading
import time

import pytest

from ctl import ctl_json
from kubelet_drivers import claim
from waiting import GENEROUS_S, wait_until

GPU = "gpu.example.com"
MASK_S = 2
LOST = 3  # so often a driver ends at a claim before that is refused


@pytest.fixture
def mask_s():
    return MASK_S


@pytest.fixture
def shim(runtime, make_shim, mask_s):
    return make_shim(dra={"mask": f"{mask_s}s"})


@pytest.mark.parametrize("mask_s", [GENEROUS_S])
def test_a_driver_that_is_restarted_stays_at_the_kubelet(bridge, kubelet, make_driver):
    """What is asked of it meanwhile waits, and is answered by its next process."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    instance = kubelet.instance(GPU)
    driver.stop()
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1")])
    driver.start()
    assert asked.result().claims["c-1"].devices
    assert kubelet.instance(GPU) is instance and instance.losses() == 0


@pytest.mark.parametrize("mask_s", [GENEROUS_S])
def test_a_daemon_that_is_restarted_meanwhile_costs_none_that_waits(shim, bridge, kubelet, make_driver):
    """The next one waits for the driver in its place."""
    driver = make_driver()
    kubelet.wait_at_work(GPU)
    instance = kubelet.instance(GPU)
    driver.stop()
    asked = kubelet.begin(GPU, "NodePrepareResources", [claim("c-1"), claim("c-2")])
    wait_until(lambda: ctl_json(shim, "drivers")["items"][0]["claims"]["waits"] == 2, "both wait for the driver")
    shim.stop()
    shim.start()
    driver.start()
    answers = asked.result().claims
    assert [bool(answers[uid].devices) for uid in ("c-1", "c-2")] == [True, True]
    assert kubelet.instance(GPU) is instance and instance.losses() == 0


@pytest.mark.parametrize("mask_s", [GENEROUS_S])
def test_a_claim_at_which_it_ends_each_time_is_refused(bridge, kubelet, make_driver):
    """Not for ever, nor are others; and the kubelet's next try is one."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    fine, asked = driver.on_prepare, queue.SimpleQueue()

    def ends(_claim):
        gone = threading.Event()
        asked.put(gone)
        gone.wait(GENEROUS_S)
        return "which nobody hears"

    driver.on_prepare = ends
    call = kubelet.begin(GPU, "NodePrepareResources", [claim("bad")])
    call.add_done_callback(lambda _: asked.put(None))
    while gone := asked.get(timeout=GENEROUS_S):
        driver.stop_serving()
        gone.set()
        driver.serve()
    assert "the driver has ended each time that it was asked" in call.result().claims["bad"].error
    driver.on_prepare = fine
    assert kubelet.prepare(GPU, [claim("good")])["good"].devices
    times = len(driver.calls_of("NodePrepareResources")) - 1
    assert driver.calls_of("NodePrepareResources") == times * ["bad"] + ["good"]
    assert 1 < times <= LOST  # one that arrives as the driver ends may be lost before that sees it
    assert kubelet.prepare(GPU, [claim("bad")])["bad"].devices


def test_a_driver_that_stays_away_is_withdrawn(bridge, kubelet, make_driver):
    """Not before its time, so that the kubelet wipes its slices."""
    driver = make_driver()
    kubelet.wait_registered(GPU)
    stopped = time.monotonic()
    driver.stop()
    kubelet.wait_gone(GPU)
    assert time.monotonic() - stopped >= MASK_S
    driver.start()
    kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices


def test_nobody_looks_on_when_a_mask_ends(shim, bridge, kubelet, make_driver):
    driver = make_driver()
    kubelet.wait_registered(GPU)
    stopped = time.monotonic()
    driver.stop()
    bridge.stop()
    wait_until(lambda: time.monotonic() - stopped > 1.5 * MASK_S, "the mask has ended")
    bridge.start()
    driver.start()
    kubelet.wait_registered(GPU)
    assert kubelet.prepare(GPU, [claim("c-1")])["c-1"].devices
