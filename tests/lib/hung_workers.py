"""A process of which only the first thread runs: what it gives to its workers is not begun, as where a disk hangs."""

import ctypes
import os
import pathlib

# linux/ptrace.h
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_WALL = 0x40000000  # wait.h: for threads, too
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


def _ptrace(request, thread):
    if _LIBC.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


class HungWorkers:
    """From now on until close(), which the same thread calls while the process is there."""

    def __init__(self, pid):
        self._threads = [int(one.name) for one in pathlib.Path(f"/proc/{pid}/task").iterdir() if one.name != str(pid)]
        assert self._threads, "it has begun some"
        for thread in self._threads:
            _ptrace(_SEIZE, thread)
            _ptrace(_INTERRUPT, thread)
            os.waitpid(thread, _WALL)

    def close(self):
        for thread in self._threads:
            _ptrace(_DETACH, thread)
