"""Builds and runs tests; tests/run.sh starts it when all packages are there.

    tests/run.sh [NAME]...          all levels but coverage, faults, fuzz-long, mutants, package, soak and valgrind-long, or only these
    tests/run.sh --list [NAME]...   what names there are

A NAME is a level, LEVEL/TEST, or a TEST by itself: a unit program (test_store), a Python file
(test_bridge.py), a test in it (test_bridge.py::test_x), a fuzz target.
"""

import argparse
import os
import pathlib
import sys
import time

from levels import AGAIN, ROOT, Options, Suite
from pool import Counts, Pool

_LINES_OF_A_FAILURE = 120
_TESTS_FAILED = 1  # pytest's status, if it has run all of them
_AGAIN_MAX = 5  # tests: if more have failed, it was not what ran beside them


def _parse():
    parser = argparse.ArgumentParser(
        prog="tests/run.sh", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print names, run nothing")
    parser.add_argument("--seeds", type=int, metavar="N",
                        help="of the simulation; a tenth as many on the sanitized build; and of coverage")
    parser.add_argument("--seconds", type=int, metavar="N", default=60,
                        help="of each target of fuzz-long (default 60)")
    parser.add_argument("--minutes", type=int, metavar="N", default=120, help="of soak and faults (default 120)")
    parser.add_argument("--processors", type=float, metavar="N", default=os.cpu_count(),
                        help="how many to keep busy (default: all)")
    parser.add_argument("--again", action="store_true",
                        help="Python tests that fail are run once more when all else is over, unless more than 5\n"
                             "tests fail; those that pass then are named, and count as passed")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIRECTORY", default=ROOT / "build",
                        help="where to build (default: build)")
    return parser.parse_args()


def _find(suite, name):
    """[(level, name, tests)] of what a NAME on the command line means."""
    if name in suite.levels:
        return [(name, one, ()) for one in suite.levels[name]]
    file, _, test = name.removeprefix("tests/").partition("::")
    level, _, short = file.rpartition("/")
    found = [(one, short, (test,) if test else ())
             for one in ([level] if level else suite.looked_in) if short in suite.levels.get(one, ())]
    return [one for one in found if not test or suite.has(*one)]


def _select(suite, names):
    """Of all that is named, each once; exits if there is no such thing."""
    wanted = {}
    for name in names or suite.default:
        found = _find(suite, name)
        if not found:
            sys.exit(f"no such test or level: {name}; tests/run.sh --list prints all")
        for level, short, tests in found:
            if tests and wanted.get((level, short), True):  # else all of them are wanted already
                wanted.setdefault((level, short), []).extend(tests)
            else:
                wanted[level, short] = []
    return wanted


def _print_list(suite, names):
    names = names or list(suite.levels)
    for name in names:
        for level, short, tests in _find(suite, name):
            for test in tests or suite.tests_of(level, short):
                print(f"{level}/{short}" + (f"::{test}" if test else ""))


class Report:
    """What is printed while tests run, and at the end."""

    def __init__(self):
        self._began = time.monotonic()
        self._levels = {}

    def __call__(self, job):
        self._levels.setdefault(job.level, []).append(job)
        counts = job.counts
        took = f"{job.ended - job.began:6.1f} s {job.cpu_s:6.1f} CPU s"
        if job.level == "build":
            words = "built" if job.good else "FAILED"
        else:
            words = _words(counts)
        if counts.failed:
            lines = job.log.read_text(errors="replace").splitlines()
            print(f"---- {job.level} {job.name}: the end of {job.log}")
            print("\n".join(lines[-_LINES_OF_A_FAILURE:]))
        if counts.failed or not job.level.startswith("unit "):
            print(f"{took}  {job.level} {job.name}: {words}")
        for note in counts.notes:
            print(f"          {note}")
        sys.stdout.flush()

    def end(self):
        """Whether all is well."""
        total = Counts()
        print(f"\n{'level':24} {'passed':>8} {'failed':>7} {'skipped':>8} {'seconds':>8} {'CPU s':>7}")
        for level, jobs in self._levels.items():
            counts = _sum(level, jobs)
            seconds = max(job.ended for job in jobs) - min(job.began for job in jobs)
            print(f"{level:24} {counts.passed:8} {counts.failed:7} {counts.skipped:8} "
                  f"{seconds:8.0f} {sum(job.cpu_s for job in jobs):7.0f}")
            if level not in ("build", AGAIN):  # is no test: one that fails has failed all that needs it; counts above
                total.add(counts)
        skipped = f"; {total.skipped} skipped, named above" if total.skipped else ""
        print(f"in {time.monotonic() - self._began:.0f} s{skipped}\n")
        print(f"{total.passed} passed, {total.failed} failed")
        return total.failed == 0 and total.passed > 0


def _sum(level, jobs):
    """Parts of a simulation make the same checks, each on seeds of its own: one has passed if it did
    in every part."""
    total = Counts()
    if level in ("sim release", "sim sanitized"):
        total.failed = max(job.counts.failed for job in jobs)
        total.passed = min(job.counts.passed for job in jobs)
        return total
    for job in jobs:
        total.add(job.counts)
    return total


def _words(counts):
    return f"{counts.passed} passed, {counts.failed} failed" + (
        f", {counts.skipped} skipped" if counts.skipped else "")


def _run_again(pool, jobs):
    """What failed perhaps for what ran beside it, by itself. What passes then has, and is named."""
    failed = [job for job in jobs if job.counts.failed]
    if sum(job.counts.failed for job in failed) > _AGAIN_MAX:
        return
    for job in failed:
        second = job.again() if job.again and job.statuses == [_TESTS_FAILED] else None
        if not second:
            continue
        pool.run([second])
        if second.good and second.counts.passed == job.counts.failed:
            print(f"          passed only when run again: {job.level} {job.name}, {job.counts.failed} tests")
            job.counts.passed += job.counts.failed
            job.counts.failed = 0


def main():
    arguments = _parse()
    suite = Suite(Options(arguments.build.resolve(), arguments.processors, arguments.seeds,
                          arguments.seconds, arguments.minutes))
    if arguments.list:
        _print_list(suite, arguments.names)
        return 0
    jobs = [job for (level, name), tests in _select(suite, arguments.names).items()
            for job in suite.jobs(level, name, tests)]
    report = Report()
    pool = Pool(arguments.processors, report)
    try:
        pool.run(suite.with_builds(jobs))
        if arguments.again:
            _run_again(pool, jobs)
    except KeyboardInterrupt:
        print("interrupted")
        return 130
    return 0 if report.end() else 1


if __name__ == "__main__":
    sys.exit(main())
