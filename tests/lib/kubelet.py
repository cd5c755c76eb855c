"""A scripted kubelet, in a process of its own whose name is "kubelet", and its API server.

    kubelet = Kubelet(directory / "device-plugins", directory / "s.sock")
    kubelet.start()
    pod = kubelet.add_pod("web", {"vendor.com/gpu": 1})
    kubelet.wait_phase(pod, "Running")
    kubelet.kill(); kubelet.start()     # its checkpoint, and the API server's pods, are still there
    kubelet.delete_pod(pod)

It does what a kubelet of 1.30 does towards device plugins and the runtime, in the same order:
kubelet_process.py (start, sync loop, relist), kubelet_devices.py (its device manager, with the
faults it has) and kubelet_pods.py (sandboxes and containers). `speed` divides the times it waits,
and `loop_speed` those of its sync loop; a pod it rejects is Failed for good.
"""

import itertools
import json
import pathlib
import threading
import time
import uuid

import nursery
from waiting import GENEROUS_S

_PROGRAM = pathlib.Path(__file__).with_name("kubelet_process.py")
_TERMINAL = ("Succeeded", "Failed")


class Pod:
    """One pod of the API server: what it wants, which stays, and what the kubelet reports."""

    def __init__(self, spec):
        self.spec = spec
        self.uid = spec["uid"]
        self.name = spec["name"]
        self.phase = "Pending"
        # On CLOCK_MONOTONIC: when it came to that phase; if it was rejected, when that began.
        self.phase_at = self.tried_at = None
        self.reason = ""
        self.message = ""
        self.waiting = {}     # {container: [reason, message]}
        self.deleting = False
        self.gone = False

    def wanted(self, container):
        """The devices a container wants: {resource: count}."""
        return next(one["limits"] for one in self.spec["init"] + self.spec["containers"]
                    if one["name"] == container)

    def as_sent(self):
        return {**self.spec, "phase": self.phase, "deleting": self.deleting}

    def __repr__(self):
        return (f"<{self.name} {self.uid[:8]} {self.phase} {self.reason} {self.message} "
                f"{self.waiting or ''}>")


def container(name, limits=None, **more):
    """A container of a pod; `more`: envs, mounts {container path: host path}, sidecar, command, and
    `hook`: the command of its PostStart."""
    return {"name": name, "limits": limits or {}, **more}


