"""A device plugin that does what a test tells it, in the test's process or in one of its own.

    plugin = Plugin(plugin_dir, "vendor.com/gpu", ["g0", "g1"])
    plugin.start()                      # serves and registers
    plugin.on_allocate = never          # or any handler(request, context) -> response or bytes
    plugin.set_devices({"g0": False})   # ListAndWatch sends the whole list again
    plugin.calls_of("Allocate")

A PluginProcess is the same in a process of its own, to be killed, or that dies inside Allocate.
"""

import concurrent.futures
import ctypes
import json
import os
import pathlib
import queue
import sys
import threading

import grpc

import nursery
from protos import DEVICE_PLUGIN, REGISTRATION, deviceplugin
from waiting import GENEROUS_S, wait_until


def never(_request, context):
    """A handler that does not answer until the caller gives up."""
    over = threading.Event()
    context.add_callback(over.set)
    over.wait()
    return b""


def late(release):
    """A handler that answers as usual once the threading.Event `release` is set."""
    def handler(request, _context):
        release.wait(GENEROUS_S)
        return allocate_answer(request)

    return handler


def failing(code, details):
    def handler(_request, context):
        context.abort(code, details)

    return handler


def answering(response):
    """A handler with a fixed answer: a message, or bytes that need not be one."""
    return lambda _request, _context: response


def dying(_request, _context):
    """Only for a PluginProcess: its process is gone in the middle of the call."""
    os._exit(1)


def allocate_answer(request, **options):
    """An AllocateResponse whose env names the ids; `options`: more fields of its one container."""
    ids = ",".join(request.container_requests[0].devices_ids)
    one = deviceplugin.ContainerAllocateResponse(**options)
    one.envs["PLUGIN_DEVICES"] = ids
    return deviceplugin.AllocateResponse(container_responses=[one])


def _serialize(message):
    return message if isinstance(message, bytes) else message.SerializeToString()


def register(plugin_dir, resource, endpoint, version="v1beta1", timeout=GENEROUS_S):
    """One Register call on the shim, as a plugin makes it; grpc.RpcError if it is refused."""
    with grpc.insecure_channel(f"unix:{plugin_dir}/kubelet.sock",
                               options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary(f"{REGISTRATION}Register", request_serializer=_serialize,
                                   response_deserializer=deviceplugin.Empty.FromString)
        call(deviceplugin.RegisterRequest(version=version, endpoint=endpoint,
                                          resource_name=resource), timeout=timeout)


class Plugin:
    """`devices`: ids, or {id: healthy}; `numa`: {id: node} for those that have one."""

    def __init__(self, plugin_dir, resource, devices, endpoint=None, prestart=False, prefer=None,
                 numa=None):
        self.plugin_dir = pathlib.Path(plugin_dir)
        self.resource = resource
        self.endpoint = endpoint or f"{resource.replace('/', '_')}.sock"
        self.numa = numa or {}
        self.devices = self._device_map(devices)
        self.calls = []
        self.on_allocate = lambda request, _context: allocate_answer(request)
        self.on_prestart = answering(deviceplugin.PreStartContainerResponse())
        self.prestart = prestart
        self.prefer = prefer  # prefer(available, must_include, size) -> ids
        self.on_prefer = self._prefer
        self.workers = 16  # calls that it serves at once, streams included
        self.compression = None  # of grpc's, where that makes a message smaller
        self.services = {}  # beside its own: {service: {method: handler}}; handlers are grpc's
        self._streams = set()
        self._server = None

    @staticmethod
    def _device_map(devices):
        return dict(devices) if isinstance(devices, dict) else {one: True for one in devices}

    def start(self):
        self.serve()
        self.register()

    def serve(self):
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=self.workers),
                                   compression=self.compression)
        unary = {"GetDevicePluginOptions": (self._options, deviceplugin.Empty),
                 "GetPreferredAllocation": (lambda *call: self.on_prefer(*call),
                                            deviceplugin.PreferredAllocationRequest),
                 "Allocate": (lambda *call: self.on_allocate(*call), deviceplugin.AllocateRequest),
                 "PreStartContainer": (lambda *call: self.on_prestart(*call),
                                       deviceplugin.PreStartContainerRequest)}
        handlers = {name: grpc.unary_unary_rpc_method_handler(
            self._recorded(name, behaviour), request.FromString, _serialize)
            for name, (behaviour, request) in unary.items()}
        handlers["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(
            self._recorded("ListAndWatch", self._list_and_watch), deviceplugin.Empty.FromString,
            _serialize)
        for service, served in {DEVICE_PLUGIN: handlers, **self.services}.items():
            self._server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(service.strip("/"), served)])
        path = self.plugin_dir / self.endpoint
        assert self._server.add_insecure_port(f"unix:{path}"), f"cannot listen on {path}"
        self._server.start()

    def register(self):
        register(self.plugin_dir, self.resource, self.endpoint)

    def stop(self):
        """Connections are cut and the socket is gone; start() brings it back."""
        if self._server is None:
            return
        for stream in list(self._streams):
            stream.put(None)
        self._server.stop(grace=None).wait(GENEROUS_S)
        self._server = None

    def set_devices(self, devices):
        self.devices = self._device_map(devices)
        self.send(self._list())

    def send(self, answer):
        """Any message, or bytes, as the next on ListAndWatch; None ends the stream."""
        wait_until(lambda: self._streams, "the shim has called ListAndWatch")
        for stream in list(self._streams):
            stream.put(answer)

    def stream_count(self):
        return len(self._streams)

    def calls_of(self, name):
        return [request for called, request in list(self.calls) if called == name]

    def wait_calls(self, name, count=1):
        return wait_until(lambda: len(found := self.calls_of(name)) >= count and found,
                          f"{count} calls of {name} reach the plugin {self.resource}")

    def allocated(self):
        """The ids of each Allocate so far."""
        return [list(request.container_requests[0].devices_ids)
                for request in self.calls_of("Allocate")]

    def _recorded(self, name, behaviour):
        def handler(request, context):
            self.calls.append((name, request))
            return behaviour(request, context)

        return handler

    def _options(self, _request, _context):
        return deviceplugin.DevicePluginOptions(
            pre_start_required=self.prestart,
            get_preferred_allocation_available=self.prefer is not None)

    def _prefer(self, request, _context):
        one = request.container_requests[0]
        ids = self.prefer(list(one.available_deviceIDs), list(one.must_include_deviceIDs),
                          one.allocation_size)
        return deviceplugin.PreferredAllocationResponse(container_responses=[
            deviceplugin.ContainerPreferredAllocationResponse(deviceIDs=ids)])

    def _list(self):
        answer = deviceplugin.ListAndWatchResponse()
        for one, healthy in self.devices.items():
            device = answer.devices.add(ID=one, health="Healthy" if healthy else "Unhealthy")
            if one in self.numa:
                device.topology.nodes.add(ID=self.numa[one])
        return answer

    def _list_and_watch(self, _request, context):
        stream = queue.SimpleQueue()
        context.add_callback(lambda: stream.put(None))
        self._streams.add(stream)
        try:
            yield self._list()
            while (answer := stream.get()) is not None:
                yield answer
        finally:
            self._streams.discard(stream)


