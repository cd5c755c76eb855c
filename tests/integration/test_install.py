"""config/install.sh on the file trees of nodes: nothing but what it says, and all of it taken back. With the
programs of the release build: they are asked for settings only, several times by each run of the script.

A node is a directory (--root), or, for what it does with services, this machine's own paths in
private mounts, with a systemctl that writes down what it is told.
"""

import dataclasses
import fcntl
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

import pytest

import built
import kubelet_checkpoint
from protos import deviceplugin
from shim import BINARY, ROOT

SCRIPT = ROOT / "config/install.sh"
UNITS = "etc/systemd/system"
DROP_IN = f"{UNITS}/kubelet.service.d/90-cri-device-shim.conf"
CONFIG = "etc/cri-device-shim/config.toml"
DAEMON = "usr/local/bin/cri-device-shim"
BRIDGE = "usr/local/bin/cri-device-shim-bridge"
CTL = "usr/local/bin/cri-device-shimctl"
EXAMPLE = "usr/local/share/doc/cri-device-shim/example.toml"
MANUALS = "usr/local/share/man"
SETTINGS_PAGE = f"{MANUALS}/man5/cri-device-shim.toml.5"
DOCUMENTS = {f"{MANUALS}/man8/cri-device-shim.8": "cri-device-shim.8",
             f"{MANUALS}/man8/cri-device-shim-bridge.8": "cri-device-shim-bridge.8",
             f"{MANUALS}/man1/cri-device-shimctl.1": "cri-device-shimctl.1",
             f"{MANUALS}/man8/cri-device-shim-agent.8": "cri-device-shim-agent.8",
             "usr/local/share/cri-device-shim/alerts.yaml": "prometheus/alerts.yaml",
             "usr/local/share/cri-device-shim/dashboard.json": "grafana/dashboard.json",
             "usr/local/share/cri-device-shim/agent-rbac.yaml": "agent-rbac.yaml",
             "usr/local/share/bash-completion/completions/cri-device-shimctl": "completion.bash",
             "usr/local/share/zsh/site-functions/_cri-device-shimctl": "completion.zsh"}
LIB = "usr/local/lib/cri-device-shim"
NODE = f"{LIB}/node.sh"
TEMPLATES = {f"{LIB}/{path.name}": path for path in (
    *(ROOT / "config").glob("cri-device-shim*.service"), ROOT / "config/cri-device-shim.socket")}
KUBELET_DIR = "var/lib/kubelet/device-plugins"
LISTEN = "/run/cri-device-shim/cri-device-shim.sock"
FLAG = f"--container-runtime-endpoint=unix://{LISTEN}"
INSTALLED = {
    DAEMON, BRIDGE, CTL, CONFIG, DROP_IN, EXAMPLE, SETTINGS_PAGE, *DOCUMENTS, NODE, *TEMPLATES,
    f"{UNITS}/cri-device-shim.socket", f"{UNITS}/sockets.target.wants/cri-device-shim.socket",
    f"{UNITS}/cri-device-shim.service",
    f"{UNITS}/multi-user.target.wants/cri-device-shim.service",
    f"{UNITS}/cri-device-shim-bridge.service",
    f"{UNITS}/multi-user.target.wants/cri-device-shim-bridge.service",
}

# ---- nodes ----

class Link(str):
    """In place of a file's text: where it points."""


KUBEADM_EXEC = ("/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS"
                " $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS")


def kubeadm(flags="", extra="", config="kind: KubeletConfiguration\n", extra_file="etc/default"):
    return {
        "usr/lib/systemd/system/kubelet.service":
            "[Unit]\nDescription=kubelet\n\n[Service]\nExecStart=/usr/bin/kubelet\n",
        "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf":
            "# As kubeadm has it\n[Service]\n"
            'Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"\n'
            'Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"\n'
            "EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\n"
            f"EnvironmentFile=-/{extra_file}/kubelet\n"
            f"ExecStart=\nExecStart={KUBEADM_EXEC}\n",
        "var/lib/kubelet/kubeadm-flags.env": f'KUBELET_KUBEADM_ARGS="{flags}"\n',
        f"{extra_file}/kubelet": f"KUBELET_EXTRA_ARGS={extra}\n",
        "var/lib/kubelet/config.yaml": config,
    }


def plain(exec_start, **more):
    return {"lib/systemd/system/kubelet.service":
            f"[Service]\nExecStart={exec_start}\n[Install]\nWantedBy=multi-user.target\n", **more}


