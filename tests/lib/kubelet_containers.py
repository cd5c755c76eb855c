"""The containers of the scripted kubelet's pods with claims: one of each, made through the CRI socket.

    containers = Containers(socket)         # of one process of the kubelet's
    status = containers.status(pod.uid)     # what the runtime has of the pod
    containers.make_sandbox(status); containers.keep_running(status, cdi_names)
    containers.stop(status); containers.remove(status)

As pkg/kubelet/kuberuntime: each sandbox and container has an attempt of its own, and a container that
was created and not started counts for nothing. Raises grpc.RpcError, or ValueError once it is closed.
"""

import grpc

from criclient import Client, container_config, pod_config
from protos import cri

_CALL_S = 120  # runtimeRequestTimeout
_UID = "io.kubernetes.pod.uid"
NAME = "main"


class Status:
    """`sandbox`: the newest, if it is ready; else None."""

    def __init__(self, uid, sandboxes, containers):
        self.uid = uid
        self.sandboxes = sorted(sandboxes, key=lambda one: one.metadata.attempt)
        self.containers = sorted(containers, key=lambda one: one.metadata.attempt)
        newest = self.sandboxes[-1] if self.sandboxes else None
        self.sandbox = newest if newest and newest.state == cri.SANDBOX_READY else None

    @property
    def running(self):
        """In that sandbox."""
        return [one for one in self.containers if one.state == cri.CONTAINER_RUNNING
                and self.sandbox and one.pod_sandbox_id == self.sandbox.id]


def _next_attempt(ones):
    return ones[-1].metadata.attempt + 1 if ones else 0


class Containers:
    def __init__(self, socket):
        self._client = Client(socket, _CALL_S)

    def close(self):
        self._client.close()

    def status(self, uid):
        return self.all().get(uid) or Status(uid, [], [])

    def all(self):
        """{pod uid: its Status}."""
        sandboxes, containers = {}, {}
        for one in self._client.ListContainers().containers:
            containers.setdefault(one.labels[_UID], []).append(one)
        for one in self._client.ListPodSandbox().items:
            sandboxes.setdefault(one.labels[_UID], []).append(one)
        return {uid: Status(uid, sandboxes.get(uid, []), containers.get(uid, []))
                for uid in {*sandboxes, *containers}}

    def make_sandbox(self, status):
        self._client.RunPodSandbox(config=self._pod(status.uid, _next_attempt(status.sandboxes)))

    def keep_running(self, status, cdi_names):
        """The container, in the sandbox."""
        if status.running:
            return
        config = container_config(NAME, [], attempt=_next_attempt(status.containers),
                                  CDI_devices=[cri.CDIDevice(name=name) for name in cdi_names])
        config.labels[_UID] = status.uid
        created = self._client.CreateContainer(
            pod_sandbox_id=status.sandbox.id, config=config,
            sandbox_config=self._pod(status.uid, status.sandbox.metadata.attempt)).container_id
        self._client.StartContainer(container_id=created)

    def stop(self, status):
        for one in status.containers:
            if one.state == cri.CONTAINER_RUNNING:
                _if_there(self._client.StopContainer, container_id=one.id, timeout=2)
        for one in status.sandboxes:
            _if_there(self._client.StopPodSandbox, pod_sandbox_id=one.id)

    def remove(self, status):
        for one in status.containers:
            self._client.RemoveContainer(container_id=one.id)
        for one in status.sandboxes:
            self._client.RemovePodSandbox(pod_sandbox_id=one.id)

    @staticmethod
    def _pod(uid, attempt):
        return pod_config(uid, uid=uid, attempt=attempt)


def _if_there(call, **request):
    try:
        call(**request)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
