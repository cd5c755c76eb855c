"""A real systemd as process 1 of namespaces of its own, with nothing but the units of a test.

    machine = Machine(directory); machine.start()
    machine.run("systemctl", "start", "x.service"); machine.path("/run/x.sock")

Its /etc, /usr/local, /var/lib and /var/log are directories of the test's, /run is empty; all else
is this machine's own, its network, too, unless it is given another. It needs root, and a cgroup
hierarchy in which it can make a group: version 2, or version 1 with systemd's own.

    machine.power_off(); machine.start()    # at once, and with all processes; its disk stays
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
    for group in {groups}; do echo $$ >$group/cgroup.procs; done
    exec {network} unshare --mount --pid --fork --uts --ipc --cgroup --kill-child sh -ec '
        mount --make-rprivate /
        mount -t proc proc /proc
        mount -t tmpfs tmpfs /run
        umount -R /sys/fs/cgroup
        {mount_cgroups}
        {mounts}
        exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
            SYSTEMD_UNIT_PATH={unit_path} SYSTEMD_GENERATOR_PATH={base}/none \\
            {systemd} --system --unit=multi-user.target --log-target=console --show-status=no'
"""
LEGACY = """mount -t tmpfs tmpfs /sys/fs/cgroup
        mkdir /sys/fs/cgroup/systemd
        mount -t cgroup -o none,name=systemd,xattr cgroup /sys/fs/cgroup/systemd
"""
UNIFIED = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"
# In memory, since what this machine has its files on may be an overlay itself.
OVERLAYS = "/run/.overlays"
OVERLAY = """mkdir -p {at}/upper {at}/work {at}/merged
        mount -t overlay overlay -o lowerdir={path},upperdir={at}/upper,workdir={at}/work {at}/merged
"""
# A systemd takes the controller from all groups but those of its units, and whoever has made some is in
# them no more, when the first unit needs it that looks after its devices. So there is one before.
DEVICES_UNIT = "[Service]\nExecStart=/bin/sleep infinity\nDevicePolicy=closed\n"
CONTAINERS_NEED = {"cpu", "cpuset", "memory", "pids"}  # of a cgroup's controllers


def is_unified():
    return (CGROUPS / "cgroup.controllers").exists()


def missing_controllers():
    """Those that a container needs, and a group of this machine's would not have."""
    if is_unified():
        there = (CGROUPS / "cgroup.subtree_control").read_text().split()
    else:
        there = [name for names in _legacy_controllers() for name in names.split(",")]
    return sorted(CONTAINERS_NEED.difference(there))


def _legacy_controllers():
    """{controllers of a hierarchy of version 1, as they are mounted together: where it is}"""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        mounted, _, what = line.partition(" - ")
        kind, _, options = what.split(" ")
        names = [one for one in options.split(",") if one not in ("rw", "ro")]
        if kind == "cgroup" and not any("=" in one for one in names):
            found[",".join(names)] = pathlib.Path(mounted.split()[4])
    return found


