#!/usr/bin/python3
"""The same is done to a node without the shim and to one with it, while pods arrive. Prints the table
of RESULTS.md, each line as soon as both are known.

    compare.py [--pods 30] [--only TEXT...] [--claims]

It finds the programs as the tests of this directory do (tests/README.md), and what was built in
$SHIM_BUILD_DIR. It measures, and is no part of pass or fail; it takes about an hour.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import kube_programs
from comparison import ARRIVE_S, Compared
from kube_node import AGENT, BRIDGE, CONTAINERD, DAEMON, KUBELET
from shim import ROOT

AWAY_S = 20
HANGS_S = 40
API_AWAY_S = 120
API_LATE_S = 150  # more than bridge.mask
HELD_S = 30
HOLDERS = 10  # of all devices together
COLUMNS = ("Failed", "never ran", "double", "missing", "s", "others, s")


def _killed(unit, times):
    """While pods arrive; it is killed again each time it has been started anew."""
    def play(one, _server):
        def strike():
            for _ in range(times):
                one.node.kill(unit)

        one.arrive([(1, strike)], within_s=max(ARRIVE_S, times))

    return play


def _server_killed(times):
    return lambda one, server: _killed(server.unit, times)(one, server)


def _server_hangs(one, server):
    one.arrive([(0, lambda: one.node.kill(server.unit, number="STOP")),
                (HANGS_S, lambda: one.node.kill(server.unit, number="CONT"))])


def _another_plugin(one, server):
    """Of the same resource, as in an update that has both for a time."""
    second = dataclasses.replace(server, instance="-second")
    one.node.add_plugin(second)
    one.arrive([(1, lambda: one.node.start_unit(second.unit)),
                (4, lambda: one.node.stop_unit(server.unit))])

    def restore():
        one.node.stop_unit(second.unit)
        one.node.disable(second.unit)
        one.node.start_unit(server.unit)

    return restore


def _kubelet_before_plugin(one, server):
    """What runs, and what comes."""
    one.run()
    one.node.stop_unit(server.unit)
    one.node.restart_unit(KUBELET)
    one.arrive([(AWAY_S, lambda: one.node.start_unit(server.unit))])


def _checkpoint_removed(one, _server):
    one.run()
    one.node.stop_unit(KUBELET)
    (one.node.root / "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").unlink(
        missing_ok=True)
    one.node.start_unit(KUBELET)
    one.arrive()


def _reboot(one, server):
    """Its plugin or driver comes late."""
    one.run()
    one.node.power_off()
    one.node.disable(server.unit)
    one.began_anew()
    one.node.start()
    time.sleep(AWAY_S)
    one.node.enable(server.unit)
    one.node.start_unit(server.unit)


def _late_api_server(one, server):
    """As when the power was out: the kubelet hears of its pods long after the boot, and the plugin's own, which is one of
    them in most clusters, starts later."""
    one.run()
    one.node.power_off()
    one.cluster.plane.kill_server()
    one.node.disable(server.unit)
    one.began_anew()
    one.node.start()
    time.sleep(API_LATE_S)
    one.cluster.plane.start_server()
    time.sleep(AWAY_S)
    one.node.enable(server.unit)
    one.node.start_unit(server.unit)


def _power_off_under_arrivals(one, _server):
    def off():
        one.node.power_off()
        one.began_anew()
        one.node.start()

    one.arrive([(5, off)])


def _forced(one, server):
    """All devices are held by containers that cannot be ended, since what would do it has been stopped;
    their pods are deleted by force, and others come."""
    old = [one.come("always", len(server.devices) // HOLDERS) for _ in range(HOLDERS)]
    one.cluster.wait_running(*old)
    shims = one.node.run("pidof", "containerd-shim-runc-v2").stdout.split()
    one.node.run("kill", "-STOP", *shims)
    one.cluster.delete(*old, force=True)
    for name in old:
        one.forget(name)
    one.arrive([(HELD_S, lambda: one.node.run("kill", "-CONT", *shims))])


def _api_away(one, server):
    """All containers crash meanwhile, and the plugin or driver is killed."""
    one.run()
    uids = [seen.uid for seen in one.cluster.pods().values()]
    one.cluster.plane.kill_server()
    one.node.kill(server.unit)
    one.began_anew()
    for uid in uids:
        one.node.end_containers(uid)
    time.sleep(API_AWAY_S)
    one.cluster.plane.start_server()


def _both_killed(one, _server):
    def strike():
        for _ in range(4):
            one.node.kill(DAEMON, BRIDGE)

    one.arrive([(1, strike)])


def _installed_again(one, _server):
    one.arrive([(2, one.node.install)])


# (what is done, how it is played, whether it can be done without the shim)
PLUGINS = (
    ("the plugin is killed 10 times", _server_killed(10), True),
    (f"the plugin hangs for {HANGS_S} s", _server_hangs, True),
    ("another plugin of the resource comes, and the first one goes", _another_plugin, True),
    ("the kubelet is killed 6 times", _killed(KUBELET, 6), True),
    (f"the kubelet is restarted while the plugin is away, which comes {AWAY_S} s later",
     _kubelet_before_plugin, True),
    ("the kubelet is restarted, its device checkpoint is gone", _checkpoint_removed, True),
    ("containerd is killed 3 times", _killed(CONTAINERD, 3), True),
    (f"power off; the plugin comes {AWAY_S} s after the boot", _reboot, True),
    (f"power off; the API server is back {API_LATE_S} s after the boot, and the plugin {AWAY_S} s after that",
     _late_api_server, True),
    ("power off while pods arrive", _power_off_under_arrivals, True),
    (f"pods are deleted by force, whose containers cannot be ended for {HELD_S} s", _forced, True),
    (f"the API server is away for {API_AWAY_S} s; all containers crash, the plugin is killed",
     _api_away, True),
    ("the daemon is killed 100 times", _killed(DAEMON, 100), False),
    ("the bridge is killed 100 times", _killed(BRIDGE, 100), False),
    ("both are killed at once, 4 times", _both_killed, False),
    ("the shim is installed again", _installed_again, False))
CLAIMS = (
    ("the DRA driver is killed 4 times", _server_killed(4), True),
    (f"the DRA driver hangs for {HANGS_S} s", _server_hangs, True),
    ("the kubelet is killed 6 times", _killed(KUBELET, 6), True),
    ("containerd is killed 3 times", _killed(CONTAINERD, 3), True),
    (f"power off; the driver comes {AWAY_S} s after the boot", _reboot, True),
    (f"the API server is away for {API_AWAY_S} s; all containers crash, the driver is killed",
     _api_away, True),
    ("the daemon is killed 6 times", _killed(DAEMON, 6), False),
    ("the bridge is killed 6 times", _killed(BRIDGE, 6), False),
    ("the agent is killed 6 times", _killed(AGENT, 6), False))


def _cells(row):
    if row is None:
        return [""] * len(COLUMNS)
    failed = sum(row.failed.values())
    reasons = ", ".join(f"{reason or 'no reason'} {count}" for reason, count in row.failed.items())
    return [f"{failed} ({reasons})" if failed else "0", str(row.never_ran), str(row.double),
            str(row.missing), f"{row.seconds:.0f}",
            "" if row.others_s is None else f"{row.others_s:.0f}"]


def _line(cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def _play_all(scenarios, directory, count, claims):
    """With a cluster of each kind in turn, since two would take each other's time."""
    rows = {}
    for has_shim in (False, True):
        chosen = [one[:2] for one in scenarios if has_shim or one[2]]
        if not chosen:
            continue
        node = Compared(directory / f"{'c' if claims else 'p'}{has_shim:d}", has_shim, count, claims)
        try:
            node.start()
            for what, play in chosen:
                row = rows[what, has_shim] = node.play(what, play)
                print(what, "with" if has_shim else "without", row, file=sys.stderr, flush=True)
        finally:
            with contextlib.redirect_stdout(sys.stderr):
                node.stop()
    for what, _, _ in scenarios:
        without, with_it = rows.get((what, False)), rows[what, True]
        _line([what, str(with_it.pods), *_cells(without), *_cells(with_it)])


def _version(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[0]


def _head():
    path = kube_programs.containerd_path()
    containerd = _version([shutil.which("containerd", path=path), "--version"])
    print(", ".join([
        _version(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]),
        _version([kube_programs.program("kubelet"), "--version"]),
        f"containerd {re.search(r'[0-9.]+[0-9]', containerd)[0]}",
        _version([kube_programs.program("etcd"), "--version"]), f"Linux {platform.release()}"]))
    print()
    _line(["", "pods", *(f"without: {name}" for name in COLUMNS), *(f"with: {name}" for name in COLUMNS)])
    _line(["---"] * (2 + 2 * len(COLUMNS)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=30, help="of each scenario")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT",
                        help="scenarios with one of these texts")
    parser.add_argument("--claims", action="store_true", help="those of DRA drivers only")
    options = parser.parse_args()
    if kube_programs.missing():
        sys.exit(kube_programs.missing())
    _head()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cdk-", dir="/tmp"))
    directory.chmod(0o755)
    try:
        for scenarios, claims in ((PLUGINS, False), (CLAIMS, True)):
            chosen = [one for one in scenarios if any(text in one[0] for text in options.only)]
            if chosen and (claims or not options.claims):
                _play_all(chosen, directory, options.pods, claims)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