@dataclasses.dataclass
class Layout:
    files: dict
    endpoint: str      # what the kubelet uses by now
    source: str        # what the script says where that stands
    exec_start: str = KUBEADM_EXEC


LAYOUTS = {
    "kubeadm": Layout(
        kubeadm("--container-runtime-endpoint=unix:///run/a.sock --pod-infra-container-image=p"),
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


class Node:
    """A root directory, and a build directory with a small daemon that is the real one."""

    def __init__(self, directory, files):
        self.root = directory / "node"
        self.build = directory / "build"
        for path in ("etc/systemd/system/multi-user.target.wants", "var/lib", "usr/local/bin"):
            (self.root / path).mkdir(parents=True)
        for path, text in files.items():
            self.write(path, text)
        self.build_binary("cri-device-shim", "one")
        self.build_binary("cri-device-shim-bridge", "one")
        self.build_binary("cri-device-shimctl", "one")
        page = self.build / built.PAGE
        page.parent.mkdir()
        page.write_text("the settings")

    def write(self, path, text, mode=0o644):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, Link):
            return path.symlink_to(text)
        path.write_text(text)
        path.chmod(mode)
        return path

    def build_binary(self, name, version):
        path = self.build / "shim" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\n# {version}\nexec {BINARY} "$@"\n')
        path.chmod(0o755)

    def read(self, path):
        return (self.root / path).read_text()

    def command(self, *options):
        return [SCRIPT, "--root", self.root, "--build", self.build, *options]

    def run(self, *options, env=None):
        return subprocess.run(self.command(*options), check=False, capture_output=True, text=True,
                              timeout=60, env={**os.environ, **(env or {})})

    def install(self, *options):
        done = self.run(*options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def refuses(self, *options):
        """An install that must fail and leave everything as it is; its words."""
        before = self.tree()
        done = self.run(*options)
        assert done.returncode != 0, done.stdout
        assert self.tree() == before
        return done.stderr

    def tree(self):
        """Everything below the root: kind, mode, bytes."""
        return snapshot(self.root)


def snapshot(root):
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content = os.readlink(path)
        else:
            content = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (stat.filemode(status.st_mode), content)
    return found


def files_of(tree):
    return {path for path, (_, content) in tree.items() if content is not None}


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
    return Node(directory, LAYOUTS["kubeadm"].files)


def commands(done):
    """Those that it could not run itself."""
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]


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


def test_kubelet_uses_the_shim_by_itself(one):
    """The same, where the argument was also given by hand."""
    one.install()
    one.write("etc/default/kubelet", f"KUBELET_EXTRA_ARGS={FLAG}\n")
    words = one.refuses("--uninstall")
    assert "/etc/default/kubelet has the kubelet use the shim's socket" in words


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


AGENT = {"usr/local/bin/cri-device-shim-agent", f"{UNITS}/cri-device-shim-agent.service",
         f"{UNITS}/multi-user.target.wants/cri-device-shim-agent.service"}


def test_the_agent_where_it_is_wanted(one):
    """And no more where it is not. The program itself reads the settings, however they are written."""
    text = '"clust\\u0065r" . enabled = true # here\n'

    def there():
        return {path for path in AGENT if (one.root / path).exists() or (one.root / path).is_symlink()}

    unit = "cri-device-shim-agent.service"
    one.install()
    assert there() == set()
    settings = one.read(CONFIG)
    one.write(CONFIG, settings + text)
    words = one.refuses()
    assert "cri-device-shim-agent is missing" in words
    one.build_binary("cri-device-shim-agent", "one")
    assert commands(one.install()) == ["systemctl daemon-reload", f"systemctl restart {unit}"]
    assert there() == AGENT
    assert commands(one.install()) == []
    one.build_binary("cri-device-shim-agent", "two")
    assert commands(one.install()) == [f"systemctl restart {unit}"]
    one.write(CONFIG, settings + text.replace("true", "false"))
    assert commands(one.install()) == [f"systemctl stop {unit}", "systemctl daemon-reload"]
    assert there() == set()
    one.write(CONFIG, settings + text)
    one.install()
    assert unit in one.install("--uninstall").stdout
    assert there() == set()


LOGIND = "etc/systemd/logind.conf.d"
OURS, OURS_LAST = f"{LOGIND}/90-cri-device-shim.conf", f"{LOGIND}/zz-cri-device-shim.conf"
HUP = "systemctl kill --signal=HUP systemd-logind.service"


def shuts_down_in(node, settings):
    """[shutdown] has these settings from now on, or is not there."""
    text = node.read(CONFIG).split("[cluster]")[0] if (node.root / CONFIG).exists() else 'runtime_endpoint = "/run/a.sock"\n'
    node.write(CONFIG, text + (f"[cluster]\nenabled = true\n{settings}\n" if settings else ""))
    node.build_binary("cri-device-shim-agent", "one")


def logind_ours(node):
    """{name: seconds} of our drop-ins."""
    return {path: re.search(r"^InhibitDelayMaxSec=(\w+)$", node.read(path), re.MULTILINE)[1]
            for path in (OURS, OURS_LAST) if (node.root / path).exists()}


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
    installed = {path.removeprefix("usr/local/") for path in INSTALLED | AGENT
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
    "configuration as JSON": (
        {**plain("/usr/bin/kubelet --config=/etc/k.yaml"),
         "etc/k.yaml": '{"containerRuntimeEndpoint": "unix:///run/c.sock"}\n'},
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


# ---- cut off, and failing ----

def test_failing_write_takes_all_back(one):
    """The last file cannot be written: the ones before it are taken back."""
    one.write("etc/systemd/system/kubelet.service.d", "not a directory")
    words = one.refuses()
    assert "all changes were taken back" in words and "not put back" not in words


def test_failing_upgrade_takes_all_back(one):
    """The same with an earlier install: its version is there, and can be uninstalled."""
    before = one.tree()
    one.install()
    drop_in = one.root / DROP_IN
    drop_in.unlink()
    drop_in.parent.rmdir()
    one.write("etc/systemd/system/kubelet.service.d", "not a directory")
    one.build_binary("cri-device-shim", "two")
    assert "all changes were taken back" in one.refuses()
    (one.root / "etc/systemd/system/kubelet.service.d").unlink()
    one.install("--uninstall")
    assert one.tree() == before


def with_tools(directory, **scripts):
    """An environment in which these stand in front of a node's own."""
    tools = directory / "stand-ins"
    tools.mkdir()
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}"}


def upgrade_fails_at_the_bridge(one, directory, cp):
    """Both programs are to be others, and the bridge cannot be put; `cp`: what that does first, also when all is taken back."""
    for name in ("cri-device-shim", "cri-device-shim-bridge"):
        one.build_binary(name, "two")
    return one.run(env=with_tools(directory, mv='case $* in *shim-bridge) exit 1 ;; esac\nexec /bin/mv "$@"',
                                  cp=f'{cp}\nexec /bin/cp "$@"'))


def test_full_disk_while_all_is_taken_back(one, directory):
    """What is noted of the install before is not written over in its place."""
    before = one.tree()
    one.install()
    done = upgrade_fails_at_the_bridge(
        one, directory, 'for last; do :; done\ncase $last in */install/manifest*) : >"$last"; exit 1 ;; esac')
    assert done.returncode != 0 and "all changes were taken back" in done.stderr
    assert "# one" in one.read(DAEMON) and "# one" in one.read(BRIDGE)
    one.install("--uninstall")
    assert one.tree() == before


def test_what_cannot_be_taken_back(one, directory):
    """Is said, and nothing else than is so; the next run finds it."""
    before = one.tree()
    one.install()
    done = upgrade_fails_at_the_bridge(one, directory, f"case $* in */undo/{DAEMON}\\ {one.root}/*) exit 1 ;; esac")
    assert f"not put back: {one.root}/{DAEMON}\n" in done.stderr
    assert "those named above are still there" in done.stderr and "all changes were taken back" not in done.stderr
    assert "# two" in one.read(DAEMON) and "# one" in one.read(BRIDGE)
    again = copy_of(one, directory / "again")
    again.build_binary("cri-device-shim-bridge", "two")
    again.install()
    assert "# one" in again.read(DAEMON) and "# two" in again.read(BRIDGE)
    for node in (one, again):
        node.install("--uninstall")
        assert node.tree() == before


def test_what_is_kept_is_on_the_disk(one, directory):
    """Before it is noted that it is, and before what takes its place."""
    one.write(DAEMON, "an older one", 0o750)
    done = one.run(env=with_tools(directory, sync=f'for last; do :; done\necho "${{last#{one.root}/}}" >>{directory}/log'))
    assert done.returncode == 0, done.stderr
    synced = (directory / "log").read_text().splitlines()
    store = "var/lib/cri-device-shim/install"
    assert synced[:2] == [f"{store}/backup/{DAEMON}", f"{store}/manifest.new"]
    assert f"{DAEMON.rpartition('/')[0]}/.cri-device-shim.new" in synced[2:]


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


class Cutter:
    """Tools in front of PATH that keep what is there as each of them is called: what the script
    leaves that is killed just then."""

    TOOLS = ("mv", "cp", "mkdir", "rm", "rmdir")
    EACH = 5  # of the first and of the last

    def __init__(self, directory):
        self.directory = directory
        self.path = directory / "tools"
        self.count = directory / "count"
        self.places = 0  # of all that it may leave; known once there are nodes
        self.path.mkdir()
        self.count.write_text("0")
        copy = shutil.which("cp")
        for tool in self.TOOLS:
            (self.path / tool).write_text(
                f"#!/bin/sh\nn=$(($(cat {self.count}) + 1))\necho $n >{self.count}\n"
                f'{copy} -a "$CUT_ROOT" {directory}/left$n\nexec {shutil.which(tool)} "$@"\n')
            (self.path / tool).chmod(0o755)

    def cuts(self, node, *options):
        """A node for each thing that the script may leave, but in the middle, where one file is as the other, for each
        seventh; the last is that of one that came to its end."""
        whole = copy_of(node, self.directory / "whole")
        done = whole.run(*options, env={"PATH": f"{self.path}:{os.environ['PATH']}",
                                        "TMPDIR": str(whole.build), "CUT_ROOT": str(whole.root)})
        assert done.returncode == 0, done.stderr
        left = [self.directory / f"left{n}" for n in range(1, int(self.count.read_text()) + 1)]
        trees = [snapshot(one) for one in left]
        others = [one for one, tree, last in zip(left, trees, [None, *trees]) if tree != last]
        self.places = len(others)
        for n, one in enumerate(others):
            if n < self.EACH or n >= len(others) - self.EACH or n % 7 == 0:
                yield with_root(one, self.directory / f"cut{n}")
        yield whole


def with_root(root, directory):
    made = Node(directory, {})
    shutil.rmtree(made.root)
    shutil.copytree(root, made.root, symlinks=True)
    return made


def copy_of(node, directory):
    return with_root(node.root, directory)


def without_manifest(tree):
    return {path: found for path, found in tree.items() if not path.endswith("/manifest")}


def test_cut_off_anywhere(one, directory):
    """A script that is killed at any point: another run brings it to its end, either way."""
    one.write(DAEMON, "an older one", 0o750)
    before = one.tree()
    clean = copy_of(one, directory / "clean")
    clean.install()
    cutter = Cutter(directory)
    for number, again in enumerate(cutter.cuts(one)):
        back = copy_of(again, directory / f"back{number}")
        again.install()
        assert without_manifest(again.tree()) == without_manifest(clean.tree())
        back.install("--uninstall")
        assert back.tree() == before
    assert cutter.places > 20


def test_uninstall_cut_off_anywhere(one, directory):
    """The same for the way back."""
    one.write(DAEMON, "an older one", 0o750)
    before = one.tree()
    one.install()
    cutter = Cutter(directory)
    for node in cutter.cuts(one, "--uninstall"):
        node.install("--uninstall")
        assert node.tree() == before
    assert cutter.places > 10


# ---- services ----

class LiveNode(Node):
    """A node whose directories are this machine's own for the script, which finds systemd there."""

    SYSTEMCTL = """#!/bin/bash
        # Active units are files; so are those that fail, with a word that the binary has then.
        cd STATE || exit 9
        for unit in "${@:2}"; do :; done
        cut_here() {  # the script is killed, where a test says so
            [ ! -e cut ] || [ "$(cat cut)" != "$(cat log 2>/dev/null | wc -l)" ] || kill -9 0
        }
        case $1 in
            --quiet) [ -e active/$unit ]; exit ;;
            show)
                [[ $* != *MainPID* ]] || { cat life; exit; }
                [ ! -e sticks ] || echo "ExecStart=/usr/bin/kubelet FLAG"
                [ -e hidden ] || cat /DROP_IN 2>/dev/null
                exit 0 ;;
            status) echo "status of ${*:4}: failed"; exit 3 ;;
        esac
        cut_here
        [ ! -p told ] || { echo "$*" >told; read -r _ <go; }
        case $1 in
            restart)
                status=0
                for unit in "${@:2}"; do
                    rm -f active/$unit
                    if [ -e fails/$unit ] &&
                        grep -q "$(cat fails/$unit)" /usr/local/bin/cri-device-shim
                    then status=1; else touch active/$unit; fi
                    { sed -n 2p /usr/local/bin/${unit%.service}; cat /UNITS/$unit.d/*; } 2>/dev/null >runs/$unit
                done ;;
            stop)
                status=0
                for unit in "${@:2}"; do
                    [ -e /UNITS/$unit ] || status=5
                    rm -f active/$unit
                done ;;
            *) status=0 ;;
        esac
        [ -e /DROP_IN ] && through=shim || through=runtime
        echo "$* [$through]" >>log
        cut_here
        exit $status
        """
    SLEEP = """#!/bin/sh
        [ ! -e STATE/dies ] || rm -f STATE/active/kubelet.service
        [ ! -e STATE/flaps ] || echo again >>STATE/life
        """
    SS = """#!/bin/sh
        [ "$*" = "-xH state established src LISTEN" ] || exit 9
        [ -e STATE/unused ] || { [ -e STATE/runs/kubelet.service ] && [ ! -s STATE/runs/kubelet.service ]; } ||
            echo "u_str ESTAB 0 0 LISTEN 1 * 2"
        """

    def __init__(self, directory):
        super().__init__(directory, {f"{UNITS}/kubelet.service":
                                     "[Service]\nExecStart=/usr/bin/kubelet\n",
                                     "run/systemd/system/x.service": ""})
        shutil.copytree("/etc/alternatives", self.root / "etc/alternatives", symlinks=True)
        self.state = directory / "state"
        self.tools = directory / "tools"
        self.path = f"{self.tools}:{os.environ['PATH']}"
        for path in (self.state / "active", self.state / "fails", self.state / "runs", self.tools,
                     self.root / "var/log/pods"):
            path.mkdir(parents=True)
        for name, text in (("systemctl", self.SYSTEMCTL), ("sleep", self.SLEEP), ("ss", self.SS)):
            for word, value in (("STATE", str(self.state)), ("DROP_IN", DROP_IN), ("UNITS", UNITS), ("FLAG", FLAG),
                                ("LISTEN", LISTEN)):
                text = text.replace(word, value)
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        (self.state / "active/kubelet.service").touch()
        (self.state / "life").write_text("4711\n0\n")
        (self.root / "run/containerd").mkdir()
        with socket.socket(socket.AF_UNIX) as runtime:
            runtime.bind(str(self.root / "run/containerd/containerd.sock"))

    def live_command(self, *options):
        mounts = "".join(f"mount -n --bind {self.root}/{path} /{path}\n"
                         for path in ("etc", "run", "usr/local", "var/lib", "var/log"))
        script = f'set -e\nmount --make-rprivate /\n{mounts}exec "$0" "$@"'
        return {"args": ["unshare", "--mount", "sh", "-c", script, SCRIPT, "--build", self.build, *options],
                "env": {**os.environ, "PATH": self.path}, "start_new_session": True}

    def run(self, *options, env=None):
        return subprocess.run(**self.live_command(*options), check=False, capture_output=True, text=True, timeout=60)

    def runs(self, unit):
        """What it was started from: the version of its program, or the kubelet's drop-in."""
        return (self.state / "runs" / unit).read_text()

    def calls(self):
        """What systemctl was told since the last time, and what the kubelet would use then."""
        log = self.state / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.replace("cri-device-shim", "S") for line in lines]

    def active(self):
        return {path.name for path in (self.state / "active").iterdir()}


ALL_ACTIVE = {"kubelet.service", "cri-device-shim.socket", "cri-device-shim.service",
              "cri-device-shim-bridge.service"}


@pytest.fixture(name="live")
def live_node(directory):
    return LiveNode(directory)


def test_services(live):
    """The shim first, while the kubelet uses the runtime; the kubelet once the shim serves. A
    second install starts nothing anew, an uninstall is the way back in the other order."""
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
        "daemon-reload [runtime]", "restart kubelet.service [runtime]",
        "stop S.socket S.service S-bridge.service [runtime]", "daemon-reload [runtime]"]
    assert live.active() == {"kubelet.service"}
    assert live.tree() == before


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


