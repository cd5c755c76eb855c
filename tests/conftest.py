"""What every level of Python tests is built from: a short directory, plugins and shims that end."""

import pathlib
import shutil
import tempfile

import pytest

import containerd
import plugin
from shim import Shim


@pytest.fixture
def directory():
    """A directory with a short name (it holds unix sockets); fails on what is left running or
    mounted."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    left = containerd.processes_naming(str(path))
    mounts = containerd.mounts_below(path)
    shutil.rmtree(path)
    assert not left, f"processes left behind: {left}"
    assert not mounts, f"mounts left behind: {mounts}"


@pytest.fixture
def closing(directory):
    """closing(thing): thing.stop() or .close() at the end of the test, the last one first.

    All of it before `directory` goes.
    """
    things = []

    def add(thing):
        things.append(thing)
        return thing

    yield add
    errors = []
    for thing in reversed(things):
        try:
            (thing.stop if hasattr(thing, "stop") else thing.close)()
        except AssertionError as error:
            errors.append(str(error))
    assert not errors, "\n".join(errors)


@pytest.fixture
def make_shim(directory, runtime_socket, closing):
    """make_shim(**settings of Shim): a running shim in front of the level's runtime."""
    def make(start=True, **settings):
        shim = closing(Shim(directory, runtime_socket, **settings))
        if start:
            shim.start()
        return shim

    return make


@pytest.fixture
def make_plugin(closing):
    """make_plugin(shim, resource, devices, **settings of Plugin): a plugin that has registered."""
    def make(shim, resource, devices, start=True, **settings):
        one = closing(plugin.Plugin(shim.plugin_dir, resource, devices, **settings))
        if start:
            one.start()
        return one

    return make


@pytest.fixture
def make_client(closing):
    """make_client(shim): a connection of its own to a Shim, or to whatever has a `socket`."""
    def make(server):
        return closing(server.client())

    return make
