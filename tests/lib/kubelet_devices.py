"""The device manager of the scripted kubelet: what it does to plugins, and to pods that need one.

As the kubelet of 1.30 does it, its faults included; without a topology manager's hints. Its calls
of plugins have no deadline (PreStartContainer: 30 s), and Allocate is called from admission.
"""

import collections
import os
import pathlib
import random
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

import kubelet_checkpoint
from answered_once import AnsweredOnce
from kubelet_checkpoint import Entry
from protos import DEVICE_PLUGIN, REGISTRATION, deviceplugin

SOCKET = "kubelet.sock"
_VERSION = "v1beta1"
_HEALTHY = "Healthy"
_NO_NODE = -1
_PRESTART_S = 30
_NAME_BYTES_MAX = 63
BRIDGES = "cri-device-shim"  # the directory of its sockets


class AllocateError(Exception):
    """Its text is what the pod is told."""


def go_error(error):
    """A gRPC error as grpc-go prints it."""
    code = "".join(part.capitalize() for part in error.code().name.split("_"))
    return f"rpc error: code = {code} desc = {error.details()}"


def is_extended_resource(name):
    prefix, slash, rest = name.partition("/")
    return (bool(slash) and "kubernetes.io/" not in name and not name.startswith("requests.")
            and bool(prefix) and 0 < len(rest) <= _NAME_BYTES_MAX and "/" not in rest)


class _Front:
    """kubelet.sock: it has a name for `gap_s` before it listens, as the real one for a moment.

    Its connections lead to the gRPC server on the abstract socket `target`, which cannot be made
    to wait between bind and listen.
    """

    def __init__(self, path, gap_s, target, report):
        self._target = target
        self._report = report
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self.bound_at = time.monotonic()
        time.sleep(gap_s)
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self._listener.accept()
            credentials = near.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED,
                                          struct.calcsize("3i"))
            self._report("connected", pid=struct.unpack("3i", credentials)[0])
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other direction's thread sees the end too


class _Client:
    """The connection to one registered plugin. What it says twice is reported if it is the bridge's; another's is
    gRPC's Python server, which may end a stream that is cancelled once more."""

    def __init__(self, path, report):
        self.closed = False
        bridges = pathlib.Path(path).parent.name == BRIDGES
        self._once = AnsweredOnce(path, (lambda wrong: report("twice", text=wrong)) if bridges else None)
        self.channel = grpc.insecure_channel(
            self._once.target, options=[("grpc.use_local_subchannel_pool", 1),
                                     ("grpc.max_receive_message_length", 16 << 20),
                                     ("grpc.default_authority", "localhost")])

    def connect(self, seconds):
        grpc.channel_ready_future(self.channel).result(timeout=seconds)

    def call(self, method, request, answer, timeout=None):
        return self.channel.unary_unary(
            DEVICE_PLUGIN + method, request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString)(request, timeout=timeout)

    def lists(self):
        return self.channel.unary_stream(
            DEVICE_PLUGIN + "ListAndWatch",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=deviceplugin.ListAndWatchResponse.FromString)(
                deviceplugin.Empty())

    def close(self):
        self.channel.close()
        self._once.close()


class _Endpoint:
    """What a resource's calls go to; one from the checkpoint is stopped from the start."""

    def __init__(self, resource, client=None, options=None):
        self.resource = resource
        self.client = client
        self.options = options or deviceplugin.DevicePluginOptions()
        self.stop_time = None if client else time.monotonic()

    def call(self, method, request, answer, timeout=None):
        if self.stop_time is not None:
            raise AllocateError(f"endpoint {self.resource} has been stopped")
        return self.client.call(method, request, answer, timeout)


