"""The scripted kubelet's own process; kubelet.py starts it, and talks to it.

It takes its settings as JSON in its argument and JSON lines on descriptor 0: {"first": [pods]}
once, {"add": pod}, {"delete": uid}. It writes what it does as JSON lines on descriptor 1, each
with the time on CLOCK_MONOTONIC. When its input ends it is gone.
"""

import json
import os
import pathlib
import queue
import sys
import threading
import time

import grpc

from criclient import Client
from kubelet_devices import AllocateError, DeviceManager
from kubelet_pods import Worker
from protos import IMAGE, RUNTIME, cri

_UID = "io.kubernetes.pod.uid"
_TERMINAL = ("Succeeded", "Failed")
_SLEEP_S, _SLEEP_S_MAX = 0.1, 5
_RUNTIME_STALE_S = 30
_TICK_S = 1
_RELIST_S = 1
_RELIST_STALE_S = 180
_HOUSEKEEPING_S = 2
_STATUS_S = 5
_CAPACITY_S = 10


class _Runtime:
    """A CRI client whose every call has the kubelet's deadline."""

    def __init__(self, settings):
        self._client = Client(settings["cri_socket"], settings["runtime_timeout_s"])

    def __getattr__(self, method):
        return getattr(self._client, method)

    def first(self, path):
        """The first call, with an empty request: it waits for the connection."""
        self._client.unary(path, wait_for_ready=True)


