"""What every level of Python tests is built from: a short directory, plugins and shims that end."""

import json
import os
import pathlib
import shutil
import tempfile

import pytest

os.environ.setdefault("SHIM_CGROUP_PARENT", f"/cri-device-shim-{os.getpid()}")
os.environ["CRI_DEVICE_SHIM_LOG_FORMAT"] = "plain"  # which tests read; others by [log] format
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # whose handlers wait for its threads, and may do so for ever

import containerd  # what is below reads that
import plugin
from shim import Shim
from supervisor import Supervisor

# Where a JSON line is written for each test: {"test", "outcome", "seconds", "reason"}.
_RESULTS = os.environ.get("SHIM_TEST_RESULTS")
_outcomes = {}  # by test, of what came of its phases so far


def pytest_runtest_logreport(report):
    """A test has failed if any of its set-up, itself and its end did."""
    one = _outcomes.setdefault(report.nodeid, {"test": report.nodeid, "outcome": "passed",
                                               "seconds": 0, "reason": ""})
    one["seconds"] += report.duration
    if report.failed or (report.skipped and one["outcome"] == "passed"):
        one["outcome"] = "failed" if report.failed else "skipped"
        one["reason"] = report.longrepr[2] if report.skipped else ""
    if report.when == "teardown":
        _tell_result(_outcomes.pop(report.nodeid))


def pytest_collectreport(report):
    """A file that cannot be read, or is skipped as a whole, counts as one test."""
    if report.failed or report.skipped:
        _tell_result({"test": report.nodeid, "seconds": 0,
                      "outcome": "failed" if report.failed else "skipped",
                      "reason": report.longrepr[2] if report.skipped else ""})


def _tell_result(one):
    if _RESULTS:
        with open(_RESULTS, "a", encoding="utf-8") as file:
            print(json.dumps(one), file=file)


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
def manager(directory, closing):
    """A service manager that keeps descriptors."""
    return closing(Supervisor(directory))


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
