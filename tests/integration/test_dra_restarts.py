"""Restarts of driver, daemon, bridge and kubelet, each alone and every two overlapping, under pods whose
claims come and go: every pod runs in the end with exactly its devices, no claim is left prepared, no
call is answered twice or not at all, and no driver is asked for one claim by two calls at once, or to
unprepare one that a pod has.

SHIM_DRA_SEED plays other rounds, SHIM_DRA_ROUNDS more of them for each pair.
"""

import collections
import contextlib
import itertools
import os
import random
import threading
import time
import traceback

import pytest

from bridge_process import Bridge
from dra_driver import V1, V1BETA1, Driver
from kubelet_claims import KubeletClaims, PodClaim
from kubelet_drivers import KubeletDrivers
from supervisor import Supervisor, supervised
from telling import tell
from waiting import wait_until

SEED = os.environ.get("SHIM_DRA_SEED", "1")
ROUNDS = int(os.environ.get("SHIM_DRA_ROUNDS", "2"))
GPU, NIC = "gpu.example.com", "nic.example.com"
PARTS = ("driver", "daemon", "bridge", "kubelet")
_PAIRS = [(one,) for one in PARTS] + list(itertools.combinations(PARTS, 2))
_ROUND_S = 0.5       # in which what happens in a round begins
_HAPPENINGS = 14     # in a round, besides the restarts
_BACK_S = 0.05, 0.4  # at most, from a part's end until it is started again
_TAKES_S = 0.05      # at most, a driver for a claim
_PODS_MAX = 8


class _Call:
    """One claim's part in a call of a driver. `counts`: whoever asked was there until its end; what a
    daemon has asked that died meanwhile does not."""

    def __init__(self, what):
        self.what = what
        self.counts = None


class WatchedDriver(Driver):
    """Takes its time, and dies with its calls, of which it has done none or one whole claim.

    `book`: what the instances of one driver have in common, and what they saw.
    """

    def __init__(self, *arguments, book, **settings):
        super().__init__(*arguments, **settings)
        self.book = book
        self.prepared, self._serial = book.prepared, book.serial
        self.on_prepare, self.on_unprepare = self._take, self._give_back
        self._dying = threading.Event()
        self._here = threading.local()  # of a call: its context

    def start(self):
        self._dying.clear()
        super().start()

    def stop(self):
        """As a process ends: nothing of it is done later."""
        self._dying.set()
        super().stop()
        wait_until(lambda: not self.book.under_way_of(self), "its calls are over")

    def _prepare(self, service, request, context):
        with self._asked("prepare", request, context):
            return super()._prepare(service, request, context)

    def _unprepare(self, service, request, context):
        with self._asked("unprepare", request, context):
            return super()._unprepare(service, request, context)

    @contextlib.contextmanager
    def _asked(self, what, request, context):
        self._here.context = context
        calls = [self.book.begin(self, what, one.uid) for one in request.claims]
        try:
            yield
        finally:
            for call in calls:
                self.book.end(self, call, context.is_active())

    def _is_over(self):
        return self._dying.wait(self.book.takes_s()) or not self._here.context.is_active()

    def _take(self, one):
        return "the driver ends" if self._is_over() else self._devices(one)

    def _give_back(self, one):
        if self._is_over():
            return "the driver ends"
        self.book.given_back(one.uid)
        return ""


