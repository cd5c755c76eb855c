"""What may include, call and name what in devicemgr/, where the compiler alone does not say."""
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANAGER = ROOT / "devicemgr"
# The folders, from the lowest: who is in one may include and call what is in it or below. The faces,
# devicemgr.h and ports.h, lie below all.
FLOORS = ("things", "books", "words", "rules", "questions", "machines", "turn")
# Parts of these know none of each other: what one has for another goes through the turn.
PEERS = ("questions", "machines")
# Rooms of their own beside the floors, and what they may include and call.
ROOMS = {"store": (), "kubelet_file": ("things",)}
# A part is a file with its header. These are one noun each in several files.
NOUNS = {"things/allocation": ("allocation", "allocations"),
         "machines/end": ("end", "end_evict", "end_sandbox", "end_stop"),
         "machines/create": ("creates", "create", "create_admit", "create_call", "create_forward", "create_take"),
         "machines/plugin": ("plugin", "plugin_dial", "registration", "builtin"),
         "machines/task": ("tasks", "task", "task_answer", "task_find", "task_moved", "task_owed", "task_users",
                          "task_why"),
         "machines/runtime": ("runtime", "listed", "rebuild", "adopt")}
LINES_MAX = 500
RULES = ("rules/usable.c", "rules/holders.c", "rules/selection.c", "rules/pool.c", "rules/replaceable.c", "rules/shown.c", "rules/choose.c",
         "rules/wanted.c", "rules/kept_back.c", "rules/releasable.c", "rules/without_driver.c", "rules/ended.c",
         "rules/tainted.c", "rules/evictable.c", "rules/claimed.c", "rules/lapsed.c",
         "rules/leaving.c", "rules/lifted.c", "rules/lifted_claims.c")
THINGS = ("allocation", "claim", "driver", "ending", "order", "pod", "sandbox", "resource", "endpoint", "devices",
          "shutdown")
FOUND = (*THINGS, "device", "kubelet_hold", "waiter", "create", "call", "task", "claimant")


def code_of(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def includes_of(path):
    return re.findall(r'#include "devicemgr/([\w/]+\.h)"', code_of(path))


def floor_of(name):
    """things/pod.c: things; a face: "" """
    return name.rpartition("/")[0]


def part_of(name):
    folder, _, stem = name.rpartition(".")[0].rpartition("/")
    nouns = [noun for noun, stems in NOUNS.items() if noun.startswith(folder + "/") and stem in stems]
    return nouns[0] if nouns else f"{folder}/{stem}"


def sources(root, ending):
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob(f"*{ending}"))}


def defined_in(path):
    """The functions and tables of a source that others may name."""
    code = code_of(path)
    functions = re.findall(r"^(?!static\b|typedef\b|return\b)[a-zA-Z][\w \*]*[ \*](\w+)\([^;{}]*\)\n\{", code, re.MULTILINE)
    tables = re.findall(r"^(?!static\b|extern\b|typedef\b)[a-zA-Z][\w \*]*[ \*](\w+)(?:\[\w*\])* =", code, re.MULTILINE)
    return set(functions + tables)


@functools.cache
def calls(root):
    """{(from, to): names} between files."""
    codes = {name: code_of(path) for name, path in sources(root, ".c").items()}
    homes = {word: name for name, path in sources(root, ".c").items() for word in defined_in(path)}
    found = {}
    for name, code in codes.items():
        named = re.sub(r"\b(struct|enum) \w+|(\.|->)\w+", "", code)  # types and members have names of their own
        for word in set(re.findall(r"\b[a-zA-Z]\w+\b", named)) & set(homes):
            if homes[word] != name and not re.search(rf"^static [^;{{}}=]*\b{word}\(", code, re.MULTILINE):
                found.setdefault((name, homes[word]), set()).add(word)
    return found


@functools.cache
def includes(root):
    return {(name, included): {included} for ending in (".c", ".h")
            for name, path in sources(root, ending).items() for included in includes_of(path)}


def may(above, below):
    """Whether a file in the one may use a file in the other."""
    if below == "" or above == below:
        return True
    if above in ROOMS:
        return below in ROOMS[above]
    return above in FLOORS and below in FLOORS and FLOORS.index(above) > FLOORS.index(below)


