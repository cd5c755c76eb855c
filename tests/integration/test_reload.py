"""Settings that are read again while the daemon runs: SIGHUP."""

import os
import signal
import time

import grpc
import pytest

from asking import by_annotation, by_token, refused
from ctl import ctl_json
from node import Bridge
from shim import BINARY, accepts
from waiting import wait_until

GPU = "vendor.com/gpu"

pytestmark = pytest.mark.usefixtures("runtime")


def reload(shim, says, count=1):
    """Writes its settings, and waits for what it says of them."""
    shim.config_path.write_text(shim.config_text())
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log(says, count)


def test_hold_and_grace(make_shim, make_plugin, make_client):
    """They count at once, for a create that is held and a plugin that is away, too."""
    shim = make_shim(plugins={"hold": "60s", "grace": "1h"})
    plugin = make_plugin(shim, GPU, ["g0"])
    client = make_client(shim)
    pod = client.run_pod("web")
    client.run(pod, "first", annotations=by_token(GPU, "g0"))
    client.remove_pod(pod.id)
    plugin.stop()
    shim.wait_log("its devices are unhealthy")
    other = client.run_pod("other")
    held = client.begin("CreateContainer", client.create_request(
        other, "app", annotations=by_token(GPU, "g0")))
    shim.wait_log("held: ")

    shim.plugins["hold"] = "0s"
    reload(shim, "reload: changed: plugins.hold; needs a restart: nothing")
    assert held.exception().code() == grpc.StatusCode.UNAVAILABLE
    began = time.monotonic()
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(other, "app", annotations=by_token(GPU, "g0"))
    assert time.monotonic() - began < 30

    shim.plugins["grace"] = "1ms"
    reload(shim, "reload: changed: plugins.grace; needs a restart: nothing")
    shim.wait_log(f"resource {GPU}: removed")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, GPU):
        client.create(other, "app", annotations=by_token(GPU, "g0"))


def test_a_file_that_is_wrong_changes_nothing(make_shim, make_client):
    shim = make_shim(plugins={"hold": "100ms"})
    client = make_client(shim)
    shim.plugins["hold"] = "30s"
    shim.annotations["enabled"] = "perhaps"
    reload(shim, "reload: nothing has changed, since")
    lines = shim.config_text().split("\n")
    line = next(n for n, text in enumerate(lines, 1) if text.startswith("enabled"))
    assert f"error: {shim.config_path}:{line}:11: enabled is a string" in shim.log()
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "other.com/x"):
        client.create(pod, "app", annotations=by_token("other.com/x", "d"))
    shim.config_path.unlink()
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log("reload: nothing has changed, since", 2)
    os.mkfifo(shim.config_path)
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log("reload: nothing has changed, since", 3)
    shim.config_path.unlink()
    shim.annotations["enabled"] = True
    reload(shim, "reload: changed: plugins.hold; needs a restart: nothing")


def test_what_needs_a_restart_is_named_and_the_rest_counts(directory, make_shim, make_client):
    """And after one it counts, too."""
    shim = make_shim(annotations={"enabled": False})
    client = make_client(shim)
    other = directory / "other.sock"
    shim.top["listen"] = str(other)
    shim.annotations = {"enabled": True, "namespaces": ["default"]}
    shim.resources = [{"name": GPU, "grace": "1m"}]
    reload(shim, "reload: changed: annotations.enabled, annotations.namespaces; "
                 "needs a restart: listen, [[resource]]")
    assert not other.exists()
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "not registered"):
        client.create(pod, "app")
    shim.terminate()
    shim.spawn()
    wait_until(lambda: accepts(other), "it listens where it was told")


def test_of_one_resource(make_shim):
    """Its times change; whether its devices are shared waits for a restart."""
    shim = make_shim(resources=[{"name": GPU, "grace": "1m"}])
    shim.resources = [{"name": GPU, "grace": "2m"}]
    reload(shim, "reload: changed: [[resource]]; needs a restart: nothing")
    shim.resources = [{"name": GPU, "grace": "2m", "exclusive": False}]
    reload(shim, "reload: changed: nothing; needs a restart: [[resource]]")


def test_of_one_driver(make_shim):
    """All of it: one more, another word, one less."""
    shim = make_shim()
    for drivers in ([{"name": "gpu.example.com"}], [{"name": "gpu.example.com", "cached_prepare": True}], []):
        shim.drivers = drivers
        reload(shim, "reload: changed: [[driver]]; needs a restart: nothing")
    shim.drivers = [{"name": "GPU"}]
    reload(shim, "reload: nothing has changed, since")


def test_the_same_again(make_shim):
    shim = make_shim()
    reload(shim, "reload: changed: nothing; needs a restart: nothing")


@pytest.mark.parametrize("level, more", [("info", False), ("debug", True)])
def test_the_level(make_shim, make_client, level, more):
    """Debug lines come, or come no more, from the reload on."""
    shim = make_shim(top={"log_level": "debug" if level == "info" else "info"})
    shim.log_settings["level"] = level
    reload(shim, "reload: changed: log.level; needs a restart: nothing")
    before = shim.log().count("debug: ")
    pod = make_client(shim).run_pod("web")
    client = make_client(shim)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, GPU):
        client.create(pod, "app", annotations=by_token(GPU, "g0"))
    assert accepts(shim.plugin_dir / "kubelet.sock")  # whose end is a debug line
    shim.wait_log("CreateContainer refused")
    if more:
        wait_until(lambda: shim.log().count("debug: ") > before, "debug lines come")
    else:
        assert shim.log().count("debug: ") == before


