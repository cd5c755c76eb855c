"""The units under a real systemd, put there by install.sh: what they leave the programs is enough,
and they start, restart and go in the order that a node needs."""

import concurrent.futures
import os
import shutil
import threading
import time

import grpc
import pytest

from asking import by_token, envs, refused
from bare_kubelet import BareKubelet
from criclient import Client
from installed_node import BRIDGE, DAEMON, SOCKET, InstalledNode
from machine import SYSTEMD
from plugin import Plugin
from protos import deviceplugin
from runtime import Reply, Runtime
from shim import BINARY, ROOT
from telling import tell
from waiting import GENEROUS_S, wait_until

pytestmark = pytest.mark.skipif(not os.path.exists(SYSTEMD), reason="no systemd here")

GPU = "vendor.com/gpu"
CRI = "/run/cri-device-shim/cri-device-shim.sock"
KUBELET_DIR = "/var/lib/kubelet/device-plugins"


@pytest.fixture(name="node")
def booted(directory, closing):
    node = closing(InstalledNode(directory))
    node.start()
    node.path("/run/containerd").mkdir()
    node.runtime = closing(Runtime(node.path("/run/containerd/containerd.sock")))
    node.runtime.start()
    node.run("systemctl", "start", "kubelet.service")
    return node


ALL = {DAEMON, BRIDGE, SOCKET, "kubelet.service"}


@pytest.fixture
def allocated(node, closing):
    """Installed, and a container of the pod "one" has the only device: (client, plugin, its id)."""
    node.install()
    plugin = closing(Plugin(node.path("/var/lib/cri-device-shim/device-plugins"), GPU, ["g0"]))
    plugin.start()
    client = closing(Client(node.path(CRI)))
    return client, plugin, client.run(client.run_pod("one"), "main", annotations=by_token(GPU, "g0"))


def test_install_use_and_uninstall(node, closing):
    """Installed by systemd's own words; a pod gets its device through both processes as confined as
    their units make them; the daemon dies, is upgraded, and all of it goes again."""
    before = node.pid("kubelet.service")
    done = node.install()
    assert "has not come to the shim" not in done.stderr
    assert node.active() == ALL and node.pid("kubelet.service") != before

    kubelet = closing(BareKubelet(node.path(KUBELET_DIR)))
    kubelet.start()
    plugin = closing(Plugin(node.path("/var/lib/cri-device-shim/device-plugins"), GPU, ["g0"]))
    plugin.start()
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    client = closing(Client(node.path(CRI)))
    client.create(client.run_pod("one"), "main", ["x"], annotations=by_token(GPU, "g0"))
    assert envs(node.runtime.create_requests()[-1].config)["PLUGIN_DEVICES"] == "g0"

    lists = len(kubelet.of("list"))
    daemon, bridge, kubelet_pid = (node.pid(unit) for unit in (DAEMON, BRIDGE, "kubelet.service"))
    node.run("systemctl", "kill", "--kill-who=main", "-s", "KILL", DAEMON)
    wait_until(lambda: node.pid(DAEMON) not in (0, daemon), "systemd starts the daemon again")
    again = closing(Client(node.path(CRI)))  # waits in the socket that systemd holds
    again.create(again.run_pod("two"), "main", ["x"])
    assert node.pid(BRIDGE) == bridge and len(kubelet.of("list")) == lists

    (node.build / "shim/cri-device-shim").write_bytes(BINARY.read_bytes() + b"another")
    daemon = node.pid(DAEMON)
    assert "systemctl restart cri-device-shim.service" in node.install().stdout
    assert node.pid(DAEMON) != daemon and node.pid(BRIDGE) == bridge
    assert "another ExecStart" not in node.install().stdout

    node.install("--uninstall", "--force")
    assert node.active() == {"kubelet.service"}
    assert not node.path(CRI).exists()
    assert "cri-device-shim" not in node.property("kubelet.service", "ExecStart")
    assert sorted(path.name for path in (node.root / "etc/systemd/system").iterdir()) == \
        ["kubelet.service"]
    assert kubelet_pid != node.pid("kubelet.service")


def test_disabled_and_enabled_by_the_command(node):
    """As an install has left it: no sources are needed."""
    node.install()
    node.run("cri-device-shimctl", "node", "disable")
    assert node.active() == {"kubelet.service"} and not node.path(CRI).exists()
    assert "--container-runtime-endpoint" not in node.property("kubelet.service", "ExecStart")
    node.run("cri-device-shimctl", "node", "enable")
    assert node.active() == ALL
    daemon, kubelet = node.pid(DAEMON), node.pid("kubelet.service")
    assert "all files are as they should be" in node.run("cri-device-shimctl", "node", "enable").stdout
    assert (daemon, kubelet) == (node.pid(DAEMON), node.pid("kubelet.service"))


