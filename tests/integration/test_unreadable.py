"""A checkpoint that cannot be read, directories that cannot be written: the relay starts, what names
devices is refused with that reason, and all comes back by itself."""

import subprocess

import grpc
import pytest

from asking import by_annotation, by_token, envs, refused
from ctl import ctl
from shim import Shim, accepts, locked
from waiting import wait_until

GPU = "vendor.com/gpu"


@pytest.fixture
def disk(directory):
    """A disk of its own, mounted; disk("ro") and disk("rw")."""
    path = directory / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
    yield lambda how: subprocess.run(["mount", "-o", f"remount,{how}", path], check=True)
    subprocess.run(["umount", "--lazy", path], check=True)  # a plugin of the test may be in it


def given(runtime):
    return envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"]


def start_relay(shim):
    """Only that can be waited for."""
    shim.spawn()
    wait_until(lambda: accepts(shim.socket), "the relay listens")


def test_a_checkpoint_in_use(runtime, shim, client, make_client, make_plugin):
    """What it says who holds what is waited for, not rebuilt, and nothing is given away meanwhile."""
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.create(pod, "app")
    held = given(runtime)
    shim.kill()
    created = len(runtime.create_requests())
    with locked(shim):
        start_relay(shim)
        late = make_client(shim)
        other = late.run_pod("other", annotations=by_annotation("app", f"{GPU}=1"))
        for one, asks in ((pod, {}), (other, {}), (other, by_token(GPU, held))):
            with refused(grpc.StatusCode.UNAVAILABLE, "app", GPU, "cannot be read",
                         "another process has it open"):
                late.create(one, "app", annotations=asks)
        late.create(late.run_pod("plain"), "app")  # and all else passes
        assert len(runtime.create_requests()) == created + 1
        assert not accepts(shim.plugin_dir / "kubelet.sock")
        shim.wait_log("another process has it open")
    shim.wait_log("the checkpoint can be read now")
    assert shim.log().count("containers with devices are refused") == 1
    wait_until(lambda: accepts(shim.plugin_dir / "kubelet.sock"), "plugins can register")
    plugin.register()
    late.create(pod, "app")
    assert given(runtime) == held
    assert plugin.allocated() == [[held]]
    with refused(grpc.StatusCode.UNAVAILABLE, held):
        late.create(other, "app", annotations=by_token(GPU, held))


def test_what_a_pod_has_is_not_known_meanwhile(shim):
    """Nor is it said that it has nothing."""
    shim.kill()
    with locked(shim):
        start_relay(shim)
        shim.wait_control()
        for words in ((), ("--yes",), ("--dry-run",)):
            done = ctl(shim, "release", "web", *words)
            assert (done.returncode, done.stdout) == (1, "")
            assert "cannot be read" in done.stderr


def test_read_only_from_the_start(runtime, disk, directory, runtime_socket, closing, make_client,
                                  make_plugin):
    """Nothing was there before, so that nothing is unknown."""
    shim = closing(Shim(directory, runtime_socket,
                        top={"state_dir": str(directory / "disk/state")},
                        plugins={"plugin_dir": str(directory / "disk/plugins")}))
    shim.plugin_dir = directory / "disk/plugins"
    disk("ro")
    start_relay(shim)
    client = make_client(shim)
    client.create(client.run_pod("plain"), "app")
    shim.wait_log("kubelet.sock: Read-only file system; trying again until it works")
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, GPU):  # no plugin can have registered
        client.create(pod, "app", annotations=by_token(GPU, "g0"))
    disk("rw")
    wait_until(lambda: accepts(shim.plugin_dir / "kubelet.sock"), "plugins can register")
    make_plugin(shim, GPU, ["g0"])
    client.create(pod, "app", annotations=by_token(GPU, "g0"))
    assert given(runtime) == "g0"
    shim.stop()


def test_a_stop_meanwhile(runtime, shim):
    shim.kill()
    with locked(shim):
        start_relay(shim)
        shim.terminate()
