#!/usr/bin/python3
"""How the three programs grow with what is on a node.

    scale.py --build DIR [--quick] [--only NAME,...] [--json FILE]

A node that is full has what LIMITS says. Each of it is varied alone, from none to twice as many, and
then all of it together. Of each node: memory, CPU at rest, and the time from a daemon's start (kill -9
before it) until it has relayed a first call. The runtime, the kubelet's part and the API server are those of
the tests, in this process, plugins and drivers in one of their own; daemon, bridge and agent are the build's.
What a commit costs with so many rows in the checkpoint is store_bench's.

The figures that are drawn in config/scale.svg (scale_curves.py) are scale.json.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--build", required=True, help="where run.sh built")
parser.add_argument("--quick", action="store_true", help="fewer nodes, and shorter looks at each")
parser.add_argument("--only", help="of these, by comma: pods, devices, resources, drivers, claims, all")
parser.add_argument("--json", metavar="FILE", help="write all figures there")
args = parser.parse_args()

os.environ["SHIM_BINARY"] = str(pathlib.Path(args.build).resolve() / "shim/cri-device-shim")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from agent_feed import AgentFeed
from agent_process import Agent
from api_server import ApiServer
from asking import by_token
from bare_kubelet import BareKubelet
from bridge_process import Bridge
from criclient import Client
from kubelet_drivers import KubeletDrivers, claim
from process import own_bytes, rss_bytes
from protos import RUNTIME
from protos import agent as proto
from rawh2 import Connection, framed
from runtime import Runtime
from scale_peers import Peers, gpu_id
from shim import Shim, accepts
from waiting import wait_until

LIMITS = {"pods": 250, "devices": 100_000, "resources": 64, "drivers": 64, "claims": 1000}
CONTAINERS_PER_POD = 4
SHARES = (0, 0.25, 0.5, 1, 2)
QUICK_SHARES = (0, 1)
REST_S, QUICK_REST_S = 20, 5
STARTS, QUICK_STARTS = 7, 3
HELD = "held.example.com/gpu"
MESSAGE_BYTES = 64 << 20
NODE = "node-1"


def a_pod(name):
    """With as much in it as the API server tells of one with three containers."""
    containers = [{"name": f"c{i}", "image": "example.com/" + "x" * 60,
                   "env": [{"name": f"E{k}", "value": "v" * 40} for k in range(30)]} for i in range(3)]
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"nodeName": NODE, "containers": containers}, "status": {"phase": "Running"}}


def cpu_ns(pid):
    return time.clock_gettime_ns((~pid << 3) | 2)  # MAKE_PROCESS_CPUCLOCK, clock_getcpuclockid(3)


def cpu_ms_a_minute(pids, seconds):
    before = [cpu_ns(pid) for pid in pids]
    began = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [(cpu_ns(pid) - ns) / 1e6 * 60 / passed for pid, ns in zip(pids, before)]


class Node:
    """A daemon, a bridge and all that they speak with. `counts`: of LIMITS; none where it is not said."""

    def __init__(self, directory, counts, closing):
        self.directory = pathlib.Path(directory)
        self._closing = closing
        self._counts = counts
        self._peers = Peers()
        closing.callback(self._peers.stop)
        runtime = self._begin(Runtime(self.directory / "runtime.sock"))
        self.shim = Shim(self.directory, runtime.path, top={"log_level": "info"})
        self._begin(self.shim)
        self.bridge = Bridge(self.directory, socket=str(self.shim.feed))
        self.kubelet = self._begin(BareKubelet(self.bridge.kubelet_dir, message_bytes_max=MESSAGE_BYTES))
        self.drivers = self._begin(KubeletDrivers(self.directory / "kubelets_registry"))
        self._begin(self.bridge)
        self.client = closing.enter_context(Client(self.shim.socket))

    def _begin(self, one):
        one.start()
        self._closing.callback(one.stop)
        return one

    def fill(self):
        counts = self._counts
        if counts.get("resources"):
            self._lists({f"r{number}.example.com/gpu": 8 for number in range(counts["resources"])})
        if counts.get("devices"):
            self._lists({"many.example.com/gpu": counts["devices"]})
        if counts.get("pods"):
            self._lists({HELD: counts["pods"] * CONTAINERS_PER_POD})
            self._run_pods(counts["pods"])
        drivers = counts.get("drivers") or min(counts.get("claims", 0), 1)
        names = [f"d{number}.example.com" for number in range(drivers)]
        for name in names:
            self._peers.driver(self.shim.registry_dir, self.directory / "drivers", name)
            self.drivers.wait_registered(name)
        for number in range(counts.get("claims", 0)):
            answer = self.drivers.prepare(names[number % len(names)], [claim(f"c-{number}")])
            assert all(not one.error for one in answer.values())

    def _lists(self, resources):
        for name, count in resources.items():
            self._peers.plugin(self.shim.plugin_dir, name, count)
        for name, count in resources.items():
            wait_until(lambda: self._knows(name, count), f"the kubelet has all of {name}")

    def _knows(self, name, count):
        return any(event.what == "list" and event.resource == name and len(event.detail.devices) == count
                   for event in list(self.kubelet.events))

    def _run_pods(self, pods):
        for number in range(pods):
            pod = self.client.run_pod(f"p{number}")
            for at in range(CONTAINERS_PER_POD):
                self.client.run(pod, f"c{at}",
                                annotations=by_token(HELD, gpu_id(number * CONTAINERS_PER_POD + at)))

    def start_ms(self):
        """From a daemon's start to its first relayed answer: all that passes, and its CPU time."""
        self.shim.kill()
        began = time.perf_counter_ns()
        self.shim.spawn()
        while not accepts(self.shim.socket):
            time.sleep(0.0002)
        with Connection(self.shim.socket) as connection:
            stream = connection.call(f"{RUNTIME}Version", framed(b""))
            connection.wait_end(stream)
            assert connection.answers[stream].status == 0
        return (time.perf_counter_ns() - began) / 1e6, cpu_ns(self.shim.pid) / 1e6