def test_another_schema_and_back(node, allocated):
    """Upgraded to a release whose checkpoint has more, and back, each by a restart: the container keeps
    its device, nobody else gets it, and neither socket nor bridge goes."""
    client, plugin, container = allocated
    pids = node.pid(BRIDGE), node.property(SOCKET, "ActiveEnterTimestampMonotonic")
    for name, asides in (("tests/e2e/cri-device-shim-next", 0), ("shim/cri-device-shim", 1)):
        (node.build / "shim/cri-device-shim").write_bytes(
            (BINARY.parents[1] / name).read_bytes())
        daemon = node.pid(DAEMON)
        done = node.install()
        assert f"systemctl restart {DAEMON}\n" in done.stdout
        assert "systemctl stop" not in done.stdout
        assert node.pid(DAEMON) != daemon
        found = list((node.root / "var/lib/cri-device-shim").glob("checkpoint.db.newer-*"))
        assert len([one for one in found if one.name[-1] == "Z"]) == asides
        client.reconnect()
        if asides:
            plugin.stop()
            plugin.start()  # it sees a new kubelet.sock, and its own gone
        with refused(grpc.StatusCode.UNAVAILABLE, "g0", "one"):
            client.create(client.run_pod(f"other-{asides}"), "main", ["x"],
                          annotations=by_token(GPU, "g0"))
    assert pids == (node.pid(BRIDGE), node.property(SOCKET, "ActiveEnterTimestampMonotonic"))
    client.StopContainer(container_id=container)
    client.create(client.run_pod("next"), "main", ["x"], annotations=by_token(GPU, "g0"))
    assert len(plugin.allocated()) == 2


def test_a_checkpoint_is_put_into_the_place_of_a_lost_one(node, allocated):
    """Stopped as the refusal says, it stays so, though a kubelet calls at its socket again and again."""
    client, _, container = allocated
    state, document = node.path("/var/lib/cri-device-shim"), "/var/lib/checkpoint.json"
    node.run("cri-device-shimctl", "cordon", GPU, "g9")
    node.run("cri-device-shimctl", "checkpoint", "export", "--file", document)
    refused_ = node.run("cri-device-shimctl", "checkpoint", "import", document, "--yes", check=False)
    assert refused_.returncode == 1
    node.run(*refused_.stderr.partition("stop it first: ")[2].split())
    assert node.active() == ALL - {DAEMON, SOCKET}
    for path in state.glob("checkpoint.db*"):
        path.unlink()
    done = node.run("cri-device-shimctl", "checkpoint", "import", document, "--yes")
    assert "imported into /var/lib/cri-device-shim/checkpoint.db" in done.stdout
    assert node.active() == ALL - {DAEMON, SOCKET}
    node.run("systemctl", "start", SOCKET, DAEMON)
    client.reconnect()
    assert [one.id for one in client.ListContainers().containers] == [container]
    told = [node.run("cri-device-shimctl", *words, "-o", "name").stdout
            for words in (("orders",), ("allocations",))]
    assert told[0] == f"cordon/{GPU}/g9\n" and "default/one" in told[1]


def test_an_upgrade_that_fails_is_taken_back(node, allocated):
    """By a restart: the release before serves again, with what systemd keeps for it. Connections
    ended when their calls had, and so did the plugin's stream, and are made anew: what was there in between
    could not have gone on with them."""
    client, _, _ = allocated
    binary = node.build / "shim/cri-device-shim"
    binary.write_text(f'#!/bin/sh\n[ $# -eq 2 ] && [ "$1" = --config ] && exit 1\nexec {BINARY} "$@"\n')
    socket, bridge = node.property(SOCKET, "ActiveEnterTimestampMonotonic"), node.pid(BRIDGE)
    kept = int(node.property(DAEMON, "NFileDescriptorStore"))
    done = node.install(check=False)
    assert done.returncode != 0 and "all changes were taken back" in done.stderr
    assert node.active() == ALL
    assert (socket, bridge) == (node.property(SOCKET, "ActiveEnterTimestampMonotonic"),
                                node.pid(BRIDGE))
    client.reconnect()
    client.create(client.run_pod("two"), "main", ["x"])
    # And the plugin's stream of a daemon that systemd has started by itself just before, once the program was back (left_streams.h).
    wait_until(lambda: int(node.property(DAEMON, "NFileDescriptorStore")) in (kept, kept + 1), "all is kept again")


def test_a_socket_unit_of_the_same_path(node):
    """Its unit is another one, its path is not: nothing is stopped."""
    node.install()
    unit = node.root / "etc/systemd/system" / SOCKET
    source = node.directory / "config"
    shutil.copytree(ROOT / "config", source)
    text = (source / SOCKET).read_text()
    (source / SOCKET).write_text(text + "# of the next release\n")
    done = node.install(script=source / "install.sh")
    assert "# of the next release" in unit.read_text()
    assert f"systemctl restart {SOCKET} {DAEMON}\n" in done.stdout
    assert "systemctl stop" not in done.stdout
    assert node.active() == ALL