def test_uninstall_that_fails(live):
    """The kubelet does not come up without the shim: it gets it back."""
    live.install()
    (live.state / "dies").touch()
    assert "all changes were taken back" in live.refuses("--uninstall")
    assert live.calls()[-2:] == ["daemon-reload [shim]", "restart kubelet.service [shim]"]
    assert live.active() == ALL_ACTIVE


@pytest.mark.parametrize("kubelet", [[], ["--no-kubelet"]])
def test_uninstall_that_cannot_remove_a_file(live, kubelet):
    """What it has stopped runs again, the agent too."""
    live.build_binary("cri-device-shim-agent", "one")
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


def killed_runs(live, *options):
    """The script is killed before its first call of systemctl, and behind each of them: yields then, for another one
    to go on. At no such moment the kubelet uses a shim that does not run, or would if it were started."""
    for calls in itertools.count():
        live.calls()
        (live.state / "cut").write_text(f"{calls}\n")
        done = live.run(*options)
        (live.state / "cut").unlink()
        if done.returncode == 0:
            assert calls > 2
            return
        assert done.returncode == -signal.SIGKILL, done.stderr
        if (live.root / DROP_IN).exists():
            assert INSTALLED <= files_of(live.tree())
        runs = live.state / "runs/kubelet.service"
        if runs.exists() and runs.read_text():
            assert live.active() == ALL_ACTIVE
        yield


