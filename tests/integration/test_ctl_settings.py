"""cri-device-shimctl reload and log-level: settings of a daemon that runs."""

import pytest

from ctl import ctl, ctl_json
from node import Bridge
from waiting import wait_until


def write(shim):
    shim.config_path.write_text(shim.config_text())


# ---- reload ----

def test_what_has_changed_and_what_needs_a_restart(at_work):
    assert ctl_json(at_work, "reload") == {"changed": [], "needsRestart": []}
    at_work.plugins.update(hold="7s", grace="1h")
    at_work.top["drain"] = "1s"
    at_work.bridge["gate"] = False
    write(at_work)
    told = ctl_json(at_work, "reload")
    assert told == {"changed": ["drain", "plugins.grace", "plugins.hold"],
                    "needsRestart": ["bridge.gate"]}
    settings = {one["key"]: one["value"] for one in ctl_json(at_work, "status")["settings"]}
    assert settings["plugins.hold"] == "7s"
    assert ctl(at_work, "reload").stdout == "changed: nothing\nneeds a restart: bridge.gate\n"


def test_every_mistake_is_named_with_its_place(at_work):
    at_work.plugins["hold"] = "soon"
    at_work.annotations["enabled"] = "perhaps"
    write(at_work)
    done = ctl(at_work, "reload")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: nothing has changed: ") and done.stderr.count("\n") == 1
    lines = at_work.config_text().split("\n")
    for start in ("hold", "enabled"):
        line = next(n for n, text in enumerate(lines, 1) if text.startswith(start))
        assert f"{at_work.config_path}:{line}:" in done.stderr
    settings = {one["key"]: one["value"] for one in ctl_json(at_work, "status")["settings"]}
    assert settings["plugins.hold"] == "300ms"


def test_it_is_not_done_again_and_again(at_work):
    assert ctl(at_work, "reload", "-w").returncode == 2


# ---- the log's level ----

def level(shim, *arguments):
    told = ctl_json(shim, "log-level", *arguments)
    return told["level"], told["settings"], told["set"]


def test_a_level_counts_over_kills_and_reloads(at_work):
    shim = at_work
    assert level(shim) == ("debug", "debug", False)
    assert ctl_json(shim, "status")["logLevelSet"] is None
    assert level(shim, "warning") == ("warning", "debug", True)
    assert ctl_json(shim, "status")["logLevelSet"] == "warning"
    assert "log-level (set)" in ctl(shim, "status").stdout
    ctl_json(shim, "reload")
    assert level(shim) == ("warning", "debug", True)
    shim.kill()
    before = len(shim.log())
    shim.start()
    shim.wait_control()
    assert level(shim) == ("warning", "debug", True)
    assert ctl(shim, "log-level").stdout == "warning (set; the settings say debug: --reset)\n"
    assert "debug: " not in shim.log()[before:] and " -> " not in shim.log()[before:]
    assert level(shim, "--reset") == ("debug", "debug", False)
    shim.wait_log("log level: that of the settings")
    assert not (shim.state_dir / "log-level").exists()
    assert ctl(shim, "log-level", "-o", "name").stdout == "debug\n"


def test_the_bridge_logs_at_it_too(directory, at_work, closing):
    """One that runs, and one that is started later."""
    shim = at_work
    level(shim, "error")
    bridge = closing(Bridge(shim.config_path, directory / "bridge.log"))
    bridge.start()
    wait_until(lambda: ctl_json(shim, "status")["processes"][1]["version"], "the bridge is here")
    level(shim, "info")
    bridge.wait_log("log level as the daemon's: info")
    level(shim, "--reset")
    bridge.wait_log("log level as the daemon's: debug")


@pytest.mark.parametrize("arguments", [("loud",), ("debug", "--reset")])
def test_what_is_no_level(at_work, arguments):
    done = ctl(at_work, "log-level", *arguments)
    assert (done.returncode, done.stderr) == (
        2, "error: a level is error, warning, info or debug, or it is reset\n")
    assert level(at_work) == ("debug", "debug", False)


def test_one_that_cannot_be_kept_is_not_set(at_work):
    (at_work.state_dir / "log-level").mkdir()
    done = ctl(at_work, "log-level", "error")
    assert done.returncode == 1 and "cannot be kept in state_dir" in done.stderr
    assert level(at_work) == ("debug", "debug", False)


def test_a_file_that_is_no_level_counts_for_nothing(at_work):
    at_work.terminate()
    (at_work.state_dir / "log-level").write_text("loud\n")
    at_work.start()
    at_work.wait_log("no log level; the level is that of the settings")
    at_work.wait_control()
    assert level(at_work) == ("debug", "debug", False)
