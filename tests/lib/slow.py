"""Calls that wait at a scripted runtime until the test lets them go on."""

import threading

from runtime import Reply
from waiting import GENEROUS_S


class Slow:
    """Those of that method wait for release()."""

    def __init__(self, runtime, method):
        self.came = threading.Event()
        self._go = threading.Event()
        self.calls = []
        runtime.on(method, self._call)

    def _call(self, call):
        self.calls.append(call)
        self.came.set()
        assert self._go.wait(GENEROUS_S)
        assert not call.over.is_set(), "it was cancelled"
        return Reply()

    def release(self):
        self._go.set()
