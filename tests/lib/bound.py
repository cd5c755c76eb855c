"""How much memory a daemon may take at its peak, on top of what it takes anyway.

With AddressSanitizer, which keeps what was freed and whose every allocation is larger, nothing is
compared; that all goes on is seen all the same.
"""

from process import MIB, Peak, is_sanitized, rss_bytes
from waiting import wait_until

# The allocator's: half-filled pages, and what small buffers leave behind.
SLACK_BYTES = 3 * MIB


class Bound:
    """check(bytes): so much more, at most, since this was made."""

    def __init__(self, shim):
        self._shim = shim
        self._peak = Peak(shim.pid)
        self._sanitized = is_sanitized(shim.pid)
        self.before = self._peak.before

    def growth_mib(self):
        return self._peak.growth() / MIB

    def check(self, bytes_max):
        growth = self._peak.growth()
        print(f"{growth / MIB:.1f} MiB of {(bytes_max + SLACK_BYTES) / MIB:.1f}")
        assert self._sanitized or growth < bytes_max + SLACK_BYTES

    def wait_gone(self):
        """Until next to nothing of it is left."""
        wait_until(lambda: self._sanitized or
                   rss_bytes(self._shim.pid) < self._peak.before + SLACK_BYTES, "memory goes back")
