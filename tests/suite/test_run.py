"""tests/run.sh itself: what it counts, and that whatever cannot start, or says nothing, fails.

Compilers, CMake, Ninja and the programs they would make are stand-ins here.
"""

import os
import pathlib
import re
import signal
import subprocess

import pytest

import containerd
import kube_programs
from shim import ROOT
from waiting import wait_until

TWO_PASS = 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"'
LEVEL = r"^{} +(\d+) +(\d+) +(\d+) "


class World:
    """A build directory and a PATH of the test's own."""

    def __init__(self, directory):
        self.build = directory / "b"
        self.tools = directory / "tools"
        self.output = ""
        self.tool("cmake", "exit 0")
        self.tool("ninja", "exit 0")

    def tool(self, name, text):
        self._script(self.tools / name, text)

    def program(self, path, text):
        """In both builds."""
        for build in (self.build, self.build / "asan"):
            self._script(build / path, text)

    @staticmethod
    def _script(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def start(self, *arguments, before=None, program=(ROOT / "tests/run.sh",), **env):
        return subprocess.Popen(
            [*program, "--build", self.build, *arguments], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=before,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", **env})

    def run(self, *arguments, **env):
        """(status, last line)"""
        process = self.start(*arguments, **env)
        self.output, _ = process.communicate(timeout=120)
        return process.returncode, self.output.splitlines()[-1]

    def level(self, name):
        """(passed, failed, skipped) of its line."""
        found = re.search(LEVEL.format(name), self.output, re.MULTILINE)
        return tuple(map(int, found.groups()))


@pytest.fixture
def world(directory):
    return World(directory)


def test_tests_are_counted(world):
    """Each test of each build; a line for each level, and one at the end."""
    world.program("tests/unit/test_token", TWO_PASS)
    world.program("tests/unit/test_flow",
                  'echo 1..2; echo "ok 1 - a"; echo "ok 2 # SKIP not here"')
    assert world.run("test_token", "test_flow") == (0, "6 passed, 0 failed")
    assert "; 2 skipped" in world.output
    assert world.level("unit release") == world.level("unit sanitized") == (3, 0, 1)
    assert "skipped: ok 2 # SKIP not here" in world.output
    assert world.level("build") == (2, 0, 0)


def test_a_failure_is_shown(world):
    world.program("tests/unit/test_token", TWO_PASS)
    world.program("tests/unit/test_flow", 'echo 1..2; echo "ok 1 - a"; echo "what is wrong";'
                  'echo "not ok 2 - b"; exit 1')
    assert world.run("test_token", "test_flow") == (1, "6 passed, 2 failed")
    assert world.output.count("what is wrong") == 2
    assert world.level("unit release") == (3, 1, 0)


BAD_PROGRAMS = {
    "says nothing": "exit 0",
    "crashes": f"{TWO_PASS}; kill -SEGV $$",
    "ends badly": f"{TWO_PASS}; exit 3",
    "ends early": 'echo 1..2; echo "ok 1 - a"',
    "cannot be run": None,
}


@pytest.mark.parametrize("text", BAD_PROGRAMS.values(), ids=BAD_PROGRAMS.keys())
def test_a_program_that_does_not_end_well(world, text):
    """Whatever it says of its tests."""
    if text is not None:
        world.program("tests/unit/test_token", text)
    status, last = world.run("test_token")
    assert status == 1 and last.endswith(" passed, 2 failed"), world.output


def test_what_valgrind_says_of_a_child(world):
    """Of a forked process, that is: its status is not the program's."""
    world.program("tests/unit/test_token", "exit 1")
    world.tool("valgrind", f'{TWO_PASS}; echo "==7== 9 bytes in 1 blocks are definitely lost in loss record 1 of 1"; echo "==7==    at f"')
    assert world.run("valgrind-long/test_token") == (0, "2 passed, 0 failed")
    world.tool("valgrind", f'{TWO_PASS}; echo "==7== Invalid read of size 1"')
    assert world.run("valgrind-long/test_token") == (1, "2 passed, 1 failed")
    assert "valgrind says: ==7== Invalid read" in world.output


@pytest.mark.parametrize("tool", ["cmake", "ninja"])
def test_a_build_that_fails(world, tool):
    """All that needs it fails with it, although programs of an earlier build are there; the rest
    is run."""
    world.program("tests/unit/test_token", TWO_PASS)
    world.tool(tool, f"""case "$*" in
        */b/asan*) echo "{tool} is at its end"; exit 1 ;;
        esac""")
    assert world.run("test_token") == (1, "2 passed, 1 failed")
    assert f"{tool} is at its end" in world.output
    assert world.level("unit release") == (2, 0, 0)
    assert world.level("unit sanitized") == (0, 1, 0)


BAD_PYTESTS = {
    "runs nothing": 'print("99 passed in 1s")',
    "fails": 'import sys; print("99 passed in 1s"); sys.exit(4)',
    "is not there": "import no_such_module",
}


@pytest.mark.parametrize("text", BAD_PYTESTS.values(), ids=BAD_PYTESTS.keys())
def test_pytest_does_not_start(world, text):
    """A level of Python tests cannot vanish."""
    (world.tools / "pytest.py").write_text(text)
    status, last = world.run("test_tokens.py", PYTHONPATH=str(world.tools))
    assert (status, last) == (1, "0 passed, 1 failed"), world.output


def test_python_tests_are_counted(world):
    """A whole file, some tests of one, each once however often it is named."""
    status, last = world.run("test_version.py", "test_version.py::test_x")
    assert status != 0 and "no such test or level" in last
    world.program("shim/cri-device-shim", SAYS_SO)
    assert world.run(CONFIG_TEST, f"integration/{CONFIG_TEST}") == (0, "1 passed, 0 failed")


CONFIG_TEST = "test_config.py::test_missing_config"
SAYS_SO = 'echo "$2: no such file"; exit 1'


def test_what_fails_beside_others_is_run_again(world, directory):
    """If one says so; it counts once, and is named."""
    world.program("shim/cri-device-shim", f"[ -e {directory}/first ] && {{ {SAYS_SO}; }}; touch {directory}/first")
    assert world.run(CONFIG_TEST, "--again") == (0, "1 passed, 0 failed")
    assert "passed only when run again: integration sanitized test_config.py, 1 tests" in world.output
    (directory / "first").unlink()
    assert world.run(CONFIG_TEST) == (1, "0 passed, 1 failed")


def test_what_fails_again_has_failed(world):
    world.program("shim/cri-device-shim", "exit 0")
    assert world.run(CONFIG_TEST, "--again") == (1, "0 passed, 1 failed")
    assert "again" in world.output and "passed only" not in world.output


def without_programs(directory, names):
    """A directory with all that is on PATH but these."""
    directory.mkdir()
    for place in os.environ["PATH"].split(":"):
        for path in pathlib.Path(place).glob("*"):
            if path.name not in names and not (directory / path.name).is_symlink():
                (directory / path.name).symlink_to(path)
    return directory


def test_a_cluster_needs_its_programs(world, directory):
    """Where they are not there its tests are skipped one by one, and it says what is missing."""
    for name in ("kubelet", "etcd"):
        world.tool(name, "exit 1")
    there = without_programs(directory / "there", kube_programs.NAMES)
    assert world.run("test_kills.py", PATH=f"{world.tools}:{there}", SHIM_KUBE_BIN="") == (
        1, "0 passed, 0 failed")
    passed, failed, skipped = world.level("cluster")
    assert (passed, failed) == (0, 0) and skipped > 1
    assert world.output.count("skipped: ") == skipped
    assert world.output.count("not on PATH or in $SHIM_KUBE_BIN: kube-apiserver, "
                              "kube-controller-manager, kube-scheduler\n") == skipped


def test_seeds_are_no_tests(world):
    """The simulation's checks are counted, which are the same of each part."""
    world.program("tests/sim/sim", 'echo "seeds $2+$4"; echo "7 passed, 0 failed"')
    assert world.run("sim/sim", "--seeds", "1000", "--processors", "3") == (0, "14 passed, 0 failed")
    logs = (world.build / "tests.logs").glob("sim*.log")
    parts = sorted(log.read_text().splitlines()[0] for log in logs)
    assert parts == ["seeds 1+333", "seeds 334+333", "seeds 667+334"]
    world.program("tests/sim/sim", 'echo "7 passed, 0 failed"; echo "more"')
    assert world.run("sim/sim")[0] == 1


def test_fuzz_targets_are_counted(world):
    """What is kept, and the same runs each time; a target that fails says how to play it again."""
    target = "fuzz/tests/fuzz/fuzz_session"
    world.program(target, 'echo "$*" >>"$0.calls"')
    assert world.run("fuzz_session") == (0, "2 passed, 0 failed")
    kept, runs = (world.build / f"{target}.calls").read_text().splitlines()
    corpus, past = (ROOT / "tests/fuzz" / one / "fuzz_session" for one in ("corpus", "past"))
    assert all(str(path) in kept.split() for path in (*corpus.iterdir(), *past.iterdir()))
    assert "-seed=1" in runs.split() and "-runs=" in runs and "max_total_time" not in runs
    assert runs.endswith(f" {world.build}/fuzz/learned/fuzz_session {corpus}"), "nothing is kept"
    world.program(target, 'echo "Test unit written to /tmp/x"; exit 77')
    assert world.run("fuzz_session") == (1, "0 passed, 1 failed")
    assert f"FUZZ_TRACE=1 {world.build / target} /tmp/x" in world.output


def test_names(world):
    """A name may be that of several levels' tests; one of none ends it before anything runs."""
    world.tool("cmake", "exit 1")
    assert world.run("--list", "test_gate", "test_gate.py::test_only_the_first_relist_waits")[0] == 0
    status, last = world.run("test_no_such_thing")
    assert status != 0 and last.startswith("no such test or level: test_no_such_thing")
    status, _ = world.run("--list")
    listed = world.output.splitlines()
    assert status == 0 and len(listed) == len(set(listed))
    for one in ("unit/test_gate", "fuzz/fuzz_session", "fuzz-long/fuzz_session", "soak/soak", "faults/storm",
                "sim/sim", "sim/mutants", "mutants/all", "package/test_debian.py::test_lintian_says_nothing",
                "analysis/test_sources.py::test_cppcheck_finds_nothing",
                "integration/test_config.py::test_missing_config", "e2e/test_quickstart.py::test_quickstart"):
        assert one in listed
    world.run("--list", "test_bridge.py")
    assert {line.split("/")[0] for line in world.output.splitlines()} == {"integration", "e2e"}


NOTHING_RAN = (1, "0 passed, 1 failed")


@pytest.mark.parametrize("option", ["--list", "--help", "-h"])
def test_what_runs_nothing_needs_no_packages(world, option):
    """But Python."""
    world.tool("dpkg-query", '[ "$4" = python3 ] && echo installed')
    world.tool("apt-get", "exit 1")
    assert world.run("test_token") == NOTHING_RAN
    assert world.run(option)[0] == 0 and "installing" not in world.output


@pytest.mark.parametrize("name", ["package", "package/test_debian.py", "tests/package/test_debian.py"])
def test_packages_of_the_level_package(world, name):
    world.tool("dpkg-query", '[ "$4" = lintian ] || echo installed')
    world.tool("apt-get", "exit 1")
    assert world.run("test_token", name) == NOTHING_RAN
    assert "installing lintian\n" in world.output


@pytest.mark.parametrize("path,words", [
    ("/run/sources", "tests hide /run/sources"), ("/var/log/sources", "tests hide /var/log/sources"),
    ("/mnt/our sources", "has a blank in it")])
def test_the_sources_are_where_tests_cannot_run_them(world, path, words):
    """Their own directories are mounted there, or it is no word for a shell."""
    script = """path=$1; shift; mount -t tmpfs tmpfs "${path%/*}"; mkdir "$path"; mount --bind "$0" "$path"
        exec "$path/tests/run.sh" "$@" """
    assert world.run("test_token", program=["unshare", "--mount", "sh", "-ec", script, ROOT, path]) == NOTHING_RAN
    assert words in world.output


def test_where_programs_cannot_be_run(world):
    world.tool("findmnt", "echo rw,nosuid,nodev,noexec,relatime")
    assert world.run("test_token") == NOTHING_RAN
    assert "/tmp is mounted noexec" in world.output


@pytest.mark.parametrize("bits,flags", [(28, "00000000"), (32, "00040000")])  # ADDR_NO_RANDOMIZE
def test_more_random_bits_than_sanitizers_can_do_with(world, bits, flags):
    """All that runs has none, where that may be asked for."""
    world.program("tests/unit/test_token", f'{TWO_PASS}; read -r flags </proc/self/personality; echo "flags $flags"')
    world.tool("cat", f"echo {bits}")
    assert world.run("test_token") == (0, "4 passed, 0 failed")
    log = (world.build / "tests.logs/unit release-test_token.log").read_text()
    assert f"flags {flags}\n" in log
    world.tool("setarch", "exit 1")
    assert world.run("test_token") == (0, "4 passed, 0 failed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_interrupted(world, number):
    """Ctrl-C ends what runs, too; also where a shell has it run in the background, with SIGINT
    ignored."""
    world.program("tests/unit/test_token", 'touch "$0.runs"; exec tail -f "$0.runs"')
    process = world.start("test_token", before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_until((world.build / "tests/unit/test_token.runs").exists, "the program runs")
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    wait_until(lambda: not containerd.processes_naming(str(world.build)), "all that ran is gone")


def bench(world, *before):
    """The bench's output and status, without that anything is installed here."""
    done = subprocess.run([*before, ROOT / "tests/bench/run.sh", "--help"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, start_new_session=True,
                          env={**os.environ, "PATH": f"{world.tools}:{os.environ['PATH']}"})
    return done.stdout, done.returncode


def test_the_bench_does_not_measure_another_build(world):
    """A step of its build that fails ends it."""
    world.tool("cmake", "echo no compiler; exit 1")
    world.tool("dpkg-query", "echo installed")
    world.tool("apt-get", "echo apt was asked")
    output, status = bench(world)
    assert status == 1 and "no compiler" in output
    assert "usage" not in output and "apt was asked" not in output


POLICY = "/usr/sbin/policy-rc.d"


@pytest.fixture(name="no_policy")
def without_policy(world, directory):
    """What to put before a command for a /usr/sbin of its own, in which nobody has forbidden packages to start their services;
    what is there after it is in the file `left`."""
    if not containerd.overlayfs_works(directory):
        pytest.skip("no overlayfs here")
    world.tool("dpkg-query", "case $* in *haproxy*) exit 1 ;; esac\necho installed")
    world.tool("cmake", "exit 1")
    upper, work = directory / "upper", directory / "work"
    upper.mkdir()
    work.mkdir()
    script = (f"mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir={upper},workdir={work} /usr/sbin\n"
              f'rm -f {POLICY}\n"$0" "$@" && status=0 || status=$?\n'
              f"ls {POLICY} >{directory}/left 2>/dev/null\nexit $status")
    return ["unshare", "--mount", "sh", "-c", script]


@pytest.mark.parametrize("end", ["exit 1", "kill -INT $PPID $$"], ids=["fails", "is interrupted"])
def test_the_bench_leaves_no_policy(world, no_policy, directory, end):
    """With which no package's service would ever be started on this machine."""
    world.tool("apt-get", f"ls {POLICY} >{directory}/meanwhile\n{end}")
    bench(world, *no_policy)
    assert (directory / "meanwhile").read_text() == f"{POLICY}\n" and (directory / "left").read_text() == ""


@pytest.mark.parametrize("end", ["exit 0", "exit 1"], ids=["installed", "fails"])
def test_relays_of_the_bench_do_not_start_with_the_machine(world, no_policy, directory, end):
    """But for one that did before."""
    world.tool("apt-get", end)
    world.tool("systemctl", "case $* in *is-enabled*nginx*) exit 0 ;; *is-enabled*) exit 1 ;; esac\n"
               f'echo "$@" >>{directory}/told')
    bench(world, *no_policy)
    told = (directory / "told").read_text().splitlines()
    assert [line.split()[-2:] for line in told] == [["disable", "haproxy.service"], ["disable", "nghttpx.service"]]
