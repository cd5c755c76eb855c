"""A device plugin in a process of its own, as it would run on a node: it registers whenever
kubelet.sock is made anew, with a server made anew, and its devices' paths name the boot.

    plugin = NodePlugin(plugin_dir, "vendor.com/gpu", ["gpu0", "gpu1"], boot=1)
    plugin.start(); plugin.kill(); plugin.start(); plugin.terminate()
    plugin.wait_line("Allocate")        # it says which of its methods is called

`delay_s`: how long each Allocate takes; `stop_in`: the method in which it stops itself (SIGSTOP),
until resume().
"""

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

import grpc

import nursery
from plugin import Plugin
from protos import deviceplugin
from waiting import GENEROUS_S

_POLL_S = 0.02
_STOP_S = 20


def host_path(device, boot):
    return f"/dev/boot{boot}-{device}"


def container_path(device):
    return f"/dev/{device}"


def env_of(resource):
    return "DEVICES_" + resource.replace("/", "_").replace(".", "_").upper()


class NodePlugin:
    def __init__(self, plugin_dir, resource, devices, boot=1, delay_s=0, stop_in=None, prefer=False,
                 log_path=None):
        self.resource = resource
        self.settings = {"plugin_dir": str(plugin_dir), "resource": resource, "devices": devices,
                         "boot": boot, "delay_s": delay_s, "stop_in": stop_in, "prefer": prefer}
        self._log_path = log_path or pathlib.Path(plugin_dir).with_name("plugin.log")
        self._process = None
        self._lines = queue.Queue()

    def start(self):
        """Does not wait for anything: kubelet.sock may come later."""
        assert self._process is None
        with open(self._log_path, "ab") as log:
            self._process = nursery.start(__file__, json.dumps(self.settings), log=log)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, args=(self._process.stdout, self._lines),
                         daemon=True).start()

    @staticmethod
    def _read(stdout, lines):
        with stdout:
            for line in stdout:
                lines.put(line.rstrip("\n"))

    def wait_line(self, line):
        """Lines before it are passed over."""
        end = time.monotonic() + GENEROUS_S
        while self._lines.get(timeout=max(0, end - time.monotonic())) != line:
            pass

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        self._end(signal.SIGKILL)

    def terminate(self):
        """It stops its server and goes."""
        self._end(signal.SIGTERM)

    def stop(self):
        if self._process is not None:
            self.kill()

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def is_stopped(self):
        return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][0] == "T"

    def _end(self, number):
        self._process.send_signal(number)
        try:
            self._process.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:  # Python's gRPC may hang in its end
            self._process.kill()
            self._process.wait()
        self._process.stdin.close()
        self._process = None


def _say(word):
    """A line at once and in one piece, from any thread."""
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


def _behaviour(settings):
    def options(ids):
        return deviceplugin.AllocateResponse(container_responses=[
            deviceplugin.ContainerAllocateResponse(
                envs={env_of(settings["resource"]): ",".join(ids)},
                devices=[deviceplugin.DeviceSpec(
                    container_path=container_path(one), permissions="rw",
                    host_path=host_path(one, settings["boot"])) for one in ids])])

    def allocate(request, _context):
        time.sleep(settings["delay_s"])
        return options(request.container_requests[0].devices_ids)

    return allocate


class _Telling(Plugin):
    """Says what it is called, and stops itself where it is told to."""

    def __init__(self, settings):
        prefer = (lambda available, _must, size: sorted(available)[:size])
        super().__init__(settings["plugin_dir"], settings["resource"], settings["devices"],
                         prefer=prefer if settings["prefer"] else None)
        self._stop_in = settings["stop_in"]
        self.on_allocate = _behaviour(settings)

    def _recorded(self, name, behaviour):
        def handler(request, context):
            _say(name)
            if name == self._stop_in:
                # To this thread: sent to the process, it may come after the answer.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            return behaviour(request, context)

        return handler


def _identity(path):
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime_ns


def register_while(goes_on, plugin, registered=lambda: None):
    """Serves and registers the Plugin whenever kubelet.sock is made anew, as long as goes_on()."""
    known = None
    while goes_on():
        now = _identity(plugin.plugin_dir / "kubelet.sock")
        if now is not None and now != known:
            plugin.stop()
            try:
                plugin.start()
                known = now
                registered()
            except (grpc.RpcError, AssertionError):
                pass  # tried again
        time.sleep(_POLL_S)
    plugin.stop()


def main():
    settings = json.loads(sys.argv[1])
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    register_while(lambda: not over.is_set(), _Telling(settings), lambda: _say("registered"))
