"""The daemon's command line and its settings: bad ones get a clear error."""

import os
import pathlib
import re
import subprocess

import pytest

from bridge_process import BINARY as BRIDGE_BINARY
from node import Bridge as NodeBridge
from program import Program
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
    """A bad config is an error with file, line and column, and what is wrong."""
    status, words = check_config(text, directory)
    assert status != 0
    where = re.search(rf"{directory}/checked.toml:(\d+):(\d+): (.+)", words)
    assert where, words
    assert int(where[1]) == line and word in where[3], words


def test_paths_that_meet_by_links(directory):
    """As /run and /var/run, or a kubelet's directory that is on another disk: what is the same by another
    name is the same. A link in a socket's own place is none: the daemon replaces it."""
    (directory / "there").mkdir()
    (directory / "link").symlink_to("there")
    there, link = directory / "there", directory / "link"
    for text, words in (
            (f'listen = "{there}/s.sock"\nruntime_endpoint = "{link}/s.sock"\n',
             "listen and runtime_endpoint are the same socket"),
            (f'[plugins]\nplugin_dir = "{there}/plugins"\n[bridge]\nkubelet_plugin_dir = "{link}/plugins"\n',
             "plugin_dir and kubelet_plugin_dir are the same directory"),
            (f'[plugins]\nplugin_dir = "{link}"\n[bridge]\nkubelet_plugin_dir = "{there}"\n',
             "plugin_dir and kubelet_plugin_dir are the same directory"),
            (f'[dra]\nregistry_dir = "{there}"\nkubelet_registry_dir = "{link}"\n',
             "registry_dir and kubelet_registry_dir are the same directory")):
        status, said = check_config(text, directory)
        assert status == 1 and words in said
    (there / "s.sock").symlink_to("runtime.sock")
    status, said = check_config(
        f'listen = "{there}/s.sock"\nruntime_endpoint = "{there}/runtime.sock"\n', directory)
    assert status == 0, said


def test_all_mistakes_at_once(directory):
    """A line each, in the order of the file."""
    _, said = check_config('zzzzzz = 1\nlisten = 5\n[plugins]\nhold = "61s"\n', directory)
    places = [line.split(": ")[0] for line in said.strip().split("\n")]
    assert places == [f"{directory}/checked.toml:{place}" for place in ("1:1", "2:10", "4:8")]


@pytest.mark.parametrize("option", ["--import-kubelet-checkpoint=/x", "--list-tokens", "--shutdown-time", "--setting=listen"])
def test_commands_want_the_file_itself(directory, option):
    """What reads or changes the state by hand is not done by other settings than the file's."""
    _, words = check_config("x = 1\n", directory)
    done = run("--config", directory / "checked.toml", option)
    assert done.returncode != 0 and words.strip() in done.stderr


def test_what_a_setting_is(directory):
    """As the program reads the file, or by default, in a line; one that there is not is an error with its name."""
    check_config('bridge = { enabled = false }\nlisten = """unix:///run/\\\n   a.sock"""\n', directory)

    def setting(name):
        return run("--config", directory / "checked.toml", "--setting", name)
    assert [setting(name).stdout for name in ("bridge.enabled", "listen", "plugins.grace", "metrics.listen")] == [
        "false\n", "/run/a.sock\n", "5m\n", "\n"]
    done = setting("bridge.enable")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith('error: there is no setting "bridge.enable"\n')


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
    """A file that is to be checked and is not there is an error with its name."""
    done = run("--check-config", directory / "none.toml")
    assert done.returncode != 0 and str(directory / "none.toml") in done.stdout + done.stderr


def test_unknown_option():
    done = run("--colour")
    assert done.returncode != 0 and "--colour" in done.stderr


