"""containerd as a unit of a Machine, at the path that a kubelet looks for it, with the images of tests.

    write files(directory) to its disk, and unit_text() to its unit; machine.start()
    wait_images(machine)
"""

import shutil

import grpc

import images
from containerd import overlayfs_works
from criclient import Client
from kube_programs import containerd_path
from waiting import wait_until

RUNTIME_SOCKET = "/run/containerd/containerd.sock"

_CONFIG = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  enable_cdi = true
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/var/lib/cni/bin"
    conf_dir = "/etc/cni/net.d"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""
_UNIT = """[Unit]
Description=container runtime

[Service]
Type=notify
Environment=PATH={path}
ExecStart={containerd} --config /etc/containerd/config.toml
Delegate=yes
KillMode=process
Restart=always
RestartSec=1
LimitNOFILE=1048576
"""


def files(directory):
    """{path: text} of what it needs in /etc; `directory`: where the machine's disk is."""
    snapshotter = "overlayfs" if overlayfs_works(directory) else "native"
    return {"etc/containerd/config.toml": _CONFIG.format(socket=RUNTIME_SOCKET, pause=images.PAUSE,
                                                         snapshotter=snapshotter),
            "etc/hosts": "127.0.0.1 localhost\n", "etc/resolv.conf": ""}


def unit_text():
    path = containerd_path()
    return _UNIT.format(path=path, containerd=shutil.which("containerd", path=path))


def runtime(machine):
    """A client of containerd itself."""
    return Client(machine.path(RUNTIME_SOCKET))


def wait_images(machine):
    """Until it serves, with the images of tests."""
    archive = machine.root / "var/lib/images.tar"
    if not archive.exists():
        images.write_archive(archive)
    with runtime(machine) as client:
        client.wait_ready()
        wait_until(lambda: _has_images(machine, client), "containerd has the images")


def import_images(machine, archive):
    """`archive`: its path there."""
    machine.run("ctr", "--namespace", "k8s.io", "images", "import", archive)


def _has_images(machine, client):
    try:
        wanted = [name for name in (images.PAUSE, images.APP)
                  if not client.ImageStatus(image={"image": name}).HasField("image")]
    except grpc.RpcError as error:
        assert "not initialized yet" in error.details(), error
        return False
    if wanted:
        import_images(machine, "/var/lib/images.tar")
    return not wanted