def test_what_the_bridge_serves_outlives_it(node, closing):
    """systemd keeps what it listens on and its connections: killed or restarted, the kubelet sees
    nothing; stopped, they end."""
    node.install()
    kubelet = closing(BareKubelet(node.path(KUBELET_DIR)))
    kubelet.start()
    plugin = closing(Plugin(node.path("/var/lib/cri-device-shim/device-plugins"), GPU, ["g0"]))
    plugin.start()
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    endpoint = node.path(KUBELET_DIR) / "cri-device-shim" / GPU.replace("/", "_")
    endpoint = endpoint.with_name(endpoint.name + ".sock")
    before = endpoint.stat().st_ino
    wait_until(lambda: node.property(BRIDGE, "NFileDescriptorStore") == "3", "all is kept")
    for how in ["kill --kill-who=main -s KILL"] * 3 + ["restart"] * 2:
        bridge = node.pid(BRIDGE)
        node.run("systemctl", *how.split(), BRIDGE)
        wait_until(lambda: node.pid(BRIDGE) not in (0, bridge), "systemd starts the bridge again")
        request = deviceplugin.AllocateRequest()
        request.container_requests.add().devices_ids.append("g0")
        assert len(kubelet.clients[GPU].call("Allocate", request).container_responses) == 1
        assert endpoint.stat().st_ino == before
    assert node.property(BRIDGE, "NFileDescriptorStore") == "3"
    assert len(kubelet.of("list")) == 1 and not kubelet.of("end")
    node.run("systemctl", "stop", BRIDGE)
    assert node.property(BRIDGE, "NFileDescriptorStore") == "0"
    kubelet.wait("end", GPU)


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_calls_outlive_the_daemon(node, closing, how):
    """systemd keeps both ends of a connection: a call under way ends as if nothing had been, and is
    made once; of closed connections nothing is kept."""
    node.install()
    came, go = threading.Event(), threading.Event()

    def slow(call):
        came.set()
        assert go.wait(GENEROUS_S) and not call.over.is_set()
        return Reply()

    node.runtime.on("StartContainer", slow)
    daemon, client = node.pid(DAEMON), closing(Client(node.path(CRI)))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.StartContainer, container_id="one")
        assert came.wait(GENEROUS_S)
        if how == "kill":
            node.run("systemctl", "kill", "--kill-who=main", "-s", "KILL", DAEMON)
        else:
            node.restart(DAEMON)
        wait_until(lambda: node.pid(DAEMON) not in (0, daemon) and node.active() == ALL,
                   "another daemon is ready")
        go.set()
        call.result(GENEROUS_S)
    assert len(node.runtime.calls_of("StartContainer")) == 1
    before = int(node.property(DAEMON, "NFileDescriptorStore"))
    client.close()
    wait_until(lambda: int(node.property(DAEMON, "NFileDescriptorStore")) == before - 3,
               "it is not kept any more")


@pytest.mark.parametrize("unit", [DAEMON, BRIDGE])
def test_one_that_hangs_is_started_anew(node, closing, request, unit):
    """Stopped (SIGSTOP) it does not feed systemd's watchdog, and another one is there within 15 s;
    the other process, which feeds its own, goes on."""
    node.install()
    other, = {DAEMON, BRIDGE} - {unit}
    before, beside = node.pid(unit), node.pid(other)
    assert node.property(unit, "WatchdogUSec") == "10s"
    node.run("systemctl", "kill", "--kill-who=main", "-s", "STOP", unit)
    stopped = time.monotonic()
    wait_until(lambda: node.pid(unit) not in (0, before) and node.active() == ALL,
               "systemd has killed it, and another one is ready")
    seconds = time.monotonic() - stopped
    tell(request, f"{unit}: stopped, and back after {seconds:.1f} s")
    assert seconds < 15
    assert node.pid(other) == beside and node.property(other, "NRestarts") == "0"
    client = closing(Client(node.path(CRI)))
    client.create(client.run_pod("one"), "main", ["x"])


def test_what_the_units_take_away(node):
    """As systemd has done it, of the processes themselves."""
    node.install()
    for unit, capabilities in ((DAEMON, 1 << 1 | 1 << 19), (BRIDGE, 0)):
        pid = node.property(unit, "MainPID")
        text = node.run("cat", f"/proc/{pid}/status").stdout
        status = dict(line.split(":\t", 1) for line in text.splitlines())
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == capabilities
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert node.property(unit, "OOMScoreAdjust") == "-999"  # as containerd's
        network = node.run("readlink", f"/proc/{pid}/ns/net").stdout
        assert network != node.run("readlink", "/proc/1/ns/net").stdout


