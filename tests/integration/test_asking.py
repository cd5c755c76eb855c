"""That to ask why changes nothing: the simulator decides the same, asked at random and not at all."""

import os
import pathlib
import subprocess

import pytest

from shim import ROOT

SIM = pathlib.Path(os.environ.get("SHIM_BUILD_DIR", ROOT / "build")) / "tests/sim/sim"
SEEDS = 200


@pytest.mark.release
def test_decisions_are_the_same(directory):
    unasked = directory / "unasked"
    unasked.write_text(f'#!/bin/sh\nexec {SIM} --unasked "$@"\n')
    unasked.chmod(0o755)
    done = subprocess.run([ROOT / "tests/sim/decisions.sh", unasked, SIM, str(SEEDS)], check=False,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f" creates in {SEEDS} seeds: 0 seeds differ" in done.stdout
