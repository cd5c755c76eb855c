"""--version: the version, and the commit where it is known."""

import os
import re
import subprocess

import pytest

from bridge_process import BINARY as BRIDGE
from shim import BINARY as SHIM
from shim import ROOT

SCRIPT = ROOT / "shim" / "version.cmake"


def run(*command, **settings):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60,
                          **settings).stdout


@pytest.mark.parametrize("program", [SHIM, BRIDGE], ids=["daemon", "bridge"])
def test_both_programs(program):
    text = run(program, "--version")
    assert re.fullmatch(rf"{program.name} \d+\.\d+\.\d+(-dev)?( \([0-9a-f]{{12}}(-dirty)?\))?\n",
                        text)


class Tree:
    """A source tree with a build of its version file."""

    def __init__(self, directory):
        self.source = directory
        self.out = directory / "version.c"
        (directory / "shim").mkdir(parents=True)
        (directory / "shim" / "commit.txt").write_text((ROOT / "shim/commit.txt").read_text())
        (directory / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
        (directory / ".gitignore").write_text("version.c\n")

    def git(self, *arguments):
        return run("git", "-C", self.source, "-c", "user.name=n", "-c", "user.email=n@example.com",
                   *arguments).strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "one")
        return self.git("rev-parse", "HEAD")[:12]

    def build(self, *settings):
        run("cmake", f"-DSOURCE={self.source}", "-DVERSION=1.2.3", f"-DOUT={self.out}", *settings,
            "-P", SCRIPT)
        return re.search('version_text\\[\\] = "(.*)"', self.out.read_text())[1]


def test_the_commit_follows_head(directory):
    tree = Tree(directory / "tree")
    tree.git("init", "-q")
    first = tree.commit()
    assert tree.build() == f"1.2.3 ({first})"
    second = tree.commit()
    assert second != first and tree.build() == f"1.2.3 ({second})"
    (tree.source / ".gitignore").write_text("version.c\n*.o\n")
    assert tree.build() == f"1.2.3 ({second}-dirty)"


def test_nothing_is_written_for_the_same_commit(directory):
    tree = Tree(directory / "tree")
    tree.git("init", "-q")
    tree.commit()
    tree.build()
    os.utime(tree.out, (1, 1))
    tree.build()
    assert tree.out.stat().st_mtime == 1


def test_a_tarball_knows_its_commit(directory):
    """Also when it is unpacked within another repository."""
    tree = Tree(directory / "outer")
    tree.git("init", "-q")
    commit = tree.commit()
    inner = directory / "outer" / "inner"
    inner.mkdir()
    archive = subprocess.run(["git", "-C", tree.source, "archive", "HEAD"], check=True,
                             capture_output=True, timeout=60).stdout
    subprocess.run(["tar", "-x", "-C", inner], check=True, input=archive, timeout=60)
    tree.commit()
    tree.source, tree.out = inner, inner / "version.c"
    assert tree.build() == f"1.2.3 ({commit})"
    assert tree.build("-DGIT=/bin/false") == f"1.2.3 ({commit})"


def test_without_git(directory):
    assert Tree(directory / "tree").build("-DGIT=/bin/false") == "1.2.3"
    assert Tree(directory / "other").build() == "1.2.3"
