"""Why branches of the core are not taken: the list of reasons, and that it is held against what is measured."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/coverage"))

import branches  # noqa: E402
import reasons  # noqa: E402

LISTED = """# What it is.

Of one reason,
in two lines.
    devicemgr/a.c: first
        1: if (a)
        2: } else if (b) {
    devicemgr/a.c: second
        1: if (a)

Of another.
    devicemgr/a.c: first
        3: if (a)
"""
READ = {("devicemgr/a.c", "first", "if (a)"): 4, ("devicemgr/a.c", "first", "} else if (b) {"): 2,
        ("devicemgr/a.c", "second", "if (a)"): 1}


def test_a_line_may_have_several_reasons():
    assert reasons.read(LISTED) == READ


def test_what_is_written_is_read():
    assert reasons.read(f"One.\n{reasons.written(READ)}") == READ


@pytest.mark.parametrize("text", [
    "    devicemgr/a.c: f\n        1: if (a)\n",              # no reason
    "Why.\n        1: if (a)\n",                              # no place
    "Why.\n    devicemgr/a.c: f\n        0: if (a)\n",        # none
    "Why.\n    devicemgr/a.c: f\n        if (a)\n",
    "Why.\n    devicemgr/a.c\n        1: if (a)\n",
    "Why.\n    a.c: f\n        1: if (a)\nMore.\n        1: if (b)\n",  # the next reason has no place yet
])
def test_what_has_another_form_is_refused(text):
    with pytest.raises(reasons.Malformed):
        reasons.read(text)


def test_one_without_a_reason_fails_and_so_does_a_reason_for_none(tmp_path, monkeypatch, capsys):
    (tmp_path / "reasons.txt").write_text(LISTED)
    monkeypatch.setattr(branches, "REASONS", tmp_path / "reasons.txt")
    assert branches.without_reason(reasons.read(LISTED)) == []
    assert capsys.readouterr().out == ""
    measured = reasons.read(LISTED)
    measured["devicemgr/a.c", "first", "if (a)"] = 5
    del measured["devicemgr/a.c", "second", "if (a)"]
    assert len(branches.without_reason(measured)) == 2
    assert capsys.readouterr().out == ("not taken, without a reason:\n"
                                       "    devicemgr/a.c: first\n        1: if (a)\n"
                                       "with a reason, and taken, or not there:\n"
                                       "    devicemgr/a.c: second\n        1: if (a)\n")


def test_each_line_of_the_list_is_in_the_core():
    for file, function, line in reasons.read(branches.REASONS.read_text()):
        text = (ROOT / file).read_text()
        assert f"{function}(" in text, f"{file}: {function}"
        assert line in map(str.strip, text.splitlines()), f"{file}: {function}: {line}"
