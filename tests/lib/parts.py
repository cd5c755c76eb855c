"""The parts of a node, each of which can go and come back, and all of them with its power.

A class of nodes sets `parts`, {name: [what has start(), kill(), terminate() and stop()]}, in the order in which
they go when the node is switched off, `managers`, {name: the service manager that keeps a part's descriptors}, and
says in _lose_power() and _boot() what that is besides. The directory stands for the disk, its `run` for what a
reboot empties.
"""

import pathlib
import shutil
import threading
import time

KILL, TERM = "KILL", "TERM"


class Parts:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.run_dir = self.directory / "run"
        self.run_dir.mkdir(parents=True)
        self.boot = 0
        self.moments = []  # (part, "down" or "up", when on CLOCK_MONOTONIC)
        self.parts = {}
        self.managers = {}
        self._running = set()
        self._power = threading.RLock()  # also: one part goes or comes at a time
        self._on = False

    def up(self, part):
        """Starts it if it does not run, and the node does; waits for nothing."""
        with self._power:
            if not self._on:
                return
            for one in self.parts[part]:
                if id(one) not in self._running:
                    self.moments.append((part, "up", time.monotonic()))
                    getattr(one, "spawn", one.start)()
                    self._running.add(id(one))

    def down(self, part, how=KILL, which=None):
        """Ends it if it runs; `which`: only that one of several."""
        with self._power:
            parts = self.parts[part]
            for one in parts if which is None else [parts[which % len(parts)]]:
                if id(one) in self._running:
                    self.moments.append((part, "down", time.monotonic()))
                    self._running.discard(id(one))
                    (one.kill if how == KILL else one.terminate)()

    def power_off(self, how=KILL):
        with self._power:
            self._on = False
            for part in self.parts:
                self.down(part, how)
            for manager in self.managers.values():
                manager.give_up()
            self._lose_power()
            shutil.rmtree(self.run_dir)

    def power_on(self, order, pause=lambda: None):
        """Starts the parts in that order; pause() between each two."""
        with self._power:
            self._begin()
        self._up(order, pause)

    def reboot(self, how, order, pause):
        """Off and on, with no other restart in between."""
        with self._power:
            self.power_off(how)
            self._begin()
        self._up(order, pause)

    def stop(self):
        """Everything ends in order; AssertionError as from each of its parts."""
        errors = []
        for one in (one for part in self.parts.values() for one in part):
            try:
                one.stop()
            except AssertionError as error:
                errors.append(str(error))
        for manager in self.managers.values():
            manager.stop()
        assert not errors, "\n".join(errors)

    def _begin(self):
        self.boot += 1
        self.run_dir.mkdir(exist_ok=True)
        self._boot()
        self._on = True

    def _up(self, order, pause):
        for part in order:
            self.up(part)
            pause()

    def _lose_power(self):
        """Everything has ended."""

    def _boot(self):
        """Nothing has begun."""
