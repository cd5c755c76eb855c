"""config/install.sh on the file trees of nodes: nothing but what it says, and all of it taken back. With the
programs of the release build: they are asked for settings only, several times by each run of the script."""

import dataclasses
import fcntl
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import tempfile

import pytest

from node_tree import (
    BRIDGE, CONFIG, CTL, DAEMON, DOCUMENTS, DROP_IN, EXAMPLE, FLAG, HUP, INSTALLED, KUBEADM_EXEC,
    KUBEADM_FLAGS, LIB, LISTEN, LOGIND, OURS, OURS_LAST, SETTINGS_PAGE, TEMPLATES, UNITS, Link, Node,
    commands, copy_of, files_of, kubeadm, logind_ours, plain, shuts_down_in)
from shim import BINARY, ROOT


@dataclasses.dataclass
class Layout:
    files: dict
    endpoint: str      # what the kubelet uses by now
    source: str        # what the script says where that stands
    exec_start: str = KUBEADM_EXEC


LAYOUTS = {
    "kubeadm": Layout(
        kubeadm(KUBEADM_FLAGS),
        "/run/a.sock", "/var/lib/kubelet/kubeadm-flags.env"),
    "kubeadm, two words": Layout(
        kubeadm("--node-ip 10.0.0.1 --container-runtime-endpoint unix:///run/a.sock"),
        "/run/a.sock", "/var/lib/kubelet/kubeadm-flags.env"),
    "kubeadm, extra arguments win": Layout(
        kubeadm("--container-runtime-endpoint=unix:///run/a.sock",
                extra="'--v=2 --container-runtime-endpoint=/run/b.sock'",
                extra_file="etc/sysconfig"),
        "/run/b.sock", "/etc/sysconfig/kubelet"),
    "kubeadm, configuration file": Layout(
        kubeadm(config="kind: KubeletConfiguration\n"
                       'containerRuntimeEndpoint: "unix:///run/c.sock" # here\n'),
        "/run/c.sock", "/var/lib/kubelet/config.yaml"),
    "kubeadm, a flag wins over the file": Layout(
        kubeadm("--container-runtime-endpoint=unix:/run/a.sock",
                config="containerRuntimeEndpoint: unix:///run/c.sock\n"),
        "/run/a.sock", "/var/lib/kubelet/kubeadm-flags.env"),
    "kubeadm, nothing said": Layout(
        kubeadm(config='# containerRuntimeEndpoint: unix:///x\ncontainerRuntimeEndpoint: ""\n'),
        "/run/containerd/containerd.sock", "the kubelet's default"),
    "configuration as JSON": Layout(
        plain("/usr/bin/kubelet --config=/etc/k.json --config-dir=/etc/k.json.d",
              **{"etc/k.json": '{\n  "kind": "KubeletConfiguration",\n'
                               '  "containerRuntimeEndpoint": "unix:///run/c.sock",\n'
                               '  "evictionHard": {\n    "memory.available": "100Mi"\n  }\n}\n',
                 "etc/k.json.d/10.conf": '{"kind":"KubeletConfiguration","containerRuntimeEndpoint":""}\n'}),
        "/run/c.sock", "/etc/k.json",
        "/usr/bin/kubelet --config=/etc/k.json --config-dir=/etc/k.json.d"),
    "configuration as JSON in one line": Layout(
        plain("/usr/bin/kubelet --config=/etc/k.json",
              **{"etc/k.json": '{"clusterDomain":"a","containerRuntimeEndpoint" : "unix:///run/c.sock","port":1}'}),
        "/run/c.sock", "/etc/k.json", "/usr/bin/kubelet --config=/etc/k.json"),
    "directory of configurations": Layout(
        plain("/usr/bin/kubelet --config=/etc/k.yaml --config-dir /etc/k.d",
              **{"etc/k.yaml": "containerRuntimeEndpoint: unix:///run/c.sock\n",
                 "etc/k.d/10.conf": "containerRuntimeEndpoint: unix:///run/d.sock\n",
                 "etc/k.d/20.conf": "kind: KubeletConfiguration\n"}),
        "/run/d.sock", "/etc/k.d/10.conf",
        "/usr/bin/kubelet --config=/etc/k.yaml --config-dir /etc/k.d"),
    "directory of configurations, below it and hidden": Layout(
        plain("/usr/bin/kubelet --config-dir=/etc/k.d",
              **{"etc/k.d/10.conf": "containerRuntimeEndpoint: unix:///run/a.sock\n",
                 "etc/k.d/more/20.conf": "containerRuntimeEndpoint: unix:///run/d.sock\n",
                 "etc/k.d/more.conf": "kind: KubeletConfiguration\n",
                 "etc/k.d/more/30.yaml": "containerRuntimeEndpoint: unix:///run/no.sock\n",
                 "etc/k.d/.05.conf": "containerRuntimeEndpoint: unix:///run/b.sock\n"}),
        "/run/d.sock", "/etc/k.d/more/20.conf", "/usr/bin/kubelet --config-dir=/etc/k.d"),
    "underscores, as the kubelet takes them": Layout(
        plain("/usr/bin/kubelet --container_runtime_endpoint=unix:///run/u.sock"),
        "/run/u.sock", "/lib/systemd/system/kubelet.service",
        "/usr/bin/kubelet --container_runtime_endpoint=unix:///run/u.sock"),
    "kubeadm, extra arguments over several lines": Layout(
        {**kubeadm("--container-runtime-endpoint=unix:///run/a.sock",
                   extra='"--v=2\n  --container-runtime-endpoint=unix:///run/b.sock\n  --node-ip=10.0.0.1" # here\n'
                         '; --container-runtime-endpoint=unix:///run/c.sock \\\nKUBELET_EXTRA_ARGS=--v=3\nOTHER=x'),
         "usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so": ""},
        "/run/b.sock", "/etc/default/kubelet"),
    "kubeadm, a systemd in which a comment is one line": Layout(
        {**kubeadm("--container-runtime-endpoint=unix:///run/a.sock",
                   extra="--v=2\n# until it moves \\\nKUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///run/b.sock"),
         "usr/lib/systemd/libsystemd-shared-255.5-1.fc40.so": ""},
        "/run/b.sock", "/etc/default/kubelet"),
    "several files of variables by a pattern": Layout(
        plain("/usr/bin/kubelet $A $B", **{
            "etc/k/1.env": "A=--container-runtime-endpoint=unix:///run/a.sock\n",
            "etc/k/2.env": "export A=no\nB='--v=2' \n A = --container-runtime-endpoint=unix:///run/b.sock \n",
            "lib/systemd/system/kubelet.service.d/10.conf": "[Service]\nEnvironmentFile=-/etc/k/*.env\n"}),
        "/run/b.sock", "/etc/k/2.env", "/usr/bin/kubelet $A $B"),
    "plain unit, CRI-O": Layout(
        plain("/usr/local/bin/kubelet \\\n  --root-dir=/data/kubelet \\\n# a comment within\n"
              "  --container-runtime-endpoint='unix:///run/crio/crio.sock' --v=2"),
        "/run/crio/crio.sock", "/lib/systemd/system/kubelet.service",
        "/usr/local/bin/kubelet    --root-dir=/data/kubelet"
        "    --container-runtime-endpoint='unix:///run/crio/crio.sock' --v=2"),
    "unit of the administrator, variables in words": Layout(
        {"etc/systemd/system/kubelet.service":
            "[Service]\nEnvironment=RUNTIME=old SOCKET=/run/x.sock\n"
            "EnvironmentFile=/etc/kubernetes/kubelet.env\n"
            "ExecStart=-/opt/bin/kubelet $ARGS"
            " --container-runtime-endpoint=${SCHEME}://${SOCKET}\n",
         "lib/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/hidden\n",
         "etc/kubernetes/kubelet.env":
            '# a comment\nARGS="--v=2 \\\n  --node-labels=a=b"\nSCHEME=unix\n'},
        "/run/x.sock", "/etc/systemd/system/kubelet.service",
        "-/opt/bin/kubelet $ARGS --container-runtime-endpoint=${SCHEME}://${SOCKET}"),
    "unit that is a link": Layout(
        {"etc/systemd/system/kubelet.service": Link("/opt/current/kubelet.service"),
         "opt/current": Link("v1"),
         "opt/v1/kubelet.service": Link("../kubelet.service"),
         "opt/kubelet.service":
            "[Service]\nExecStart=/opt/kubelet --container-runtime-endpoint=/run/l.sock\n"},
        "/run/l.sock", "/etc/systemd/system/kubelet.service",
        "/opt/kubelet --container-runtime-endpoint=/run/l.sock"),
    "drop-in of a higher directory hides one": Layout(
        {**plain("/usr/bin/kubelet"),
         "lib/systemd/system/kubelet.service.d/20-x.conf":
            "[Service]\nExecStart=\nExecStart=/x/y\n",
         "etc/systemd/system/kubelet.service.d/20-x.conf":
            "[Service]\nExecStart=\n"
            "ExecStart=/usr/bin/kubelet --container-runtime-endpoint=unix:///run/e.sock\n"},
        "/run/e.sock", "/etc/systemd/system/kubelet.service.d/20-x.conf",
        "/usr/bin/kubelet --container-runtime-endpoint=unix:///run/e.sock"),
}


