"""The agent's part in the machine's shutdown, between a scripted daemon and logind on a bus of its own."""

import shutil

import pytest

from agent_feed import AgentFeed
from agent_process import Agent
from logind import Logind
from supervisor import supervised
from waiting import wait_until

LIMIT_S = 300  # logind's, of the fixture


@pytest.fixture
def feed(directory, closing):
    """A daemon that wants a shutdown to be delayed."""
    one = closing(AgentFeed(directory / "run" / "agent.sock", kinds=()))
    one.start()
    one.wish(wanted=True, grace_ms=10_000)
    return one


@pytest.fixture
def agent(directory, closing, feed, manager):
    """One without an API server, which is not needed; not started. `manager` keeps its lock."""
    return closing(supervised(Agent, manager)(directory, directory / "none.conf", node_name="node-1"))


@pytest.fixture
def locked(agent, logind, feed):
    agent.start()
    feed.wait_shutdown(lambda one: one.known and one.locked, "the lock is held")
    logind.wait_held()
    return agent


def begun(feed, logind, **more):
    """A shutdown begins; as the agent tells it."""
    logind.begin()
    said = feed.wait_shutdown(lambda one: one.under_way, "it shuts down")
    for name, value in more.items():
        assert getattr(said, name) == value
    return said


def test_a_lock_is_held_while_one_is_wanted(locked, logind, feed, manager):
    assert feed.shutdown.limit_ms == LIMIT_S * 1000
    assert not feed.shutdown.under_way and feed.shutdown.since_ms == 0 and feed.shutdown.trouble == ""
    assert manager.names() == ["logind/shutdown"]
    feed.wish(wanted=False)
    logind.wait_released()
    manager.wait_names(lambda names: names == [])
    feed.wish(wanted=True)
    logind.wait_held()
    manager.wait_names(lambda names: names == ["logind/shutdown"])


def test_nothing_is_asked_for_unless_it_is_wanted(agent, logind, feed):
    feed.wish(wanted=False)
    agent.start()
    wait_until(lambda: feed.reports, "it has reported")
    assert not any(report.HasField("shutdown") for report in feed.reports)
    feed.wish(wanted=True)
    logind.wait_held()


def test_a_shutdown_is_told_and_delayed_until_all_is_over(locked, logind, feed, manager):
    said = begun(feed, logind, locked=True, known=True)
    assert said.since_ms > 0
    assert logind.held() == 1
    feed.wish(wanted=True, over=True, over_since_ms=said.since_ms)
    logind.wait_released()
    feed.wait_shutdown(lambda one: not one.locked and one.under_way, "it was let go")
    manager.wait_names(lambda names: names == [])
    assert feed.shutdown.trouble == ""


def test_a_word_on_another_shutdown_is_none(locked, logind, feed):
    said = begun(feed, logind)
    feed.wish(wanted=True, over=True, over_since_ms=said.since_ms - 1)
    # Asked and answered: what was said before has been looked at.
    logind.set_limit(LIMIT_S + 1)
    feed.wish(wanted=True, over=True, over_since_ms=said.since_ms - 2)
    feed.wait_shutdown(lambda one: one.limit_ms == (LIMIT_S + 1) * 1000, "it was read again")
    assert logind.held() == 1


def test_one_that_is_cancelled_and_another(locked, logind, feed):
    first = begun(feed, logind)
    feed.wish(wanted=True, over=True, over_since_ms=first.since_ms)
    logind.wait_released()
    logind.cancel()
    logind.wait_held()
    feed.wait_shutdown(lambda one: one.locked and not one.under_way, "it was cancelled")
    assert feed.shutdown.since_ms == 0
    second = begun(feed, logind, locked=True)
    assert second.since_ms > first.since_ms
    assert logind.held() == 1, "the word was on the first one"


def test_one_that_is_cancelled_before_all_is_over(locked, logind, feed):
    begun(feed, logind)
    logind.cancel()
    feed.wait_shutdown(lambda one: not one.under_way, "it was cancelled")
    assert feed.shutdown.locked and logind.held() == 1


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_agent_that_ends_in_the_middle(locked, logind, feed, manager, end):
    """The lock outlives it; the next one says what it finds, and lets go."""
    begun(feed, logind)
    getattr(locked, end)()
    assert logind.held() == 1
    locked.start()
    feed.wait_watched(2)
    said = feed.wait_shutdown(lambda one: one.known, "the next one has looked")
    assert said.under_way and said.locked and said.since_ms == 0
    assert logind.held() == 1
    feed.wish(wanted=True, over=True, over_since_ms=4711)
    logind.wait_released()
    manager.wait_names(lambda names: names == [])


