"""Device plugins and DRA drivers of a node of scale.py, in a process of their own: the threads of a Python
process take turns, and who measures would wait for those of a hundred plugins that are dialled at once.

    peers = Peers()
    peers.plugin(plugin_dir, "vendor.com/gpu", 8)
    peers.driver(registry_dir, drivers_dir, "gpu.example.com")
    peers.stop()
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from dra_driver import Driver
from plugin import Plugin

_STOP_S = 60


def gpu_id(number):
    return f"GPU-{number:08x}-aaaa-bbbb-cccc-0123456789ab"


class Peers:
    def __init__(self):
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def plugin(self, plugin_dir, resource, count):
        """Serves and registers; its devices are those of gpu_id()."""
        self._begin("plugin", str(plugin_dir), resource, count)

    def driver(self, registry_dir, drivers_dir, name):
        self._begin("driver", str(registry_dir), str(drivers_dir), name)

    def stop(self):
        self._process.kill()
        self._process.wait(_STOP_S)
        self._process.stdin.close()
        self._process.stdout.close()

    def _begin(self, *what):
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "begun\n", f"{what} did not begin"


def _main():
    begun = []  # each lasts as long as the process
    for line in sys.stdin:
        kind, *what = json.loads(line)
        if kind == "plugin":
            plugin_dir, resource, count = what
            begun.append(Plugin(plugin_dir, resource, [gpu_id(number) for number in range(count)]))
        else:
            begun.append(Driver(*what))
        begun[-1].start()
        print("begun", flush=True)
    os._exit(0)  # who measured is gone; Python's gRPC may hang in its end


if __name__ == "__main__":
    _main()
