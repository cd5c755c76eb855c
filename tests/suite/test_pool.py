"""The pool of tests/run.sh: what runs beside what, and that nothing runs for ever."""

import os
import signal
import subprocess

import pytest

from containerd import processes_naming
from pool import Counts, Job, Pool
from waiting import wait_until


@pytest.fixture
def run(directory):
    """run(name=settings of its Job): {name: the Job, over}; each counts as one passed test."""
    def runs(processors=2, **settings):
        jobs = {}
        for name, one in settings.items():
            needs = tuple(jobs[other] for other in one.pop("needs", ()))
            command = one.pop("command", None) or ["sh", "-c", one.pop("script", "true")]
            jobs[name] = Job("level", name, [command],
                             directory / f"{name}.log", lambda text, statuses: Counts(passed=1),
                             needs=needs, **one)
        ended = []
        Pool(processors, ended.append).run(jobs.values())
        assert sorted(one.name for one in ended) == sorted(jobs)
        return jobs

    return runs


def meet(mine, theirs):
    """A script that ends only once another's has begun."""
    return f"touch {mine}; until [ -e {theirs} ]; do sleep 0.01; done"


def test_what_fits_runs_side_by_side(run, directory):
    """Two that wait for each other, and a third that keeps a whole processor busy."""
    a, b, c = (directory / name for name in "abc")
    jobs = run(a={"script": meet(a, b), "processors": 0.5},
               b={"script": meet(b, c), "processors": 0.5},
               c={"script": meet(c, a), "processors": 1})
    assert all(job.good for job in jobs.values())


def overlap(one, other):
    return one.began < other.ended and other.began < one.ended


def test_what_does_not_fit_waits(run):
    jobs = run(processors=1, a={"script": "sleep 0.1"}, b={"script": "sleep 0.1"},
               large={"processors": 7})
    a, b, large = jobs.values()
    assert not overlap(a, b) and not overlap(a, large) and not overlap(b, large)


def test_room_is_kept_for_what_takes_long(run):
    """What is shorter, and would fit, begins behind it; what gives way does not take its room."""
    jobs = run(first={"script": "sleep 0.5", "processors": 0.5, "long": 200},
               long={"script": "true", "processors": 1.75, "long": 150},
               short={"script": "true", "processors": 0.25},
               beside={"script": "true", "gives_way": True})
    assert jobs["short"].began >= jobs["long"].began >= jobs["first"].ended > jobs["beside"].began


def test_what_gives_way(run, directory):
    """It runs beside whatever else does, one for each processor, and with its nice value."""
    a, b = directory / "a", directory / "b"
    shows = "nice; [ ! -e /proc/self/autogroup ] || cat /proc/self/autogroup"
    jobs = run(processors=1, large={"script": meet(a, b), "processors": 1},
               one={"script": f"{meet(b, a)}; {shows}", "gives_way": True},
               other={"script": "sleep 0.1", "gives_way": True})
    assert all(job.good for job in jobs.values()) and not overlap(jobs["one"], jobs["other"])
    shown = jobs["one"].log.read_text().splitlines()
    assert shown[0] == "19" and all("nice 19" in line for line in shown if "autogroup-" in line)


def test_alone(run):
    jobs = run(a={"script": "sleep 0.1", "processors": 0.1, "alone": True},
               b={"script": "sleep 0.1", "processors": 0.1, "alone": True},
               c={"script": "sleep 0.1", "processors": 0.1})
    a, b, c = jobs.values()
    assert a.began >= c.ended and b.began >= c.ended and not overlap(a, b)


def test_what_is_needed_comes_first(run):
    jobs = run(first={"script": "sleep 0.1"}, bad={"script": "false"},
               after={"needs": ["first"]}, never={"needs": ["first", "bad"], "script": "echo ran"})
    assert jobs["after"].began >= jobs["first"].ended and jobs["after"].good
    assert jobs["never"].counts.failed == 1 and jobs["never"].log.read_text() == ""


def test_one_that_does_not_end(run):
    """It fails, and nothing of it is left."""
    words = f"sleep 1{os.getpid()}"
    jobs = run(slow={"script": f"{words} & wait", "seconds_max": 1})
    assert jobs["slow"].counts.failed == 1
    assert jobs["slow"].counts.notes == ["took over 1 s"]
    wait_until(lambda: not processes_naming(words), "it is gone, as is its child")


@pytest.mark.parametrize("started", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_interrupted_while_one_is_started(run, monkeypatch, number, started):
    """It comes as soon as there is the first process, or the second: both end. No shell: dash loses
    a signal that comes while it starts a command, and that command, too."""
    words = f"sleep 2{os.getpid()}"
    command = ["timeout", "1000", *words.split()]
    processes = []
    popen = subprocess.Popen

    def start(*arguments, **settings):
        processes.append(popen(*arguments, **settings))
        if len(processes) == started:
            signal.raise_signal(number)
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(KeyboardInterrupt):
        run(a={"command": command}, b={"command": command})
    assert processes[started - 1:]
    wait_until(lambda: not processes_naming(words), "they are gone, as are their children")
