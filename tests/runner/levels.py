"""The levels, what each consists of, and how it is run and counted.

All names come from the sources: a test program that is not built fails, none is forgotten.
"""

import ast
import json
import pathlib
import re
import sys

from pool import Counts, Job

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

AGAIN = "again"  # the level of what is run once more; it counts where it was run first
_DEFAULT_SEEDS = 5_000   # of the simulation; of the sanitized build a tenth as many
_FUZZ_BYTES_MAX = 4096
# Of each target in a run of the suite: 4 seconds at most on an idle machine.
_FUZZ_RUNS = 100_000
_FUZZ_RUNS_OF = {"fuzz_config": 7_500, "fuzz_control": 7_500, "fuzz_devices": 40_000, "fuzz_driver": 300_000,
                 "fuzz_feed": 40_000, "fuzz_h2": 2_500, "fuzz_journal": 20_000, "fuzz_record": 400_000,
                 "fuzz_request": 300_000, "fuzz_session": 3_000, "fuzz_status": 40_000}
# What was freed is kept for the next megabytes only: memory that is never used again is new memory all the time.
_SANITIZER = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:"
                              "quarantine_size_mb=4:thread_local_quarantine_size_kb=256",
              "UBSAN_OPTIONS": "print_stacktrace=1"}
_THREAD_SANITIZER = {"TSAN_OPTIONS": "die_after_fork=0"}  # a test's forked process may crash in a worker
_FUZZ_SANITIZER = {"ASAN_OPTIONS": "quarantine_size_mb=16", "UBSAN_OPTIONS": "print_stacktrace=1"}

# Files of the level integration that are about what is no program of ours.
_OF_SCRIPTS = ("test_install.py", "test_install_broken_off.py", "test_install_services.py")
# What takes longest is begun first; in seconds of a run of all on two processors.
_LONG = {"integration/test_install.py": 300, "integration/test_install_broken_off.py": 250,
         "integration/test_install_services.py": 100, "integration/test_agent.py": 220,
         "integration/test_restarts.py": 110, "integration/test_soak.py": 80,
         "integration/test_kill_storm.py": 150, "e2e/test_kill_storm.py": 50,
         "integration/test_bridge_speed.py": 80, "integration/test_agent_streams.py": 70,
         "integration/test_deaths.py": 70, "integration/test_asking.py": 40,
         "integration/test_lists.py": 40, "integration/test_control.py": 40,
         "integration/test_agent_versions.py": 40,
         "integration/test_equivalence.py": 75, "integration/test_plugin_life.py": 50,
         "integration/test_dra_restarts.py": 45, "integration/test_dra.py": 45,
         "integration/test_bridge.py": 45, "integration/test_restart.py": 40,
         "integration/test_recorded_kubelet.py": 35, "integration/test_gate.py": 35,
         "integration/test_bridge_resume.py": 30, "integration/test_relay_store.py": 25,
         "integration/test_kubelet_alone.py": 25, "integration/test_relay_memory.py": 20,
         "cluster/test_dra_kills.py": 1500, "cluster/test_kills.py": 980, "cluster/test_evict.py": 500,
         "cluster/test_install.py": 450, "cluster/test_failures.py": 400, "cluster/test_ending.py": 385,
         "cluster/test_dra.py": 375, "cluster/test_fleet.py": 360, "cluster/test_lives.py": 290,
         "e2e/test_systemd.py": 165, "e2e/test_operations.py": 60, "e2e/test_package.py": 40,
         "e2e/test_holding.py": 45, "e2e/test_bridge.py": 35, "e2e/test_quickstart.py": 35,
         "e2e/test_devices.py": 25, "e2e/test_fleet.py": 50, "suite/test_run.py": 25}
# How many processors a Python file keeps busy: most only wait. As the CPU s of its line tell.
_PYTHON_PROCESSORS = 0.25
# A cluster's own processes are not in that line; and no more than four find room (lib/kube_programs.py, check_room).
_PROCESSORS_OF = {"cluster": 0.5}
_BUSY = {"integration/test_kill_storm.py": 0.75, "e2e/test_kill_storm.py": 0.75,
         "integration/test_soak.py": 0.75, "integration/test_restarts.py": 0.75,
         **{f"integration/{name}": 0.75 for name in _OF_SCRIPTS}, "integration/test_equivalence.py": 0.75}
