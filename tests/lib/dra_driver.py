"""A DRA driver as Kubernetes' helper library makes them (k8s.io/dynamic-resource-allocation/kubeletplugin).

    driver = Driver(registry_dir, plugins_dir, "gpu.example.com", services=["v1.DRAPlugin"])
    driver.start()              # serves its endpoint, and only then shows its registration socket
    driver.wait_registered()    # as the helper, which gives up after 30 s
    driver.on_prepare = failing(...)   # or any handler(claim) -> devices, or str: an error
    driver.stop()               # the registration socket goes first

Its endpoint is dra.sock in the directory of its name, its registration socket NAME-reg.sock; with `instance`, for a
rolling update, both have that in their names. Calls are handled one after the other, as the helper does by default.

A Registrar is any plugin that only registers: node-driver-registrar, or a device plugin beside its endpoint.
"""

import concurrent.futures
import pathlib
import queue
import threading

import grpc

from protos import DRA_ALPHA, DRA_HEALTH, DRA_V1, DRA_V1BETA1, PLUGIN_REGISTRATION, dra, dra_health, pluginregistration
from waiting import wait_until

V1 = "v1.DRAPlugin"
V1BETA1 = "v1beta1.DRAPlugin"
ALPHA = "v1alpha3.NodeService"
HEALTH = "v1alpha1.DRAResourceHealth"
_PATHS = {V1: DRA_V1, V1BETA1: DRA_V1BETA1, ALPHA: DRA_ALPHA}
REGISTERED_WITHIN_S = 30  # then many drivers exit


def _serialize(message):
    return message if isinstance(message, bytes) else message.SerializeToString()


