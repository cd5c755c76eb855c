"""Containers at a scripted runtime that do not end when they are told to.

    one = Deaf(runtime)
    one.let_go("id-1"); one.let_go()     # that one ends; all do
"""

import threading

from waiting import GENEROUS_S


class Deaf:
    def __init__(self, runtime):
        self._runtime = runtime
        self._ending = set()
        self._all = False
        self._change = threading.Condition()
        runtime.on("StopContainer", self._answer)

    def let_go(self, *containers):
        """Also those that are told to end later."""
        with self._change:
            self._ending.update(containers)
            self._all = self._all or not containers
            self._change.notify_all()

    def _answer(self, call):
        container = call.parsed().container_id
        with self._change:
            assert self._change.wait_for(lambda: self._all or container in self._ending, GENEROUS_S)
        return self._runtime.stop_container(call)
