"""A template of python3-dbusmock's: logind's part in the machine's shutdown, for logind.py.

Beside dbusmock's own template of logind, whose locks go with its process: here a lock is a FIFO in a directory, as with
logind (`inhibitor_create_fifo()` in systemd's src/login), so that it outlives a logind that is restarted, and none is given
once a shutdown has begun.

Whenever a lock comes or goes it says so, as logind does (`inhibitor_start()`, `inhibitor_stop()`).

Parameters: `directory` of the locks; `InhibitDelayMaxUSec`; `PreparingForShutdown`.
"""

import json
import os
import pathlib

import dbus
from dbusmock import MOCK_IFACE
from gi.repository import GLib

BUS_NAME = "org.freedesktop.login1"
MAIN_OBJ = "/org/freedesktop/login1"
MAIN_IFACE = "org.freedesktop.login1.Manager"
SYSTEM_BUS = True

_state = {"locks": {}, "next": 0, "refused": "", "directory": None}


def load(mock, parameters):
    _state["directory"] = pathlib.Path(parameters["directory"])
    mock.AddProperties(MAIN_IFACE, {
        "InhibitDelayMaxUSec": dbus.UInt64(parameters["InhibitDelayMaxUSec"]),
        "PreparingForShutdown": dbus.Boolean(parameters["PreparingForShutdown"])})
    for path in sorted(_state["directory"].glob("*.json")):
        _state["next"] = int(path.stem) + 1
        _open(mock, path.stem, json.loads(path.read_text()))


def _tell(mock, mode):
    """Which of them there are."""
    operations = {what for what, _, _, its in _state["locks"].values() if its == mode}
    mock.EmitSignal("org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
                    [MAIN_IFACE, {f"{mode.title()}Inhibited": ":".join(sorted(operations))}, []])


def _open(mock, name, lock):
    """Reads its FIFO until the last writer has gone, which may have been while nobody read."""
    fifo = _state["directory"] / f"{name}.ref"
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    writer = os.open(fifo, os.O_WRONLY | os.O_CLOEXEC)
    _state["locks"][name] = lock
    _tell(mock, lock[3])

    def ended(fd, _condition):
        os.close(fd)
        del _state["locks"][name]
        fifo.unlink()
        fifo.with_suffix(".json").unlink()
        _tell(mock, lock[3])
        return False

    GLib.unix_fd_add_full(GLib.PRIORITY_HIGH, reader, GLib.IO_HUP, ended)
    GLib.idle_add(os.close, writer)  # once it was sent
    return writer


@dbus.service.method(MAIN_IFACE, in_signature="ssss", out_signature="h")
def Inhibit(self, what, who, why, mode):
    if _state["refused"]:
        raise dbus.exceptions.DBusException(_state["refused"], name="org.freedesktop.DBus.Error.AccessDenied")
    if self.props[MAIN_IFACE]["PreparingForShutdown"]:
        raise dbus.exceptions.DBusException("The operation inhibition has been requested for is already running",
                                            name="org.freedesktop.login1.OperationInProgress")
    name = str(_state["next"])
    _state["next"] += 1
    lock = [str(what), str(who), str(why), str(mode)]
    os.mkfifo(_state["directory"] / f"{name}.ref")
    (_state["directory"] / f"{name}.json").write_text(json.dumps(lock))
    return dbus.types.UnixFd(_open(self, name, lock))


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="a(ssssuu)")
def ListInhibitors(_self):
    return dbus.Array([(*lock, dbus.UInt32(0), dbus.UInt32(1)) for lock in _state["locks"].values()],
                      signature="(ssssuu)")


@dbus.service.method(MOCK_IFACE, in_signature="b", out_signature="")
def Prepare(self, begins):
    """A shutdown begins, or is cancelled."""
    self.props[MAIN_IFACE]["PreparingForShutdown"] = dbus.Boolean(begins)
    self.EmitSignal(MAIN_IFACE, "PrepareForShutdown", "b", [begins])


@dbus.service.method(MOCK_IFACE, in_signature="t", out_signature="")
def SetLimit(self, limit_us):
    """As after a SIGHUP: without a signal, since the property has none."""
    self.props[MAIN_IFACE]["InhibitDelayMaxUSec"] = dbus.UInt64(limit_us)


@dbus.service.method(MOCK_IFACE, in_signature="s", out_signature="")
def Refuse(_self, words):
    """No lock is given, for these words; "": they are again."""
    _state["refused"] = str(words)
