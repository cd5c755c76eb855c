"""The daemon's command line and its settings: bad ones get a clear error."""

import os
import pathlib
import re
import subprocess

import pytest

from bridge_process import BINARY as BRIDGE_BINARY
from shim import BINARY, ROOT, Shim, accepts, check_config
from waiting import wait_until

BAD = {
    "unknown key": ('listen = "/run/a.sock"\nlisten_on = "x"\n', 2, "listen_on"),
    "unknown table": ('[plugin]\ngrace = "5m"\n', 1, "plugin"),
    "unknown key in a table": ('[plugins]\ngraces = "5m"\n', 2, "graces"),
    "wrong type": ("[plugins]\ngrace = 5\n", 2, "grace"),
    "wrong type of a table": ('plugins = "x"\n', 1, "plugins"),
    "bad duration": ('[plugins]\nhold = "5 parsecs"\n', 2, "hold"),
    "negative duration": ('[plugins]\ngrace = "-5m"\n', 2, "grace"),
    "hold over a minute": ('[plugins]\nhold = "61s"\n', 2, "hold"),
    "bad level": ('log_level = "loud"\n', 1, "log_level"),
    "bad refresh": ('[plugins]\nrefresh_options = "often"\n', 2, "refresh_options"),
    "path too long for a socket": (f'listen = "/run/{"x" * 120}"\n', 1, "listen"),
    "plugin directory too long": (f'[plugins]\nplugin_dir = "/run/{"x" * 100}"\n', 2, "plugin_dir"),
    "unknown key of the bridge": ('[bridge]\ngates = true\n', 2, "gates"),
    "mask over a month": ('[bridge]\nmask = "721h"\n', 2, "mask"),
    "gate without a kubelet": ('[bridge]\nkubelet_processes = []\n', 2, "kubelet_processes"),
    "kubelet's directory too long": (
        f'[bridge]\nkubelet_plugin_dir = "/{"x" * 50}"\n', 2, "kubelet_plugin_dir"),
    "plugins register with the kubelet": (
        '[plugins]\nplugin_dir = "/var/lib/kubelet/device-plugins"\n', 2, "kubelet_plugin_dir"),
    "relative path": ('state_dir = "state"\n', 1, "state_dir"),
    "no TOML": ('listen = "/run/a.sock\n', 1, ""),
    "device without a path": ('[[device]]\nresource = "a.b/c"\n', 1, "path"),
    "device with a bad resource": (
        '[[device]]\nresource = "c"\npath = "/dev/null"\n', 2, "resource"),
    "device with bad permissions": (
        '[[device]]\nresource = "a.b/c"\npath = "/dev/null"\npermissions = "x"\n', 4,
        "permissions"),
    "device with a bad count": (
        '[[device]]\nresource = "a.b/c"\npath = "/dev/null"\ncount = 0\n', 4, "count"),
    "two devices of one name": (
        '[[device]]\nresource = "a.b/c"\npath = "/dev/null"\n'
        '[[device]]\nresource = "a.b/c"\npath = "/dev/full"\n', 5, "a.b/c"),
}


def run(*arguments):
    return subprocess.run([BINARY, *arguments], check=False, capture_output=True, text=True,
                          timeout=60)


@pytest.mark.parametrize("text,line,word", BAD.values(), ids=BAD.keys())
def test_bad_config(directory, text, line, word):
    """A bad config is an error with file, line and column, and what is wrong; the daemon does not
    start."""
    status, words = check_config(text, directory)
    assert status != 0
    where = re.search(rf"{directory}/checked.toml:(\d+):(\d+): (.+)", words)
    assert where, words
    assert int(where[1]) == line and word in where[3], words
    started = run("--config", directory / "checked.toml")
    assert started.returncode != 0 and where[0] in started.stdout + started.stderr


def test_all_mistakes_at_once(directory):
    """A line each, in the order of the file; the daemon and the bridge say the same ones."""
    _, said = check_config('zzzzzz = 1\nlisten = 5\n[plugins]\nhold = "61s"\n', directory)
    lines = said.strip().split("\n")
    places = [line.split(": ")[0] for line in lines]
    assert places == [f"{directory}/checked.toml:{place}" for place in ("1:1", "2:10", "4:8")]
    for binary in (BINARY, BRIDGE_BINARY):
        started = subprocess.run([binary, "--config", directory / "checked.toml"], check=False,
                                 capture_output=True, text=True, timeout=60)
        assert started.returncode != 0
        told = started.stderr.strip().split("\n")
        assert len(told) == len(lines)
        assert all(line.endswith(words) for line, words in zip(told, lines)), started.stderr


def test_good_configs(directory):
    """The documented example, an empty file and a full one are accepted."""
    done = run("--check-config", ROOT / "config/example.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert check_config("", directory)[0] == 0
    full = Shim(directory, "unix:///run/containerd/containerd.sock",
                plugins={"grace": "1h30m", "hold": "0s", "allocate_timeout": "500ms",
                         "prestart_timeout": "1m", "refresh_options": "plugin"},
                devices=[{"resource": "a.b/c", "path": "/dev/tty*", "container_path": "/dev/x/",
                          "permissions": "rwm", "count": 3}])
    assert check_config(full.config_text(), directory) == (0, check_config("", directory)[1])


def test_missing_config(directory):
    """A config file that is asked for and is not there is an error with its name."""
    for option in ("--config", "--check-config"):
        done = run(option, directory / "none.toml")
        assert done.returncode != 0 and str(directory / "none.toml") in done.stdout + done.stderr


def test_unknown_option():
    done = run("--colour")
    assert done.returncode != 0 and "--colour" in done.stderr


def test_without_config(directory):
    """The daemon runs with no config file at all, on its default paths, here in private mounts."""
    script = """
        set -e
        mount --make-rprivate /
        mount -t tmpfs none /run
        mount -t tmpfs none /var/lib
        exec "$0"
        """
    log = directory / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, BINARY],
                                   stdout=output, stderr=subprocess.STDOUT)
    try:
        root = pathlib.Path(f"/proc/{process.pid}/root")
        for path in ("run/cri-device-shim/cri-device-shim.sock",
                     "var/lib/cri-device-shim/device-plugins/kubelet.sock"):
            wait_until(lambda: process.poll() is not None or _serves(process.pid, root / path),
                       f"{path} there")
        assert process.poll() is None, log.read_text()
        folder = root / "run/cri-device-shim"
        assert folder.stat().st_mode & 0o777 == 0o755
        assert accepts(folder / "cri-device-shim.sock")
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()


def _serves(pid, path):
    """Whether the path is there, and the process is the daemon. Until then, and its mounts, the
    path is the machine's own, where another daemon may serve."""
    try:
        return os.readlink(f"/proc/{pid}/exe") == str(BINARY.resolve()) and bool(os.stat(path))
    except OSError:
        return False
