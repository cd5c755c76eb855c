"""cri-device-shimctl, as a person or a script runs it.

    done = ctl(shim, "status")           # .returncode, .stdout, .stderr
    ctl_json(shim, "status")             # its JSON, which is as the schema of the command says
    answered(shim, "y\n", "release", "web")
"""

import json
import os
import pathlib
import pty
import select
import subprocess
import time

import jsonschema

from shim import BINARY, ROOT, accepts
from waiting import GENEROUS_S, wait_until

CTL = BINARY.with_name("cri-device-shimctl")
SCHEMAS = ROOT / "tests/schemas"
# To look for leaks takes a sanitized one as long as all that it is run for; what it keeps goes with it.
_SANITIZER = {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}


def _socket_of(shim):
    return shim.control if hasattr(shim, "control") else pathlib.Path(shim)


AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")  # a prefix


def ctl(shim, *arguments, prefix=(), **settings):
    """`shim`: one, or the path of a socket."""
    settings.setdefault("timeout", 60)
    environment = {**os.environ, "CRI_DEVICE_SHIM_CONTROL": str(_socket_of(shim)), **_SANITIZER}
    return subprocess.run([*prefix, CTL, *arguments], check=False, capture_output=True, text=True,
                          env=environment, **settings)


def _read_until(terminal, end):
    """What was written to it, up to these words at least; in what pieces it comes is open."""
    text = b""
    while end.encode() not in text and select.select([terminal], [], [], GENEROUS_S)[0]:
        text += os.read(terminal, 65536)
    return text.decode()


def answered(shim, said, *arguments, after_s=0):
    """One that asks "[y/N]" at a terminal, and is told `said` `after_s` later: (status, its
    stdout, what was shown)."""
    ours, theirs = pty.openpty()
    with open(theirs, "r+b", buffering=0, closefd=True) as terminal:
        asked = subprocess.Popen([CTL, "-s", str(_socket_of(shim)), *arguments], stdin=terminal,
                                 stdout=subprocess.PIPE, stderr=terminal, text=True)
        time.sleep(after_s)
        os.write(ours, said.encode())
        out, _ = asked.communicate(timeout=60)
        shown = _read_until(ours, "[y/N]")
    os.close(ours)
    return asked.returncode, out, shown


def schema_of(command):
    return json.loads((SCHEMAS / f"{command}.json").read_text())


def ctl_json(shim, command, *arguments):
    """Its answer, of a daemon that runs or is being started: what control is asked at is there some
    moments after the CRI's socket."""
    wait_until(lambda: accepts(_socket_of(shim)), "the control socket is there")
    done = ctl(shim, command, *arguments, "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return checked(command, done.stdout)


def checked(command, text):
    """The JSON of a command's answer."""
    answer = json.loads(text)
    jsonschema.Draft7Validator(schema_of(command),
                               format_checker=jsonschema.FormatChecker()).validate(answer)
    return answer