def climbing(root):
    """Includes and calls that go up, or out of a room."""
    return sorted({(name, used) for arrows in (includes(root), calls(root)) for name, used in arrows
                   if not may(floor_of(name), floor_of(used))})


def circle(arrows):
    """Some circle among (from, to), as a list; empty: there is none."""
    after = {}
    for name, used in arrows:
        if name != used:
            after.setdefault(name, set()).add(used)
    while True:
        ends = {used for useds in after.values() for used in useds} - set(after)
        for name in after:
            after[name] -= ends
        if not any(not useds for useds in after.values()):
            break
        after = {name: useds for name, useds in after.items() if useds}
    return sorted(after)


def circles(root):
    """Of files that call each other, of nouns that do, of headers that include each other."""
    parts = {(part_of(name), part_of(used)) for name, used in calls(root)}
    headers = {(name, used) for name, used in includes(root) if name.endswith(".h")}
    return circle(calls(root)) or circle(parts) or circle(headers)


def peers(root):
    """Calls from one machine, or question, to another."""
    return sorted({(part_of(name), part_of(used)) for name, used in calls(root)
                   if floor_of(name) == floor_of(used) and floor_of(name) in PEERS and part_of(name) != part_of(used)})


def test_floors_keep_their_order():
    assert climbing(MANAGER) == []


def test_no_circle():
    assert circles(MANAGER) == []


def test_machines_know_none_of_each_other():
    assert peers(MANAGER) == []


def test_what_was_read():
    """The three above have read what there is: each folder, and calls between all neighbours."""
    folders = {path.name for path in MANAGER.iterdir() if path.is_dir()}
    assert folders == set(FLOORS) | set(ROOMS)
    found = calls(MANAGER)
    assert len(found) > 250
    assert len(includes(MANAGER)) > 250
    assert {floor_of(name) for name, used in found if floor_of(used) == "things"} >= set(FLOORS) - {"questions"}
    for noun, stems in NOUNS.items():
        assert all((MANAGER / noun).with_name(f"{stem}.c").exists() for stem in stems), noun


