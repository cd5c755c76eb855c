"""A service manager as far as a program of ours speaks with one: it keeps descriptors, as systemd.

    manager = Supervisor(directory)
    one = supervised(Bridge, manager)(directory); one.start(); one.kill(); one.start()
    manager.names()      # of what it keeps
    manager.stop()       # as `systemctl stop` ends: nothing is kept

sd_notify(3): datagrams of the running process (by their credentials) with FDSTORE=1, FDNAME=,
FDPOLL=0, FDSTOREREMOVE=1; sd_listen_fds(3): what is kept goes to each process that is started, in
the order in which it came, behind `passed`, which are a socket unit's. A descriptor that is kept
already is not kept twice; one whose other end is gone is dropped, and so is a socket that is bound
and does not listen (EPOLLHUP); what comes beyond `most` is closed.
"""

import array
import os
import select
import socket
import struct
import subprocess
import threading
import typing

from waiting import wait_until

# "LISTEN_FDNAMES=", what is kept by name, and a zero: execve(2), MAX_ARG_STRLEN.
_NAMES_BYTES_MAX = 128 * 1024 - len("LISTEN_FDNAMES=") - 1
# With this in a socket unit's name no process is started any more that has put another one.
NAME_THAT_TAKES_ALL = "x" * _NAMES_BYTES_MAX
_CREDENTIALS = struct.Struct("iII")
_FDS_IN_A_MESSAGE = 253  # SCM_MAX_FD


class Kept(typing.NamedTuple):
    name: str
    fd: int


def _is_same(one, other):
    one, other = os.fstat(one), os.fstat(other)
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def listening(command, fds):
    """The command that a process started with pass_fds=fds has to be given: it moves them to 3, 4, ... as
    sd_listen_fds(3) has them. A shell does so, since gRPC's threads do not go together with
    preexec_fn's fork."""
    if not fds:
        return list(command)
    first = 3 + len(fds) + max(fds)  # above all of them, and above 3, 4, ...
    moves = [f"{first + place}<&{fd}-" for place, fd in enumerate(fds)]
    moves += [f"{3 + place}<&{first + place}-" for place in range(len(fds))]
    return ["/bin/bash", "-c", f"exec {' '.join(moves)}; "
            f'LISTEN_PID=$$ LISTEN_FDS={len(fds)} exec "$0" "$@"', *command]


class Supervisor:
    """`keeps`: whether it has a store at all; `passed`: {name: descriptor} of a socket unit;
    `name`: of its own socket in the directory, for several of them."""

    def __init__(self, directory, keeps=True, most=4096, passed=None, name="notify"):
        self.path = directory / name
        self.states = []  # what was said besides, as READY=1
        self.main_pid = None
        self._keeps = keeps
        self._most = most
        self._passed = dict(passed or {})
        self._kept = []
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(self.path))
        self._end, self._end_writer = os.pipe()
        self._poll = select.epoll()
        for fd in self._socket.fileno(), self._end:
            self._poll.register(fd, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def names(self):
        with self._lock:
            return [one.name for one in self._kept]

    def descriptor(self, name):
        """The one that is kept under that name, borrowed."""
        with self._lock:
            return next(one.fd for one in self._kept if one.name == name)

    def kept(self):
        """[(name, descriptor)], the descriptors borrowed."""
        with self._lock:
            return [tuple(one) for one in self._kept]

    def wait_names(self, condition, what="what it keeps"):
        wait_until(lambda: condition(self.names()), f"{what}: {self.names()}")

    def give_up(self):
        """As when the unit has failed for good, or was stopped: all that is kept goes."""
        with self._lock:
            for one in list(self._kept):
                self._drop(one)

    def stop(self):
        if self._thread is None:
            return
        os.write(self._end_writer, b"x")
        self._thread.join()
        self._thread = None
        self.give_up()
        for fd in self._end, self._end_writer:
            os.close(fd)
        self._poll.close()
        self._socket.close()
        self.path.unlink()

    # ---- processes ----

    def spawn(self, command, log):
        """A process of the service with all that is kept; what the last one has said comes first, as
        with systemd, and what this one says is not heard before it is known."""
        with self._lock:
            while self._receive():
                pass
            process = self._start(command, log)
            self.main_pid = process.pid
        return process

    def _start(self, command, log):
        names = [*self._passed, *(one.name for one in self._kept)]
        fds = [*self._passed.values(), *(one.fd for one in self._kept)]
        environment = {**os.environ, "NOTIFY_SOCKET": str(self.path)}
        if self._keeps:
            environment["FDSTORE"] = str(self._most)  # as systemd from 254 on
        if fds:
            environment["LISTEN_FDNAMES"] = ":".join(names)
        return subprocess.Popen(listening(command, fds), stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, start_new_session=True, env=environment,
                                pass_fds=fds)

    # ---- what they say ----

    def _run(self):
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._end:
                    return
                with self._lock:
                    if fd == self._socket.fileno():
                        self._receive()
                    else:
                        self._drop_ended(fd)

    def _receive(self):
        """Whether there was anything."""
        room = (socket.CMSG_SPACE(_CREDENTIALS.size) +
                socket.CMSG_SPACE(_FDS_IN_A_MESSAGE * array.array("i").itemsize))
        try:
            text, ancillary, _, _ = self._socket.recvmsg(
                4096, room, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        fds, pid = array.array("i"), None
        for _, kind, data in ancillary:
            if kind == socket.SCM_RIGHTS:
                fds.frombytes(data)
            elif kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data)[0]
        lines = dict(line.split("=", 1) for line in text.decode().splitlines())
        if pid == self.main_pid:
            self._take(lines, fds)
        for fd in fds:
            os.close(fd)
        return True

    def _take(self, lines, fds):
        name = lines.get("FDNAME", "stored")
        if lines.get("FDSTOREREMOVE") == "1":
            for one in [one for one in self._kept if one.name == name]:
                self._drop(one)
        elif lines.get("FDSTORE") == "1":
            for fd in fds:
                self._keep(name, fd, polled=lines.get("FDPOLL") != "0")
        else:
            self.states.append(lines)

    def _keep(self, name, fd, polled):
        if (not self._keeps or len(self._kept) >= self._most or
                any(_is_same(fd, one.fd) for one in self._kept)):
            return
        one = Kept(name, os.dup(fd))
        if polled:
            try:
                self._poll.register(one.fd, 0)  # EPOLLHUP and EPOLLERR come in any case
            except PermissionError:
                pass  # a file or memfd
        self._kept.append(one)

    def _drop_ended(self, fd):
        for one in [one for one in self._kept if one.fd == fd]:
            self._drop(one)

    def _drop(self, one):
        try:
            self._poll.unregister(one.fd)
        except (FileNotFoundError, PermissionError):
            pass
        os.close(one.fd)
        self._kept.remove(one)


def supervised(program, manager):
    """The class `program` of program.py, whose processes `manager` starts."""
    class Supervised(program):
        def _spawn(self, *command):
            with open(self.log_path, "ab") as log:
                self._process = manager.spawn([*self.wrapper, *command], log)

    return Supervised
