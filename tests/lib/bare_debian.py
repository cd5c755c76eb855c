"""A Debian with nothing in it but what debootstrap puts there, to install a package on.

    root = BareDebian("bookworm", kept, directory / "root")
    root.apt("install", "-y", package)
    root.run("cri-device-shim", "--version")
    root.files()

debootstrap runs once for each release: `kept` is where its result stays. Packages come from where
this machine has its own from, or from $SHIM_DEBIAN_MIRROR. No services run there.
"""

import os
import pathlib
import shutil
import subprocess

from waiting import GENEROUS_S

_SETTINGS = "/etc/apt/apt.conf.d/90this-machine"
# What apt and dpkg keep for themselves.
_OF_APT = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "proc", "sys", "dev", "run", "tmp")
_ENTER = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
          'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"']
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                "LC_ALL": "C.UTF-8"}
_SLOW_S = 30 * GENEROUS_S  # packages are fetched


def _mirror():
    said = _output("apt-get", "indextargets", "--format", "$(SITE) $(CREATED_BY)", "Identifier: Packages")
    sites = [line.split()[0] for line in said.splitlines()]
    return os.environ.get("SHIM_DEBIAN_MIRROR") or next(
        one for one in sites if one.rstrip("/").endswith("/debian"))


def _output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class BareDebian:
    def __init__(self, release, kept, path):
        self.path = pathlib.Path(path)
        made = kept / release
        if not made.exists():
            _make(release, made)
        subprocess.run(["cp", "-a", made, self.path], check=True)
        shutil.copy("/etc/resolv.conf", self.path / "etc/resolv.conf")
        settings = "".join(line for line in _output("apt-config", "dump").splitlines(keepends=True)
                           if line.startswith("Acquire::"))
        (self.path / _SETTINGS[1:]).write_text(settings)

    def run(self, *command, check=True):
        """As root of it; its output is text."""
        done = subprocess.run([*_ENTER, self.path, *map(str, command)], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=_SLOW_S, env=_ENVIRONMENT)
        assert not check or done.returncode == 0, done.stdout
        return done

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "--no-install-recommends", *words)

    def files(self):
        """All paths but those that apt and dpkg keep for themselves."""
        found = set()
        for at, directories, names in os.walk(self.path):
            below = pathlib.Path(at).relative_to(self.path)
            directories[:] = [one for one in directories if str(below / one) not in _OF_APT]
            found.update(f"/{below / one}" for one in [*directories, *names])
        return found


def _make(release, made):
    """All of it, or nothing."""
    made.parent.mkdir(parents=True, exist_ok=True)
    being_made = made.with_name(f"{release}.being-made")
    shutil.rmtree(being_made, ignore_errors=True)
    subprocess.run(["debootstrap", "--variant=minbase", release, being_made, _mirror()], check=True,
                   timeout=_SLOW_S)
    being_made.rename(made)