@pytest.fixture(name="module_directory", scope="module")
def directory_of_this_module():
    path = pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@dataclasses.dataclass
class Installed:
    """A node before and after an install, which no test changes, and what that said."""

    layout: Layout
    before: Node
    after: Node
    said: str


@pytest.fixture(name="made", scope="module")
def made_of_layouts():
    return {}


@pytest.fixture(params=LAYOUTS.keys())
def installed(request, made, module_directory):
    """Each made once."""
    if request.param not in made:
        directory = module_directory / str(list(LAYOUTS).index(request.param))
        layout = LAYOUTS[request.param]
        before = Node(directory / "before", layout.files)
        after = copy_of(before, directory / "after")
        made[request.param] = Installed(layout, before, after, after.install().stdout)
    return made[request.param]


@pytest.fixture(name="one")
def one_node(directory):
    return Node(directory, kubeadm(KUBEADM_FLAGS))


def values(text):
    """The settings of a TOML file, without regard to tables."""
    lines = (line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    return {key: value for key, value in lines if not key.startswith("#")}


# ---- on every kind of node ----

def test_install(installed):
    """The kubelet's endpoint is found and becomes the shim's; the kubelet gets its own arguments
    and one more; nothing else of the node changes."""
    layout, node = installed.layout, installed.after
    assert f"its runtime is {layout.endpoint} ({layout.source})" in installed.said
    # Nothing else, or a default of today would stay when a later version has another one.
    assert values(node.read(CONFIG)) == {"runtime_endpoint": f'"{layout.endpoint}"'}
    assert f"Every setting with its default: /{EXAMPLE}\n" in node.read(CONFIG)
    assert node.read(EXAMPLE) == (ROOT / "config/example.toml").read_text()
    assert node.read(SETTINGS_PAGE) == "the settings"
    for path, source in DOCUMENTS.items():
        assert node.read(path) == (ROOT / "config" / source).read_text()
    for path, source in TEMPLATES.items():
        assert node.read(path) == source.read_text()
    lines = node.read(DROP_IN).splitlines()
    at = lines.index("ExecStart=")
    assert lines[at + 1:] == [f"ExecStart={layout.exec_start} {FLAG}"]
    before, after = installed.before.tree(), node.tree()
    assert {path: after[path] for path in before} == before
    store = {path for path in after if path.startswith("var/lib/cri-device-shim")}
    assert files_of(after) - files_of(before) - store == INSTALLED
    assert after["var/lib/cri-device-shim"][0] == "drwx------"
    for binary in (DAEMON, BRIDGE):
        assert after[binary][0] == "-rwxr-xr-x"
        assert after[binary][1] == (node.build / "shim" / pathlib.Path(binary).name).read_bytes()


# Of a kubelet only how it is found differs, and its drop-in.
each_way = pytest.mark.parametrize("installed", ["kubeadm", "plain unit, CRI-O", "unit that is a link"], indirect=True)


@each_way
def test_dry_run(installed):
    """Shows each file that an install then changes, and changes none."""
    node = installed.before
    before = node.tree()
    shown = node.install("--dry-run").stdout
    assert node.tree() == before
    paths = {line.removeprefix("+++ /") for line in shown.splitlines() if line.startswith("+++ /")}
    assert paths == INSTALLED
    assert len(shown.splitlines()) < 800  # manuals, scripts and the like are not shown whole
    assert f"+ExecStart={installed.layout.exec_start} {FLAG}" in shown
    assert f'+runtime_endpoint = "{installed.layout.endpoint}"' in shown
    assert "    systemctl restart kubelet.service" in shown.splitlines()
    after = installed.after.tree()
    shown = installed.after.install("--uninstall", "--dry-run").stdout
    assert installed.after.tree() == after
    paths = {line.removeprefix("--- /") for line in shown.splitlines() if line.startswith("--- /")}
    assert paths - {"dev/null"} == INSTALLED


@each_way
def test_second_install(installed):
    """Finds nothing to do and writes nothing, not even the same again."""
    node = installed.after

    def inodes():
        return {path: path.lstat().st_ino for path in node.root.rglob("*")}

    before, inodes_before = node.tree(), inodes()
    done = node.install()
    assert "all files are as they should be" in done.stdout and "systemctl" not in done.stdout
    assert node.tree() == before
    assert inodes() == inodes_before


@each_way
def test_uninstall(installed, directory):
    """Leaves the node byte for byte as it was, and a second time finds nothing."""
    before = installed.before.tree()
    node = copy_of(installed.after, directory)
    node.install("--uninstall")
    assert node.tree() == before
    assert "nothing is installed" in node.install("--uninstall").stdout
    assert node.tree() == before


# ---- what was there before, and what came after ----

def test_files_in_the_way_come_back(one):
    """What had a name of ours before is put back, with its mode; after an upgrade, too."""
    one.write(DAEMON, "an older one", 0o750)
    one.write(f"{UNITS}/cri-device-shim.service", "[Service]\nExecStart=/x\n")
    link = one.root / f"{UNITS}/multi-user.target.wants/cri-device-shim.service"
    link.symlink_to("/elsewhere")
    before = one.tree()
    shown = one.install("--dry-run").stdout
    assert "-link to /elsewhere\n" in shown and "mode 750 -> 755\n" in shown
    one.install()
    assert os.readlink(link) == f"/{UNITS}/cri-device-shim.service"
    one.build_binary("cri-device-shim", "two")
    one.install()
    one.install("--uninstall")
    assert one.tree() == before


def test_files_that_are_the_same_already(one):
    """They are somebody else's and stay, but for what has systemd start it."""
    for path in ("shim/cri-device-shim", "shim/cri-device-shim-bridge"):
        one.write(f"usr/local/bin/{path.rpartition('/')[2]}", (one.build / path).read_text(), 0o755)
    one.write(EXAMPLE, (ROOT / "config/example.toml").read_text())
    before = one.tree()
    link = f"{UNITS}/multi-user.target.wants/cri-device-shim-bridge.service"
    one.write(link, Link(f"/{UNITS}/cri-device-shim-bridge.service"))
    one.install()
    one.install("--uninstall")
    assert one.tree() == before


def test_config_stays(one):
    """A config that is there is never written; one of ours that was edited stays."""
    one.install()
    text = one.read(CONFIG) + '[bridge]\nmask = "5m"\n'
    one.write(CONFIG, text)
    one.build_binary("cri-device-shim", "two")
    one.install()
    assert one.read(CONFIG) == text
    done = one.install("--uninstall")
    assert f"{CONFIG}: it was edited; it stays there" in done.stderr
    assert one.read(CONFIG) == text and not (one.root / DROP_IN).exists()
    one.install()
    assert one.read(CONFIG) == text


def test_config_of_before(one):
    """A config from before the install is used as it is, its sockets, too; and it stays."""
    one.write(CONFIG, 'listen = "unix:///run/own.sock"\nruntime_endpoint = "/var/run/a.sock" # x\n'
                      '[plugins]\nhold = "1s"\n')
    before = one.tree()
    one.install()
    assert "ListenStream=/run/own.sock\n" in one.read(f"{UNITS}/cri-device-shim.socket")
    assert "--container-runtime-endpoint=unix:///run/own.sock\n" in one.read(DROP_IN)
    one.install("--uninstall")
    assert one.tree() == before


def test_settings_of_the_documents_for_crio(directory):
    """As they stand there, in a file that is there before the install."""
    text = (ROOT / "config/README.md").read_text()
    node = Node(directory, LAYOUTS["plain unit, CRI-O"].files)
    node.write(CONFIG, re.search(r"^With CRI-O, .*\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)[1].replace("    ", ""))
    node.install()
    assert "ListenStream=/run/cri-device-shim/run/crio/crio.sock\n" in node.read(f"{UNITS}/cri-device-shim.socket")


def test_edited_unit_stays(one):
    """By an upgrade and by an uninstall, which puts back the rest; once as installed, it goes."""
    before = one.tree()
    one.install()
    path = f"{UNITS}/cri-device-shim.service"
    installed = one.read(path)
    one.write(path, installed + "# mine\n")
    one.build_binary("cri-device-shim", "two")
    assert f"{path}: it was edited; it stays as it is" in one.install().stderr
    assert one.read(path) == installed + "# mine\n" and "# two" in one.read(DAEMON)
    assert f"{path}: it was edited; it stays there" in one.install("--uninstall").stderr
    left = files_of(one.tree()) - files_of(before)
    assert left == {path, "var/lib/cri-device-shim/install/manifest"}
    one.write(path, installed)
    one.install("--uninstall")
    assert one.tree() == before


def test_edited_drop_in_keeps_everything(one):
    """A kubelet that may go on using the shim's socket does not lose it."""
    one.install()
    one.write(DROP_IN, one.read(DROP_IN) + "# mine\n")
    assert "was edited: take the shim out of it" in one.refuses("--uninstall")


def test_edited_drop_in_and_another_listen(one):
    """The socket stays where that kubelet looks for it; one that has both is not in the way."""
    one.install()
    settings = one.read(CONFIG)
    one.write(DROP_IN, one.read(DROP_IN) + "# mine\n")
    one.write(CONFIG, 'listen = "/run/own.sock"\n' + settings)
    assert f"/{DROP_IN} was edited, and does not have the kubelet use /run/own.sock" in one.refuses()
    one.write(CONFIG, settings)
    one.build_binary("cri-device-shim", "two")
    assert commands(one.install()) == ["systemctl restart cri-device-shim.service"]
    one.write(CONFIG, 'listen = "/run/own.sock"\n' + settings)
    one.write(DROP_IN, one.read(DROP_IN).replace(LISTEN, "/run/own.sock"))
    assert f"/{DROP_IN}: it was edited; it stays" in one.install().stderr
    assert "ListenStream=/run/own.sock\n" in one.read(f"{UNITS}/cri-device-shim.socket")


def test_kubelet_uses_the_shim_by_itself(one):
    """The same, where the argument was also given by hand."""
    one.install()
    one.write("etc/default/kubelet", f"KUBELET_EXTRA_ARGS={FLAG}\n")
    words = one.refuses("--uninstall")
    assert "/etc/default/kubelet has the kubelet use the shim's socket" in words


def test_kubelet_whose_files_are_elsewhere(directory):
    """It looks for drivers there."""
    one = Node(directory, plain("/usr/bin/kubelet --root-dir /data/kubelet/"))
    wanted = 'kubelet_registry_dir = "/data/kubelet/plugins_registry"'
    assert f"the kubelet has --root-dir=/data/kubelet/; so that it finds DRA drivers, set {wanted} in [dra]" in one.install().stderr
    one.write(CONFIG, one.read(CONFIG) + f"[dra]\n{wanted}\n")
    assert one.install().stderr == ""


def test_deleted_files(one):
    """What somebody has removed is made anew by an install, and is nothing to an uninstall."""
    before = one.tree()
    one.install()
    installed = one.tree()
    for path in (DROP_IN, DAEMON):
        (one.root / path).unlink()
    one.install()
    assert one.tree() == installed
    for path in (DROP_IN, DAEMON):
        (one.root / path).unlink()
    one.install("--uninstall")
    assert one.tree() == before


AGENT_UNIT = {f"{UNITS}/cri-device-shim-agent.service",
         f"{UNITS}/multi-user.target.wants/cri-device-shim-agent.service"}


def agent_of(node):
    return {path for path in AGENT_UNIT if (node.root / path).exists() or (node.root / path).is_symlink()}


def test_the_agent_where_it_is_wanted(one):
    """And no more where it is not; the daemon knows of it by the same command. The program itself reads the settings,
    however they are written."""
    text = '"clust\\u0065r" . enabled = true # here\n'
    unit = "cri-device-shim-agent.service"
    one.install()
    assert agent_of(one) == set()
    settings = one.read(CONFIG)
    one.write(CONFIG, settings + text)
    daemon = "systemctl restart cri-device-shim.service"
    assert commands(one.install()) == ["systemctl daemon-reload", daemon, f"systemctl restart {unit}"]
    assert agent_of(one) == AGENT_UNIT
    assert commands(one.install()) == []
    one.build_binary("cri-device-shim-agent", "two")
    assert commands(one.install()) == [f"systemctl restart {unit}"]
    one.write(CONFIG, settings + text.replace("true", "false"))
    assert commands(one.install()) == [f"systemctl stop {unit}", "systemctl daemon-reload", daemon]
    assert agent_of(one) == set()
    one.write(CONFIG, settings + text)
    one.install()
    assert unit in one.install("--uninstall").stdout
    assert agent_of(one) == set()


def test_the_agent_where_it_is_wanted_later(one):
    """What an install has put there is enough for it."""
    one.install()
    one.write(CONFIG, one.read(CONFIG) + "[cluster]\nenabled = true\n")
    assert "systemctl restart cri-device-shim-agent.service" in commands(node_command(one, "enable"))
    assert agent_of(one) == AGENT_UNIT


def test_logind_waits_as_long_as_a_shutdown_takes(one):
    """With some seconds to spare. And no longer than it did when that is not wanted any more."""
    one.install()
    before = one.tree()
    assert not (one.root / LOGIND).exists()
    settings = one.read(CONFIG)
    shuts_down_in(one, '[shutdown]\ngrace = "1m500ms"')
    assert HUP in one.install().stdout
    assert one.read(OURS).endswith("[Login]\nInhibitDelayMaxSec=66\n") and logind_ours(one) == {OURS: "66"}
    assert HUP not in one.install().stdout
    shuts_down_in(one, '[[shutdown.period]]\npriority = 0\ngrace = "20s"\n[[shutdown.period]]\npriority = 9\ngrace = "5s"')
    assert HUP in one.install().stdout
    assert logind_ours(one) == {OURS: "30"}
    one.write(CONFIG, settings)
    assert HUP in one.install().stdout
    assert one.tree().keys() - before.keys() == {LOGIND}, "made by us, and removed with the rest"
    shuts_down_in(one, '[shutdown]\ngrace = "1m"')
    one.install()
    assert HUP in one.install("--uninstall").stdout
    assert not (one.root / LOGIND).exists()


@pytest.mark.parametrize("files,ours", [
    ({"etc/systemd/logind.conf": "[Login]\n#InhibitDelayMaxSec=90\n"}, {OURS: "65"}),
    ({"etc/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec = 65\n"}, {}),
    ({"etc/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec=64s 999ms\n"}, {OURS: "65"}),
    ({"etc/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec=1min 5s\n[Other]\nInhibitDelayMaxSec=1\n"}, {}),
    ({"etc/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec=infinity\nInhibitDelayMaxSec=\n"}, {OURS: "65"}),
    ({"usr/lib/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec=2m\n"}, {}),
    ({"usr/lib/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec=2m\n", "etc/systemd/logind.conf": "[Login]\n"},
     {OURS: "65"}),
    # The last name counts, wherever it is; a name in /etc hides the same elsewhere.
    ({"etc/systemd/logind.conf": "[Login]\nInhibitDelayMaxSec=90\n",
      "usr/lib/systemd/logind.conf.d/50-less.conf": "[Login]\nInhibitDelayMaxSec=30\n"}, {OURS: "65"}),
    ({"usr/lib/systemd/logind.conf.d/50-less.conf": "[Login]\nInhibitDelayMaxSec=30\n",
      "etc/systemd/logind.conf.d/50-less.conf": "[Login]\nInhibitDelayMaxSec=90\n"}, {}),
    ({"etc/systemd/logind.conf.d/99-kubelet.conf": "[Login]\nInhibitDelayMaxSec=90\n"}, {}),
    ({"etc/systemd/logind.conf.d/99-kubelet.conf": "[Login]\nInhibitDelayMaxSec=30\n"}, {OURS_LAST: "65"}),
    ({"usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf": "[Login]\nInhibitDelayMaxSec=30\n"},
     {OURS_LAST: "65"}),
    ({"usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf": "[Login]\nInhibitDelayMaxSec=30\n",
      f"{LOGIND}/unattended-upgrades-logind-maxdelay.conf": Link("/dev/null")}, {OURS: "65"}),
])
def test_what_else_says_how_long_logind_waits(one, files, ours):
    for path, text in files.items():
        one.write(path, text)
    shuts_down_in(one, '[shutdown]\ngrace = "1m"')
    one.install()
    assert logind_ours(one) == ours
    if ours:
        tree = one.tree()
        one.install()
        assert one.tree() == tree, "its own are not read"


def test_our_word_goes_where_it_counts(one):
    """A later word of somebody else's moves it, and a longer one takes it away."""
    one.install()
    shuts_down_in(one, '[shutdown]\ngrace = "1m"')
    one.install()
    assert logind_ours(one) == {OURS: "65"}
    path = f"{LOGIND}/99-kubelet.conf"
    one.write(path, "[Login]\nInhibitDelayMaxSec=30\n")
    one.install()
    assert logind_ours(one) == {OURS_LAST: "65"}
    one.write(path, "[Login]\nInhibitDelayMaxSec=2m\n")
    one.install()
    assert logind_ours(one) == {}


def test_a_word_that_nobody_can_follow(one):
    one.install()
    shuts_down_in(one, '[shutdown]\ngrace = "1m"')
    path = f"{LOGIND}/zzz.conf"
    one.write(path, "[Login]\nInhibitDelayMaxSec=30\n")
    done = one.install()
    assert f"/{path}: less than [shutdown] takes, and it sorts behind" in done.stderr
    assert logind_ours(one) == {}
    one.write(path, "[Login]\nInhibitDelayMaxSec=soon\n")
    assert f"/{path}: InhibitDelayMaxSec=soon is not understood" in one.refuses()
    one.write(path, "")
    one.install()
    one.write(OURS, "# mine\n")
    shuts_down_in(one, '[shutdown]\ngrace = "2m"')
    assert f"/{OURS}: it was edited; it stays" in one.install().stderr
    assert one.read(OURS) == "# mine\n"


def test_upgrade(one):
    """Restarts what has changed: the daemon, the bridge, the kubelet each for itself."""
    one.install()
    one.build_binary("cri-device-shim", "two")
    assert commands(one.install()) == ["systemctl restart cri-device-shim.service"]
    one.build_binary("cri-device-shim-bridge", "two")
    assert commands(one.install()) == ["systemctl restart cri-device-shim-bridge.service"]
    one.build_binary("cri-device-shimctl", "two")
    assert commands(one.install()) == [], "nothing runs from it"
    assert "# two" in one.read(CTL)
    one.build_binary("cri-device-shim", "three")
    one.build_binary("cri-device-shim-bridge", "three")
    assert commands(one.install()) == ["systemctl restart cri-device-shim.service",
                                       "systemctl restart cri-device-shim-bridge.service"]
    assert "# three" in one.read(BRIDGE) and "# three" in one.read(DAEMON)
    path = "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
    one.write(path, one.read(path).replace("$KUBELET_EXTRA_ARGS", "$KUBELET_EXTRA_ARGS --new"))
    done = one.install()
    assert commands(done) == ["systemctl daemon-reload", "systemctl restart kubelet.service"]
    assert f"/{path}: another ExecStart= than at the last install" in done.stdout
    assert f"--new {FLAG}\n" in one.read(DROP_IN)
    one.write(path, "# Another package\n" + one.read(path))
    assert commands(one.install()) == ["systemctl daemon-reload"]  # for the drop-in's check


def test_libraries_that_a_build_brings_along(one):
    """As an image for other machines does: they come, what runs from them restarts when one is
    another, and one that is brought no more goes."""
    before = one.tree()
    brought = one.build / "lib/cri-device-shim"
    brought.mkdir(parents=True)
    for name in ("liba.so.1", "libb.so.2"):
        (brought / name).write_text("one")
    one.install()
    assert one.read(f"{LIB}/liba.so.1") == one.read(f"{LIB}/libb.so.2") == "one"
    restarts = ["systemctl restart cri-device-shim.service",
                "systemctl restart cri-device-shim-bridge.service"]
    (brought / "liba.so.1").write_text("two")
    assert commands(one.install()) == restarts
    assert one.read(f"{LIB}/liba.so.1") == "two"
    (brought / "libb.so.2").unlink()
    assert commands(one.install()) == restarts
    assert not (one.root / LIB / "libb.so.2").exists() and commands(one.install()) == []
    one.install("--uninstall")
    assert one.tree() == before


def test_kubelet_unit_changes_later(one):
    """A new package of the kubelet's: as long as the drop-in has the old command, each start of the
    kubelet warns; and goes on."""
    def at_start():
        (line,) = [line for line in one.read(DROP_IN).splitlines() if "ExecStartPre" in line]
        shell, option, script = shlex.split(line.removeprefix("ExecStartPre=-"))
        script = script.replace(f"  /{path}", f"  {one.root}/{path}")
        return subprocess.run([shell, option, script], check=True, capture_output=True, text=True)

    path = "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
    one.install()
    assert at_start().stdout == ""
    one.write(path, one.read(path).replace("/usr/bin/kubelet", "/opt/bin/kubelet"))
    assert at_start().stdout == (f"<4>/{path} has changed since cri-device-shim was"
                                 " enabled: run cri-device-shimctl node enable again\n")
    one.install()
    assert at_start().stdout == ""
    (one.root / path).unlink()
    assert "has changed" in at_start().stdout


def test_directories_on_mounts(one):
    """The units are ordered behind the mounts of the directories that are configured, and pull them
    in, but do not need them: the kubelet does need the shim."""
    def mounts(unit):
        lines = one.read(f"{UNITS}/{unit}").splitlines()
        wants, after = (set(line.partition("=")[2].split()) for line in lines
                        if line.endswith(".mount"))
        assert wants == after
        return wants

    one.install()
    kubelet = {"var.mount", "var-lib.mount", "var-lib-kubelet.mount",
               r"var-lib-kubelet-device\x2dplugins.mount"}
    assert mounts("cri-device-shim.service") == kubelet | {
        r"var-lib-cri\x2ddevice\x2dshim.mount",
        r"var-lib-cri\x2ddevice\x2dshim-device\x2dplugins.mount"}
    assert mounts("cri-device-shim-bridge.service") == kubelet
    one.write(CONFIG, 'state_dir = "/srv/the state/.x/"\n' + one.read(CONFIG)
              + '[plugins]\nplugin_dir = "/mnt/p"\n[bridge]\nkubelet_plugin_dir = "/k"\n')
    one.install()
    assert mounts("cri-device-shim.service") == {
        "srv.mount", r"srv-the\x20state.mount", r"srv-the\x20state-.x.mount", "mnt.mount",
        "mnt-p.mount", "k.mount"}
    assert mounts("cri-device-shim-bridge.service") == {"k.mount"}
    one.write(CONFIG, """plugins.plugin_dir = "/q"\n'bridge' . "kubelet_plugin_dir" = '/l' # as TOML has it, too\n"""
              + one.read(CONFIG).partition("[plugins]")[0])
    one.install()
    assert mounts("cri-device-shim.service") == {
        "srv.mount", r"srv-the\x20state.mount", r"srv-the\x20state-.x.mount", "q.mount", "l.mount"}
    assert mounts("cri-device-shim-bridge.service") == {"l.mount"}
    one.write(CONFIG, '''plugins = { grace = "1m", plugin_dir = """/x/\\\n   y""" } # kubelet_plugin_dir = "/no"\n'''
              """bridge = { "kubelet_plugin_dir" = "\\u002fm=n" }\n""" + one.read(CONFIG).partition("\n")[2].partition("\n")[2])
    one.install()
    assert mounts("cri-device-shim-bridge.service") == {r"m\x3dn.mount"}
    assert {"x.mount", "x-y.mount"} <= mounts("cri-device-shim.service")


@pytest.mark.parametrize("settings,seen", [
    ("", False), ('state_dir = "/homes/a"', False), ('state_dir = "/home/a"', True),
    ('[plugins]\nplugin_dir = "/root/plugins"', True), ('[dra]\nregistry_dir = "/linked/a"', True),
    ('[dra]\nkubelet_registry_dir = "/run/user/0/a"', True), ('listen = "/home/shim.sock"', True)])
def test_directories_below_home(one, settings, seen):
    """Are seen by who works there."""
    one.write("linked", Link("home/big"))
    one.write(CONFIG, f'runtime_endpoint = "/run/a.sock"\n{settings}\n')
    one.install()
    for unit in ("cri-device-shim.service", "cri-device-shim-bridge.service"):
        (line,) = [line for line in one.read(f"{UNITS}/{unit}").splitlines() if line.startswith("ProtectHome=")]
        assert line == ("ProtectHome=no" if seen else "ProtectHome=yes")


def test_two_at_once(one):
    """The second waits for the first."""
    clean = one.tree()
    lock = os.open(one.root / "etc", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(one.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as second:
        assert "another change of this node is under way" in second.stderr.readline()
        assert one.tree() == clean
        os.close(lock)
        second.communicate(timeout=60)
    assert second.returncode == 0 and (one.root / DROP_IN).exists()


def test_prefix(one):
    """Binaries elsewhere, and units that start them there."""
    before = one.tree()
    one.install("--prefix", "/opt/shim/")
    assert (one.root / "opt/shim/bin/cri-device-shim").exists()
    for name in ("cri-device-shim", "cri-device-shim-bridge"):
        assert f"ExecStart=/opt/shim/bin/{name} " in one.read(f"{UNITS}/{name}.service")
    one.install("--uninstall")
    assert one.tree() == before


def test_a_shell_whose_cd_prints(one):
    for script in ("config/install.sh", "config/node/node.sh enable"):
        done = subprocess.run(f"{script} --dry-run --root {one.root} --build {one.build}", shell=True, check=False,
                              cwd=ROOT, env={**os.environ, "CDPATH": f".:{one.root}"}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["config/quickstart.sh", "--help"], check=False, cwd=ROOT, env={**os.environ, "CDPATH": "."},
                          capture_output=True, text=True, timeout=60)
    assert "Shows cri-device-shim at work" in done.stderr


def test_without_a_kubelet(directory):
    """Refused with what to do; then all but the kubelet's part."""
    node = Node(directory, {})
    before = node.tree()
    words = node.refuses()
    assert "no kubelet.service in /etc/systemd/system" in words and "--no-kubelet" in words
    assert FLAG in words
    done = node.install("--no-kubelet", "--runtime-endpoint",
                        "unix:///run/k3s/containerd/containerd.sock")
    assert f"give the kubelet {FLAG}" in done.stdout
    assert f"bridge.kubelet_processes in /{CONFIG}" in done.stdout
    assert '"/run/k3s/containerd/containerd.sock"' in node.read(CONFIG)
    assert not (node.root / DROP_IN).exists()
    assert "must be using its runtime's socket" in node.install("--uninstall").stdout
    assert node.tree() == before


# ---- the command by itself ----

def node_command(node, *words, prefix="/usr/local", refused=False):
    """What `cri-device-shimctl node` runs, as an install has put it there."""
    script = node.root / prefix.strip("/") / "lib/cri-device-shim/node.sh"
    done = subprocess.run([script, *words, "--prefix", prefix, "--root", node.root], check=False,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == refused, done.stdout + done.stderr
    return done


def test_disable_and_enable_again(one):
    """Without the sources: all that has the node use the shim goes and comes; files and settings stay."""
    before = one.tree()
    one.install()
    installed = one.tree()
    node_command(one, "disable")
    gone = files_of(installed) - files_of(one.tree())
    assert {path for path in gone if "/install/" not in path} == {
        path for path in INSTALLED if path.startswith(UNITS)}
    assert "nothing is enabled" in node_command(one, "disable").stdout
    assert "systemctl restart kubelet.service" in commands(node_command(one, "enable"))
    again = one.tree()
    assert {path: again[path] for path in INSTALLED} == {path: installed[path] for path in INSTALLED}
    assert "all files are as they should be" in node_command(one, "enable").stdout
    node_command(one, "disable")
    one.install("--uninstall")
    assert one.tree() == before


@pytest.fixture
def packaged(one):
    """As a package lays out its files: the units where systemd finds them."""
    for name in ("cri-device-shim", "cri-device-shim-bridge", "cri-device-shimctl", "cri-device-shim-agent"):
        one.write(f"usr/bin/{name}", f'#!/bin/sh\nexec {BINARY} "$@"\n', 0o755)
    for source in TEMPLATES.values():
        one.write(f"usr/lib/systemd/system/{source.name}",
                  source.read_text().replace("=/usr/local/bin/", "=/usr/bin/"))
    for source in (ROOT / "config/node").glob("*.sh"):
        one.write(f"usr/lib/cri-device-shim/{source.name}", source.read_text(),
                  stat.S_IMODE(source.stat().st_mode))
    return one


def test_a_package_brings_what_an_install_does(directory):
    """But for where Debian has the units and zsh's completions; and a package's own papers."""
    tree = directory / "tree"
    subprocess.run(["cmake", "--install", BINARY.parents[1], "--prefix", "/usr"], check=True,
                   env={**os.environ, "DESTDIR": str(tree)}, stdout=subprocess.DEVNULL, timeout=60)
    brought = {str(path.relative_to(tree / "usr")) for path in tree.rglob("*") if path.is_file()}
    parts = {f"lib/cri-device-shim/{path.name}" for path in (ROOT / "config/node").glob("*.sh")}
    papers = {f"share/doc/cri-device-shim/{name}" for name in ("changelog", "copyright")}
    installed = {path.removeprefix("usr/local/") for path in INSTALLED | AGENT_UNIT
                 if path.startswith("usr/local/")}
    assert brought == parts | papers | {
        f"lib/systemd/system/{path.rpartition('/')[2]}" if path.endswith((".service", ".socket")) else
        path.replace("site-functions", "vendor-completions") for path in installed}
    for unit in (tree / "usr/lib/systemd/system").iterdir():
        source = (ROOT / "config" / unit.name).read_text()
        assert unit.read_text() == source.replace("/usr/local/bin/", "/usr/bin/")


def package_command(node, *words, refused=False):
    return node_command(node, *words, prefix="/usr", refused=refused)


def test_units_of_a_package_are_used_as_they_are(packaged):
    """The node has a unit of its own only where its paths are other ones, and as long as they are."""
    own = {f"{UNITS}/{name}" for name in ("cri-device-shim.socket", "cri-device-shim.service",
                                         "cri-device-shim-bridge.service")}
    links = {path for path in INSTALLED if path.startswith(UNITS) and ".wants/" in path}
    before = packaged.tree()
    package_command(packaged, "enable")
    store = {path for path in packaged.tree() if path.startswith("var/lib/cri-device-shim")}
    assert files_of(packaged.tree()) - files_of(before) - store == {CONFIG, DROP_IN, *links}
    for link in links:
        assert os.readlink(packaged.root / link) == f"/usr/lib/systemd/system/{link.rpartition('/')[2]}"
    for link in links:  # as systemctl enable makes it again
        unit = os.readlink(packaged.root / link)
        (packaged.root / link).unlink()
        packaged.write(link, Link(unit.removeprefix("/usr")))
    assert "all files are as they should be" in package_command(packaged, "enable").stdout
    settings = packaged.read(CONFIG)
    packaged.write(CONFIG, 'listen = "/run/own.sock"\n' + settings)
    package_command(packaged, "enable")
    assert {path for path in own if (packaged.root / path).exists()} == {f"{UNITS}/cri-device-shim.socket"}
    link = f"{UNITS}/sockets.target.wants/cri-device-shim.socket"
    assert os.readlink(packaged.root / link) == f"/{UNITS}/cri-device-shim.socket"
    packaged.write(CONFIG, settings)
    package_command(packaged, "enable")
    assert not any((packaged.root / path).exists() for path in own)
    package_command(packaged, "disable")
    after = packaged.tree()
    assert files_of(after) - files_of(before) == {CONFIG, "var/lib/cri-device-shim/install/manifest"}


def test_from_an_install_to_a_package(packaged):
    """Under pods: the package's own programs and units take over, by restarts; files of the install stay."""
    packaged.install()
    installed = packaged.tree()
    done = commands(package_command(packaged, "enable"))
    assert done == ["systemctl daemon-reload", "systemctl restart cri-device-shim.socket cri-device-shim.service",
                    "systemctl restart cri-device-shim-bridge.service"]
    gone = files_of(installed) - files_of(packaged.tree())
    assert gone == {f"{UNITS}/{path.name}" for path in TEMPLATES.values() if "agent" not in path.name}
    assert commands(package_command(packaged, "enable")) == []
    package_command(packaged, "disable")
    left = {path for path in files_of(packaged.tree()) if path.startswith("usr/local/")}
    assert left == {path for path in INSTALLED if path.startswith("usr/local/")}


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_command_of_before_a_package(packaged, verb):
    """Left in /usr/local, and first in PATH: it knows nothing of the package's units."""
    packaged.install()
    package_command(packaged, "enable")
    before = packaged.tree()
    words = "error: this node is enabled from the package: /usr/bin/cri-device-shimctl node"
    assert f"{words} {verb}; remove what is in /usr/local/bin" in node_command(packaged, verb, refused=True).stderr
    assert f"{words} disable" in packaged.refuses("--uninstall") and packaged.tree() == before
    (packaged.root / "usr/bin/cri-device-shimctl").unlink()
    assert "systemctl restart kubelet.service" in commands(node_command(packaged, "disable"))


def test_from_an_install_whose_store_was_lost_to_a_package(packaged):
    """Links of that are nothing that was there before: put back, they would start it at the next boot. Its units came
    before the package's, with programs that are to be removed; a copy of the package's own that somebody has edited stays."""
    packaged.install()
    shutil.rmtree(packaged.root / "var/lib/cri-device-shim")
    bridge = f"{UNITS}/cri-device-shim-bridge.service"
    packaged.write(bridge, packaged.read(f"usr/lib/{bridge.removeprefix('etc/')}") + "# edited\n")
    package_command(packaged, "enable")
    assert list((packaged.root / UNITS).glob("cri-device-shim*.service")) == [packaged.root / bridge]
    package_command(packaged, "disable")
    assert not list((packaged.root / UNITS).glob("*.wants/cri-device-shim*"))


def test_upgrade_of_a_package(packaged):
    """Its files are others by then: what runs from them starts anew, the kubelet never does; and a
    node that was not enabled is not touched."""
    before = packaged.tree()
    assert commands(package_command(packaged, "upgrade")) == [] and packaged.tree() == before
    package_command(packaged, "enable")
    assert commands(package_command(packaged, "upgrade")) == ["systemctl daemon-reload"]
    packaged.write("usr/bin/cri-device-shim", packaged.read("usr/bin/cri-device-shim") + "# two\n", 0o755)
    daemon, bridge = (f"systemctl restart cri-device-shim{name}.service" for name in ("", "-bridge"))
    assert commands(package_command(packaged, "upgrade")) == ["systemctl daemon-reload", daemon]
    assert commands(package_command(packaged, "upgrade")) == ["systemctl daemon-reload"]
    unit = "usr/lib/systemd/system/cri-device-shim-bridge.service"
    packaged.write(unit, packaged.read(unit) + "# two\n")
    kubelet = "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
    packaged.write(kubelet, packaged.read(kubelet) + "# another package\n")
    assert commands(package_command(packaged, "upgrade")) == ["systemctl daemon-reload", bridge]
    assert not (packaged.root / f"{UNITS}/cri-device-shim-bridge.service").exists()
    package_command(packaged, "disable")
    packaged.write(unit, packaged.read(unit) + "# three\n")
    assert commands(package_command(packaged, "upgrade")) == []


@pytest.mark.parametrize("removed", [
    DROP_IN, f"{UNITS}/multi-user.target.wants/cri-device-shim-bridge.service"])
def test_upgrade_of_a_package_where_the_shim_was_taken_off(packaged, removed):
    """As in an emergency: the bridge started anew showed devices to a kubelet that has its runtime without the shim, and
    pods had been made without them."""
    package_command(packaged, "enable")
    (packaged.root / removed).unlink()
    packaged.write("usr/bin/cri-device-shim-bridge", packaged.read("usr/bin/cri-device-shim-bridge") + "# two\n", 0o755)
    before = packaged.tree()
    done = package_command(packaged, "upgrade")
    assert commands(done) == ["systemctl daemon-reload"] and packaged.tree() == before
    assert f"{removed} was removed: nothing is started" in done.stderr
    assert "systemctl restart cri-device-shim-bridge.service" in commands(package_command(packaged, "enable"))
    assert (packaged.root / removed).exists() or (packaged.root / removed).is_symlink()


def test_upgrade_of_a_package_behind_another_listen(packaged):
    """The kubelet, which no upgrade restarts, does not lose its socket."""
    package_command(packaged, "enable")
    packaged.write(CONFIG, 'listen = "/run/own.sock"\n' + packaged.read(CONFIG))
    packaged.write("usr/bin/cri-device-shim", packaged.read("usr/bin/cri-device-shim") + "# two\n", 0o755)
    before = packaged.tree()
    done = package_command(packaged, "upgrade", refused=True)
    assert 'has listen = "/run/own.sock"' in done.stderr and commands(done) == [] and packaged.tree() == before
    package_command(packaged, "enable")
    assert commands(package_command(packaged, "upgrade")) == ["systemctl daemon-reload"]


def test_upgrade_with_settings_that_are_wrong(packaged):
    """What runs goes on."""
    package_command(packaged, "enable")
    packaged.write(CONFIG, packaged.read(CONFIG) + "nonsense = 1\n")
    packaged.write("usr/bin/cri-device-shim", packaged.read("usr/bin/cri-device-shim") + "# two\n", 0o755)
    done = package_command(packaged, "upgrade", refused=True)
    assert "nonsense" in done.stderr and commands(done) == []


def test_purge_of_a_state_that_has_a_disk_of_its_own(directory):
    """It is emptied, and the package goes; what else is mounted below it is not looked into."""
    (directory / "lib/cri-device-shim").mkdir(parents=True)
    (directory / "etc").mkdir()
    state = "/var/lib/cri-device-shim"
    script = (f"mount --bind {directory}/lib /var/lib && mount --bind {directory}/etc /etc && mount -t tmpfs tmpfs {state}"
              f" && touch {state}/checkpoint.db && mkdir {state}/device-plugins && mount -t tmpfs tmpfs {state}/device-plugins"
              f" && touch {state}/device-plugins/else && {ROOT}/config/package/postrm purge && find {state}")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [state, f"{state}/device-plugins", f"{state}/device-plugins/else"]


# ---- what is refused ----

REFUSED = {
    "masked": ({}, "kubelet.service is masked"),
    "a wrapper": (plain("/opt/start-kubelet --v=2"), "starts /opt/start-kubelet, which is not"),
    "a shell": (plain("/bin/sh -c 'exec /usr/bin/kubelet'"), "starts /bin/sh, which is not"),
    "another argv[0]": (plain("@/usr/bin/kubelet k"), "which is not a kubelet"),
    "two commands": (plain("/usr/bin/kubelet ; /bin/true"), "several commands"),
    "two ExecStart": (plain("/usr/bin/kubelet\nExecStart=/usr/bin/kubelet --v=1"),
                      "a second ExecStart="),
    "no ExecStart": (plain(""), "has no ExecStart="),
    "a later drop-in": (
        {**plain("/usr/bin/kubelet"),
         "etc/systemd/system/kubelet.service.d/99-x.conf":
            "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --v=1\n"},
        "99-x.conf sets ExecStart= after 90-cri-device-shim.conf"),
    "TCP": (plain("/usr/bin/kubelet --container-runtime-endpoint=tcp://10.0.0.1:1"),
            'the endpoint is "tcp://10.0.0.1:1"; expected a unix socket'),
    "docker": (plain("/usr/bin/kubelet --container-runtime=docker"),
               "--container-runtime=docker is no CRI runtime"),
    "configuration as JSON over two lines": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": '{"containerRuntimeEndpoint":\n "unix:///run/c.sock"}\n'},
        "/etc/k.yaml: its containerRuntimeEndpoint is not understood"),
    "configuration as JSON, escaped": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": '{"containerRuntimeEndpoint": "unix:\\/\\/\\/run\\/c.sock"}\n'},
        "/etc/k.yaml: its containerRuntimeEndpoint is not understood"),
    "configuration as JSON, beside a #": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": '{"clusterDomain": "#", "containerRuntimeEndpoint": "unix:///run/c.sock"}\n'},
        "/etc/k.yaml: its containerRuntimeEndpoint is not understood"),
    "configuration as JSON, another name": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": '{"staticPodURL": "containerRuntimeEndpoint"}\n'},
        "/etc/k.yaml: its containerRuntimeEndpoint is not understood"),
    "configuration as YAML, twice": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": '"containerRuntimeEndpoint": "unix:///run/c.sock"\n"containerRuntimeEndpoint": "/run/d.sock"\n'},
        "/etc/k.yaml: its containerRuntimeEndpoint is not understood"),
    "endpoint over two lines": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": "containerRuntimeEndpoint: >-\n  unix:///run/c.sock\n"},
        '/etc/k.yaml: the endpoint is ">-"; expected a unix socket'),
    "the shim's socket, no config": (
        plain(f"/usr/bin/kubelet {FLAG}"), "uses the shim's socket already"),
    "another runtime in the config": (
        {**plain("/usr/bin/kubelet"), CONFIG: 'runtime_endpoint = "/run/crio/crio.sock"\n'},
        'has runtime_endpoint = "/run/crio/crio.sock", but the runtime is'
        " /run/containerd/containerd.sock"),
    "a bad config": ({**plain("/usr/bin/kubelet"), CONFIG: "listn = 1\n"},
                     '1:1: unknown key "listn"'),
    "a directory in the way": (
        {**plain("/usr/bin/kubelet"), f"{DAEMON}/x": ""},
        "cri-device-shim is in the way: neither a file nor a link"),
}


