"""Jobs, and the pool that runs them side by side.

A job is one or more commands, run one after the other, and a way to count what they did. The pool
starts what fits: each job says how many processors it keeps busy, a fraction where it mostly waits;
for one that takes long, what is shorter leaves room.
What only computes `gives_way`: it takes what the others leave, one for each processor, and counts
for nothing beside them. A job that is `alone` is run when no other does, after all of them.
"""

import contextlib
import dataclasses
import os
import pathlib
import selectors
import signal
import subprocess
import time

_NICE = 19    # of what gives way
_LONG_S = 100  # what is longer is not to be what all ends with
_KILL_S = 60  # from the signal that asks a job to end to the one that does not ask


@dataclasses.dataclass
class Counts:
    """Of tests. `notes`: lines to show, as a skipped test's reason or a measured figure."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes


@dataclasses.dataclass
class Job:
    """`commands`: lists of words; after one that fails the others are not run.

    `count(log text, exit statuses)` gives its Counts; see counted(). `needs`: jobs that must have
    succeeded before. `log`: where all that the commands print goes, and below which they may leave
    files of their own.
    """

    level: str
    name: str
    commands: list
    log: pathlib.Path
    count: object
    env: dict = dataclasses.field(default_factory=dict)
    directory: pathlib.Path = None
    processors: float = 1.0
    gives_way: bool = False
    alone: bool = False
    seconds_max: int = 600
    needs: tuple = ()
    long: int = 0      # those that take longest are to begin first: larger ones do
    again: object = None  # again(): the Job of what failed of it; None: that cannot be run alone
    counts: Counts = None  # once it is over
    statuses: list = dataclasses.field(default_factory=list)
    timed_out: bool = False
    began: float = 0
    ended: float = 0
    cpu_s: float = 0

    @property
    def over(self):
        return self.counts is not None

    @property
    def good(self):
        return self.over and self.counts.failed == 0


def counted(job):
    """What a job that is over comes to: one that did not end well has failed, whatever it says, and
    so has one in which no test ran."""
    text = job.log.read_text(errors="replace")
    try:
        counts = job.count(text, job.statuses)
    except Exception as error:  # whatever it printed: it is not what it prints when all is well
        counts = Counts(failed=1, notes=[f"its result cannot be read: {error!r}"])
    if counts.failed == 0 and (job.timed_out or any(job.statuses)):
        why = f"took over {job.seconds_max} s" if job.timed_out else f"ended with {job.statuses}"
        counts.failed = 1
        counts.notes.append(why)
    if counts.passed + counts.failed + counts.skipped == 0:
        counts.failed = 1
        counts.notes.append("no test ran")
    return counts


def _give_way():
    """To all other processes, also where each session has its share (sched(7), autogroup). In the
    process itself, before its program begins: none of it has another nice value."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        pathlib.Path("/proc/self/autogroup").write_text(str(_NICE), encoding="ascii")


class _Running:
    """The command that a job is at."""

    def __init__(self, job):
        self.job = job
        self._commands = iter(job.commands)
        self._asked_at = None
        job.log.parent.mkdir(parents=True, exist_ok=True)
        self._output = open(job.log, "wb")
        job.began = time.monotonic()
        self.file = None
        self._process = None
        self._next()

    def _next(self):
        """Whether there is another command, which is then started."""
        command = next(self._commands, None)
        if command is None:
            return False
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT,
                cwd=self.job.directory, env={**os.environ, **self.job.env}, start_new_session=True,
                preexec_fn=_give_way if self.job.gives_way else None)
        except OSError as error:
            self._output.write(f"{error}\n".encode())
            self.job.statuses.append(127)
            return False
        self.file = os.pidfd_open(self._process.pid)
        return True

    @property
    def started(self):
        return self.file is not None

    def ended(self):
        """The command has: whether the job goes on."""
        _pid, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self.file)
        self.file = None
        self.job.statuses.append(self._process.returncode)
        self.job.cpu_s += usage.ru_utime + usage.ru_stime
        if self._asked_at is not None:  # its children may not have heard
            self.signal(signal.SIGKILL)
        return self._process.returncode == 0 and not self.job.timed_out and self._next()

    def check_time(self):
        now = time.monotonic()
        if self._asked_at is None and now - self.job.began > self.job.seconds_max:
            self.job.timed_out = True
            self.interrupt()
        if self._asked_at is not None and now - self._asked_at > _KILL_S:
            self.signal(signal.SIGKILL)

    def interrupt(self):
        self._asked_at = time.monotonic()
        self.signal(signal.SIGINT)

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def close(self):
        self._output.close()
        self.job.ended = time.monotonic()


