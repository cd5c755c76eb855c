"""That manual page and completions of cri-device-shimctl have every command and option there is."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios

import pytest

from ctl import CTL
from shim import ROOT
from waiting import wait_until

MANUAL = (ROOT / "config/cri-device-shimctl.1").read_text().replace("\\-", "-")
BASH = ROOT / "config/completion.bash"
ZSH = (ROOT / "config/completion.zsh").read_text()


OPTION = re.compile(r"^  (?:(-\w),|   ) (--[a-z-]+)", re.MULTILINE)


def run(*words):
    return subprocess.run([CTL, *words], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture(scope="module")
def said():
    """({command: its arguments}, options) of --help."""
    commands, options = run("--help").split("Options:")
    found = dict(re.findall(r"^  ([a-z-]+(?: [a-z]+)*)((?: [^ ]+)*)  ", commands, re.MULTILINE))
    options = OPTION.findall(options)
    assert len(found) >= 2 and len(options) == 5
    return found, options


def own_options(command):
    """[(letter or "", --name)] of its --help."""
    before, _ = run(*command.split(), "--help").split("Options of all commands:")
    return OPTION.findall(before)


def offered(*words):
    """What bash completes behind these words."""
    script = (f". {BASH}; COMP_WORDS=({CTL} {' '.join(words)} ''); "
              f"COMP_CWORD={len(words) + 1}; _cri_device_shimctl; printf '%s\n' \"${{COMPREPLY[@]}}\"")
    return set(subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True,
                              timeout=60).stdout.split())


def test_the_page_names_commands_that_there_are(said):
    page = (ROOT / "shim/page/page.html").read_text()
    named = re.findall(r"<code>cri-device-shimctl ([^<]+)</code>", page)
    assert named and not set(named) - set(said[0]) - {name for names in said[1] for name in names}


def test_the_manual_page_has_them(said):
    commands, options = said
    section = MANUAL.split(".SH COMMANDS")[1].split(".SH OPTIONS")[0]
    assert re.findall(r"^\.SS (.+)$", section, re.MULTILINE) == [
        name + arguments for name, arguments in commands.items()]
    told = re.findall(r'^\.BR (-\w) ", " (--[a-z]+)', MANUAL.split(".SH OPTIONS")[1], re.MULTILINE)
    assert told == options


def test_the_manual_page_has_each_commands_options(said):
    """As .BR -f ", " --follow, or .B --yes, in the command's section."""
    commands, _ = said
    sections = dict(re.findall(r"^\.SS (.+)\n((?:(?!\.S[SH]).*\n)*)", MANUAL, re.MULTILINE))
    for name, arguments in commands.items():
        told = re.findall(r'^\.B[RI]* (?:(-\w) ", " )?(--[a-z-]+)', sections[name + arguments],
                          re.MULTILINE)
        assert told == own_options(name), name


def test_the_manual_page_has_the_exit_statuses():
    header = (ROOT / "shim/ctl/command.h").read_text()
    real = re.findall(r"COMMAND_\w+ = (\d)", header)
    section = MANUAL.split(".SH EXIT STATUS")[1].split(".SH ENVIRONMENT")[0]
    assert len(real) == 6 and re.findall(r"^\.B (\d)$", section, re.MULTILINE) == real


def test_the_manual_page_has_each_kind_of_event():
    kinds = json.loads((ROOT / "tests/schemas/events.json").read_text())["definitions"]["event"]["properties"]["kind"]
    section = MANUAL.split(".SS events")[1].split(".SS ")[0]
    told = re.findall(r"^\.(?:B|BR|RB) (?:\( )?([a-z-]+)", section, re.MULTILINE)
    assert set(kinds["enum"]) <= set(told)


def test_bash_completes_them(said):
    commands, options = said
    common = {word for pair in options for word in pair}
    assert offered() == {name.split()[0] for name in commands} | common
    for name in commands:
        own = {word for pair in own_options(name) for word in pair if word}
        assert offered(*name.split()) >= common | own
    assert offered("-o") == offered("status", "--output") == {"json", "wide", "name"}


@pytest.mark.parametrize("words", ["-s", "support", "checkpoint import", "checkpoint import --config"])
def test_bash_completes_files(directory, words):
    (directory / "one.sock").write_text("")
    script = (f". {BASH}; cd {directory}; COMP_WORDS=({CTL} {words} on); "
              f"COMP_CWORD={len(words.split()) + 1}; "
              "_cri_device_shimctl; echo \"${COMPREPLY[@]}\"")
    assert subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True,
                          timeout=60).stdout == "one.sock\n"


