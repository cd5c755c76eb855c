"""systemd-logind's part in the machine's shutdown, on a system bus of its own (logind_template.py).

    bus = SystemBus(directory); bus.start(); monkeypatch.setenv(*bus.environment)
    logind = Logind(directory, bus, limit_s=300); logind.start()
    logind.wait_held()                # "cri-device-shim" has a delay lock
    logind.begin()                    # PrepareForShutdown(true); whoever has locks is waited for
    logind.wait_released()
    logind.cancel()
    with logind.lock("kubelet"): ...  # another's
    logind.kill(); logind.start()     # restarted: it knows the locks, and of no shutdown
"""

import contextlib
import json
import os
import pathlib
import signal
import typing

import dbus
import dbus.bus

from program import Program
from waiting import wait_until

WE = "cri-device-shim"
_TEMPLATE = pathlib.Path(__file__).with_name("logind_template.py")
_NAME, _PATH = "org.freedesktop.login1", "/org/freedesktop/login1"
_MANAGER, _MOCK = "org.freedesktop.login1.Manager", "org.freedesktop.DBus.Mock"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
  </policy>
</busconfig>
"""


class Lock(typing.NamedTuple):
    what: str
    who: str
    mode: str


class SystemBus(Program):
    """A dbus-daemon in `directory`."""

    def __init__(self, directory):
        super().__init__("the system bus", directory / "bus.log")
        self.socket = directory / "bus"
        self.address = f"unix:path={self.socket}"
        self.environment = "DBUS_SYSTEM_BUS_ADDRESS", self.address
        self._config = directory / "bus.conf"

    def start(self):
        self._config.write_text(_CONFIG.format(socket=self.socket))
        self.socket.unlink(missing_ok=True)
        self._spawn("dbus-daemon", f"--config-file={self._config}", "--nofork", "--nopidfile")
        wait_until(self._answers, "the system bus answers")

    def _answers(self):
        try:
            dbus.bus.BusConnection(self.address).close()
        except dbus.exceptions.DBusException:
            return False
        return True


class Logind(Program):
    def __init__(self, directory, bus, limit_s=300):
        super().__init__("logind", directory / "logind.log")
        self.limit_s = limit_s  # of the next start
        self._bus = bus
        self._locks = directory / "inhibit"
        self._locks.mkdir()

    def start(self, shutting_down=False):
        parameters = {"directory": str(self._locks), "InhibitDelayMaxUSec": int(self.limit_s * 1_000_000),
                      "PreparingForShutdown": shutting_down}
        self._spawn("env", "=".join(self._bus.environment), "/usr/bin/python3", "-m", "dbusmock", "--system",
                    "--template", str(_TEMPLATE), "--parameters", json.dumps(parameters))
        wait_until(self._answers, "logind answers")

    def begin(self):
        self._call(_MOCK, "Prepare", True)

    def cancel(self):
        self._call(_MOCK, "Prepare", False)

    def set_limit(self, limit_s):
        self.limit_s = limit_s
        self._call(_MOCK, "SetLimit", dbus.UInt64(int(limit_s * 1_000_000)))

    def refuse(self, words):
        """Locks; "": no more."""
        self._call(_MOCK, "Refuse", words)

    @contextlib.contextmanager
    def stopped(self):
        """As one that hangs."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def locks(self):
        return [Lock(str(what), str(who), str(mode))
                for what, who, _, mode, _, _ in self._call(_MANAGER, "ListInhibitors")]

    def held(self):
        """How many locks are ours."""
        return len([lock for lock in self.locks() if lock.who == WE])

    def wait_held(self):
        wait_until(self.held, f"{WE} has a lock")
        assert [lock for lock in self.locks() if lock.who == WE] == [Lock("shutdown", WE, "delay")]

    def wait_released(self):
        wait_until(lambda: not self.held(), f"{WE} has let go")

    @contextlib.contextmanager
    def lock(self, who, what="shutdown", mode="delay"):
        fd = self._call(_MANAGER, "Inhibit", what, who, "as a test has it", mode).take()
        try:
            yield
        finally:
            os.close(fd)
            wait_until(lambda: Lock(what, who, mode) not in self.locks(), f"{who} has let go")

    def _call(self, interface, method, *arguments):
        """On a connection of its own: a bus may have been restarted."""
        connection = dbus.bus.BusConnection(self._bus.address)
        try:
            return connection.get_object(_NAME, _PATH, introspect=False).get_dbus_method(method, interface)(*arguments)
        finally:
            connection.close()

    def _answers(self):
        try:
            return self._call(_PROPERTIES, "Get", _MANAGER, "InhibitDelayMaxUSec")
        except dbus.exceptions.DBusException:
            return False
