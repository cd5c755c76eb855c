"""What registers by a socket in a directory, as with the kubelet's plugin watcher: DRA drivers, device plugins,
and CSI's registrars, which use the same directory and are the kubelet's."""

import os
import signal
import socket
import stat
import threading

import grpc
import pytest

from asking import by_token, envs
from dra_driver import ALPHA, V1, V1BETA1, Driver, Registrar
from plugin import OneChannelPlugin, Plugin
from protos import PLUGIN_REGISTRATION, RUNTIME, cri, pluginregistration
from waiting import GENEROUS_S, wait_until

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"


@pytest.fixture
def registry(shim):
    """The directory, when it is there."""
    wait_until(shim.registry_dir.is_dir, "the registry's directory is there")
    return shim.registry_dir


@pytest.fixture
def make_driver(directory, closing):
    def make(shim, name=DRIVER, **settings):
        return closing(Driver(shim.registry_dir, directory / "p", name, **settings))

    return make


@pytest.fixture
def make_registrar(closing):
    def make(path, kind, name, **settings):
        return closing(Registrar(path, kind, name, **settings))

    return make


# ---- drivers ----

@pytest.mark.parametrize("services", [[V1, V1BETA1], [V1BETA1], [ALPHA], ["1.0.0"]])
def test_driver_registers(shim, registry, make_driver, services):
    """Whichever services it has, or none by name, as those of the alpha's time."""
    driver = make_driver(shim, services=services)
    driver.start()
    driver.wait_registered()
    assert [status.plugin_registered for status in driver.registrar.statuses] == [True]


@pytest.mark.parametrize("services, words", [
    ([], "empty list of supported gRPC services (aka supported versions)"),
    (["v9.DRAPlugin"], 'none of services supported by the plugin (["v9.DRAPlugin"]) are supported by the kubelet '
                       '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])')])
def test_driver_without_a_service_is_refused_in_the_kubelets_words(shim, registry, make_driver, services, words):
    driver = make_driver(shim, services=services)
    driver.start()
    assert driver.registrar.wait_refused() == (
        f"RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC versions of DRA driver "
        f"plugin {DRIVER} at endpoint {driver.endpoint}: {words}")


def test_drivers_that_were_there_first_are_found(runtime, make_shim, make_driver):
    """Before the daemon; and after it was restarted, since it says anew who is registered."""
    shim = make_shim(start=False)
    shim.registry_dir.mkdir()
    driver = make_driver(shim)
    driver.start()
    shim.start()
    driver.wait_registered()
    shim.stop()
    shim.start()
    wait_until(lambda: len(driver.registrar.statuses) == 2, "the driver is registered anew")
    assert driver.registrar.registered


def _leave_behind(registry, count):
    """Sockets of drivers that were killed, each with a name of its own."""
    for number in range(count):
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(registry / f"{DRIVER}-{number}-reg.sock"))


def test_sockets_that_nobody_serves_keep_no_driver_out(runtime, make_shim, make_driver):
    """More than are looked at: a driver that comes after them is registered, and one that goes on is by the next
    daemon, too."""
    shim = make_shim()
    wait_until(shim.registry_dir.is_dir, "the registry's directory is there")
    _leave_behind(shim.registry_dir, 300)
    shim.wait_log("the rest is left out")
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()
    shim.stop()
    shim.start()
    wait_until(lambda: len(driver.registrar.statuses) == 2, "it is registered again")


def test_endpoints_of_pods_that_were_killed_keep_no_driver_out(shim, registry, directory, closing):
    """Each leaves its sockets behind, as a second name of them does here."""
    for number in range(20):
        own = directory / f"pod{number}"
        own.mkdir()
        driver = closing(Driver(own, own / "p", DRIVER))
        driver.start()
        os.link(driver.registrar.path, registry / f"{number}-reg.sock")
        driver.wait_registered()
        driver.stop()


def test_driver_that_restarts_is_registered_again(shim, registry, make_driver):
    """Over a socket that a crash has left behind, and that has been dialled in vain."""
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()
    driver.stop()
    driver.registrar.statuses.clear()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(driver.registrar.path))
    shim.wait_log(f"{driver.registrar.path}: cannot connect: Connection refused")
    driver.start()
    driver.wait_registered()


