"""Starts the bridge under test with a config of its own, and looks after it as shim.py does.

    one = Bridge(directory); one.start(); one.kill(); one.start(); one.stop()
"""

import json
import pathlib
import signal
import subprocess

from shim import BINARY as SHIM_BINARY
from waiting import wait_until

BINARY = SHIM_BINARY.with_name("cri-device-shim-bridge")
_FATAL = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "Assertion")


class Bridge:
    """`settings` override keys of [bridge]."""

    def __init__(self, directory, **settings):
        self.directory = pathlib.Path(directory)
        self.feed_socket = self.directory / "run" / "bridge.sock"
        self.kubelet_dir = self.directory / "device-plugins"
        self.snapshot = self.feed_socket.with_name("bridge.snapshot")
        self.log_path = self.directory / "bridge.log"
        self.config_path = self.directory / "bridge.toml"
        self.settings = {"socket": str(self.feed_socket),
                         "kubelet_plugin_dir": str(self.kubelet_dir), **settings}
        self._process = None

    def endpoint(self, resource):
        return self.kubelet_dir / "cri-device-shim" / f"{resource.replace('/', '_')}.sock"

    def spawn(self, *arguments):
        table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items())
        self.config_path.write_text(f'log_level = "debug"\n[bridge]\n{table}')
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                [BINARY, "--config", self.config_path, *arguments], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def start(self):
        """Returns at once: nothing of it can be waited for from outside but what it does."""
        self.spawn()

    @property
    def pid(self):
        return self._process.pid

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_log(self, text, count=1):
        wait_until(lambda: self.log().count(text) >= count, f"the bridge's log says {text!r}")

    def kill(self):
        """As a crash: kill -9."""
        self._check_alive()
        self._process.kill()
        self._process.wait()
        self._process = None

    def wait_exit(self):
        status = self._process.wait(timeout=60)
        self._process = None
        return status

    def stop(self):
        if self._process is not None:
            self._check_alive()
            self._process.send_signal(signal.SIGTERM)
            status = self.wait_exit()
            assert status == 0, f"the bridge ended with {status} on SIGTERM:\n{self.log()}"
        log = self.log()
        print(log[-10_000:])  # pytest shows it if the test failed
        for word in _FATAL:
            assert word not in log, f"{word} in the bridge's log:\n{log}"

    def _check_alive(self):
        status = self._process.poll()
        if status is not None:
            self._process = None
            raise AssertionError(f"the bridge ended by itself with {status}:\n{self.log()}")
