"""A DRA driver that dies in the middle of its calls, and a book of what is asked of it and must not be.

    book = Book("gpu.example.com", "node-1", seed, allocations, holders, cdi_files, excused)
    slot = Slot(lambda instance, moved: WatchedDriver(registry_dir, plugins_dir, name, services, instance, book=book))
    slot.start(); slot.kill(); slot.start(); slot.roll_over(0.1); slot.move(0.1, both=True)
    book.judge()        # what was wrong
"""

import collections
import contextlib
import itertools
import random
import socket
import threading
import time

from dra_driver import Driver
from protos import dra
from waiting import wait_until

_TAKES_S = 0.05  # at most, a driver for a claim


class _Call:
    """One claim's part in a call of a driver. `counts`: whoever asked was there until its end; what a
    daemon has asked that died meanwhile does not. `moved`: the kubelet has asked by itself."""

    def __init__(self, what, uid, moved):
        self.what = f"{what} {uid}"
        self.prepares = what == "prepare"
        self.moved = moved
        self.counts = None

    def may_meet(self, other):
        """Two pods that begin together have a kubelet prepare their claim twice, each at the instance that is the
        newest then: which it may have from here, and which not."""
        return self.prepares and other.prepares and (self.moved or other.moved)


class WatchedDriver(Driver):
    """Takes its time, and dies with its calls, of which it has done none or one whole claim. What it has prepared
    is on its disk; a device that it has prepared for one claim it prepares for no other.

    `book`: what the instances of one driver have in common, and what they saw. `moved`: it registers with the kubelet
    itself.
    """

    def __init__(self, *arguments, book, moved=False, **settings):
        super().__init__(*arguments, pool=book.pool, **settings)
        self.book = book
        self.moved = moved
        self.prepared, self._serial = book.prepared, book.serial
        self.on_prepare, self.on_unprepare = self._take, self._give_back
        self._dying = threading.Event()
        self._here = threading.local()  # of a call: its context

    def start(self):
        self._dying.clear()
        self.registrar.stop()
        super().start()

    def stop(self):
        """As a process ends: nothing of it is done later."""
        self._dying.set()
        super().stop()
        wait_until(lambda: not self.book.under_way_of(self), "its calls are over")

    def kill(self):
        """Its registration's socket stays, and is served, as by a registrar beside it."""
        self._dying.set()
        self.stop_serving()
        wait_until(lambda: not self.book.under_way_of(self), "its calls are over")

    def lose_power(self):
        """It has been killed; nobody serves the sockets that are left."""
        self.registrar.stop()
        for path in self.registrar.path, self.endpoint:
            path.unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(path))

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
                self.book.end(call, context.is_active())

    def _is_over(self):
        return self._dying.wait(self.book.takes_s()) or not self._here.context.is_active()

    def _take(self, one):
        if self._is_over():
            return "the driver ends"
        return self.book.held(one.uid) or self._devices(one)

    def _devices(self, claim):
        name = self.book.cdi_name(claim.uid)
        self.book.cdi_files.add(name)
        return [dra.Device(request_names=["r"], pool_name=self.pool, device_name=self.book.device(claim.uid),
                           cdi_device_ids=[name])]

    def _give_back(self, one):
        if self._is_over():
            return "the driver ends"
        self.book.given_back(one.uid)
        return ""


