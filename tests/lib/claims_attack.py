#!/usr/bin/python3
"""What is done on purpose to pods with claims, all of it at once and under kills of daemon, bridge, agent and kubelet.

    SHIM_BUILD_DIR=build SHIM_BINARY=build/shim/cri-device-shim tests/lib/claims_attack.py --seed 1 --rounds 30 [--keep DIR]

Drivers move to the kubelet and back, devices of claims are tainted, an operator ends pods, a shutdown begins and is
cancelled. Once all of it is taken back every pod that was not evicted runs with exactly its devices, and what
test_dra_restarts.py looks for holds.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

from claims_node import DRIVERS, GPU, ClaimsNode
from claims_storm import Storm
from ctl import ctl, ctl_json
from logind import Logind, SystemBus
from waiting import wait_until

_KILLED = ("daemon", "bridge", "agent", "kubelet")
_ROUND_S = 0.5
_TAINT = "example.com/broken"


class AttackedNode(ClaimsNode):
    """Whose pods the API server has, too: what is deleted there is the kubelet's to end."""

    def __init__(self, directory, seed, logind, **settings):
        super().__init__(directory, seed, shutdown={"grace": "60s", "critical_grace": "20s"},
                         control={"socket": str(directory / "control.sock")}, **settings)
        self.logind = logind
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self):
        super().start()
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()
        super().stop()

    def come(self, claims):
        with self.scheduling:
            name = f"pod-{self.came}"
            self.server.put("pods", {
                "metadata": {"name": name, "namespace": "default", "uid": name}, "status": {"phase": "Running"},
                "spec": {"nodeName": "node-1", "priority": 0, "resourceClaims": [
                    {"name": one.uid, "resourceClaimName": f"claim-{one.uid}"} for one in claims]}})
            pod = super().come(claims)
            assert pod.uid == name
            return pod

    def _follow(self):
        while not self._over.wait(0.02):
            with self.scheduling:
                for (_namespace, name), one in list(self.server.objects["pods"].items()):
                    pod = self.kubelet.pods.get(name)
                    if pod is None or pod.gone:
                        self.server.remove("pods", name, "default")
                    elif "deletionTimestamp" in one["metadata"] and not pod.deleting:
                        self.kubelet.delete_pod(pod)

    def ask(self, *arguments):
        """Of an operator, whose daemon may be away."""
        return ctl(self.daemon, *arguments).returncode

    def taken_back(self):
        """All that was done on purpose."""
        self.logind.cancel()
        for one in ctl_json(self.daemon, "taints")["items"]:
            ctl_json(self.daemon, "untaint", one["resource"], one["id"], one["key"])
        for one in ctl_json(self.daemon, "endings")["items"]:
            if any(ask["by"] == "operator" for ask in one["asked"]):
                self.ask("end", "--cancel", f"{one['namespace']}/{one['name']}")
        wait_until(lambda: ctl_json(self.daemon, "status")["shutdown"]["state"] == "none", "the machine does not go down")


class Attack(Storm):
    def __init__(self, node, seed):
        super().__init__(node, seed)
        self.moves = 0

    def _plan(self, pair):
        rng = self._random
        plan = super()._plan(())
        doings = [self._taint, self._taint, self._end, self._end, self._shut_down, self._move]
        for part in pair:
            plan.append((rng.uniform(0, _ROUND_S), self._planned_restart(part, rng)))
        for _ in range(5):
            doing, seed = rng.choice(doings), rng.random()
            plan.append((rng.uniform(0, _ROUND_S), lambda what=doing, seed=seed: what(random.Random(seed))))
        return plan

    def settled(self):
        for part in _KILLED:
            self._node.up(part)
        self._node.daemon.wait_control()
        self._node.taken_back()

    def round(self, pair):
        node, settle = self._node, self._node.settle

        def settled():
            self.settled()
            return settle()

        node.settle = settled
        try:
            super().round(pair)
        finally:
            node.settle = settle

    def _stay_away(self, how, rng):
        """Pods may be ended meanwhile, so nobody's end is waited for."""
        self._restart("driver", how, rng.uniform(0, 0.3), DRIVERS.index(GPU))

    def _move(self, rng):
        """To the kubelet itself, or back here."""
        self._node.slots[rng.choice(DRIVERS)].move(rng.uniform(0, 0.3), both=rng.random() < 0.5)
        self.moves += 1

    def _taint(self, rng):
        """A device that a pod has, and perhaps not for long."""
        live = [one for pod in self._kubelet.live() for one in pod.claims]
        if not live:
            return
        claim = rng.choice(live)
        driver = rng.choice(claim.drivers)
        device = f"{self._node.books[driver].pool}/{self._node.allocations[claim.uid, driver]}"
        self._node.ask("taint", driver, device, f"{_TAINT}:{rng.choice(['NoExecute', 'NoExecute', 'NoSchedule'])}")
        time.sleep(rng.uniform(0, 0.2))
        if rng.random() < 0.5:
            self._node.ask("untaint", driver, device, _TAINT)

    def _end(self, rng):
        live = self._kubelet.live()
        if not live:
            return
        name = rng.choice(live).uid
        self._node.ask("end", name, "--grace", "1s", *(["--here"] if rng.random() < 0.6 else []))
        time.sleep(rng.uniform(0, 0.2))
        if rng.random() < 0.5:
            self._node.ask("end", "--cancel", name)

    def _shut_down(self, rng):
        self._node.logind.begin()
        time.sleep(rng.uniform(0, 0.3))
        self._node.logind.cancel()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    directory = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    rng = random.Random(options.seed)
    with contextlib.ExitStack() as stack:
        def started(one):
            stack.callback(one.stop)
            one.start()
            return one

        bus = started(SystemBus(directory))
        os.environ.update([bus.environment])
        logind = started(Logind(directory, bus))
        node = started(AttackedNode(directory / "n", options.seed, logind))
        attack = Attack(node, options.seed)
        for number in range(options.rounds):
            parts = rng.sample(_KILLED, rng.choice([0, 1, 1, 2]))
            attack.round(parts)
            print(f"round {number}, {parts}:", *attack.violations or ["all is well"], sep="\n    ", flush=True)
            if attack.violations:
                sys.exit(1)
        attack.end()
    if not options.keep:
        shutil.rmtree(directory)
    print(*attack.violations, f"{node.came} pods came, drivers moved {attack.moves} times", sep="\n")
    sys.exit(bool(attack.violations))


if __name__ == "__main__":
    main()
