"""A containerd of our own: own root, state and sockets below one directory, gone without a trace.

Nothing of the machine's containerd is used or touched. The directory's name must be short: it holds
unix sockets. `restrict_oom_score_adj` is on since a sandboxed machine may not lower oom scores.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import grpc

import images
from criclient import CGROUP_PARENT, Client
from waiting import wait_until

# Shims listen here whatever the config says (containerd's shim address is made of a hash).
SHIM_SOCKETS = pathlib.Path("/run/containerd/s")
# What nobody has served there for so long is nobody's.
LOST_S = 10
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def overlayfs_works(directory):
    """Whether overlayfs can be mounted on the file system of `directory`."""
    probe = pathlib.Path(directory) / "overlay-probe"
    for name in ("lower", "upper", "work", "merged"):
        (probe / name).mkdir(parents=True)
    options = f"lowerdir={probe}/lower,upperdir={probe}/upper,workdir={probe}/work"
    mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, probe / "merged"],
                             check=False, capture_output=True).returncode == 0
    if mounted:
        subprocess.run(["umount", probe / "merged"], check=True)
    shutil.rmtree(probe)
    return mounted


def config_text(directory, cri=""):
    snapshotter = "overlayfs" if overlayfs_works(directory) else "native"
    return f"""version = 2
root = "{directory}/root"
state = "{directory}/state"
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
  address = "{directory}/c.sock"

[ttrpc]
  address = "{directory}/t.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.PAUSE}"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  {cri}

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{directory}/cni/bin"
    conf_dir = "{directory}/cni/net.d"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "{directory}/runc"
"""


def write_setup(directory, cri=""):
    """Writes config.toml and images.tar: all that a containerd of our own needs; `cri`: more of CRI's settings."""
    directory = pathlib.Path(directory)
    (directory / "config.toml").write_text(config_text(directory, cri))
    images.write_archive(directory / "images.tar")


def mounts_below(directory):
    """Mount points below `directory`, innermost first."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [line.split()[4] for line in file]
    return [point for point in reversed(points) if point.startswith(f"{directory}/")]


def processes_naming(text):
    """Command lines by pid of the processes that name `text`; not this one, nor its ancestors."""
    found = {}
    ancestors, pid = set(), os.getpid()
    while pid > 0:
        ancestors.add(pid)
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in ancestors:
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if text in words:
            found[int(entry.name)] = words
    return found


def _dead_sockets(directory):
    """Socket files that nobody serves."""
    dead = set()
    for path in directory.glob("*") if directory.is_dir() else ():
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                dead.add(path)
            except OSError:
                pass  # gone, or busy
    return dead


def _remove_lost_sockets(before):
    """containerd 1.6 loses that of a runtime shim whose RunPodSandbox was given up as it started, as by a daemon that a test
    kills. Those of another containerd are dead for a moment, too."""
    lost = _dead_sockets(SHIM_SOCKETS) - before
    end_s = time.monotonic() + LOST_S
    while lost and time.monotonic() < end_s:
        time.sleep(0.2)
        lost &= _dead_sockets(SHIM_SOCKETS)
    for path in lost:
        path.unlink(missing_ok=True)


def _list_images(client):
    try:
        return client.ListImages()
    except grpc.RpcError as error:
        assert "not initialized yet" in error.details(), error
        return None


def _remove_cgroups():
    """The pods' parent in each hierarchy, unless pods of another containerd of ours are in it."""
    for cgroup in (*CGROUPS.glob(CGROUP_PARENT[1:]), *CGROUPS.glob(f"*{CGROUP_PARENT}")):
        with contextlib.suppress(OSError):
            cgroup.rmdir()


class Containerd:
    """start() it, use `socket`, stop() it: stop() fails if anything of it is left behind."""

    def __init__(self, directory, path=None, cri=""):
        """`path`: where its programs are looked for, like $PATH; `cri`: more of CRI's settings."""
        self.directory = pathlib.Path(directory)
        self._cri = cri
        self._environment = {**os.environ, **({"PATH": path} if path else {})}
        self.socket = self.directory / "c.sock"
        self.log_path = self.directory / "containerd.log"
        self._process = None
        self._dead_sockets_before = _dead_sockets(SHIM_SOCKETS)

    def start(self):
        if not (self.directory / "config.toml").exists():
            write_setup(self.directory, self._cri)
        with open(self.log_path, "ab") as log:
            # A process group of its own: Ctrl-C at the terminal must not end it before its pods.
            self._process = subprocess.Popen(
                ["containerd", "--config", self.directory / "config.toml"], env=self._environment,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        with self.client() as client:
            client.wait_ready()
            images_there = wait_until(lambda: _list_images(client), "containerd's CRI is ready")
            if not images_there.images:
                self._import_images(client)

    def _import_images(self, client):
        self._ctr("images", "import", self.directory / "images.tar")
        for name in (images.PAUSE, images.APP):
            wait_until(lambda: client.ImageStatus(image={"image": name}).HasField("image"),
                       f"containerd's CRI sees {name}")

    def _ctr(self, *words):
        return subprocess.run(["ctr", "--address", self.socket, "--namespace", "k8s.io", *words],
                              env=self._environment, check=True, capture_output=True, encoding="utf-8").stdout

    def client(self):
        return Client(self.socket)

    def kill(self):
        """As a crash: containers go on under their shims."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def remove_all_pods(self):
        """Also what containerd 1.6 lost: a StartContainer whose caller went (a shim that a test
        kills) may leave a task that CRI calls exited, and whose container it cannot remove."""
        with self.client() as client:
            pods = [pod.id for pod in client.ListPodSandbox().items]
            for pod in pods:
                client.StopPodSandbox(pod_sandbox_id=pod)
            for task in self._ctr("tasks", "list", "--quiet").split():
                self._ctr("tasks", "delete", "--force", task)
            for pod in pods:
                client.RemovePodSandbox(pod_sandbox_id=pod)

    def stop(self):
        self.remove_all_pods()
        self._process.terminate()
        self._process.wait(timeout=60)
        wait_until(lambda: not processes_naming(str(self.directory)),
                   f"no process that names {self.directory} is left")
        left = mounts_below(self.directory)
        assert not left, f"mounts left behind: {left}"
        _remove_cgroups()
        shutil.rmtree(self.directory)
        _remove_lost_sockets(self._dead_sockets_before)
