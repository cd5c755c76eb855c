"""What the documents and comments say of the source, beside the source."""

import itertools
import os
import pathlib
import re
import tomllib
from xml.etree import ElementTree

import pytest

from shim import ROOT
from sources import listed

FILES = listed()
DOCUMENTS = [name for name in FILES if name.endswith(".md")]
README = (ROOT / "README.md").read_text()
EXAMPLE = (ROOT / "config/example.toml").read_text()


def text_of(name):
    return (ROOT / name).read_text(errors="replace")


def anchors(document):
    """Those that GitHub makes of its headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(words.replace(" ", "-"))
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)\s]+)\)", text_of(name))
    for link in links:
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_no_section_of_a_document_that_is_not_here():
    """A section sign follows the name of an RFC, in the same sentence or list."""
    lost = []
    for name in FILES:
        text = text_of(name) if name != "tests/integration/test_documents.py" else ""
        for match in re.finditer("§", text):
            before = text[max(0, match.start() - 120):match.start()]
            if not re.search(r"RFC[\s#/*]+\d+", before):
                lost.append(f"{name}: {before[-60:]!r}")
    assert not lost, "\n".join(lost)


def test_no_document_that_is_not_here():
    """Whatever is called *.md exists, at the root, beside who names it, or below it."""
    lost = []
    for name in FILES:
        for document in re.findall(r"[\w./-]*\w\.md\b", text_of(name)):
            places = (ROOT, (ROOT / name).parent, ROOT / "tests/integration")
            if not any((place / document).exists() for place in places):
                lost.append(f"{name}: {document}")
        lost += [f"{name}: {words}" for words in
                 re.findall(r"[-\w]+-facts\b|\bissues? #?\d+\b", text_of(name))
                 if name != "tests/integration/test_documents.py"]
    assert not lost, "\n".join(lost)


def test_what_is_typed_can_be_executed():
    """A program of ours that begins a command, in lines of code or, with words behind it, within a text."""
    typed = {path for name in DOCUMENTS for path in re.findall(
        r"(?:^ {4,}(?:\$ )?|&& |`)((?:tests|config)/[\w./-]+\.(?:py|sh))(?= |$)", text_of(name), re.MULTILINE)}
    assert {"tests/run.sh", "tests/bench/scale.py", "tests/bench/scale_curves.py"} <= typed
    assert not [path for path in typed if not os.access(ROOT / path, os.X_OK) or not text_of(path).startswith("#!")]


def test_pictures_fit():
    """A terminal beside another: 100 columns."""
    wide = [f"{name}:{number}" for name in DOCUMENTS
            for number, line in enumerate(text_of(name).split("\n"), 1)
            if re.search("[│┌└├▶▼▲◀]", line) and line.startswith("    ") and len(line) > 100]
    assert not wide


def test_the_picture():
    """It can be read aloud and in the dark, and names the programs there are."""
    name = re.search(r"!\[[^\]]+\]\((\S+\.svg)\)", README)[1]
    picture = ElementTree.fromstring(text_of(name))
    space = "{http://www.w3.org/2000/svg}"
    said = "".join(picture.itertext())
    assert picture.find(f"{space}title").text and picture.find(f"{space}desc").text
    assert "@media (prefers-color-scheme: dark)" in picture.find(f"{space}style").text
    assert not re.search(r"href|url\((?!#)|@import", text_of(name))
    programs = set(re.findall(r"^add_executable\((cri-device-shim\S*)",
                              "".join(text_of(one) for one in FILES if one.startswith("shim/")
                                      and one.endswith((".cmake", ".txt"))), re.MULTILINE))
    assert {"cri-device-shim", "cri-device-shim-bridge", "cri-device-shim-agent"} <= programs
    assert set(re.findall(r"cri-device-shim[-\w]*", said)) <= programs


# Columns of the comparison's tables, without the shim and with it.
FAILED, DOUBLE, SECONDS, OTHERS = (2, 8), (4, 10), (6, 12), (7, 13)


@pytest.mark.parametrize("said,what,columns,figures", [
    ("15 of 30 pods whose plugin was back 20 s after the node; with the shim none",
     "power off; the plugin comes 20 s after", FAILED, "15 0"),
    ("3 of 30 while it was killed ten times; with the shim none", "the plugin is killed 10 times", FAILED, "3 0"),
    ("one that asks for no device took 56 s; with the shim 2 s", "the plugin hangs", OTHERS, "56 2"),
    ("lost its record of who has which (6 containers)", "the kubelet is restarted, its device checkpoint", DOUBLE, "6 0"),
    ("whose containers do not end (20 containers; with the shim none of either)", "pods are deleted by force", DOUBLE, "20 0"),
    ("a driver was killed four times ran after 14 s, without the shim after 97", "the DRA driver is killed 4 times",
     SECONDS, "97 14")])
def test_figures_of_the_front_page(said, what, columns, figures):
    """They are those that were measured."""
    assert said in " ".join(README.split())
    row = re.search(rf"^\| ({what}.*)\|$", text_of("tests/cluster/RESULTS.md"), re.MULTILINE)[1].split("|")
    assert " ".join(row[one].split()[0] for one in columns) == figures


def test_memory_on_the_front_page():
    grown = {row[0]: row[1:3] for row in rows(text_of("config/OPERATIONS.md"), "| | an empty node | a full one")}
    of = [[one.removesuffix(" MiB") for one in grown[f"memory of the {name}"]] for name in ("daemon", "bridge")]
    assert f"{of[0][0]} and {of[1][0]} MiB on an empty node, {of[0][1]} and {of[1][1]} on a full one" in README


# ---- settings ----

def flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def rows(text, heading):
    """The table's rows behind a heading of its first line, as lists of cells."""
    table = text.split(heading, 1)[1].split("\n\n", 1)[0]
    for line in table.split("\n")[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def words(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_settings_of_the_readme():
    """Its keys and defaults are those of the example, which says all of them."""
    example = dict(flat(tomllib.loads(EXAMPLE)))
    checked = 0
    for keys, defaults, _ in rows(README, "| key | default | |"):
        section = ""
        for key, default in itertools.zip_longest(words(keys), words(defaults)):
            if key.startswith("[["):
                assert f"# {key}\n" in EXAMPLE
                continue
            if key.startswith("."):
                key = section + key
            section = key.rpartition(".")[0]
            value = example[key]
            if isinstance(value, bool):
                value = str(value).lower()
            elif isinstance(value, int):
                value = str(value)
            elif isinstance(value, list):
                value = value[0] if value else None
            value = None if value == "" else value
            assert default == value, key
            checked += 1
    assert checked > 15


def test_the_example_says_every_setting():
    """Each key that the loader knows, and no other (the loader refuses those)."""
    known = set(re.findall(r'^\s*(?:KEY|LIST)\(\w+, "(\w+)"', text_of("config/schema.c"), re.MULTILINE))
    assert len(known) > 30
    said = set(re.findall(r"(?:^|[#{,]) ?(\w+) = ", EXAMPLE, re.MULTILINE))
    tables = {"log", "metrics", "plugins", "annotations", "bridge", "cluster", "control", "device", "resource", "driver", "taint",
              "period"}
    assert known - said - tables == set()


# ---- refusals ----

def codes():
    """What a create can be refused with: by the device manager, and by the relay itself."""
    reasons = text_of("devicemgr/words/reason.c")
    relay = "".join(text_of(name) for name in FILES if re.match(r"shim/relay/.*\.c$", name))
    found = set(re.findall(r"\bCODE_(\w+),", reasons))
    return found | set(re.findall(r"refuse\w*\([^;]*?RPC_(\w+),", relay))


def test_codes_of_the_refusals():
    """No other stands there, but those of claims."""
    text = text_of("config/OPERATIONS.md").split("\n## Refusals\n")[1].split("\n## ")[0]
    told = set(re.findall(r"`([A-Z_]{6,})`", text))
    assert told == codes() | {"UNKNOWN"}
    assert len(told) >= 7


# ---- names in the documents ----

SOURCES = {name: text_of(name) for name in FILES if name.endswith((".c", ".h", ".cpp"))}
PLACES = ("", "shim/", "shim/relay/", "tests/")


def exists(path):
    """From the root, from shim/, or just a file's name."""
    path = path.rstrip("/")
    return (any((ROOT / place / path).exists() for place in PLACES)
            or any(pathlib.PurePath(name).name == path for name in FILES))


def test_names_in_the_architecture():
    """Files and functions that it leads through are there."""
    text = text_of("shim/ARCHITECTURE.md")
    names = [word for word in words(text) if re.fullmatch(r"[\w./*-]+\.(c|h|py|sh|proto|service)", word)
             and not word.startswith("pkg/") and "*" not in word]
    assert len(names) > 40
    assert [word for word in names if not exists(word)] == []
    functions = [word.removesuffix("()") for word in words(text) if re.fullmatch(r"\w+\(\)", word)]
    assert len(functions) > 10
    assert [word for word in functions
            if not any(re.search(rf"\b{word}\(", source) for source in SOURCES.values())] == []


def test_tests_in_the_device_managers_readme():
    """Each test that it names as the proof of a rule is there."""
    levels = {level: "".join(text_of(name) for name in FILES if name.startswith(f"tests/{level}/"))
              for level in ("e2e", "integration")}
    lost, named = [], 0
    for proofs in re.findall(r"^- tests: (.*(?:\n  .*)*)", text_of("devicemgr/README.md"), re.MULTILINE):
        for part in " ".join(proofs.split()).split(";"):
            name, colon, tests = part.strip().partition(": ")
            if not colon:
                continue  # words
            file = name if name.startswith("test_") else f"test_devicemgr_{name}"
            source = levels.get(name) or SOURCES.get(f"tests/unit/{file}.c", "")
            named += len(tests.split(","))
            lost += [f"{name}: {test.strip()}" for test in tests.split(",")
                     if not re.search(rf"\b{test.strip()}\b", source)]
    assert not lost, "\n".join(lost)
    assert named > 300


def test_tests_that_show_a_defence():
    """Each that .github/SECURITY.md names, "LEVEL/FILE: TEST, TEST; ...", is there."""
    lost, named = [], 0
    for *_, proofs in rows(text_of(".github/SECURITY.md"), "| who | at worst | what keeps it at that | shown by |"):
        for part in filter(None, proofs.split(";")):
            file, tests = part.strip().split(": ")
            (source,) = [text_of(name) for name in FILES if re.fullmatch(rf"tests/{file}\.(c|py)", name)]
            found = set(re.findall(r"^(?:def|static void) (\w+)\(", source, re.MULTILINE))
            lost += [f"{file}: {test}" for test in tests.split(", ") if test not in found]
            named += len(tests.split(", "))
    assert not lost, "\n".join(lost)
    assert named > 40


def test_the_device_managers_rules_fit():
    assert [line for line in text_of("devicemgr/README.md").split("\n") if len(line) > 120] == []