def test_install_killed_between_two_steps(live):
    before = live.tree()
    for _ in killed_runs(live):
        live.install()
        assert live.active() == ALL_ACTIVE and live.runs("kubelet.service") == live.read(DROP_IN)
        live.calls()
        live.install()
        assert live.calls() == []
        live.install("--uninstall")
        assert live.tree() == before


def test_upgrade_killed_between_two_steps(live):
    """All runs from what is there afterwards: what a killed one has put there, too."""
    def build():
        for name in ("cri-device-shim", "cri-device-shim-bridge"):
            live.build_binary(name, f"version {next(version)}")
        live.write(f"{UNITS}/kubelet.service", f"[Service]\nExecStart=/usr/bin/kubelet --v={next(version)}\n")

    version = itertools.count()
    live.install()
    build()
    for _ in killed_runs(live):
        live.install()
        for unit, path in (("cri-device-shim.service", DAEMON), ("cri-device-shim-bridge.service", BRIDGE)):
            assert live.runs(unit) == live.read(path).splitlines(keepends=True)[1]
        assert live.runs("kubelet.service") == live.read(DROP_IN)
        live.calls()
        live.install()
        assert live.calls() == []
        build()


def test_uninstall_killed_between_two_steps(live):
    before = live.tree()
    live.install()
    for _ in killed_runs(live, "--uninstall"):
        live.install("--uninstall")
        assert live.active() == {"kubelet.service"} and live.runs("kubelet.service") == ""
        assert live.tree() == before
        live.install()


