"""Two small container images made on the spot, since there is no registry.

Both are one layer with Debian's static busybox, all its applets linked; they differ in what they
run. write_archive() makes one docker-archive tar for `ctr --namespace k8s.io images import`.
"""

import hashlib
import io
import json
import pathlib
import platform
import subprocess
import tarfile

BUSYBOX = pathlib.Path("/bin/busybox")
PAUSE = "cri-device-shim.demo/pause:1"
APP = "cri-device-shim.demo/busybox:1"

_FOREVER = "2147483647"
# Where nobody says what to run: until SIGTERM, which a first process must ask for.
_WAIT = ["/bin/sh", "-c", f"trap exit TERM; sleep {_FOREVER} & wait"]
_COMMANDS = {PAUSE: ["/bin/sleep", _FOREVER], APP: _WAIT}
_DIRECTORIES = ("bin", "dev", "etc", "proc", "sys", "tmp")
_PASSWD = b"root:x:0:0:root:/:/bin/sh\n"


def _add(tar, name, content=None, mode=0o644, link=None):
    """One entry with nothing in it that changes from run to run, so that image ids are stable."""
    info = tarfile.TarInfo(name)
    info.mode = mode
    if link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, link
    elif content is None:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(content)
    tar.addfile(info, io.BytesIO(content) if content is not None else None)


def _tar(entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            _add(tar, **entry)
    return buffer.getvalue()


def _layer():
    applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True)
    entries = [{"name": name, "mode": 0o755} for name in _DIRECTORIES]
    entries.append({"name": "etc/passwd", "content": _PASSWD})
    entries.append({"name": "bin/busybox", "content": BUSYBOX.read_bytes(), "mode": 0o755})
    entries += [{"name": f"bin/{applet}", "link": "busybox", "mode": 0o777}
                for applet in applets.stdout.split() if applet != "busybox"]
    return _tar(entries)


def _architecture():
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _config(command, layer):
    return json.dumps({
        "architecture": _architecture(), "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }, sort_keys=True).encode()


def write_archive(path):
    """Writes both images, under the names PAUSE and APP, to the tar file `path`."""
    layer = _layer()
    entries = [{"name": "layer.tar", "content": layer}]
    manifest = []
    for name, command in _COMMANDS.items():
        config = _config(command, layer)
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        entries.append({"name": config_name, "content": config})
        manifest.append({"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]})
    entries.append({"name": "manifest.json", "content": json.dumps(manifest).encode()})
    pathlib.Path(path).write_bytes(_tar(entries))
