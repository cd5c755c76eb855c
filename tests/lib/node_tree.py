"""A node as a directory (--root of config/install.sh): what a kubelet of some kind has there, and what the shim brings."""

import os
import re
import shutil
import stat
import subprocess

import built
from shim import BINARY, ROOT

SCRIPT = ROOT / "config/install.sh"
UNITS = "etc/systemd/system"
DROP_IN = f"{UNITS}/kubelet.service.d/90-cri-device-shim.conf"
CONFIG = "etc/cri-device-shim/config.toml"
DAEMON = "usr/local/bin/cri-device-shim"
BRIDGE = "usr/local/bin/cri-device-shim-bridge"
AGENT = "usr/local/bin/cri-device-shim-agent"
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
    DAEMON, BRIDGE, AGENT, CTL, CONFIG, DROP_IN, EXAMPLE, SETTINGS_PAGE, *DOCUMENTS, NODE, *TEMPLATES,
    f"{UNITS}/cri-device-shim.socket", f"{UNITS}/sockets.target.wants/cri-device-shim.socket",
    f"{UNITS}/cri-device-shim.service",
    f"{UNITS}/multi-user.target.wants/cri-device-shim.service",
    f"{UNITS}/cri-device-shim-bridge.service",
    f"{UNITS}/multi-user.target.wants/cri-device-shim-bridge.service",
}


class Link(str):
    """In place of a file's text: where it points."""


KUBEADM_FLAGS = "--container-runtime-endpoint=unix:///run/a.sock --pod-infra-container-image=p"
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


class Node:
    """A root directory, and a build directory with a small daemon that is the real one."""

    def __init__(self, directory, files):
        self.root = directory / "node"
        self.build = directory / "build"
        for path in ("etc/systemd/system/multi-user.target.wants", "var/lib", "usr/local/bin"):
            (self.root / path).mkdir(parents=True)
        for path, text in files.items():
            self.write(path, text)
        for name in ("cri-device-shim", "cri-device-shim-bridge", "cri-device-shim-agent", "cri-device-shimctl"):
            self.build_binary(name, "one")
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


def with_root(root, directory):
    made = Node(directory, {})
    shutil.rmtree(made.root)
    shutil.copytree(root, made.root, symlinks=True)
    return made


def copy_of(node, directory):
    return with_root(node.root, directory)


def commands(done):
    """Those that it could not run itself."""
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]


LOGIND = "etc/systemd/logind.conf.d"
OURS, OURS_LAST = f"{LOGIND}/90-cri-device-shim.conf", f"{LOGIND}/zz-cri-device-shim.conf"
HUP = "systemctl kill --signal=HUP systemd-logind.service"


def shuts_down_in(node, settings):
    """[shutdown] has these settings from now on, or is not there."""
    text = node.read(CONFIG).split("[cluster]")[0] if (node.root / CONFIG).exists() else 'runtime_endpoint = "/run/a.sock"\n'
    node.write(CONFIG, text + (f"[cluster]\nenabled = true\n{settings}\n" if settings else ""))


def logind_ours(node):
    """{name: seconds} of our drop-ins."""
    return {path: re.search(r"^InhibitDelayMaxSec=(\w+)$", node.read(path), re.MULTILINE)[1]
            for path in (OURS, OURS_LAST) if (node.root / path).exists()}