@pytest.mark.parametrize("streams", [1, 2])
def test_nobody_reads_its_words_any_more(live, streams):
    """As when what it was started from has gone: an interrupt like any other."""
    before = live.tree()
    for name in ("told", "go"):
        os.mkfifo(live.state / name)
    words = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT if streams == 2 else subprocess.DEVNULL}
    with subprocess.Popen(**live.live_command(), **words) as script:
        assert "daemon-reload" in (live.state / "told").read_text()
        script.stdout.close()
        (live.state / "told").unlink()
        (live.state / "go").write_text("on\n")
        assert script.wait(timeout=60) != 0
    assert live.tree() == before and live.active() == {"kubelet.service"}


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


def test_uninstall_leaves_no_socket_where_the_kubelet_looks(live):
    """Of a driver that the bridge has shown there; those of others stay."""
    registry = live.root / "var/lib/kubelet/plugins_registry"
    registry.mkdir(parents=True)
    for name in ("dra-cri-device-shim-plugins.cri-device-shim-0123abcd.sock", "gpu.example.com-reg.sock"):
        os.mknod(registry / name, stat.S_IFSOCK | 0o600)  # its path is too long to be bound here
    live.install()
    live.install("--uninstall")
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


def test_disable_under_a_kubelet_that_something_else_starts(live):
    """Whoever is connected would lose the runtime."""
    live.install("--no-kubelet")
    live.calls()
    assert f"somebody is connected to {LISTEN}" in live.refuses("--uninstall")
    assert live.calls() == [] and "cri-device-shim.service" in live.active()
    (live.state / "unused").touch()
    live.install("--uninstall")
    assert live.active() == {"kubelet.service"}


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


def test_uninstall_without_its_store(live):
    """Somebody removed the state: the kubelet must not lose its runtime."""
    live.install()
    live.calls()
    shutil.rmtree(live.root / "var/lib/cri-device-shim")
    for _ in range(2):
        assert f"{DROP_IN} is there, but" in live.refuses("--uninstall")
        assert live.calls() == [] and live.active() == ALL_ACTIVE
        live.install()
        live.calls()


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
