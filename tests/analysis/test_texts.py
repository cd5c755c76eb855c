"""Shell scripts, Python and words without what shellcheck, pyflakes and codespell find."""

import ast
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


def names_used(tree, modules):
    """(line, module, name) of what a program uses of `modules`."""
    here = {one.asname or one.name: one.name for node in ast.walk(tree) if isinstance(node, ast.Import)
            for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            yield from ((node.lineno, node.module, one.name) for one in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and here.get(node.value.id) in modules:
            yield node.lineno, here[node.value.id], node.attr


def names_made(tree):
    """Anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (one.asname or one.name for one in node.names)


def test_what_is_used_of_a_module_is_there():
    """pyflakes looks at one file at a time."""
    trees = {name: ast.parse((ROOT / name).read_text()) for name in listed() if name.endswith(".py")}
    modules = {pathlib.Path(name).stem: set(names_made(tree)) for name, tree in trees.items()
               if name.startswith("tests/lib/")}
    assert not [f"{name}:{line}: {module}.{used}" for name, tree in trees.items()
                for line, module, used in names_used(tree, modules) if used not in modules[module]]


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