_UNIT_PROCESSORS = 0.25
_ONLY_COMPUTE = ("analysis",)
# Of what has only the time that others leave: that ends what hangs, and says nothing of how fast it is.
_GIVES_WAY_S = 2 * 3600
# They can be asked for many rounds, or start so many processes that an hour is not enough where each takes long.
_PYTHON_SECONDS_MAX = dict.fromkeys(("cluster", "package", "integration/test_kill_storm.py",
                                     "e2e/test_kill_storm.py",
                                     *(f"integration/{name}" for name in _OF_SCRIPTS)), 4 * 3600)


class Options:
    """`seeds`: of the simulation, None: as many as in every run. `seconds`: of each target of
    fuzz-long; `minutes`: of soak and faults."""

    def __init__(self, build, processors, seeds=None, seconds=60, minutes=120):
        self.build = build
        self.processors = processors
        self.seeds = seeds
        self.seconds = seconds
        self.minutes = minutes


# What a checkout in another directory has compiled is taken from the cache in this one, too.
_ONE_CACHE = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "true"}


class Build:
    """One of the builds: its directory, and the Job that makes it."""

    def __init__(self, name, directory, *settings, target=None, compilers=None, seconds=0):
        cmake = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", directory,
                 "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1",
                 "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON",
                 "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
                 *settings]
        self.name = name
        self.directory = directory
        self.job = Job("build", name, [cmake, ["ninja", "-C", directory, *(target or ())]],
                       directory / "tests.logs/build.log", _count_steps, env={**_ONE_CACHE, **(compilers or {})},
                       seconds_max=1800, long=1000 + seconds)

    def job_of(self, level, name, commands, count, **settings):
        return Job(level, name, commands, self.directory / "tests.logs" / f"{level}-{name}.log",
                   count, needs=(self.job,), **settings)


def _count_steps(_text, statuses):
    """A build, which is one thing that succeeds or fails."""
    return Counts(failed=1) if any(statuses) else Counts(passed=1)


