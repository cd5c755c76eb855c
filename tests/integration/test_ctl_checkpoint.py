"""cri-device-shimctl checkpoint: what is in the file, and whether that is as it was written."""

import concurrent.futures
import json
import stat

import jsonschema
import pytest

from asking import by_token
from ctl import ctl, schema_of
from plugin import allocate_answer
from waiting import wait_until

GPU = "vendor.com/gpu"


@pytest.fixture
def served(at_work, make_plugin):
    make_plugin(at_work, GPU, ["g0", "g1"])
    wait_stored(at_work, 1)
    return at_work


def verify(shim):
    done = ctl(shim, "checkpoint", "verify", "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), done
    answer = json.loads(done.stdout)
    jsonschema.Draft7Validator(schema_of("checkpoint-verify")).validate(answer)
    return answer


def wait_stored(shim, resources):
    """Nobody waits for the row of a resource by itself."""
    wait_until(lambda: verify(shim)["resources"] == resources, "the resources have rows")


def flip(shim, text):
    """Each place of the open file, and of its journal, that has the text."""
    places = 0
    for path in shim.state_dir.glob("checkpoint.db*"):
        before = path.read_bytes()
        with open(path, "r+b") as file:
            at = before.find(text)
            while at >= 0:
                file.seek(at)
                file.write(bytes([text[0] ^ 1]))
                places += 1
                at = before.find(text, at + 1)
    assert places > 0


def test_a_sound_one(served, client):
    client.run(client.run_pod("web"), "main", annotations=by_token(GPU, "g0"))
    assert ctl(served, "cordon", GPU, "g1").returncode == 0
    told = verify(served)
    assert told == {"file": str(served.state_dir / "checkpoint.db"), "schemaVersion": 1,
                    "sound": True, "resources": 1, "allocations": 1, "pods": 1, "orders": 1,
                    "drivers": 0, "claims": 0, "endings": 0, "findings": [], "findingsTotal": 0}
    out = ctl(served, "checkpoint", "verify").stdout
    assert ": sound\n" in out and "1 resources, 1 allocations, 1 pods, 1 orders" in out


def test_damage_on_the_disk_is_seen_at_once(served, client):
    """Not only by the next start: what SQLite has in memory does not hide it."""
    client.run(client.run_pod("a-name-to-find"), "main", annotations=by_token(GPU, "g0"))
    assert verify(served)["sound"]
    flip(served, b"a-name-to-find")
    told = verify(served)
    assert not told["sound"] and told["pods"] == 0
    assert [one["kind"] for one in told["findings"]] == ["row"]
    assert "checksum" in told["findings"][0]["text"]
    assert ctl(served, "checkpoint", "verify", "-o", "name").stdout == "checkpoint/damaged\n"


def test_many_ask_while_containers_are_made(served, client):
    """A commit waits for the look, and a look for a commit; all are answered."""
    with concurrent.futures.ThreadPoolExecutor(8) as several:
        asked = [several.submit(verify, served) for _ in range(24)]
        for i in range(8):
            client.run(client.run_pod(f"web{i}"), "main", annotations=by_token(GPU, "g1" if i else "g0"))
            client.remove_all_pods()
        assert all(one.result()["sound"] for one in asked)


def export(shim):
    done = ctl(shim, "checkpoint", "export")
    assert (done.returncode, done.stderr) == (0, ""), done
    answer = json.loads(done.stdout)
    jsonschema.Draft7Validator(schema_of("checkpoint-export")).validate(answer)
    return answer


def test_all_that_is_in_it(at_work, client, make_plugin):
    plugin = make_plugin(at_work, GPU, ["g0", "g1"])
    plugin.on_allocate = lambda request, _context: allocate_answer(request, envs={"A": "a-secret"})
    client.run(client.run_pod("web"), "main", annotations=by_token(GPU, "g0"))
    assert ctl(at_work, "cordon", GPU, "g1", "-r", "dust").returncode == 0
    told = export(at_work)
    assert (told["format"], told["schemaVersion"], told["sound"]) == (
        "cri-device-shim/checkpoint/v1", 1, True)
    [resource], [allocation], [pod], [order] = (
        told["resources"], told["allocations"], told["pods"], told["orders"])
    assert (resource["name"], [one["id"] for one in resource["devices"]]) == (GPU, ["g0", "g1"])
    assert allocation["podUid"] == pod["uid"]
    assert (allocation["container"], allocation["resource"], allocation["ids"]) == ("main", GPU, ["g0"])
    assert (pod["namespace"], pod["name"]) == ("default", "web")
    assert (order["kind"], order["id"], order["reason"]) == ("cordon", "g1", "dust")
    assert allocation["optionsCached"] and "a-secret" not in json.dumps(told)


def test_into_a_file_of_its_own(served, directory):
    path = directory / "checkpoint.json"
    assert ctl(served, "checkpoint", "export", "-f", str(path)).stdout == f"{path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == export(served)
    done = ctl(served, "checkpoint", "export", "--file", str(path))
    assert (done.returncode, done.stdout) == (1, "") and "File exists" in done.stderr


def test_a_file_that_cannot_be_written_whole_is_none(served, directory):
    """A part of it would be in the way of the next."""
    path = directory / "part.json"
    done = ctl(served, "checkpoint", "export", "-f", str(path),
               prefix=("env", "--ignore-signal=XFSZ", "prlimit", "--fsize=16"))
    assert (done.returncode, done.stdout) == (1, "") and "File too large" in done.stderr
    assert not path.exists()


def test_what_is_damaged_is_left_out(served, client):
    client.run(client.run_pod("a-name-to-find"), "main", annotations=by_token(GPU, "g0"))
    flip(served, b"a-name-to-find")
    told = export(served)
    assert not told["sound"] and told["pods"] == [] and len(told["allocations"]) == 1


def test_a_large_one_comes_whole(at_work, make_plugin):
    """More than the daemon lets wait for a client at a time."""
    for i in range(8):
        make_plugin(at_work, f"vendor.com/gpu{i}", [f"{'g' * 100}{n}" for n in range(1000)])
    wait_stored(at_work, 8)
    told = export(at_work)
    assert [len(one["devices"]) for one in told["resources"]] == [1000] * 8
