"""Waiting for something to become true, with a generous end: the tests' only way to wait."""

import time

GENEROUS_S = 60
_POLL_S = 0.01


def wait_until(condition, what, seconds=GENEROUS_S, pause_s=_POLL_S):
    """The first truthy value of condition(); AssertionError naming `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause_s)