def look(counts, starts, rest_s):
    """The figures of one node."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.ExitStack() as closing:  # of logs
        directory = closing.enter_context(tempfile.TemporaryDirectory(prefix="scale-"))
        node = Node(directory, counts, closing)
        node.fill()
        times, cpu = zip(*(node.start_ms() for _ in range(starts)))
        node.client.wait_ready()
        time.sleep(rest_s / 4)  # what a start has to do besides
        pids = [node.shim.pid, node.bridge.pid]
        daemon_cpu, bridge_cpu = cpu_ms_a_minute(pids, rest_s)
        return {"daemon_kib": rss_bytes(pids[0]) // 1024, "daemon_own_kib": own_bytes(pids[0]) // 1024,
                "bridge_kib": rss_bytes(pids[1]) // 1024, "bridge_own_kib": own_bytes(pids[1]) // 1024,
                "daemon_cpu_ms": round(daemon_cpu, 1), "bridge_cpu_ms": round(bridge_cpu, 1),
                "start_ms": round(statistics.median(times), 1), "start_cpu_ms": round(statistics.median(cpu), 1)}


def look_at_agent(pods, rest_s):
    """The agent with so many pods, as the daemon asks it to watch them."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.ExitStack() as closing:
        directory = pathlib.Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="scale-")))
        server, feed = ApiServer(directory / "pki"), AgentFeed(directory / "run" / "agent.sock")
        for one in (server, feed):
            one.start()
            closing.callback(one.stop)
        server.put("nodes", {"metadata": {"name": NODE}, "spec": {}, "status": {"capacity": {"cpu": "8"}}})
        for number in range(pods):
            server.put("pods", a_pod(f"p{number}"))
        agent = Agent(directory, server.kubeconfig(directory / "kubelet.conf", NODE))
        agent.start()
        closing.callback(agent.stop)
        wait_until(lambda: sum(kind == proto.POD for kind, _ in list(feed.facts)) == pods, "all pods are told")
        server.wait_watched("pods")
        (cpu,) = cpu_ms_a_minute([agent.pid], rest_s)
        return {"agent_kib": rss_bytes(agent.pid) // 1024, "agent_own_kib": own_bytes(agent.pid) // 1024,
                "agent_cpu_ms": round(cpu, 1)}


def commits(build):
    """What one allocation's commit takes, by the allocations that are in the checkpoint."""
    said = subprocess.run([build / "tests/bench/store_bench"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in said.splitlines() if re.match(r" *\d", line)]
    return {row[0]: {"median_us": int(row[1]), "p99_us": int(row[3]), "without_disk_us": int(row[5])} for row in rows}


def counts_of(name, share):
    """Of LIMITS, so much of what `name` says; None: there are no such nodes."""
    if share > 1 and name in ("drivers", "all"):
        return None  # 64 drivers are all there may be
    return {key: round(limit * share) for key, limit in LIMITS.items() if name in (key, "all")}


def main():
    shares, rest_s, starts = (QUICK_SHARES, QUICK_REST_S, QUICK_STARTS) if args.quick else (SHARES, REST_S, STARTS)
    chosen = args.only.split(",") if args.only else [*LIMITS, "all", "agent", "commits"]
    figures = {"limits": LIMITS, "containers_per_pod": CONTAINERS_PER_POD, "nodes": {},
               "load_average_before": os.getloadavg()[0]}
    for name in chosen:
        for share in shares:
            if name == "agent":
                counts = {"pods": round(LIMITS["pods"] * share)}
                one = look_at_agent(counts["pods"], rest_s)
            elif name == "commits" or (counts := counts_of(name, share)) is None:
                continue
            else:
                one = look(counts, starts, rest_s)
            figures["nodes"].setdefault(name, {})[str(share)] = one
            print(f"{name} {share:g}: {counts}: " + ", ".join(f"{key} {value:,}" for key, value in one.items()),
                  flush=True)
    if "commits" in chosen:
        figures["commits"] = commits(pathlib.Path(args.build).resolve())
        for size, one in figures["commits"].items():
            print(f"commits beside {size}: " + ", ".join(f"{key} {value:,}" for key, value in one.items()))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
