"""What a scripted API server does with one pod: its status is patched, it is evicted, deleted.

    server.budgets.append(Budget({"app": "web"}, allowed=0))

A pod that is deleted stays, with its deletionTimestamp, until the test removes it, as a kubelet would.
"""

import copy
import dataclasses


@dataclasses.dataclass
class Budget:
    """A PodDisruptionBudget: of pods that have these labels so many may be evicted."""

    labels: dict
    allowed: int

    def covers(self, pod):
        return self.labels.items() <= pod["metadata"].get("labels", {}).items()


class Unlike(Exception):
    """A precondition: the uid is another."""


class NotNow(Exception):
    """The budgets do not allow it; `several`: there is more than one, which the API does not know what to do with."""

    def __init__(self, several):
        super().__init__("several budgets" if several else "it would violate the pod's disruption budget")
        self.several = several


# In the place of another one of that type.
_EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting"}


def _check_uid(pod, uid):
    if uid is not None and uid != pod["metadata"]["uid"]:
        raise Unlike(f"the UID in the precondition ({uid}) is not that of the record ({pod['metadata']['uid']})")


def patched(pod, patch):
    """A strategic merge of metadata.uid, which is a precondition, and status.conditions, which are merged by type."""
    _check_uid(pod, patch.get("metadata", {}).get("uid"))
    pod = copy.deepcopy(pod)
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    for one in patch["status"]["conditions"]:
        conditions[:] = [other for other in conditions if other["type"] != one["type"]] + [one]
    return pod


def deleted(pod, options):
    _check_uid(pod, options.get("preconditions", {}).get("uid"))
    pod = copy.deepcopy(pod)
    metadata = pod["metadata"]
    grace = options.get("gracePeriodSeconds", pod["spec"].get("terminationGracePeriodSeconds", 30))
    metadata.setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
    metadata["deletionGracePeriodSeconds"] = min(grace, metadata.get("deletionGracePeriodSeconds", grace))
    return pod


def evicted(pod, options, budgets):
    """pkg/registry/core/pod/storage/eviction.go"""
    _check_uid(pod, options.get("preconditions", {}).get("uid"))
    covering = [one for one in budgets if one.covers(pod)]
    if "deletionTimestamp" not in pod["metadata"] and covering:
        if len(covering) > 1:
            raise NotNow(several=True)
        if covering[0].allowed <= 0:
            raise NotNow(several=False)
        covering[0].allowed -= 1
    return deleted(patched(pod, {"status": {"conditions": [_EVICTED]}}), options)
