"""The Debian package: made of what is built, put on a node, and gone again.

    one = package.make(directory)               # a path
    two = package.another(one, directory)       # of another release
    node = PackageNode(directory); node.start()
    node.dpkg("--install", one)
"""

import os
import pathlib
import subprocess

from installed_node import InstalledNode
from shim import BINARY, ROOT

NAME = "cri-device-shim"
UNITS = "/usr/lib/systemd/system"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # as dpkg wants it
OVERLAYS = ("/usr", "/var/lib/dpkg")  # of a Machine on which dpkg may do what it does
_BUILD = BINARY.parents[1]
# Of another release, whose kept state lies otherwise.
_OTHERS = {name: _BUILD / f"tests/points/{name}-points" for name in (NAME, f"{NAME}-bridge")}


def make(directory):
    """Of what the build of the tests has made; of no commit, since there need be none."""
    done = subprocess.run([ROOT / "config/package.sh", "--built", _BUILD, "--to", directory],
                          check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1800000000",
                               "DEBEMAIL": "who@example.com"})
    return pathlib.Path(done.stdout.strip())


def field(package, name):
    return subprocess.run(["dpkg-deb", "--field", package, name], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


def another(package, directory):
    """The same with another daemon and bridge, as the next version."""
    tree = directory / "another"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    for name, binary in _OTHERS.items():
        (tree / "usr/bin" / name).write_bytes(binary.read_bytes())
    version = field(package, "Version")
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {version}\n", f"Version: {version}+1\n"))
    made = directory / f"{NAME}_next.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--build", tree, made], check=True, stdout=subprocess.DEVNULL)
    return made


def dpkg(machine, *words, check=True):
    """On a Machine with OVERLAYS. What other packages do on such an occasion is left out."""
    return machine.run("env", _PATH, "dpkg", "--no-triggers", *map(str, words), check=check)


class PackageNode(InstalledNode):
    """An InstalledNode on which dpkg may do what it does; all of that is gone with it."""

    def __init__(self, directory):
        units = pathlib.Path(directory) / "package-units"
        units.mkdir()
        super().__init__(directory, overlays=OVERLAYS, binds={UNITS: units},
                         units=[UNITS])
        (self.root / "var/lib/dpkg").mkdir()

    def dpkg(self, *words, check=True):
        return dpkg(self, *words, check=check)

    def files(self):
        """All that a package may leave behind, and what it works on: paths."""
        own = {f"/{path.relative_to(self.root)}" for top in ("etc", "usr/local", "var/lib")
               for path in (self.root / top).rglob("*")}
        units = {f"{UNITS}/{one.name}" for one in (self.directory / "package-units").iterdir()}
        return own | units | self.added_below("/usr") | self._in_run()

    def _in_run(self):
        return {f"/run/{one}" for one in os.listdir(self.path("/run")) if one.startswith(NAME)}
