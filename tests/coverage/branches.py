#!/usr/bin/python3
"""Which branches of devicemgr/ its unit tests and the simulation take, by gcov.

    tests/coverage/branches.py --build build/coverage --seeds 4000     # a build with -DSHIM_COVERAGE=ON, of sim

It builds the unit programs that have devicemgr/ in them: not each other one can be linked with gcov's library, which allocates,
too (--wrap=malloc).

Not counted are

- statements that are a macro of uthash or utlist, and jansson's loops: the branches of a line that begins with one are those of
  hashing, of buckets and of unlinking, which gcov cannot tell from ours, as it knows lines and no macros. What only contains one
  (`if (HASH_COUNT(table) > MAX)`, `json_is_string(value)`) is counted, with the macro's own;
- assertions, which have no other way than the process's end, and the `may_move` of each checked mover, which only assertions ask.

Each that is not taken has its reason in `reasons.txt` (`reasons.py` says in which form). One without fails, and so does a reason for
what is taken, or is not there any more: both are printed as they are to stand there, and all that is not taken is written to
`not-taken.txt` in the build's directory. The simulation is its seeds', so that SEEDS of them always take the same; with another number
of them reasons are not looked at. Fails also if less than LEAST are taken, or if a test fails.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

import reasons

ROOT = pathlib.Path(__file__).resolve().parents[2]
REASONS = pathlib.Path(__file__).parent / "reasons.txt"
LEAST = 0.955
SEEDS = 4000
_NOT_OURS = re.compile(r"\s*((HASH|DL|LL)_[A-Z_0-9]+|json_(array|object)_foreach)\(|.*\bassert\(")
_OF_ASSERTIONS = ("may_move",)


def linked(build):
    """The unit programs that have devicemgr/ in them, whatever they are of."""
    rules = (build / "build.ninja").read_text()
    return sorted(set(re.findall(r"^build tests/unit/(test_\w+): .* devicemgr/lib\w+\.a", rules, re.MULTILINE)))


def taken(build):
    """{(file, line, function, which): how often}"""
    counts = collections.Counter()
    for data in sorted((build / "devicemgr").rglob("*.gcda")):
        told = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data], cwd=build, check=True,
                              capture_output=True, text=True).stdout
        for text in told.splitlines():
            one = json.loads(text)
            for file in one["files"]:
                path = pathlib.Path(one["current_working_directory"], file["file"]).resolve()
                if not path.is_relative_to(ROOT / "devicemgr"):
                    continue
                for line in file["lines"]:
                    for which, branch in enumerate(line["branches"]):
                        counts[path, line["line_number"], line.get("function_name"), which] += branch["count"]
    return counts


def ours(counts):
    lines = {path: path.read_text().splitlines() for path, *_ in counts}
    return {key: count for key, count in counts.items()
            if not _NOT_OURS.match(lines[key[0]][key[1] - 1]) and key[2] not in _OF_ASSERTIONS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    build, seeds = (options := parser.parse_args()).build.resolve(), options.seeds
    for data in build.rglob("*.gcda"):
        data.unlink()
    failed = []
    names = linked(build)
    subprocess.run(["ninja", "-C", build, *(f"tests/unit/{name}" for name in names)], check=True, stdout=subprocess.DEVNULL)
    for name in names:
        if subprocess.run([build / "tests/unit" / name], cwd=build / "tests/unit", check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode:
            failed.append(name)
    if subprocess.run([build / "tests/sim/sim", "--from", "1", "--seeds", str(seeds)], check=False,
                      stdout=subprocess.DEVNULL).returncode:
        failed.append("sim")
    counts = ours(taken(build))
    without = not_taken(counts)
    (build / "not-taken.txt").write_text(reasons.written(without), encoding="utf-8")
    if seeds == SEEDS:
        failed += without_reason(without)
    report(build, 1 - without.total() / len(counts), len(counts), failed)


def not_taken(counts):
    """As `reasons.read` has it, in the order of the source."""
    lines = {path: path.read_text().splitlines() for path, *_ in counts}
    without = collections.Counter()
    for (path, line, function, _), count in sorted(counts.items()):
        if count == 0:
            without[str(path.relative_to(ROOT)), function, lines[path][line - 1].strip()] += 1
    return without


def without_reason(without):
    """What fails by the list of reasons; prints it."""
    unreasoned, unneeded = reasons.compared(without, reasons.read(REASONS.read_text(encoding="utf-8")))
    failed = []
    for lines, what in ((unreasoned, "not taken, without a reason"), (unneeded, "with a reason, and taken, or not there")):
        if lines:
            print(f"{what}:\n{reasons.written(lines)}", end="")
            failed.append(f"{REASONS.name}: {what}")
    return failed


def report(build, share, number, failed):
    print(f"{share:.2%} of {number} branches are taken; the rest is in {build / 'not-taken.txt'}")
    for one in failed:
        print(f"not ok {one}")
    good = share >= LEAST
    print(f"{int(good)} passed, {len(failed) + (not good)} failed")
    sys.exit(bool(failed or not good))


if __name__ == "__main__":
    main()