@pytest.mark.parametrize("binary", [BINARY, BRIDGE_BINARY])
def test_a_word_too_many(binary):
    done = subprocess.run([binary, "status"], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "Too many arguments" in done.stderr


class Private(Program):
    """One of the programs, for which /run and /var/lib are empty at first."""

    _MOUNTS = """
        set -e
        mount --make-rprivate /
        mount -t tmpfs none /run
        mount -t tmpfs none /var/lib
        exec "$@"
        """
    wrapper = ("unshare", "--mount", "sh", "-c", _MOUNTS, "sh")

    def __init__(self, directory, binary):
        super().__init__(binary.name, directory / f"{binary.name}.log")
        self._binary = binary

    def start(self, *arguments):
        self._spawn(self._binary, *arguments)
        wait_until(lambda: self._ended() or self._is_it(), "the program itself runs")

    def _is_it(self):
        try:
            return os.readlink(f"/proc/{self.pid}/exe") == str(self._binary.resolve())
        except OSError:
            return False

    def path(self, path):
        """What it sees there."""
        return pathlib.Path(f"/proc/{self.pid}/root") / path

    def wait_path(self, path):
        wait_until(lambda: self._ended() or self.path(path).exists(), f"{path} is there")


SERVED = ("run/cri-device-shim/cri-device-shim.sock",
          "var/lib/cri-device-shim/device-plugins/kubelet.sock")


@pytest.mark.parametrize("text", [None, 'listen = 5\n[plugins]\nhold = "61s"\n', "missing", "fifo"])
def test_defaults(directory, closing, text):
    """The daemon runs with no config file at all, on its default paths, here in private mounts; and
    so it does with one that is wrong, is not there, or is a fifo that nobody writes into, when it has never run with another: it says
    what is wrong, as the bridge does."""
    path, words = directory / "checked.toml", []
    if text == "missing":
        words = [f"error: {path}: cannot be read: No such file"]
    elif text == "fifo":
        os.mkfifo(path)
        words = [f"error: {path}: cannot be read: it is no regular file; expected a TOML file"]
    elif text:
        words = [f"error: {line}" for line in check_config(text, directory)[1].strip().split("\n")]
        assert len(words) == 2
    daemon = closing(Private(directory, BINARY))
    daemon.start(*(["--config", path] if text else []))
    for one in SERVED:
        daemon.wait_path(one)
    folder = daemon.path("run/cri-device-shim")
    assert folder.stat().st_mode & 0o777 == 0o755
    wait_until(lambda: accepts(folder / "cri-device-shim.sock"), "it listens")
    bridge = closing(Private(directory, BRIDGE_BINARY))
    bridge.start(*(["--config", path] if text else []))
    bridge.wait_log("/run/cri-device-shim/bridge.sock -> ")
    for one in (daemon, bridge):
        log = one.log()
        assert all(line in log for line in words)
        assert ("they have their defaults" in log) == bool(text)


def test_the_last_good_one(directory, runtime, make_shim, make_client, closing):
    """After a start that worked a file that is wrong costs nothing: daemon and bridge use that
    start's settings, and say so; mended, it counts again."""
    shim = make_shim(top={"drain": "11s"})
    copy = shim.state_dir / "config.last-good.toml"
    wait_until(copy.exists, "the settings are kept")
    good = shim.config_text()
    assert copy.read_text() == good
    shim.terminate()

    shim.top["drain"] = "11 parsecs"
    shim.start()
    make_client(shim).run_pod("one")
    line = next(at for at, words in enumerate(good.split("\n"), 1) if words.startswith("drain"))
    assert f"error: {shim.config_path}:{line}:9: " in shim.log()
    assert f"{shim.config_path} is wrong; the settings are those of the last start that " \
           f"worked, {copy}" in shim.log()
    bridge = closing(NodeBridge(shim.config_path, directory / "bridge.log"))
    bridge.start()
    bridge.wait_log("feed: daemon")
    assert f"worked, {copy}" in bridge.log()
    shim.terminate()
    assert copy.read_text() == good

    shim.top["drain"] = "12s"
    shim.start()
    wait_until(lambda: copy.read_text() == shim.config_text(), "the new ones are kept")
    assert shim.log().count("is wrong; ") == 1