@pytest.mark.parametrize("case", REFUSED.keys())
def test_refused(directory, case):
    """What is not understood, or would break the node, is told and nothing is touched."""
    files, words = REFUSED[case]
    node = Node(directory, files)
    if case == "masked":
        (node.root / UNITS / "kubelet.service").symlink_to("/dev/null")
    assert words in node.refuses()
    assert words in node.refuses("--dry-run")


@pytest.mark.parametrize("text,words", [
    ('{"containerRuntimeEndpoint":\n "unix:///run/c.sock"}', "say --runtime-endpoint PATH"),
    ("containerRuntimeEndpoint: >-\n  unix:///run/c.sock", "expected a unix socket")])
def test_runtime_that_is_said_is_not_looked_for(directory, text, words):
    """Where it is not understood; and only to enable: without the shim the kubelet has what it says itself."""
    node = Node(directory, plain("/usr/bin/kubelet --config=/etc/k.json", **{"etc/k.json": f"{text}\n"}))
    assert words in node.refuses()
    done = node.install("--runtime-endpoint", "/run/c.sock")
    assert "its runtime is /run/c.sock (--runtime-endpoint)" in done.stdout
    assert '"/run/c.sock"' in node.read(CONFIG) and FLAG in node.read(DROP_IN)
    node.write("etc/k.json", f"containerRuntimeEndpoint: unix://{LISTEN}\n")
    assert "/etc/k.json has the kubelet use the shim's socket" in node.refuses("--uninstall", "--runtime-endpoint", "/run/c.sock")


