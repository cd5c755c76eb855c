"""The wire contracts of cri-proto/ as Python modules: `cri` (CRI v1), `deviceplugin` (v1beta1),
`pluginregistration`, `dra` (v1, which does for v1beta1 and the alpha), `dra_health` (v1alpha1),
`bridge` (the daemon's feed for its bridge), `agent` (for its agent), `control` (for cri-device-shimctl) and `checkpoint`; and `podresources`, the kubelet's own.

protoc compiles the .proto files into a temporary directory on first import, so that
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
_OWN_DIR = pathlib.Path(__file__).parent


def _compile(*names):
    with tempfile.TemporaryDirectory(prefix="shim-protos-") as out:
        files = [f"{name}.proto" for name in names]
        subprocess.run(["protoc", f"--proto_path={PROTO_DIR}", f"--proto_path={_OWN_DIR}",
                        f"--python_out={out}", *files], check=True)
        writes_bytecode = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        sys.path.insert(0, out)
        try:
            return [importlib.import_module(f"{name}_pb2") for name in names]
        finally:
            sys.path.remove(out)
            sys.dont_write_bytecode = writes_bytecode


(cri, deviceplugin, pluginregistration, dra, dra_health, checkpoint, bridge, agent, control, podresources) = _compile(
    "cri_v1", "deviceplugin_v1beta1", "pluginregistration_v1", "dra_v1", "dra_health_v1alpha1", "checkpoint_v1",
    "bridge_v1", "agent_v1", "control_v1", "podresources")

RUNTIME = "/runtime.v1.RuntimeService/"
IMAGE = "/runtime.v1.ImageService/"
REGISTRATION = "/v1beta1.Registration/"
DEVICE_PLUGIN = "/v1beta1.DevicePlugin/"
PLUGIN_REGISTRATION = "/pluginregistration.Registration/"
DRA_V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
DRA_V1BETA1 = "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"
DRA_ALPHA = "/v1alpha3.Node/"
DRA_HEALTH = "/v1alpha1.DRAResourceHealth/"
FEED = "/bridge.v1.Feed/"
AGENT_FEED = "/agent.v1.Feed/"
CONTROL = "/control.v1.Control/"
POD_RESOURCES = "/v1.PodResourcesLister/"
