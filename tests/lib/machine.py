"""A real systemd as process 1 of namespaces of its own, with nothing but the units of a test.

    machine = Machine(directory); machine.start()
    machine.run("systemctl", "start", "x.service"); machine.path("/run/x.sock")

Its /etc, /usr/local, /var/lib and /var/log are directories of the test's, /run is empty; all else
is this machine's own, its network, too. It needs root, and a cgroup hierarchy in which it can make
a group: version 2, or version 1 with systemd's own.
"""

import os
import pathlib
import shutil
import signal
import subprocess

from waiting import GENEROUS_S, wait_until

SYSTEMD = "/lib/systemd/systemd"
TARGETS = ("basic", "sysinit", "sockets", "shutdown", "local-fs", "multi-user", "umount", "paths",
           "timers", "slices")
OWN = ("etc", "usr/local", "var/lib", "var/log")
CGROUPS = pathlib.Path("/sys/fs/cgroup")

# The cgroup's name-space is made with the process in it: its root is the group of this machine.
BOOT = """
    set -e
    echo $$ >{group}/cgroup.procs
    exec unshare --mount --pid --fork --uts --ipc --cgroup --kill-child sh -ec '
        mount --make-rprivate /
        mount -t proc proc /proc
        mount -t tmpfs tmpfs /run
        {mount_cgroups}
        for path in {own}; do mount --bind {root}/$path /$path; done
        exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
            SYSTEMD_UNIT_PATH=/etc/systemd/system:{base} SYSTEMD_GENERATOR_PATH={base}/none \\
            {systemd} --system --unit=multi-user.target --log-target=console --show-status=no'
"""
LEGACY = """mount -t tmpfs tmpfs /sys/fs/cgroup
        mkdir /sys/fs/cgroup/systemd
        mount -t cgroup -o none,name=systemd,xattr cgroup /sys/fs/cgroup/systemd"""
UNIFIED = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"


class Machine:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.root = self.directory / "node"
        self.base = self.directory / "units"
        self.log_path = self.directory / "systemd.log"
        unified = (CGROUPS / "cgroup.controllers").exists()
        self._group = (CGROUPS if unified else CGROUPS / "systemd") / self.directory.name
        self._mount = UNIFIED if unified else LEGACY
        self._boot = None
        self._pid = None
        for path in OWN:
            (self.root / path).mkdir(parents=True)
        shutil.copytree("/etc/alternatives", self.root / "etc/alternatives", symlinks=True)
        for name in ("passwd", "group", "ld.so.cache"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", self.root / "etc")
        (self.root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        (self.root / "etc/systemd/system").mkdir(parents=True)
        (self.base / "service.d").mkdir(parents=True)
        (self.base / "none").mkdir()
        (self.base / "service.d/log.conf").write_text(
            "[Service]\nStandardOutput=append:/var/log/units\n"
            "StandardError=append:/var/log/units\n")
        for name in TARGETS:
            early = "DefaultDependencies=no\n" if name in ("basic", "sysinit", "shutdown") else ""
            more = "Wants=sockets.target\nAfter=sockets.target\n" if name == "multi-user" else ""
            (self.base / f"{name}.target").write_text(f"[Unit]\nDescription={name}\n{early}{more}")

    def start(self):
        self._group.mkdir()
        script = BOOT.format(group=self._group, mount_cgroups=self._mount, own=" ".join(OWN),
                             root=self.root, base=self.base, systemd=SYSTEMD)
        with open(self.log_path, "wb") as log:
            self._boot = subprocess.Popen(["sh", "-c", script], stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log, start_new_session=True)
        wait_until(self._find_pid, "systemd has started")
        wait_until(lambda: self.run("systemctl", "is-active", "multi-user.target",
                                    check=False).returncode == 0, "systemd has booted")

    def _find_pid(self):
        assert self._boot.poll() is None, self.log_path.read_text()
        children = pathlib.Path(f"/proc/{self._boot.pid}/task/{self._boot.pid}/children")
        pids = children.read_text().split()
        if pids and os.path.realpath(f"/proc/{pids[0]}/exe") == os.path.realpath(SYSTEMD):
            self._pid = int(pids[0])
        return self._pid

    def run(self, *command, check=True, **options):
        """Runs a command there; its output is text."""
        done = subprocess.run(["nsenter", "-t", str(self._pid), "--mount", "--pid", *command],
                              check=False, capture_output=True, text=True, timeout=GENEROUS_S,
                              **options)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def property(self, unit, name):
        return self.run("systemctl", "show", "-p", name, "--value", unit).stdout.strip()

    def path(self, path):
        """A path of it as seen from here, for sockets, too."""
        return pathlib.Path(f"/proc/{self._pid}/root{path}")

    def log(self):
        """What its units have said."""
        path = self.root / "var/log/units"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self):
        print(self.log_path.read_text(errors="replace")[-5000:])
        print(self.log()[-10_000:])
        if self._boot is not None:
            self._boot.send_signal(signal.SIGKILL)  # and with it all that it has started
            self._boot.wait(timeout=GENEROUS_S)
        wait_until(self._remove_groups, "its processes are gone")

    def _remove_groups(self):
        try:
            for path, _, _ in os.walk(self._group, topdown=False):
                os.rmdir(path)
        except OSError:
            return False
        return True
