"""Starts the daemon under test with a config of its own, and looks after it.

    shim = Shim(directory, runtime_endpoint, plugins={"hold": "1s"}, devices=[{...}])
    shim.start(); shim.kill(); shim.start(); shim.stop()

It fails its test as a Program does. SHIM_BINARY names another build.
"""

import contextlib
import json
import os
import pathlib
import socket
import sqlite3
import subprocess

from criclient import Client
from program import Program
from waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("SHIM_BINARY", ROOT / "build/shim/cri-device-shim"))


def accepts(path):
    """Whether somebody listens on the unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


@contextlib.contextmanager
def locked(shim):
    """Another process has its checkpoint open."""
    with contextlib.closing(sqlite3.connect(shim.state_dir / "checkpoint.db",
                                            isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}"
                               for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)  # JSON's strings, numbers and booleans are TOML's too


def _toml_table(values):
    return "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


class Shim(Program):
    """`top`, `log`, `metrics`, `plugins`, `annotations`, `bridge`, `dra`, `cluster`, `shutdown`, `control` override keys of these;
    `periods`: [[shutdown.period]], `devices`: [[device]], `resources`: [[resource]], `drivers`: [[driver]], `taints`: [[taint]]."""

    def __init__(self, directory, runtime_endpoint, plugins=None, annotations=None, devices=(),
                 resources=(), top=None, bridge=None, log=None, metrics=None,
                 control=None, dra=None, cluster=None, drivers=(), taints=(), shutdown=None, periods=()):
        self.directory = pathlib.Path(directory)
        self.binary = BINARY
        super().__init__("the shim", self.directory / "shim.log")
        self.socket = self.directory / "s.sock"
        self.plugin_dir = self.directory / "plugins"
        self.kubelet_plugin_dir = self.directory / "kubelet"
        self.registry_dir = self.directory / "plugins_registry"
        self.kubelet_registry_dir = self.directory / "kubelets_registry"
        self.feed = self.directory / "feed.sock"
        self.control = self.directory / "control.sock"
        self.state_dir = self.directory / "state"
        self.config_path = self.directory / "shim.toml"
        self.top = {"listen": str(self.socket), "runtime_endpoint": str(runtime_endpoint),
                    "state_dir": str(self.state_dir), "log_level": "debug", **(top or {})}
        self.plugins = {"plugin_dir": str(self.plugin_dir), "kubelet_wait": "0s", **(plugins or {})}
        self.annotations = {"enabled": True, "namespaces": ["*"], **(annotations or {})}
        self.bridge = {"socket": str(self.feed),
                       "kubelet_plugin_dir": str(self.kubelet_plugin_dir), **(bridge or {})}
        self.dra = {"kubelet_registry_dir": str(self.kubelet_registry_dir), "mask": "0s", **(dra or {})}
        self.log_settings = {"format": "plain", **(log or {})}
        self.metrics = dict(metrics or {})
        self.control_table = control or {}
        self.cluster = cluster or {}
        self.shutdown = shutdown or {}
        self.periods = list(periods)
        self.devices = list(devices)
        self.resources = list(resources)
        self.drivers = list(drivers)
        self.taints = list(taints)

    def config_text(self):
        tables = [_toml_table(self.top), "[log]\n" + _toml_table(self.log_settings),
                  "[metrics]\n" + _toml_table(self.metrics),
                  "[plugins]\n" + _toml_table(self.plugins),
                  "[annotations]\n" + _toml_table(self.annotations),
                  "[bridge]\n" + _toml_table(self.bridge),
                  "[dra]\n" + _toml_table(self.dra)]
        if self.control_table:
            tables.append("[control]\n" + _toml_table(self.control_table))
        if self.cluster:
            tables.append("[cluster]\n" + _toml_table(self.cluster))
        if self.shutdown:
            tables.append("[shutdown]\n" + _toml_table(self.shutdown))
        tables += ["[[shutdown.period]]\n" + _toml_table(one) for one in self.periods]
        tables += ["[[device]]\n" + _toml_table(device) for device in self.devices]
        tables += ["[[resource]]\n" + _toml_table(one) for one in self.resources]
        tables += ["[[driver]]\n" + _toml_table(one) for one in self.drivers]
        tables += ["[[taint]]\n" + _toml_table(one) for one in self.taints]
        return "\n".join(tables)

    def spawn(self):
        """Starts it without waiting for anything."""
        self.config_path.write_text(self.config_text())
        self._spawn(self.binary, "--config", self.config_path)

    def start(self):
        self.spawn()
        for path in (self.socket, self.plugin_dir / "kubelet.sock"):
            wait_until(lambda: accepts(path) or self._ended(), f"the shim listens on {path}")
        assert not self._ended(), f"the shim ended at once:\n{self.log()}"

    def wait_control(self):
        wait_until(lambda: accepts(self.control), "the control socket is there")

    def client(self):
        return Client(self.socket)

    def wait_plugins_stored(self):
        """Each plugin that was told it is registered is in the checkpoint."""
        mark = self.socket.with_name("registered-unstored")
        wait_until(lambda: not mark.exists(), "the plugins' rows are stored")


def check_config(text, directory):
    """`cri-device-shim --check-config` of a file with this text: (exit status, its words)."""
    path = pathlib.Path(directory) / "checked.toml"
    path.write_text(text)
    done = subprocess.run([BINARY, "--check-config", path], check=False, capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr
