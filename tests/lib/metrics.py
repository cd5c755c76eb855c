"""What a daemon tells over HTTP at the socket of [metrics].

    status, kind, body = get(path, "/readyz")
    scrape(path)["creates_held"].value()
"""

import contextlib
import http.client
import socket

from exposition import parse

PREFIX = "cri_device_shim_"


class _Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self._path)


def get(path, what, method="GET"):
    """(status, content type, body) of one request of its own."""
    with contextlib.closing(_Unix(path)) as connection:
        connection.request(method, what)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def scrape(path):
    status, kind, text = get(path, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return {name.removeprefix(PREFIX): family for name, family in parse(text).items()}