def test_an_agent_that_is_restarted_takes_no_second_lock(locked, logind, feed, manager):
    locked.kill()
    locked.start()
    feed.wait_watched(2)
    feed.wait_shutdown(lambda one: one.known and one.locked, "the next one has looked")
    assert logind.held() == 1 and manager.names() == ["logind/shutdown"]
    assert begun(feed, logind, locked=True).since_ms > 0


def test_without_a_store_a_lock_ends_with_its_agent(directory, closing, feed, logind):
    """One that comes in the middle tells that there is a shutdown, and that it has no lock."""
    one = closing(Agent(directory, directory / "none.conf", node_name="node-1"))
    one.start()
    logind.wait_held()
    begun(feed, logind)
    one.kill()
    logind.wait_released()
    one.start()
    said = feed.wait_shutdown(lambda one: one.known and not one.locked, "the next one has looked")
    assert said.under_way and said.trouble == "no lock is given in a shutdown"
    logind.cancel()
    logind.wait_held()


def test_logind_is_restarted(locked, logind, feed, manager):
    """It finds its locks again, as long as they are open: not at the service manager, neither."""
    logind.kill()
    feed.wait_shutdown(lambda one: not one.known, "logind is away")
    assert feed.shutdown.trouble
    logind.start()
    feed.wait_shutdown(lambda one: one.known and one.locked, "logind is back")
    assert logind.held() == 1 and manager.names() == ["logind/shutdown"]
    begun(feed, logind, locked=True)


def test_logind_is_restarted_and_has_forgotten_all(locked, logind, feed, manager, directory):
    logind.kill()
    feed.wait_shutdown(lambda one: not one.known, "logind is away")
    shutil.rmtree(directory / "inhibit")
    (directory / "inhibit").mkdir()
    logind.start()
    logind.wait_held()
    feed.wait_shutdown(lambda one: one.known and one.locked, "it is locked anew")
    manager.wait_names(lambda names: names == ["logind/shutdown"])


def test_logind_is_away_in_a_shutdown(locked, logind, feed):
    """What it said last is told on, and it is the same shutdown when it is back; or none any more."""
    said = begun(feed, logind)
    since = said.since_ms
    logind.kill()
    feed.wait_shutdown(lambda one: not one.known, "logind is away")
    assert feed.shutdown.under_way and feed.shutdown.since_ms == since
    logind.start(shutting_down=True)
    feed.wait_shutdown(lambda one: one.known, "logind is back")
    assert feed.shutdown.under_way and feed.shutdown.since_ms == since and logind.held() == 1
    logind.kill()
    logind.start()
    feed.wait_shutdown(lambda one: one.known and not one.under_way, "it knows of none")
    assert feed.shutdown.locked


def test_logind_hangs(locked, logind, feed):
    with logind.stopped():
        feed.wish(wanted=True)  # it is asked anew
        feed.wait_shutdown(lambda one: not one.known, "it does not answer")
        assert feed.shutdown.trouble.startswith("logind: ")
    feed.wait_shutdown(lambda one: one.known and one.locked, "it answers again")


def test_without_a_bus(agent, bus, feed, directory, closing):
    bus.stop()
    bus.socket.unlink(missing_ok=True)
    agent.start()
    feed.wait_shutdown(lambda one: one.trouble.startswith("the system bus: "), "there is no bus")
    assert not feed.shutdown.known and not feed.shutdown.locked
    bus.start()
    feed.wait_shutdown(lambda one: "org.freedesktop.login1" in one.trouble, "there is no logind")
    logind = closing(Logind(directory, bus))
    logind.start()
    logind.wait_held()
    feed.wait_shutdown(lambda one: one.known and one.locked and not one.trouble, "all is well")


def test_without_its_library(agent, logind, feed, directory, monkeypatch):
    """libsystemd is loaded only where a shutdown is to be delayed; one that cannot be is said."""
    (directory / "libsystemd.so.0").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(directory))
    agent.start()
    feed.wait_shutdown(lambda one: "libsystemd.so.0: file too short" in one.trouble and not one.known,
                       "it cannot be loaded")


