"""config/quickstart.sh, as a new user runs it."""

import os
import re
import signal
import subprocess

import pytest

import containerd
from shim import BINARY, ROOT
from waiting import wait_until

QUICKSTART = ROOT / "config/quickstart.sh"

pytestmark = pytest.mark.skipif(BINARY != ROOT / "build/shim/cri-device-shim",
                                reason="the quickstart builds and shows build/")


@pytest.fixture(autouse=True)
def as_a_user(monkeypatch):
    """Who knows nothing of the tests' own cgroups."""
    monkeypatch.delenv("SHIM_CGROUP_PARENT")


def start(*options):
    return subprocess.Popen([QUICKSTART, *options], stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            start_new_session=True)


def directory_of(output):
    return re.search(r"/tmp/cds\.\w+", output)[0]


def assert_nothing_left(directory):
    assert not os.path.exists(directory)
    assert not containerd.processes_naming(directory)
    assert not containerd.mounts_below(directory)


def test_quickstart():
    """The quickstart shows a built-in device, a plugin's, the refusal while the plugin is dead and
    the container once it is back; ends OK; leaves nothing."""
    process = start()
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert output.endswith("\nquickstart: OK\n"), output
    for words in ("Building in ", "DEMO_GPUS=gpu", "demo driver 1.0", "/dev/demo-gpu", "UNAVAILABLE:",
                  "demo.example.com/gpu"):
        assert words in output, output
    assert_nothing_left(directory_of(output))


def test_quickstart_keep():
    """--keep leaves all running and prints the sockets; what it says to try works; --stop ends
    it."""
    process = start("--keep")
    output, _ = process.communicate(timeout=300)
    directory = directory_of(output)
    try:
        assert process.returncode == 0, output
        assert f"{directory}/s.sock" in output and f"{directory}/c.sock" in output
        demo = [ROOT / "config/cri-device-shim-demo", "--socket", f"{directory}/s.sock"]
        listed = subprocess.run([*demo, "ps"], check=True, capture_output=True, text=True).stdout
        for pod in ("train", "infer"):
            assert re.search(rf"{pod} +\w+ +RUNNING", listed), listed
        more = subprocess.run([*demo, "run", "--device", "demo.example.com/gpu=1", "mine"],
                              check=False, capture_output=True, text=True)
        assert more.returncode != 0 and "RESOURCE_EXHAUSTED" in more.stderr
        subprocess.run([*demo, "rm", "infer"], check=True)
        subprocess.run([*demo, "run", "--device", "demo.example.com/gpu=1", "mine"], check=True)
        env = subprocess.run([*demo, "exec", "mine", "env"], check=True, capture_output=True,
                             text=True).stdout
        assert "DEMO_GPUS=gpu" in env
    finally:
        subprocess.run([QUICKSTART, "--stop", directory], check=True, timeout=120)
    assert_nothing_left(directory)


def test_what_it_says_to_type_where_a_path_has_blanks(directory):
    """Of a clone there, by the part of the script that says it."""
    config = directory / "a clone/config"
    config.mkdir(parents=True)
    for name in ("quickstart.sh", "cri-device-shim-demo"):
        (config / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (config / name).chmod(0o755)
    part = re.search(r"^say_how_to_go_on\(\) {\n.*?^}\n", QUICKSTART.read_text(), re.MULTILINE | re.DOTALL)[0]
    settings = (f"root='{config.parent}' demo='{config}/cri-device-shim-demo' dir={directory}\n"
                "plugin_pid= shim_pid= containerd_pid=")
    said = subprocess.run(["bash", "-euc", f"say() {{ :; }}\n{part}\n{settings}\nsay_how_to_go_on"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    typed = [line for line in said.splitlines() if re.match(r"  (alias .*|demo ps|.* --stop .*)$", line)]
    done = subprocess.run(["bash", "-O", "expand_aliases", "-ec", "\n".join(typed)], check=False, capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"cri-device-shim-demo --socket {directory}/s.sock ps",
                                        f"quickstart.sh --stop {directory}"], done.stderr


def test_quickstart_interrupted():
    """Ctrl-C in the middle, and again: it ends with the reason, and leaves nothing."""
    process = start()
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith("2. "):
            break
    os.killpg(process.pid, signal.SIGINT)
    settings = f"{directory_of(''.join(seen))}/shim.toml"
    wait_until(lambda: not containerd.processes_naming(settings), "the shim is gone")
    os.killpg(process.pid, signal.SIGINT)
    seen.append(process.stdout.read())
    process.stdout.close()
    assert process.wait(120) == 130
    output = "".join(seen)
    assert output.endswith("\nquickstart: FAILED: interrupted\n"), output
    wait_until(lambda: not os.path.exists(directory_of(output)), "its directory is gone")
    assert_nothing_left(directory_of(output))
