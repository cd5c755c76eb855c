"""Starts the bridge under test with a config of its own, and looks after it as shim.py does.

    one = Bridge(directory); one.start(); one.kill(); one.start(); one.stop()
"""

import json
import pathlib

from program import Program
from shim import BINARY as SHIM_BINARY

BINARY = SHIM_BINARY.with_name("cri-device-shim-bridge")


class Bridge(Program):
    """`settings` override keys of [bridge]. `binary`: of its next process."""

    binary = BINARY

    def __init__(self, directory, **settings):
        self.directory = pathlib.Path(directory)
        super().__init__("the bridge", self.directory / "bridge.log")
        self.feed_socket = self.directory / "run" / "bridge.sock"
        self.kubelet_dir = self.directory / "device-plugins"
        self.snapshot = self.feed_socket.with_name("bridge.snapshot")
        self.config_path = self.directory / "bridge.toml"
        self.registry = self.directory / "kubelets_registry"
        self.settings = {"socket": str(self.feed_socket),
                         "kubelet_plugin_dir": str(self.kubelet_dir), **settings}

    def endpoint(self, resource):
        return self.kubelet_dir / "cri-device-shim" / f"{resource.replace('/', '_')}.sock"

    def spawn(self, *arguments):
        table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items())
        self.config_path.write_text(f'log_level = "debug"\n[bridge]\n{table}'
                                    f'[dra]\nkubelet_registry_dir = "{self.registry}"\n')
        self._spawn(self.binary, "--config", self.config_path, *arguments)

    def start(self):
        """Returns at once: nothing of it can be waited for from outside but what it does."""
        self.spawn()
