"""etcd, API server, controller manager and scheduler, in a network of their own: a cluster without
a node.

    plane = ControlPlane(directory); plane.start()
    plane.api.get("/api/v1/nodes")
    node's kubelet: plane.network, plane.kubeconfig("node")

All of it listens in that network, which has no way out; it ends at once, and as a whole.
"""

import json
import os
import pathlib
import signal
import subprocess
import typing

import yaml

from kube_api import Api, ApiError
from kube_certificates import Authority
from kube_programs import program
from kube_release import DRA, GATES, GROUP
from waiting import GENEROUS_S, wait_until

ADDRESS = "192.0.2.1"  # of this network's one interface; a node must not have a loopback address
NODE = "node"
_PORT = 6443
_SERVER = f"https://{ADDRESS}:{_PORT}"
_READY_S = 4 * GENEROUS_S
_NETWORK = f"""busybox ip link set lo up && busybox ip addr add {ADDRESS}/32 dev lo &&
    exec sleep infinity"""
_USERS = {"admin": ("admin", "system:masters"),
          "controller-manager": ("system:kube-controller-manager", None),
          "scheduler": ("system:kube-scheduler", None),
          NODE: (f"system:node:{NODE}", "system:nodes")}
# As those of a cluster are static pods, which their kubelet starts again. The scheduler of 1.36 panics
# when a slice comes while there is a DeviceTaintRule (dynamic-resource-allocation/resourceslice/
# tracker), as happens when the kubelet starts, which removes the slices of its node.
_AGAIN = ("sh", "-c", 'while :; do "$@"; sleep 1; done', "again")
# Who has pods deleted.
_AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "Metadata", "verbs": [verb],
                     "resources": [{"group": "", "resources": [what]}]}
                    for verb, what in (("create", "pods/eviction"), ("delete", "pods"))]}


def _switched(names):
    """On, as an option has it."""
    return ",".join(f"{one}=true" for one in names)


class Deletion(typing.NamedTuple):
    """A request to delete a pod. `is_eviction`: one that budgets may refuse."""

    user: str
    pod: str
    is_eviction: bool
    status: int


