"""A shim whose service manager keeps descriptors, and says when it is ready: its sockets are there
before it is."""

from shim import Shim
from supervisor import supervised
from waiting import wait_until


def _ready(manager):
    """How often one of its processes has said so."""
    return sum("READY" in one for one in manager.states)


def kept_shim(manager):
    """The class Shim, whose processes `manager` starts."""
    class Kept(supervised(Shim, manager)):
        def start(self):
            before = _ready(manager)
            super().start()
            wait_until(lambda: _ready(manager) > before or self._ended(), "the shim is ready")
            self._check_alive()

    return Kept