class OneChannelPlugin(Plugin):
    """As those in Go are written: each ListAndWatch waits at one channel, which serves who came first, and none
    looks whether its caller is still there."""

    def __init__(self, *args):
        super().__init__(*args)
        self._changes, self._over = queue.Queue(), False

    def set_devices(self, devices):
        self.devices = self._device_map(devices)
        self._changes.put(None)

    def stop(self):
        self._over = True
        for _ in range(64):
            self._changes.put(None)
        super().stop()
        self._changes, self._over = queue.Queue(), False

    def _list_and_watch(self, _request, _context):
        changes = self._changes
        yield self._list()
        while changes.get() is None and not self._over:
            yield self._list()


class PluginProcess:
    """A plugin in a process of its own; `allocate` is "answer" or "die"; `uid`: the user that it is, which takes
    root, and whose capabilities it keeps."""

    def __init__(self, plugin_dir, resource, devices, allocate="answer", uid=None):
        self._settings = json.dumps([str(plugin_dir), resource, devices, allocate, uid])
        self._process = None

    def start(self):
        """Returns when it has registered."""
        self._process = nursery.start(__file__, self._settings)
        assert self._process.stdout.readline() == "registered\n", "the plugin did not register"

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        self._process.kill()
        self.wait()

    stop = kill

    def wait(self):
        self._process.wait(GENEROUS_S)
        self._process.stdin.close()
        self._process.stdout.close()


# capabilities(7)
_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP = 28, 1 << 2


def _become(uid):
    """As a unit with User= and AmbientCapabilities=: the directory is root's."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECUREBITS")
    os.setgroups([])
    os.setresuid(uid, uid, uid)


def main():
    plugin_dir, resource, devices, allocate, uid = json.loads(sys.argv[1])
    if uid is not None:
        _become(uid)
    plugin = Plugin(plugin_dir, resource, devices)
    if allocate == "die":
        plugin.on_allocate = dying
    plugin.start()
    print("registered", flush=True)
    sys.stdin.read()  # until the test is gone


if __name__ == "__main__":
    main()