def serve(path, services):
    """A server on a unix socket of {service: {method: handler}}; handlers are grpc's."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=16))
    for service, handlers in services.items():
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service.strip("/"), handlers)])
    assert server.add_insecure_port(f"unix:{path}"), f"cannot listen on {path}"
    server.start()
    return server


def _stop(server):
    if server is not None:
        server.stop(grace=None).wait(REGISTERED_WITHIN_S)


class Registrar:
    """A registration socket at `path` that says so; `statuses`: what it was notified of, in turn."""

    def __init__(self, path, kind, name, endpoint="", versions=()):
        self.path = pathlib.Path(path)
        self.info = pluginregistration.PluginInfo(type=kind, name=name, endpoint=str(endpoint),
                                                  supported_versions=list(versions))
        self.on_info = lambda _request, _context: self.info
        self.asked = 0
        self.statuses = []
        self._servers = []  # one that is let go of would take the next one's socket along

    def start(self):
        """In place of what an earlier process has left, as the helpers do at their start; in a directory that
        whoever watches it makes."""
        wait_until(self.path.parent.is_dir, f"{self.path.parent} is there")
        self.path.unlink(missing_ok=True)
        self._servers.append(serve(self.path, self.services()))

    def services(self):
        """As serve() takes them; for a server that has others, too, in place of start()."""
        return {PLUGIN_REGISTRATION: {
            "GetInfo": grpc.unary_unary_rpc_method_handler(
                self._info, pluginregistration.InfoRequest.FromString, _serialize),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                self._notified, pluginregistration.RegistrationStatus.FromString, _serialize)}}

    def _info(self, request, context):
        self.asked += 1
        return self.on_info(request, context)

    def _notified(self, status, _context):
        self.statuses.append(status)
        return pluginregistration.RegistrationStatusResponse()

    @property
    def registered(self):
        return bool(self.statuses) and self.statuses[-1].plugin_registered

    @property
    def error(self):
        """Why it was refused last; "" if it was not."""
        return self.statuses[-1].error if self.statuses else ""

    def wait_registered(self):
        wait_until(lambda: self.registered, f"{self.info.name} is registered by {self.path}")

    def wait_refused(self):
        return wait_until(lambda: not self.registered and self.error, f"{self.info.name} is refused")

    def stop(self):
        """Its socket goes with it."""
        while self._servers:
            _stop(self._servers.pop())
        self.path.unlink(missing_ok=True)


class Driver:
    """`services`: what it announces, in its order, and serves; `serves`: only that. It takes devices `pool`/`claim
    name`-0."""

    def __init__(self, registry_dir, plugins_dir, name, services=(V1, V1BETA1), instance=None, pool="node-1",
                 serves=None):
        suffix = f"-{instance}" if instance else ""
        self.name = name
        self.pool = pool
        self.services = list(services)
        self._serves = list(serves or services)
        self.endpoint = pathlib.Path(plugins_dir) / name / f"dra{suffix}.sock"
        self.registrar = Registrar(pathlib.Path(registry_dir) / f"{name}{suffix}-reg.sock", "DRAPlugin", name,
                                   self.endpoint, self.services)
        self.on_prepare = self._devices
        self.on_unprepare = lambda claim: ""
        self.calls = []  # (service, method, claim uid), in turn
        self.prepared = {}  # by claim uid
        self.health = {}  # by device: the newest DeviceHealth, said to each stream at its begin
        self._serial = threading.Lock()
        self._health_lock = threading.Lock()
        self._watchers = []
        self._server = None

    def start(self):
        self.serve()
        self.registrar.start()

    def serve(self):
        """Its endpoint alone."""
        self.endpoint.parent.mkdir(parents=True, exist_ok=True)
        self.endpoint.unlink(missing_ok=True)
        services = {_PATHS[one]: self._handlers(one) for one in self._serves if one in _PATHS}
        if HEALTH in self._serves:
            services[DRA_HEALTH] = {"NodeWatchResources": grpc.unary_stream_rpc_method_handler(
                self._watch, dra_health.NodeWatchResourcesRequest.FromString, _serialize)}
        self._server = serve(self.endpoint, services)

    def stop(self):
        self.registrar.stop()
        self.stop_serving()

    def end_health(self):
        """Its streams."""
        with self._health_lock:
            for words in self._watchers:
                words.put(None)

    def stop_serving(self):
        self.end_health()
        _stop(self._server)
        self._server = None

    def say_health(self, device, message, **fields):
        """Of one device, to all streams of its health."""
        word = dra_health.DeviceHealth(message=message, **fields)
        word.device.pool_name, word.device.device_name = self.pool, device
        with self._health_lock:
            self.health[device] = word
            for words in self._watchers:
                words.put([word])

    def wait_registered(self):
        self.registrar.wait_registered()

    def calls_of(self, method):
        return [uid for _service, called, uid in list(self.calls) if called == method]

    def _handlers(self, service):
        return {"NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                    lambda request, context: self._prepare(service, request, context),
                    dra.NodePrepareResourcesRequest.FromString, _serialize),
                "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                    lambda request, context: self._unprepare(service, request, context),
                    dra.NodeUnprepareResourcesRequest.FromString, _serialize)}

    def _devices(self, claim):
        return [dra.Device(request_names=["gpu"], pool_name=self.pool, device_name=f"{claim.name}-0",
                           cdi_device_ids=[f"{self.name}/device={claim.uid}"])]

    def _prepare(self, service, request, _context):
        answer = dra.NodePrepareResourcesResponse()
        with self._serial:
            for claim in request.claims:
                self.calls.append((service, "NodePrepareResources", claim.uid))
                result = self.on_prepare(claim)
                if isinstance(result, str):
                    answer.claims[claim.uid].error = result
                else:
                    answer.claims[claim.uid].devices.extend(result)
                    self.prepared[claim.uid] = result
        return answer

    def _unprepare(self, service, request, _context):
        answer = dra.NodeUnprepareResourcesResponse()
        with self._serial:
            for claim in request.claims:
                self.calls.append((service, "NodeUnprepareResources", claim.uid))
                error = self.on_unprepare(claim)
                answer.claims[claim.uid].error = error
                if not error:
                    self.prepared.pop(claim.uid, None)
        return answer

    def _watch(self, _request, context):
        words = queue.SimpleQueue()
        with self._health_lock:
            self._watchers.append(words)
            words.put(list(self.health.values()))
        context.add_callback(lambda: words.put(None))
        while (devices := words.get()) is not None:
            yield dra_health.NodeWatchResourcesResponse(devices=devices)
