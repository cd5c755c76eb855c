"""What the kernel says of a process: its memory and its open files."""

import os
import pathlib
import re
import subprocess

MIB = 1 << 20  # rss_bytes() is mostly compared with some of these


def rss_bytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def own_bytes(pid):
    """What of it no other process could share: neither files' pages nor shared memory."""
    (own,) = [line.split()[1] for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
              if line.startswith("RssAnon:")]
    return 1024 * int(own)


class Peak:
    """The most resident memory of a process from now on."""

    def __init__(self, pid):
        self._pid = pid
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # of the kernel's own count
        self.before = rss_bytes(pid)

    def growth(self):
        """How much more than at first it was, at most."""
        (peak,) = [line.split()[1] for line in
                   pathlib.Path(f"/proc/{self._pid}/status").read_text().splitlines()
                   if line.startswith("VmHWM:")]
        return 1024 * int(peak) - self.before


def open_files(pid):
    """What each open descriptor is, as {number: link}; a unix socket's path follows its inode."""
    found, paths = {}, {}
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        inode, *path = line.split()[6:]
        paths[f"socket:[{inode}]"] = " ".join(path)
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            link = os.readlink(entry)
            found[int(entry.name)] = f"{link} {paths.get(link, '')}".rstrip()
        except FileNotFoundError:
            pass  # closed in the meantime
    return found


def unix_clients(pid, path):
    """Of the connections that the process has accepted on the socket at `path`: how many have their
    other end in this process."""
    def inodes(of, end):
        return {re.search(r"\d+", link)[0] for link in open_files(of).values()
                if link.startswith("socket:") and link.endswith(end)}

    lines = subprocess.run(["ss", "-xn"], capture_output=True, text=True, check=True).stdout
    peers = {fields[5]: fields[7] for fields in map(str.split, lines.splitlines()[1:])}
    own = inodes(os.getpid(), "")
    return sum(peers.get(inode) in own for inode in inodes(pid, f" {path}"))


def is_sanitized(pid):
    """Whether it is built with AddressSanitizer, which has other memory figures."""
    return "libasan" in pathlib.Path(f"/proc/{pid}/maps").read_text()