def test_rolling_update(shim, registry, make_driver):
    """Two instances of a name, each by a socket of its own; the old one goes."""
    old, new = make_driver(shim, instance="old"), make_driver(shim, instance="new")
    old.start()
    old.wait_registered()
    new.start()
    new.wait_registered()
    old.stop()
    assert new.registrar.registered


def test_endpoint_that_is_registered_already_is_refused(shim, registry, make_driver, make_registrar):
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()
    second = make_registrar(registry / "second-reg.sock", "DRAPlugin", DRIVER, endpoint=driver.endpoint,
                            versions=[V1])
    second.start()
    assert second.wait_refused() == (
        f"RegisterPlugin error -- plugin registration failed with err: endpoint {driver.endpoint} already registered "
        f"for DRA driver plugin {DRIVER}")
    driver.stop()
    second.wait_registered()


def test_driver_that_hangs_holds_up_nobody(shim, registry, make_driver, make_registrar):
    """It has a second for GetInfo, and others none to wait."""
    release = threading.Event()
    hanging = make_registrar(registry / "hanging.sock", "DRAPlugin", "hanging.example.com", endpoint="/x",
                             versions=[V1])
    hanging.on_info = lambda _request, context: (context.add_callback(release.set), release.wait(), hanging.info)[2]
    hanging.start()
    wait_until(lambda: hanging.asked, "the hanging driver is asked")
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()
    assert not hanging.statuses
    shim.wait_log("hanging.sock: GetInfo: DEADLINE_EXCEEDED")
    hanging.on_info = lambda _request, _context: hanging.info
    hanging.wait_registered()


def test_answer_of_16_mib_is_not_taken(shim, registry, make_driver, make_registrar):
    large = make_registrar(registry / "large.sock", "DRAPlugin", "x" * (16 << 20), endpoint="/x", versions=[V1])
    large.start()
    shim.wait_log("large.sock: GetInfo: RESOURCE_EXHAUSTED")
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()


@pytest.mark.parametrize("name, endpoint", [("", "/x"), ("not a name", "/x"), ("a\nb", "/x"), (DRIVER, "relative"),
                                            (DRIVER, "/" + "x" * 200)])
def test_nonsense_is_refused(shim, registry, make_registrar, name, endpoint):
    one = make_registrar(registry / "one.sock", "DRAPlugin", name, endpoint=endpoint, versions=[V1])
    one.start()
    assert one.wait_refused().startswith("RegisterPlugin error -- plugin validation failed with err: the ")


def test_no_plugin_at_all(shim, registry, make_driver):
    """What is no socket, hidden, or serves something else, costs nobody anything."""
    for i in range(3000):
        (registry / f"file{i}").touch()
    (registry / "directory").mkdir()
    os.symlink("/nowhere", registry / "dangling.sock")
    os.symlink(shim.control, registry / "other.sock")  # where nobody has a GetInfo
    shim.wait_log("other.sock: GetInfo: UNIMPLEMENTED")
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()


def test_directories_that_come_and_go(shim, registry, make_registrar, make_driver):
    (registry / "a" / "b").mkdir(parents=True)
    one = make_registrar(registry / "a" / "b" / "one.sock", "DRAPlugin", "one.example.com", endpoint="/x",
                         versions=[V1])
    one.start()
    one.wait_registered()
    one.stop()
    (registry / "a" / "b").rmdir()
    (registry / "a").rmdir()
    registry.rmdir()
    wait_until(registry.is_dir, "the registry's directory is made anew")
    driver = make_driver(shim)
    driver.start()
    driver.wait_registered()


def test_it_is_off_if_so_set(runtime, make_shim, make_client):
    shim = make_shim(dra={"enabled": False})
    make_client(shim).run_pod("a")
    assert not shim.registry_dir.exists()


# ---- device plugins ----

@pytest.fixture
def plugin(directory, closing):
    """A device plugin whose socket is not in the directory for such."""
    (directory / "p").mkdir()
    return closing(Plugin(directory / "p", GPU, ["g0", "g1"]))


