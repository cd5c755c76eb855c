"""What happens to a node whose plugin's devices are published for claims (lift_node.py): as claims_storm.py."""

from claims_storm import Storm


class LiftStorm(Storm):
    unscheduled = 0  # pods

    def _planned_driver(self, how, back, _rng):
        return lambda: self._restart("driver", how, back)

    def _come(self, rng):
        """Not while too little is offered: the pod is not scheduled."""
        try:
            super()._come(rng)
        except LookupError:
            self.unscheduled += 1

    def _add_claims(self, claims, count, rng):
        for _ in range(count):
            claims.add(self._node.claim(rng.choice([1, 1, 2, 4])))