class Kubelet:
    """Its settings:

    listen_gap_s       how long kubelet.sock is there before it listens
    before_socket_s    if not 0: kubelet.sock comes that long before the sync loop looks again
    dial_s             how long a Register call tries to reach the plugin
    stop_grace_s       how long a resource outlives its plugin here; by default 5 min / speed
    crash_s_max        the longest back-off of a container that crashes, before `speed`
    runtime_timeout_s  the deadline of each CRI call
    uid_prefix         of its pods; what else the runtime has is another kubelet's
    restarts           a kubelet that ends by itself (its runtime was away) is started again
    """

    def __init__(self, plugin_dir, cri_socket, speed=20, loop_speed=None, seed=0, restarts=True,
                 log_path=None, **settings):
        self.plugin_dir = pathlib.Path(plugin_dir)
        self.settings = {"plugin_dir": str(plugin_dir), "cri_socket": str(cri_socket),
                         "speed": speed, "loop_speed": loop_speed or speed, "seed": seed,
                         "listen_gap_s": 0.0005, "before_socket_s": 0, "dial_s": 10,
                         "crash_s_max": 300, "uid_prefix": "",
                         "stop_grace_s": 300 / speed, "runtime_timeout_s": GENEROUS_S, **settings}
        self.log_path = log_path or self.plugin_dir.with_name(self.plugin_dir.name + ".log")
        self.pods = {}      # by uid, as the API server has them
        self.all_pods = {}  # also those that are gone
        self.events = []    # all lines of the process, of all its lives
        self._restarts = restarts
        self._changed = threading.Condition()
        self._created = itertools.count()
        self._process = None
        self._reader = None
        self._stopping = True

    # ---- the process ----

    def start(self):
        """Does not wait for anything."""
        assert self._process is None
        self._stopping = False
        self._spawn()

    def _spawn(self):
        self.plugin_dir.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log_path, "ab") as log:
            self._process = nursery.start(_PROGRAM, json.dumps(self.settings), log=log)
        with self._changed:
            self._send({"first": [pod.as_sent() for pod in self.pods.values()]})
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        self._end(nursery.Process.kill)

    def terminate(self):
        """SIGTERM: it goes as fast, and leaves as much behind."""
        self._end(nursery.Process.terminate)

    def stop(self):
        if self._process is not None:
            self.kill()
        print("".join(json.dumps(one) + "\n" for one in self.events[-200:]))
        print(self.log_path.read_text(errors="replace")[-5000:] if self.log_path.exists() else "")

    def _end(self, how):
        with self._changed:
            self._stopping = True
            process = self._process
        how(process)
        process.wait()
        self._reader.join()
        process.stdin.close()
        self._process = None

    def _send(self, message):
        """Under the lock."""
        if self._process is not None and not self._stopping:
            try:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                pass  # the next one is told all

    def _read(self, process):
        for line in process.stdout:
            with self._changed:
                self._take(json.loads(line))
                self._changed.notify_all()
        process.wait()
        process.stdout.close()
        with self._changed:
            if self._stopping or not self._restarts:
                return
            process.stdin.close()
            self._spawn_again()

    def _spawn_again(self):
        """As its service manager does."""
        self._process = None
        self._spawn()

    # ---- the API server ----

    def _take(self, event):
        self.events.append(event)
        pod = self.pods.get(event.get("uid"))
        if pod is None:
            return
        if event["kind"] == "pod":
            if pod.phase != event["phase"]:
                pod.phase_at = event["t"]
            pod.phase = event["phase"]
            pod.tried_at = event.get("tried")
            pod.reason = event.get("reason", "")
            pod.message = event.get("message", "")
            pod.waiting = event.get("waiting", {})
        elif event["kind"] == "gone" and pod.deleting:
            pod.gone = True
            del self.pods[pod.uid]

    def add_pod(self, name, limits=None, containers=None, init=(), restart="Always",
                namespace="default", annotations=None, uid=None):
        """`limits`: {resource: count} of its one container "main"; or give the `containers`."""
        pod = Pod({"uid": uid or f"{self.settings['uid_prefix']}{uuid.uuid4()}", "name": name, "namespace": namespace,
                   "annotations": annotations or {}, "restart": restart, "init": list(init),
                   "containers": containers or [container("main", limits)],
                   "created": next(self._created)})
        with self._changed:
            self.pods[pod.uid] = self.all_pods[pod.uid] = pod
            self._send({"add": pod.as_sent()})
        return pod

    def delete_pod(self, pod):
        """It is gone() when all of it is removed from the runtime."""
        with self._changed:
            pod.deleting = True
            self._send({"delete": pod.uid})

    def forget(self):
        """What was said, and pods that are gone."""
        with self._changed:
            self.events.clear()
            self.all_pods = dict(self.pods)

    # ---- waiting ----

    def wait(self, condition, what, seconds=GENEROUS_S):
        """The first truthy value of condition(), which is asked after each event."""
        with self._changed:
            end = time.monotonic() + seconds
            while not (value := condition()):
                assert self._changed.wait(max(0, end - time.monotonic())), (
                    f"not within {seconds} s: {what}; {list(self.pods.values())}")
            return value

    def wait_phase(self, *pods, phase="Running"):
        self.wait(lambda: all(pod.phase == phase for pod in pods),
                  f"{', '.join(pod.name for pod in pods)} {phase}")

    def wait_gone(self, *pods):
        self.wait(lambda: all(pod.gone for pod in pods),
                  f"{', '.join(pod.name for pod in pods)} gone")

    def events_of(self, kind, since=0.0, **what):
        """The events of a kind after `since` on CLOCK_MONOTONIC."""
        with self._changed:
            return [one for one in self.events if one["kind"] == kind and one["t"] >= since
                    and all(one[key] == value for key, value in what.items())]

    def wait_event(self, kind, since=0.0, seconds=GENEROUS_S, **what):
        return self.wait(lambda: self.events_of(kind, since, **what), f"the event {kind} {what}",
                         seconds)[0]

    def failed(self):
        return [pod for pod in self.pods.values() if pod.phase == "Failed"]

    def live(self):
        """The pods that are neither over nor being deleted."""
        return [pod for pod in self.pods.values()
                if pod.phase not in _TERMINAL and not pod.deleting]