@pytest.mark.parametrize("options,words", [
    (["--uninstal"], "unknown option --uninstal"), (["--prefix"], "--prefix needs a value"),
    (["--prefix", "usr"], "expected a plain absolute path"),
    (["--build", "/nonexistent"], "cri-device-shim is missing; build it first"),
    (["--runtime-endpoint", "/run/a b"], 'the endpoint is "/run/a b"; expected a unix socket'),
    (["--runtime-endpoint", LISTEN], "is the shim's own socket"),
    (["--root", "/proc"], "not the root directory of a node"),
])
def test_bad_options(one, options, words):
    """Told, and nothing is touched."""
    assert words in one.refuses(*options)


def test_help(one):
    """The manual, without the script."""
    words = one.install("--help").stdout
    assert words.startswith("Puts cri-device-shim between") and "--uninstall" in words
    assert "set -" not in words


def test_links_of_an_image_lead_nowhere_else(one, directory):
    """An absolute one is the image's own."""
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    (one.root / "usr/local/share").symlink_to(elsewhere)
    words = one.refuses()
    assert f"/usr/local/share leads out of {one.root}, by an absolute link" in words
    assert not list(elsewhere.iterdir())
    assert f"leads out of {one.root}" in one.refuses("--prefix", "/opt/../..")
    (one.root / "usr/local/share").unlink()
    (one.root / "usr/local/share").symlink_to("../../var")
    one.install()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_units(one, directory):
    """systemd finds nothing wrong with the units as they are installed, nor a manual missing that they name."""
    one.install()
    units = directory / "units"
    units.mkdir()
    for name in ("cri-device-shim.socket", "cri-device-shim.service",
                 "cri-device-shim-bridge.service"):
        text = one.read(f"{UNITS}/{name}")
        text = text.replace("=/usr/local/bin/", f"={one.root}/usr/local/bin/")
        (units / name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=yes", *sorted(units.iterdir())], check=False,
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MANPATH": f"{one.root}/usr/local/share/man"})
    assert done.returncode == 0 and done.stdout + done.stderr == ""