def test_device_plugin_by_this_way(runtime, shim, client, registry, plugin, make_driver, make_registrar):
    """The same as one that calls Register: its list, its Allocate, after a restart of the daemon, too. It is there as long
    as it serves, whatever becomes of the socket that it registered by, and registers anew by another."""
    plugin.serve()
    one = make_registrar(registry / "gpu-reg.sock", "DevicePlugin", GPU,
                         endpoint=plugin.plugin_dir / plugin.endpoint, versions=["v1beta1"])
    one.start()
    one.wait_registered()
    plugin.wait_calls("ListAndWatch")
    client.create(client.run_pod("a"), "main", annotations=by_token(GPU, "g0"))
    assert envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"] == "g0"
    shim.stop()
    shim.start()
    plugin.wait_calls("ListAndWatch", 2)
    one.stop()
    after = make_driver(shim)
    after.start()
    after.wait_registered()  # that it has gone was seen before
    client.reconnect()
    client.create(client.run_pod("b"), "main", annotations=by_token(GPU, "g1"))
    assert envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"] == "g1"
    plugin.stop()
    plugin.serve()
    one.statuses.clear()
    one.start()
    one.wait_registered()
    plugin.wait_calls("ListAndWatch", 3)


def test_device_plugin_that_names_the_kubelets_directory(runtime, shim, client, registry, closing, make_registrar):
    """As SR-IOV's and Mellanox's: one socket for both, named as in its container, which has our directory in the
    kubelet's place."""
    plugin = closing(Plugin(registry, GPU, ["g0"], endpoint="gpu.sock"))
    one = make_registrar(registry / plugin.endpoint, "DevicePlugin", GPU,
                         endpoint="/var/lib/kubelet/plugins_registry/gpu.sock", versions=["v1alpha1", "v1beta1"])
    plugin.services = one.services()
    plugin.serve()
    one.wait_registered()
    plugin.wait_calls("ListAndWatch")
    client.create(client.run_pod("a"), "main", annotations=by_token(GPU, "g0"))
    assert envs(runtime.create_requests()[-1].config)["PLUGIN_DEVICES"] == "g0"


def test_what_a_plugin_says_next_is_heard_after_its_restart(directory, shim, registry, closing, make_registrar):
    """It is dialled once more before it has registered again; its first stream hears the next change. The daemon sleeps
    meanwhile: a dial that meets the server as it ends would be the one."""
    (directory / "p").mkdir()
    plugin = closing(OneChannelPlugin(directory / "p", GPU, ["g0", "g1"]))
    one = make_registrar(registry / "gpu-reg.sock", "DevicePlugin", GPU,
                         endpoint=plugin.plugin_dir / plugin.endpoint, versions=["v1beta1"])
    plugin.serve()
    one.start()
    one.wait_registered()
    plugin.wait_calls("ListAndWatch")
    os.kill(shim.pid, signal.SIGSTOP)
    plugin.stop()
    plugin.serve()
    os.kill(shim.pid, signal.SIGCONT)
    plugin.wait_calls("ListAndWatch", 2)
    shim.wait_log("2 of 2 devices healthy", 2)
    one.stop()
    one.statuses.clear()
    one.start()
    one.wait_registered()
    plugin.wait_calls("ListAndWatch", 3)
    plugin.set_devices({"g0": False, "g1": True})
    shim.wait_log("1 of 2 devices healthy")


@pytest.mark.parametrize("name, versions, words", [
    ("gpu", ["v1beta1"], 'invalid name of device plugin socket: the ResourceName "gpu" is invalid'),
    (GPU, ["v1", "v2"], "manager version, v1beta1, is not among plugin supported versions [v1 v2]")])
def test_device_plugin_is_validated_in_the_kubelets_words(shim, registry, make_registrar, name, versions, words):
    one = make_registrar(registry / "gpu-reg.sock", "DevicePlugin", name, endpoint="/x", versions=versions)
    one.start()
    assert one.wait_refused() == f"RegisterPlugin error -- plugin validation failed with err: {words}"


