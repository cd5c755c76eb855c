"""What a scripted API server does with a ResourceSlice that is made or changed: its rules
(pkg/apis/resource/validation, NodeRestriction), the defaults that it fills in, and RFC 7396's merge.
"""

import copy
import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
DEVICES_MAX, DEVICES_WITH_TAINTS_MAX = 128, 64
ATTRIBUTES_MAX, TEXT_BYTES_MAX, TAINTS_MAX = 32, 64, 16


class Invalid(Exception):
    """422: what is wrong with it."""


class Foreign(Exception):
    """403: it is not of the node that asks."""


def _check(right, what, value):
    if not right:
        raise Invalid(f"{what}: Invalid value: {value!r}")


def _is_subdomain(text, most=253):
    return isinstance(text, str) and len(text) <= most and _SUBDOMAIN.fullmatch(text)


def _check_qualified(name, what):
    domain, _, plain = name.rpartition("/")
    _check(_LABEL_VALUE.fullmatch(plain) and plain and (not domain or _is_subdomain(domain)), what, name)


def _check_attribute(name, value):
    domain, _, plain = name.rpartition("/")
    _check(_IDENTIFIER.fullmatch(plain) and (not domain or _is_subdomain(domain, 63)), "attributes", name)
    _check(len(value) == 1, f"attributes[{name}]", value)
    (kind, one), = value.items()
    right = {"int": lambda: type(one) is int, "bool": lambda: type(one) is bool,
             "string": lambda: isinstance(one, str) and len(one.encode()) <= TEXT_BYTES_MAX,
             "version": lambda: isinstance(one, str) and len(one) <= TEXT_BYTES_MAX and _VERSION.fullmatch(one)}
    _check(kind in right and right[kind](), f"attributes[{name}]", value)


def _check_taint(taint):
    _check_qualified(taint["key"], "taints.key")
    _check(_LABEL_VALUE.fullmatch(taint.get("value", "")), "taints.value", taint)
    _check(taint["effect"] in ("NoSchedule", "NoExecute"), "taints.effect", taint)


def _check_device(device):
    _check(_LABEL.fullmatch(device["name"]), "devices.name", device["name"])
    attributes, taints = device.get("attributes", {}), device.get("taints", [])
    _check(len(attributes) + len(device.get("capacity", {})) <= ATTRIBUTES_MAX, "attributes", len(attributes))
    for name, value in attributes.items():
        _check_attribute(name, value)
    _check(len(taints) <= TAINTS_MAX, "taints", len(taints))
    for taint in taints:
        _check_taint(taint)


def check(one, before=None):
    spec = one["spec"]
    pool, devices = spec["pool"], spec.get("devices", [])
    _check(_is_subdomain(one["metadata"]["name"]), "metadata.name", one["metadata"]["name"])
    _check(_is_subdomain(spec["driver"], 63), "driver", spec["driver"])
    _check(len(pool["name"]) <= 253 and all(map(_is_subdomain, pool["name"].split("/"))), "pool.name", pool["name"])
    _check(type(pool["generation"]) is int and pool["generation"] >= 0, "pool.generation", pool)
    _check(type(pool["resourceSliceCount"]) is int and pool["resourceSliceCount"] > 0, "pool.resourceSliceCount", pool)
    selectors = [key for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(key)]
    _check(len(selectors) == 1, "exactly one of nodeName, nodeSelector, allNodes, perDeviceNodeSelection", selectors)
    most = DEVICES_WITH_TAINTS_MAX if any(device.get("taints") for device in devices) else DEVICES_MAX
    _check(len(devices) <= most, "devices: too many", len(devices))
    names = [device["name"] for device in devices]
    _check(len(set(names)) == len(names), "devices: Duplicate value", names)
    for device in devices:
        _check_device(device)
    for owner in one["metadata"].get("ownerReferences", []):
        _check(all(owner.get(key) for key in ("apiVersion", "kind", "name", "uid")), "ownerReferences", owner)
    if before:
        for what in ("driver", "nodeName"):
            _check(spec.get(what) == before["spec"].get(what), f"{what}: field is immutable", spec.get(what))
        _check(pool["name"] == before["spec"]["pool"]["name"], "pool.name: field is immutable", pool["name"])


def complete(one, now):
    """Taints that say no time get this one; whether it is another than before is the writer's to see to."""
    one = copy.deepcopy(one)
    for device in one["spec"].get("devices", []):
        for taint in device.get("taints", []):
            taint.setdefault("timeAdded", now)
    return one


def check_node(one, node):
    """plugin/pkg/admission/noderestriction; None: another user, who may do all."""
    if node is not None and one["spec"].get("nodeName") != node:
        raise Foreign(f"can only change a ResourceSlice with spec.nodeName={node}")


def merged(one, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    one = copy.deepcopy(one) if isinstance(one, dict) else {}
    for key, value in patch.items():
        if value is None:
            one.pop(key, None)
        else:
            one[key] = merged(one.get(key), value)
    return one
