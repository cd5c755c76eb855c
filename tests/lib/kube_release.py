"""Which release of Kubernetes the programs here are of, and what differs with it.

    RELEASE              # (1, 36)
    DRA                  # in which version objects of resource.k8s.io are written; None: it has none
    GATES                # what a cluster of it switches on, that is on by default in a later one
    @since(36, "DeviceTaintRules")      # a test that is skipped with an older one
"""

import re
import subprocess

import pytest

from kube_programs import NAMES, program

GROUP = "resource.k8s.io"


def _release():
    """Where any of the programs is missing there will be no cluster, of whatever release."""
    if any(program(name) is None for name in NAMES):
        return 1, 36
    kubelet = program("kubelet")
    text = subprocess.run([kubelet, "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(map(int, re.search(r"v(\d+)\.(\d+)", text).groups()))


RELEASE = _release()
# From its first beta on: nobody here knows the alpha versions before.
DRA = next((version for minor, version in ((34, "v1"), (33, "v1beta2"), (32, "v1beta1"))
            if RELEASE >= (1, minor)), None)
# {gate: (the first release in which it may be on, the last one in which it is off)}. With
# ResourceHealthStatus a kubelet of 1.31 stores no devices before its pods are synchronized.
_OFF = {"DynamicResourceAllocation": (32, 33), "ResourceHealthStatus": (32, 35),
        "DRAExtendedResource": (34, 35)}
GATES = {name: True for name, (first, last) in _OFF.items() if (1, first) <= RELEASE <= (1, last)}


def since(minor, what):
    return pytest.mark.skipif(RELEASE < (1, minor), reason=lacks(what))


def lacks(what):
    """The reason to skip what needs that."""
    return f"Kubernetes {RELEASE[0]}.{RELEASE[1]} has no {what}"
