"""That manual page and completions of cri-device-shimctl have every command and option there is."""

import re
import subprocess

import pytest

from ctl import CTL
from shim import ROOT

MANUAL = (ROOT / "config/cri-device-shimctl.1").read_text().replace("\\-", "-")
BASH = ROOT / "config/completion.bash"
ZSH = (ROOT / "config/completion.zsh").read_text()


@pytest.fixture(scope="module")
def said():
    """(commands, options) of --help."""
    words = subprocess.run([CTL, "--help"], check=True, capture_output=True, text=True,
                           timeout=60).stdout
    commands, options = words.split("Options:")
    found = (re.findall(r"^  ([a-z]+) ", commands, re.MULTILINE),
             re.findall(r"^  (-\w), (--[a-z]+)", options, re.MULTILINE))
    assert len(found[0]) >= 2 and len(found[1]) >= 5
    return found


def offered(*words):
    """What bash completes behind these words."""
    script = (f". {BASH}; COMP_WORDS=(cri-device-shimctl {' '.join(words)} ''); "
              f"COMP_CWORD={len(words) + 1}; _cri_device_shimctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return set(subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True,
                              timeout=60).stdout.split())


def test_the_manual_page_has_them(said):
    commands, options = said
    section = MANUAL.split(".SH COMMANDS")[1].split(".SH OPTIONS")[0]
    assert re.findall(r"^\.TP\n\.BI? ([a-z]+)", section, re.MULTILINE) == commands
    told = re.findall(r'^\.BR (-\w) ", " (--[a-z]+)', MANUAL, re.MULTILINE)
    assert told == options


def test_the_manual_page_has_the_exit_statuses():
    header = (ROOT / "shim/ctl/command.h").read_text()
    real = re.findall(r"COMMAND_\w+ = (\d)", header)
    section = MANUAL.split(".SH EXIT STATUS")[1].split(".SH ENVIRONMENT")[0]
    assert len(real) == 6 and re.findall(r"^\.B (\d)$", section, re.MULTILINE) == real


def test_bash_completes_them(said):
    commands, options = said
    assert offered() == set(commands) | {word for pair in options for word in pair}
    assert offered("-o") == offered("status", "--output") == {"json", "wide", "name"}


def test_zsh_completes_them(said):
    commands, options = said
    assert re.findall(r"\{(-\w),(--[a-z]+)\}", ZSH) == options
    assert re.findall(r'([a-z]+)\\:"', ZSH) == commands
