"""C and C++ without what clang warns of, and without what clang-tidy, gcc's analyzer and cppcheck find.

gcc's warnings are errors in each build; here it also follows what may happen along each way through the functions of a file.
clang's come from its front end: nothing is generated.
"""

import os
import re
import subprocess

import pytest

from shim import ROOT
from sources import compiled, listed

# cppcheck looks at no header of the system; these have the loops.
MACROS = [f"/usr/include/{name}" for name in ("uthash.h", "utlist.h", "x86_64-linux-gnu/sys/queue.h", "jansson.h")]
BOUNDS = ["--param=analyzer-max-svalue-depth=6", "--param=analyzer-bb-explosion-factor=1",
          "--param=analyzer-max-enodes-per-program-point=3"]
OURS = compiled()
ROOMS = sorted({one.room for one in OURS})


@pytest.mark.parametrize("room", ROOMS)
def test_clang_warns_of_nothing(room):
    said = ""
    for one in OURS:
        if one.room == room:
            compiler = "clang" if one.language == "c" else "clang++"
            said += subprocess.run([compiler, "-fsyntax-only", *one.arguments], check=False, cwd=one.directory,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    if said:
        pytest.fail(said, pytrace=False)


@pytest.mark.parametrize("room", [one for one in ROOMS if not one.startswith("tests/")])
def test_gcc_follows_no_way_to_a_fault(room):
    """Without optimization, and no more states of one place than BOUNDS has: else tables in loops, shim/cluster/pools.c
    first of all, take minutes each, or do not end. What hangs in something that hangs in what the caller has, gcc 12 takes
    for lost wherever a loop is left; LeakSanitizer looks for leaks in each test. gcc 14, for which snprintf() may make a text of
    any length, takes what copies it for reading beyond it; AddressSanitizer looks for that."""
    said = ""
    for one in OURS:
        if one.room == room and one.language == "c":
            said += subprocess.run(["gcc", *one.arguments, "-O0", "-fanalyzer", *BOUNDS, "-Wno-analyzer-malloc-leak",
                                    "-Wno-analyzer-out-of-bounds", "-Wno-cpp", "-S", "-o", os.devnull], check=False,
                                   cwd=one.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    if said:
        pytest.fail(said, pytrace=False)


@pytest.mark.parametrize("room", [one for one in ROOMS if not one.startswith("tests/")])
def test_clang_tidy_finds_nothing(room):
    """By the list of checks in .clang-tidy. In C: toml++, which the three files in C++ include, takes it as long as 30 files."""
    said = ""
    for one in OURS:
        if one.room == room and one.language == "c":
            done = subprocess.run(["clang-tidy", "--quiet", ROOT / one.name, "--", *one.arguments], check=False,
                                  cwd=one.directory, capture_output=True, text=True)
            # Beside what it has found, it only says how much it has kept to itself.
            said += done.stdout if done.returncode == 0 else done.stdout + done.stderr
    if said:
        pytest.fail(said, pytrace=False)


def test_what_clang_tidy_is_not_asked_has_its_reason():
    """In .clang-tidy each check that its groups have without it; in the source, behind the checks' names, on that line."""
    text = (ROOT / ".clang-tidy").read_text()
    checks = text.split("Checks: >-\n")[1].split("HeaderFilterRegex")[0].replace(",", " ").split()
    reasons = re.findall(r"^# ([a-z0-9]+(?:-[a-z0-9]+)+): \S", text, re.MULTILINE)
    assert [f"-{one}" for one in reasons] == [one for one in checks if one.startswith("-") and one != "-*"]
    sources = [name for name in listed() if name.endswith((".c", ".h"))]
    assert len(sources) > 800
    bare = [f"{name}: {line.strip()}" for name in sources for line in (ROOT / name).read_text().splitlines()
            if "NOLINT" in line
            and not re.search(r"/\* NOLINT((NEXTLINE|BEGIN)?\([a-z0-9-]+\): \S|END\([a-z0-9-]+\) \*/)", line)]
    assert not bare


@pytest.mark.parametrize("room", [one for one in ROOMS if not one.startswith("tests/")])
def test_cppcheck_finds_nothing(room):
    """In no test, though: those leave functions by longjmp. What it is told to leave alone in the source is
    said there, with the reason (`cppcheck-suppress`)."""
    done = subprocess.run(
        ["cppcheck", "--quiet", "--enable=warning,performance,portability", "--inline-suppr", "--error-exitcode=1",
         "--suppress=varFuncNullUB",  # it reads no <stddef.h>, by which NULL is a pointer: (void *)0
         "--suppress=normalCheckLevelMaxBranches",  # that a newer one has looked at some of many branches only
         # A newer one does not see that a condition on what came of the memory is one on the memory; gcc's analyzer does.
         "--suppress=nullPointerOutOfMemory",
         "-D_GNU_SOURCE", '-DSHIM_VERSION="0"', f"-I{ROOT}", *(f"--include={path}" for path in MACROS),
         "--template={file}:{line}: {severity} {id}: {message}",
         *(one.name for one in OURS if one.language == "c" and one.room == room)],
        check=False, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or done.stdout:
        pytest.fail(done.stdout or f"cppcheck ended with {done.returncode}", pytrace=False)
