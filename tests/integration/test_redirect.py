"""Device plugins in pods: a mount of the kubelet's plugin directory becomes one of the shim's."""

import grpc
import pytest

from asking import by_token, envs
from protos import RUNTIME, cri

GPU = "vendor.com/gpu"
UNKNOWN = b"\xc2\x3e\x03\x00\xff\x00"  # field 1000


@pytest.fixture
def shim(runtime, make_shim):
    return make_shim(plugins={"hold": "300ms"}, bridge={"redirect_plugin_mounts": True})


def plugin_request(client, host_path, pod=None, readonly=False, **config):
    """A plugin's container as the kubelet makes it, with another mount on each side."""
    return client.create_request(
        pod or client.run_pod("plugin"), "plugin", ["serve"], mounts=[
            cri.Mount(container_path="/dev", host_path="/dev"),
            cri.Mount(container_path="/var/lib/kubelet/device-plugins", host_path=host_path,
                      readonly=readonly, selinux_relabel=True,
                      propagation=cri.PROPAGATION_HOST_TO_CONTAINER),
            cri.Mount(container_path="/etc/hosts", host_path="/var/lib/kubelet/pods/1/etc-hosts")],
        **config)


def sent(request):
    return request.SerializeToString(deterministic=True) + UNKNOWN


def received(runtime):
    return runtime.calls_of("CreateContainer")[-1].request


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}//", "/{}", "{}/./"])
def test_mount_becomes_the_shims(runtime, client, shim, spelling):
    """However the directory is written: only that path is another one, and the log says so."""
    request = plugin_request(client, spelling.format(shim.kubelet_plugin_dir))
    client.unary(RUNTIME + "CreateContainer", sent(request))
    request.config.mounts[1].host_path = str(shim.plugin_dir)
    assert received(runtime) == sent(request)
    shim.wait_log(f"pod default/plugin, container plugin: its mount of "
                  f"{spelling.format(shim.kubelet_plugin_dir)} is one of {shim.plugin_dir}")


def test_compressed_request(runtime, client, shim):
    """A compressed request goes on plain."""
    request = plugin_request(client, str(shim.kubelet_plugin_dir))
    client.unary(RUNTIME + "CreateContainer", sent(request), compression=grpc.Compression.Gzip)
    request.config.mounts[1].host_path = str(shim.plugin_dir)
    assert received(runtime) == sent(request)


def test_large_request(runtime, client, shim):
    """Larger than every window there is, so that it goes on in parts."""
    request = plugin_request(client, str(shim.kubelet_plugin_dir), envs={"LARGE": "x" * 3_000_000})
    client.unary(RUNTIME + "CreateContainer", sent(request))
    request.config.mounts[1].host_path = str(shim.plugin_dir)
    assert received(runtime) == sent(request)


def test_read_only_mount_stays(runtime, client, shim):
    """No plugin makes its socket in one: it is of somebody who reads the kubelet's checkpoint."""
    request = plugin_request(client, str(shim.kubelet_plugin_dir), readonly=True)
    client.unary(RUNTIME + "CreateContainer", sent(request))
    assert received(runtime) == sent(request)
    shim.wait_log(f"pod default/plugin, container plugin: its mount of {shim.kubelet_plugin_dir} is"
                  " read-only, which is no device plugin's; it stays")


def test_with_devices(runtime, client, shim, make_plugin):
    """A plugin that asks for devices of another one has its mount and their options."""
    make_plugin(shim, GPU, ["g0"])
    request = plugin_request(client, str(shim.kubelet_plugin_dir), annotations=by_token(GPU, "g0"))
    client.unary(RUNTIME + "CreateContainer", sent(request))
    request.config.mounts[1].host_path = str(shim.plugin_dir)
    assert received(runtime).endswith(sent(request))
    assert envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"] == "g0"


@pytest.mark.parametrize("path, how", [("{}/..", None), ("{}2", None), ("/dev", None),
                                       ("{}/kubelet.sock", "lies in"), ("/", "holds"),
                                       ("/tmp/", "holds")])
def test_other_mounts_stay(runtime, client, shim, path, how):
    """What holds the directory or lies in it stays as it is, with one warning for each container."""
    path = path.format(shim.kubelet_plugin_dir)
    pod = client.run_pod("plugin")
    request = plugin_request(client, path, pod)
    for _ in range(2):
        client.unary(RUNTIME + "CreateContainer", sent(request))
        assert received(runtime) == sent(request)
        request.config.metadata.attempt += 1
    words = f"its mount of {path}, which {how} {shim.kubelet_plugin_dir}, is not redirected"
    assert shim.log().count(words) == (1 if how else 0)
    assert shim.log().count("is not redirected") == (1 if how else 0)
    other = client.run_pod("other")
    client.unary(RUNTIME + "CreateContainer", sent(plugin_request(client, path, other)))
    assert shim.log().count("is not redirected") == (2 if how else 0)


def test_malformed_request_stays(runtime, client, shim):
    """One that cannot be read: the runtime's own answer, to the caller's own bytes."""
    request = plugin_request(client, str(shim.kubelet_plugin_dir)).SerializeToString() + b"\x12\x7f"
    with pytest.raises(grpc.RpcError) as caught:
        client.unary(RUNTIME + "CreateContainer", request)
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert received(runtime) == request


def test_off_by_default(runtime, make_shim, make_client):
    """Without the setting every mount stays, and nothing is said."""
    shim = make_shim()
    client = make_client(shim)
    request = plugin_request(client, str(shim.kubelet_plugin_dir))
    client.unary(RUNTIME + "CreateContainer", sent(request))
    assert received(runtime) == sent(request)
    client.unary(RUNTIME + "CreateContainer", sent(plugin_request(client, "/")))
    assert "its mount of" not in shim.log()
