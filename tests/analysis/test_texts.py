"""Shell scripts, Python and words without what shellcheck, pyflakes and codespell find."""

import pathlib
import subprocess
import sys

import pytest

from shim import ROOT
from sources import listed

SHELLS = (b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh", b"# shellcheck shell=")
SCRIPTS = [name for name in listed() if (ROOT / name).read_bytes()[:200].startswith(SHELLS)]


def finds_nothing(*command):
    done = subprocess.run(command, check=False, cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode or done.stdout:
        pytest.fail(done.stdout or f"{command[0]} ended with {done.returncode}", pytrace=False)


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck(script):
    finds_nothing("shellcheck", "-x", script)


def test_pyflakes():
    programs = [name for name in listed() if name.endswith(".py")
                or (ROOT / name).read_bytes().startswith((b"#!/usr/bin/env python3", b"#!/usr/bin/python3"))]
    finds_nothing(sys.executable, "-m", "pyflakes", *programs)


def test_codespell():
    """But for the words of ours in words.txt."""
    words = pathlib.Path(__file__).with_name("words.txt")
    finds_nothing("codespell", "--ignore-words", words, *listed())


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_shellcheck_is_not_asked_has_its_reason(script):
    """Behind it, in the same line."""
    for line in (ROOT / script).read_text().splitlines():
        if line.strip().startswith("# shellcheck ") and "disable=" in line:
            assert line.strip().count(" # ") == 1, line


def test_no_line_of_c_is_long():
    """100 columns, of comments too, which clang-format leaves as they are; but where it is switched off."""
    long = []
    for name in (one for one in listed() if one.endswith((".c", ".h"))):
        on = True
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            on = "clang-format on" in line or (on and "clang-format off" not in line)
            if on and len(line) > 100:
                long.append(f"{name}:{number}")
    assert not long