class Machine:
    """`network`: the file of a network name-space to be in; `controllers`: whether its cgroups have
    all controllers, and its mounts are shared, as containers need it; `binds`: {path of it: file or
    directory that is to be there}; `overlays`: paths of this machine that it may write to, by which
    they do not change here; `units`: directories of its units besides /etc/systemd/system."""

    def __init__(self, directory, network=None, controllers=False, binds=None, overlays=(), units=()):
        self.directory = pathlib.Path(directory)
        self.root = self.directory / "node"
        self.base = self.directory / "units"
        self.log_path = self.directory / "systemd.log"
        self._network = network
        self.binds = dict(binds or {})
        self._overlays = overlays
        self._share = "mount --make-rshared /" if controllers else ""
        self._unit_path = ":".join(["/etc/systemd/system", str(self.base), *units])
        hierarchies = [CGROUPS if is_unified() else CGROUPS / "systemd"]
        self._mount = UNIFIED if is_unified() else LEGACY
        if controllers and not is_unified():
            for names, path in _legacy_controllers().items():
                hierarchies.append(path)
                self._mount += _mount_controllers(names)
        name = str(self.directory).strip("/").replace("/", "-")
        self._groups = [path / name for path in hierarchies]
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
            "StandardError=append:/var/log/units\n"
            "Environment=CRI_DEVICE_SHIM_LOG_FORMAT=plain\n")
        for name in TARGETS:
            early = "DefaultDependencies=no\n" if name in ("basic", "sysinit", "shutdown") else ""
            more = "Wants=sockets.target\nAfter=sockets.target\n" if name == "multi-user" else ""
            (self.base / f"{name}.target").write_text(f"[Unit]\nDescription={name}\n{early}{more}")
        if controllers:
            (self.base / "devices.service").write_text(DEVICES_UNIT)
            (self.base / "multi-user.target.wants").mkdir()
            (self.base / "multi-user.target.wants/devices.service").symlink_to("../devices.service")

    def start(self):
        for group in self._groups:
            _make_group(group)
        network = f"nsenter --net={self._network}" if self._network else ""
        script = BOOT.format(groups=" ".join(map(str, self._groups)), network=network,
                             mount_cgroups=self._mount, mounts=self._mounts(), base=self.base,
                             unit_path=self._unit_path, systemd=SYSTEMD)
        with open(self.log_path, "ab") as log:
            self._boot = subprocess.Popen(["sh", "-c", script], stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log, start_new_session=True)
        wait_until(self._find_pid, "systemd has started")
        wait_until(lambda: self.run("systemctl", "is-active", "multi-user.target",
                                    check=False).returncode == 0, "systemd has booted")

    def _mounts(self):
        """All of this machine's before any is hidden by another; those above others first."""
        at = {path: f"{OVERLAYS}{path}" for path in self._overlays}
        binds = {**{f"/{path}": f"{self.root}/{path}" for path in OWN}, **self.binds,
                 **{path: f"{one}/merged" for path, one in at.items()}}
        return "".join([*(OVERLAY.format(path=path, at=one) for path, one in at.items()),
                        *(f"mount --bind {binds[path]} {path}\n" for path in sorted(binds)), self._share])

    def added_below(self, overlay):
        """The paths there that this machine has not."""
        upper = self.path(f"{OVERLAYS}{overlay}/upper")
        there = (f"{overlay}/{one.relative_to(upper)}" for one in upper.rglob("*"))
        return {path for path in there if not os.path.lexists(path)}

    def _find_pid(self):
        assert self._boot.poll() is None, self.log_path.read_text()
        children = pathlib.Path(f"/proc/{self._boot.pid}/task/{self._boot.pid}/children")
        pids = children.read_text().split()
        if pids and os.path.realpath(f"/proc/{pids[0]}/exe") == os.path.realpath(SYSTEMD):
            self._pid = int(pids[0])
        return self._pid

    def run(self, *command, check=True, timeout=GENEROUS_S, **options):
        """Runs a command there; its output is text."""
        done = subprocess.run(["nsenter", "-t", str(self._pid), "--mount", "--pid", "--net",
                               *command], check=False, capture_output=True, text=True,
                              timeout=timeout, **options)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def restart(self, unit):
        """Of one that does not start it is shown what systemd says then: it is tried again by itself."""
        done = self.run("systemctl", "restart", unit, check=False)
        assert done.returncode == 0, done.stderr + self.run("systemctl", "status", "--no-pager", "--full",
                                                            unit, check=False).stdout

    def property(self, unit, name):
        return self.run("systemctl", "show", "-p", name, "--value", unit).stdout.strip()

    def path(self, path):
        """A path of it as seen from here, for sockets, too."""
        return pathlib.Path(f"/proc/{self._pid}/root{path}")

    def log(self):
        """What its units have said."""
        path = self.root / "var/log/units"
        return path.read_text(errors="replace") if path.exists() else ""

    def power_off(self):
        if self._boot is not None:
            self._boot.send_signal(signal.SIGKILL)  # and with it all that it has started
            self._boot.wait(timeout=GENEROUS_S)
            self._boot = self._pid = None
        wait_until(self._remove_groups, "its processes are gone")

    def wait_off(self):
        """Until it has gone down by itself."""
        self._boot.wait(timeout=GENEROUS_S)
        self.power_off()

    def print_logs(self):
        print(self.log_path.read_text(errors="replace")[-5000:])
        print(self.log()[-20_000:])

    def stop(self):
        self.print_logs()
        self.power_off()

    def _remove_groups(self):
        try:
            for group in self._groups:
                for path, _, _ in os.walk(group, topdown=False):
                    os.rmdir(path)
        except OSError:
            return False
        return True


def _mount_controllers(names):
    """Each by its own name, too, where several are mounted together."""
    path = f"/sys/fs/cgroup/{names}"
    links = [f"ln -s {names} /sys/fs/cgroup/{one}\n" for one in names.split(",") if one != names]
    return f"mkdir {path}\nmount -t cgroup -o {names} cgroup {path}\n" + "".join(links)


def _make_group(group):
    """A new one of cpuset has no processor, and takes no process, until it is given some."""
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists() and not is_unified():
            (group / name).write_text((group.parent / name).read_text())
