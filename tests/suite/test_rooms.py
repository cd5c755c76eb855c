"""Which room includes which: none the neighbour that only the daemon's wiring ties it to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What a room may include besides itself: rooms of shim/, and other top directories. "shim" are the
# files that lie in shim/ itself.
MAY = {
    "shim/rpc": {"shim", "cri-proto"},
    "shim/plugins": {"shim", "shim/rpc", "cri-proto", "devicemgr", "config"},
    "shim/registry": {"shim", "shim/rpc", "cri-proto"},
    "shim/dra": {"shim", "shim/plugins", "shim/rpc", "cri-proto"},
    "shim/runtime": {"shim", "shim/rpc", "cri-proto", "devicemgr"},
    "shim/core": {"shim", "shim/plugins", "shim/registry", "shim/dra", "shim/runtime", "cri-proto", "devicemgr",
                  "config"},
    "shim/events": {"shim", "cri-proto"},
    "shim/kubelet": {"shim", "shim/rpc", "shim/core", "cri-proto", "devicemgr", "config"},
    "shim/cluster": {"shim", "shim/rpc", "shim/core", "cri-proto", "config", "devicemgr"},
    "shim/agent": {"shim", "shim/rpc", "cri-proto", "config"},
    "shim/relay": {"shim", "shim/rpc", "shim/core", "cri-proto", "devicemgr"},
    "shim/metrics": {"shim", "shim/rpc", "shim/core", "shim/kubelet", "shim/relay", "config", "devicemgr"},
    "shim/bridge": {"shim", "shim/rpc", "cri-proto", "config"},
    "shim/control": {"shim", "shim/rpc", "shim/core", "shim/events", "cri-proto", "config", "devicemgr"},
    "shim/answers": {"shim", "shim/rpc", "cri-proto"},
    # It shows what control tells, by the server that serves the metrics.
    "shim/page": {"shim", "shim/answers", "shim/control", "shim/core", "shim/events", "shim/metrics", "cri-proto"},
    "shim/ctl": {"shim", "shim/answers", "shim/rpc", "cri-proto"},
    # What the program does with a checkpoint in place of the daemon: by the rules of its start, and its store.
    "shim/offline": {"shim", "shim/core", "cri-proto", "devicemgr", "config"},
    "shim": {"cri-proto", "devicemgr", "config"},
    "devicemgr": {"cri-proto"},
    "config": {"cri-proto"},
    "cri-proto": set(),
}
# Files of shim/ that run before any room, or tie them: main.c calls the others.
TYING = {"daemon.c": {"shim/cluster", "shim/control", "shim/core", "shim/events", "shim/kubelet", "shim/metrics", "shim/page", "shim/relay", "shim/rpc"},
         "daemon_gate.c": {"shim/core", "shim/kubelet", "shim/relay"},
         "daemon_stop.c": {"shim/cluster", "shim/control", "shim/core", "shim/events", "shim/kubelet", "shim/metrics",
                           "shim/page", "shim/relay", "shim/rpc"},
         "daemon_events.c": {"shim/events"},
         "daemon_events.h": {"shim/events"},
         "daemon_settings.h": {"shim/core", "shim/kubelet"},
         "daemon_report.c": {"shim/cluster", "shim/control", "shim/core", "shim/kubelet", "shim/rpc"},
         "daemon_report.h": {"shim/cluster", "shim/control", "shim/core", "shim/events", "shim/kubelet", "shim/rpc"},
         "kubelet_import.c": {"shim/kubelet"},
         "main.c": {"shim/offline"},
         "token_list.c": {"shim/dra", "shim/kubelet"}}
ENDINGS = (".c", ".h", ".cpp", ".hpp")


def _room(path):
    """The room of a file, given by its path from the top."""
    parts = Path(path).parts
    return "/".join(parts[:2]) if parts[0] == "shim" and len(parts) > 2 else parts[0]


def _foreign(root):
    """(file, include) for each that its room may not have, how many files were read, and
    {room: rooms that it includes, and may}."""
    found, read, used = [], 0, {room: set() for room in MAY}
    for top in ("shim", "devicemgr", "config", "cri-proto"):
        for file in sorted(path for path in (root / top).rglob("*") if path.suffix in ENDINGS):
            name = file.relative_to(root).as_posix()
            room = _room(name)
            may = MAY.get(room, set()) | {room}
            if room == "shim":
                may |= TYING.get(file.name, set())
            read += 1
            for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read_text(), re.MULTILINE):
                # Without a directory it is a neighbour, or generated.
                if "/" not in included or _room(included) == room:
                    continue
                if _room(included) not in may:
                    found.append((name, included))
                elif _room(included) in MAY.get(room, ()):
                    used[room].add(_room(included))
    return found, read, used


def test_rooms_keep_to_themselves():
    found, read, used = _foreign(ROOT)
    assert found == []
    assert read > 200
    assert used == MAY, "a room may include what it does not"


def test_every_room_has_its_row():
    """One without may include nothing; one that is gone has no row."""
    rooms = {f"shim/{path.name}" for path in (ROOT / "shim").iterdir() if path.is_dir()}
    assert rooms == {room for room in MAY if room.startswith("shim/")}


@pytest.mark.parametrize("file, included", [
    ("shim/relay/calls.h", "shim/kubelet/gate.h"),
    ("shim/kubelet/feed.c", "shim/plugins/registrar.h"),
    ("shim/plugins/builtins.c", "shim/core/host.h"),
    ("shim/bridge/bridge.c", "devicemgr/devicemgr.h"),
    ("shim/control/control.c", "shim/kubelet/feed.h"),
    ("shim/ctl/main.c", "shim/control/control.h"),
    ("shim/log.c", "shim/rpc/rpc.h"),
    ("shim/new/new.c", "shim/rpc/rpc.h"),
    ("devicemgr/rules/rule.c", "shim/log.h"),
])
def test_one_that_does_not_is_found(directory, file, included):
    (directory / file).parent.mkdir(parents=True)
    (directory / file).write_text(f'#include <stdio.h>\n#  include "{included}"\n')
    assert _foreign(directory)[0] == [(file, included)]


def test_others_see_the_device_manager_s_face_only():
    """Its headers at the top, and its two rooms that are no part of it; but for the one that has keys as a checkpoint has them."""
    behind = [(path.relative_to(ROOT).as_posix(), name) for path in sorted((ROOT / "shim").rglob("*.[ch]"))
              for name in re.findall(r'^#include "devicemgr/(\w+/\w+\.h)"', path.read_text(), re.MULTILINE)
              if not name.startswith(("store/", "kubelet_file/"))]
    assert behind == [("shim/kubelet_import.c", "things/mem.h")]


def test_a_table_without_memory_aborts():
    """Which is a line of the log (shim/log.h); uthash's own way is exit(-1), without a word."""
    silent = [path.relative_to(ROOT).as_posix() for room in ("shim", "devicemgr")
              for path in sorted((ROOT / room).rglob("*.[ch]")) if "#include <uthash.h>" in (text := path.read_text())
              and not re.search(r"^#define (uthash_fatal\(message\) abort\(\)|HASH_NONFATAL_OOM 1)", text, re.MULTILINE)]
    assert not silent


def test_no_test_forks_beside_grpc():
    """Whose threads a fork leaves behind, with what they have locked: subprocess without preexec_fn does not fork. But for the one
    that forks before there are threads."""
    forks = [path.relative_to(ROOT).as_posix() for level in ("lib", "integration", "e2e", "cluster", "soak", "faults", "bench")
             for path in sorted((ROOT / "tests" / level).glob("*.py"))
             if path.name != "nursery.py" and re.search(r"preexec_fn=|\bos\.fork\(|\bpty\.fork\(", path.read_text())]
    assert not forks
