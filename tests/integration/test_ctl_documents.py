"""That manual page and completions of cri-device-shimctl have every command and option there is."""

import re
import subprocess

import pytest

from ctl import CTL
from shim import ROOT

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


def test_bash_completes_them(said):
    commands, options = said
    common = {word for pair in options for word in pair}
    assert offered() == {name.split()[0] for name in commands} | common
    for name in commands:
        own = {word for pair in own_options(name) for word in pair if word}
        assert offered(*name.split()) >= common | own
    assert offered("-o") == offered("status", "--output") == {"json", "wide", "name"}


def test_bash_completes_files(directory):
    (directory / "one.sock").write_text("")
    script = (f". {BASH}; cd {directory}; COMP_WORDS=({CTL} -s on); COMP_CWORD=2; "
              "_cri_device_shimctl; echo \"${COMPREPLY[@]}\"")
    assert subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True,
                          timeout=60).stdout == "one.sock\n"


def test_zsh_asks_the_program():
    assert '"${words[1]}" __complete "${(@)words[2,CURRENT]}"' in ZSH
