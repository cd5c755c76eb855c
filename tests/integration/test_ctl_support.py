"""cri-device-shimctl support: what is in the archive, and what must not be."""

import io
import json
import os
import signal
import stat
import tarfile

import grpc
import jsonschema
import pytest

from asking import by_annotation, refused
from ctl import ctl, ctl_json, schema_of
from plugin import allocate_answer
from protos import cri
from waiting import wait_until

GPU = "vendor.com/gpu"
SECRETS = ("hunter2-of-the-container", "hunter2-of-the-plugin", "hunter2-of-the-registry",
           "hunter2-of-the-settings")


def read(path):
    """{name: bytes} of what is in it."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        assert len({one.name.split("/")[0] for one in members}) == 1
        assert all(one.isfile() and one.mode == 0o600 for one in members)
        return {one.name.split("/", 1)[1]: archive.extractfile(one).read() for one in members}


def test_what_it_has(at_work, directory, make_client):
    client = make_client(at_work)
    pod = client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION):
        client.create(pod, "main")
    wait_until(lambda: ctl_json(at_work, "events")["items"], "the refusal is told")
    path = directory / "support.tar.gz"
    assert ctl_json(at_work, "support", str(path)) == {"file": str(path), "missing": 0}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    files = read(path)
    for name, text in files.items():
        command, dot, ending = name.rpartition(".")
        if ending == "json":
            jsonschema.Draft7Validator(schema_of(command)).validate(json.loads(text))
    assert {"status.json", "events.json", "why.json", "resources.json", "plugins.json", "devices.json",
            "allocations.json", "pods.json", "checkpoint-verify.json", "versions.txt"} <= set(files)
    (waiting,) = json.loads(files["why.json"])["items"]
    assert waiting["pod"] == "web" and waiting["lastRefusal"]
    assert files["versions.txt"].startswith(b"cri-device-shimctl ")


def test_it_has_no_secrets(at_work, directory, make_client, make_plugin):
    shim = at_work
    with open(shim.config_path, "a", encoding="ascii") as file:
        file.write(f"# {SECRETS[3]}\n")
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.on_allocate = lambda request, _context: allocate_answer(request, envs={"A": SECRETS[1]})
    client = make_client(shim)
    client.PullImage(image=cri.ImageSpec(image="registry.example/app"),
                     auth=cri.AuthConfig(username="me", password=SECRETS[2]))
    client.run(client.run_pod("web", annotations=by_annotation("main", f"{GPU}=1")), "main",
               envs={"B": SECRETS[0]})
    held = client.run_pod("two", annotations=by_annotation("main", f"{GPU}=1"))
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        client.create(held, "main", envs={"B": SECRETS[0]})
    wait_until(lambda: len(ctl_json(shim, "events")["items"]) == 3, "all is told")
    path = directory / "support.tar.gz"
    assert ctl(shim, "support", str(path)).stdout == f"{path}\n"
    whole = b"".join(read(path).values())
    assert b"two" in whole and b"g0" in whole
    for secret in SECRETS:
        assert secret.encode() not in whole


def test_a_file_that_is_there_is_not_overwritten(at_work, directory):
    path = directory / "support.tar.gz"
    path.write_text("mine")
    done = ctl(at_work, "support", str(path))
    assert (done.returncode, done.stderr) == (1, f"error: {path}: File exists\n")
    assert path.read_text() == "mine"


def test_a_disk_that_is_full(at_work, directory):
    """Nothing is left that would be in the way of the next try."""
    path = directory / "whole.tar.gz"
    done = ctl(at_work, "support", str(path), prefix=("env", "--ignore-signal=XFSZ", "prlimit", "--fsize=16"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {path}: it could not be written\n")
    assert not path.exists()


def test_the_log_of_all_three_is_in_it(at_work, directory):
    """There is no journal here: what is asked of it is what is taken."""
    journal = directory / "journalctl"
    journal.write_text('#!/bin/sh\necho "$@"\n')
    journal.chmod(0o755)
    path = directory / "log.tar.gz"
    done = ctl(at_work, "support", str(path), prefix=("env", f"PATH={directory}:/usr/bin:/bin"))
    assert done.returncode == 0
    units = read(path)["journal.txt"].decode().split(" -u ")[1:]
    assert [one.strip() for one in units] == ["cri-device-shim", "cri-device-shim-bridge", "cri-device-shim-agent"]


@pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
def test_nothing_is_left_of_one_that_is_interrupted(at_work, directory, name):
    """By the last program that it asks, when most of it is written."""
    journal = directory / "journalctl"
    journal.write_text(f'#!/bin/sh\n[ -e "$ASKED_FOR" ] && kill -{name} "$ASKED_BY"\nsleep 1\n')
    journal.chmod(0o755)
    path = directory / "interrupted.tar.gz"
    done = ctl(at_work, "support", str(path), prefix=(
        "env", f"--default-signal={name}", f"PATH={directory}:/usr/bin:/bin", f"ASKED_FOR={path}",
        "sh", "-c", 'ASKED_BY=$$ exec "$@"', "sh"))
    assert done.returncode == -signal.Signals[f"SIG{name}"]
    assert not path.exists()


def test_a_daemon_that_hangs_is_asked_once(at_work, directory):
    """It would take ten seconds for each command else."""
    path = directory / "support.tar.gz"
    os.kill(at_work.pid, signal.SIGSTOP)
    try:
        done = ctl(at_work, "support", str(path))
    finally:
        os.kill(at_work.pid, signal.SIGCONT)
    assert done.returncode == 0 and "warning: status.error: the daemon at" in done.stderr
    files = read(path)
    assert b"has not answered within 10 s" in files["status.error"] and "versions.txt" in files
    assert files["devices.error"] == b"not asked: the daemon does not answer\n"


def test_without_a_daemon_there_is_the_rest(directory):
    path = directory / "support.tar.gz"
    done = ctl(directory / "none", "support", str(path))
    assert done.returncode == 0 and "warning: status.error: cannot reach the daemon" in done.stderr
    files = read(path)
    assert b"cannot reach" in files["status.error"] and "versions.txt" in files


def test_it_is_named_by_itself(at_work, directory):
    done = ctl(at_work, "support", cwd=directory)
    path = directory / done.stdout.strip()
    assert path.name.startswith("cri-device-shim-") and path.name.endswith(".tar.gz")
    with open(path, "rb") as file:
        assert tarfile.open(fileobj=io.BytesIO(file.read())).getnames()
