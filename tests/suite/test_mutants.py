"""The faults that are planted: seen at once, not when the simulation has run."""

import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "sim/mutants.sh"


def test_each_fits_the_text_as_it_is():
    done = subprocess.run([SCRIPT, "--fit"], stdout=subprocess.PIPE, text=True)
    assert done.stdout == ""
    assert done.returncode == 0
