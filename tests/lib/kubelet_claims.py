"""The scripted kubelet's claims: what its DRA manager does for pods, from their coming to their end.

    kubelet = KubeletClaims(KubeletDrivers(registry), directory / "dra_manager_state", cri_socket); kubelet.start()
    pod = kubelet.add_pod([PodClaim("c-1", ["gpu.example.com"])])
    kubelet.asking                  # [(method, driver)] of its calls under way
    kubelet.delete_pod(pod)         # pod.gone when the kubelet is through with it; or force=True
    kubelet.stop(); kubelet.start() # its state file stays, and so do pods and what the runtime has of them

As pkg/kubelet/cm/dra/manager.go: before a sandbox is made each claim of the pod is prepared, in one call
of each driver; a claim has an entry with the pods that use it, and the last one's end has it unprepared.
The entry is in the state file before a driver is asked, but not that a claim is prepared: a kubelet
that has restarted asks again for the next sandbox, and has each CDI name twice then. Containers are made by
what the entries say. What fails is tried again, a prepare after 60 to 90 s, all else after 10 to 15 s; pods that
were deleted by force are seen to every 60 s, and the runtime is asked for news every 10 s: all compressed by 200.

Three faults of 1.36 are left out, since what they do cannot be mended in front of it, or only in part: it
unprepares for a pod that has no part in the entry; it lets a pod join a claim while the last other one's
unprepare is under way, or has failed half-way; and it sees to a forced pod while that one's prepare is
under way.
"""

import collections
import dataclasses
import itertools
import json
import os
import pathlib
import random
import threading

import grpc

from kubelet_containers import Containers
from kubelet_drivers import claim as claim_message
from waiting import GENEROUS_S

_PREPARE_AGAIN_S = 0.3, 0.45
_AGAIN_S = 0.05, 0.075
_GC_S = 0.3
_RELIST_S = 0.05


@dataclasses.dataclass(frozen=True)
class PodClaim:
    uid: str
    drivers: tuple  # by name


class Pod:
    def __init__(self, uid, claims):
        self.uid = uid
        self.claims = list(claims)
        self.deleting = self.forced = self.gone = False
        self.news = 0  # what has happened to it

    def __str__(self):
        return (f"pod {self.uid} of {self.claims}: deleting {self.deleting}, forced {self.forced}, "
                f"gone {self.gone}")


class _Failed(Exception):
    """A step of a pod's, which is tried again after so long."""

    def __init__(self, why, again=_AGAIN_S):
        super().__init__(why)
        self.again = again


class _Life:
    """One process of the kubelet's, and what it knows only by itself."""

    def __init__(self, cri_socket):
        self.over = False
        self.containers = Containers(cri_socket)
        self.prepared = set()     # claims
        self.unpreparing = set()  # likewise
        self.threads = []


