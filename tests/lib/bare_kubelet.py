"""Of a kubelet only what talks with device plugins, each step in a test's hands.

Registration on kubelet.sock; a plugin that registers is dialled, asked for its options and for its
list, and after each list the checkpoint is renamed in, as by the kubelet. All that happens goes
into `events`, in its order.
"""

import concurrent.futures
import os
import pathlib
import threading
import time
import typing

import grpc

from protos import DEVICE_PLUGIN, REGISTRATION, deviceplugin
from waiting import GENEROUS_S, wait_until

CHECKPOINT = "kubelet_internal_checkpoint"


class Event(typing.NamedTuple):
    what: str  # "register", "options", "list", "end"
    resource: str
    detail: object
    time: float


class _Client:
    """The kubelet's connection to one plugin."""

    def __init__(self, kubelet, path, resource):
        self.kubelet = kubelet
        self.resource = resource
        self.lists = []
        self.ended = threading.Event()
        # Its limit for messages is gRPC's default, 4 MiB, as a kubelet's.
        options = [("grpc.use_local_subchannel_pool", 1)]
        if kubelet.message_bytes_max is not None:
            options.append(("grpc.max_receive_message_length", kubelet.message_bytes_max))
        self.channel = grpc.insecure_channel(f"unix:{path}", options=options)
        self._stream = None

    def call(self, method, request, timeout=GENEROUS_S):
        answers = {"GetDevicePluginOptions": deviceplugin.DevicePluginOptions,
                   "Allocate": deviceplugin.AllocateResponse,
                   "GetPreferredAllocation": deviceplugin.PreferredAllocationResponse,
                   "PreStartContainer": deviceplugin.PreStartContainerResponse}
        return self.channel.unary_unary(
            DEVICE_PLUGIN + method, request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answers[method].FromString)(request, timeout=timeout)

    def watch(self):
        self._stream = self.channel.unary_stream(
            DEVICE_PLUGIN + "ListAndWatch",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=deviceplugin.ListAndWatchResponse.FromString)(
                deviceplugin.Empty())
        threading.Thread(target=self._read, args=(self._stream,), daemon=True).start()

    def _read(self, stream):
        try:
            for message in stream:
                self.lists.append(message)
                self.kubelet.note("list", self.resource, message)
                self.kubelet.store()
        except grpc.RpcError:
            pass
        self.kubelet.note("end", self.resource, self)
        self.ended.set()

    def end_stream(self):
        self._stream.cancel()

    def close(self):
        self.channel.close()


class BareKubelet:
    """`on_register(request, context)` runs before anything else of a Register; it may abort.
    `watches`: whether ListAndWatch is called; `stores`: whether checkpoints are written;
    `message_bytes_max`: the largest message it takes from a plugin, None: as a kubelet."""

    def __init__(self, directory, on_register=None, watches=True, stores=True,
                 message_bytes_max=None):
        self.directory = pathlib.Path(directory)
        self.socket = self.directory / "kubelet.sock"
        self.on_register = on_register
        self.watches = watches
        self.stores = stores
        self.message_bytes_max = message_bytes_max
        self.events = []
        self.clients = {}
        self.appeared_at = None
        self._server = None
        self._lock = threading.Lock()

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        for entry in self.directory.iterdir():
            if not entry.is_dir() and entry.name != CHECKPOINT:
                entry.unlink()
        self.serve(self.socket)

    def serve(self, path):
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=16))
        handler = grpc.unary_unary_rpc_method_handler(
            self._register, deviceplugin.RegisterRequest.FromString,
            lambda message: message.SerializeToString())
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            REGISTRATION.strip("/"), {"Register": handler})])
        self.appeared_at = time.monotonic()
        assert self._server.add_insecure_port(f"unix:{path}")
        self._server.start()

    def stop(self):
        """As when it is killed: all its connections end."""
        if self._server is None:
            return
        with self._lock:
            self.stores = False
        self._server.stop(grace=None).wait(GENEROUS_S)
        self._server = None
        for client in self.clients.values():
            client.close()

    def note(self, what, resource, detail=None):
        self.events.append(Event(what, resource, detail, time.monotonic()))

    def store(self):
        with self._lock:
            if self.stores:
                temporary = self.directory / f".{CHECKPOINT}"
                temporary.write_text("{}")
                os.replace(temporary, self.directory / CHECKPOINT)

    def _register(self, request, context):
        self.note("register", request.resource_name, request)
        if self.on_register:
            self.on_register(request, context)
        client = _Client(self, self.directory / request.endpoint, request.resource_name)
        options = client.call("GetDevicePluginOptions", deviceplugin.Empty())
        self.note("options", request.resource_name, options)
        self.clients[request.resource_name] = client
        if self.watches:
            client.watch()
        return deviceplugin.Empty()

    # ---- what a test asks ----

    def of(self, what, resource=None):
        return [event for event in list(self.events)
                if event.what == what and resource in (None, event.resource)]

    def wait(self, what, resource=None, count=1):
        return wait_until(lambda: len(found := self.of(what, resource)) >= count and found,
                          f"{count} of {what} {resource or ''}; came: "
                          f"{[event[:2] for event in self.events]}")

    def health(self, resource):
        """The last list as {id: health}."""
        lists = self.of("list", resource)
        return {one.ID: one.health for one in lists[-1].detail.devices} if lists else None

    def wait_health(self, resource, health):
        wait_until(lambda: self.health(resource) == health,
                   f"{resource} is {health}, was {self.health(resource)}")