def test_the_bus_is_restarted(locked, bus, logind, feed):
    """dbusmock ends with its bus; logind does not, but goes to another."""
    bus.kill()
    feed.wait_shutdown(lambda one: not one.known, "the bus is away")
    logind.wait_exit()
    bus.start()
    logind.start()
    feed.wait_shutdown(lambda one: one.known and one.locked, "all is well")
    assert logind.held() == 1
    begun(feed, logind)


def test_a_lock_that_is_refused_is_asked_for_again(agent, logind, feed):
    logind.refuse("Access denied, as a test has it")
    agent.start()
    feed.wait_shutdown(lambda one: one.known and one.trouble == "Access denied, as a test has it", "it was refused")
    assert not feed.shutdown.locked
    logind.refuse("")
    logind.wait_held()
    feed.wait_shutdown(lambda one: one.locked and not one.trouble, "it was given")


def test_a_daemon_that_is_away(locked, logind, feed):
    """The lock is held for it, until shortly before logind goes on by itself."""
    begun(feed, logind)
    feed.stop()
    locked.wait_log("feed: lost")
    assert logind.held() == 1
    feed.start()
    feed.wait_watched(2)
    feed.wait_shutdown(lambda one: one.under_way and one.locked, "it is told to the next one")


def test_a_daemon_that_stays_away(locked, logind, feed):
    logind.set_limit(1)  # so that there is no time left, once there is nobody who says so
    begun(feed, logind, limit_ms=1000)
    assert logind.held() == 1
    feed.stop()
    logind.wait_released()
    locked.wait_log("there is no daemon, and no more time")


def test_a_daemon_of_before_wants_nothing(locked, logind, feed, manager):
    locked.kill()
    feed.stop()
    older = AgentFeed(feed.socket, kinds=())
    older.start()
    locked.start()
    logind.wait_released()
    manager.wait_names(lambda names: names == [])
    older.stop()


def test_a_kubelet_s_lock(agent, logind, feed):
    with logind.lock("kubelet", what="sleep:idle"), logind.lock("kubelet", mode="block"):
        agent.start()
        feed.wait_shutdown(lambda one: one.locked, "ours is held")
        assert not feed.shutdown.kubelet_locked, "of another kind"
        with logind.lock("kubelet", what="sleep:shutdown"):
            begun(feed, logind, kubelet_locked=True, kubelet_gone=False)
        feed.wait_shutdown(lambda one: one.kubelet_gone, "it has let go of it")
        logind.set_limit(LIMIT_S + 1)
        feed.wish(wanted=True)
        feed.wait_shutdown(lambda one: one.limit_ms == (LIMIT_S + 1) * 1000, "it was read again")
        assert feed.shutdown.kubelet_locked, "it had one when this began"
        logind.cancel()
        feed.wait_shutdown(lambda one: not one.under_way, "it was cancelled")
        assert not feed.shutdown.kubelet_locked and not feed.shutdown.kubelet_gone


def test_a_kubelet_that_is_stopped_before_ends_no_pods(locked, logind, feed):
    """As an operator does it who is to restart the machine: its lock has gone with it, and nobody else ends them."""
    with logind.lock("kubelet"):
        feed.wait_shutdown(lambda one: one.kubelet_locked, "it has one")
    feed.wait_shutdown(lambda one: not one.kubelet_locked, "it has none any more")
    begun(feed, logind, kubelet_locked=False)


def test_a_limit_that_is_too_small_is_said(agent, logind, feed):
    logind.set_limit(5)
    agent.start()
    agent.wait_log("logind waits for 5000 ms at a shutdown, and [shutdown] wants 10000")
    feed.wait_shutdown(lambda one: one.limit_ms == 5000, "it is told")
    logind.set_limit(10)
    feed.wish(wanted=True, grace_ms=11_000)
    agent.wait_log("logind waits for 10000 ms at a shutdown, and [shutdown] wants 11000")
    feed.wish(wanted=True, grace_ms=12_000)
    agent.wait_log("logind waits for 10000 ms at a shutdown, and [shutdown] wants 12000")


def test_the_lock_goes_with_the_settings(locked, logind, manager):
    """An agent that has nothing to do keeps none."""
    locked.kill()
    locked.settings["enabled"] = False
    locked.start()
    logind.wait_released()
    assert manager.names() == []