def test_device_plugin_that_does_not_serve_is_refused(shim, registry, directory, make_registrar):
    one = make_registrar(registry / "gpu-reg.sock", "DevicePlugin", GPU, endpoint=directory / "nobody.sock",
                         versions=["v1beta1"])
    one.start()
    assert one.wait_refused().startswith(
        "RegisterPlugin error -- plugin registration failed with err: failed to dial device plugin: ")


# ---- CSI ----

class Kubelet:
    """The kubelet's plugin watcher, as far as it concerns a CSI driver: what it finds in its directory it dials, by
    the name under which it found it."""

    def __init__(self, directory):
        self.directory = directory

    def sockets(self):
        """os.stat() follows symlinks, as the kubelet's does."""
        found = []
        for path in self.directory.iterdir() if self.directory.is_dir() else []:
            try:
                if stat.S_ISSOCK(os.stat(path).st_mode) and not path.name.startswith("."):
                    found.append(path)
            except FileNotFoundError:
                pass
        return sorted(found)

    @staticmethod
    def identity(path):
        """Of what stands there: another one is told to it as new."""
        status = path.lstat()
        return status.st_ino, status.st_ctime_ns

    def register(self, path):
        with grpc.insecure_channel(f"unix:{path}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            info = channel.unary_unary(f"{PLUGIN_REGISTRATION}GetInfo",
                                       request_serializer=pluginregistration.InfoRequest.SerializeToString,
                                       response_deserializer=pluginregistration.PluginInfo.FromString)(
                                           pluginregistration.InfoRequest(), timeout=GENEROUS_S)
            channel.unary_unary(f"{PLUGIN_REGISTRATION}NotifyRegistrationStatus",
                                request_serializer=pluginregistration.RegistrationStatus.SerializeToString,
                                response_deserializer=pluginregistration.RegistrationStatusResponse.FromString)(
                                    pluginregistration.RegistrationStatus(plugin_registered=True),
                                    timeout=GENEROUS_S)
        return info


@pytest.fixture
def csi(registry, make_registrar):
    """node-driver-registrar, which removes what it finds at its start, and its socket at its end."""
    return make_registrar(registry / "csi.example.com-reg.sock", "CSIPlugin", "csi.example.com",
                          endpoint="/var/lib/kubelet/plugins/csi.example.com/csi.sock", versions=["1.0.0"])


def test_csi_driver_registers_with_the_kubelet(shim, registry, csi):
    """We tell it nothing; its socket is the kubelet's as long as it is there. Another one in its place has its name,
    and is told to be new: the kubelet deregisters what went and registers what came at the same time if their names
    differ, and CSI drivers by their own name, so that both are gone."""
    shim.kubelet_registry_dir.mkdir()
    kubelet = Kubelet(shim.kubelet_registry_dir)
    csi.start()
    (first,) = wait_until(kubelet.sockets, "the kubelet sees the CSI driver")
    before = kubelet.identity(first)
    assert kubelet.register(first).name == "csi.example.com"
    assert [status.plugin_registered for status in csi.statuses] == [True]

    csi.start()  # over its own socket, without a word
    (second,) = wait_until(lambda: [one for one in kubelet.sockets() if kubelet.identity(one) != before],
                           "the kubelet sees the new one")
    assert second == first
    assert kubelet.register(second).name == "csi.example.com"
    csi.stop()
    wait_until(lambda: not kubelet.sockets() and not list(shim.kubelet_registry_dir.iterdir()), "the link has gone")


def test_csi_driver_waits_for_the_kubelets_directory(shim, registry, csi):
    csi.start()
    shim.wait_log("what registers with the kubelet waits for it")
    shim.kubelet_registry_dir.mkdir()
    kubelet = Kubelet(shim.kubelet_registry_dir)
    (found,) = wait_until(kubelet.sockets, "the kubelet sees the CSI driver")
    assert kubelet.register(found).name == "csi.example.com"


