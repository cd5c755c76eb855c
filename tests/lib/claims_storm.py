"""What happens to a node of pods with claims (claims_node.py): parts are restarted, drivers roll over or stay away, pods come
and go.

    storm = Storm(node, seed)
    storm.round(("driver", "kubelet"))   # of PARTS
    storm.end()
    storm.violations

    play(Storm(node, seed), times)       # each of PARTS, and every two, so often
"""

import itertools
import random
import time

from claims_node import DRIVERS, GPU, NIC
from parts import KILL, TERM
from timed_plan import play_plan
from waiting import wait_until

REBOOT, SERVER = "reboot", "API server"
PARTS = ("driver", "daemon", "bridge", "kubelet", "runtime", "agent", REBOOT, SERVER)
_ROUND_S = 0.4       # in which what happens in a round begins
_HAPPENINGS = 14     # in a round, besides the restarts
_BACK_S = 0.05, 0.4  # at most, from a part's end until it is started again
_PODS_MAX = 8


class Storm:
    """What happens to a node."""

    def __init__(self, node, seed):
        self.violations = []
        self.alone = 0  # pods that ended without their driver
        self._random = random.Random(seed)
        self._node = node
        self._kubelet = node.kubelet

    # ---- one round ----

    def round(self, pair):
        play_plan(self._plan(pair), self.violations)
        if not self.violations:
            self.violations += self._node.settle()
        self._node.forget()

    def end(self):
        for pod in self._kubelet.live():
            self._kubelet.delete_pod(pod)
        self.violations += self._node.settle()

    def _plan(self, pair):
        """[(when, what)]: all that is random is decided here."""
        rng = self._random
        at = rng.uniform(0, _ROUND_S / 2)
        plan = []
        for part in pair:
            plan.append((at, self._planned_restart(part, rng)))
            at += _ROUND_S * rng.random() ** 2
        choices = [self._come, self._come, self._come, self._delete, self._force, self._lose_sandbox,
                   self._crash, self._crash]
        for _ in range(_HAPPENINGS):
            happening, seed = rng.choice(choices), rng.random()
            plan.append((rng.uniform(0, _ROUND_S),
                         lambda what=happening, seed=seed: what(random.Random(seed))))
        return plan

    # ---- restarts ----

    def _planned_restart(self, part, rng):
        back, how = rng.uniform(0, rng.choice(_BACK_S)), rng.choice([KILL, TERM])
        if part == SERVER:
            return lambda: self._node.restart_server(lambda: time.sleep(back))
        if part == REBOOT:
            order = rng.sample(list(self._node.parts), len(self._node.parts))
            pauses = iter([rng.uniform(0, _BACK_S[0]) for _ in order])
            return lambda: self._node.reboot(how, order, lambda: time.sleep(next(pauses)))
        if part != "driver":
            return lambda: self._restart(part, how, back)
        return self._planned_driver(how, back, rng)

    def _planned_driver(self, how, back, rng):
        which, seed = rng.randrange(len(DRIVERS)), rng.random()
        return rng.choice([lambda: self._stay_away(how, random.Random(seed)),
                           lambda: self._stay_away(how, random.Random(seed)),
                           lambda: self._restart("driver", how, back, which),
                           lambda: self._node.slots[DRIVERS[which]].roll_over(back)])

    def _restart(self, part, how, back, which=None):
        self._node.down(part, how, which)
        time.sleep(back)
        self._node.up(part)

    def _stay_away(self, how, rng):
        """GPU's driver, until pods that have its devices alone, and are deleted, are gone; and others want these."""
        pods = [pod for pod in self._kubelet.live() if self._node.is_running(pod)
                and all(one.drivers == (GPU,) for one in pod.claims)]
        self._node.down("driver", how, DRIVERS.index(GPU))
        for pod in rng.sample(pods, min(2, len(pods))):
            self._kubelet.delete_pod(pod)
            self.alone += 1
            wait_until(lambda pod=pod: pod.gone, f"{pod} is gone without its driver")
            self._node.come([self._node.claim(GPU)])
        time.sleep(rng.uniform(0, _BACK_S[0]))
        self._node.up("driver")

    # ---- what happens besides ----

    def _come(self, rng):
        """A pod of one to three claims, each of one driver or both, new or another pod's, which may go meanwhile: what its
        claims have is given to nobody before this one is there."""
        with self._node.scheduling:
            if len(self._kubelet.live()) >= _PODS_MAX:
                return
            claims, others = set(), rng.choice([0, 0, 1, 2])
            self._add_claims(claims, max(rng.randint(1, 3) - others, 0), rng)
            shared = sorted({one for pod in self._kubelet.live() for one in pod.claims}, key=lambda one: one.uid)
            claims |= set(rng.sample(shared, min(len(shared), others)))
            if not claims:
                self._add_claims(claims, 1, rng)
            self._node.come(sorted(claims, key=lambda one: one.uid))

    def _add_claims(self, claims, count, rng):
        kinds = rng.choice([[(GPU,)], [(GPU,), (NIC,), (GPU, NIC)]])
        for _ in range(count):
            claims.add(self._node.claim(*rng.choice(kinds)))

    def _some_pod(self, rng, do):
        if live := self._kubelet.live():
            do(rng.choice(live))

    def _delete(self, rng):
        self._some_pod(rng, self._kubelet.delete_pod)

    def _force(self, rng):
        self._some_pod(rng, lambda pod: self._kubelet.delete_pod(pod, force=True))

    def _lose_sandbox(self, rng):
        self._some_pod(rng, lambda pod: self._node.runtime.lose_sandbox(pod.uid))

    def _crash(self, rng):
        self._some_pod(rng, lambda pod: self._node.runtime.finish(pod.uid, "main", 1))


def play(storm, times):
    """Rounds of each part alone and of every two, so often, of which none may go wrong. How many those were."""
    rounds = [(one,) for one in PARTS] + list(itertools.combinations(PARTS, 2))
    rounds *= times
    for number, pair in enumerate(rounds):
        storm.round(pair)
        assert not storm.violations, f"round {number}, {pair}:\n" + "\n".join(storm.violations)
    storm.end()
    assert not storm.violations, "\n".join(storm.violations)
    return len(rounds)
