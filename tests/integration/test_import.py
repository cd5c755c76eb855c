"""--import-kubelet-checkpoint: what a real kubelet knew becomes the shim's own state."""

import shutil
import subprocess

import grpc
import pytest

from asking import by_token, envs, refused
from shim import BINARY, ROOT
from waiting import wait_until

CAPTURE = ROOT / "tests/integration/captures/kubelet_internal_checkpoint"
WIDGET = "vendor.example/widget"
POD_UID = "7ecb7434ef888df8ce147fc0b347612e"


@pytest.fixture
def shim(runtime, make_shim):
    """Not started: an import wants the state for itself."""
    one = make_shim(start=False, plugins={"hold": "300ms", "grace": "1m"})
    one.config_path.write_text(one.config_text())
    return one


@pytest.fixture
def kubelet_file(directory):
    """The kubelet wrote it just now."""
    return shutil.copyfile(CAPTURE, directory / "kubelet_internal_checkpoint")


def run_import(shim, path):
    return subprocess.run([BINARY, "--config", shim.config_path, "--import-kubelet-checkpoint",
                           path], check=False, capture_output=True, text=True, timeout=60)


def created(client, pod, token):
    """The container's id; None: refused for now, try again."""
    try:
        return client.create(pod, "main", annotations=token)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        return None


def test_imported_options_are_used(runtime, shim, kubelet_file, make_plugin, make_client):
    """A container whose allocation was imported gets the options the kubelet had kept, without an
    Allocate; before its plugin is back it is refused for now; nobody else gets its devices. They
    were the init container's, too, which the shim knows to be gone by the runtime's second list."""
    done = run_import(shim, kubelet_file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"imported 1 resource and 2 allocations into {shim.state_dir}/checkpoint.db")
    with runtime.client() as directly:
        pod = directly.run_pod("web", uid=POD_UID)
    shim.start()
    client = make_client(shim)
    token = by_token(WIDGET, "w2", "w0")
    with refused(grpc.StatusCode.UNAVAILABLE, WIDGET, "has not registered here", "grace"):
        client.create(pod, "main", annotations=token)
    plugin = make_plugin(shim, WIDGET, ["w0", "w1", "w2", "w3"])
    wait_until(lambda: created(client, pod, token), "the kubelet's retries end")
    config = runtime.create_requests()[-1].config
    assert envs(config)["LAB_DEVICES"] == "w2,w0"
    assert sorted(one.container_path for one in config.devices) == ["/dev/lab-w0", "/dev/lab-w2"]
    assert [one.container_path for one in config.mounts] == ["/lab-hostname"]
    assert config.annotations["lab.example/ids"] == "w2_w0"
    assert not plugin.allocated()
    with refused(grpc.StatusCode.UNAVAILABLE, "w0", "main"):
        client.create(client.run_pod("other"), "app", annotations=by_token(WIDGET, "w0"))


def test_import_again_keeps_what_is_there(shim, kubelet_file):
    """What is there already is kept, and counted."""
    assert run_import(shim, kubelet_file).returncode == 0
    again = run_import(shim, kubelet_file)
    assert again.returncode == 0
    assert "imported 0 resources and 0 allocations" in again.stdout
    assert "3 there already, kept as they were" in again.stdout


def test_import_while_the_daemon_runs(shim, kubelet_file):
    """The daemon's lock is respected, and the refusal says so."""
    shim.start()
    done = run_import(shim, kubelet_file)
    assert done.returncode != 0
    assert "another process has it open" in done.stderr and "must not run" in done.stderr


@pytest.mark.parametrize("spoil,words", [
    (lambda text: text.replace("w3", "w4"), "checksum"),
    (lambda text: text[:-5], "no JSON"),
    (lambda text: "", "no JSON"),
], ids=["changed", "truncated", "empty"])
def test_damaged_file(shim, kubelet_file, spoil, words):
    """A file whose checksum is wrong, or that is cut, is an error with its name; the state stays
    untouched."""
    kubelet_file.write_text(spoil(kubelet_file.read_text()))
    done = run_import(shim, kubelet_file)
    assert done.returncode != 0 and not done.stdout
    assert str(kubelet_file) in done.stderr and words in done.stderr
    assert not shim.state_dir.exists()
