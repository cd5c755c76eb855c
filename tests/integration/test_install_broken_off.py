"""config/install.sh that fails, or is killed, at any point: all is taken back, and another run brings it to its end."""

import itertools
import os
import shutil
import signal
import subprocess

import pytest

from live_node import ALL_ACTIVE, LiveNode
from node_tree import (
    BRIDGE, DAEMON, DROP_IN, INSTALLED, KUBEADM_FLAGS, UNITS, Node, copy_of, files_of, kubeadm, snapshot,
    with_root)


BRIDGE_LINK = f"{UNITS}/multi-user.target.wants/cri-device-shim-bridge.service"


@pytest.fixture(name="one")
def one_node(directory):
    return Node(directory, kubeadm(KUBEADM_FLAGS))


@pytest.fixture(name="live")
def live_node(directory):
    return LiveNode(directory)


# ---- cut off, and failing ----

def test_failing_write_takes_all_back(one):
    """The last file cannot be written: the ones before it are taken back."""
    one.write("etc/systemd/system/kubelet.service.d", "not a directory")
    words = one.refuses()
    assert "all changes were taken back" in words and "not put back" not in words


def test_failing_upgrade_takes_all_back(one):
    """The same with an earlier install: its version is there, and can be uninstalled."""
    before = one.tree()
    one.install()
    drop_in = one.root / DROP_IN
    drop_in.unlink()
    drop_in.parent.rmdir()
    one.write("etc/systemd/system/kubelet.service.d", "not a directory")
    one.build_binary("cri-device-shim", "two")
    assert "all changes were taken back" in one.refuses()
    (one.root / "etc/systemd/system/kubelet.service.d").unlink()
    one.install("--uninstall")
    assert one.tree() == before


def with_tools(directory, **scripts):
    """An environment in which these stand in front of a node's own."""
    tools = directory / "stand-ins"
    tools.mkdir()
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}"}


def upgrade_fails_at_the_bridge(one, directory, cp):
    """Both programs are to be others, and the bridge cannot be put; `cp`: what that does first, also when all is taken back."""
    for name in ("cri-device-shim", "cri-device-shim-bridge"):
        one.build_binary(name, "two")
    return one.run(env=with_tools(directory, mv='case $* in *shim-bridge) exit 1 ;; esac\nexec /bin/mv "$@"',
                                  cp=f'{cp}\nexec /bin/cp "$@"'))


def test_full_disk_while_all_is_taken_back(one, directory):
    """What is noted of the install before is not written over in its place."""
    before = one.tree()
    one.install()
    done = upgrade_fails_at_the_bridge(
        one, directory, 'for last; do :; done\ncase $last in */install/manifest*) : >"$last"; exit 1 ;; esac')
    assert done.returncode != 0 and "all changes were taken back" in done.stderr
    assert "# one" in one.read(DAEMON) and "# one" in one.read(BRIDGE)
    one.install("--uninstall")
    assert one.tree() == before


def test_what_cannot_be_taken_back(one, directory):
    """Is said, and nothing else than is so; the next run finds it."""
    before = one.tree()
    one.install()
    done = upgrade_fails_at_the_bridge(one, directory, f"case $* in */undo/{DAEMON}\\ {one.root}/*) exit 1 ;; esac")
    assert f"not put back: {one.root}/{DAEMON}\n" in done.stderr
    assert "those named above are still there" in done.stderr and "all changes were taken back" not in done.stderr
    assert "# two" in one.read(DAEMON) and "# one" in one.read(BRIDGE)
    again = copy_of(one, directory / "again")
    again.build_binary("cri-device-shim-bridge", "two")
    again.install()
    assert "# one" in again.read(DAEMON) and "# two" in again.read(BRIDGE)
    for node in (one, again):
        node.install("--uninstall")
        assert node.tree() == before


def test_what_is_kept_is_on_the_disk(one, directory):
    """Before it is noted that it is, and before what takes its place."""
    one.write(DAEMON, "an older one", 0o750)
    done = one.run(env=with_tools(directory, sync=f'shift\nfor one; do echo "${{one#{one.root}/}}" >>{directory}/log; done'))
    assert done.returncode == 0, done.stderr
    synced = (directory / "log").read_text().splitlines()
    store = "var/lib/cri-device-shim/install"
    assert synced[:2] == [f"{store}/backup/{DAEMON}", f"{store}/manifest.new"]
    assert f"{DAEMON.rpartition('/')[0]}/.cri-device-shim.new" in synced[2:]


