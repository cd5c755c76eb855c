"""A Kubernetes node to which the shim comes as the Debian package, in place of install.sh.

    cluster = Cluster(directory, plugins, has_shim=False, node=PackagedKubeNode)
    cluster.node.install(); cluster.node.uninstall()
"""

import pathlib

import package
from kube_node import KubeNode


class PackagedKubeNode(KubeNode):
    """What dpkg has put there is gone when it is switched off."""

    def __init__(self, directory, plane, plugins, **settings):
        units = pathlib.Path(directory) / "package-units"
        units.mkdir(parents=True)
        super().__init__(directory, plane, plugins, **settings,
                         machine={"overlays": package.OVERLAYS, "units": [package.UNITS]})
        self.binds[package.UNITS] = units
        (self.root / "var/lib/dpkg").mkdir()
        self._packages = pathlib.Path(directory) / "packages"
        self._packages.mkdir()
        self._own = self._another = None

    def _package(self, another):
        if self._own is None:
            self._own = package.make(self._packages)
            self._another = package.another(self._own, self._packages)
        return self._another if another else self._own

    def install(self, another=False):
        """Enabled, too; as it has been before where it is an upgrade."""
        package.dpkg(self, "--install", self._package(another))
        self.run("cri-device-shimctl", "node", "enable")

    def uninstall(self, check=True):
        done = self.run("cri-device-shimctl", "node", "disable", check=check)
        if done.returncode == 0:
            package.dpkg(self, "--purge", package.NAME)
        return done
