"""A thread that serves something.

    thread = serving_thread.start(run)    # run(started) sets the event once it serves
"""

import threading

from waiting import GENEROUS_S


def start(run):
    """Returns when it serves."""
    started = threading.Event()
    thread = threading.Thread(target=run, args=(started,), daemon=True)
    thread.start()
    assert started.wait(GENEROUS_S)
    return thread
