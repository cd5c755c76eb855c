"""The relay's cost: latency, calls per second, CPU, memory; beside a byte copier and other relays.

    bench.py --build DIR [--quick] [--json FILE] [--only NAME,...] [--points NAME,...]
             [--base BINARY] [--store] [--metrics]

All targets are measured in one run, one after another in each round, each round in another order;
figures are medians of the rounds, ratios are medians of the rounds' own ratios, so that a machine
that is slower for a while does not favour anyone. h2load is the client.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import first_create
import report
import targets

LOAD_SECONDS_MAX = 60
CALLS_MAX = 400_000
METHOD = "/runtime.v1.RuntimeService/"
GRPC_HEAD_BYTES = 5

# How long one run lasts, and how many of them; the slowest relay may take a little longer.
FULL = {"rounds": 25, "seconds": 0.15}
QUICK = {"rounds": 5, "seconds": 0.06}

# `answers`: messages in the answer's stream, of `answer_bytes` each, every one a frame of its own.
Point = collections.namedtuple("Point", "name connections streams answer_bytes request_bytes answers",
                               defaults=(0, 0, 1))

POINTS = [
    Point("1", 1, 1),
    Point("16", 1, 16),
    Point("64", 1, 64),
    Point("1000", 1, 1000),
    Point("16 conn", 16, 1),
    Point("200 conn", 200, 1),
    Point("16 KiB", 1, 1, 16 << 10),
    Point("1 MiB", 1, 1, 1 << 20),
    Point("16 MiB", 1, 1, 16 << 20),
    Point("1 MiB up", 1, 1, 0, 1 << 20),
    Point("events", 1, 1, 200, 0, 10_000),
]

# ---- the load ----


def percentile(micros, share):
    """Of whole microseconds, each taken as spread evenly over its own."""
    counts = collections.Counter(micros)
    wanted = share * len(micros)
    below = 0
    for value in sorted(counts):
        if below + counts[value] >= wanted:
            return value + (wanted - below) / counts[value]
        below += counts[value]
    raise ValueError("no samples")


def load(path, method, body, point, calls, log):
    """Runs h2load; (seconds, latencies in µs)."""
    command = ["h2load", "-n", str(calls), "-c", str(point.connections), "-m", str(point.streams),
               "-d", str(body), "-H", "te: trailers", "-H", "content-type: application/grpc",
               "-B", f"unix:{path}", "--log-file", str(log)]
    if point.answer_bytes:
        command += ["-H", f"x-answer-bytes: {point.answer_bytes}"]
    if point.answers > 1:
        command += ["-H", f"x-answers: {point.answers}"]
    log.unlink(missing_ok=True)
    try:
        done = subprocess.run(command + [f"http://localhost{METHOD}{method}"], check=True,
                              capture_output=True, text=True, timeout=LOAD_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        raise targets.Unusable(f"{calls} calls took over {LOAD_SECONDS_MAX} s") from error
    said = done.stdout
    number, unit = re.search(r"finished in ([\d.]+)(us|ms|s|m)", said).groups()
    good = int(re.search(r"(\d+) succeeded", said).group(1))
    if good != calls:
        raise targets.Unusable(f"{calls - good} of {calls} calls failed")
    data_bytes = int(re.search(r"\((\d+)\) data", said).group(1))
    if data_bytes < calls * point.answers * (GRPC_HEAD_BYTES + point.answer_bytes):  # a refusal has none
        raise targets.Unusable("answers were refused or cut short")
    latencies = [int(line.split("\t")[2]) for line in log.read_text().splitlines()]
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[unit], latencies


def measure(target, method, body, point, calls, log):
    """One run: its figures, and how many calls make a second."""
    has_relay = target.name != "direct"
    if has_relay:
        target.forget_peak()
        cpu_ns = target.cpu_ns()
    seconds, latencies = load(target.listen, method, body, point, calls, log)
    figures = {
        "calls_per_s": calls / seconds,
        "p50_us": percentile(latencies, 0.50),
        "p99_us": percentile(latencies, 0.99),
    }
    moved_bytes = point.request_bytes + point.answers * point.answer_bytes
    if moved_bytes:
        figures["mb_per_s"] = calls * moved_bytes / seconds / 1e6
    if point.answers > 1:
        figures["events_per_s"] = calls * point.answers / seconds
    if has_relay:
        figures["cpu_us"] = (target.cpu_ns() - cpu_ns) / 1e3 / calls / point.answers
        figures["rss_peak_kib"] = target.rss_kib("VmHWM")
    return figures


def calls_for(figures, seconds, point):
    calls = int(figures["calls_per_s"] * seconds)
    at_once = point.connections * point.streams
    return max(at_once, min(CALLS_MAX, calls), 4)


# ---- the requests ----

def _field(number, value):
    value = value.encode() if isinstance(value, str) else value
    size = len(value)
    varint = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + varint + value


def create_request(annotations):
    """A CreateContainerRequest with a service's worth of envs and a few mounts, as one gRPC
    message; field numbers as in cri-proto/."""
    entry = lambda key, value: _field(1, key) + _field(2, value)
    labels = [("io.kubernetes.container.name", "main"), ("io.kubernetes.pod.name", "bench"),
              ("io.kubernetes.pod.namespace", "default"), ("io.kubernetes.pod.uid", "bench-uid")]
    config = _field(1, _field(1, "main")) + _field(2, _field(1, "sha256:" + "0" * 64))
    config += b"".join(_field(6, entry(f"SERVICE_{i}_PORT", f"tcp://10.0.0.{i}:80"))
                       for i in range(30))
    config += b"".join(_field(7, _field(1, f"/mnt/{i}") + _field(2, f"/var/lib/kubelet/{i}"))
                       for i in range(6))
    config += b"".join(_field(9, entry(*label)) for label in labels)
    metadata = _field(1, "bench") + _field(2, "bench-uid") + _field(3, "default")
    sandbox = _field(1, metadata) + b"".join(_field(6, entry(*label)) for label in labels)
    sandbox += b"".join(_field(7, entry(*annotation)) for annotation in annotations)
    message = _field(1, "bench-sandbox") + _field(2, config) + _field(3, sandbox)
    return b"\0" + len(message).to_bytes(4, "big") + message


ASKS = [("devices.cri-device-shim/main", targets.RESOURCE + "=1")]
CREATES = [  # name, method, annotations of the pod
    ("relayed", "UpdateContainerResources", ASKS),
    ("no device", "CreateContainer", []),
    ("cached options", "CreateContainer", ASKS),  # of a built-in device
]

# ---- the rounds ----


class Bench:
    def __init__(self, directory, every, points, settings):
        self.directory = pathlib.Path(directory)
        self.every = list(every)
        self.all = every  # those that still work
        self.points = points
        self.settings = settings
        self.runs = {}  # (target, point): figures of each round
        self.creates = {}  # name: figures of each round
        self.first_creates = []  # figures of each round
        self.idle_kib = {}
        self.unusable = {}

    def _give_up(self, target, why):
        self.unusable[target.name] = str(why)
        self.all.remove(target)
        if target.name != "direct":
            target.stop()
        print(f"{target.name}: {why}", file=sys.stderr)

    def start(self, runtime):
        for target in list(self.all):
            if target.name == "direct":
                target.listen = runtime.listen
                continue
            try:
                target.start(self.directory, runtime.listen)
                targets.probe(target.listen)
                self.idle_kib[target.name] = target.rss_kib("VmRSS")
            except targets.Unusable as why:
                self._give_up(target, why)

    def _one(self, target, point, body, known):
        calls = point.connections * point.streams * 2
        if known:
            calls = calls_for(known[-1], self.settings["seconds"], point)
        return measure(target, "Status", body, point, calls, self.directory / "h2load.log")

    def run(self):
        bodies = {}
        for size in {point.request_bytes for point in self.points}:
            bodies[size] = self.directory / f"request-{size}"
            bodies[size].write_bytes(b"\0" + size.to_bytes(4, "big") + bytes(size))
        # Round 0 warms up and says how many calls make a run.
        for number in range(self.settings["rounds"] + 1):
            for point in self.points:
                turn = number % len(self.all)
                for target in self.all[turn:] + self.all[:turn]:
                    known = self.runs.setdefault((target.name, point.name), [])
                    try:
                        known.append(self._one(target, point, bodies[point.request_bytes], known))
                        if number == 0:
                            known.append(self._one(target, point, bodies[point.request_bytes],
                                                   known))
                    except (targets.Unusable, subprocess.CalledProcessError) as why:
                        self._give_up(target, f"{point.name}: {why}")
            print(f"round {number} of {self.settings['rounds']}", file=sys.stderr)
        for known in self.runs.values():
            del known[:2]

    def run_creates(self, shim):
        """Through the shim alone: the same bytes relayed, and looked into."""
        point = Point("creates", 1, 1)
        calls = 100
        for number in range(self.settings["rounds"] + 1):
            for name, method, annotations in CREATES:
                body = self.directory / "create"
                body.write_bytes(create_request(annotations))
                figures = measure(shim, method, body, point, calls, self.directory / "h2load.log")
                self.creates.setdefault(name, []).append(figures)
                if number == 0 and name == "relayed":
                    calls = calls_for(figures, self.settings["seconds"], point)
        for known in self.creates.values():
            del known[:1]

    def run_first_creates(self, shim):
        first = first_create.FirstCreates(shim.listen, shim.listen.parent)
        try:
            first.round()
            self.first_creates = [first.round() for _ in range(self.settings["rounds"])]
        finally:
            first.stop()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="where run.sh built")
    parser.add_argument("--quick", action="store_true", help="within a minute, less exact")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--only", help="these targets, by comma; always with direct and copier")
    parser.add_argument("--points", help="these points, by comma: "
                        + ", ".join(point.name for point in POINTS))
    parser.add_argument("--base", metavar="BINARY", help="compare with this build of the shim")
    parser.add_argument("--store", action="store_true", help="give the shim a service manager that "
                        "keeps its connections, so that all goes through the journal")
    parser.add_argument("--metrics", action="store_true", help="compare with the shim that counts "
                        "calls for who scrapes it")
    return parser.parse_args()


def chosen(args, store):
    every = targets.all_targets(args.build, args.base, store, args.metrics)
    if args.only:
        names = {"direct", "copier", "shim-base", "shim-metrics", *args.only.split(",")}
        every = [target for target in every if target.name in names]
    points = POINTS
    if args.points:
        points = [point for point in POINTS if point.name in args.points.split(",")]
    return every, points


def main():
    args = parse()
    store = targets.Store() if args.store else None
    every, points = chosen(args, store)
    began = time.monotonic()
    load_average = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        runtime = targets.scripted_runtime(args.build)
        bench = Bench(directory, every, points, QUICK if args.quick else FULL)
        started = [target for target in every if target.name != "direct"]
        try:
            runtime.start(directory, None)
            bench.start(runtime)
            bench.run()
            shim = [target for target in bench.all if target.name == "shim"]
            if shim:
                try:
                    bench.run_creates(shim[0])
                    bench.run_first_creates(shim[0])
                except targets.Unusable as why:
                    bench.unusable["creates"] = str(why)
                    bench.creates.clear()
        finally:
            for target in started:
                target.stop()
            runtime.stop()
    if store and not store.connections:
        sys.exit("no connection was given to the service manager")
    figures = report.collect(bench)
    figures["seconds"] = round(time.monotonic() - began)
    figures["cores"] = os.cpu_count()
    figures["load_average_before"] = load_average
    print(report.text(figures))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
