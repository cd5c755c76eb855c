"""The manual pages: that man reads them without a warning, and that they have what there is."""

import re
import subprocess
import tomllib

import pytest

import built
from shim import BINARY, ROOT

EXAMPLE = (ROOT / "config/example.toml").read_text()
SETTINGS = BINARY.parents[1] / built.PAGE
PAGES = [*sorted((ROOT / "config").glob("*.[1-8]")), SETTINGS]
NAMES = {page.name for page in PAGES}
PROGRAMS = ["cri-device-shim", "cri-device-shim-bridge", "cri-device-shim-agent"]


def shown(page, width=1000):
    """On a terminal so wide, by default so that no line is broken; and what man warns of."""
    done = subprocess.run(["env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", f"MANWIDTH={width}",
                           "man", "--warnings", "--local-file", page],
                          check=True, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr


def test_the_pages_there_are():
    assert NAMES == {"cri-device-shim.8", "cri-device-shim-bridge.8", "cri-device-shim-agent.8",
                     "cri-device-shimctl.1", "cri-device-shim.toml.5"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_warns_of_nothing(page):
    text, warnings = shown(page, width=80)
    assert warnings == "" and "SEE ALSO" in text
    assert text.startswith(page.name.rpartition(".")[0].upper() + "(")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_that_a_page_names_are_there(page):
    named = re.findall(r"\b(cri-device-shim[a-z.-]*)\((\d)\)", shown(page)[0])
    assert named and {f"{name}.{section}" for name, section in named} <= NAMES


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_programs_options(program):
    """Those of its --help, with their letters; it has no other."""
    told = subprocess.run([BINARY.parent / program, "--help"], check=True, capture_output=True,
                          text=True, timeout=60).stdout
    options = re.findall(r"^  (?:(-\S),|   ) (--[a-z-]+)", told, re.MULTILINE)
    text = (ROOT / f"config/{program}.8").read_text().replace("\\-", "-")
    section = text.split("\n.SH OPTIONS\n")[1].split("\n.SH ")[0]
    said = re.findall(r'^\.B[RI]* (?:(-\S) ", " )?(--[a-z-]+)', section, re.MULTILINE)
    assert len(options) >= 4 and sorted(said) == sorted(options)


def keys(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from keys(value, f"[{key}]")
        else:
            yield prefix or "SETTINGS", key, value


def test_each_setting():
    """In its table's section, with its default as the example has it, and each table of many."""
    sections = dict(re.findall(r"^(\S.*)\n((?:(?!\S).*\n)*)", shown(SETTINGS)[0], re.MULTILINE))
    checked = 0
    for section, key, value in keys(tomllib.loads(EXAMPLE)):
        tags = dict(re.findall(r"^       (\w+)(?: = (.*))?$", sections[section], re.MULTILINE))
        assert key in tags, (section, key)
        if tags[key]:  # none of the older name of another
            assert tomllib.loads(f"it = {tags[key]}")["it"] == value, (section, key)
            checked += 1
    assert checked > 40
    assert {name for name in sections if name.startswith("[[")} == set(
        re.findall(r"^# (\[\[.*\]\])$", EXAMPLE, re.MULTILINE))


def test_what_a_reload_changes():
    """As the table of the settings has it: a key of each kind, and the older name of one."""
    sections = dict(re.findall(r"^(\S.*)\n((?:(?!\S).*\n)*)", shown(SETTINGS)[0], re.MULTILINE))
    for section, key, live in [("[plugins]", "hold", True), ("[plugins]", "plugin_dir", False),
                               ("[bridge]", "mask", False), ("[dra]", "mask", True),
                               ("SETTINGS", "log_level", True)]:
        words = re.search(rf"^       {key}(?: = .*)?\n((?: {{8,}}.*\n)+)", sections[section], re.MULTILINE)[1]
        assert words.rstrip().endswith("A reload changes it.") == live, key