class Zsh:
    """A zsh that a person types at, with our completion where install.sh puts it."""

    COMMAND = ("zsh", "-f", "-i")
    # ^X^L: the line as it is goes to a file, and is empty.
    SETUP = """PS1='ready '; LISTMAX=1000; fpath=({directory} $fpath); path=({bin} $path); cd {directory}
               unsetopt beep; autoload -Uz compinit; compinit -u -d {directory}/dump
               line() {{ print -r -- "<$BUFFER>" >>{directory}/lines; BUFFER=; }}
               zle -N line; bindkey '^X^L' line; : >{directory}/lines; clear"""

    def __init__(self, directory):
        (directory / "_cri-device-shimctl").write_text(ZSH)
        (directory / "setup").write_text(self.SETUP.format(directory=directory, bin=CTL.parent))
        self._lines = directory / "lines"
        self.shown = ""
        self._terminal, end = pty.openpty()
        self._process = subprocess.Popen(["setsid", "--ctty", *self.COMMAND], stdin=end, stdout=end, stderr=end,
                                         env={**os.environ, "TERM": "xterm", "LINES": "200", "COLUMNS": "200"})
        os.close(end)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 200, 0, 0))
        self._type(f". {directory}/setup\n")
        wait_until(lambda: self._read() and self._lines.exists(), "it has begun")

    def _type(self, text):
        os.write(self._terminal, text.encode())

    def _read(self):
        while select.select([self._terminal], [], [], 0)[0]:
            self.shown += os.read(self._terminal, 65536).decode(errors="replace")
        return True

    def completed(self, line):
        """The line after a tab at its end."""
        before = self._lines.read_text().count("\n")
        self.shown = ""
        self._type(f"{line}\t\x18\x0c")
        wait_until(lambda: self._read() and self._lines.read_text().count("\n") > before,
                   "the line is completed")
        return self._lines.read_text().splitlines()[-1][1:-1]

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


class Bash(Zsh):
    """A bash, likewise."""

    COMMAND = ("bash", "--norc", "--noprofile", "-i")
    SETUP = """PS1='ready '; PATH={bin}:$PATH; . """ + str(BASH) + """; cd {directory}
               line() {{ printf '<%s>\\n' "$READLINE_LINE" >>{directory}/lines; READLINE_LINE=; }}
               bind 'set bell-style none'; bind -x '"\\C-x\\C-l": line'; : >{directory}/lines; clear"""


@pytest.fixture
def bash(directory, closing):
    return closing(Bash(directory))


def test_bash_writes_files_as_a_shell_wants_them(bash, directory):
    """With what has to be quoted, and a directory as what has more in it; all else as it is."""
    (directory / "of g0").mkdir()
    (directory / "of g0" / "made.json").write_text("")
    (directory / "status").mkdir()
    assert bash.completed("cri-device-shimctl checkpoint import of") == "cri-device-shimctl checkpoint import of\\ g0/"
    assert bash.completed("cri-device-shimctl checkpoint import of\\ g0/m") == (
        "cri-device-shimctl checkpoint import of\\ g0/made.json ")
    assert bash.completed("cri-device-shimctl stat") == "cri-device-shimctl status "


@pytest.fixture
def zsh(directory, closing):
    return closing(Zsh(directory))


def test_zsh_completes_them(zsh, said):
    commands, _ = said
    firsts = {name.split()[0] for name in commands}
    assert zsh.completed("cri-device-shimctl ") == "cri-device-shimctl "
    # Those that have the same words behind them stand on one line.
    lines = re.findall(r"^(?:\x1b\[\S*?m)?([a-z-]+(?: +[a-z-]+)*) +-- ",
                       zsh.shown.replace("\r", ""), re.MULTILINE)
    listed = {name for line in lines for name in line.split()}
    assert listed >= firsts
    for name in firsts:
        shortest = next(name[:n] for n in range(1, len(name) + 1)
                        if sum(other.startswith(name[:n]) for other in firsts) == 1 or n == len(name))
        assert zsh.completed(f"cri-device-shimctl {shortest}").startswith(
            f"cri-device-shimctl {name}"), name
    assert zsh.completed("cri-device-shimctl grace ex") == "cri-device-shimctl grace extend "
    assert zsh.completed("cri-device-shimctl events --fol") == "cri-device-shimctl events --follow "
    assert zsh.completed("cri-device-shimctl status -o j") == "cri-device-shimctl status -o json "


def test_zsh_completes_files(zsh, directory):
    (directory / "one.sock").write_text("")
    assert zsh.completed("cri-device-shimctl -s one") == "cri-device-shimctl -s one.sock "
