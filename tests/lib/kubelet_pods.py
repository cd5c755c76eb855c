"""The pod workers of the scripted kubelet: what it has the runtime do for one pod."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

from criclient import container_config, pod_config
from kubelet_devices import AllocateError
from protos import cri

_BACK_OFF_S = 10
_UID = "io.kubernetes.pod.uid"
_NAME = "io.kubernetes.container.name"
_KEPT_DEAD = 1  # exited containers that are kept of each name


class _Refused(Exception):
    """A step of a sync failed: `reason`, and the text shown with it."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class _Status:
    """What the runtime has of one pod."""

    def __init__(self, client, uid):
        labels = {_UID: uid}
        self._client = client
        self.sandboxes = sorted(
            (one for one in client.ListPodSandbox(
                filter=cri.PodSandboxFilter(label_selector=labels)).items
             if one.labels[_UID] == uid), key=lambda one: one.metadata.attempt)
        self.containers = sorted(
            (one for one in client.ListContainers(
                filter=cri.ContainerFilter(label_selector=labels)).containers
             if one.labels[_UID] == uid), key=lambda one: one.metadata.attempt)

    @property
    def sandbox(self):
        """The newest, if it is ready."""
        newest = self.sandboxes[-1] if self.sandboxes else None
        return newest if newest and newest.state == cri.SANDBOX_READY else None

    def latest(self, name):
        return next((one for one in reversed(self.containers) if one.metadata.name == name), None)

    def running(self):
        return [one for one in self.containers if one.state == cri.CONTAINER_RUNNING]

    def ended(self, container):
        """(exit code, when on the wall clock) of an exited container; None if it is gone."""
        try:
            status = self._client.ContainerStatus(container_id=container.id).status
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return None
            raise
        return status.exit_code, status.finished_at / 1e9


