"""What is done at its time, each in a thread of its own."""
import threading
import time
import traceback


def play_plan(plan, violations):
    """Plays (seconds from now on, what), in whatever order they are given; returns when all have ended. What one of
    them raised is added to `violations`."""
    def guarded(what):
        try:
            what()
        except BaseException:  # a thread's end must not go unseen, nor pytest.fail()
            violations.append(traceback.format_exc()[-4000:])

    began = time.monotonic()
    threads = []
    for at, what in sorted(plan, key=lambda one: one[0]):
        time.sleep(max(0, began + at - time.monotonic()))
        threads.append(threading.Thread(target=guarded, args=(what,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
