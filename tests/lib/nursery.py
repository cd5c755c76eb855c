"""Python programs of the tests as processes of their own, forked by one that has read their modules.

    process = nursery.start(__file__, "argument", log=file)     # its main() runs, with sys.argv
    process.stdin.write("...\n"); process.stdout.readline(); process.kill(); process.wait()

What a program imports (gRPC, the wire contracts, which protoc compiles) takes thirty times the rest
of its start. The process that forks is made at the first start; it has no threads, as gRPC's users
must not be forked. A program shows its own command line, and ends when its standard input does: that
is how none outlives the test's process.
"""

import atexit
import ctypes
import importlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading

_REQUEST_BYTES_MAX = 1 << 16
_ARGUMENT = "-" * 4096  # room for the command lines of the programs
_lock = threading.Lock()
_connection = None      # to the process that forks


class Process:
    """As a subprocess.Popen whose standard input and output are pipes of text."""

    def __init__(self, pid, pidfd, status, stdin, stdout):
        self.pid = pid
        self.stdin = os.fdopen(stdin, "w")
        self.stdout = os.fdopen(stdout)
        self.returncode = None
        self._pidfd = pidfd
        self._status = status  # a pipe, from which it comes once the process is reaped
        self._lock = threading.Lock()

    def __del__(self):
        os.close(self._pidfd)
        os.close(self._status)

    def send_signal(self, number):
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            pass  # it is gone

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout=None):
        if not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        with self._lock:
            if self.returncode is None:
                self.returncode = int(os.read(self._status, 32))
        return self.returncode


def start(file, *arguments, log=None):
    """`file`: a module of this directory, whose main() runs; `log`: its standard error."""
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    request = json.dumps([str(file), *map(str, arguments)]).encode()
    with _lock:
        connection = _connection or _begin()
        socket.send_fds(connection, [request], [theirs_in, theirs_out, log.fileno() if log else 2])
        answer, (pidfd, status), _, _ = socket.recv_fds(connection, 32, 2)
    os.close(theirs_in)
    os.close(theirs_out)
    return Process(int(answer), pidfd, status, ours_in, ours_out)


def _begin():
    global _connection
    _connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        forking = subprocess.Popen([sys.executable, __file__, str(theirs.fileno()), _ARGUMENT],
                                   stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                                   start_new_session=True)
    atexit.register(_end, forking.wait)
    return _connection


def fork(*modules):
    """What a program that starts others calls first, as long as it has no threads: the process
    that forks is made of this one, with the modules that it has, and these."""
    global _connection
    for name in modules:
        importlib.import_module(name)
    _connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        _connection.close()
        _connection = None
        _serve(theirs)
        sys.exit()
    theirs.close()
    atexit.register(_end, lambda: os.waitpid(pid, 0))


def _end(wait):
    _connection.close()
    wait()  # so that its time is counted as ours


# ---- the process that forks ----

def _serve(connection):
    """Until nobody is left who would ask."""
    children = {}  # {pidfd: (pid, pipe for its status)}
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd in children:
                poll.unregister(fd)
                _reap(fd, *children.pop(fd))
                continue
            request, fds, _, _ = socket.recv_fds(connection, _REQUEST_BYTES_MAX, 3)
            if not request:
                return
            pid, pidfd, status = _fork(json.loads(request), fds, connection)
            children[pidfd] = pid, status
            poll.register(pidfd, select.POLLIN)


def _fork(command, fds, connection):
    module = importlib.import_module(pathlib.Path(command[0]).stem)
    theirs, status = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(command, fds)
        module.main()
        sys.exit()
    pidfd = os.pidfd_open(pid)
    socket.send_fds(connection, [b"%d" % pid], [pidfd, theirs])
    for fd in (*fds, theirs):
        os.close(fd)
    return pid, pidfd, status


def _become(command, fds):
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, 1 + max(int(fd) for fd in os.listdir("/proc/self/fd")))
    sys.argv = command
    _show([sys.executable, *command])


def _show(command):
    """In the place of this process's own command line, for whoever looks for processes."""
    fields = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = map(int, fields[45:47])  # proc(5): arg_start, arg_end
    line = b"\0".join(one.encode() for one in command)[:end - begin - 1]
    ctypes.memmove(begin, line.ljust(end - begin, b"\0"), end - begin)


def _reap(pidfd, pid, status):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        os.write(status, b"%d" % code)
    except BrokenPipeError:
        pass  # nobody waits for it
    os.close(status)
    os.close(pidfd)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
