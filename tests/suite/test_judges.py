"""What the tests of restarts excuse, and what they do not."""

import pytest

from restarts import GPU, NIC, Restarts


@pytest.fixture
def round_of(directory):
    """round_of(listed, rejected): what is wrong with a round in which the bridge ends at 10 s, of
    which the kubelet knows at `ended`, starts at 10.1 s, the kubelet has its lists again at `listed`
    and rejects a pod at `rejected`."""
    def judged(listed, rejected, ended=10.05):
        one = Restarts(directory / "n", "bridge", None, "0", store=False)
        node = one._node
        node.moments = [("bridge", "down", 10), ("bridge", "up", 10.1)]
        kubelet = node.kubelet
        kubelet.events = [{"kind": "running", "t": 1}, {"kind": "relisted", "t": 2}] + sorted(
            ({"kind": kind, "resource": name, "t": when} for name in (GPU, NIC)
             for kind, when in (("watching", 3), ("list", 3), ("allocate", ended - 0.1),
                                ("ended", ended), ("watching", listed), ("list", listed))),
            key=lambda event: event["t"])
        pod = kubelet.add_pod("web", {GPU: 1})
        pod.phase, pod.phase_at, pod.tried_at = "Failed", rejected, rejected
        one._judge()
        return one.result

    return judged


def test_a_moment_is_excused(round_of):
    """A pod that was rejected while the bridge was away is, and is counted."""
    result = round_of(listed=10.6, rejected=10.3)
    assert (result.excused, result.violations) == (1, [])
    assert result.windows_ms == [600]


def test_a_busy_kubelet_s_moment_is_as_long(round_of):
    """It learns of the end when the next bridge has started, and goes on allocating until then."""
    result = round_of(listed=10.6, rejected=10.55, ended=10.5)
    assert (result.excused, result.violations) == (1, [])


def test_nothing_else_is(round_of):
    result = round_of(listed=10.6, rejected=10.7)
    assert result.excused == 0 and len(result.violations) == 1


def test_a_long_recovery_is_not(round_of):
    """Neither it, nor a pod that was rejected at its end."""
    result = round_of(listed=40.1, rejected=30)
    assert result.excused == 0
    slow, rejected = result.violations
    assert slow == "the bridge was back 30.0 s after it was started"
    assert rejected.startswith("rejected: ")
