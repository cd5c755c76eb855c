"""A process whose workers hang as soon as one of them asks for the disk, as where that hangs. They are not stopped
wherever they are: one that waits for work may have to let go of a condition before others can be given any."""

import ctypes
import os
import pathlib
import threading

# linux/ptrace.h
_SEIZE, _INTERRUPT, _DETACH, _SYSCALL = 0x4206, 0x4207, 17, 24
_WALL = 0x40000000  # wait.h: for threads, too
_POLL_S = 0.001
# Of x86-64: pwrite64, fsync, fdatasync, openat, write
_OF_DISK = {18, 74, 75, 257, 1}
_EVENTFD = "anon_inode:[eventfd]"  # by which libuv wakes its loop
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


def _ptrace(request, thread):
    if _LIBC.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def _wait(thread, options=0):
    return os.waitpid(thread, _WALL | options)[0] == thread


class HungWorkers:
    """From now on until close(), while the process is there."""

    def __init__(self, pid):
        self._pid = pid
        self._threads = [int(one.name) for one in pathlib.Path(f"/proc/{pid}/task").iterdir() if one.name != str(pid)]
        assert self._threads, "it has begun some"
        self._begun, self._over = threading.Event(), threading.Event()
        self._tracer = threading.Thread(target=self._trace)  # only who has seized a thread may ask for more
        self._tracer.start()
        self._begun.wait()

    def close(self):
        self._over.set()
        self._tracer.join()

    def _asks_disk(self, thread):
        number, *arguments = pathlib.Path(f"/proc/{self._pid}/task/{thread}/syscall").read_text("ascii").split()
        if int(number) not in _OF_DISK:
            return False
        return int(number) != 1 or os.readlink(f"/proc/{self._pid}/fd/{int(arguments[0], 16)}") != _EVENTFD

    def _trace(self):
        hung = set()
        for thread in self._threads:
            _ptrace(_SEIZE, thread)
            _ptrace(_INTERRUPT, thread)
            _wait(thread)
            _ptrace(_SYSCALL, thread)
        self._begun.set()
        while not self._over.wait(_POLL_S):
            for thread in set(self._threads) - hung:
                if not _wait(thread, os.WNOHANG):
                    continue
                if self._asks_disk(thread):
                    hung.add(thread)
                else:
                    _ptrace(_SYSCALL, thread)
        for thread in self._threads:
            if thread not in hung:
                _ptrace(_INTERRUPT, thread)
                _wait(thread)
            _ptrace(_DETACH, thread)