class Book:
    """`allocations`: {(claim uid, driver): device}. `holders(uid)`: the pods whose containers have a claim.
    `cdi_files`: names, shared by all drivers. `excused(uid)`: whether a device may be given to another claim
    before its driver is told to unprepare this one."""

    def __init__(self, name, pool, seed, allocations, holders, cdi_files, excused):
        self.name = name
        self.pool = pool
        self.prepared = {}
        self.serial = threading.Lock()
        self.violations = []
        self.calls = collections.Counter()
        self.cdi_files = cdi_files
        self._allocations = allocations
        self._holders = holders
        self._excused = excused
        self._random = random.Random(f"{seed} {name}")
        self._under_way = []  # (driver, uid, call)
        self._together = []   # calls for one claim
        self._lock = threading.Lock()

    def takes_s(self):
        with self._lock:
            return _TAKES_S * self._random.random() ** 2

    def device(self, uid):
        return self._allocations[uid, self.name]

    def cdi_name(self, uid):
        return f"{self.name}/device={uid}"

    def begin(self, driver, what, uid):
        call = _Call(what, uid, driver.moved)
        if what == "prepare" and not driver.moved:  # else the kubelet asks, who knows nothing of what is owed here
            self._look_for_holder(uid)
        with self._lock:
            self.calls[what] += 1
            self._together += [(other, call) for _, its, other in self._under_way if its == uid]
            self._under_way.append((driver, uid, call))
        return call

    def end(self, call, active):
        with self._lock:
            call.counts = active
            self._under_way = [one for one in self._under_way if one[2] is not call]

    def under_way_of(self, driver):
        with self._lock:
            return [call.what for its, _, call in self._under_way if its is driver]

    def _others(self, uid):
        """The claims that it has prepared the same device for."""
        device = self.device(uid)
        return [one for one in list(self.prepared) if one != uid and self.device(one) == device]

    def _look_for_holder(self, uid):
        """Already when it is asked: calls that come together may be done in any order."""
        self.violations += [f"{self.name} is asked to prepare {self.device(uid)} for {uid} before it has "
                            f"unprepared {other}" for other in self._others(uid) if not self._excused(other)]

    def held(self, uid):
        """Why its device cannot be had; ""."""
        return "".join(f"{self.device(uid)} is prepared for claim {other}" for other in self._others(uid))

    def given_back(self, uid):
        if holders := self._holders(uid):
            self.violations.append(f"{self.name} unprepares {uid}, which {holders} have")
        self.cdi_files.discard(self.cdi_name(uid))

    def forgive(self):
        """What judge() has told."""
        with self._lock:
            self.violations.clear()
            self._together.clear()

    def judge(self):
        with self._lock:
            return self.violations + [
                f"{self.name} was asked at once: {one.what}, {other.what}"
                for one, other in self._together
                if one.counts and other.counts and not one.may_meet(other)]


class Slot:
    """A driver's place on a node: one instance of it, two while it is rolled over. `make(instance, moved)` makes one; its
    first has no instance. `moved`: it registers with the kubelet itself."""

    def __init__(self, make):
        self._make = make
        self._numbers = itertools.count(1)
        self._instances = [make(None, False)]
        self._lock = threading.RLock()
        self.is_up = self.moved = False

    def start(self):
        with self._lock:
            self.is_up = True
            self._instances[-1].start()

    def kill(self):
        self._end("kill")

    def terminate(self):
        self._end("stop")

    stop = terminate

    def _end(self, how):
        with self._lock:
            self.is_up = False
            *others, newest = self._instances
            for one in others:
                one.stop()
            self._instances = [newest]
            getattr(newest, how)()

    def lose_power(self):
        self._instances[-1].lose_power()

    def move(self, wait_s, both):
        """To the kubelet itself, or back. `both`: by a roll-over; else the old one ends before."""
        if both:
            self.roll_over(wait_s, moves=True)
            return
        with self._lock:
            if self.is_up:
                self.terminate()
                self.moved = not self.moved
                self._instances = [self._make(next(self._numbers), self.moved)]
                time.sleep(wait_s)
                self.start()

    def roll_over(self, wait_s, moves=False):
        """The new instance comes first, and the old one stays for a while; if both are not ended meanwhile."""
        with self._lock:
            if not self.is_up:
                return
            self.moved ^= moves
            old, new = self._instances[-1], self._make(next(self._numbers), self.moved)
            new.start()
            self._instances.append(new)
        wait_until(lambda: new.registrar.registered or new not in self._instances or not self.is_up,
                   f"the new {new.name} is registered")
        time.sleep(wait_s)
        with self._lock:
            if old in self._instances[:-1]:
                self._instances.remove(old)
                old.stop()