def test_csi_driver_stays_whatever_the_daemon_does(shim, registry, csi):
    """A daemon that ends, is killed or starts leaves what the kubelet sees as it is; one that replaced its socket
    meanwhile is found behind the old name by a kubelet that starts."""
    shim.kubelet_registry_dir.mkdir()
    kubelet = Kubelet(shim.kubelet_registry_dir)
    csi.start()
    found = wait_until(kubelet.sockets, "the kubelet sees the CSI driver")
    shim.stop()
    assert kubelet.sockets() == found
    shim.start()
    wait_until(lambda: csi.asked >= 2, "the daemon has asked it anew")
    assert kubelet.sockets() == found
    shim.kill()
    csi.start()
    assert kubelet.register(kubelet.sockets()[0]).name == "csi.example.com"
    before = kubelet.identity(found[0])
    shim.start()
    new = wait_until(lambda: [one for one in kubelet.sockets() if kubelet.identity(one) != before],
                     "the kubelet is told of the new socket")
    assert new == found
    assert kubelet.register(new[0]).name == "csi.example.com"


class NodeDriverRegistrar(Registrar):
    """As CSI's: what it finds at its start it removes, its file for the liveness probe, too, which it makes once it is
    registered; told that it is not, it exits, and is started anew."""

    def __init__(self, directory, registry):
        super().__init__(registry / "csi.example.com-reg.sock", "CSIPlugin", "csi.example.com",
                         endpoint="/var/lib/kubelet/plugins/csi.example.com/csi.sock", versions=["1.0.0"])
        self.probe = directory / "registration"
        self.exits = 0

    def start(self):
        self.probe.unlink(missing_ok=True)
        super().start()

    def _notified(self, status, context):
        if status.plugin_registered:
            self.probe.touch()
        else:
            self.exits += 1
        return super()._notified(status, context)


def test_csi_driver_is_the_kubelets_all_the_time(shim, registry, directory, closing, kubelet):
    """Given our directory by mistake, as long as it runs: whoever else ends and begins, its registrar passes its probe,
    is never told that it is refused, and the kubelet has lost it for no longer than the registrar itself was away."""
    csi = closing(NodeDriverRegistrar(directory, registry))
    csi.start()

    def wait_registered():
        wait_until(lambda: "csi.example.com" in kubelet.csi and csi.probe.exists(), "the CSI driver is registered")

    wait_registered()
    for end in (shim.kill, shim.terminate):
        csi.asked = 0
        end()
        shim.start()
        wait_until(lambda: csi.asked, "the daemon has asked it anew")
        assert kubelet.deregistered == [] and "csi.example.com" in kubelet.csi
        kubelet.stop()
        kubelet.start()
        wait_registered()
    for count in range(1, 4):
        csi.stop()
        wait_until(lambda: "csi.example.com" not in kubelet.csi, "the kubelet sees it go")
        csi.start()
        wait_registered()
        assert kubelet.deregistered == ["csi.example.com"] * count
    shim.kill()  # and nobody sees the next one come
    csi.stop()
    csi.start()
    assert not csi.probe.exists()
    shim.start()
    wait_registered()
    assert csi.exits == 0


# ---- pods ----

def driver_request(client, host_path, pod):
    return client.create_request(pod, "driver", ["serve"], mounts=[
        cri.Mount(container_path="/plugins", host_path="/var/lib/kubelet/plugins"),
        cri.Mount(container_path="/registration", host_path=host_path)])


@pytest.mark.parametrize("named", ["setting", "annotation", "no"])
def test_mount_of_a_pod_that_is_named_is_redirected(runtime, make_shim, make_client, named):
    """And of no other: a CSI driver's pod mounts the same directory."""
    shim = make_shim(dra={"redirect_mounts": ["default/gpu-*"]})
    client = make_client(shim)
    annotations = {"dra.cri-device-shim/redirect": "true"} if named == "annotation" else {}
    pod = client.run_pod("gpu-x7k2p" if named == "setting" else "csi-x7k2p", annotations=annotations)
    request = driver_request(client, str(shim.kubelet_registry_dir), pod)
    client.unary(RUNTIME + "CreateContainer", request.SerializeToString(deterministic=True))
    received = cri.CreateContainerRequest.FromString(runtime.calls_of("CreateContainer")[-1].request)
    ours = str(shim.kubelet_registry_dir) if named == "no" else str(shim.registry_dir)
    assert [mount.host_path for mount in received.config.mounts] == ["/var/lib/kubelet/plugins", ours]
