"""Where the programs of Kubernetes are, which are no part of the project: in $SHIM_KUBE_BIN, a list
of directories like PATH, or on PATH. $SHIM_CONTAINERD_BIN has another containerd than Debian's."""

import ctypes
import os
import re
import shutil
import subprocess

from machine import SYSTEMD, missing_controllers

NAMES = ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_INOTIFY = 30  # instances of a cluster and its node, and a few more


def program(name):
    """Its path, or None."""
    return shutil.which(name, path=os.pathsep.join(
        one for one in (os.environ.get("SHIM_KUBE_BIN"), os.environ["PATH"]) if one))


def missing():
    """What a cluster needs and is not here, in words; "" if nothing."""
    programs = [name for name in NAMES if program(name) is None]
    words = []
    if programs:
        words.append(f"not on PATH or in $SHIM_KUBE_BIN: {', '.join(programs)}")
    if not os.path.exists(SYSTEMD):
        words.append("no systemd")
    if missing_controllers():
        words.append(f"no cgroup controllers {', '.join(missing_controllers())}")
    return "; ".join(words)


def containerd_path():
    """The PATH on which a node's containerd, its shim and ctr are found."""
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    own = os.environ.get("SHIM_CONTAINERD_BIN")
    return f"{own}:{usual}" if own else usual


def missing_cdi():
    """Why containers get nothing by CDI names, in words; "" if they do."""
    containerd = shutil.which("containerd", path=containerd_path())
    text = subprocess.run([containerd, "--version"], check=True, capture_output=True,
                          text=True).stdout
    version = re.search(r"\d+\.\d+\.\d+", text)[0]
    if tuple(map(int, version.split("."))) < (1, 7, 0):
        return f"containerd {version} has no CDI: $SHIM_CONTAINERD_BIN may have a newer one"
    return ""


def check_room():
    """AssertionError, if Linux has not the inotify instances left that a cluster takes: it gives a user 128. A
    kubelet that finds none ends again and again, and a runtime serves no pods then."""
    libc = ctypes.CDLL(None)
    files = [libc.inotify_init1(os.O_CLOEXEC) for _ in range(_INOTIFY)]
    for one in files:
        if one >= 0:
            os.close(one)
    assert min(files) >= 0, f"no {_INOTIFY} inotify instances are left: see fs.inotify.max_user_instances"