class Suite:
    """`levels`: {name: {test: function that returns its Jobs}}, in the order in which they are
    shown."""

    def __init__(self, options):
        self._options = options
        build = options.build
        self.release = Build("release", build, "-DSHIM_TESTS=ON", "-DSHIM_SANITIZE=OFF", seconds=2)
        # First, since most that takes long needs it.
        self.sanitized = Build("sanitized", build / "asan", "-DSHIM_TESTS=ON", "-DSHIM_SANITIZE=ON",
                               seconds=3)
        self.fuzz = Build("fuzz", build / "fuzz", "-DSHIM_FUZZ=ON", target=["fuzz"], seconds=1,
                          compilers={"CC": "clang", "CXX": "clang++"})
        self.threads = Build("tsan", build / "tsan", "-DSHIM_TESTS=ON", "-DSHIM_TSAN=ON",
                             target=[*_THREADED, "cri-device-shim", "cri-device-shim-bridge", "cri-device-shim-agent", "cri-device-shimctl"])
        self.coverage = Build("coverage", build / "coverage", "-DSHIM_TESTS=ON", "-DSHIM_COVERAGE=ON", target=["sim"])
        self.levels = {
            "unit": {name: self._unit for name in _unit_names()},
            "sim": {"sim": self._sim, "mutants": self._mutants},
            "integration": {name: self._python for name in _python_names("integration")},
            "e2e": {name: self._python for name in _python_names("e2e")},
            "cluster": {name: self._python for name in _python_names("cluster")},
            "fuzz": {name: self._fuzz for name in _fuzz_names()},
            "suite": {name: self._python for name in _python_names("suite")},
            "analysis": {name: self._python for name in _python_names("analysis")},
        }
        self.looked_in = list(self.levels)  # for a TEST by itself, which is looked at in other ways by these
        self.levels["valgrind"] = {name: self._valgrind for name in _unit_names() if name.startswith(_CORE)}
        self.levels["tsan"] = {**dict.fromkeys(_THREADED, self._threads),
                               **dict.fromkeys(_THREADED_FILES, self._threads_of_programs)}
        self.default = list(self.levels)
        self.levels["mutants"] = {"all": self._mutants}
        self.levels["soak"] = {"soak": self._soak}
        self.levels["faults"] = {"storm": self._faults}
        self.levels["valgrind-long"] = {name: self._valgrind for name in _unit_names()
                                        if not name.startswith(_CORE) and name not in _NOT_VALGRIND}
        self.levels["coverage"] = {"branches": self._branches}
        self.levels["package"] = {name: self._python for name in _python_names("package")}
        self.levels["fuzz-long"] = {name: self._fuzz_long for name in _fuzz_names()}

    def jobs(self, level, name, tests=()):
        """Of one name of a level; `tests`: only these of a Python file, as pytest names them."""
        make = self.levels[level][name]
        return make(level, name, tests) if make == self._python else make(level, name)

    def tests_of(self, level, name):
        """The test functions of a Python file; [""] of anything else, which has no parts."""
        if self.levels[level][name] != self._python:
            return [""]
        return list(_marks_of(TESTS / level / name))

    def has(self, level, name, tests):
        """Whether it has all these tests, which are named as pytest names them."""
        return all(_function_of(one) in self.tests_of(level, name) for one in tests)

    @staticmethod
    def with_builds(jobs):
        """All of these, and what they need, each once."""
        builds = {id(one): one for job in jobs for one in job.needs}
        return [*builds.values(), *jobs]

    # ---- unit ----

    def _unit(self, level, name):
        return [build.job_of(f"{level} {build.name}", name, [[build.directory / "tests/unit" / name]],
                             _count_tap, env={"CMOCKA_MESSAGE_OUTPUT": "TAP", **_SANITIZER},
                             directory=build.directory / "tests/unit", seconds_max=300,
                             processors=_UNIT_PROCESSORS, long=20 if name in _SLOW_UNIT else 0)
                for build in (self.release, self.sanitized)]

    def _valgrind(self, level, name):
        """Bytes that were never written are what the sanitizers do not look for. "Possibly lost" is what the C library's
        setenv keeps, in a tree (tsearch) whose pointers carry a mark. test_config's own operator new is to be its own."""
        return [self.release.job_of(
            level, name, [["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite",
                           "--show-leak-kinds=definite", "--soname-synonyms=somalloc=nouserintercepts",
                           self.release.directory / "tests/unit" / name]], _count_valgrind, env={"CMOCKA_MESSAGE_OUTPUT": "TAP"},
            directory=self.release.directory / "tests/unit", seconds_max=3600, processors=1)]

    def _threads(self, level, name):
        return [self.threads.job_of(level, name, [[self.threads.directory / "tests/unit" / name]], _count_tap,
                                    env={"CMOCKA_MESSAGE_OUTPUT": "TAP", **_THREAD_SANITIZER}, directory=self.threads.directory / "tests/unit",
                                    seconds_max=900, processors=_UNIT_PROCESSORS)]

    def _threads_of_programs(self, level, name):
        path = TESTS / "integration" / name
        return [self._pytest(level, path, self.threads, _marks_of(path), "")]

    def _branches(self, level, name):
        seeds = self._options.seeds or _COVERAGE_SEEDS
        return [self.coverage.job_of(
            level, name, [[sys.executable, TESTS / level / f"{name}.py", "--build", self.coverage.directory, "--seeds", str(seeds)]],
            _count_long, seconds_max=3600, processors=1)]

    # ---- sim ----

    def _sim(self, level, _name):
        seeds = self._options.seeds or _DEFAULT_SEEDS
        return [*self._sim_parts(level, self.release, 1, seeds),
                *self._sim_parts(level, self.sanitized, seeds + 1, max(1, seeds // 10))]

    def _sim_parts(self, level, build, first, seeds):
        """One process, or where more than the usual was asked for, one for each processor."""
        parts = max(1, int(self._options.processors)) if self._options.seeds else 1
        jobs = []
        for part in range(parts):
            begin, end = first + seeds * part // parts, first + seeds * (part + 1) // parts
            if end > begin:
                jobs.append(build.job_of(
                    f"{level} {build.name}", f"seeds-{begin}-{end - 1}",
                    [[build.directory / "tests/sim/sim", "--from", str(begin), "--seeds",
                      str(end - begin)]], _count_last_line, env=_SANITIZER, gives_way=True,
                    long=200, seconds_max=max(_GIVES_WAY_S, seeds // 10)))
        return jobs

    def _mutants(self, level, name):
        """Faults that are planted one by one, each of which the simulation must find: some of them, but where it was
        asked for by its level, all."""
        return [self.release.job_of(
            f"mutants {self.release.name}", name,
            [[TESTS / "sim/mutants.sh", self.release.directory]], _count_last_line,
            env={"JOBS": "1", "EVERY": "4" if level == "sim" else "1"}, gives_way=True, long=100,
            seconds_max=_GIVES_WAY_S)]

    # ---- for as long as one says ----

    def _soak(self, level, name):
        return self._long(self.release, level, name)

    def _faults(self, level, name):
        return self._long(self.sanitized, level, name)

    def _long(self, build, level, name):
        minutes = self._options.minutes
        return [build.job_of(
            level, name, [[sys.executable, TESTS / level / f"{name}.py", "--minutes", str(minutes)]], _count_long,
            env={"SHIM_BUILD_DIR": str(build.directory), "SHIM_BINARY": str(build.directory / "shim/cri-device-shim"),
                 **_SANITIZER}, seconds_max=minutes * 60 + 900, processors=1)]

    # ---- Python ----

    def _python(self, level, name, tests=()):
        """An integration file is run on the sanitized build, but for _OF_SCRIPTS; those of its tests that are marked
        `release` on both. What is marked `alone` is run with nothing beside it."""
        path = TESTS / level / name
        marks = _marks_of(path)
        tests = tests or marks
        alone = [one for one in tests if "alone" in marks[_function_of(one)]]
        others = [one for one in tests if one not in alone]
        again = [one for one in tests if "release" in marks[_function_of(one)]]
        first = self.sanitized if level == "integration" and name not in _OF_SCRIPTS else self.release
        return [self._pytest(level, path, build, wanted, how)
                for build, wanted, how in ((first, others, ""), (first, alone, "alone"),
                                           (self.release, again, "release")) if wanted]

    def _pytest(self, level, path, build, tests, how):
        short = f"{level}/{path.name}"
        name = f"{path.name}-{how}" if how else path.name
        results = build.directory / "tests.logs" / f"{level}-{name}.results"
        results.unlink(missing_ok=True)
        return build.job_of(
            level if level != "integration" else f"{level} {build.name}", name,
            [[sys.executable, "-m", "pytest", "-c", TESTS / "pytest.ini", "--color=no",
              *(f"{path}::{one}" for one in tests)]],
            lambda _text, _statuses: _count_pytest(results),
            env={"SHIM_BUILD_DIR": str(build.directory), "SHIM_TEST_RESULTS": str(results),
                 "SHIM_BINARY": str(build.directory / "shim/cri-device-shim"), **_SANITIZER, **_THREAD_SANITIZER},
            seconds_max=_PYTHON_SECONDS_MAX.get(short, _PYTHON_SECONDS_MAX.get(level, 3600)),
            again=lambda: self._pytest_again(level, path, build, how, _failed_in(results)),
            alone=how == "alone", gives_way=level in _ONLY_COMPUTE,
            long=1 if how else _LONG.get(short, 1), processors=_BUSY.get(short, _PROCESSORS_OF.get(level, _PYTHON_PROCESSORS)))

    def _pytest_again(self, level, path, build, how, tests):
        job = self._pytest(level, path, build, tests, f"{how}-again") if tests else None
        if job:
            job.level = AGAIN
        return job

    # ---- fuzz ----

    def _fuzz(self, level, name):
        """Every seed and past finding, then as many runs as ever, always the same ones."""
        corpus = TESTS / "fuzz/corpus" / name
        learned = self.fuzz.directory / "learned" / name  # the first directory is written to
        runs = _FUZZ_RUNS_OF.get(name, _FUZZ_RUNS)
        program = self._fuzz_command(name)
        return self._fuzz_job(level, name, ["sh", "-c", 'rm -rf "$0" && mkdir -p "$0"', learned],
                              [*program, *sorted(corpus.iterdir()),
                               *sorted((TESTS / "fuzz/past" / name).glob("*"))],
                              [*program, "-seed=1", f"-runs={runs}", learned, corpus],
                              long=40, seconds_max=_GIVES_WAY_S)

    def _fuzz_long(self, level, name):
        """Random ones for some time; what is learned is kept for the next time."""
        learned = self.fuzz.directory / "corpus" / name
        seconds = self._options.seconds
        return self._fuzz_job(level, name, ["mkdir", "-p", learned],
                              [*self._fuzz_command(name), f"-max_total_time={seconds}", learned,
                               TESTS / "fuzz/corpus" / name], seconds_max=seconds + 120)

    def _fuzz_job(self, level, name, set_up, *runs, **settings):
        return [self.fuzz.job_of(level, name, [set_up, *runs], _count_fuzz(runs[0][0]),
                                 env=_FUZZ_SANITIZER, gives_way=True, **settings)]

    def _fuzz_command(self, name):
        findings = self.fuzz.directory / "findings"
        findings.mkdir(parents=True, exist_ok=True)
        return [self.fuzz.directory / "tests/fuzz" / name, "-timeout=20", "-rss_limit_mb=1500",
                f"-max_len={_FUZZ_BYTES_MAX}", f"-artifact_prefix={findings}/{name}-"]


# ---- names ----

_SLOW_UNIT = ("test_store", "test_bridge_shown", "test_config", "test_watch", "test_store_faults",
              "test_host")
# What has work for libuv's workers, which write and read files (uv_queue_work); there are no other threads of ours.
_THREADED = ("test_store_worker", "test_restore", "test_host", "test_settings", "test_checkpoint_watch",
             "test_kubelet_claims", "test_events", "test_drivers", "test_feed", "test_held", "test_questions", "test_watchers")
# What has whole programs do that: commits, events, settings that are kept, the kubelet's files, and ends in the midst of it.
_THREADED_FILES = ("test_ctl_checkpoint.py", "test_daemon_store.py", "test_events.py", "test_full_disk.py", "test_gate.py",
                   "test_lift.py", "test_restart.py", "test_settings.py", "test_stop.py", "test_unreadable.py")
# What cannot be under valgrind: it looks at a forked process's system calls (ptrace), which are valgrind's own then; it runs what
# /proc/PID/exe is, which is valgrind.
_NOT_VALGRIND = ("test_offline_replace", "test_program")
# What waits for nothing and nobody, however slow it is there.
_CORE = "test_devicemgr_"
_COVERAGE_SEEDS = 4000


def _unit_names():
    return sorted(path.stem for path in (TESTS / "unit").glob("test_*.c*"))


def _python_names(level):
    return sorted(path.name for path in (TESTS / level).glob("test_*.py"))


def _function_of(test):
    """Of a pytest name like test_x[first]."""
    return test.partition("[")[0]


def _marks_of(path):
    """{test function of a Python file: names of its marks}."""
    return {one.name: {mark for mark in ("alone", "release") for decorator in one.decorator_list
                       if ast.unparse(decorator) == f"pytest.mark.{mark}"}
            for one in ast.parse(path.read_text()).body
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}


def _fuzz_names():
    return sorted(path.stem for path in (TESTS / "fuzz").glob("fuzz_*.c"))


# ---- counting ----

def _count_tap(text, _statuses):
    """As cmocka prints it; a plan that is not kept is an error of its own."""
    counts = Counts()
    planned = sum(int(number) for number in re.findall(r"^1\.\.(\d+)$", text, re.MULTILINE))
    for line in re.findall(r"^(?:not )?ok .*$", text, re.MULTILINE):
        if line.startswith("not ok"):
            counts.failed += 1
        elif "# SKIP" in line:
            counts.skipped += 1
            counts.notes.append(f"skipped: {line}")
        else:
            counts.passed += 1
    if counts.failed == 0 and counts.passed + counts.skipped != planned:
        counts.failed = 1
        counts.notes.append(f"{planned} tests were to run")
    return counts


def _count_valgrind(text, statuses):
    """What it says of a forked process, too, whose status is not this one's; but not of what that has left when it ended itself."""
    counts = _count_tap(text, statuses)
    said = [line for line in re.findall(r"^==\d+== \S.*$", text, re.MULTILINE) if " definitely lost in " not in line]
    if said and counts.failed == 0:
        counts.failed = 1
        counts.notes.append(f"valgrind says: {said[0]}")
    return counts


def _count_last_line(text, _statuses):
    last = text.rstrip("\n").rpartition("\n")[2]
    passed, failed = re.fullmatch(r"(\d+) passed, (\d+) failed", last).groups()
    return Counts(int(passed), int(failed), notes=[
        line for line in text.splitlines() if re.match("(seed|replay|not ok)", line)])


def _count_long(text, _statuses):
    """With all that it says."""
    passed, failed = re.fullmatch(r"(\d+) passed, (\d+) failed", text.rstrip("\n").rpartition("\n")[2]).groups()
    return Counts(int(passed), int(failed), notes=text.splitlines()[:-1])


def _count_pytest(results):
    """conftest.py writes a line for each test and each figure."""
    counts = Counts()
    for line in results.read_text().splitlines():
        what = json.loads(line)
        if "figure" in what:
            counts.notes.append(what["figure"])
            continue
        setattr(counts, what["outcome"], getattr(counts, what["outcome"]) + 1)
        if what["outcome"] == "skipped":
            counts.notes.append(f"skipped: {what['test']}: {what['reason']}")
    return counts


def _failed_in(results):
    """The tests that did, by their names in the file."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    return [one["test"].partition("::")[2] for one in lines if one.get("outcome") == "failed" and "::" in one["test"]]


def _count_fuzz(program):
    """Each command is a test, but for the first, which sets up."""
    def count(text, statuses):
        counts = Counts(passed=statuses[1:].count(0), failed=sum(one != 0 for one in statuses))
        counts.notes += [line for line in text.splitlines() if line.startswith("Done ")]
        for path in re.findall(r"Test unit written to (.*)", text):
            counts.notes.append(f"to play it again: FUZZ_TRACE=1 {program} {path}")
        return counts

    return count
