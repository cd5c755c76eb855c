"""config/packages.sh: what it takes for missing, and who asks it for all that is needed; config/package.sh: when it does not begin."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "config/packages.sh"
PACKAGES = {"google": "python3-protobuf", "grpc": "python3-grpcio", "hpack": "python3-h2"}  # the last needs it


def program(path, text="exit 0"):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def missing(directory, *names):
    done = subprocess.run(["/bin/bash", "-euc", f'. {SCRIPT}; packages_missing "$@"', "-", *names],
                          check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PATH": str(directory)})
    return done.stdout.split()


def test_a_runtime_from_elsewhere_is_none_that_is_missing(directory):
    """Docker's containerd.io has both, and would go for Debian's."""
    program(directory / "dpkg-query", "exit 1")
    assert missing(directory, "containerd", "runc", "gcc") == ["containerd", "runc", "gcc"]
    for name in ("containerd", "runc", "gcc"):
        program(directory / name)
    assert missing(directory, "containerd", "runc", "gcc") == ["gcc"]


def install(directory, apt_get):
    """Of gcc, which is missing, with such an apt-get; nobody sleeps."""
    program(directory / "dpkg-query", "exit 1")
    program(directory / "sleep")
    program(directory / "apt-get", apt_get)
    return subprocess.run(["/bin/bash", "-euc", '. "$0"; packages_install gcc', SCRIPT], check=False, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TMPDIR": str(directory)})


def test_nobody_is_asked(directory):
    """dpkg asks of a settings file that is there already, whatever debconf and apt are told; where quickstart.sh runs it nobody would see it."""
    words = install(directory, 'echo "$@"').stdout.splitlines()[-1].split()
    assert "install" in words and words[-1] == "gcc"
    assert "Dpkg::Options::=--force-confold" in words and "DPkg::Lock::Timeout=300" in words


def test_the_locks_that_apt_does_not_wait_for_are_waited_for(directory):
    """As apt-daily.service has them at a machine's first start: of the lists, and of what is fetched."""
    done = install(directory, f"""
if mkdir {directory}/locked 2>/dev/null; then
    words="Could not get lock /var/lib/apt/lists/lock."
    [ "$LC_ALL" = C ] || words="(not in English)"
    echo "E: $words It is held by process 7 (apt-get)" >&2
    exit 100
fi
rmdir {directory}/locked
echo "$@" """)
    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["gcc", "update", "gcc"]
    assert done.stderr.count("held by process 7") == 2
    assert not list(directory.glob("tmp.*"))


def test_nothing_else_is_waited_for(directory):
    done = install(directory, 'echo tried; echo "E: Unable to fetch some archives" >&2; exit 100')
    assert done.returncode == 100 and done.stdout.count("tried") == 1
    assert done.stderr == "E: Unable to fetch some archives\n"


def test_no_name_is_of_one_release():
    """libcurl4 is libcurl4t64 on Debian 13: apt would find it, and be asked again in each run."""
    lists = re.findall(r"_PACKAGES=\((.*?)\)", SCRIPT.read_text(), re.DOTALL)
    names = [name for one in lists for name in one.split()]
    assert "gcc" in names and "shellcheck" in names
    assert not [one for one in names if re.search(r"^lib.*\d$|-\d+(-dev)?$", one)]


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def imported_by(*names):
    """What is neither ours nor Python's own, by these programs of the bench and by what of ours they import."""
    ours = {path.stem: path for room in ("lib", "bench") for path in ROOT.glob(f"tests/{room}/*.py")}
    found = list(names)
    for name in found:  # and what is found meanwhile
        if name in ours:
            found += set(imports_of(ours[name])) - set(found)
    return set(found) - set(ours) - sys.stdlib_module_names


def test_the_bench_installs_what_it_imports():
    words = re.search(r"^packages_install ((?:.*\\\n)*.*)$", (ROOT / "tests/bench/run.sh").read_text(), re.MULTILINE)[1]
    needed = {PACKAGES.get(name, f"python3-{name}") for name in imported_by("bench", "scale", "scale_curves", "instructions")}
    assert {"python3-grpcio", "python3-yaml"} <= needed
    assert needed | {"openssl", "gnuplot-nox"} <= set(words.split())


