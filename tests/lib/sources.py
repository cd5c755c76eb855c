"""The files of the project, and how each of its C and C++ files is compiled."""

import json
import os
import pathlib
import shlex
import subprocess

from shim import ROOT

BUILD = pathlib.Path(os.environ.get("SHIM_BUILD_DIR", ROOT / "build"))
# Recorded bytes, and a text that is not ours.
NOT_OURS = ("tests/fuzz/corpus/", "tests/integration/captures/", "LICENSE")


def listed():
    """Their paths from the top."""
    found = subprocess.run(["git", "-C", ROOT, "ls-files"], check=False, capture_output=True,
                           text=True).stdout.split("\n")[:-1]
    if not found:  # not a clone: a source package
        found = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if path.is_file() and path.relative_to(ROOT).parts[0] not in ("build", ".git")]
    return [name for name in found if (ROOT / name).is_file() and not name.startswith(NOT_OURS)
            and "__pycache__" not in name]


class Compiled:
    """One of our own files in the build that SHIM_BUILD_DIR names. `arguments`: without the compiler,
    and without what it writes; `directory`: in which they are meant. `room`: folder, at most two."""

    def __init__(self, entry):
        path = pathlib.Path(entry["file"]).relative_to(ROOT)
        words = shlex.split(entry["command"])[1:]
        output = words.index("-o")
        self.name = str(path)
        self.room = "/".join(path.parts[:2][:len(path.parts) - 1])
        self.arguments = words[:output] + words[output + 2:]
        self.directory = entry["directory"]
        self.language = "c" if path.suffix == ".c" else "c++"


def compiled():
    """All that are, each once however many programs have it."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    ours = {entry["file"]: entry for entry in reversed(entries)
            if ROOT in pathlib.Path(entry["file"]).parents and BUILD not in pathlib.Path(entry["file"]).parents}
    return [Compiled(ours[name]) for name in sorted(ours)]
