"""Pods for a real cluster, as the API server takes them.

    pod("web", container("main", {"vendor.com/gpu": 1}), restart="Never")

Each container holds its devices as tests/cluster/holder.c says. All are on the host's network, and
end a second after they are told to.
"""

import images
from kube_node import HELD, NODE
from node_plugin import env_of
from unit_driver import claim_env


def container(name="main", limits=None, seconds=None, status=0, deaf=False, hook=False,
              sidecar=False, claims=None, shares=False):
    """One that ends after `seconds` with `status`, by itself never; `deaf`: nor on SIGTERM. `hook`:
    it has a PostStart hook, which tells that it has run, and does not end before. `claims`: {the
    pod's name of a claim, which is that of its one request, too: how many devices}. `shares`: its
    devices are in other such containers, too."""
    claims = claims or {}
    limits = {key: str(count) for key, count in (limits or {}).items()}
    command = ["/held/holder", "-x", str(status), *(["-i"] if deaf else []),
               *(["-w"] if hook else []), *(["-c"] if shares else []),
               *(["-s", str(seconds)] if seconds is not None else []),
               *(f"{env_of(key)}={count}" for key, count in limits.items()),
               *(f"{claim_env(name)}={count}" for name, count in claims.items())]
    made = {"name": name, "image": images.APP, "imagePullPolicy": "Never", "command": command,
            "resources": {"limits": limits, "claims": [{"name": name} for name in claims]},
            "volumeMounts": [{"name": "held", "mountPath": "/held"}],
            "env": [{"name": "CONTAINER", "value": name}, _field("POD_NAME", "metadata.name"),
                    _field("POD_UID", "metadata.uid")]}
    if hook:
        made["lifecycle"] = {"postStart": {"exec": {"command": ["/held/holder", "-k"]}}}
    if sidecar:
        made["restartPolicy"] = "Always"
    return made


def _field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def pod(name, *containers, restart="Always", init=(), grace_s=1, annotations=None, labels=None,
        finalizers=(), **more):
    """`more`: of its spec. One with finalizers stays at the API server until they are taken off."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {},
                         "finalizers": list(finalizers)},
            "spec": {"containers": list(containers), "initContainers": list(init),
                     "restartPolicy": restart, "terminationGracePeriodSeconds": grace_s,
                     "hostNetwork": True, "nodeSelector": {"kubernetes.io/hostname": NODE},
                     "automountServiceAccountToken": False, "enableServiceLinks": False,
                     "tolerations": [{"operator": "Exists"}],
                     "volumes": [{"name": "held", "hostPath": {"path": HELD}}], **more}}


def budget(name, labels, running):
    """A PodDisruptionBudget: of the pods with these labels so many are to run."""
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"minAvailable": running, "selector": {"matchLabels": labels}}}


class Seen:
    """A pod as the API server has it."""

    def __init__(self, what):
        self.what = what
        self.name = what["metadata"]["name"]
        self.uid = what["metadata"]["uid"]
        status = what.get("status", {})
        self.phase = status.get("phase")
        self.reason = status.get("reason", "")
        self.message = status.get("message", "")
        self.deleting = "deletionTimestamp" in what["metadata"]
        scheduled = [one["status"] for one in status.get("conditions", [])
                     if one["type"] == "PodScheduled"]
        self.scheduled, self.unscheduled = scheduled == ["True"], scheduled == ["False"]
        self.containers = {one["name"]: one for one in [
            *status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]}

    @property
    def running(self):
        """Whether all of its containers are, as the kubelet says."""
        names = [one["name"] for one in self.what["spec"]["containers"]]
        return self.phase == "Running" and all(
            "running" in self.containers.get(name, {}).get("state", {}) for name in names)

    @property
    def over(self):
        return self.phase in ("Succeeded", "Failed")

    def condition(self, name):
        """(reason, message) of one that is so; None: it is not."""
        found = [(one.get("reason", ""), one.get("message", ""))
                 for one in self.what["status"].get("conditions", [])
                 if one["type"] == name and one["status"] == "True"]
        return found[0] if found else None

    def waiting(self, name="main"):
        """(reason, message) of a container that does not run."""
        state = self.containers.get(name, {}).get("state", {})
        one = state.get("waiting", {})
        return one.get("reason", ""), one.get("message", "")

    def why_failed(self):
        """The kubelet's reason for the pod, or for its first container that has one."""
        reasons = [one["state"]["terminated"].get("reason", "") for one in self.containers.values()
                   if "terminated" in one["state"]
                   and one["state"]["terminated"].get("exitCode") != 0]
        return self.reason or next(iter(reasons), "")

    def __repr__(self):
        states = {name: one.get("state") for name, one in self.containers.items()}
        return f"<{self.name} {self.uid[:8]} {self.phase} {self.reason} {self.message} {states}>"
