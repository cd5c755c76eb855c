"""The parts of a session stand on each other in the order that session/inside.h lists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELAY = Path("shim/relay")
LIST = RELAY / "session/inside.h"

# What a part knows of one above it: a struct that it embeds or works on. It calls nothing of it.
STRUCTS = {("inside", "late_acks"), ("inside", "settings_queue"), ("inside", "windows"),
           ("windows", "stream"), ("call_message", "stream")}


def _rows(root):
    """The list's rows from above, each a list of parts: those of one row do not know each other."""
    comment = (root / LIST).read_text().split("*/")[0]
    lines = re.findall(r"^ \*   (\S.*)$", comment, re.MULTILINE)
    return [re.findall(r"(?:^|  )(?:\.\./)?(\w+)(?=  )", line) for line in lines]


def _wrong(root):
    """(file, what) for each include and call that goes up or beside, the parts that were read, and
    {(part, part above)} of the structs that are known."""
    rows = _rows(root)
    row_of = {part: at for at, row in enumerate(rows) for part in row}
    files = sorted((root / RELAY / "session").glob("*.[ch]"))
    files += sorted((root / RELAY).glob("session.c"))
    wrong, known = [], set()
    for file in files:
        name, part, text = file.relative_to(root).as_posix(), file.stem, file.read_text()
        if part not in row_of:
            wrong.append((name, "is not in the list"))
            continue
        for other in re.findall(r'^\s*#\s*include\s+"shim/relay/session/(\w+)\.h"', text, re.MULTILINE):
            if other == part or row_of.get(other, -1) > row_of[part]:
                continue
            known.add((part, other))
            if (part, other) not in STRUCTS:
                wrong.append((name, f"includes {other}"))
            elif re.search(rf"\b{other}_\w+\(", text):
                wrong.append((name, f"calls {other}"))
    return wrong, {file.stem for file in files}, known


def test_parts_call_downwards():
    wrong, parts, known = _wrong(ROOT)
    assert wrong == []
    assert sorted(parts) == sorted(part for row in _rows(ROOT) for part in row)
    assert known == STRUCTS, "a struct from above is declared and not known"


@pytest.mark.parametrize("file, line, what", [
    ("stream.c", '#include "shim/relay/session/ending.h"', "includes ending"),
    ("withheld.h", '#include "shim/relay/session/dispatch.h"', "includes dispatch"),
    ("from_client.c", '#include "shim/relay/session/from_runtime.h"', "includes from_runtime"),
    ("inside.h", '#include "shim/relay/session/stream.h"', "includes stream"),
    ("windows.c", '#include "shim/relay/session/stream.h"\nstream_free(s, st);', "calls stream"),
    ("more.c", "", "is not in the list"),
])
def test_one_that_does_not_is_found(directory, file, line, what):
    session = directory / RELAY / "session"
    session.mkdir(parents=True)
    (directory / LIST).write_text((ROOT / LIST).read_text().split("#include")[0])
    with (session / file).open("a") as out:
        out.write(f"{line}\n")
    assert _wrong(directory)[0] == [((RELAY / "session" / file).as_posix(), what)]
