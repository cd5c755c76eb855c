"""cri-device-shimctl checkpoint import, verify --file and export --from: a checkpoint that no daemon has
open."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import threading

import grpc
import pytest

from asking import by_token, refused
from ctl import CTL, answered, checked, ctl, ctl_json
from plugin import allocate_answer
from shim import ROOT, accepts
from waiting import wait_until

GPU, NIC, OLD = "vendor.com/gpu", "vendor.com/nic", "vendor.com/old"
KUBELETS = ROOT / "tests/integration/captures/kubelet_internal_checkpoint"


def export(shim, *arguments):
    done = ctl(shim, "checkpoint", "export", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return checked("checkpoint-export", done.stdout)


def imported(shim, path, *arguments):
    done = ctl(shim, "checkpoint", "import", str(path), "-c", str(shim.config_path), "-o", "json",
               *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return checked("checkpoint-import", done.stdout)


def failed(shim, *arguments, status=1):
    """The one line that says why."""
    done = ctl(shim, "checkpoint", *arguments)
    assert (done.returncode, done.stdout) == (status, ""), done
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def files(shim):
    """{name: bytes} of the state directory."""
    return {path.name: path.read_bytes() for path in shim.state_dir.iterdir()}


def change(database, *statements):
    with contextlib.closing(sqlite3.connect(database)) as rows:
        for statement in statements:
            rows.execute(statement)
        rows.commit()


def start(shim, client=None):
    shim.start()
    wait_until(lambda: accepts(shim.control), "the control socket is there")
    if client:
        client.reconnect()


def held(shim):
    """{pod: ids}"""
    return {one["pod"]: one["ids"] for one in ctl_json(shim, "allocations")["items"]}


def told(shim, *kinds):
    return [(one["kind"], one["pod"], one["ids"], one["times"]) for one in ctl_json(shim, "events")["items"]
            if one["kind"] in kinds]


def without_options(document):
    return {**document, "allocations": [{**one, "optionsCached": False, "optionsBoot": None}
                                        for one in document["allocations"]]}


@pytest.fixture
def document(at_work, client, make_plugin, directory):
    """The document of a daemon with a pod and an order, which is stopped now."""
    plugin = make_plugin(at_work, GPU, ["g0", "g1"])
    plugin.on_allocate = lambda request, _context: allocate_answer(request, envs={"A": "a-secret"})
    client.run(client.run_pod("web"), "main", annotations=by_token(GPU, "g0"))
    assert ctl(at_work, "cordon", GPU, "g1", "-r", "dust").returncode == 0
    path = directory / "checkpoint.json"
    assert ctl(at_work, "checkpoint", "export", "-f", str(path)).returncode == 0
    at_work.terminate()
    return path


# ---- there and back ----

def row_of(resource, document):
    [row] = [one for one in document["resources"] if one["name"] == resource]
    return row


def make_pods(client, stop):
    """Pods come and go until told to stop."""
    for i in range(10_000):
        pod = client.run_pod(f"passing{i}")
        try:
            client.run(pod, "main", annotations=by_token(GPU, f"p{i % 8}"))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        client.remove_pod(pod.id)
        if stop.is_set():
            return


def test_there_and_back(at_work, make_client, make_plugin, directory):
    """Taken under load, put into an empty directory: each pod has its devices, orders stand, what came to
    pass is told once; and a container that was made after all that keeps its own."""
    shim, client, other = at_work, make_client(at_work), make_client(at_work)
    gpus = make_plugin(shim, GPU, [f"g{i}" for i in range(8)] + [f"p{i}" for i in range(8)])
    nics = make_plugin(shim, NIC, ["n0"])
    make_plugin(shim, OLD, ["o0"])
    for i in range(4):
        client.run(client.run_pod(f"web{i}"), "main", annotations=by_token(GPU, f"g{i}"))
    ctl_json(shim, "cordon", GPU, "g7", "--reason", "dust")
    ctl_json(shim, "withdraw", OLD, "--reason", "moved")
    nics.stop()
    shim.wait_log("its devices are unhealthy")
    ctl_json(shim, "grace", "extend", NIC, "1h")
    wait_until(lambda: row_of(NIC, export(shim))["away"], "since when it is away is stored")
    stop, path = threading.Event(), directory / "checkpoint.json"
    with concurrent.futures.ThreadPoolExecutor(1) as load:
        passing = load.submit(make_pods, other, stop)
        wait_until(lambda: any(one.startswith("passing") for one in held(shim)), "pods come")
        assert ctl(shim, "checkpoint", "export", "-f", str(path)).returncode == 0
        stop.set()
        passing.result()
    client.run(client.run_pod("late"), "main", annotations=by_token(GPU, "g4"))
    wait_until(lambda: ctl_json(shim, "events")["items"][-1]["pod"] == "late", "it is told")
    pods = {f"web{i}": [f"g{i}"] for i in range(4)} | {"late": ["g4"]}
    wait_until(lambda: held(shim) == pods, "the others have gone")
    orders, before = ctl_json(shim, "orders")["items"], told(shim, "allocated", "cordoned", "withdrawn")
    asked = len(gpus.calls_of("Allocate"))
    shim.terminate()
    for file in shim.state_dir.glob("checkpoint.db*"):
        file.unlink()
    answer = imported(shim, path, "--yes")
    assert answer["imported"] and (answer["kept"], answer["replaces"]) == (None, None)
    start(shim, client)
    wait_until(lambda: held(shim) == pods, "each has its devices, and no other has any")
    assert ctl_json(shim, "orders")["items"] == orders and len(orders) == 3
    [nic] = [one for one in ctl_json(shim, "plugins")["items"] if one["resource"] == NIC]
    assert nic["state"] == "grace" and nic["away"]["graceExtendedSeconds"] == 3600
    nic = row_of(NIC, export(shim))
    assert nic == row_of(NIC, json.loads(path.read_text()))
    assert nic["away"] and nic["awaySinceMs"] > 0 and nic["awayBoot"]
    gpus.register()
    wait_until(lambda: [one["state"] for one in ctl_json(shim, "plugins")["items"] if one["resource"] == GPU]
               == ["active"], "the plugin is back")
    pod = client.run_pod("new")
    for id_ in ("g0", "g4", "g7"):
        with refused(grpc.StatusCode.UNAVAILABLE, id_):
            client.create(pod, "main", annotations=by_token(GPU, id_))
    wait_until(lambda: runs(client, pod, "g5"), "what is free is given once the runtime was asked")
    assert len(gpus.calls_of("Allocate")) == asked + 1
    wait_until(lambda: told(shim, "allocated")[-1][1] == "new", "it is told")
    after = told(shim, "allocated", "cordoned", "withdrawn")
    assert after[:-1] == before


def runs(client, pod, id_):
    try:
        client.run(pod, "main", annotations=by_token(GPU, id_))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        return False
    return True


def test_what_was_there_is_kept_and_can_be_had_again(at_work, client, document, make_plugin):
    """The copy of a checkpoint has what plugins gave, too: they are not asked again."""
    shim = at_work
    shutil.rmtree(shim.state_dir)
    start(shim, client)
    plugin = make_plugin(shim, GPU, ["g0", "g1"], endpoint="other.sock")
    pod = client.run_pod("another")
    wait_until(lambda: runs(client, pod, "g1"), "it is free there")
    there = export(shim)
    shim.terminate()
    answer = imported(shim, document, "--yes")
    kept = pathlib.Path(answer["kept"])
    assert kept.parent == shim.state_dir and kept.name.startswith("checkpoint.db.replaced-")
    assert answer["replaces"]["allocations"] == 2
    database = shim.state_dir / "checkpoint.db"
    assert export(shim, "--from", str(database)) == without_options(json.loads(document.read_text()))
    again = imported(shim, kept, "--yes")
    assert again["kept"] != str(kept) and again["file"] == str(kept)
    assert export(shim, "--from", str(database)) == there
    with contextlib.closing(sqlite3.connect(database)) as rows:
        assert rows.execute("SELECT count(*) FROM allocations WHERE instr(value, ?)",
                            (b"PLUGIN_DEVICES",)).fetchone() == (1,)
    asked = len(plugin.calls_of("Allocate"))
    start(shim, client)
    wait_until(lambda: "another" in held(shim), "it has its device")
    assert len(plugin.calls_of("Allocate")) == asked


# ---- when it does nothing ----

def test_it_says_first_what_it_would_do(at_work, document):
    before = files(at_work)
    told_ = imported(at_work, document, "--dry-run")
    assert not told_["imported"] and told_["kept"] is None
    assert (told_["resources"], told_["allocations"], told_["pods"], told_["orders"]) == (1, 1, 1, 1)
    assert told_["replaces"] == {"resources": 1, "allocations": 1, "pods": 1, "orders": 1,
                                 "drivers": 0, "claims": 0, "endings": 0}
    done = ctl(at_work, "checkpoint", "import", str(document), "-c", str(at_work.config_path),
               "--dry-run")
    assert done.stdout.splitlines() == [
        f"{document}: schema version 1; 1 resources, 1 allocations, 1 pods, 1 orders, 0 drivers, "
        "0 claims, 0 endings",
        "What plugins gave to containers is not in it: they are asked again when one is made anew.",
        f"{at_work.state_dir}/checkpoint.db has 1 resources, 1 allocations, 1 pods, 1 orders, "
        "0 drivers, 0 claims, 0 endings, which are kept aside and replaced"]
    assert "nothing is changed without --yes" in failed(
        at_work, "import", str(document), "-c", str(at_work.config_path), status=2)
    assert files(at_work) == before


@pytest.mark.parametrize("said, status", [("y\n", 0), ("n\n", 1)])
def test_a_person_is_asked(at_work, document, said, status):
    before = files(at_work)
    code, out, shown = answered(at_work, said, "checkpoint", "import", str(document), "-c",
                                str(at_work.config_path))
    assert code == status
    assert "which are kept aside and replaced" in shown
    assert "Make these the checkpoint? [y/N]" in shown
    assert ("imported into" in out) == (status == 0)
    assert (files(at_work) == before) == (status != 0)


@pytest.mark.parametrize("control", ["served", "off"])
def test_a_daemon_that_runs_is_left_alone(at_work, document, control):
    """Whether it answers at its control socket, or has the checkpoint open."""
    shim = at_work
    if control == "off":
        shim.control_table = {"socket": ""}
    shim.start()
    for words in (("--yes",), ("--dry-run",)):
        said = failed(shim, "import", str(document), "-c", str(shim.config_path), *words)
        assert "systemctl stop cri-device-shim.socket cri-device-shim.service" in said
        assert ("answers at" if control == "served" else "another process has it open") in said
    assert not list(shim.state_dir.glob("*replaced*"))
    database = str(shim.state_dir / "checkpoint.db")
    assert "another process has it open" in failed(shim, "verify", "--file", database)
    assert "another process has it open" in failed(shim, "export", "--from", database)


def test_a_daemon_that_does_not_accept_is_left_alone(at_work, document):
    """It hangs, with as many before it as its socket lets wait; nothing is known of its checkpoint."""
    shim = at_work
    shim.control.unlink(missing_ok=True)
    before = files(shim)
    with socket.socket(socket.AF_UNIX) as hangs, socket.socket(socket.AF_UNIX) as waits:
        hangs.bind(str(shim.control))
        hangs.listen(0)
        waits.connect(str(shim.control))
        for words in (("--yes",), ("--dry-run",)):
            said = failed(shim, "import", str(document), "-c", str(shim.config_path), *words)
            assert "answers at" in said
    assert files(shim) == before


def cut(text):
    return text[:len(text) // 2]


def changed(**values):
    return lambda text: json.dumps({**json.loads(text), **values})


def in_first(list_, **values):
    def spoil(text):
        root = json.loads(text)
        root[list_][0].update(values)
        return json.dumps(root)
    return spoil


def twice(list_):
    def spoil(text):
        root = json.loads(text)
        return json.dumps({**root, list_: root[list_] * 2})
    return spoil


@pytest.mark.parametrize("spoil,words", [
    (cut, "it is neither a checkpoint nor JSON: line"),
    (lambda _text: "", "it is neither a checkpoint nor JSON: line 1, column 0"),
    (lambda _text: KUBELETS.read_text(), "it is no document of \"checkpoint export\""),
    (lambda _text: "SQLite format 3\0" + "x" * 9000, "checkpoint.json: "),
    (changed(schemaVersion=2), "its schema version is none that this program knows"),
    (changed(more=[]), "more"),
    (in_first("pods", attempt=-1), "pods[0]: attempt is out of range"),
    (in_first("resources", name="no-domain"), "the row of resource (no-domain"),
    (in_first("allocations", ids=["g0", "g0"]), "the row of allocation ("),
    (in_first("orders", kind="wish"), "the row of order (wish"),
    (twice("pods"), "the row of pod ("),
    (in_first("orders", kind="\x1b[2J\n"), "the row of order (?[2J?"),
], ids=["cut", "empty", "foreign", "garbage", "newer", "unknown key", "range", "resource", "allocation",
        "order", "twice", "control characters"])
def test_a_file_that_is_not_right_changes_nothing(at_work, document, spoil, words):
    document.write_text(spoil(document.read_text()))
    before = files(at_work)
    for dry in ("--dry-run", "--yes"):
        said = failed(at_work, "import", str(document), "-c", str(at_work.config_path), dry)
        assert str(document) in said and words in said
    assert files(at_work) == before


def test_a_device_in_two_pods_is_told_and_taken(at_work, document):
    """One of them at most runs with it, as the runtime will say."""
    root = json.loads(document.read_text())
    root["allocations"].append({**root["allocations"][0], "podUid": "another"})
    document.write_text(json.dumps(root))
    answer = imported(at_work, document, "--dry-run")
    assert answer["sound"] and [one["kind"] for one in answer["findings"]] == ["device"]
    done = ctl(at_work, "checkpoint", "import", str(document), "-c", str(at_work.config_path), "-y")
    assert done.returncode == 0 and f"device: device g0 of resource {GPU} is in the rows" in done.stdout


def test_a_file_that_is_too_large(at_work, document):
    os.truncate(document, 100 * 1024 * 1024)
    assert "it has 104857600 bytes, more than the 67108864 that are read" in failed(
        at_work, "import", str(document), "-c", str(at_work.config_path), "--yes")


def test_into_the_place_of_one_that_cannot_be_read(at_work, document):
    """As at a start it is set aside, and where is said."""
    database = at_work.state_dir / "checkpoint.db"
    database.write_bytes(b"garbage" * 4096)
    before = files(at_work)
    answer = imported(at_work, document, "--dry-run")
    assert (answer["replaces"], answer["kept"], files(at_work)) == (None, None, before)
    done = ctl(at_work, "checkpoint", "import", str(document), "-c", str(at_work.config_path), "--yes")
    assert done.returncode == 0 and "cannot be read (" in done.stdout
    [aside] = at_work.state_dir.glob("checkpoint.db.damaged-*")
    assert f"it was set aside as {aside}" in done.stderr
    assert aside.read_bytes() == before["checkpoint.db"]
    assert export(at_work, "--from", str(database)) == without_options(json.loads(document.read_text()))


def test_a_large_checkpoint(at_work, document):
    """Of 100 MB, which is looked at, and taken."""
    database = at_work.state_dir / "checkpoint.db"
    change(database, "CREATE TABLE filler (bytes BLOB)",
           *["INSERT INTO filler VALUES (zeroblob(1048576))"] * 100)
    assert database.stat().st_size > 100_000_000
    assert export(at_work, "--from", str(database)) == json.loads(document.read_text())
    answer = imported(at_work, document, "--yes")
    assert pathlib.Path(answer["kept"]).stat().st_size > 100_000_000


def test_no_such_file(at_work, document):
    document.unlink()
    for words in (("import", str(document), "--yes"), ("verify", "-f", str(document)),
                  ("export", "--from", str(document))):
        assert "No such file" in failed(at_work, *words, status=3)


def test_settings_without_a_file_are_a_mistake(at_work):
    for words in (("verify",), ("export",)):
        assert "--config" in failed(at_work, *words, "-c", str(at_work.config_path), status=2)


def test_without_the_program_beside_it(at_work, document, directory):
    alone = shutil.copy(CTL, directory / "alone")
    done = ctl(at_work, "checkpoint", "import", str(document), "--yes", executable=alone)
    assert done.returncode == 1 and f"{directory}/cri-device-shim, which would do this: No such" in done.stderr


# ---- looking ----

def verify(shim, path):
    done = ctl(shim, "checkpoint", "verify", "--file", str(path), "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return checked("checkpoint-verify", done.stdout)


def test_one_of_a_daemon_that_was_killed(at_work, client, document):
    """With its journal, in which the last rows are; nothing of it is changed."""
    shim = at_work
    start(shim, client)
    assert ctl(shim, "cordon", GPU, "g9").returncode == 0
    live = export(shim)
    shim.kill()
    before, database = files(shim), shim.state_dir / "checkpoint.db"
    answer = verify(shim, database)
    assert answer["sound"] and (answer["pods"], answer["orders"]) == (1, 2)
    assert answer["file"] == str(database)
    assert export(shim, "--from", str(database)) == live
    assert ctl(shim, "checkpoint", "verify", "-f", str(document), "-o", "name").stdout == "checkpoint/sound\n"
    assert files(shim) == before


def test_over_a_damaged_index(at_work, document):
    """It is made anew from the rows, and what is kept of them is told to be not quite what was there."""
    database = at_work.state_dir / "checkpoint.db"
    with contextlib.closing(sqlite3.connect(database)) as rows:
        (root,), (size,), (uid,) = (rows.execute(statement).fetchone() for statement in (
            "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_pods_1'", "PRAGMA page_size",
            "SELECT uid FROM pods"))
    content = database.read_bytes()
    page = content[(root - 1) * size:root * size]
    assert page.count(uid.encode()) == 1
    database.write_bytes(content[:(root - 1) * size] + page.replace(uid.encode(), b"x" + uid.encode()[1:]) +
                         content[root * size:])
    done = ctl(at_work, "checkpoint", "import", str(document), "-c", str(at_work.config_path), "--yes")
    assert done.returncode == 0 and "an index is damaged (" in done.stderr
    [kept] = at_work.state_dir.glob("checkpoint.db.replaced-*")
    assert f"; what was there, without what was damaged, is kept as {kept}\n" in done.stdout
    assert export(at_work, "--from", str(kept))["pods"] == export(at_work, "--from", str(database))["pods"]


def test_damage_is_told_and_left_out(at_work, document):
    """Its document says so itself, and is taken; the damaged checkpoint is not."""
    database = at_work.state_dir / "checkpoint.db"
    change(database, "UPDATE pods SET checksum = checksum + 1")
    before = files(at_work)
    answer = verify(at_work, database)
    assert not answer["sound"] and answer["pods"] == 0
    assert [one["kind"] for one in answer["findings"]] == ["row"]
    said = failed(at_work, "import", str(database), "-c", str(at_work.config_path), "--yes")
    assert "nothing is imported: the checksum of a row" in said and "1 findings in all" in said
    document.unlink()
    assert ctl(at_work, "checkpoint", "export", "--from", str(database), "-f", str(document)).returncode == 0
    assert files(at_work) == before
    rest = json.loads(document.read_text())
    assert not rest["sound"] and rest["pods"] == [] and len(rest["allocations"]) == 1
    done = ctl(at_work, "checkpoint", "import", str(document), "-c", str(at_work.config_path), "--yes")
    assert done.returncode == 0 and "a damaged row of table pods" in done.stderr
    assert "The checkpoint it was taken from was damaged: rows are missing." in done.stdout
    [kept] = at_work.state_dir.glob("checkpoint.db.replaced-*")
    assert not verify(at_work, kept)["sound"]  # as it was
    answer = verify(at_work, database)  # nobody has listed the runtime since
    assert not answer["sound"] and [one["kind"] for one in answer["findings"]] == ["lost"]
    assert not export(at_work, "--from", str(database))["sound"]
    done = ctl(at_work, "checkpoint", "import", str(database), "-c", str(at_work.config_path), "--dry-run")
    assert done.returncode == 0 and "lost: rows were lost" in done.stdout


def test_what_is_imported_is_sound(at_work, document):
    done = ctl(at_work, "checkpoint", "import", str(document), "-c", str(at_work.config_path), "--yes")
    assert done.returncode == 0
    assert verify(at_work, at_work.state_dir / "checkpoint.db")["sound"]


def test_an_answer_that_nobody_takes(at_work, document):
    """It is an error, which says that it is done."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([CTL, "checkpoint", "import", str(document), "-c", str(at_work.config_path), "--yes"],
                              check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == ("error: the answer cannot be written: No space left on device; the command has done what it "
                           "was to do\n")
    assert list(at_work.state_dir.glob("checkpoint.db.replaced-*"))