KUBELET_UNIT = r"""[Service]
Environment="A=--a --b='c d'" B=x "C=one two"
Environment=D='q r' E=a\\ b
EnvironmentFile=-/etc/kubelet.d/*.env
EnvironmentFile=/etc/kubelet.env
EnvironmentFile=-/etc/none.env
ExecStart=/usr/local/bin/kubelet $A --x=${B} "$C" '${C}' ${C} pre${D}post \
# a comment within
  --quoted="a b" 'single $B' "dou\"ble" $E $NONE ${NONE} $F $G --h=${H} $I \
  $J $K ${K} $L $M $O $Q $S $T ${T} $U $W $X $Y ${Y} $Z
"""
KUBELET_VARIABLES = r"""# c \
# A=comment
; F=no
F="b \"q\" \$h \x \
c" 'd e' f
 G = x\ y"z"  
export H=1
I=
J='multi
  line --j'
K=a # b
L="x" # y
M=a"b c"d
O=\
Q=v\
w
S="unclosed
T=1"
1N=2
U P=3
W='a'"b"c
X=  lead
  # indented comment \
Y=after comment
Z=tab	in
"""


def test_the_kubelets_arguments_are_read_as_systemd_reads_them(directory, closing):
    """From units and files of variables in every form."""
    node = closing(InstalledNode(directory))
    for path, text in {"etc/systemd/system/kubelet.service": KUBELET_UNIT,
                       "etc/kubelet.env": KUBELET_VARIABLES, "etc/kubelet.d/1.env": "B=y\nH=5\n", "etc/kubelet.d/2.env": "H=6\r\n",
                       "usr/local/bin/kubelet": "#!/bin/sh\nprintf '%s\\0' \"$@\" >/var/log/arguments\nexec sleep infinity\n"}.items():
        (node.root / path).parent.mkdir(exist_ok=True)
        (node.root / path).write_text(text)
    node.start()
    node.run("systemctl", "start", "kubelet.service")
    wait_until((node.root / "var/log/arguments").exists, "the kubelet has written its arguments")
    script = """set -eu; root= kubelet_drop_in=/none listen=/none; exists() { [ -e "$1" ]; }; die() { echo "$*" >&2; exit 1; }
        cd "$0"; . ./drop_ins.sh; . ./kubelet.sh; find_unit; read_unit; read_arguments; printf '%s\\0' "${kubelet_argv[@]}" """
    done = node.run("env", "LC_ALL=C", "bash", "-c", script, ROOT / "config/node")
    given = (node.root / "var/log/arguments").read_text().split("\0")
    assert [" ".join(word.split()) for word in done.stdout.split("\0")] == [" ".join(word.split()) for word in given]
    assert len(given) > 25


def test_directories_below_home(directory, closing):
    """On a node whose room is there: for a state, and for all of the kubelet's, by a link."""
    home = directory / "home"
    (home / "kubelet/device-plugins").mkdir(parents=True)
    node = closing(InstalledNode(directory, binds={"/home": home}))
    shutil.rmtree(node.root / "var/lib/kubelet")
    (node.root / "var/lib/kubelet").symlink_to("/home/kubelet")
    (node.root / "etc/cri-device-shim").mkdir()
    (node.root / "etc/cri-device-shim/config.toml").write_text(
        'runtime_endpoint = "/run/containerd/containerd.sock"\nstate_dir = "/home/shim"\n')
    node.start()
    node.path("/run/containerd").mkdir()
    runtime = closing(Runtime(node.path("/run/containerd/containerd.sock")))
    runtime.start()
    node.run("systemctl", "start", "kubelet.service")
    kubelet = closing(BareKubelet(home / "kubelet/device-plugins"))
    kubelet.start()
    node.install(script=shutil.copytree(ROOT / "config", directory / "config") / "install.sh")  # the sources may be below /home
    plugin = closing(Plugin(node.path("/var/lib/cri-device-shim/device-plugins"), GPU, ["g0"]))
    plugin.start()
    kubelet.wait_health(GPU, {"g0": "Healthy"})
    assert (home / "shim/checkpoint.db").exists()
    assert node.run("cri-device-shimctl", "status", "-o", "name").stdout.strip() == "status/ok"


def test_kubelet_package_changes_its_unit(node):
    """The kubelet starts all the same, and says what to do."""
    node.install()
    unit = node.root / "etc/systemd/system/kubelet.service"
    unit.write_text(unit.read_text() + "# another package\n")
    node.run("systemctl", "daemon-reload")
    assert "has changed since" not in node.log()
    node.restart("kubelet.service")
    wait_until(lambda: "/etc/systemd/system/kubelet.service has changed since cri-device-shim was "
               "enabled: run cri-device-shimctl node enable again" in node.log(), "it says so")
    assert node.active() == ALL
