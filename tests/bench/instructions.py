#!/usr/bin/python3
"""How many instructions a call costs the shim, as valgrind's callgrind counts them: the same on a busy
machine as on an idle one, where times are not. The kernel's are not in it.

    instructions.py --build DIR --base BINARY [--only NAME,...]

Of two builds of the shim: the one in DIR (where run.sh built), and another. Each case is run with fewer
calls and with more; what a call costs is what the others have added.
"""

import argparse
import pathlib
import re
import tempfile

import bench
import targets

FEW, MANY = 200, 1200
STATUS = bytes(5)
CASES = [  # name, point, method, request
    ("1", bench.Point("1", 1, 1), "Status", STATUS),
    ("16", bench.Point("16", 1, 16), "Status", STATUS),
    ("64", bench.Point("64", 1, 64), "Status", STATUS),
    ("16 KiB", bench.Point("16 KiB", 1, 1, 16 << 10), "Status", STATUS),
    *((name, bench.Point("creates", 1, 1), method, bench.create_request(annotations))
      for name, method, annotations in bench.CREATES),
]


def count(build, binary, point, method, request, calls):
    """Of the whole process, from its start to its end."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        out = pathlib.Path(directory) / "callgrind"
        body = pathlib.Path(directory) / "request"
        body.write_bytes(request)
        command = targets.shim_argv(pathlib.Path(binary).resolve())
        shim = targets.Target("shim", lambda *args: ["valgrind", "--tool=callgrind",
                                                     f"--callgrind-out-file={out}", *command(*args)])
        runtime = targets.scripted_runtime(build)
        try:
            runtime.start(directory, None)
            shim.start(directory, runtime.listen)
            bench.load(shim.listen, method, body, point, calls, pathlib.Path(directory) / "log")
        finally:
            shim.stop()
            runtime.stop()
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="where run.sh built")
    parser.add_argument("--base", required=True, metavar="BINARY", help="the other build of the shim")
    parser.add_argument("--only", help="these cases, by comma: " + ", ".join(case[0] for case in CASES))
    args = parser.parse_args()
    targets.START_SECONDS_MAX = targets.STOP_SECONDS_MAX = 60  # valgrind is slow
    print(f"{'a call':<16}{'base':>12}{'shim':>12}  of base")
    for name, *case in CASES:
        if args.only and name not in args.only.split(","):
            continue
        base, shim = (
            (count(args.build, binary, *case, MANY) - count(args.build, binary, *case, FEW)) / (MANY - FEW)
            for binary in (args.base, pathlib.Path(args.build) / "shim/cri-device-shim"))
        print(f"{name:<16}{base:>12,.0f}{shim:>12,.0f}  {shim / base:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