class Book:
    """`holders(uid)`: the pods that have a claim."""

    def __init__(self, name, seed, holders):
        self.name = name
        self.prepared = {}
        self.serial = threading.Lock()
        self.violations = []
        self.calls = collections.Counter()
        self._holders = holders
        self._random = random.Random(f"{seed} {name}")
        self._under_way = []  # (driver, uid, call)
        self._together = []   # calls for one claim
        self._lock = threading.Lock()

    def takes_s(self):
        with self._lock:
            return _TAKES_S * self._random.random() ** 2

    def begin(self, driver, what, uid):
        call = _Call(f"{what} {uid}")
        with self._lock:
            self.calls[what] += 1
            self._together += [(other, call) for _, its, other in self._under_way if its == uid]
            self._under_way.append((driver, uid, call))
        return call

    def end(self, driver, call, active):
        with self._lock:
            call.counts = active
            self._under_way = [one for one in self._under_way if one[2] is not call]

    def under_way_of(self, driver):
        with self._lock:
            return [call.what for its, _, call in self._under_way if its is driver]

    def given_back(self, uid):
        if holders := self._holders(uid):
            self.violations.append(f"{self.name} unprepares {uid}, which {holders} have")

    def judge(self):
        with self._lock:
            return self.violations + [
                f"{self.name} was asked at once: {one.what}, {other.what}"
                for one, other in self._together if one.counts and other.counts]