class ControlPlane:
    """`taint_rules`: with DeviceTaintRules, which it has only where that is wanted."""

    def __init__(self, directory, taint_rules=False):
        self.directory = pathlib.Path(directory)
        self.authority = None
        self.api = None
        gates = {**GATES, **({"DRADeviceTaintRules": True} if taint_rules else {})}
        versions = {"v1beta2" if taint_rules else None, DRA} - {"v1", None}
        self._gates = [f"--feature-gates={_switched(gates)}"] if gates else []
        self._apis = [f"--runtime-config={_switched(f'{GROUP}/{one}' for one in versions)}"] if versions else []
        self._holder = None
        self._pid = None
        self._programs = []
        self._server = None
        self._audit = self.directory / "audit"

    def start(self):
        self.authority = Authority(self.directory / "pki")
        self.authority.sign("server", "kube-apiserver", addresses=[ADDRESS, "127.0.0.1"])
        self.authority.sign("tokens", "tokens")
        for name, (user, group) in _USERS.items():
            self.authority.sign(name, user, group)
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", _NETWORK],
            stdin=subprocess.DEVNULL, start_new_session=True)
        wait_until(self._find_pid, "there is a network")
        self.api = Api(ADDRESS, _PORT, self.network, self.authority, "admin")
        self._start_etcd()
        self._start_server()
        self._wait_there("/readyz")  # the others would give up
        self._start_controllers()
        # One that each pod must have.
        self._wait_there("/api/v1/namespaces/default/serviceaccounts/default")

    def _find_pid(self):
        assert self._holder.poll() is None, "no network can be made"
        children = pathlib.Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        pids = children.read_text().split()
        # It has executed what comes last: the interface has its address.
        if pids and os.path.basename(os.path.realpath(f"/proc/{pids[0]}/exe")) == "sleep":
            self._pid = int(pids[0])
        return self._pid

    @property
    def network(self):
        return f"/proc/{self._pid}/ns/net"

    def kubeconfig(self, user):
        return self.authority.kubeconfig(user, _SERVER)

    def account_kubeconfig(self, namespace, account):
        """That of a service account, by a token of its own."""
        answer = self.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
        return self.authority.kubeconfig(None, _SERVER, token=answer["status"]["token"])

    def apply(self, path):
        """Creates the objects of a file of YAML, as kubectl does."""
        for one in yaml.safe_load_all(path.read_text()):
            metadata = one["metadata"]
            group = "/api/v1" if one["apiVersion"] == "v1" else f"/apis/{one['apiVersion']}"
            where = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
            self.api.create(f"{group}{where}/{one['kind'].lower()}s", one)

    def deletions(self):
        """All requests to delete pods that were answered, in turn."""
        asked = [json.loads(line) for line in self._audit.read_text().splitlines()]
        return [Deletion(one["user"]["username"], one["objectRef"]["name"],
                         "subresource" in one["objectRef"], one["responseStatus"]["code"])
                for one in asked]

    def _wait_there(self, path):
        wait_until(lambda: self._is_there(path), f"the API server has {path}", _READY_S, 0.2)

    def _is_there(self, path):
        ended = [one.args for one in self._programs if one.poll() is not None]
        assert not ended, f"they ended by themselves: {ended}"
        try:
            self.api.text(path)
        except (OSError, ApiError):
            return False
        return True

    def kill_server(self):
        """The API server; start_server() starts it again."""
        self._programs.remove(self._server)
        children = pathlib.Path(f"/proc/{self._server.pid}/task/{self._server.pid}/children")
        for pid in children.read_text().split():  # nsenter waits for it
            os.kill(int(pid), signal.SIGKILL)
        self._server.wait()

    def start_server(self):
        self._start_server()
        self._wait_there("/readyz")

    def _run(self, name, *options, before=()):
        with open(self.directory / f"{name}.log", "ab") as log:
            self._programs.append(subprocess.Popen(
                ["nsenter", f"--net={self.network}", f"--pid=/proc/{self._pid}/ns/pid",
                 *before, program(name), *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True))
        return self._programs[-1]

    def _start_etcd(self):
        peer = "http://127.0.0.1:2380"
        self._run("etcd", "--name", "one", "--data-dir", self.directory / "etcd",
                  "--unsafe-no-fsync", "--listen-client-urls", "http://127.0.0.1:2379",
                  "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", peer,
                  "--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}")

    def _start_server(self):
        certificate, key = self.authority.pair("server")
        client_certificate, client_key = self.authority.pair("admin")
        tokens_certificate, tokens = self.authority.pair("tokens")
        policy = self.directory / "audit.json"
        policy.write_text(json.dumps(_AUDIT))
        self._server = self._run(
            "kube-apiserver", f"--audit-policy-file={policy}", f"--audit-log-path={self._audit}",
            "--etcd-servers=http://127.0.0.1:2379",
            f"--bind-address={ADDRESS}", f"--advertise-address={ADDRESS}",
            f"--secure-port={_PORT}", "--endpoint-reconciler-type=none",
            f"--cert-dir={self.directory}", f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--kubelet-client-certificate={client_certificate}",
            f"--kubelet-client-key={client_key}", "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=198.51.100.0/24",
            f"--service-account-key-file={tokens_certificate}",
            f"--service-account-signing-key-file={tokens}",
            f"--service-account-issuer={_SERVER}", *self._gates, *self._apis)

    def _start_controllers(self):
        _, tokens = self.authority.pair("tokens")
        more = {"controller-manager": [f"--service-account-private-key-file={tokens}",
                                       "--use-service-account-credentials"],
                "scheduler": []}
        for name, options in more.items():
            config = self.directory / f"{name}.conf"
            config.write_text(self.kubeconfig(name))
            self._run(f"kube-{name}", f"--kubeconfig={config}", "--leader-elect=false",
                      f"--cert-dir={self.directory}", *self._gates, *options, before=_AGAIN)

    def stop(self):
        for log in sorted(self.directory.glob("*.log")):
            print(f"---- {log.name}\n{log.read_text(errors='replace')[-2000:]}")
        if self._holder is not None:
            self._holder.send_signal(signal.SIGKILL)  # and with it all that is in its name-space
            for one in [self._holder, *self._programs]:
                one.wait(GENEROUS_S)
