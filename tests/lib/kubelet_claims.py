"""The scripted kubelet's claims: what its DRA manager does for pods, from their coming to their end.

    kubelet = KubeletClaims(KubeletDrivers(registry), directory / "dra_manager_state"); kubelet.start()
    pod = kubelet.add_pod([PodClaim("c-1", ["gpu.example.com"])])
    pod.devices                     # {claim uid: CDI names} of its containers; None: it has no sandbox
    kubelet.delete_pod(pod)         # pod.gone when the kubelet is through with it; or force=True
    kubelet.lose_sandbox(pod)
    kubelet.stop(); kubelet.start() # its state file stays, and so do pods and their sandboxes

As pkg/kubelet/cm/dra/manager.go: before a sandbox is made each claim of the pod is prepared, in one call
of each driver; a claim has an entry with the pods that use it, and the last one's end has it unprepared.
The entry is in the state file before a driver is asked, but not that a claim is prepared: a kubelet
that has restarted asks again for the next sandbox. What fails is tried again, after 60 to 90 s here,
10 to 15 s there, and pods that were deleted by force are seen to every 60 s: all compressed by 100.

Three faults of 1.36 are left out, since what they do cannot be mended in front of it, or only in part: it
unprepares for a pod that has no part in the entry; it lets a pod join a claim while the last other one's
unprepare is under way, or has failed half-way; and it sees to a forced pod while that one's prepare is
under way.
"""

import collections
import dataclasses
import json
import os
import pathlib
import random
import threading

import grpc

from kubelet_drivers import claim as claim_message
from waiting import GENEROUS_S

_PREPARE_AGAIN_S = 0.6, 0.9
_UNPREPARE_AGAIN_S = 0.1, 0.15
_GC_S = 0.6


@dataclasses.dataclass(frozen=True)
class PodClaim:
    uid: str
    drivers: tuple  # by name


class Pod:
    def __init__(self, uid, claims):
        self.uid = uid
        self.claims = list(claims)
        self.devices = None
        self.deleting = self.forced = self.gone = False

    def __str__(self):
        return (f"pod {self.uid} of {self.claims}: devices {self.devices}, deleting {self.deleting}, "
                f"forced {self.forced}, gone {self.gone}")


class _Failed(Exception):
    """A step of a pod's, which is tried again."""


class _Life:
    """One process of the kubelet's, and what it knows only by itself."""

    def __init__(self):
        self.over = False
        self.prepared = set()     # claims
        self.unpreparing = set()  # likewise
        self.threads = []


