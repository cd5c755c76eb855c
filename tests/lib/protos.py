"""The wire contracts of cri-proto/ as Python modules: `cri` (CRI v1), `deviceplugin` (v1beta1),
`bridge` (the daemon's feed for its bridge) and `checkpoint`.

protoc compiles the project's own .proto files into a temporary directory on first import, so that
the tests speak what the daemon was built from. The directory is gone before the import returns.

    from protos import cri, deviceplugin
    cri.VersionRequest(version="v1").SerializeToString()
"""

import importlib
import pathlib
import subprocess
import sys
import tempfile

PROTO_DIR = pathlib.Path(__file__).resolve().parents[2] / "cri-proto"


def _compile(*names):
    with tempfile.TemporaryDirectory(prefix="shim-protos-") as out:
        files = [f"{name}.proto" for name in names]
        subprocess.run(["protoc", f"--proto_path={PROTO_DIR}", f"--python_out={out}", *files],
                       check=True, cwd=PROTO_DIR)
        writes_bytecode = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        sys.path.insert(0, out)
        try:
            return [importlib.import_module(f"{name}_pb2") for name in names]
        finally:
            sys.path.remove(out)
            sys.dont_write_bytecode = writes_bytecode


cri, deviceplugin, checkpoint, bridge = _compile("cri_v1", "deviceplugin_v1beta1", "checkpoint_v1",
                                                 "bridge_v1")

RUNTIME = "/runtime.v1.RuntimeService/"
IMAGE = "/runtime.v1.ImageService/"
REGISTRATION = "/v1beta1.Registration/"
DEVICE_PLUGIN = "/v1beta1.DevicePlugin/"
FEED = "/bridge.v1.Feed/"