class KubeletClaims:
    def __init__(self, drivers, state_path, cri_socket, seed=""):
        self.drivers = drivers
        self.pods = {}  # by uid; of the API server's
        self._came = itertools.count()
        self.failures = collections.Counter()  # of steps, by what was said
        self.late = []  # calls that nobody answered in time
        self.asking = []  # (method, driver) of those under way
        self._path = pathlib.Path(state_path)
        self._cri_socket = cri_socket
        self._random = random.Random(f"kubelet {seed}")
        self._entries = {}  # {claim uid: {"pods": [uid], "devices": {driver: [CDI name]}}}
        self._changed = threading.Condition(threading.RLock())
        self._life = None

    # ---- the process ----

    def start(self):
        with self._changed:
            self._entries = self._read()
            self._life = _Life(self._cri_socket)
            self.drivers.start()
            self._spawn(self._collect)
            self._spawn(self._relist)
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
        life.containers.close()
        for thread in life.threads:
            thread.join(GENEROUS_S)
            assert not thread.is_alive(), "a pod's worker does not end"

    kill = terminate = stop

    def _spawn(self, what, *arguments):
        self._life.threads = [one for one in self._life.threads if one.is_alive()]
        thread = threading.Thread(target=what, args=(self._life, *arguments), daemon=True)
        self._life.threads.append(thread)
        thread.start()

    # ---- what happens to pods; also while there is no process ----

    def add_pod(self, claims):
        with self._changed:
            pod = Pod(f"pod-{next(self._came)}", claims)
            self.pods[pod.uid] = pod
            if self._life:
                self._spawn(self._work, pod)
            return pod

    def delete_pod(self, pod, force=False):
        """`force`: the API server forgets it at once."""
        with self._changed:
            pod.deleting = True
            pod.forced = pod.forced or force  # who has forgotten it does not learn of it again
            self._tell(pod)

    def _tell(self, pod):
        pod.news += 1
        self._changed.notify_all()

    def live(self):
        with self._changed:
            return [pod for pod in self.pods.values() if not pod.deleting]

    def forget(self, pods):
        """These, which are gone."""
        with self._changed:
            for pod in pods:
                del self.pods[pod.uid]

    def entries(self):
        with self._changed:
            return sorted(self._entries)

    # ---- a pod's worker ----

    def _work(self, life, pod):
        while not life.over and not pod.gone:
            news, pause = pod.news, None
            try:
                (self._terminate if pod.deleting else self._sync)(life, pod)
            except _Failed as why:
                self.failures[str(why)] += 1
                pause = self._random.uniform(*why.again)
            except grpc.RpcError as error:
                self.failures[f"{error.code().name}: {error.details()}"] += 1
                pause = self._random.uniform(*_AGAIN_S)
            except ValueError:  # its connection is closed
                assert life.over
            with self._changed:
                self._changed.wait_for(lambda: life.over or pod.gone or pod.news != news, pause)

    def _sync(self, life, pod):
        status = life.containers.status(pod.uid)
        if status.sandbox is None:
            life.containers.stop(status)
            self._prepare(life, pod)
            with self._changed:
                self._check(life)
                if pod.deleting:
                    return
            life.containers.make_sandbox(status)
            status = life.containers.status(pod.uid)
        if status.sandbox is not None:
            life.containers.keep_running(status, self._names(pod))

    def _names(self, pod):
        """Of CDI, for its containers."""
        with self._changed:
            if any(one.uid not in self._entries for one in pod.claims):
                raise _Failed("internal error: unable to get claim info")
            return [name for one in pod.claims
                    for names in self._entries[one.uid]["devices"].values() for name in names]

    def _terminate(self, life, pod):
        status = life.containers.status(pod.uid)
        life.containers.stop(status)
        if not pod.forced:
            self._unprepare(life, pod.uid, pod.claims)
        life.containers.remove(status)
        with self._changed:
            self._check(life)
            pod.gone = True

    def _relist(self, life):
        """What has become of containers and sandboxes by itself."""
        before = {}
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: life.over, _RELIST_S):
                    return
            try:
                now = {uid: [(one.id, one.state) for one in (*status.sandboxes, *status.containers)]
                       for uid, status in life.containers.all().items()}
            except (grpc.RpcError, ValueError):
                continue
            with self._changed:
                for pod in self.pods.values():
                    if before.get(pod.uid) != now.get(pod.uid):
                        self._tell(pod)
            before = now

    # ---- claims ----

    def _prepare(self, life, pod):
        for name in {name for one in pod.claims for name in one.drivers}:
            if self.drivers.instance(name) is None:
                raise _Failed("not registered", _PREPARE_AGAIN_S)
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
        for name, answers in self._ask(life, "NodePrepareResources", wanted, _PREPARE_AGAIN_S):
            with self._changed:
                self._check(life)
                for uid, answer in answers.items():
                    self._entries[uid]["devices"][name] += [
                        cdi for device in answer.devices for cdi in device.cdi_device_ids]
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
            for _ in self._ask(life, "NodeUnprepareResources", last, _AGAIN_S):
                pass
            with self._changed:
                self._check(life)
                for one in last:
                    del self._entries[one.uid]
                self._write()
        finally:
            with self._changed:
                life.unpreparing.difference_update(one.uid for one in last)

    def _ask(self, life, method, claims, again):
        """(driver, its answers by claim) for each driver of theirs, one after the other."""
        by_driver = collections.defaultdict(list)
        for one in claims:
            for name in one.drivers:
                by_driver[name].append(claim_message(one.uid))
        for name, messages in by_driver.items():
            self.asking.append((method, name))
            try:
                answers = dict(self.drivers.begin(name, method, messages).result().claims)
            except LookupError as error:
                raise _Failed("not registered", again) from error
            except (ValueError, grpc.FutureCancelledError) as error:  # it lets go of the driver
                raise _Failed("let go", again) from error
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    self.late.append(f"{method} of {[one.uid for one in messages]} of {name}")
                raise _Failed(f"{error.code().name}: {error.details()}", again) from error
            finally:
                self.asking.remove((method, name))
            self._check(life)
            if set(answers) != {one.uid for one in messages}:
                raise _Failed(f"{method}: answers for {sorted(answers)}", again)
            for answer in answers.values():
                if answer.error:
                    raise _Failed(answer.error, again)
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

    # ---- the state file (pkg/kubelet/cm/dra/state); nobody looks at its sum ----

    def _read(self):
        if not self._path.exists():
            return {}
        data = json.loads(json.loads(self._path.read_text())["Data"])
        return {one["ClaimUID"]: {"pods": list(one["PodUIDs"]), "devices": {
            name: [cdi for device in state["Devices"] or () for cdi in device["CDIDeviceIDs"]]
            for name, state in one["DriverState"].items()}} for one in data["ClaimInfoStateList"]}

    def _write(self):
        claims = [{"ClaimUID": uid, "PodUIDs": {pod: {} for pod in entry["pods"]}, "DriverState": {
            name: {"Devices": [{"CDIDeviceIDs": [cdi]} for cdi in names] or None}
            for name, names in entry["devices"].items()}} for uid, entry in self._entries.items()]
        beside = self._path.with_suffix(".tmp")
        beside.write_text(json.dumps({"Data": json.dumps({"ClaimInfoStateList": claims}), "Checksum": 0}))
        os.replace(beside, self._path)