class Storm:
    """All parts of the node, and what happens to them."""

    def __init__(self, shim, bridge, directory, seed):
        self.violations = []
        self.came = 0
        self._random = random.Random(seed)
        self._shim, self._bridge = shim, bridge
        self._registrations = KubeletDrivers(directory / "kubelets_registry")
        self.kubelet = KubeletClaims(self._registrations, directory / "dra_manager_state", seed)
        self.books = [Book(name, seed, self.kubelet.holders) for name in (GPU, NIC)]
        self._instances = itertools.count(1)
        self._plugins = directory / "plugins"
        self._drivers = {book.name: self._make_driver(book, None) for book in self.books}
        self._claims = itertools.count()

    def _make_driver(self, book, instance):
        services = [V1, V1BETA1] if book.name == GPU else [V1BETA1]
        return WatchedDriver(self._shim.registry_dir, self._plugins, book.name, services, instance,
                             book=book)

    def start(self):
        for driver in self._drivers.values():
            driver.start()
        self.kubelet.start()

    def stop(self):
        self.kubelet.stop()
        for driver in self._drivers.values():
            driver.stop()

    # ---- one round ----

    def round(self, pair):
        plan = self._plan(pair)
        began = time.monotonic()
        threads = []
        for at, what in sorted(plan, key=lambda one: one[0]):
            time.sleep(max(0, began + at - time.monotonic()))
            threads.append(threading.Thread(target=self._guarded, args=(what,)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        if not self.violations:
            self._settle()
        self.violations += self._registrations.twice + self.kubelet.late
        for book in self.books:
            self.violations += book.judge()

    def end(self):
        for pod in self.kubelet.live():
            self.kubelet.delete_pod(pod)
        self._settle()

    def _guarded(self, what):
        try:
            what()
        except Exception:  # a thread's end must not go unseen
            self.violations.append(traceback.format_exc()[-4000:])

    def _plan(self, pair):
        """[(when, what)]: all that is random is decided here."""
        rng = self._random
        at = rng.uniform(0, _ROUND_S / 2)
        plan = []
        for part in pair:
            plan.append((at, self._planned_restart(part, rng)))
            at += _ROUND_S * rng.random() ** 2
        choices = [self._come, self._come, self._come, self._delete, self._force, self._lose_sandbox]
        for _ in range(_HAPPENINGS):
            happening, seed = rng.choice(choices), rng.random()
            plan.append((rng.uniform(0, _ROUND_S),
                         lambda what=happening, seed=seed: what(random.Random(seed))))
        return plan

    # ---- restarts ----

    def _planned_restart(self, part, rng):
        back = rng.uniform(0, rng.choice(_BACK_S))
        if part == "driver":
            book, how = rng.choice(self.books), rng.choice([self._restart_driver, self._roll_over])
            return lambda: how(book, back)
        if part == "kubelet":
            return lambda: self._restart(self.kubelet.stop, self.kubelet.start, back)
        program = self._shim if part == "daemon" else self._bridge
        end = rng.choice([program.kill, program.terminate])
        return lambda: self._restart(end, program.start, back)

    @staticmethod
    def _restart(end, start, back):
        end()
        time.sleep(back)
        start()

    def _restart_driver(self, book, back):
        driver = self._drivers[book.name]
        self._restart(driver.stop, driver.start, back)

    def _roll_over(self, book, back):
        """The new instance comes first, and the old one stays for a while."""
        old, new = self._drivers[book.name], self._make_driver(book, next(self._instances))
        new.start()
        self._drivers[book.name] = new
        new.wait_registered()
        time.sleep(back)
        old.stop()

    # ---- what happens besides ----

    def _come(self, rng):
        """A pod of one to three claims, each of one driver or both, new or another pod's."""
        live = self.kubelet.live()
        if len(live) >= _PODS_MAX:
            return
        shared = sorted({one for pod in live for one in pod.claims}, key=lambda one: one.uid)
        claims = set(rng.sample(shared, min(len(shared), rng.choice([0, 0, 1, 2]))))
        for _ in range(max(rng.randint(1, 3) - len(claims), 0 if claims else 1)):
            claims.add(PodClaim(f"c-{next(self._claims)}",
                                rng.choice([(GPU,), (NIC,), (GPU, NIC)])))
        self.came += 1
        self.kubelet.add_pod(sorted(claims, key=lambda one: one.uid))

    def _some_pod(self, rng, do):
        if live := self.kubelet.live():
            do(rng.choice(live))

    def _delete(self, rng):
        self._some_pod(rng, self.kubelet.delete_pod)

    def _force(self, rng):
        self._some_pod(rng, lambda pod: self.kubelet.delete_pod(pod, force=True))

    def _lose_sandbox(self, rng):
        self._some_pod(rng, self.kubelet.lose_sandbox)

    # ---- what must be ----

    def _settle(self):
        try:
            wait_until(self._is_settled, "all pods run or are gone")
        except AssertionError as error:
            self.violations.append(str(error))
            self.violations += [str(pod) for pod in self.kubelet.pods.values() if not pod.gone]
            return
        claims = {one for pod in self.kubelet.live() for one in pod.claims}
        for book in self.books:
            wanted = sorted(one.uid for one in claims if book.name in one.drivers)
            if sorted(book.prepared) != wanted:
                self.violations.append(
                    f"{book.name} has {sorted(book.prepared)} prepared, and not {wanted}")
        for pod in self.kubelet.live():
            wanted = {one.uid: sorted(f"{name}/device={one.uid}" for name in one.drivers)
                      for one in pod.claims}
            if pod.devices != wanted:
                self.violations.append(f"{pod}: and not {wanted}")

    def _is_settled(self):
        """With no entry left of pods that are gone."""
        live = self.kubelet.live()
        return (all(pod.devices is not None for pod in live)
                and all(pod.gone for pod in list(self.kubelet.pods.values()) if pod.deleting)
                and self.kubelet.entries() == sorted({one.uid for pod in live for one in pod.claims}))


@pytest.fixture
def storm(shim, directory, closing):
    bridge = closing(supervised(Bridge, closing(Supervisor(directory, name="notify-bridge")))(
        directory, socket=str(shim.feed)))
    bridge.start()
    one = closing(Storm(shim, bridge, directory, SEED))
    one.start()
    return one


def test_pods_live_through_restarts(request, storm):
    print(f"SHIM_DRA_SEED={SEED} SHIM_DRA_ROUNDS={ROUNDS}")
    began = time.monotonic()
    rounds = _PAIRS * ROUNDS
    for number, pair in enumerate(rounds):
        storm.round(pair)
        assert not storm.violations, f"round {number}, {pair}:\n" + "\n".join(storm.violations)
    storm.end()
    assert not storm.violations, "\n".join(storm.violations)
    calls = sum((book.calls for book in storm.books), collections.Counter())
    assert storm.came >= len(rounds) and min(calls["prepare"], calls["unprepare"]) >= len(rounds)
    print(storm.kubelet.failures)
    tell(request, f"{len(rounds)} rounds of restarts of DRA's parts, seed {SEED}: {storm.came} pods came, "
                  f"drivers prepared {calls['prepare']} claims and unprepared {calls['unprepare']}, "
                  f"in {time.monotonic() - began:.0f} s")
