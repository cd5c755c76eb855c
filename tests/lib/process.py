"""What the kernel says of a process: its memory and its open files."""

import os
import pathlib

MIB = 1 << 20  # rss_bytes() is mostly compared with some of these


def rss_bytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files(pid):
    """What each open descriptor is, as {number: link}."""
    found = {}
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[int(entry.name)] = os.readlink(entry)
        except FileNotFoundError:
            pass  # closed in the meantime
    return found


def is_sanitized(pid):
    """Whether it is built with AddressSanitizer, which has other memory figures."""
    return "libasan" in pathlib.Path(f"/proc/{pid}/maps").read_text()
