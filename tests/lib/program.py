"""One of our programs as a process.

Whatever test it runs in fails if it ends by itself, says anything of a sanitizer, or does not end
with status 0 on SIGTERM.
"""

import os
import pathlib
import select
import signal
import subprocess

from waiting import GENEROUS_S, wait_until

_FATAL = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:", "Assertion")


class Program:
    """`name`: in a test's words, as "the shim". `wrapper`: a command that execs what it is given."""

    wrapper = ()

    def __init__(self, name, log_path):
        self._name = name
        self.log_path = pathlib.Path(log_path)
        self._process = None

    def _spawn(self, *command):
        """One run appends its log to the last one's."""
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                [*self.wrapper, *command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)

    @property
    def pid(self):
        return self._process.pid

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_log(self, text, count=1):
        wait_until(lambda: self.log().count(text) >= count, f"{self._name}'s log says {text!r}")

    def kill(self):
        """As a crash: kill -9."""
        self._end(signal.SIGKILL)

    def terminate(self):
        """As a service manager stops it."""
        self._check_alive()
        self._terminate()

    def ends_within(self, seconds):
        """Whether it ends by itself meanwhile; wait_exit() is still to be called."""
        file = os.pidfd_open(self.pid)
        ended = select.select([file], [], [], seconds)[0]
        os.close(file)
        return bool(ended)

    def wait_exit(self):
        """For a run that must end by itself: its exit status."""
        self.ends_within(GENEROUS_S)
        status = self._process.wait(timeout=0)
        self._process = None
        return status

    def stop(self):
        if self._process is not None:
            self._check_alive()
            self._terminate()
        log = self.log()
        print(log[-10_000:])  # pytest shows it if the test failed
        for word in _FATAL:
            assert word not in log, f"{word} in {self._name}'s log:\n{log}"

    def _ended(self):
        return self._process.poll() is not None

    def _check_alive(self):
        status = self._process.poll()
        if status is not None:
            self._process = None
            raise AssertionError(
                f"{self._name} ended by itself with {status}:\n{self._last_words()}")

    def _end(self, number):
        self._check_alive()
        self._process.send_signal(number)
        return self.wait_exit()

    def _terminate(self):
        """One that has just been started may not handle SIGTERM yet."""
        allowed = (0,) if _handles(self.pid, signal.SIGTERM) else (0, -signal.SIGTERM)
        status = self._end(signal.SIGTERM)
        assert status in allowed, (
            f"{self._name} ended with {status} on SIGTERM:\n{self._last_words()}")

    def _last_words(self):
        return self.log()[-20_000:]


def _handles(pid, number):
    """Whether the process catches that signal."""
    (caught,) = [line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                 if line.startswith("SigCgt:")]
    return int(caught.split()[1], 16) >> (number - 1) & 1