@pytest.mark.parametrize("said", [{}, {"SOURCE_DATE_EPOCH": "1800000000"}, {"DEBEMAIL": "who@example.com"}])
def test_a_tree_without_a_commit(directory, said):
    """Also where it was unpacked in somebody's clone: before all is built it is told what else there is to say."""
    tree = directory / "unpacked/config"
    tree.mkdir(parents=True)
    shutil.copy(SCRIPT.with_name("package.sh"), tree)
    git = ["git", "-C", directory, "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    program(directory / "cmake", "echo it was built >&2; exit 1")
    own = {name: value for name, value in os.environ.items() if name not in ("SOURCE_DATE_EPOCH", "DEBEMAIL")}
    done = subprocess.run([tree / "package.sh"], check=False, capture_output=True, text=True,
                          env={**own, **said, "PATH": f"{directory}:{os.environ['PATH']}"})
    assert done.returncode == 1 and "say SOURCE_DATE_EPOCH and DEBEMAIL" in done.stderr
    assert "it was built" not in done.stderr


def begun(tree, directory, path, **said):
    """What package.sh says in that tree until it builds."""
    program(directory / "cmake", "echo built of $SOURCE_DATE_EPOCH >&2; exit 1")
    own = {name: value for name, value in os.environ.items() if name not in ("SOURCE_DATE_EPOCH", "DEBEMAIL")}
    done = subprocess.run(["/bin/bash", tree / "config/package.sh"], check=False, capture_output=True, text=True,
                          env={**own, **said, "PATH": f"{directory}:{path}"})
    assert done.returncode == 1
    return done.stderr


def test_an_archive_of_a_commit_is_as_good_as_its_clone(directory):
    tree, unpacked = directory / "tree", directory / "unpacked"
    for name in ("config/package.sh", "shim/commit.txt", ".gitattributes"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    git = ["git", "-C", tree, "-c", "user.name=Who", "-c", "user.email=who@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True, env={**os.environ, "GIT_COMMITTER_DATE": "1800000000 +0000"})
    unpacked.mkdir()
    archive = subprocess.run([*git, "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", unpacked], check=True, input=archive)
    assert (unpacked / "shim/commit.txt").read_text().splitlines()[1:] == ["1800000000", "Who <who@example.com>"]
    for one in (tree, unpacked):
        assert "built of 1800000000" in begun(one, directory, os.environ["PATH"])


def test_a_clone_without_git(directory):
    """It is told what is missing, not that it is no clone; and with what there is to say it is built."""
    tools = directory / "tools"
    tools.mkdir()
    for tool in ("bash", "dirname", "mkdir", "sed", "dpkg-buildflags", "dpkg-shlibdeps", "file"):
        (tools / tool).symlink_to(shutil.which(tool))
    tree = directory / "tree"
    (tree / ".git").mkdir(parents=True)
    (tree / "config").mkdir()
    shutil.copy(SCRIPT.with_name("package.sh"), tree / "config")
    said = begun(tree, directory, tools)
    assert "git is missing: install it, or say SOURCE_DATE_EPOCH and DEBEMAIL" in said and "no clone" not in said
    assert "built of 1800000000" in begun(tree, directory, tools, SOURCE_DATE_EPOCH="1800000000", DEBEMAIL="who@example.com")
    (tools / "git").symlink_to(shutil.which("git"))
    assert "git names no commit of" in begun(tree, directory, tools)


@pytest.mark.parametrize("name", ["dpkg-buildflags", "dpkg-shlibdeps", "file"])
def test_without_what_a_package_is_made_with(directory, name):
    """cpack would make one that depends on no library: before all is built it is told what is missing."""
    tools = directory / "tools"
    tools.mkdir()
    for tool in ("bash", "dirname", "mkdir", "git", "sed", "dpkg-buildflags", "dpkg-shlibdeps", "file"):
        if tool != name:
            (tools / tool).symlink_to(shutil.which(tool))
    program(tools / "cmake", "echo it was built >&2; exit 1")
    done = subprocess.run(["/bin/bash", SCRIPT.with_name("package.sh"), "--build", directory / "build"], check=False,
                          capture_output=True, text=True,
                          env={**os.environ, "PATH": str(tools), "SOURCE_DATE_EPOCH": "1800000000", "DEBEMAIL": "who@example.com"})
    assert done.returncode == 1 and f"{name} is missing" in done.stderr
    assert "it was built" not in done.stderr