class KubeletClaims:
    def __init__(self, drivers, state_path, seed=""):
        self.drivers = drivers
        self.pods = {}  # by uid; of the API server's, and their sandboxes
        self.failures = collections.Counter()  # of steps, by what was said
        self.late = []  # calls that nobody answered in time
        self._path = pathlib.Path(state_path)
        self._random = random.Random(f"kubelet {seed}")
        self._entries = {}  # {claim uid: {"pods": [uid], "devices": {driver: [CDI name]}}}
        self._changed = threading.Condition(threading.RLock())
        self._life = None

    # ---- the process ----

    def start(self):
        with self._changed:
            self._entries = json.loads(self._path.read_text()) if self._path.exists() else {}
            self._life = _Life()
            self.drivers.start()
            self._spawn(self._collect)
            for pod in self.pods.values():
                if not pod.gone:
                    self._spawn(self._work, pod)

    def stop(self):
        with self._changed:
            life, self._life = self._life, None
            if life is None:
                return
            life.over = True
            self._changed.notify_all()
        self.drivers.stop()
        for thread in life.threads:
            thread.join(GENEROUS_S)
            assert not thread.is_alive(), "a pod's worker does not end"

    def _spawn(self, what, *arguments):
        thread = threading.Thread(target=what, args=(self._life, *arguments), daemon=True)
        self._life.threads.append(thread)
        thread.start()

    # ---- what happens to pods; also while there is no process ----

    def add_pod(self, claims):
        with self._changed:
            pod = Pod(f"pod-{len(self.pods)}", claims)
            self.pods[pod.uid] = pod
            if self._life:
                self._spawn(self._work, pod)
            return pod

    def delete_pod(self, pod, force=False):
        """`force`: the API server forgets it at once."""
        with self._changed:
            pod.deleting = True
            pod.forced = force
            self._changed.notify_all()

    def lose_sandbox(self, pod):
        with self._changed:
            pod.devices = None
            self._changed.notify_all()

    def live(self):
        with self._changed:
            return [pod for pod in self.pods.values() if not pod.deleting]

    def holders(self, uid):
        """The pods whose containers have the claim's devices."""
        with self._changed:
            return [pod.uid for pod in self.pods.values() if pod.devices and uid in pod.devices]

    def entries(self):
        with self._changed:
            return sorted(self._entries)

    # ---- a pod's worker ----

    def _work(self, life, pod):
        while not life.over and not pod.gone:
            pause, pauses = None, _PREPARE_AGAIN_S
            try:
                if pod.deleting:
                    pauses = _UNPREPARE_AGAIN_S
                    self._terminate(life, pod)
                elif pod.devices is None:
                    self._make_sandbox(life, pod)
            except _Failed as why:
                self.failures[str(why)] += 1
                pause = self._random.uniform(*pauses)
            deleting = pod.deleting and pauses is _UNPREPARE_AGAIN_S
            with self._changed:
                self._changed.wait_for(lambda: life.over or pod.gone or pod.deleting != deleting
                                       or pause is None and pod.devices is None, pause)

    def _make_sandbox(self, life, pod):
        self._prepare(life, pod)
        with self._changed:
            if life.over or pod.deleting:
                return
            pod.devices = {one.uid: sorted(
                name for names in self._entries[one.uid]["devices"].values() for name in names)
                           for one in pod.claims}

    def _terminate(self, life, pod):
        with self._changed:
            pod.devices = None
            if pod.forced:
                pod.gone = True
                return
        self._unprepare(life, pod.uid, pod.claims)
        with self._changed:
            pod.gone = True

    # ---- claims ----

    def _prepare(self, life, pod):
        for name in {name for one in pod.claims for name in one.drivers}:
            if self.drivers.instance(name) is None:
                raise _Failed("not registered")
        with self._changed:
            self._check(life)
            if any(one.uid in life.unpreparing for one in pod.claims):
                raise _Failed("being unprepared")
            for one in pod.claims:
                entry = self._entries.setdefault(
                    one.uid, {"pods": [], "devices": {name: [] for name in one.drivers}})
                if pod.uid not in entry["pods"]:
                    entry["pods"].append(pod.uid)
                self._write()
            wanted = [one for one in pod.claims if one.uid not in life.prepared]
        for name, answers in self._ask(life, "NodePrepareResources", wanted):
            with self._changed:
                self._check(life)
                for uid, answer in answers.items():
                    devices = self._entries[uid]["devices"]
                    devices[name] = sorted({*devices[name], *(
                        cdi for device in answer.devices for cdi in device.cdi_device_ids)})
        with self._changed:
            self._check(life)
            life.prepared.update(one.uid for one in pod.claims)
            self._write()

    def _unprepare(self, life, pod_uid, claims):
        last = []
        with self._changed:
            self._check(life)
            for one in claims:
                entry = self._entries.get(one.uid)
                if entry is None or pod_uid not in entry["pods"]:
                    continue
                if len(entry["pods"]) > 1:
                    entry["pods"].remove(pod_uid)
                    self._write()
                    continue
                last.append(one)
                life.unpreparing.add(one.uid)
                life.prepared.discard(one.uid)
        try:
            for _ in self._ask(life, "NodeUnprepareResources", last):
                pass
            with self._changed:
                self._check(life)
                for one in last:
                    del self._entries[one.uid]
                self._write()
        finally:
            with self._changed:
                life.unpreparing.difference_update(one.uid for one in last)

    def _ask(self, life, method, claims):
        """(driver, its answers by claim) for each driver of theirs, one after the other."""
        by_driver = collections.defaultdict(list)
        for one in claims:
            for name in one.drivers:
                by_driver[name].append(claim_message(one.uid))
        for name, messages in by_driver.items():
            try:
                answers = dict(self.drivers.begin(name, method, messages).result().claims)
            except LookupError as error:
                raise _Failed("not registered") from error
            except (ValueError, grpc.FutureCancelledError) as error:  # it lets go of the driver
                raise _Failed("let go") from error
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    self.late.append(f"{method} of {[one.uid for one in messages]} of {name}")
                raise _Failed(f"{error.code().name}: {error.details()}") from error
            self._check(life)
            if set(answers) != {one.uid for one in messages}:
                raise _Failed(f"{method}: answers for {sorted(answers)}")
            for answer in answers.values():
                if answer.error:
                    raise _Failed(answer.error)
            yield name, answers

    @staticmethod
    def _check(life):
        if life.over:
            raise _Failed("the kubelet ends")

    def _collect(self, life):
        """The entries of pods that nobody knows any more."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: life.over, _GC_S):
                    return
                lost = [pod for pod in self.pods.values() if pod.forced and pod.gone]
            for pod in lost:
                try:
                    self._unprepare(life, pod.uid, pod.claims)
                except _Failed as why:
                    self.failures[str(why)] += 1

    def _write(self):
        beside = self._path.with_suffix(".tmp")
        beside.write_text(json.dumps(self._entries))
        os.replace(beside, self._path)
