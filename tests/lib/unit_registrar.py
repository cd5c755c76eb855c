"""A CSI driver, as node-driver-registrar registers it, as a unit of a machine.

    unit_registrar.py FILE

FILE is JSON: registry_dir, name, endpoint, state_dir. Its registration socket, NAME-reg.sock, leads
to the endpoint, on which it says by what name it knows the node: its own. A registration is a line
in the file `calls` of state_dir.
"""

import json
import os
import pathlib
import signal
import sys
import threading

import grpc

from dra_driver import Registrar, serve


def _note(registrar, directory):
    registrar.wait_registered()
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "calls", "a", encoding="utf-8") as out:
        out.write("registered -\n")


def _main():
    settings = json.loads(pathlib.Path(sys.argv[1]).read_text())
    name = settings["name"].encode()
    endpoint = pathlib.Path(settings["endpoint"])
    endpoint.parent.mkdir(parents=True, exist_ok=True)
    endpoint.unlink(missing_ok=True)
    info = bytes([1 << 3 | 2, len(name)]) + name  # NodeGetInfoResponse.node_id
    server = serve(endpoint, {"csi.v1.Node": {
        "NodeGetInfo": grpc.unary_unary_rpc_method_handler(lambda _request, _context: info)}})
    registrar = Registrar(pathlib.Path(settings["registry_dir"]) / f"{settings['name']}-reg.sock",
                          "CSIPlugin", settings["name"], endpoint, ["1.0.0"])
    registrar.start()
    threading.Thread(target=_note, args=(registrar, settings["state_dir"]), daemon=True).start()
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    over.wait()
    registrar.stop()
    server.stop(grace=None)
    os._exit(0)  # Python's gRPC may hang in its end


if __name__ == "__main__":
    _main()
