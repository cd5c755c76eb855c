"""A CRI client in a process of its own, which bears the name that a test chooses.

    kubelet = NamedClient(shim.socket, "kubelet")
    kubelet.call("Version", version="")
    relist = kubelet.begin("ListContainers", filter=cri.ContainerFilter())   # a future
    kubelet.reconnect()                                  # after a restart of the server
    kubelet.kill()

A call ends in the name of its status code, "OK" or another.
"""

import concurrent.futures
import json
import pathlib
import sys
import threading

import nursery
from criclient import Client, request_type
from waiting import GENEROUS_S


class NamedClient:
    def __init__(self, socket, name):
        self._calls = {}
        self._process = nursery.start(__file__, socket, name)
        assert self._process.stdout.readline() == "ready\n", f"{name} did not start"
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._process.pid

    def begin(self, method, timeout=GENEROUS_S, **fields):
        request = request_type(method)(**fields).SerializeToString()
        call = concurrent.futures.Future()
        number = len(self._calls)
        self._calls[number] = call
        self._tell([number, method, request.hex(), timeout])
        return call

    def reconnect(self):
        """Client.reconnect(), before all later calls."""
        self._tell(None)

    def _tell(self, what):
        json.dump(what, self._process.stdin)
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def call(self, method, **fields):
        return self.begin(method, **fields).result(GENEROUS_S)

    def _read(self):
        for line in self._process.stdout:
            number, code = json.loads(line)
            self._calls[number].set_result(code)

    def kill(self):
        self._process.kill()
        self._process.wait(GENEROUS_S)
        self._reader.join(GENEROUS_S)
        self._process.stdin.close()
        self._process.stdout.close()

    stop = kill


def _serve(socket):
    client = Client(socket)
    output = threading.Lock()

    def ended(number, call):
        with output:
            print(json.dumps([number, call.code().name]), flush=True)

    for line in sys.stdin:
        what = json.loads(line)
        if what is None:
            client.reconnect()
            continue
        number, method, request, timeout = what
        call = client.begin(method, request_type(method).FromString(bytes.fromhex(request)),
                            timeout=timeout, wait_for_ready=True)
        call.add_done_callback(lambda call, number=number: ended(number, call))


def main():
    pathlib.Path("/proc/self/comm").write_text(sys.argv[2])
    print("ready", flush=True)
    _serve(sys.argv[1])
