"""The scripted runtime with what a kubelet looks at besides: readiness, names, ends of containers.

    runtime = KubeletRuntime(directory / "r.sock")
    runtime.finish(pod.uid, "main")         # the container exits by itself
    runtime.reboot()                        # nothing runs any more
    runtime.running()                       # {container id: its CreateContainerRequest}

As with containerd, a (pod, container, attempt) can be created once, only in a sandbox that is
ready, and only a created container can be started.
"""

import threading
import time

import grpc

from protos import cri
from runtime import Reply, Runtime

ENDS_AT_ONCE = "setup"  # the name of containers that have done their work when they are started
_KILLED = 137
_LOST = 255  # what containerd says of a container that did not survive a reboot


def _refusal(code, details):
    return Reply((), code, details)


# A call that a stop of the runtime, or its client's end, has overtaken has no effect.
_GONE = Reply((), grpc.StatusCode.CANCELLED, "the call is over")


class KubeletRuntime(Runtime):
    def __init__(self, path):
        super().__init__(path)
        self.requests = {}  # {container id: the CreateContainerRequest that made it}
        self._ends = {}     # {container id: (exit code, wall clock in ns)}
        self._making = threading.Lock()
        ready = cri.StatusResponse()
        for kind in ("RuntimeReady", "NetworkReady"):
            ready.status.conditions.add(type=kind, status=True)
        self._ready = ready.SerializeToString()
        for method in ("Status", "RunPodSandbox", "CreateContainer", "StartContainer",
                       "StopContainer", "StopPodSandbox", "ContainerStatus"):
            self.on(method)

    def on(self, method, handler=None):
        super().on(method, handler or getattr(self, f"_{method}", None))

    def _CreateContainer(self, call):
        return self.create(call)

    def _Status(self, _call):
        return Reply((self._ready,))

    def _RunPodSandbox(self, call):
        metadata = call.parsed().config.metadata
        with self._making:
            if call.over.is_set():
                return _GONE
            if any((one.metadata.uid, one.metadata.attempt) == (metadata.uid, metadata.attempt)
                   for one in list(self.state.pods.values())):
                return _refusal(grpc.StatusCode.UNKNOWN, "failed to reserve sandbox name")
            return self.state.answer(call)

    def create(self, call):
        """The default answer to CreateContainer."""
        request = call.parsed()
        wanted = request.config.metadata
        with self._making:
            if call.over.is_set():
                return _GONE
            sandbox = self.state.pods.get(request.pod_sandbox_id)
            if sandbox is None or sandbox.state != cri.SANDBOX_READY:
                return _refusal(grpc.StatusCode.UNKNOWN, "sandbox container is not running")
            if any(self._uid(one) == sandbox.metadata.uid and one.metadata == wanted
                   for one in list(self.state.containers.values())):
                return _refusal(grpc.StatusCode.UNKNOWN,
                                f"failed to reserve container name {wanted.name}")
            reply = self.state.answer(call)
            created = cri.CreateContainerResponse.FromString(reply.messages[0]).container_id
            self.requests[created] = request
        return reply

    def _uid(self, container):
        return self.requests[container.id].sandbox_config.metadata.uid

    def _StartContainer(self, call):
        one = self.state.containers.get(call.parsed().container_id)
        with self._making:
            if call.over.is_set():
                return _GONE
            if one is not None and one.state != cri.CONTAINER_CREATED:
                return _refusal(grpc.StatusCode.UNKNOWN, "container is not in created state")
            reply = self.state.answer(call)
        if one is not None and one.metadata.name == ENDS_AT_ONCE:
            self._end(one.id, 0)
        return reply

    def _StopContainer(self, call):
        return self.stop_container(call)

    def stop_container(self, call):
        """The default answer to StopContainer."""
        self._end(call.parsed().container_id, _KILLED)
        return self.state.answer(call)

    def _StopPodSandbox(self, call):
        for one in list(self.state.containers.values()):
            if one.pod_sandbox_id == call.parsed().pod_sandbox_id:
                self._end(one.id, _KILLED)
        return self.state.answer(call)

    def _ContainerStatus(self, call):
        reply = self.state.answer(call)
        ended = self._ends.get(call.parsed().container_id)
        if reply.code != grpc.StatusCode.OK or ended is None:
            return reply
        answer = cri.ContainerStatusResponse.FromString(reply.messages[0])
        answer.status.exit_code, answer.status.finished_at = ended
        return Reply((answer.SerializeToString(),))

    def _end(self, container_id, exit_code):
        one = self.state.containers.get(container_id)
        if one is not None and one.state != cri.CONTAINER_EXITED:
            self._ends[container_id] = (exit_code, time.time_ns())
            one.state = cri.CONTAINER_EXITED

    def running(self):
        """{container id: the request that made it} of all that run."""
        return {key: self.requests[key] for key, one in list(self.state.containers.items())
                if one.state == cri.CONTAINER_RUNNING}

    def running_in(self, pod_uid):
        return {key: request for key, request in self.running().items()
                if request.sandbox_config.metadata.uid == pod_uid}

    def finish(self, pod_uid, name, exit_code=0):
        """The container ends by itself. False if it did not run."""
        for key, request in self.running_in(pod_uid).items():
            if request.config.metadata.name == name:
                self._end(key, exit_code)
                return True
        return False

    def reboot(self):
        """Nothing has survived but the records of what there was."""
        with self._making:
            for key in list(self.state.containers):
                self._end(key, _LOST)
            for pod in self.state.pods.values():
                pod.state = cri.SANDBOX_NOTREADY

    def forget_requests(self):
        """Of containers that are gone, and the recorded calls."""
        self.calls.clear()
        for key in set(self.requests) - set(self.state.containers):
            del self.requests[key]
            self._ends.pop(key, None)