@contextlib.contextmanager
def _asked_to_end():
    """A file that can be read once SIGINT or SIGTERM has come. An exception at any place, which is
    Python's own way, would leave behind what is being started there.

    A shell that runs us in the background has SIGINT ignored, and with it by all that is started.
    """
    reader, writer = os.pipe()
    before = {number: signal.signal(number, lambda *_: os.write(writer, b"."))
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


class Pool:
    """`report(job)` is called as each job ends."""

    def __init__(self, processors, report):
        self._processors = processors
        self._report = report
        self._running = []
        self._selector = selectors.DefaultSelector()

    def run(self, jobs):
        """KeyboardInterrupt: SIGINT or SIGTERM came, and has ended what ran."""
        waiting = sorted(jobs, key=lambda job: (job.alone, -job.long))
        with _asked_to_end() as asked:
            self._selector.register(asked, selectors.EVENT_READ)
            while waiting or self._running:
                self._start(waiting)
                events = self._selector.select(timeout=1 if self._running else 0)
                if any(key.fd == asked for key, _events in events):
                    self._selector.unregister(asked)
                    self._interrupt()
                    raise KeyboardInterrupt
                for key, _events in events:
                    self._ended(key.data)
                for one in self._running:
                    one.check_time()
            self._selector.unregister(asked)

    def _start(self, waiting):
        kept = False  # room, for one that takes long
        for job in list(waiting):
            if any(one.over and not one.good for one in job.needs):
                waiting.remove(job)
                job.log.parent.mkdir(parents=True, exist_ok=True)
                job.log.write_text("")
                self._finish(job, Counts(failed=1, notes=["what it needs has failed"]))
            elif not all(one.over for one in job.needs) or (kept and not job.gives_way):
                continue
            elif self._fits(job, waiting):
                waiting.remove(job)
                self._begin(job)
            else:
                kept = kept or (job.long >= _LONG_S and not job.gives_way and not job.alone)

    def _fits(self, job, waiting):
        if not self._running:
            return not job.alone or all(one.alone for one in waiting)
        if job.alone or any(one.job.alone for one in self._running):
            return False
        beside = [one.job for one in self._running if one.job.gives_way == job.gives_way]
        busy = len(beside) if job.gives_way else sum(one.processors for one in beside)
        return busy + (1 if job.gives_way else job.processors) <= self._processors + 0.001

    def _begin(self, job):
        running = _Running(job)
        if not running.started:
            running.close()
            self._finish(job, counted(job))
            return
        self._running.append(running)
        self._selector.register(running.file, selectors.EVENT_READ, running)

    def _ended(self, running):
        self._selector.unregister(running.file)
        if running.ended():
            self._selector.register(running.file, selectors.EVENT_READ, running)
            return
        self._running.remove(running)
        running.close()
        self._finish(running.job, counted(running.job))

    def _finish(self, job, counts):
        job.counts = counts
        self._report(job)

    def _interrupt(self):
        """As Ctrl-C would do it, were they not in sessions of their own."""
        for one in self._running:
            one.interrupt()
        while self._running:
            for key, _events in self._selector.select(timeout=1):
                self._selector.unregister(key.data.file)
                key.data.job.timed_out = True  # no further command
                key.data.ended()
                key.data.close()
                self._running.remove(key.data)
            for one in self._running:
                one.check_time()
