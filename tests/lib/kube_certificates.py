"""A certificate authority of a test's own, and what it signs.

    authority = Authority(directory)
    authority.sign("server", "kube-apiserver", addresses=["127.0.0.1"])   # server.crt, server.key
    authority.kubeconfig("admin", "https://127.0.0.1:6443")               # its text
"""

import base64
import json
import pathlib
import subprocess

_NEW_KEY = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-days", "10"]


class Authority:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.certificate = self._path("ca.crt")
        self._make("ca", f"/CN={self.directory.name} of a cluster", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def _path(self, name):
        return self.directory / name

    def _make(self, name, subject, *more):
        subprocess.run([*_NEW_KEY, "-subj", subject, "-keyout", self._path(f"{name}.key"), "-out",
                        self._path(f"{name}.crt"), *more], check=True, capture_output=True)

    def sign(self, name, user, group=None, addresses=()):
        """A key and its certificate, for either end of a connection."""
        names = ",".join(["DNS:localhost", *(f"IP:{one}" for one in addresses)])
        subject = (f"/O={group}" if group else "") + f"/CN={user}"
        self._make(name, subject, "-CA", self.certificate, "-CAkey", self._path("ca.key"),
                   "-addext", f"subjectAltName={names}", "-addext", "basicConstraints=CA:FALSE",
                   "-addext", "extendedKeyUsage=serverAuth,clientAuth")

    def pair(self, name):
        """The paths of its certificate and its key."""
        return self._path(f"{name}.crt"), self._path(f"{name}.key")

    def kubeconfig(self, name, server, token=None):
        """With all in it, for whoever has been signed as `name`, or has the token."""
        if token is None:
            certificate, key = (_base64(path) for path in self.pair(name))
            user = {"client-certificate-data": certificate, "client-key-data": key}
        else:
            user = {"token": token}
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {
                "server": server, "certificate-authority-data": _base64(self.certificate)}}],
            "users": [{"name": "it", "user": user}]})


def _base64(path):
    return base64.b64encode(path.read_bytes()).decode()
