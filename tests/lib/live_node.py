"""A node whose directories are this machine's own for config/install.sh, in private mounts, with a systemctl that writes down
what it is told."""

import os
import shutil
import socket
import subprocess

from node_tree import DROP_IN, FLAG, LISTEN, SCRIPT, UNITS, Node


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
            *)
                status=0
                [ ! -e wanted ] || mv wanted active/cri-device-shim-bridge.service ;;
        esac
        [ -e /DROP_IN ] && through=shim || through=runtime
        echo "$* [$through]" >>log
        cut_here
        exit $status
        """
    SLEEP = """#!/bin/sh
        [ ! -e STATE/dies ] || rm -f STATE/active/kubelet.service
        [ ! -e STATE/later ] || touch STATE/active/$(cat STATE/later)
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
        command = self.live_command(*options)
        command["env"].update(env or {})
        return subprocess.run(**command, check=False, capture_output=True, text=True, timeout=60)

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
