"""What may include and name what, where the compiler alone does not say."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANAGER = ROOT / "devicemgr"
RULES = ("usable.c", "holders.c", "selection.c", "choose.c")
THINGS = ("allocation", "pod", "sandbox", "resource", "endpoint", "devices")


def code_of(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def includes_of(name):
    return re.findall(r'#include "devicemgr/(\w+\.h)"', (MANAGER / name).read_text())


def movers():
    """Functions that are given a thing to change it."""
    found = set()
    for header in MANAGER.glob("*.h"):
        found |= set(re.findall(r"\b(\w+)\(\s*(?:struct \w+ \*\w+,\s*)*struct (?:%s) \*\*?\w+"
                                % "|".join(THINGS), code_of(header)))
    return found - {"resources_find"}  # the table's head is not changed


def test_no_rule_can_move_a_thing():
    """rule.h forbids what a const state would not."""
    forbidden = set(" ".join(re.findall(r"#pragma GCC poison (.*)", (MANAGER / "rule.h").read_text())).split())
    assert len(movers()) > 40
    assert forbidden == movers()


def test_rules_end_their_includes_with_rule_h():
    for name in RULES:
        if name != "choose.c":  # it sees no state at all
            assert includes_of(name)[-1] == "rule.h", name
    assert "state.h" not in includes_of("choose.c")


def test_rules_include_no_machine():
    """Neither do their headers: look.h and reason.h are words, demand.h a thing."""
    allowed = {"choose.h", "demand.h", "devices.h", "facts.h", "holders.h", "ids.h", "limits.h", "look.h", "request.h", "rule.h",
               "selection.h", "usable.h"}
    for name in RULES:
        for file in (name, name.replace(".c", ".h")):
            assert set(includes_of(file)) <= allowed, file
