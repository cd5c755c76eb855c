"""cri-device-shimctl, as a person or a script runs it.

    done = ctl(shim, "status")           # .returncode, .stdout, .stderr
    ctl_json(shim, "status")             # its JSON, which is as the schema of the command says
"""

import json
import os
import pathlib
import subprocess

import jsonschema

from shim import BINARY, ROOT

CTL = BINARY.with_name("cri-device-shimctl")
SCHEMAS = ROOT / "tests/schemas"


def _socket_of(shim):
    return shim.control if hasattr(shim, "control") else pathlib.Path(shim)


def ctl(shim, *arguments, **settings):
    """`shim`: one, or the path of a socket."""
    settings.setdefault("timeout", 60)
    environment = {**os.environ, "CRI_DEVICE_SHIM_CONTROL": str(_socket_of(shim))}
    return subprocess.run([CTL, *arguments], check=False, capture_output=True, text=True,
                          env=environment, **settings)


def schema_of(command):
    return json.loads((SCHEMAS / f"{command}.json").read_text())


def ctl_json(shim, command, *arguments):
    done = ctl(shim, command, *arguments, "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return checked(command, done.stdout)


def checked(command, text):
    """The JSON of a command's answer."""
    answer = json.loads(text)
    jsonschema.Draft7Validator(schema_of(command),
                               format_checker=jsonschema.FormatChecker()).validate(answer)
    return answer