class DeviceManager:
    """`report(kind, **what)` tells the test; `active_pods()` are the uids whose devices count;
    `sources_ready()` as the kubelet's."""

    def __init__(self, settings, report, active_pods, sources_ready):
        self._settings = settings
        self._directory = pathlib.Path(settings["plugin_dir"])
        self._report = report
        self._active_pods = active_pods
        self._sources_ready = sources_ready
        self._random = random.Random(settings["seed"])
        self._running = set()  # (pod uid, container) that ran when the kubelet started
        self._lock = threading.RLock()
        self._clients = {}  # by resource
        self._endpoints = {}
        self._healthy = {}
        self._unhealthy = {}
        self._devices = {}  # {resource: {id: Device}}
        self._entries = {}  # {(pod uid, container, resource): Entry}
        self._allocated = collections.defaultdict(set)
        self._reusable = (None, collections.defaultdict(set))  # of the pod in work
        self._server = None
        self._front = None

    # ---- start ----

    def start(self, running):
        self._running = running
        self._restore()
        self._clean()
        self._listen()

    def _restore(self):
        try:
            entries, registered = kubelet_checkpoint.read(self._directory)
        except FileNotFoundError:
            return
        except ValueError as error:
            self._report("log", text=f"Continue after failing to read checkpoint file: {error}")
            return
        self._entries = {(one.pod_uid, one.container, one.resource): one for one in entries}
        self._count_allocated()
        for resource in registered:
            self._healthy[resource] = set()
            self._unhealthy[resource] = set()
            self._endpoints[resource] = _Endpoint(resource)

    def _clean(self):
        self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        for path in self._directory.iterdir():
            if path.name != kubelet_checkpoint.NAME and (path.is_symlink() or not path.is_dir()):
                path.unlink()

    def _listen(self):
        name = f"scripted-kubelet-{os.getpid()}"
        self._server = grpc.server(ThreadPoolExecutor(max_workers=64))
        handler = grpc.unary_unary_rpc_method_handler(
            self._register, deviceplugin.RegisterRequest.FromString,
            lambda message: message.SerializeToString())
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            REGISTRATION.strip("/"), {"Register": handler})])
        assert self._server.add_insecure_port(f"unix-abstract:{name}")
        self._server.start()
        if self._settings["before_socket_s"]:
            self._settings["wait_before_socket"]()
        self._front = _Front(self._directory / SOCKET, self._settings["listen_gap_s"],
                             f"\0{name}", self._report)
        self._report("socket", t=self._front.bound_at)

    # ---- registration ----

    def _register(self, request, context):
        resource = request.resource_name
        self._report("register", resource=resource, endpoint=request.endpoint)
        try:
            client = self._connected(request)
        except AllocateError as error:
            self._report("register_refused", resource=resource, message=str(error))
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        threading.Thread(target=self._watch, args=(resource, client), daemon=True).start()
        return deviceplugin.Empty()

    def _connected(self, request):
        resource = request.resource_name
        if request.version != _VERSION:
            raise AllocateError(f'requested API version "{request.version}" is not supported by '
                                f'kubelet. Supported version is ["{_VERSION}"]')
        if not is_extended_resource(resource):
            raise AllocateError(f'the ResourceName "{resource}" is invalid')
        client = _Client(os.path.normpath(f"{self._directory}/{request.endpoint}"),
                         self._report)
        with self._lock:
            self._clients[resource] = client  # the old one is not stopped
        try:
            client.connect(self._settings["dial_s"])
        except grpc.FutureTimeoutError as error:
            self._forget(resource, client)
            raise AllocateError(
                "failed to dial device plugin: context deadline exceeded") from error
        try:
            options = client.call("GetDevicePluginOptions", deviceplugin.Empty(),
                                  deviceplugin.DevicePluginOptions)
        except grpc.RpcError as error:
            self._forget(resource, client)
            raise AllocateError(
                f"failed to get device plugin options: {go_error(error)}") from error
        with self._lock:
            self._endpoints[resource] = _Endpoint(resource, client, options)
        return client

    def _forget(self, resource, client):
        with self._lock:
            self._clients.pop(resource, None)
        client.close()

    def _watch(self, resource, client):
        """Until the stream ends; then whoever has the resource's name now is disconnected."""
        self._report("watching", resource=resource)
        try:
            for answer in client.lists():
                self._update(resource, client, answer.devices)
        except (grpc.RpcError, ValueError):  # ValueError: the channel was closed before the call
            pass
        self._disconnect(resource, client)
        self._report("ended", resource=resource)

    def _disconnect(self, resource, client):
        with self._lock:
            named = self._clients.pop(resource, None)
            if named is None:
                return
            named.closed = True
            self._unhealthy[resource] = (self._unhealthy.get(resource, set())
                                         | self._healthy.get(resource, set()))
            self._healthy[resource] = set()
            if resource in self._endpoints:
                self._endpoints[resource].stop_time = time.monotonic()
        self._report("disconnected", resource=resource, other=named is not client)
        named.close()

    def _update(self, resource, client, devices):
        with self._lock:
            if client.closed:
                return
            self._devices[resource] = {one.ID: one for one in devices}
            self._healthy[resource] = {one.ID for one in devices if one.health == _HEALTHY}
            self._unhealthy[resource] = {one.ID for one in devices if one.health != _HEALTHY}
            healthy, unhealthy = map(sorted, (self._healthy[resource], self._unhealthy[resource]))
            self._write()
        self._report("list", resource=resource, healthy=healthy, unhealthy=unhealthy)

    def _write(self):
        """The checkpoint; under the lock."""
        kubelet_checkpoint.write(self._directory, kubelet_checkpoint.encode(
            list(self._entries.values()),
            {resource: sorted(ids) for resource, ids in self._healthy.items()}))

    # ---- capacity ----

    def capacity_tick(self):
        """What each post of the node's status does: resources stopped for too long go."""
        with self._lock:
            gone = [resource for resource in set(self._healthy) | set(self._unhealthy)
                    if self._grace_over(self._endpoints.get(resource))]
            for resource in gone:
                for held in (self._endpoints, self._healthy, self._unhealthy):
                    held.pop(resource, None)
            if gone:
                self._write()
        for resource in gone:
            self._report("deleted", resource=resource)

    def _grace_over(self, endpoint):
        return endpoint is None or (
            endpoint.stop_time is not None
            and time.monotonic() - endpoint.stop_time > self._settings["stop_grace_s"])

    # ---- allocation ----

    def allocate_pod(self, pod):
        """Admission's part; AllocateError fails the pod."""
        for container in pod["init"]:
            self.allocate(pod, container, init=not container.get("sidecar"))
        for container in pod["containers"]:
            self.allocate(pod, container)

    def allocate(self, pod, container, init=False):
        with self._lock:
            if self._reusable[0] != pod["uid"]:
                self._reusable = (pod["uid"], collections.defaultdict(set))
            reusable = self._reusable[1]
            self._collect_garbage(container, pod["uid"])
        changed = False
        for resource, required in container["limits"].items():
            if self._is_plugin_resource(resource):
                changed |= self._allocate_one(pod["uid"], container["name"], resource, required,
                                              reusable)
        with self._lock:
            for resource in container["limits"]:
                held = self._held(pod["uid"], container["name"], resource)
                if init:
                    reusable[resource] |= held
                else:
                    reusable[resource] -= held
            if changed:
                self._write()

    def _is_plugin_resource(self, resource):
        with self._lock:
            return (resource in self._healthy or resource in self._unhealthy
                    or any(key[2] == resource for key in self._entries))

    def _collect_garbage(self, container, pod_uid):
        if not any(map(self._is_plugin_resource, container["limits"])) or not self._sources_ready():
            return
        active = self._active_pods() | {pod_uid}
        self._entries = {key: one for key, one in self._entries.items() if key[0] in active}
        self._count_allocated()

    def _count_allocated(self):
        self._allocated = collections.defaultdict(set)
        for entry in self._entries.values():
            self._allocated[entry.resource] |= entry.all_ids()

    def _held(self, pod_uid, container, resource):
        entry = self._entries.get((pod_uid, container, resource))
        return entry.all_ids() if entry else set()

    def _allocate_one(self, pod_uid, container, resource, required, reusable):
        """Whether anything new was allocated."""
        with self._lock:
            needed, taken = self._needed(pod_uid, container, resource, required, reusable)
            endpoint = self._endpoints.get(resource)
        if needed == 0 and not taken:
            return False
        ids = taken | (self._choose(resource, endpoint, needed, taken) if needed else set())
        with self._lock:
            self._allocated[resource] |= ids
            endpoint = self._endpoints.get(resource)
        try:
            if endpoint is None:
                raise AllocateError(f"unknown Device Plugin {resource}")
            response = self._plugin_allocate(endpoint, ids)
        except AllocateError:
            with self._lock:
                self._count_allocated()
            raise
        with self._lock:
            self._entries[pod_uid, container, resource] = Entry(
                pod_uid, container, resource, self._by_node(resource, ids), response)
        return True

    def _needed(self, pod_uid, container, resource, required, reusable):
        """(how many are still to be chosen, which are taken from the pod's init containers)."""
        held = self._held(pod_uid, container, resource)
        needed = required - len(held)
        if held and needed:
            raise AllocateError(f'pod "{pod_uid}" container "{container}" changed request for '
                                f'resource "{resource}" from {len(held)} to {required}')
        if not self._sources_ready() and (pod_uid, container) in self._running:
            return 0, set()
        if resource not in self._healthy:
            raise AllocateError(f"cannot allocate unregistered device {resource}")
        healthy = self._healthy[resource]
        if not healthy:
            raise AllocateError(
                f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if not held <= healthy:
            raise AllocateError("previously allocated devices are no longer healthy; "
                                f"cannot allocate unhealthy devices {resource}")
        if needed == 0:
            return 0, set()
        taken = set(list(reusable[resource])[:needed])
        needed -= len(taken)
        available = healthy - self._allocated[resource]
        if len(available) < needed:
            raise AllocateError(f"requested number of devices unavailable for {resource}. "
                                f"Requested: {needed}, Available: {len(available)}")
        return needed, taken

    def _choose(self, resource, endpoint, needed, taken):
        """What the plugin prefers first, then any."""
        with self._lock:
            available = sorted(self._healthy[resource] - self._allocated[resource])
        self._random.shuffle(available)
        preferred = self._preferred(resource, endpoint, available, taken, needed + len(taken))
        # Those that were not available are dropped without a word.
        ordered = [one for one in preferred if one in available and one not in taken]
        ordered += [one for one in available if one not in ordered]
        return set(ordered[:needed])

    def _preferred(self, resource, endpoint, available, taken, size):
        if endpoint is None:
            raise AllocateError(
                f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.options.get_preferred_allocation_available:
            return []
        request = deviceplugin.PreferredAllocationRequest()
        request.container_requests.add(available_deviceIDs=available,
                                       must_include_deviceIDs=sorted(taken), allocation_size=size)
        try:
            answer = endpoint.call("GetPreferredAllocation", request,
                                   deviceplugin.PreferredAllocationResponse)
        except grpc.RpcError as error:
            raise AllocateError("device plugin GetPreferredAllocation rpc failed with err: "
                                + go_error(error)) from error
        return [one for each in answer.container_responses[:1] for one in each.deviceIDs]

    def _plugin_allocate(self, endpoint, ids):
        """The one container's response as bytes."""
        request = deviceplugin.AllocateRequest()
        request.container_requests.add(devices_ids=sorted(ids))
        began = time.monotonic()
        try:
            answer = endpoint.call("Allocate", request, deviceplugin.AllocateResponse)
        except grpc.RpcError as error:
            raise AllocateError(go_error(error)) from error
        self._report("allocate", resource=endpoint.resource, ids=sorted(ids),
                     seconds=time.monotonic() - began)
        if not answer.container_responses:
            raise AllocateError(f"no containers return in allocation response {answer}")
        return answer.container_responses[0].SerializeToString()

    def _by_node(self, resource, ids):
        nodes = collections.defaultdict(list)
        for one in sorted(ids):
            device = self._devices.get(resource, {}).get(one)
            listed = [node.ID for node in device.topology.nodes] if device is not None else []
            for node in listed or [_NO_NODE]:
                nodes[node].append(one)
        return dict(nodes)

    # ---- containers ----

    def options(self, pod, container):
        """What each create of the container gets from its plugins: ContainerAllocateResponses.

        AllocateError: the container cannot be configured.
        """
        uid, name = pod["uid"], container["name"]
        lacking = False
        for resource, limit in container["limits"].items():
            if limit and self._is_plugin_resource(resource):
                self._prestart(uid, name, resource)
                with self._lock:
                    lacking |= ((uid, name, resource) not in self._entries
                                and uid in self._active_pods())
        if lacking:
            self.allocate(pod, container)
        with self._lock:
            return [deviceplugin.ContainerAllocateResponse.FromString(entry.response)
                    for key, entry in self._entries.items() if key[:2] == (uid, name)]

    def _prestart(self, pod_uid, container, resource):
        with self._lock:
            endpoint = self._endpoints.get(resource)
            held = self._held(pod_uid, container, resource)
        if endpoint is None:
            raise AllocateError(
                f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.options.pre_start_required:
            return
        if not held:
            raise AllocateError(f"no devices found allocated in local cache for pod {pod_uid}, "
                                f"container {container}, resource {resource}")
        try:
            endpoint.call("PreStartContainer",
                          deviceplugin.PreStartContainerRequest(devices_ids=sorted(held)),
                          deviceplugin.PreStartContainerResponse, _PRESTART_S)
        except grpc.RpcError as error:
            raise AllocateError("device plugin PreStartContainer rpc failed with err: "
                                + go_error(error)) from error
