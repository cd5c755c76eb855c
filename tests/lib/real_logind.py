"""The real systemd-logind on a Machine of machine.py, with a system bus; and the machine goes down as it says.

    real_logind.put(machine)              # before it is started
    machine.run("systemctl", "poweroff")  # returns at once; logind waits for who has locks
    machine.wait_off()
"""

import json
import os

LOGIND = "/lib/systemd/systemd-logind"
_DBUS = "/usr/bin/dbus-daemon"
_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
  </policy>
</busconfig>
"""
_BUS_UNITS = {
    "dbus.socket": "[Socket]\nListenStream=/run/dbus/system_bus_socket\n",
    "dbus.service": f"""[Unit]
Requires=dbus.socket
[Service]
Type=notify
ExecStart={_DBUS} --address=systemd: --config-file=/etc/dbus.conf --nofork --nopidfile
""",
}
_UNITS = {
    "systemd-logind.service": f"""[Unit]
Requires=dbus.service
After=dbus.service
[Service]
Type=notify
ExecStart={LOGIND}
Restart=always
RestartSec=0
RuntimeDirectory=systemd/sessions systemd/seats systemd/users systemd/inhibit systemd/shutdown
RuntimeDirectoryPreserve=yes
""",
    "poweroff.target": """[Unit]
DefaultDependencies=no
Requires=systemd-poweroff.service
After=systemd-poweroff.service
""",
    "systemd-poweroff.service": """[Unit]
DefaultDependencies=no
Requires=shutdown.target
After=shutdown.target
SuccessAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/true
""",
}
_WANTS = "etc/systemd/system/multi-user.target.wants"


def is_there():
    return os.path.exists(LOGIND) and os.path.exists(_DBUS)


def put_bus(machine):
    """Only the system bus; dbus.service is to be started."""
    (machine.root / "etc/dbus.conf").write_text(_BUS)
    for name, text in _BUS_UNITS.items():
        (machine.base / name).write_text(text)


def put(machine):
    put_bus(machine)
    # What is left in the end has so long: the sandboxes of a test do not heed SIGTERM.
    (machine.root / "etc/systemd/system.conf").write_text("[Manager]\nDefaultTimeoutStopSec=5s\n")
    for name, text in _UNITS.items():
        (machine.base / name).write_text(text)
    wants = machine.root / _WANTS
    wants.mkdir(exist_ok=True)
    (wants / "systemd-logind.service").symlink_to(machine.base / "systemd-logind.service")


def locks(machine):
    """[(who, mode)] of those on a shutdown."""
    lines = machine.run("busctl", "--json=short", "call", "org.freedesktop.login1", "/org/freedesktop/login1",
                        "org.freedesktop.login1.Manager", "ListInhibitors").stdout
    return [(who, mode) for what, who, _, mode, _, _ in json.loads(lines)["data"][0] if "shutdown" in what.split(":")]


def waits_s(machine):
    """How long it waits for locks."""
    text = machine.run("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1",
                       "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec").stdout
    return int(text.removeprefix("t ")) / 1_000_000