@pytest.mark.parametrize("tool,script", [
    ("install", 'for last; do :; done\ncase $last in */.cri-device-shim-bridge.new) : >"$last"; exit 1 ;; esac'),
    ("sync", "case $* in */.cri-device-shim-bridge.new*) exit 1 ;; esac"),
    ("install", 'case $* in */.cri-device-shim-bridge.new) exec /bin/cp -T /bin/true "${*##* }" ;; esac'),
])
def test_no_file_takes_its_place_before_all_are_there(one, directory, tool, script):
    """On the disk, and what was planned; then nothing is left of them."""
    before = one.tree()
    done = one.run(env=with_tools(directory, **{
        tool: f'{script}\nexec /bin/{tool} "$@"', "mv": f'echo "$@" >>{directory}/log\nexec /bin/mv "$@"'}))
    assert done.returncode != 0 and "all changes were taken back" in done.stderr
    assert one.tree() == before
    moved = (directory / "log").read_text().splitlines()
    assert len(moved) == 1 and moved[0].endswith("/install/manifest"), "what is to be there is noted first"


def test_uninstall_that_cannot_write(one, directory):
    """What was there before the install: nothing of it is left beside its place, either."""
    one.write(DAEMON, "an older one", 0o750)
    one.install("--no-kubelet", "--runtime-endpoint", "/run/a.sock")
    before = one.tree()
    done = one.run("--uninstall", env=with_tools(
        directory, cp='for last; do :; done\ncase $last in */.cri-device-shim.new) : >"$last"; exit 1 ;; esac\nexec /bin/cp "$@"'))
    assert done.returncode != 0 and "all changes were taken back" in done.stderr
    assert one.tree() == before


class Cutter:
    """Tools in front of PATH that keep what is there as each of them is called: what the script
    leaves that is killed just then."""

    TOOLS = ("install", "mv", "cp", "mkdir", "rm", "rmdir")
    EACH = 5  # of the first and of the last

    def __init__(self, directory):
        self.directory = directory
        self.path = directory / "tools"
        self.count = directory / "count"
        self.places = 0  # of all that it may leave; known once there are nodes
        self.path.mkdir()
        self.count.write_text("0")
        copy = shutil.which("cp")
        for tool in self.TOOLS:
            (self.path / tool).write_text(
                f"#!/bin/sh\nn=$(($(cat {self.count}) + 1))\necho $n >{self.count}\n"
                f'{copy} -a "$CUT_ROOT" {directory}/left$n\nexec {shutil.which(tool)} "$@"\n')
            (self.path / tool).chmod(0o755)

    def cuts(self, node, *options):
        """A node for each thing that the script may leave, but in the middle, where one file is as the other, for each
        seventh; the last is that of one that came to its end."""
        whole = copy_of(node, self.directory / "whole")
        done = whole.run(*options, env={"PATH": f"{self.path}:{os.environ['PATH']}",
                                        "TMPDIR": str(whole.build), "CUT_ROOT": str(whole.root)})
        assert done.returncode == 0, done.stderr
        left = [self.directory / f"left{n}" for n in range(1, int(self.count.read_text()) + 1)]
        trees = [snapshot(one) for one in left]
        others = [one for one, tree, last in zip(left, trees, [None, *trees]) if tree != last]
        self.places = len(others)
        for n, one in enumerate(others):
            if n < self.EACH or n >= len(others) - self.EACH or n % 7 == 0:
                yield with_root(one, self.directory / f"cut{n}")
        yield whole


def without_manifest(tree):
    return {path: found for path, found in tree.items() if not path.endswith("/manifest")}


def bridge_waits_for_the_kubelet(node):
    """Whoever's power is lost just then: at no start the bridge shows devices to a kubelet without the shim."""
    return (node.root / DROP_IN).exists() or not (node.root / BRIDGE_LINK).is_symlink()


def test_cut_off_anywhere(one, directory):
    """A script that is killed at any point: another run brings it to its end, either way."""
    one.write(DAEMON, "an older one", 0o750)
    before = one.tree()
    clean = copy_of(one, directory / "clean")
    clean.install()
    cutter = Cutter(directory)
    for number, again in enumerate(cutter.cuts(one)):
        assert bridge_waits_for_the_kubelet(again)
        back = copy_of(again, directory / f"back{number}")
        again.install()
        assert without_manifest(again.tree()) == without_manifest(clean.tree())
        back.install("--uninstall")
        assert back.tree() == before
    assert cutter.places > 20


def test_uninstall_cut_off_anywhere(one, directory):
    """The same for the way back."""
    one.write(DAEMON, "an older one", 0o750)
    before = one.tree()
    one.install()
    cutter = Cutter(directory)
    for node in cutter.cuts(one, "--uninstall"):
        assert bridge_waits_for_the_kubelet(node)
        node.install("--uninstall")
        assert node.tree() == before
    assert cutter.places > 10


