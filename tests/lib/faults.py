"""Calls that fail, of programs that have tests/faults preloaded.

    table = FaultTable(directory / "faults", seed=1, stride=40)
    program.wrapper = table.wrapper
    table.arm(8); ...; table.disarm()     # eight calls fail meanwhile, each of a site of its own
    table.failed()                        # [Failure] so far

A call site fails once for each of its errnos. `stride`: only each so-manieth does, by the seed; `gap_ms`: so long it is between
two that fail, at least; `memory_only`: only calls that say that there is no memory; `connections`: only with the
errors of a connection that ends, and for want of descriptors; `by`: only those of a library whose name begins so; `program`: only
in that one.
"""

import dataclasses
import datetime
import errno
import mmap
import os
import pathlib
import re
import struct
import subprocess

from shim import BINARY

_HEADER = struct.Struct("QiIIIIIIIIQ24s24s")  # tests/faults/fault_table.h
_SITE = struct.Struct("QIIIIQ480s")
_SITES = 32768
_MAGIC = 0x31544C5541465348
_BUDGET_AT = 8
LIBRARY = BINARY.parents[1] / "tests/faults/libshim_faults.so"


@dataclasses.dataclass(frozen=True)
class Failure:
    number: int
    at_ms: int     # since the epoch
    pid: int
    what: str      # function and errno
    frames: tuple  # (module, offset)

    def __str__(self):
        at = datetime.datetime.fromtimestamp(self.at_ms / 1000, datetime.timezone.utc).time().isoformat("milliseconds")
        return f"{self.number}, {at}, process {self.pid}: {self.what}, called by {' < '.join(self.lines())}"

    def lines(self):
        """The frames as source lines, where they are of programs of ours."""
        told = []
        for module, at in self.frames:
            program = BINARY.with_name(module)
            if program.exists():
                out = subprocess.run(["addr2line", "-ifpse", program, hex(at - 1)], capture_output=True, text=True, check=True)
                told += [re.sub(r"(\(inlined by\)| at) ?", " ", line).strip() for line in out.stdout.splitlines()]
            else:
                told.append(f"{module}+{at:x}")
        return told


class FaultTable:
    def __init__(self, path, seed=0, stride=1, gap_ms=60, memory_only=False, connections=False, by="",
                 program=""):
        self.path = pathlib.Path(path)
        with open(self.path, "wb") as file:
            file.truncate(_HEADER.size + _SITES * _SITE.size)
        with open(self.path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._map[:_HEADER.size] = _HEADER.pack(_MAGIC, 0, 0, 0, 0, stride, seed % stride, gap_ms, memory_only,
                                                connections, 0, by.encode(), program.encode())
        # AddressSanitizer wants to be the first that is loaded; its functions are called by ours, and so it
        # does not see that it is the loader that asks for what it never gives back.
        not_lost = self.path.with_suffix(".lost")
        not_lost.write_text("leak:_dl_map_object\nleak:dl_open_worker\nleak:_dl_new_object\n")
        self.wrapper = ("env", f"ASAN_OPTIONS={os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0",
                        f"LSAN_OPTIONS=suppressions={not_lost}:print_suppressions=0",
                        f"LD_PRELOAD={LIBRARY}", f"SHIM_FAULTS={self.path}")

    def arm(self, budget):
        struct.pack_into("i", self._map, _BUDGET_AT, budget)

    def left(self):
        return struct.unpack_from("i", self._map, _BUDGET_AT)[0]

    def disarm(self):
        """How many were left."""
        left = self.left()
        self.arm(0)
        return left

    @property
    def calls(self):
        return _HEADER.unpack_from(self._map)[2]

    def met(self):
        """How many sites were."""
        return sum(1 for _ in self._entries())

    def failed(self, after=0):
        """In their order; `after`: those whose number is greater. One that is being written down is not yet among them."""
        found = []
        for _key, _met, pid, number, _, at_ms, text in self._entries():
            words = text.partition(b"\0")[0].decode().split()
            if pid and number > after and len(words) > 1:
                what, err, *frames = words
                found.append(Failure(number, at_ms, pid, f"{what} {errno.errorcode[int(err)]}", tuple(
                    (module, int(at, 16)) for module, at in (one.rsplit("+", 1) for one in frames if "+" in one))))
        return sorted(found, key=lambda one: one.number)

    def _entries(self):
        for number in range(_SITES):
            site = _SITE.unpack_from(self._map, _HEADER.size + number * _SITE.size)
            if site[0]:
                yield site

    def close(self):
        self._map.close()
