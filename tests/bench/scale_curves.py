#!/usr/bin/python3
"""Draws scale.json: config/scale.svg, by gnuplot.

    scale_curves.py [FIGURES [PICTURE]]

Six fields, each with a curve for each of what was varied; along, how much of a full node there was of it.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FIGURES, PICTURE = HERE / "scale.json", HERE.parents[1] / "config/scale.svg"

FIELDS = [  # what it says above, figure, divided by
    ("Memory of the daemon, MiB", "daemon_kib", 1024),
    ("Memory of the bridge, MiB", "bridge_kib", 1024),
    ("Memory of the agent, MiB", "agent_kib", 1024),
    ("Daemon's CPU at rest, ms a minute", "daemon_cpu_ms", 1),
    ("Bridge's CPU at rest, ms a minute", "bridge_cpu_ms", 1),
    ("From a start to the first relayed call, ms", "start_ms", 1),
]
COLOURS = {"pods": "#0072b2", "devices": "#d55e00", "resources": "#009e73", "drivers": "#cc79a7",
           "claims": "#e69f00", "all": "#555555"}  # that people with any colour vision tell apart
SAID = {"all": "all of it"}

HEAD = """
set terminal svg size 960,600 dynamic font "sans-serif,12" background "#ffffff" name "scale"
set output
set multiplot layout 2,3 margins 0.06,0.98,0.14,0.92 spacing 0.06,0.13
set border 3 lc rgb "#888888"
set tics nomirror textcolor rgb "#333333"
set grid y lc rgb "#e5e5e5"
set xtics ("0" 0, "½" 0.5, "full" 1, "2×" 2)
set xrange [0:2]
set yrange [0:*]
unset key
"""


def label(figures, name):
    limit = figures["limits"].get(name)
    return f"{limit:,} {name}" if limit else SAID[name]


def field(figures, title, figure, divisor):
    """gnuplot's commands for one."""
    curves, lines = [], []
    for name, shares in figures["nodes"].items():
        points = [(float(share), one[figure] / divisor) for share, one in shares.items() if figure in one]
        if not points:
            continue
        name = "pods" if name == "agent" else name
        curves.append(f'"-" with linespoints lw 2 pt 7 ps 0.5 lc rgb "{COLOURS[name]}"')
        lines += [f"{x} {y:.3f}" for x, y in points] + ["e"]
    return f'set title "{title}" offset 0,-0.5\nplot {", ".join(curves)}\n' + "\n".join(lines) + "\n"


def legend(figures):
    """One line below all fields."""
    names = [name for name in COLOURS if name in figures["nodes"]]
    out = []
    for at, name in enumerate(names):
        x = 0.06 + at * 0.155
        out.append(f'set label {at + 1} "● {label(figures, name)}" at screen {x:.3f}, screen 0.04 '
                   f'textcolor rgb "{COLOURS[name]}"')
    return "\n".join(out) + "\n"


def main():
    figures = json.loads(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else FIGURES).read_text())
    first, *others = [field(figures, *one) for one in FIELDS]
    script = HEAD + legend(figures) + first + "unset label\n" + "".join(others)
    drawn = subprocess.run(["gnuplot"], input=script, text=True, check=True, stdout=subprocess.PIPE).stdout
    pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else PICTURE).write_text(drawn)


if __name__ == "__main__":
    main()
