"""cri-device-shimctl node: what it runs, and how."""

import shutil
import signal
import subprocess

import pytest

from ctl import CTL

# Says what it was given, and whether it would outlive who reads its words.
SCRIPT = """#!/bin/sh
printf '<%s>' "$@"
grep SigIgn /proc/$$/status
exit 3
"""


@pytest.fixture(name="ctl")
def installed(directory):
    """The program as an install puts it, beside a script of ours."""
    (directory / "bin").mkdir()
    (directory / "lib/cri-device-shim").mkdir(parents=True)
    script = directory / "lib/cri-device-shim/node.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    shutil.copy(CTL, directory / "bin")

    def run(*words):
        return subprocess.run([directory / "bin/cri-device-shimctl", *words], check=False,
                              capture_output=True, text=True, timeout=60)

    run.script = script
    return run


@pytest.mark.parametrize("words,given", [
    (["enable"], "<enable>"), (["disable", "--force", "--dry-run"], "<disable><--dry-run><--force>"),
    (["enable", "--runtime-endpoint=/run/a b", "--no-kubelet", "--root", "/mnt"],
     "<enable><--root></mnt><--runtime-endpoint></run/a b><--no-kubelet>")])
def test_it_becomes_the_script(ctl, words, given):
    done = ctl("node", *words)
    assert (done.returncode, done.stderr) == (3, "")
    said, _, ignored = done.stdout.partition("SigIgn:")
    assert said == given
    assert not int(ignored, 16) & 1 << signal.SIGPIPE - 1


@pytest.mark.parametrize("words,status,error", [
    (["enable", "--force"], 2, "unknown option --force"), (["disable", "x"], 2, "too many arguments"),
    (["enable", "-o", "json"], 2, "node enable has no other output"), (["enable", "-w"], 2, "cannot be watched"),
    (["enabled"], 2, "node is followed by one of: enable, disable")])
def test_what_is_wrong(ctl, words, status, error):
    done = ctl("node", *words)
    assert done.returncode == status and error in done.stderr and done.stdout == ""


def test_no_script(ctl):
    ctl.script.unlink()
    done = ctl("node", "enable")
    assert done.returncode == 1 and "node.sh, which would do this: No such file" in done.stderr
