"""config/install.sh and the services of a node: what is started, restarted and stopped, when, and under which pods."""

import json
import os
import shutil
import socket
import stat
import subprocess

import pytest

import kubelet_checkpoint
from ctl import AS_NOBODY
from live_node import ALL_ACTIVE, LiveNode
from node_tree import (
    CONFIG, CTL, DAEMON, DROP_IN, INSTALLED, KUBELET_DIR, LISTEN, OURS, SCRIPT, UNITS, Node, files_of, logind_ours,
    shuts_down_in)
from protos import deviceplugin
from shim import ROOT


@pytest.fixture(name="live")
def live_node(directory):
    return LiveNode(directory)


def test_services(live):
    """The shim first, while the kubelet uses the runtime; the kubelet once the shim serves. A
    second install starts nothing anew, an uninstall is the way back in the other order, but for the bridge, by which
    pods were admitted that need the shim."""
    before = live.tree()
    done = live.install()
    assert "systemctl restart kubelet.service" in done.stdout
    assert live.calls() == [
        "daemon-reload [runtime]", "restart S.socket S.service [runtime]",
        "restart S-bridge.service [runtime]", "daemon-reload [shim]",
        "restart kubelet.service [shim]"]
    assert live.active() == ALL_ACTIVE
    live.install()
    assert live.calls() == []
    live.write("run/cri-device-shim/gate", "")
    live.install("--uninstall")
    assert live.calls() == [
        "stop S-bridge.service [shim]", "daemon-reload [runtime]", "restart kubelet.service [runtime]",
        "stop S.socket S.service S-bridge.service [runtime]", "daemon-reload [runtime]"]
    assert live.active() == {"kubelet.service"}
    assert live.tree() == before


