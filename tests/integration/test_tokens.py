"""--list-tokens: the containers that would be made without their devices if the shim were gone."""

import json
import subprocess

import pytest

import kubelet_checkpoint
from kubelet_checkpoint import Entry
from protos import deviceplugin
from shim import BINARY

GPU, NIC = "vendor.com/gpu", "other.com/nic"


@pytest.fixture
def kubelet_dir(directory):
    path = directory / "kubelet"
    path.mkdir()
    return path


@pytest.fixture
def run(make_shim, kubelet_dir):
    shim = make_shim(start=False, bridge={"kubelet_plugin_dir": str(kubelet_dir)},
                     dra={"kubelet_registry_dir": str(kubelet_dir / "plugins_registry")})
    shim.config_path.write_text(shim.config_text())
    return lambda: subprocess.run([BINARY, "--config", shim.config_path, "--list-tokens"],
                                  check=False, capture_output=True, text=True, timeout=60)


def entry(uid, container, resource, ids, annotations):
    response = deviceplugin.ContainerAllocateResponse(annotations=annotations)
    return Entry(uid, container, resource, {-1: ids}, response.SerializeToString())


def test_lists_those_with_a_token(run, kubelet_dir):
    """Not those whose options the kubelet has from a plugin of its own, nor one without any."""
    kubelet_checkpoint.write(kubelet_dir, kubelet_checkpoint.encode([
        entry("uid-1", "main", GPU, ["g1", "g0"], {"devices.cri-device-shim/vendor.com_gpu": "{}"}),
        entry("uid-1", "main", NIC, ["n0"], {"cdi.k8s.io/nic": "n0"}),
        entry("uid-2", "ma\tin", GPU, ["g2"], {"devices.cri-device-shim/vendor.com_gpu": "{}"}),
        Entry("uid-3", "main", GPU, {-1: ["g3"]}, b""),
    ], {GPU: ["g0"]}))
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"uid-1\tmain\t{GPU}\tg0,g1",
                                                f"uid-2\tma?in\t{GPU}\tg2"]


def test_no_kubelet_has_been_here(run):
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_file_that_cannot_be_read_is_no_answer(run, kubelet_dir):
    (kubelet_dir / kubelet_checkpoint.NAME).write_text("{}")
    done = run()
    assert done.returncode != 0 and not done.stdout
    assert str(kubelet_dir / kubelet_checkpoint.NAME) in done.stderr


def claim(uid, name, pods, drivers):
    """As the kubelet keeps it; `drivers`: {name: names of CDI devices, or None before it has answered}"""
    return {"ClaimUID": uid, "ClaimName": name, "Namespace": "shop", "PodUIDs": {pod: {} for pod in pods},
            "DriverState": {driver: {"Devices": ids and [{"PoolName": "p", "CDIDeviceIDs": [one]} for one in ids]}
                            for driver, ids in drivers.items()}}


def write_claims(kubelet_dir, data):
    (kubelet_dir / "dra_manager_state").write_text(json.dumps({"Data": data, "Checksum": 1}))


OURS = "plugins.cri-device-shim"


def test_lists_claims_of_the_shims_own_driver(run, kubelet_dir):
    """Other drivers are there without the shim, too."""
    write_claims(kubelet_dir, json.dumps({"ClaimInfoStateList": [
        claim("c-1", "gpus", ["uid-1", "uid-2"], {OURS: [f"{OURS}/device={device}:c-1" for device in (
            "vendor.com:gpu:g0", "vendor.com:gpu:g1")], "other.com": ["other.com/nic=n0"]}),
        claim("c-2", "begun", ["uid-3"], {OURS: None}),
        claim("c-3", "nic", ["uid-4"], {"other.com": ["other.com/nic=n1"]})]}))
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        *(f"{uid}\tclaim shop/gpus\t{GPU}\t{device}" for uid in ("uid-1", "uid-2") for device in ("g0", "g1")),
        f"uid-3\tclaim shop/begun\t{OURS}"]


@pytest.mark.parametrize("data,known", [(f'{{"{OURS}": 1}}', False), (f"{OURS}", False), ("gpu.example.com", True)])
def test_claims_in_another_form(run, kubelet_dir, data, known):
    """No answer, unless the driver is nowhere in them."""
    write_claims(kubelet_dir, data)
    done = run()
    assert (done.returncode == 0, done.stdout) == (known, "")
    assert known or "the kubelet's claims" in done.stderr and "a form that is not known" in done.stderr
