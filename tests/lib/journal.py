"""The journal's socket, where a program finds it, and what comes there.

    journal = Journal(directory)
    journal.wrap(shim).start()
    journal.read()[0]["MESSAGE"]
"""

import socket

# The daemon in a mount namespace in which the journal's directory is $0.
WITH_JOURNAL = ("unshare", "--mount", "sh", "-c",
                 'mount -t tmpfs none /run && mkdir -p /run/systemd/journal && '
                 'mount --bind "$0" /run/systemd/journal && exec "$@"')


class Journal:
    """Datagrams that come on the journal's socket, as {field: value}."""

    def __init__(self, directory):
        self.directory = directory / "journal"
        self.directory.mkdir()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.directory / "socket"))
        self._socket.setblocking(False)
        self.raw = b""
        self.entries = []

    def close(self):
        self._socket.close()

    def read(self):
        while True:
            try:
                datagram = self._socket.recv(65536)
            except BlockingIOError:
                return self.entries
            self.raw += datagram
            assert datagram.endswith(b"\n")
            lines = datagram.decode().rstrip("\n").split("\n")
            self.entries.append(dict(line.split("=", 1) for line in lines))

    def wrap(self, program):
        program.wrapper = (*WITH_JOURNAL, self.directory)
        return program
