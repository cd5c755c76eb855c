"""A DRA driver as a unit of a machine, with its devices in the cluster's ResourceSlices.

    unit_driver.py FILE

FILE is JSON, as kube_node.DraDriver.settings() has it. A device is the node of its name in
`device_dir`. What a claim has of them, a container of the claim finds in /dev, and for each request
of it, with commas between, in the variable that claim_env() names: both come by CDI.

What is prepared it keeps in `state_dir`, a file for each claim, over boots; its CDI files are in
`cdi_dir`, which may be empty after one. It refuses a claim of which another one still has a device,
as drivers are told to, since the cluster may have forgotten a pod that still runs. Each call is a
line in the file `calls`, and so is a registration.
"""

import json
import os
import pathlib
import signal
import sys
import threading
import time

from dra_driver import Driver
from kube_api import Api, ApiError
from protos import dra

_GROUP = "resource.k8s.io"
_LOOK_S = 2  # whether its slices are still there


def claim_env(request):
    return f"CLAIM_{request.upper()}"


def _replace(path, what):
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(what))
    os.replace(beside, path)


class _UnitDriver:
    def __init__(self, settings):
        self._settings = settings
        self._name = settings["driver"]
        self._state = pathlib.Path(settings["state_dir"])
        self._cdi = pathlib.Path(settings["cdi_dir"])
        self._api = Api.of_kubeconfig(settings["kubeconfig"])
        self._version = f"{_GROUP}/{settings['api']}"
        self.driver = Driver(settings["registry_dir"], settings["plugins_dir"], self._name,
                             services=settings["services"], instance=settings["instance"],
                             pool=settings["node"])
        self.driver.on_prepare = self._prepare
        self.driver.on_unprepare = self._unprepare
        self._state.mkdir(parents=True, exist_ok=True)

    def _note(self, what, whose):
        with open(self._state / "calls", "a", encoding="utf-8") as out:
            out.write(f"{what} {whose}\n")

    def _state_of(self, uid):
        return self._state / f"{uid}.json"

    def _cdi_of(self, uid):
        return self._cdi / f"{self._name}-{uid}.json"

    def note_registration(self):
        self.driver.wait_registered()
        self._note("registered", self._settings["instance"] or "-")

    # ---- claims ----

    def _prepare(self, claim):
        self._note("prepare", claim.uid)
        time.sleep(self._settings["delay_s"])
        try:
            there = self._api.get(f"/apis/{self._version}/namespaces/{claim.namespace}"
                                  f"/resourceclaims/{claim.name}")
        except (ApiError, OSError) as error:
            return f"claim {claim.name}: {error}"
        if there["metadata"]["uid"] != claim.uid:
            return f"claim {claim.name} is another one"
        results = [one for one in there["status"]["allocation"]["devices"]["results"]
                   if one["driver"] == self._name]
        names = [one["device"] for one in results]
        for path in self._state.glob("*.json"):
            if path.stem != claim.uid and set(names).intersection(json.loads(path.read_text())):
                return f"{names} of {claim.name}: prepared for claim {path.stem}"
        _replace(self._state_of(claim.uid), names)
        self._cdi.mkdir(parents=True, exist_ok=True)
        _replace(self._cdi_of(claim.uid), self._spec(claim.uid, results))
        return [dra.Device(request_names=[one["request"]], pool_name=one["pool"],
                           device_name=one["device"],
                           cdi_device_ids=[f"{self._kind}={claim.uid}-{one['request']}"])
                for one in results]

    @property
    def _kind(self):
        return f"{self._name}/claim"

    def _spec(self, uid, results):
        by_request = {}
        for one in results:
            by_request.setdefault(one["request"], []).append(one["device"])
        return {"cdiVersion": "0.5.0", "kind": self._kind, "devices": [
            {"name": f"{uid}-{request}", "containerEdits": {
                "env": [f"{claim_env(request)}={','.join(names)}"],
                "deviceNodes": [{"path": f"/dev/{name}", "permissions": "rw",
                                 "hostPath": f"{self._settings['device_dir']}/{name}"}
                                for name in names]}}
            for request, names in by_request.items()]}

    def _unprepare(self, claim):
        self._note("unprepare", claim.uid)
        for path in (self._cdi_of(claim.uid), self._state_of(claim.uid)):
            path.unlink(missing_ok=True)
        return ""

    # ---- slices ----

    def publish_while(self, goes_on):
        """Its one slice, again whenever somebody has removed it."""
        node, devices = self._settings["node"], self._settings["devices"]
        name = f"{node}-{self._name}"
        said = {"basic": {}} if self._settings["api"] == "v1beta1" else {}
        what = {"apiVersion": self._version, "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {"driver": self._name, "nodeName": node,
                         "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                         "devices": [{"name": one, **said} for one in devices]}}
        while goes_on():
            try:
                self._api.create(f"/apis/{self._version}/resourceslices", what)
            except (ApiError, OSError):
                pass  # it is there; or tried again
            time.sleep(_LOOK_S)


def _main():
    unit = _UnitDriver(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    unit.driver.start()
    threading.Thread(target=unit.publish_while, args=(lambda: not over.is_set(),),
                     daemon=True).start()
    threading.Thread(target=unit.note_registration, daemon=True).start()
    over.wait()
    unit.driver.stop()
    os._exit(0)  # Python's gRPC may hang in its end


if __name__ == "__main__":
    _main()
