"""Starts the agent under test with a config of its own, and looks after it as shim.py does.

    one = Agent(directory, kubeconfig); one.start(); one.kill(); one.start(); one.stop()
"""

import json
import pathlib

from program import Program
from shim import BINARY as SHIM_BINARY

BINARY = SHIM_BINARY.with_name("cri-device-shim-agent")


class Agent(Program):
    """`settings` override keys of [cluster]."""

    def __init__(self, directory, kubeconfig, **settings):
        self.directory = pathlib.Path(directory)
        super().__init__("the agent", self.directory / "agent.log")
        self.config_path = self.directory / "agent.toml"
        self.feed_socket = self.directory / "run" / "agent.sock"
        self.settings = {"enabled": True, "socket": str(self.feed_socket), "kubeconfig": str(kubeconfig), **settings}

    def start(self):
        """Returns at once: nothing of it can be waited for from outside but what it does."""
        table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items())
        self.config_path.write_text(f'log_level = "debug"\n[cluster]\n{table}')
        self._spawn(BINARY, "--config", self.config_path)