def test_over_a_restart(make_shim):
    """Killed behind a reload, the next one has the file's settings, and not those before."""
    shim = make_shim(plugins={"hold": "60s"})
    shim.plugins["hold"] = "1s"
    reload(shim, "reload: changed: plugins.hold; needs a restart: nothing")
    shim.kill()
    shim.start()
    reload(shim, "reload: changed: nothing; needs a restart: nothing")
    shim.plugins["hold"] = "60s"
    reload(shim, "reload: changed: plugins.hold; needs a restart: nothing", 2)


def test_degraded_until_the_file_is_right(make_shim):
    shim = make_shim()
    shim.terminate()
    right = shim.config_text()
    shim.config_path.write_text(right + "\nnonsense = 1\n")
    shim._spawn(BINARY, "--config", shim.config_path)  # pylint: disable=protected-access
    shim.wait_log("the settings are those of the last start that worked")
    wait_until(lambda: accepts(shim.socket), "it listens")
    shim.config_path.write_text(right)
    os.kill(shim.pid, signal.SIGHUP)
    shim.wait_log("reload: changed: nothing; needs a restart: nothing")


@pytest.fixture
def bridge(directory, shim, closing):
    """The daemon's own, which shares its file."""
    one = closing(Bridge(shim.config_path, directory / "bridge.log"))
    one.start()
    shim.wait_log("the bridge is here")
    return one


def test_the_bridge_too(shim, bridge):
    """The log's level and form; the rest is the daemon's."""
    shim.log_settings["format"] = "json"
    shim.config_path.write_text(shim.config_text())
    os.kill(bridge.pid, signal.SIGHUP)
    bridge.wait_log('"kind":"reloaded"')


def test_the_bridge_takes_its_part_of_the_daemons(shim, bridge):
    """It reads nothing itself: the daemon tells it, once it has read the file and found it right."""
    shim.log_settings["format"] = "json"
    reload(shim, '"msg":"reload: changed: log.format; needs a restart: nothing"')
    bridge.wait_log('"msg":"reload: as the daemon\'s: log.level debug, log.format json')
    shim.log_settings["format"] = "logfmt"
    shim.annotations["enabled"] = "perhaps"
    reload(shim, "reload: nothing has changed, since")
    shim.annotations["enabled"] = True
    reload(shim, "changed: log.format; needs", 2)
    bridge.wait_log('msg="reload: as the daemon\'s: log.level debug, log.format logfmt')
    assert bridge.log().count("reload: ") == 2
    bridge.kill()
    shim.log_settings["format"] = "json"
    reload(shim, "changed: log.format; needs", 3)
    bridge.start()  # reads the file itself, later than the daemon has
    bridge.wait_log('"msg":"feed: daemon ')
    assert bridge.log().count("reload: ") == 2


def test_the_bridge_takes_how_long_a_preference_may_take(shim, bridge):
    shim.bridge["preferred_timeout"] = "1ms"
    reload(shim, "reload: changed: bridge.preferred_timeout; needs a restart: nothing")
    bridge.wait_log("bridge.preferred_timeout 1ms")


def test_a_daemon_without_its_file_hands_on_the_level_that_was_set(shim, bridge):
    wait_until((shim.state_dir / "config.last-good.toml").exists, "the settings are kept")
    shim.terminate()
    shim.config_path.write_text(shim.config_text() + "\nnonsense = 1\n")
    shim._spawn(BINARY, "--config", shim.config_path)  # pylint: disable=protected-access
    shim.wait_log("the settings are those of the last start that worked")
    shim.wait_log("the bridge is here", 2)
    ctl_json(shim, "log-level", "info")
    bridge.wait_log("log level as the daemon's: info")
    ctl_json(shim, "log-level", "--reset")
    bridge.wait_log("log level as the daemon's: debug")


def test_a_bridge_is_degraded_until_the_daemon_has_read_the_file_again(shim, bridge):
    def degraded():
        return {one["what"]: one["why"] for one in ctl_json(shim, "status")["degraded"]}

    wait_until(lambda: not degraded(), "all is well")
    bridge.kill()
    right = shim.config_text()
    shim.config_path.write_text(right + "\nnonsense = 1\n")
    bridge.start()
    wait_until(lambda: "is wrong; the settings are those of the last start" in
               degraded().get("bridge", ""), "it says so")
    reload(shim, "reload: changed: nothing; needs a restart: nothing")
    bridge.wait_log("all settings are the file's again")
    wait_until(lambda: not degraded(), "all is well again")


def test_a_bridge_that_runs_by_others_stays_degraded(directory, shim, bridge):
    """What cannot change without a restart is not the file's."""
    wait_until((shim.state_dir / "config.last-good.toml").exists, "the settings are kept")
    bridge.kill()
    shim.config_path.write_text("nonsense = 1\n" + shim.config_text())
    kept = shim.state_dir / "config.last-good.toml"
    kept.write_text(shim.config_text().replace(str(shim.kubelet_plugin_dir), str(directory / "old")))
    bridge.start()
    bridge.wait_log("the settings are those of the last start that worked")
    shim.log_settings["format"] = "json"
    reload(shim, "reload: changed: log.format; needs a restart: nothing")
    bridge.wait_log('"msg":"reload: as the daemon\'s: log.level debug, log.format json')
    assert any(one["what"] == "bridge" and "is wrong" in one["why"]
               for one in ctl_json(shim, "status")["degraded"])