class Kubelet:
    def __init__(self, settings):
        self.settings = settings
        self._output = threading.Lock()
        self.runtime = _Runtime(settings)
        self._images = _Runtime(settings)
        self._lock = threading.RLock()
        self._workers = {}   # by pod uid
        self._known = set()  # uids of all pods of the API server
        self._sources_ready = False
        self._queue = queue.Queue()  # what the sync loop has to do
        self._due = {}       # {worker: when it is to sync again}
        self._runtime_sync = None
        self._relisted = None
        self._states = {}    # {pod uid: what its containers were at the last relist}
        self._next_check = None
        self._recheck = threading.Condition()
        settings["wait_before_socket"] = self._wait_before_socket
        self.devices = DeviceManager(settings, self.report, self.active_pods,
                                     lambda: self._sources_ready)

    def report(self, kind, **what):
        line = json.dumps({"kind": kind, "t": time.monotonic(), **what}) + "\n"
        with self._output:
            os.write(1, line.encode())

    def _every(self, seconds, what):
        """what() at once and then again and again, in a thread of its own."""
        def run():
            while True:
                what()
                time.sleep(seconds / self.settings["speed"])

        threading.Thread(target=run, daemon=True).start()

    # ---- start ----

    def run(self):
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.runtime.first(RUNTIME + "Version")
            self._images.first(IMAGE + "ImageFsInfo")
            self.runtime.Version(version="0.1.0")
        except grpc.RpcError as error:
            self.report("exit", message=error.details())
            os._exit(1)
        self.report("running")
        threading.Thread(target=self._first_garbage, daemon=True).start()
        self._every(_STATUS_S, self._update_runtime)
        self._every(_RELIST_S, self._relist)
        self._sync_loop()

    def _first_garbage(self):
        try:
            self.runtime.ListContainers(filter=cri.ContainerFilter())
            self._images.ListImages()
        except grpc.RpcError:
            pass  # tried again by the collection, which nothing here waits for

    def _update_runtime(self):
        try:
            status = self.runtime.Status().status
        except grpc.RpcError as error:
            self.report("log", text=f"Container runtime sanity check failed: {error.details()}")
            return
        if not any(one.type == "RuntimeReady" and one.status for one in status.conditions):
            return
        if self._runtime_sync is None:
            self._start_container_manager()
        self._runtime_sync = time.monotonic()

    def _start_container_manager(self):
        running = set()
        for _ in range(2):
            try:
                self.runtime.ListPodSandbox()
                containers = self.runtime.ListContainers().containers
            except grpc.RpcError:
                continue  # as if there were none
            running = {(one.labels[_UID], one.metadata.name) for one in containers
                       if one.state == cri.CONTAINER_RUNNING}
        self.devices.start(running)
        self._every(_CAPACITY_S, self.devices.capacity_tick)

    def _wait_before_socket(self):
        """Until `before_socket_s` before the sync loop looks again."""
        with self._recheck:
            self._next_check = None
            while self._next_check is None:
                self._recheck.wait()
            until = self._next_check - self.settings["before_socket_s"] - time.monotonic()
        if until > 0:
            time.sleep(until)

    # ---- the sync loop ----

    def _runtime_errors(self):
        stale = _RUNTIME_STALE_S / self.settings["speed"]
        if self._runtime_sync is None or time.monotonic() - self._runtime_sync > stale:
            return "container runtime status check may not have completed yet"
        if self._relisted is None:
            return "PLEG is not healthy: pleg has yet to be successful"
        if time.monotonic() - self._relisted > _RELIST_STALE_S / self.settings["speed"]:
            return "PLEG is not healthy: pleg was last seen active too long ago"
        return None

    def _sync_loop(self):
        sleep = _SLEEP_S
        closed = True
        housekeeping = 0.0
        while True:
            if (error := self._runtime_errors()) is not None:
                if not closed:
                    self.report("log", text=f"Skipping pod synchronization: {error}")
                closed = True
                self._sleep(sleep / self.settings["loop_speed"])
                sleep = min(2 * sleep, _SLEEP_S_MAX)
                continue
            if closed:
                self.report("open")
            closed, sleep = False, _SLEEP_S
            self._iterate()
            if self._sources_ready and time.monotonic() > housekeeping:
                self._end_orphans()
                housekeeping = time.monotonic() + _HOUSEKEEPING_S / self.settings["speed"]

    def _sleep(self, seconds):
        with self._recheck:
            self._next_check = time.monotonic() + seconds
            self._recheck.notify()
        time.sleep(seconds)

    def _iterate(self):
        """What is due, and one thing of the queue, if there is one soon."""
        with self._lock:
            now = time.monotonic()
            for worker in [one for one, when in self._due.items() if when <= now]:
                del self._due[worker]
                worker.wake()
        try:
            handle, argument = self._queue.get(timeout=_TICK_S / self.settings["speed"])
        except queue.Empty:
            return
        handle(argument)

    def later(self, worker, seconds):
        """Its next sync, in place of the one that was planned."""
        with self._lock:
            self._due[worker] = time.monotonic() + seconds

    # ---- pods ----

    def _read(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "first" in message:
                self._queue.put((self._first_pods, message["first"]))
            elif "add" in message:
                self._queue.put((self._add, message["add"]))
            else:
                self._queue.put((self._delete, message["delete"]))
        os._exit(0)

    def active_pods(self):
        """Of the API server's pods, as upstream's GetActivePods(): what is only the runtime's any more
        is ended, and counts for nothing."""
        with self._lock:
            return {uid for uid, worker in self._workers.items()
                    if uid in self._known and not worker.terminated}

    def _first_pods(self, pods):
        for pod in sorted(pods, key=lambda one: one["created"]):
            self._add(pod)
        self._sources_ready = True
        self.report("sources_ready")

    def _add(self, pod):
        with self._lock:
            self._known.add(pod["uid"])
        ending = pod.get("deleting") or pod["phase"] in _TERMINAL
        if not ending:
            began = time.monotonic()
            try:
                self.devices.allocate_pod(pod)
            except AllocateError as error:
                self._reject(pod, str(error), began)
                return
            self.report("admitted", uid=pod["uid"])
        with self._lock:
            self._workers[pod["uid"]] = Worker(self, pod, terminating=bool(ending))

    def _reject(self, pod, error, began):
        self.report("pod", uid=pod["uid"], phase="Failed", tried=began,
                    reason="UnexpectedAdmissionError",
                    message=f"Pod was rejected: Allocate failed due to {error}, "
                            "which is unexpected")

    def _delete(self, uid):
        with self._lock:
            worker = self._workers.get(uid)
        if worker is not None:
            worker.terminate(remove=True)
        else:
            self.report("gone", uid=uid)

    def gone(self, worker):
        uid = worker.pod["uid"]
        with self._lock:
            self._workers.pop(uid, None)
            self._known.discard(uid)
        self.report("gone", uid=uid)

    def _end_orphans(self):
        """Pods of the runtime that nobody knows, e.g. since the API server lost them meanwhile."""
        with self._lock:
            orphans = set(self._states) - self._known - set(self._workers) - {""}
            for uid in orphans:
                pod = {"uid": uid, "name": "orphan", "deleting": True}
                self._workers[uid] = Worker(self, pod, terminating=True)

    # ---- PLEG ----

    def _relist(self):
        try:
            sandboxes = self.runtime.ListPodSandbox().items
            containers = self.runtime.ListContainers(filter=cri.ContainerFilter()).containers
        except grpc.RpcError as error:
            self.report("log", text=f"Unable to retrieve pods: {error.details()}")
            return
        states = {}
        for one in (*sandboxes, *containers):
            if one.labels[_UID].startswith(self.settings["uid_prefix"]):
                states.setdefault(one.labels[_UID], set()).add((one.id, one.state))
        if self._relisted is None:
            self.report("relisted")
        self._relisted = time.monotonic()
        changed = {uid for uid in set(states) | set(self._states)
                   if states.get(uid) != self._states.get(uid)}
        self._states = states
        for uid in changed:
            self._queue.put((self._sync_pod, uid))

    def _sync_pod(self, uid):
        with self._lock:
            worker = self._workers.get(uid)
        if worker is not None:
            worker.wake()


def main():
    pathlib.Path("/proc/self/comm").write_text("kubelet")
    sys.setswitchinterval(0.0005)
    Kubelet(json.loads(sys.argv[1])).run()
