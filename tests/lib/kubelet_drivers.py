"""The scripted kubelet's part for DRA drivers: its plugin watcher, and its calls of drivers.

    kubelet = KubeletDrivers(directory / "plugins_registry"); kubelet.start()
    kubelet.wait_registered("gpu.example.com")
    kubelet.prepare("gpu.example.com", [claim("c-1")])     # {uid: NodePrepareResourceResponse}
    kubelet.stop()

As the kubelet of 1.36 does it (pkg/kubelet/pluginmanager, pkg/kubelet/cm/dra/plugin), its faults included: a
socket is known by its path; what failed at a path is put off, longer each time, and that ends with a
success only, not with another socket. Its times are compressed by 20 (but for deadlines), or by nothing. What is
no DRA driver's is as CSI's registrars have it: told that it is registered, and not looked at any more.
"""

import contextlib
import pathlib
import stat
import threading
import time

import grpc

from answered_once import AnsweredOnce
from protos import DRA_HEALTH, DRA_V1, DRA_V1BETA1, PLUGIN_REGISTRATION, dra, dra_health, pluginregistration
from waiting import GENEROUS_S, wait_until

_LOOP_S, _BACKOFF_S, _BACKOFF_MAX_S = 1, 0.5, 122
_GET_INFO_S, _NOTIFY_S, _CALL_S = 1, 5, 45
BRIDGES = "dra-cri-device-shim-"  # how its sockets in the registry begin
_PATHS = {"v1.DRAPlugin": DRA_V1, "v1beta1.DRAPlugin": DRA_V1BETA1}


def claim(uid, name=None, namespace="default"):
    return dra.Claim(namespace=namespace, uid=uid, name=name or f"claim-{uid}")