def killed_runs(live, *options):
    """The script is killed before its first call of systemctl, and behind each of them: yields then, for another one
    to go on. At no such moment the kubelet uses a shim that does not run, but for the bridge, or would if it were started."""
    for calls in itertools.count():
        live.calls()
        (live.state / "cut").write_text(f"{calls}\n")
        done = live.run(*options)
        (live.state / "cut").unlink()
        if done.returncode == 0:
            assert calls > 2
            return
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert bridge_waits_for_the_kubelet(live)
        if (live.root / DROP_IN).exists():
            assert INSTALLED <= files_of(live.tree())
        runs = live.state / "runs/kubelet.service"
        if runs.exists() and runs.read_text():
            assert live.active() | ({"cri-device-shim-bridge.service"} if "--uninstall" in options else set()) == ALL_ACTIVE
        yield


def test_install_killed_between_two_steps(live):
    before = live.tree()
    for _ in killed_runs(live):
        live.install()
        assert live.active() == ALL_ACTIVE and live.runs("kubelet.service") == live.read(DROP_IN)
        live.calls()
        live.install()
        assert live.calls() == []
        live.install("--uninstall")
        assert live.tree() == before


@pytest.mark.parametrize("calls,fails", [(0, "cri-device-shim.service"), (4, "kubelet.service")])
def test_install_behind_a_killed_one_fails(live, calls, fails):
    """What that has put there stays, which is said, with what takes it back."""
    before = live.tree()
    (live.state / "cut").write_text(f"{calls}\n")
    assert live.run().returncode == -signal.SIGKILL
    (live.state / "cut").unlink()
    (live.state / f"fails/{fails}").write_text("one")
    words = live.refuses()
    assert f"{fails} did not start" in words and "what an earlier run has put there stays: mend that" in words
    (live.state / f"fails/{fails}").unlink()
    live.install("--uninstall")
    assert live.tree() == before and live.active() == {"kubelet.service"} - {fails}


def test_upgrade_killed_between_two_steps(live):
    """All runs from what is there afterwards: what a killed one has put there, too."""
    def build():
        for name in ("cri-device-shim", "cri-device-shim-bridge"):
            live.build_binary(name, f"version {next(version)}")
        live.write(f"{UNITS}/kubelet.service", f"[Service]\nExecStart=/usr/bin/kubelet --v={next(version)}\n")

    version = itertools.count()
    live.install()
    build()
    for _ in killed_runs(live):
        live.install()
        for unit, path in (("cri-device-shim.service", DAEMON), ("cri-device-shim-bridge.service", BRIDGE)):
            assert live.runs(unit) == live.read(path).splitlines(keepends=True)[1]
        assert live.runs("kubelet.service") == live.read(DROP_IN)
        live.calls()
        live.install()
        assert live.calls() == []
        build()


def test_uninstall_killed_between_two_steps(live):
    before = live.tree()
    live.install()
    for _ in killed_runs(live, "--uninstall"):
        live.install("--uninstall")
        assert live.active() == {"kubelet.service"} and live.runs("kubelet.service") == ""
        assert live.tree() == before
        live.install()


@pytest.mark.parametrize("streams", [1, 2])
def test_nobody_reads_its_words_any_more(live, streams):
    """As when what it was started from has gone: an interrupt like any other."""
    before = live.tree()
    for name in ("told", "go"):
        os.mkfifo(live.state / name)
    words = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT if streams == 2 else subprocess.DEVNULL}
    with subprocess.Popen(**live.live_command(), **words) as script:
        assert "daemon-reload" in (live.state / "told").read_text()
        script.stdout.close()
        (live.state / "told").unlink()
        (live.state / "go").write_text("on\n")
        assert script.wait(timeout=60) != 0
    assert live.tree() == before and live.active() == {"kubelet.service"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_while_all_is_taken_back(live, number):
    """As by who presses Ctrl-C again: the kubelet is not left with a shim that is stopped."""
    before = live.tree()
    (live.state / "dies").touch()
    for name in ("told", "go"):
        os.mkfifo(live.state / name)
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with (subprocess.Popen(**live.live_command(), **silent) as script,
          open(live.state / "go", "r+b", buffering=0) as go):
        while not (live.state / "told").read_text().startswith("stop "):
            go.write(b"on\n")
        os.killpg(script.pid, number)
        (live.state / "told").unlink()
        go.write(b"on\n")
        assert script.wait(timeout=60) == 1
    assert live.tree() == before and live.active() == {"kubelet.service"}
