"""Daemon and bridge killed and upgraded again and again, at random moments, as in
integration/test_kill_storm.py, in front of a real containerd: each container looks itself at what
it was given, and holds its devices in the kernel for as long as it lives (tests/cluster/holder.c).

A third of the kills that are asked for is here.
"""

import collections
import os
import shutil
import stat

import pytest

from kubelet import container
from plugin import allocate_answer
from protos import deviceplugin
from real_node import RealNode
from shim import BINARY
from storm import KILLS, SEED, Storm
from telling import tell

GPU = "vendor.com/gpu"
GPUS = [f"gpu{number}" for number in range(12)]
HOLDER = BINARY.parents[1] / "tests/cluster/cluster_holder"
MAJOR = 240  # of no driver here
LOOKS = ["/held/holder", "PLUGIN_DEVICES=1"]
ENDS = ["/held/holder", "-s", "0", "PLUGIN_DEVICES=1"]
HOOK = ["/held/holder", "-k"]
PODS = 3  # at a time


@pytest.fixture
def held(directory):
    """Where the containers say what they have."""
    path = directory / "held"
    path.mkdir()
    shutil.copy(HOLDER, path / "holder")
    return path


@pytest.fixture
def node(directory, containerd, direct, held, make_plugin):
    one = RealNode(directory, containerd, store=True)
    one.start()
    (directory / "dev").mkdir()
    for number, name in enumerate(GPUS):
        os.mknod(directory / "dev" / name, 0o600 | stat.S_IFCHR, os.makedev(MAJOR, number))

    def allocate(request, _context):
        return allocate_answer(request, devices=[deviceplugin.DeviceSpec(
            container_path=f"/dev/{name}", host_path=str(directory / "dev" / name),
            permissions="rw") for name in request.container_requests[0].devices_ids])

    plugin = make_plugin(one, GPU, GPUS, start=False)
    plugin.on_allocate = allocate
    plugin.start()
    one.wait_shown(GPU)
    one.kubelet.wait_event("sources_ready")
    yield one
    one.stop()


def make_pod(held):
    def make(name, rng):
        def one(role, **settings):
            envs = {"POD_NAME": name, "POD_UID": name, "CONTAINER": role}
            return container(role, {GPU: 1}, envs=envs, mounts={"/held": str(held)}, **settings)

        return rng.choice((
            {"containers": [one("main", command=LOOKS, hook=HOOK)]},
            {"containers": [one("main", command=LOOKS, hook=HOOK),
                            one("side", command=LOOKS, hook=HOOK)]},
            {"containers": [one("main", command=ENDS)], "restart": "Never"},
        ))

    return make


def check_of(node, held):
    def check(events):
        """What the containers have said since the last time, beside what the kubelet says."""
        def lines(name):
            path = held / name
            found = path.read_text().splitlines() if path.exists() else []
            path.unlink(missing_ok=True)
            return found

        def said(name):
            return collections.Counter((one.split()[0], one.split()[2]) for one in lines(name))

        pods = {uid: pod.name for uid, pod in node.kubelet.all_pods.items()}
        told = collections.Counter((pods[one["uid"]], one["container"])
                                   for one in events if one["kind"] == "started")
        hooked = collections.Counter(
            (pods[one["uid"]], one["container"]) for one in events if one["kind"] == "started"
            for wanted in node.kubelet.all_pods[one["uid"]].spec["containers"]
            if wanted["name"] == one["container"] and wanted.get("hook"))
        wrong = lines("wrong")
        for what, seen, expected in (("started", said("started"), told),
                                     ("hooked", said("hooked"), hooked)):
            if seen != expected:
                wrong.append(f"{what}: too often {seen - expected}, missing {expected - seen}")
        return wrong

    return check


def test_killed_and_upgraded(node, held, request):
    print(f"SHIM_STORM_SEED={SEED} SHIM_STORM_KILLS={KILLS}")
    storm = Storm(node, make_pod(held), SEED, check_of(node, held), most=PODS)
    storm.run(storm.strikes(KILLS // 3, KILLS // 15))
    assert not storm.violations, "\n".join([str(storm), *storm.violations])
    tell(request, f"seed {SEED}: {storm}")
