"""A client of an API server that is in a network name-space of its own.

    api = Api("192.0.2.1", 6443, network, authority, "admin")
    api.get("/api/v1/nodes/node")
    api.create("/api/v1/namespaces/default/pods", pod)
"""

import ctypes
import http.client
import json
import os
import socket
import ssl

_CLONE_NEWNET = 0x40000000
_TIMEOUT_S = 60
_libc = ctypes.CDLL(None, use_errno=True)


class ApiError(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


def _set_network(file):
    if _libc.setns(file, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def socket_in(network):
    """A TCP socket of the network name-space whose file that is; it stays there."""
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(network, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set_network(there)
        try:
            return socket.socket(socket.AF_INET)
        finally:
            _set_network(here)
    finally:
        os.close(here)
        os.close(there)


class Api:
    """`user`: as whom the authority has signed it. From any thread."""

    def __init__(self, address, port, network, authority, user):
        self._address = (address, port)
        self._network = network
        self._tls = ssl.create_default_context(cafile=authority.certificate)
        self._tls.load_cert_chain(*authority.pair(user))

    def get(self, path):
        return self._call("GET", path)

    def create(self, path, what):
        return self._call("POST", path, what)

    def delete(self, path, **options):
        return self._call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    def patch(self, path, what):
        return self._call("PATCH", path, what, "application/merge-patch+json")

    def text(self, path):
        return self._request("GET", path, None, "").decode()

    def _call(self, method, path, what=None, kind="application/json"):
        return json.loads(self._request(method, path, what, kind))

    def _request(self, method, path, what, kind):
        connection = http.client.HTTPConnection(*self._address, timeout=_TIMEOUT_S)
        plain = socket_in(self._network)
        try:
            plain.settimeout(_TIMEOUT_S)
            plain.connect(self._address)
            connection.sock = self._tls.wrap_socket(plain, server_hostname=self._address[0])
            connection.request(method, path, None if what is None else json.dumps(what),
                               {"Content-Type": kind} if what is not None else {})
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
            plain.close()
        if answer.status >= 300:
            raise ApiError(answer.status, body.decode(errors="replace"))
        return body