@pytest.mark.parametrize("options", [[], ["--uninstall"], ["--uninstall", "--dry-run"]])
def test_as_no_root(live, options, directory):
    """Who cannot read what is noted is not told that it is lost. Such a one may not come to where the sources are."""
    live.install()
    live.calls()
    config = shutil.copytree(ROOT / "config", directory / "config")
    subprocess.run(["chmod", "-R", "a+rX", config], check=True)
    command = live.live_command(*options)
    at = command["args"].index(SCRIPT)
    command["args"][at:at + 1] = [*AS_NOBODY, config / SCRIPT.name]
    done = subprocess.run(**command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: run it as root\n")
    assert live.calls() == [] and live.active() == ALL_ACTIVE


def test_services_dry_run(live):
    """Says what it would run, and runs nothing."""
    done = live.install("--dry-run")
    assert done.stdout.endswith(
        "then:\n    systemctl daemon-reload\n"
        "    systemctl restart cri-device-shim.socket cri-device-shim.service\n"
        "    systemctl restart cri-device-shim-bridge.service\n    systemctl daemon-reload\n"
        "    systemctl restart kubelet.service\n")
    assert live.calls() == [] and live.active() == {"kubelet.service"}


def test_new_daemon_does_not_start(live):
    """An install is taken back without the kubelet having noticed; an upgrade ends with the old
    binary running again."""
    fails = live.state / "fails/cri-device-shim.service"
    fails.write_text("one")
    assert "all changes were taken back" in live.refuses()
    assert live.active() == {"kubelet.service"}
    assert not any("kubelet" in call for call in live.calls())
    fails.unlink()
    live.install()
    live.calls()
    fails.write_text("two")
    live.build_binary("cri-device-shim", "two")
    said = live.refuses()
    assert "status of cri-device-shim.service: failed\nerror: cri-device-shim.service did not start" in said
    assert live.calls() == ["restart S.service [shim]", "daemon-reload [shim]",
                            "restart S.service [shim]"]
    assert live.active() == ALL_ACTIVE


def test_daemon_that_starts_at_the_second_try(live):
    """Of systemd's own: nothing is taken back, and it is said why it did not start at once."""
    name = "cri-device-shim-bridge.service"
    (live.state / f"fails/{name}").write_text("one")
    (live.state / "later").write_text(name)
    done = live.install()
    assert f"status of {name}: failed\n" in done.stderr and f"{name} did not start at once, but runs now" in done.stdout
    assert live.active() == ALL_ACTIVE


def test_drop_in_without_effect(live):
    """Something that is not known here sets the kubelet's command: it is not restarted."""
    (live.state / "hidden").touch()
    assert "has no effect: something else sets ExecStart=" in live.refuses()
    assert live.active() == {"kubelet.service"}
    assert not any("kubelet.service" in call for call in live.calls())


def test_kubelet_does_not_stay_up(live):
    """A kubelet that ends with the new argument gets its old ones, and the shim goes again."""
    (live.state / "dies").touch()
    assert "kubelet.service does not stay up" in live.refuses()
    assert live.calls()[-2:] == ["daemon-reload [runtime]", "restart kubelet.service [runtime]"]
    assert live.active() == {"kubelet.service"}


def taken_off(live):
    """As in the emergency of config/OPERATIONS.md: nothing runs, nothing is enabled, and the kubelet has its runtime."""
    for link in (live.root / UNITS).glob("*.wants/cri-device-shim*"):
        link.unlink()
    (live.root / DROP_IN).unlink(missing_ok=True)
    for unit in ALL_ACTIVE - {"kubelet.service"}:
        (live.state / "active" / unit).unlink()
    (live.state / "runs/kubelet.service").write_text("")


def test_way_back_from_an_emergency_that_fails(live):
    """What somebody has stopped is stopped again: the bridge showed devices to a kubelet that has its runtime without the shim."""
    live.install()
    taken_off(live)
    (live.state / "dies").touch()
    words = live.refuses()
    assert "kubelet.service does not stay up" in words and "all changes were taken back" in words
    assert live.active() == {"kubelet.service"}
    (live.state / "dies").unlink()
    live.install()
    assert live.active() == ALL_ACTIVE


def test_upgrade_of_one_that_is_not_enabled_fails(live):
    """Links that are gone do not tell that it was stopped: what ran before runs."""
    live.install()
    for link in (live.root / UNITS).glob("*.wants/cri-device-shim*"):
        link.unlink()
    (live.state / "fails/cri-device-shim-bridge.service").write_text("two")
    live.build_binary("cri-device-shim", "two")
    live.build_binary("cri-device-shim-bridge", "two")
    assert "cri-device-shim-bridge.service did not start" in live.refuses()
    assert live.active() == ALL_ACTIVE


def test_uninstall_that_fails(live):
    """The kubelet does not come up without the shim: it gets it back."""
    live.install()
    (live.state / "dies").touch()
    assert "all changes were taken back" in live.refuses("--uninstall")
    assert live.calls()[-2:] == ["daemon-reload [shim]", "restart S-bridge.service kubelet.service [shim]"]
    assert live.active() == ALL_ACTIVE


def test_uninstall_beside_a_kubelet_that_is_started_anew(live):
    """Its unit wants the bridge for as long as systemd knows the drop-in; by that pods were admitted that need the shim."""
    live.install()
    live.calls()
    (live.state / "wanted").touch()
    live.install("--uninstall")
    assert live.calls()[:4] == ["stop S-bridge.service [shim]", "daemon-reload [runtime]", "stop S-bridge.service [runtime]",
                                "restart kubelet.service [runtime]"]


@pytest.mark.parametrize("kubelet", [[], ["--no-kubelet"]])
def test_uninstall_that_cannot_remove_a_file(live, kubelet):
    """What it has stopped runs again, the agent too."""
    live.write(CONFIG, 'runtime_endpoint = "/run/containerd/containerd.sock"\n[cluster]\nenabled = true\n')
    live.install(*kubelet)
    everything = ALL_ACTIVE | {"cri-device-shim-agent.service"}
    assert live.active() == everything
    if kubelet:
        (live.state / "unused").touch()
    path = live.root / f"{UNITS}/cri-device-shim.service"
    (live.tools / "rm").write_text(f'#!/bin/sh\n[ "$*" != "-f -- /{UNITS}/cri-device-shim.service" ] || exit 1\nexec /bin/rm "$@"\n')
    (live.tools / "rm").chmod(0o755)
    assert "all changes were taken back" in live.refuses("--uninstall")
    assert path.exists() and live.active() == everything


BUSCTL = """#!/bin/sh
    [ "$1 $5" = "get-property InhibitDelayMaxUSec" ] || exit 9
    echo "asked" >>STATE/busctl
    cat STATE/waits
    """


def test_logind_is_told(live):
    """Before the agent starts, which looks at what logind says; and whether it has understood."""
    live.install()
    live.calls()
    (live.tools / "busctl").write_text(BUSCTL.replace("STATE", str(live.state)))
    (live.tools / "busctl").chmod(0o755)
    (live.state / "waits").write_text("t 35000000\n")
    shuts_down_in(live, '[shutdown]\ngrace = "30s"')
    assert live.install().stderr == ""
    calls = live.calls()
    assert calls.index("kill --signal=HUP systemd-logind.service [shim]") < calls.index("restart S-agent.service [shim]")
    assert (live.state / "busctl").read_text() == "asked\n"
    shuts_down_in(live, '[shutdown]\ngrace = "31s"')
    assert "logind waits for 35000000 microseconds" in live.install().stderr
    assert (live.state / "busctl").read_text().count("asked") > 2
    live.calls()
    (live.state / "fails/cri-device-shim.service").write_text("two")
    live.build_binary("cri-device-shim", "two")
    shuts_down_in(live, '[shutdown]\ngrace = "40s"')
    live.refuses()
    assert live.calls()[-1] == "kill --signal=HUP systemd-logind.service [shim]"
    assert logind_ours(live) == {OURS: "36"}


@pytest.fixture
def labels(live):
    """The paths of which a label was set; no machine here has SELinux, so its tools are stand-ins."""
    log = live.state / "labels"
    for name, text in (("selinuxenabled", "exit 0"), ("restorecon", f'echo "$@" >>{log}')):
        live.write(f"usr/local/sbin/{name}", f"#!/bin/sh\n{text}\n", 0o755)

    def read():
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        assert all(line.startswith("-F -- /") for line in lines)
        return {line.removeprefix("-F -- /") for line in lines}

    return read


@pytest.mark.parametrize("path", ["/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "/usr/local/bin:/usr/bin:/bin"])
def test_selinux_labels(live, labels, path):
    """What is moved to its place from elsewhere gets the label of its place; so does what is put
    back there, by an administrator with a user's PATH, too. An image (--root) is labelled by whoever boots it."""
    live.path = f"{live.tools}:{path}"
    live.write(DAEMON, "an older one", 0o755)
    live.install()
    assert labels() == INSTALLED
    live.install("--uninstall")
    assert labels() == {DAEMON}
    Node.run(live)
    assert labels() == set()


@pytest.fixture
def with_pods(live):
    """A node on which pod "web" has a device through the shim, and "old", with one, is gone."""
    token = deviceplugin.ContainerAllocateResponse(
        annotations={"devices.cri-device-shim/vendor.com_gpu": "{}"}).SerializeToString()
    live.install()
    live.calls()
    live.write(f"{KUBELET_DIR}/{kubelet_checkpoint.NAME}", kubelet_checkpoint.encode(
        [kubelet_checkpoint.Entry(uid, "main", "vendor.com/gpu", {-1: [one]}, token)
         for uid, one in (("uid-1", "gpu0"), ("uid-2", "gpu1"))], {"vendor.com/gpu": ["gpu0"]}))
    (live.root / "var/log/pods/shop_web_uid-1").mkdir()
    return live


def test_uninstall_under_pods_that_need_it(with_pods):
    """Made anew without the shim their containers had no devices: it names them, and ends."""
    words = with_pods.refuses("--uninstall")
    assert "pod shop/web, container main has vendor.com/gpu gpu0 through the shim\n" in words
    assert "uid-2" not in words and "gpu1" not in words
    assert with_pods.calls() == [] and with_pods.active() == ALL_ACTIVE
    done = with_pods.install("--uninstall", "--dry-run")
    assert "shop/web" in done.stderr and "delete these pods" in done.stdout
    (with_pods.root / "var/log/pods/shop_web_uid-1").rmdir()
    with_pods.install("--uninstall")
    assert with_pods.active() == {"kubelet.service"}


def test_uninstall_under_pods_with_claims(live):
    """Of devices that are published for claims the kubelet has only names that no runtime knows."""
    claim = {"ClaimUID": "c-1", "ClaimName": "gpus", "Namespace": "shop", "PodUIDs": {"uid-1": {}, "uid-2": {}},
             "DriverState": {"plugins.cri-device-shim": {"Devices": [
                 {"CDIDeviceIDs": ["plugins.cri-device-shim/device=vendor.com:gpu:g0:c-1"]}]}}}
    live.install()
    live.calls()
    live.write("var/lib/kubelet/dra_manager_state",
               json.dumps({"Data": json.dumps({"ClaimInfoStateList": [claim]}), "Checksum": 1}))
    (live.root / "var/log/pods/shop_web_uid-1").mkdir()
    words = live.refuses("--uninstall")
    assert "pod shop/web, claim shop/gpus has vendor.com/gpu g0 through the shim\n" in words and "uid-2" not in words
    assert live.calls() == [] and live.active() == ALL_ACTIVE
    (live.root / "var/log/pods/shop_web_uid-1").rmdir()
    live.install("--uninstall")


CHOSEN = """#!/bin/sh
[ "$*" = "--socket /run/cri-device-shim/control.sock allocations --chosen-by shim -o name" ] || exit 9
[ ! -e STATE/unreachable ] || { echo "error: cannot reach the daemon" >&2; exit 4; }
cat STATE/chosen
"""


@pytest.fixture
def with_annotations(live):
    """A node on which pods "web" and one whose name nobody knows have devices by annotation."""
    live.install()
    live.calls()
    live.write(CONFIG, live.read(CONFIG) + '[annotations]\nenabled = true\nnamespaces = ["*"]\n')
    live.write(CTL, CHOSEN.replace("STATE", str(live.state)), 0o755)
    (live.state / "chosen").write_text("allocation/shop/web/main/vendor.com/gpu\nallocation/?/uid-1/main/vendor.com/gpu\n")
    return live


def test_uninstall_under_pods_by_annotation(with_annotations):
    """Of these the kubelet's checkpoints have nothing: the daemon says which they are."""
    words = with_annotations.refuses("--uninstall")
    assert "pod shop/web, container main has vendor.com/gpu by annotation\n" in words
    assert "pod with the UID uid-1, container main has" in words and "delete these pods" in words
    assert with_annotations.calls() == [] and with_annotations.active() == ALL_ACTIVE
    assert "shop/web" in with_annotations.install("--uninstall", "--dry-run").stderr
    (with_annotations.state / "chosen").write_text("")
    with_annotations.install("--uninstall")
    assert with_annotations.active() == {"kubelet.service"}


def test_uninstall_under_a_pod_that_was_just_admitted(with_annotations):
    """Who is so until the bridge stops is found then; and that runs again."""
    live = with_annotations
    live.write(CTL, CHOSEN.replace("cat STATE", "[ -e STATE/active/cri-device-shim-bridge.service ] || cat STATE").replace(
        "STATE", str(live.state)), 0o755)
    assert "shop/web" in live.refuses("--uninstall")
    assert live.calls() == ["stop S-bridge.service [shim]", "daemon-reload [shim]", "restart S-bridge.service [shim]"]
    assert live.active() == ALL_ACTIVE


def test_uninstall_beside_a_daemon_that_does_not_answer(with_annotations):
    """Which pods have some by annotation is not known, unless there are none; without the shim there are none to lose."""
    live = with_annotations
    (live.state / "unreachable").touch()
    words = live.refuses("--uninstall")
    assert "cannot reach the daemon" in words and "is not known; --force does not ask" in words
    assert live.calls() == [] and live.active() == ALL_ACTIVE
    live.install("--uninstall", "--force")
    live.install()
    (live.root / DROP_IN).unlink()
    for unit in ALL_ACTIVE - {"kubelet.service"}:
        (live.state / "active" / unit).unlink()
    live.write(CTL, CHOSEN.replace("STATE", str(live.state)), 0o755)
    live.install("--uninstall")


def test_uninstall_leaves_no_socket_where_the_kubelet_looks(live):
    """Of a driver that the bridge has shown there, which it names; those of others stay."""
    registry = live.root / "var/lib/kubelet/plugins_registry"
    registry.mkdir(parents=True)
    for name in ("dra-cri-device-shim-plugins.cri-device-shim-0123abcd.sock", "gpu.example.com-reg.sock",
                 "dra-cri-device-shim-a-gpu.example.com-0123abcd.sock"):
        os.mknod(registry / name, stat.S_IFSOCK | 0o600)  # its path is too long to be bound here
    live.install()
    said = live.install("--uninstall").stdout
    assert "the kubelet loses the driver a-gpu.example.com, until" in said and said.count("the kubelet loses") == 1
    assert [path.name for path in registry.iterdir()] == ["gpu.example.com-reg.sock"]


def test_uninstall_by_force(with_pods):
    done = with_pods.install("--uninstall", "--force")
    assert "shop/web" in done.stderr
    assert with_pods.active() == {"kubelet.service"}


def test_uninstall_of_a_node_that_logs_elsewhere(with_pods):
    """The kubelet's own directories tell which pods are gone; without them none counts as gone."""
    shutil.rmtree(with_pods.root / "var/log/pods")
    words = with_pods.refuses("--uninstall")
    assert "pod with the UID uid-1, container main" in words and "UID uid-2" in words
    pods = with_pods.root / "var/lib/kubelet/pods"
    (pods / "uid-1").mkdir(parents=True)
    words = with_pods.refuses("--uninstall")
    assert "pod with the UID uid-1, container main" in words and "uid-2" not in words
    (pods / "uid-1").rmdir()
    with_pods.install("--uninstall")


def test_uninstall_under_a_pod_without_logs(with_pods):
    """Just admitted: the kubelet has made its directory only, which is where its --root-dir is, as k0s gives it one."""
    with_pods.write(CONFIG, with_pods.read(CONFIG) + '[dra]\nkubelet_registry_dir = "/var/lib/k0s/kubelet/plugins_registry"\n')
    (with_pods.root / "var/lib/k0s/kubelet/pods/uid-2").mkdir(parents=True)
    assert "pod with the UID uid-2, container main" in with_pods.refuses("--uninstall")


def test_disable_under_a_kubelet_that_something_else_starts(live):
    """Whoever is connected would lose the runtime."""
    live.install("--no-kubelet")
    live.calls()
    assert f"somebody is connected to {LISTEN}" in live.refuses("--uninstall")
    assert live.calls() == [] and "cri-device-shim.service" in live.active()
    (live.state / "unused").touch()
    live.install("--uninstall")
    assert live.active() == {"kubelet.service"}


BRIDGE = "cri-device-shim-bridge.service"


@pytest.fixture
def early(live):
    """A node with the shim, whose kubelet is started by something else, and has its runtime still."""
    (live.state / "unused").touch()
    live.said = live.install("--no-kubelet").stderr
    return live


def upgrade(live, check=True):
    """As a package does."""
    command = live.live_command("upgrade")
    at = command["args"].index(SCRIPT)
    command["args"][at:at + 3] = ["/usr/local/lib/cri-device-shim/node.sh"]
    return subprocess.run(**command, check=check, capture_output=True, text=True, timeout=60)


def test_upgrade_of_a_package_whose_daemon_does_not_start(live):
    """What ran before is not there any more to be put back: its words say what helps. Of settings that are wrong they do not,
    since all runs on."""
    live.install()
    live.write(DAEMON, live.read(DAEMON) + "# two\n", 0o755)
    settings = live.read(CONFIG)
    live.write(CONFIG, "no settings")
    done = upgrade(live, check=False)
    assert done.returncode == 1 and "the package from before" not in done.stderr
    assert live.active() == ALL_ACTIVE
    live.write(CONFIG, settings)
    (live.state / "fails/cri-device-shim.service").write_text("two")
    done = upgrade(live, check=False)
    assert done.returncode == 1 and "install the package from before" in done.stderr
    assert "taken back" not in done.stderr
    assert "cri-device-shim.service" not in live.active()


def test_bridge_waits_for_a_kubelet_that_something_else_starts(early):
    """It would have pods admitted whose containers are made beside the shim. One that runs goes on, whoever is connected just then."""
    link = early.root / f"{UNITS}/multi-user.target.wants/{BRIDGE}"
    assert f"{BRIDGE} is not started before the kubelet uses the shim" in early.said
    assert early.active() == ALL_ACTIVE - {BRIDGE} and not link.is_symlink(), "nor at the next boot"
    (early.state / "unused").unlink()
    assert early.install("--no-kubelet").stderr == ""
    assert early.active() == ALL_ACTIVE and link.is_symlink()
    (early.state / "unused").touch()
    early.build_binary("cri-device-shim-bridge", "two")
    early.install("--no-kubelet")
    assert early.active() == ALL_ACTIVE and link.is_symlink() and "two" in early.runs(BRIDGE)
    early.install("--uninstall")
    assert early.active() == {"kubelet.service"} and not link.is_symlink()


def test_bridge_waits_whatever_drop_in_somebody_has_made(live):
    """By hand, for a kubelet.service that is not understood, and that was not restarted yet."""
    (live.state / "unused").touch()
    live.write(DROP_IN, f"[Unit]\nWants={BRIDGE}\n")
    live.install("--no-kubelet")
    assert live.active() == ALL_ACTIVE - {BRIDGE}


def test_dry_run_under_a_kubelet_that_something_else_starts(live):
    (live.state / "unused").touch()
    done = live.install("--no-kubelet", "--dry-run")
    assert f"{BRIDGE} is not started before" in done.stderr
    assert f"restart {BRIDGE}" not in done.stdout and f"wants/{BRIDGE}" not in done.stdout


def test_upgrade_of_a_package_does_not_start_a_bridge_that_waits(early):
    """What an operator has not done yet a package does not take for done. One that the kubelet's unit has started by then
    is restarted, and one under a kubelet that uses the shim is started."""
    link = early.root / f"{UNITS}/multi-user.target.wants/{BRIDGE}"
    early.calls()
    early.write(DAEMON, early.read(DAEMON) + "# two\n", 0o755)
    upgrade(early)
    assert early.calls() == ["daemon-reload [runtime]", "restart S.service [runtime]"]
    assert early.active() == ALL_ACTIVE - {BRIDGE} and not link.is_symlink()
    (early.state / f"active/{BRIDGE}").touch()
    early.write(f"{DAEMON}-bridge", early.read(f"{DAEMON}-bridge") + "# two\n", 0o755)
    upgrade(early)
    assert early.active() == ALL_ACTIVE and early.calls()[1:] == ["restart S-bridge.service [runtime]"]
    (early.state / f"active/{BRIDGE}").unlink()
    (early.state / "unused").unlink()
    upgrade(early)
    assert early.active() == ALL_ACTIVE


def test_way_back_from_an_emergency_without_the_kubelet_s_argument(live):
    """Everything is in place then but that."""
    live.install("--no-kubelet")
    taken_off(live)
    live.install("--no-kubelet")
    assert live.active() == ALL_ACTIVE - {BRIDGE}
    (live.state / "runs/kubelet.service").write_text("through it")
    live.install("--no-kubelet")
    assert live.active() == ALL_ACTIVE


def back_without_the_kubelet_s_argument(live):
    """Behind an emergency, on a node whose bridge was started at each boot; its link."""
    live.install("--no-kubelet")
    link = live.root / f"{UNITS}/multi-user.target.wants/{BRIDGE}"
    assert link.is_symlink()
    taken_off(live)
    live.install("--no-kubelet")
    assert not link.is_symlink()
    return link


def test_upgrade_behind_a_way_back_that_the_kubelet_s_unit_has_ended(live):
    """The bridge has waited for the kubelet, whose unit has started it since: that it has no link is nobody's doing."""
    link = back_without_the_kubelet_s_argument(live)
    (live.state / f"active/{BRIDGE}").touch()
    (live.state / "runs/kubelet.service").write_text("through it")
    live.calls()
    live.write(DAEMON, live.read(DAEMON) + "# two\n", 0o755)
    upgrade(live)
    assert live.calls() == ["daemon-reload [runtime]", "restart S.service [runtime]"]
    assert link.is_symlink()


def test_uninstall_takes_a_link_that_was_made_while_the_bridge_waited(live):
    """By `systemctl enable`."""
    before = live.tree()
    link = back_without_the_kubelet_s_argument(live)
    link.symlink_to(f"/{UNITS}/{BRIDGE}")
    live.install("--uninstall")
    assert live.tree() == before


@pytest.mark.parametrize("has_ss", [True, False])
def test_who_is_connected(directory, has_ss):
    """Is seen without ss, too."""
    path = f"{directory}/s.sock"
    script = f"command() {{ {'builtin command' if has_ss else 'false'} \"$@\"; }}; listen=$1; . {ROOT}/config/node/services.sh; shim_is_used"

    def used():
        return subprocess.run(["bash", "-c", script, "-", path], check=False, timeout=60).returncode == 0

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        assert not used()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            with listener.accept()[0]:
                assert used()
        assert not used()


def test_uninstall_of_a_node_without_pods(live):
    live.install()
    shutil.rmtree(live.root / "var/log/pods")
    live.install("--uninstall")


def test_uninstall_beside_a_file_that_cannot_be_read(with_pods):
    with_pods.write(f"{KUBELET_DIR}/{kubelet_checkpoint.NAME}", "{}")
    assert "is not known; --force does not ask" in with_pods.refuses("--uninstall")
    with_pods.install("--uninstall", "--force")


def test_uninstall_with_settings_that_are_wrong(live):
    """Where the kubelet has its sockets is not guessed."""
    live.install()
    live.calls()
    live.write(CONFIG, live.read(CONFIG) + "nonsense = 1\n")
    words = live.refuses("--uninstall")
    assert 'unknown key "nonsense"' in words and "what /etc/cri-device-shim/config.toml says is not known; --force" in words
    assert live.calls() == [] and live.active() == ALL_ACTIVE
    live.install("--uninstall", "--force")
    assert live.active() == {"kubelet.service"}


def test_kubelet_that_does_not_run(live):
    """It is not started by an install."""
    (live.state / "active/kubelet.service").unlink()
    assert "its settings count from its next start" in live.install().stdout
    assert "kubelet.service" not in live.active()


def test_socket_unit_changes(live):
    """The old socket's file goes with it; systemd starts no socket under a daemon that runs, and the
    kubelet would have started that at once, so both are stopped and started together."""
    live.install()
    live.calls()
    live.write(CONFIG, 'listen = "/run/other.sock"\n' + live.read(CONFIG))
    (live.tools / "ss").write_text(LiveNode.SS.replace("LISTEN", "/run/other.sock")
                                   .replace("STATE", str(live.state)))
    live.install()
    assert live.calls() == [
        "stop S.service S.socket [shim]", "daemon-reload [shim]",
        "restart S.socket S.service [shim]", "restart S-bridge.service [shim]",
        "daemon-reload [shim]", "restart kubelet.service [shim]"]
    assert live.active() == ALL_ACTIVE


def test_kubelet_that_systemd_starts_again_and_again(live):
    """Active at each look, but never for long: taken back."""
    (live.state / "flaps").touch()
    assert "kubelet.service does not stay up" in live.refuses()
    assert live.active() == {"kubelet.service"}


def test_kubelet_that_does_not_come_to_the_shim(live):
    """It may be waiting for something else: said, not taken back."""
    (live.state / "unused").touch()
    assert "has not come to the shim within a minute" in live.install().stderr
    assert live.active() == ALL_ACTIVE


def test_runtime_that_does_not_run(live):
    """Nothing is begun."""
    (live.root / "run/containerd/containerd.sock").unlink()
    assert "there is no socket /run/containerd/containerd.sock" in live.refuses()
    assert live.calls() == []


def lose_store(live):
    live.calls()
    shutil.rmtree(live.root / "var/lib/cri-device-shim")


def left_in_systemd(live, before):
    return {path for path in files_of(live.tree()) - files_of(before) if path.startswith("etc/systemd/")}


def test_uninstall_without_its_store(live):
    """Somebody removed the state: the kubelet must not lose its runtime, and by the next install all is noted again."""
    before = live.tree()
    live.install()
    lose_store(live)
    words = live.refuses("--uninstall")
    assert f"{DROP_IN} is there, but" in words and "run cri-device-shimctl node enable, which notes it anew, first" in words
    assert live.calls() == [] and live.active() == ALL_ACTIVE
    assert "all files are as they should be" in live.install().stdout and live.calls() == []
    live.install("--uninstall")
    assert live.active() == {"kubelet.service"} and left_in_systemd(live, before) == set()


def test_uninstall_behind_an_upgrade_of_one_whose_store_was_lost(live):
    """What the upgrade found as it should be is not there at the next boot, either."""
    before = live.tree()
    live.install()
    lose_store(live)
    live.build_binary("cri-device-shim", "two")
    live.install()
    live.install("--uninstall")
    assert live.active() == {"kubelet.service"} and left_in_systemd(live, before) == set()


def test_uninstall_without_store_and_drop_in(live):
    """Nobody knows whose the files are; but nothing is started by them any more."""
    live.install()
    lose_store(live)
    (live.root / DROP_IN).unlink()
    (live.state / "unused").touch()
    live.install("--uninstall")
    assert live.active() == {"kubelet.service"}
    assert not list((live.root / UNITS).glob("*.wants/cri-device-shim*"))


def test_uninstall_of_an_install_over_one_whose_store_was_lost(live):
    """The drop-in of that is nothing that was there before: put back, it would lead a kubelet to a socket that goes."""
    live.install()
    shutil.rmtree(live.root / "var/lib/cri-device-shim")
    live.write(f"{UNITS}/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet --v=2\n")
    live.install()
    live.install("--uninstall")
    assert live.active() == {"kubelet.service"} and live.runs("kubelet.service") == ""
    assert not (live.root / DROP_IN).exists()


def test_uninstall_where_the_kubelet_would_go_on_with_the_shim(live):
    """By whatever is not understood here: systemd knows."""
    live.install()
    (live.state / "sticks").touch()
    assert "would go on using the shim's socket" in live.refuses("--uninstall")
    assert live.active() == ALL_ACTIVE


def test_second_uninstall(live):
    """What was edited is kept; the units are gone, which systemd would complain of."""
    live.install()
    live.write(CONFIG, live.read(CONFIG) + '[bridge]\nmask = "5m"\n')
    live.install("--uninstall")
    live.install("--uninstall")
    (live.root / CONFIG).unlink()
    live.install("--uninstall")
    assert not (live.root / "var/lib/cri-device-shim/install").exists()


def test_what_uninstall_reads_is_what_the_program_reads(live):
    """However the settings are written."""
    live.install()
    live.write(CONFIG, 'bridge = { kubelet_plugin_dir = "/var/lib/kubelet/elsewhere" }\n' + live.read(CONFIG))
    shown = live.root / "var/lib/kubelet/elsewhere/cri-device-shim"
    shown.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(shown / "v.com_gpu.sock"))
        assert "the kubelet loses v.com/gpu, until" in live.install("--uninstall").stdout
    assert not shown.exists()


def test_uninstall_says_what_the_kubelet_loses(live):
    live.install()
    shown = live.root / KUBELET_DIR / "cri-device-shim"
    shown.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(shown / "v.com_gpu.sock"))
    assert "the kubelet loses v.com/gpu, until" in live.install("--uninstall", "--dry-run").stdout
    assert "the kubelet loses v.com/gpu, until" in live.install("--uninstall").stdout
    assert not shown.exists()