def test_the_readme_says_what_may_live_where():
    text = (MANAGER / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    assert rows == [*reversed(FLOORS), *ROOMS]


def test_the_way_of_a_create_is_the_one_that_the_readme_has():
    """Each function is where it says, and the file of the one above it calls it."""
    text = (MANAGER / "README.md").read_text()
    block = text.partition("## The way of a create\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^    ( *)(\w+)\(\) +(\w+/\w+\.c)", block, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^    ", block, re.MULTILINE)) > 15
    above = {}
    for indent, function, name in rows:
        assert function in defined_in(MANAGER / name), (function, name)
        depth = len(indent)
        assert depth == 0 or re.search(rf"\b{function}\(", code_of(MANAGER / above[depth - 2])), (function, above[depth - 2])
        above[depth] = name


def test_the_turn_alone_knows_them_all():
    """struct devicemgr is no part's below it."""
    assert {floor_of(name) for name, included in includes(MANAGER) if included == "turn/turn.h"} == {"turn"}
    assert {floor_of(name) for name, path in sources(MANAGER, ".c").items()
            if re.search(r"\bstruct devicemgr \*", code_of(path))} == {"turn"}


def test_no_file_is_long():
    long = {name: lines for ending in (".c", ".h") for name, path in sources(MANAGER, ending).items()
            if (lines := len(path.read_text().split("\n")) - 1) > LINES_MAX}
    assert long == {}


FILES = {"things/low.c": '#include "devicemgr/things/low.h"\n\nint low_get(void)\n{\n    return 1;\n}\n',
         "things/low.h": "int low_get(void);\n",
         "books/high.c": '#include "devicemgr/books/high.h"\n\nint high_get(void)\n{\n    return low_get();\n}\n',
         "books/high.h": '#include "devicemgr/things/low.h"\nint high_get(void);\n',
         "machines/one.c": "void one_do(void)\n{\n    high_get();\n}\n",
         "machines/two.c": "void two_do(void)\n{\n    low_get();\n}\n",
         "store/disk.c": "void disk_do(void)\n{\n}\n"}


def build(directory, **changes):
    for name, text in {**FILES, **{key.replace("__", "/") + ".c": text for key, text in changes.items()}}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def test_a_house_in_order_has_nothing_to_find(directory):
    root = build(directory)
    assert calls(root) == {("books/high.c", "things/low.c"): {"low_get"},
                           ("machines/one.c", "books/high.c"): {"high_get"},
                           ("machines/two.c", "things/low.c"): {"low_get"}}
    assert climbing(root) == circles(root) == peers(root) == []


@pytest.mark.parametrize("find, changes, found", [
    (climbing, {"things__low": "int low_get(void)\n{\n    return high_get();\n}\n"}, [("things/low.c", "books/high.c")]),
    (climbing, {"things__other": '#include "devicemgr/books/high.h"\n'}, [("things/other.c", "books/high.h")]),
    (climbing, {"store__disk": "void disk_do(void)\n{\n    low_get();\n}\n"}, [("store/disk.c", "things/low.c")]),
    (climbing, {"books__book": "void book_do(void)\n{\n    disk_do();\n}\n"}, [("books/book.c", "store/disk.c")]),
    (climbing, {"new__room": "void room_do(void)\n{\n    low_get();\n}\n"}, [("new/room.c", "things/low.c")]),
    (circles, {"books__a": "void a_do(void)\n{\n    b_do();\n}\n", "books__b": "void b_do(void)\n{\n    a_do();\n}\n"},
     ["books/a.c", "books/b.c"]),
    (circles, {"machines__create": "void create_do(void)\n{\n    create_take();\n}\n",
               "machines__create_take": "void create_take(void)\n{\n    create_do();\n}\n"},
     ["machines/create.c", "machines/create_take.c"]),
    (circles, {"machines__create": "void create_do(void)\n{\n    other_do();\n}\n",
               "machines__create_take": "void create_take(void)\n{\n}\n",
               "machines__other": "void other_do(void)\n{\n    create_take();\n}\n"},
     ["machines/create", "machines/other"]),
    (peers, {"machines__one": "void one_do(void)\n{\n    two_do();\n}\n"}, [("machines/one", "machines/two")]),
])
def test_what_is_out_of_order_is_found(directory, find, changes, found):
    assert find(build(directory, **changes)) == found


# ---- rules ----


def movers():
    """Functions that are given a thing to change it."""
    found = set()
    for path in sources(MANAGER, ".h").values():
        found |= set(re.findall(r"\b(\w+)\(\s*(?:struct \w+ \*\w+,\s*)*struct (?:%s) \*\*?\w+"
                                % "|".join(THINGS), code_of(path)))
    return found - {"resources_find"}  # the table's head is not changed


def test_what_is_found_in_a_const_table_is_const():
    given = [f"{name}: {function}" for name, path in sources(MANAGER, ".h").items()
             for kind, function in re.findall(r"^((?:const )?struct (?:%s) \*(?:const )?\*?)(\w+)\(\s*const struct" % "|".join(FOUND),
                                              code_of(path), re.MULTILINE)
             if not kind.startswith("const")]
    assert given == []
    assert len([1 for path in sources(MANAGER, ".h").values()
                for _ in re.findall(r"^const struct (?:%s) \*" % "|".join(FOUND), code_of(path), re.MULTILINE)]) > 7


def test_no_rule_can_move_a_thing():
    """rule.h forbids what a const state would not, in alphabetical order."""
    poison = re.findall(r"#pragma GCC poison (.*)", (MANAGER / "rules" / "rule.h").read_text())
    assert len(movers()) > 40
    assert " ".join(poison).split() == sorted(movers())


def test_what_is_called_like_a_unit_test_is_a_program():
    """Which there are is told by their names; what several use is called otherwise."""
    for path in (ROOT / "tests/unit").glob("test_*"):
        assert path.suffix in (".c", ".cpp") and re.search(r"^int main\(", path.read_text(), re.MULTILINE), path.name


def test_rules_end_their_includes_with_rule_h():
    assert {path.name for path in (MANAGER / "rules").glob("*.c")} == {name.rpartition("/")[2] for name in RULES} | {"look.c"}
    for name in RULES:
        if not name.endswith("choose.c"):  # it sees no state at all
            assert includes_of(MANAGER / name)[-1] == "rules/rule.h", name
    assert "books/state.h" not in includes_of(MANAGER / "rules" / "choose.c")
