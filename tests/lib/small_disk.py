"""A disk that a test fills.

    disk = SmallDisk(directory / "state")
    disk.fill()     # not a byte is left
    disk.free()
"""

import contextlib
import os
import subprocess

_DISK_BYTES = 2 << 20


class SmallDisk:
    """A file system of its own at `path`, which fill() leaves no byte of."""

    def __init__(self, path):
        self.path = path
        self._filler = path / "filler"
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "none", path],
                       check=True)

    def fill(self):
        with contextlib.suppress(OSError), open(self._filler, "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        assert os.statvfs(self.path).f_bavail == 0

    def free(self):
        self._filler.unlink()

    def close(self):
        subprocess.run(["umount", self.path], check=True)
