"""Bare sockets that a process of a chosen name has connected or listens on: to the other end that
process is the peer, though the test has the socket.

    kubelet = NamedProcess("kubelet")
    sock = kubelet.connect(shim.socket)
    listener = kubelet.listen(directory / "kubelet.sock")
    kubelet.stop()
"""

import pathlib
import socket
import subprocess
import sys

from waiting import GENEROUS_S


class NamedProcess:
    def __init__(self, name):
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(GENEROUS_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, name, str(theirs.fileno())],
                pass_fds=[theirs.fileno()])

    @property
    def pid(self):
        return self._process.pid

    def connect(self, path):
        return self._ask("connect", path)

    def listen(self, path):
        return self._ask("listen", path)

    def _ask(self, what, path):
        self._control.sendall(f"{what} {path}".encode())
        word, fds, _, _ = socket.recv_fds(self._control, 1000, 1)
        assert fds, f"{what} {path}: {word.decode()}"
        sock = socket.socket(fileno=fds[0])
        sock.settimeout(GENEROUS_S)
        return sock

    def stop(self):
        self._control.close()  # which ends it
        self._process.wait(GENEROUS_S)


def _serve(control):
    while request := control.recv(1000):
        what, path = request.decode().split(" ", 1)
        with socket.socket(socket.AF_UNIX) as sock:
            try:
                if what == "connect":
                    sock.connect(path)
                else:
                    sock.bind(path)
                    sock.listen()
                socket.send_fds(control, [b"done"], [sock.fileno()])
            except OSError as error:
                control.sendall(str(error).encode())


if __name__ == "__main__":
    pathlib.Path("/proc/self/comm").write_text(sys.argv[1])
    with socket.socket(fileno=int(sys.argv[2])) as one:
        _serve(one)
