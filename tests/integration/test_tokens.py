"""--list-tokens: the containers that would be made without their devices if the shim were gone."""

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
    shim = make_shim(start=False, bridge={"kubelet_plugin_dir": str(kubelet_dir)})
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
