"""A device plugin as a unit of a machine: it registers whenever kubelet.sock is made anew.

    unit_plugin.py FILE

FILE is JSON: plugin_dir, resource, devices ({id: healthy}), numa ({id: node}), delay_s (of each
Allocate). It is read at the start, and its devices again on SIGHUP. A device is the node of its
name in DEVICES, and the container has it in /dev; which ones it was given is in its environment.
"""

import json
import os
import pathlib
import signal
import sys
import threading
import time

from node_plugin import env_of, register_while
from plugin import Plugin
from protos import deviceplugin

DEVICES = "/var/lib/devices"


def _allocate(settings):
    def allocate(request, _context):
        time.sleep(settings.get("delay_s", 0))
        answer = deviceplugin.AllocateResponse()
        for one in request.container_requests:
            answer.container_responses.add(
                envs={env_of(settings["resource"]): ",".join(one.devices_ids)},
                devices=[deviceplugin.DeviceSpec(container_path=f"/dev/{name}", permissions="rw",
                                                 host_path=f"{DEVICES}/{name}")
                         for name in one.devices_ids])
        return answer

    return allocate


def _main():
    path = pathlib.Path(sys.argv[1])
    settings = json.loads(path.read_text())
    plugin = Plugin(settings["plugin_dir"], settings["resource"], settings["devices"],
                    numa=settings.get("numa"))
    plugin.on_allocate = _allocate(settings)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGHUP,
                  lambda *_: plugin.set_devices(json.loads(path.read_text())["devices"]))
    register_while(lambda: not over.is_set(), plugin)
    os._exit(0)  # Python's gRPC may hang in its end


if __name__ == "__main__":
    _main()
