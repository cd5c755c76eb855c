"""In which versions of its API group a scripted API server has its objects, and how they look there.

Objects are kept as in the newest version.
"""

import copy

GROUP = "resource.k8s.io"
V1, V1BETA2, V1BETA1, V1ALPHA3 = (f"{GROUP}/{version}" for version in ("v1", "v1beta2", "v1beta1", "v1alpha3"))
CORE = "v1"
_DRA = frozenset({"resourceslices", "resourceclaims"})

# {its name in `put`: (its kind, the version that it is kept in)}
RESOURCES = {"nodes": ("Node", CORE), "pods": ("Pod", CORE), "events": ("Event", CORE),
             "resourceslices": ("ResourceSlice", V1), "resourceclaims": ("ResourceClaim", V1),
             "devicetaintrules": ("DeviceTaintRule", V1BETA2)}
# {Kubernetes's release: {version of a group: what it has}}. 1.36: with the taints' rules switched on.
SERVED = {
    "1.31": {CORE: {"nodes", "pods", "events"}},
    "1.32": {CORE: {"nodes", "pods", "events"}, V1BETA1: _DRA},
    "1.33": {CORE: {"nodes", "pods", "events"}, V1BETA2: _DRA, V1BETA1: _DRA},
    "1.34": {CORE: {"nodes", "pods", "events"}, V1: _DRA},
    "1.35": {CORE: {"nodes", "pods", "events"}, V1: _DRA, V1BETA2: _DRA, V1ALPHA3: {"devicetaintrules"}},
    "1.36": {CORE: {"nodes", "pods", "events"}, V1: _DRA, V1BETA2: _DRA | {"devicetaintrules"},
             V1ALPHA3: {"devicetaintrules"}}}
# Those that know a watch which begins with all there is, by their defaults.
STREAMING = {"1.32", "1.34", "1.35", "1.36"}


def served(release):
    return {version: set(names) for version, names in SERVED[release].items()}


def group(served_versions):
    """The answer to GET /apis/resource.k8s.io; None: there is no such group."""
    versions = [{"groupVersion": one, "version": one.split("/")[1]} for one in served_versions if "/" in one]
    if not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": versions,
            "preferredVersion": versions[0]}


def groups(served_versions):
    """The answer to GET /apis."""
    versions = [{"groupVersion": "apps/v1", "version": "v1"}]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
        {"name": "apps", "versions": versions, "preferredVersion": versions[0]},
        *filter(None, [group(served_versions)])]}


def as_version(one, version):
    """As a client sees it that has asked in that version. In v1beta1 most of a slice's devices is "basic"."""
    if version == one["apiVersion"]:
        return one
    one = copy.deepcopy(one)
    one["apiVersion"] = version
    if version == V1BETA1 and one["kind"] == "ResourceSlice" and "spec" in one:  # a bookmark has none
        one["spec"]["devices"] = [
            {"name": device["name"], "basic": {key: value for key, value in device.items() if key != "name"}}
            for device in one["spec"].get("devices", [])]
    return one


def from_version(one, version):
    """As it is kept, of what a client has sent in that version."""
    one = copy.deepcopy(one)
    if version == V1BETA1 and one["kind"] == "ResourceSlice":
        one["spec"]["devices"] = [{"name": device["name"], **device.get("basic", {})}
                                  for device in one["spec"].get("devices", [])]
    one["apiVersion"] = RESOURCES["resourceslices"][1] if one["kind"] == "ResourceSlice" else one["apiVersion"]
    return one