class _Instance:
    """One registered endpoint, with the kubelet's one connection to it. `twice` is told what the bridge's says
    twice; a driver's own is gRPC's Python server, which may end a stream that is cancelled once more. `hears`: it
    has a stream of health."""

    def __init__(self, info, path, twice, hears):
        self.name = info.name
        self.endpoint = info.endpoint
        self.versions = list(info.supported_versions)
        self.path = path
        self.states = []
        self._once = AnsweredOnce(info.endpoint, twice if path.name.startswith(BRIDGES) else None)
        self.channel = grpc.insecure_channel(self._once.target, options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.min_reconnect_backoff_ms", 50),
            ("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 6000)])
        self.channel.subscribe(self.states.append, try_to_connect=True)
        self.health = None
        self.said = []  # DeviceHealth, as they came on that stream
        if hears:
            self._ask_health()

    def _ask_health(self):
        self.health = self.channel.unary_stream(
            f"{DRA_HEALTH}NodeWatchResources",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=dra_health.NodeWatchResourcesResponse.FromString)(
                dra_health.NodeWatchResourcesRequest(), wait_for_ready=True)
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self):
        with contextlib.suppress(grpc.RpcError):
            for message in self.health:
                self.said.extend(message.devices)

    def wait_said(self, words):
        """Until the messages of all words that came are these."""
        wait_until(lambda: [one.message for one in self.said] == words,
                   f"the kubelet hears of {self.name} exactly {words}")

    def is_connected(self):
        return bool(self.states) and self.states[-1] is grpc.ChannelConnectivity.READY

    def losses(self):
        """How often the connection was lost."""
        return sum(a is grpc.ChannelConnectivity.READY and b is not a
                   for a, b in zip(self.states, self.states[1:]))

    def close(self):
        if self.health:
            self.health.cancel()
        self.channel.close()
        self._once.close()


class KubeletDrivers:
    """`known`: the services that it knows, as a release has them. `passes`: how often it has looked into the
    directory; passes_until(name) how often until it had registered a driver."""

    def __init__(self, registry, known=("v1.DRAPlugin", "v1beta1.DRAPlugin"), speed=20):
        self.registry = pathlib.Path(registry)
        self.known = known
        self.speed = speed
        self.hears_all = True  # as up to 1.36: of health, also who does not announce it
        self.refuses = None  # a text: each registration fails with it
        self.instances = []  # in the order of registration
        self.registered = []  # names, as often as they were
        self.deregistered = []
        self.csi = {}  # name: path, of CSI drivers
        self.twice = []  # what the bridge told it twice
        self.passes = 0
        self._first_pass = {}  # name: in which it was registered
        self._sockets = {}  # path: which entry it is, as registered
        self._no_sockets = {}  # likewise, of what was none when it came
        self._put_off = {}  # path: (until, pause)
        self._end = threading.Event()
        self._passing = threading.Lock()
        self._thread = None

    def start(self):
        self.registry.mkdir(parents=True, exist_ok=True)
        self.passes, self._first_pass = 0, {}
        self._end.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        """As a kubelet ends: its connections with it. start() begins without any knowledge."""
        if self._thread is None:
            return
        self._end.set()
        self._thread.join(GENEROUS_S)
        self._thread = None
        for instance in self.instances:
            instance.close()
        self.instances, self._sockets, self._put_off, self.csi = [], {}, {}, {}
        self._no_sockets = {}

    # ---- the watcher ----

    def _run(self):
        while not self._end.wait(_LOOP_S / self.speed if self.passes else 0):
            with self._passing:
                self._pass()

    def _pass(self):
        self.passes += 1
        found = self._find()
        for path in [path for path, entry in self._sockets.items() if found.get(path) != entry]:
            self._deregister(path)
        for path, entry in found.items():
            if path not in self._sockets and self._put_off.get(path, (0, 0))[0] <= time.monotonic():
                self._try(path, entry)

    def standing_still(self):
        """A context in which its watcher makes no pass; its calls go on."""
        return self._passing

    def _find(self):
        """As by inotify: what a link leads to is looked at when the link comes, and not later."""
        found, others = {}, {}
        for path in self.registry.rglob("*"):
            with contextlib.suppress(OSError):
                info = path.lstat()
                entry = info.st_ino, info.st_mtime_ns
                known = self._sockets.get(path) == entry
                if path.name.startswith(".") or self._no_sockets.get(path) == entry or not (
                        known or stat.S_ISSOCK(path.stat().st_mode)):
                    others[path] = entry
                else:
                    found[path] = entry
        self._no_sockets = others
        return found

    def _try(self, path, entry):
        try:
            self._register(path, entry)
            self._put_off.pop(path, None)
        except (grpc.RpcError, ValueError, grpc.FutureTimeoutError):
            pause = min(self._put_off.get(path, (0, _BACKOFF_S / 2))[1] * 2, _BACKOFF_MAX_S)
            self._put_off[path] = time.monotonic() + pause / self.speed, pause

    def _register(self, path, entry):
        with grpc.insecure_channel(f"unix:{path}",
                                   options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            get_info = channel.unary_unary(
                f"{PLUGIN_REGISTRATION}GetInfo",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=pluginregistration.PluginInfo.FromString)
            notify = channel.unary_unary(
                f"{PLUGIN_REGISTRATION}NotifyRegistrationStatus",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=pluginregistration.RegistrationStatusResponse.FromString)
            info = get_info(pluginregistration.InfoRequest(), timeout=_GET_INFO_S)
            error = self._validate(info)
            if error:
                notify(pluginregistration.RegistrationStatus(plugin_registered=False, error=error),
                       timeout=_NOTIFY_S)
                raise ValueError(error)
            if info.type == "CSIPlugin":
                self.csi[info.name] = path
            else:
                hears = self.hears_all or DRA_HEALTH.strip("/") in info.supported_versions
                self.instances.append(_Instance(info, path, self.twice.append, hears))
            self._sockets[path] = entry
            self.registered.append(info.name)
            self._first_pass.setdefault(info.name, self.passes)
            notify(pluginregistration.RegistrationStatus(plugin_registered=True), timeout=_NOTIFY_S)

    def _validate(self, info):
        if info.type == "CSIPlugin":
            return None
        if info.type != "DRAPlugin":
            return f"RegisterPlugin error -- no handler registered for plugin type: {info.type}"
        if not any(version in self.known for version in info.supported_versions):
            return (f"none of services supported by the plugin ({list(info.supported_versions)}) are "
                    f"supported by the kubelet ({list(self.known)})")
        if any((one.name, one.endpoint) == (info.name, info.endpoint) for one in self.instances):
            return f"endpoint {info.endpoint} already registered for DRA driver plugin {info.name}"
        return self.refuses

    def _deregister(self, path):
        del self._sockets[path]
        for instance in [one for one in self.instances if one.path == path]:
            self.instances.remove(instance)
            self.deregistered.append(instance.name)
            instance.close()
        for name in [name for name, its in self.csi.items() if its == path]:
            del self.csi[name]
            self.deregistered.append(name)

    # ---- drivers ----

    def passes_until(self, name):
        return self._first_pass[name]

    def instance(self, name):
        """The newest that is connected, else the newest; None."""
        ours = [one for one in self.instances if one.name == name]
        return next((one for one in reversed(ours) if one.is_connected()), ours[-1] if ours else None)

    def wait_registered(self, name):
        return wait_until(lambda: (one := self.instance(name)) and one.is_connected() and one,
                          f"the kubelet has registered {name}, and is connected")

    def wait_at_work(self, name):
        """Also that its connection is past its beginning: an answer has come on it, as only such a one is
        gone on with by another process."""
        instance = self.wait_registered(name)
        self.unprepare(name, [])
        return instance

    def wait_gone(self, name):
        wait_until(lambda: self.instance(name) is None, f"the kubelet knows of no {name}")

    def begin(self, name, method, claims):
        """NodePrepareResources or NodeUnprepareResources under way."""
        instance = self.instance(name)
        if instance is None:
            raise LookupError(f"DRA driver {name} is not registered")
        version = next(one for one in instance.versions if one in self.known)
        call = instance.channel.unary_unary(
            f"{_PATHS[version]}{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=getattr(dra, f"{method}Response").FromString)
        return call.future(getattr(dra, f"{method}Request")(claims=claims), timeout=_CALL_S)

    def prepare(self, name, claims):
        return dict(self.begin(name, "NodePrepareResources", claims).result().claims)

    def unprepare(self, name, claims):
        return dict(self.begin(name, "NodeUnprepareResources", claims).result().claims)
