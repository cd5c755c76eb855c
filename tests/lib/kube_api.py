"""A client of an API server that is in a network name-space of its own.

    api = Api("192.0.2.1", 6443, network, authority, "admin")
    api = Api.of_kubeconfig(path)      # from inside of that network
    api.get("/api/v1/nodes/node")
    api.create("/api/v1/namespaces/default/pods", pod)
"""

import base64
import ctypes
import http.client
import json
import os
import pathlib
import socket
import ssl
import tempfile
import urllib.parse

_CLONE_NEWNET = 0x40000000
_TIMEOUT_S = 60
_libc = ctypes.CDLL(None, use_errno=True)


class ApiError(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class _Unpacked:
    """The certificates of a kubeconfig in files, as an Authority has them."""

    def __init__(self, config, directory):
        self._directory = pathlib.Path(directory)
        user = config["users"][0]["user"]
        cluster = config["clusters"][0]["cluster"]
        self.certificate = self._write("ca", cluster["certificate-authority-data"])
        self._pair = (self._write("crt", user["client-certificate-data"]),
                      self._write("key", user["client-key-data"]))

    def _write(self, name, data):
        path = self._directory / name
        path.write_bytes(base64.b64decode(data))
        return path

    def pair(self, _user):
        return self._pair


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
    """`network`: None is its own; `user`: as whom the authority has signed it. From any thread."""

    def __init__(self, address, port, network, authority, user):
        self._address = (address, port)
        self._network = network
        self._tls = ssl.create_default_context(cafile=authority.certificate)
        self._tls.load_cert_chain(*authority.pair(user))

    @classmethod
    def of_kubeconfig(cls, path):
        """One of kube_certificates.Authority.kubeconfig(), in this network."""
        config = json.loads(pathlib.Path(path).read_text())
        server = urllib.parse.urlsplit(config["clusters"][0]["cluster"]["server"])
        with tempfile.TemporaryDirectory() as directory:
            return cls(server.hostname, server.port, None, _Unpacked(config, directory), None)

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
        plain = socket_in(self._network) if self._network else socket.socket(socket.AF_INET)
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
