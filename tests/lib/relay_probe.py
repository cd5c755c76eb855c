"""How long a call takes that is only relayed, again and again, beside the same call to the runtime itself; in a process of
its own, whose processor time is nobody else's.

    probe = RelayProbe(shim_socket, runtime_socket); probe.start()
    probe.rows          # [(when on CLOCK_MONOTONIC, ms or what it failed with, ms of the runtime's own or likewise)]
    probe.stop()
"""

import contextlib
import json
import os
import sys
import threading
import time

import grpc

import nursery
from criclient import Client

_EVERY_S = 0.1
_CALL_S = 30


class RelayProbe:
    def __init__(self, shim_socket, runtime_socket):
        self.rows = []
        self._sockets = str(shim_socket), str(runtime_socket)
        self._process = None
        self._reader = None

    def start(self):
        self._process = nursery.start(__file__, *self._sockets)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.rows.append(tuple(json.loads(line)))

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()


def _timed(client):
    began = time.monotonic()
    try:
        client.Version(timeout=_CALL_S)
    except grpc.RpcError as error:
        _connect(client)
        return f"{error.code().name}: {error.details()}"
    return (time.monotonic() - began) * 1000


def _connect(client):
    """Anew, since a channel gets on with that only while it has a call."""
    with contextlib.suppress(grpc.FutureTimeoutError):
        client.reconnect()


def main():
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    with Client(sys.argv[1]) as shim, Client(sys.argv[2]) as runtime:
        while True:
            row = time.monotonic(), _timed(shim), _timed(runtime)
            os.write(1, f"{json.dumps(row)}\n".encode())
            time.sleep(_EVERY_S)