class Worker:
    """One pod's. Its thread syncs when woken, and has itself woken again through `kubelet.later()`,
    which only the sync loop does."""

    def __init__(self, kubelet, pod, terminating=False):
        self.pod = pod
        self.terminated = False  # its devices are free
        self.over = False        # nothing of it is left
        self._kubelet = kubelet
        self._terminating = terminating
        self._removing = terminating and pod.get("deleting", False)
        self._random = random.Random(f"{kubelet.settings['seed']} {pod['uid']}")
        self._crashes = {}  # {container: seconds of its back-off}
        self._waiting = {}
        self._phase = None
        self._final = None  # reported when it is terminated
        self._changed = threading.Condition()
        self._woken = True
        threading.Thread(target=self._run, daemon=True).start()

    def wake(self):
        with self._changed:
            self._woken = True
            self._changed.notify()

    def terminate(self, remove):
        self._terminating = True
        self._removing |= remove
        self.wake()

    def _run(self):
        while not self.over:
            with self._changed:
                while not self._woken:
                    self._changed.wait()
                self._woken = False
            try:
                self._step()
            except (grpc.RpcError, _Refused) as error:
                reason, text = (("CRI", error.details()) if isinstance(error, grpc.RpcError)
                                else (error.reason, str(error)))
                self._kubelet.report("retry", uid=self.pod["uid"], reason=reason, message=text)
                self._again()

    def _again(self, seconds=None):
        seconds = seconds or _BACK_OFF_S * self._random.uniform(1, 1.5)
        self._kubelet.later(self, seconds / self._kubelet.settings["speed"])

    def _step(self):
        if not self._terminating:
            self._sync()
        if self._terminating:
            if not self.terminated:
                self._terminate()
            if self._removing:
                self._remove()

    # ---- sync ----

    def _sync(self):
        client = self._kubelet.runtime
        status = _Status(client, self.pod["uid"])
        code = self._exit_code(status)
        if code is not None:
            self._final = "Failed" if code else "Succeeded"
            self._terminating = True
            return
        self._waiting = {}
        if status.sandbox is None:
            self._new_sandbox(status)
            status = _Status(client, self.pod["uid"])
            if status.sandbox is None:
                raise _Refused("CreatePodSandboxError", "the new sandbox is not there")
        if self._init_done(status):
            for container in self.pod["containers"]:
                self._keep_running(status, container)
        self._collect(status)
        self._report(self._running_phase(), self._waiting)
        if self._waiting:
            self._again()

    def _exit_code(self, status):
        """Of a pod that is done: 0, or that of a container that failed. None: it is not."""
        if self.pod["restart"] == "Always":
            return None
        worst = 0
        for container in self.pod["containers"]:
            latest = status.latest(container["name"])
            ended = (status.ended(latest)
                     if latest and latest.state == cri.CONTAINER_EXITED else None)
            if ended is None or (ended[0] and self.pod["restart"] == "OnFailure"):
                return None
            worst = worst or ended[0]
        return worst

    def _new_sandbox(self, status):
        self._stop(status)
        attempt = status.sandboxes[-1].metadata.attempt + 1 if status.sandboxes else 0
        self._config = pod_config(self.pod["name"], uid=self.pod["uid"], attempt=attempt,
                                  namespace=self.pod["namespace"],
                                  annotations=self.pod["annotations"])
        try:
            self._kubelet.runtime.RunPodSandbox(config=self._config)
        except grpc.RpcError as error:
            raise _Refused("CreatePodSandboxError", error.details()) from error

    def _init_done(self, status):
        """Whether the app containers may run; starts the next init container if not."""
        sandbox = status.sandbox.id
        begun = any(one.pod_sandbox_id == sandbox and one.metadata.name == container["name"]
                    for one in status.containers for container in self.pod["containers"])
        for container in self.pod["init"]:
            if container.get("sidecar"):
                self._keep_running(status, container)
                continue
            if begun:
                continue
            latest = status.latest(container["name"])
            if latest and latest.pod_sandbox_id == sandbox:
                ended = status.ended(latest) if latest.state == cri.CONTAINER_EXITED else None
                if ended and ended[0] == 0:
                    continue
            self._keep_running(status, container)
            return False
        return True

    def _keep_running(self, status, container):
        latest = status.latest(container["name"])
        attempt = 0
        if latest is not None:
            if (latest.state == cri.CONTAINER_RUNNING
                    and latest.pod_sandbox_id == status.sandbox.id):
                return
            if self._backing_off(status, latest):
                return
            attempt = latest.metadata.attempt + 1
        try:
            self._start(status.sandbox, container, attempt)
        except _Refused as error:
            self._waiting[container["name"]] = [error.reason, str(error)]

    def _backing_off(self, status, latest):
        """Of a container that ran before: 10 s after its end, doubling with each try."""
        name = latest.metadata.name
        ended = status.ended(latest) if latest.state == cri.CONTAINER_EXITED else None
        if ended is None:
            return False
        delay = self._crashes.get(name, 0) / self._kubelet.settings["speed"]
        left = ended[1] + delay - time.time()
        if left > 0:
            self._waiting[name] = ["CrashLoopBackOff", f"{left} s left"]
            return True
        self._crashes[name] = min(max(2 * self._crashes.get(name, 0), _BACK_OFF_S),
                                  self._kubelet.settings["crash_s_max"])
        return False

    def _start(self, sandbox, container, attempt):
        name = container["name"]
        client = self._kubelet.runtime
        try:
            options = self._kubelet.devices.options(self.pod, container)
        except AllocateError as error:
            raise _Refused("CreateContainerConfigError", str(error)) from error
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox.id, config=self._container_config(container, attempt, options),
            sandbox_config=pod_config(self.pod["name"], uid=self.pod["uid"],
                                      namespace=self.pod["namespace"],
                                      attempt=sandbox.metadata.attempt,
                                      annotations=self.pod["annotations"]))
        try:
            created = client.CreateContainer(request).container_id
        except grpc.RpcError as error:
            self._kubelet.report("refused", uid=self.pod["uid"], container=name,
                                 code=error.code().name, message=error.details())
            raise _Refused("CreateContainerError", error.details()) from error
        try:
            client.StartContainer(container_id=created)
        except grpc.RpcError as error:
            raise _Refused("RunContainerError", error.details()) from error
        self._post_start(created, container.get("hook"))
        self._kubelet.report("started", uid=self.pod["uid"], container=name, attempt=attempt)

    def _post_start(self, container_id, hook):
        if not hook:
            return
        try:
            answer = self._kubelet.runtime.ExecSync(container_id=container_id, cmd=hook)
        except grpc.RpcError as error:
            raise _Refused("PostStartHookError", error.details()) from error
        if answer.exit_code:
            raise _Refused("PostStartHookError", answer.stderr.decode(errors="replace"))

    def _container_config(self, container, attempt, options):
        """Of several resources the first one's settings win; the plugins' come before the pod's."""
        config = container_config(container["name"], container.get("command", []), attempt=attempt)
        config.labels.update({_UID: self.pod["uid"], "io.kubernetes.pod.name": self.pod["name"]})
        envs, mounts, devices, names = {}, {}, {}, []
        for one in options:
            for key, value in one.envs.items():
                envs.setdefault(key, value)
            for mount in one.mounts:
                mounts.setdefault(mount.container_path, mount)
            for device in one.devices:
                devices.setdefault(device.container_path, device)
            for key, value in one.annotations.items():
                if key not in config.annotations:
                    config.annotations[key] = value
            names += [cdi.name for cdi in one.cdi_devices if cdi.name not in names]
        for key, value in [*envs.items(), *container.get("envs", {}).items()]:
            config.envs.add(key=key, value=value.encode())
        for mount in mounts.values():
            config.mounts.add(container_path=mount.container_path, host_path=mount.host_path,
                              readonly=mount.read_only)
        for container_path, host_path in container.get("mounts", {}).items():
            config.mounts.add(container_path=container_path, host_path=host_path)
        for device in devices.values():
            config.devices.add(container_path=device.container_path, host_path=device.host_path,
                               permissions=device.permissions)
        for name in names:
            config.CDI_devices.add(name=name)
        config.annotations["io.kubernetes.container.restartCount"] = str(attempt)
        return config

    def _collect(self, status):
        """Removes the older ones of what is no longer running."""
        for name in {one.metadata.name for one in status.containers}:
            dead = [one for one in status.containers if one.metadata.name == name
                    and one.state != cri.CONTAINER_RUNNING]
            for one in dead[:-_KEPT_DEAD]:
                self._kubelet.runtime.RemoveContainer(container_id=one.id)
        for sandbox in status.sandboxes[:-1]:
            if not any(one.pod_sandbox_id == sandbox.id for one in status.containers):
                self._kubelet.runtime.RemovePodSandbox(pod_sandbox_id=sandbox.id)

    # ---- end ----

    def _terminate(self):
        client = self._kubelet.runtime
        self._stop(_Status(client, self.pod["uid"]))
        if _Status(client, self.pod["uid"]).running():
            raise _Refused("KillContainerError", "detected running containers after a successful "
                           "KillPod, CRI violation")
        self.terminated = True
        if self._final:
            self._report(self._final)
        self._kubelet.report("terminated", uid=self.pod["uid"])

    def _stop(self, status):
        def stop(container):
            request = cri.StopContainerRequest(container_id=container.id, timeout=2)
            _ignoring_not_found(self._kubelet.runtime.StopContainer, request=request)

        running = status.running()
        if running:
            with ThreadPoolExecutor(max_workers=len(running)) as pool:
                list(pool.map(stop, running))
        for sandbox in status.sandboxes:
            _ignoring_not_found(self._kubelet.runtime.StopPodSandbox, pod_sandbox_id=sandbox.id)

    def _remove(self):
        client = self._kubelet.runtime
        status = _Status(client, self.pod["uid"])
        for container in status.containers:
            client.RemoveContainer(container_id=container.id)
        for sandbox in status.sandboxes:
            client.RemovePodSandbox(pod_sandbox_id=sandbox.id)
        self.over = True
        self._kubelet.gone(self)

    # ---- status ----

    def _running_phase(self):
        status = _Status(self._kubelet.runtime, self.pod["uid"])
        running = {one.metadata.name for one in status.running()
                   if status.sandbox and one.pod_sandbox_id == status.sandbox.id}
        return ("Running" if {one["name"] for one in self.pod["containers"]} <= running
                else "Pending")

    def _report(self, phase, waiting=None):
        """The status in the API server, if it is another than before."""
        now = (phase, dict(waiting or {}))
        if now != self._phase:
            self._phase = now
            self._kubelet.report("pod", uid=self.pod["uid"], phase=phase, waiting=waiting or {})


def _ignoring_not_found(call, **request):
    try:
        call(**request)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.NOT_FOUND:
            raise
