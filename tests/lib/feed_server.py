"""The daemon's end of the feed, scripted: the bridge under test is its client.

    feed = FeedServer(socket); feed.start()
    feed.show({"vendor.com/gpu": Shown(["g0", "g1"])})     # the whole, to whoever watches
    feed.wait_report("vendor.com/gpu", lambda report: report.registered)
"""

import concurrent.futures
import functools
import pathlib
import queue
import threading
import time

import grpc

from protos import FEED, bridge
from waiting import GENEROUS_S, wait_until


class Shown:
    """`devices`: ids, or {id: healthy}; `held`, `numa` ({id: nodes}), `lost` as in the feed."""

    def __init__(self, devices, version=1, held=(), numa=None, mask_end_ms=0, lost=0, layout=0):
        self.devices = devices if isinstance(devices, dict) else dict.fromkeys(devices, True)
        self.version = version
        self.held = set(held)
        self.numa = numa or {}
        self.mask_end_ms = mask_end_ms
        self.lost = lost
        self.layout = layout

    def message(self, name, with_list=True):
        message = bridge.Resource(name=name, version=self.version, mask_end_ms=self.mask_end_ms,
                                  lost=self.lost, layout=self.layout)
        if with_list:
            message.list.SetInParent()
            message.list.devices.extend(
                bridge.Device(id=one, healthy=healthy, numa_nodes=self.numa.get(one, ()),
                              held=one in self.held)
                for one, healthy in self.devices.items())
        return message


class FeedServer:
    """`prefer`: a handler(request, context) -> ids; None: nothing is preferred. `drivers`: {name: services}
    of those that serve; None: of a release that knows of none. `moved`: {name: since when} of drivers that have moved. `claims`: a handler(method, request,
    context) -> [ClaimAnswer]. `health`: [DeviceHealth] of the feed that are known; None: of a release that
    knows of none."""

    def __init__(self, socket, mask_ms=60_000, prefer=None, watch_fails=None):
        self.socket = pathlib.Path(socket)
        self.mask_ms = mask_ms
        self.prefer = prefer
        self.watch_fails = watch_fails
        self.resources = {}
        self.drivers = None
        self.moved = {}
        self.claims = None
        self.health = []
        self.asked = []  # (method, claims' uids) that came
        self.workers = 16  # calls that it serves at once, streams included
        self.reports = []
        self.prefers = []
        self.watches = 0
        self.requests = []
        self._streams = set()
        self._driver_streams = set()
        self._health_streams = set()
        self._server = None
        self._lock = threading.Lock()

    def start(self):
        self.socket.parent.mkdir(exist_ok=True)
        self._server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers=self.workers),
            options=[("grpc.http2.max_ping_strikes", 0),  # the bridge asks whether it lives
                     ("grpc.max_send_message_length", -1),
                     ("grpc.max_receive_message_length", -1)])
        handlers = {
            "Watch": grpc.unary_stream_rpc_method_handler(
                self._watch, bridge.WatchRequest.FromString,
                lambda message: message.SerializeToString()),
            "Report": grpc.unary_unary_rpc_method_handler(
                self._report, bridge.ReportRequest.FromString,
                lambda message: message.SerializeToString()),
            "Prefer": grpc.unary_unary_rpc_method_handler(
                self._prefer, bridge.PreferRequest.FromString,
                lambda message: message.SerializeToString()),
        }
        for method in "PrepareClaims", "UnprepareClaims":
            handlers[method] = grpc.unary_unary_rpc_method_handler(
                functools.partial(self._claims, method), bridge.ClaimsRequest.FromString,
                lambda message: message.SerializeToString())
        if self.drivers is not None:
            handlers["WatchDrivers"] = grpc.unary_stream_rpc_method_handler(
                self._watch_drivers, bridge.WatchDriversRequest.FromString,
                lambda message: message.SerializeToString())
        if self.health is not None:
            handlers["WatchHealth"] = grpc.unary_stream_rpc_method_handler(
                self._watch_health, bridge.WatchHealthRequest.FromString,
                lambda message: message.SerializeToString())
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(FEED.strip("/"), handlers)])
        assert self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()

    def stop(self):
        """Connections are cut, as when the daemon is killed."""
        if self._server is None:
            return
        for stream in [*self._streams, *self._driver_streams, *self._health_streams]:
            stream.put(None)
        self._server.stop(grace=None).wait(GENEROUS_S)
        self._server = None

    def show(self, resources):
        with self._lock:
            self.resources = resources
            for stream in list(self._streams):
                stream.put(self._message())

    def show_drivers(self, drivers, moved=None):
        with self._lock:
            self.drivers, self.moved = drivers, moved or {}
            for stream in list(self._driver_streams):
                stream.put(self._drivers_message())

    def say_health(self, driver, *healths, said_ms=None):
        """dra_health's DeviceHealth, or their bytes, of a driver; to whoever watches, and who will."""
        if said_ms is None:
            said_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        words = [bridge.DeviceHealth(
            driver=driver, said_ms=said_ms,
            health=one if isinstance(one, bytes) else one.SerializeToString()) for one in healths]
        with self._lock:
            self.health = [*self.health, *words]
            for stream in list(self._health_streams):
                stream.put(bridge.WatchHealthResponse(devices=words))

    def _drivers_message(self):
        """One whose services are None does not serve."""
        return bridge.WatchDriversResponse(drivers=[
            bridge.Driver(name=name, services=self.drivers[name] or (), serves=bool(self.drivers[name]),
                          moved=name in self.moved, moved_ms=self.moved.get(name, 0))
            for name in sorted(self.drivers)])

    def send(self, message):
        """Any message, to whoever watches."""
        with self._lock:
            for stream in list(self._streams):
                stream.put(message)

    def _message(self):
        return bridge.WatchResponse(
            daemon_version="scripted", mask_ms=self.mask_ms,
            resources=[self.resources[name].message(name) for name in sorted(self.resources)])

    def wait_watched(self, count=1):
        wait_until(lambda: self.watches >= count, f"the bridge has called Watch {count} times")

    def last_of(self, resource):
        """What the last Report says of it; None."""
        reports = self.reports[-1:]
        return next((one for report in reports for one in report.resources
                     if one.name == resource), None)

    def wait_report(self, resource, condition=lambda report: report.registered):
        return wait_until(lambda: (one := self.last_of(resource)) and condition(one) and one,
                          f"a report of {resource}; the last: {self.reports[-1:]}")

    def _watch(self, request, context):
        self.watches += 1
        self.requests.append(request)
        if self.watch_fails:
            context.abort(*self.watch_fails)
        stream = queue.SimpleQueue()
        context.add_callback(lambda: stream.put(None))
        with self._lock:
            self._streams.add(stream)
            stream.put(self._message())
        try:
            while (message := stream.get()) is not None:
                yield message
        finally:
            self._streams.discard(stream)

    def _watch_drivers(self, _request, context):
        stream = queue.SimpleQueue()
        context.add_callback(lambda: stream.put(None))
        with self._lock:
            self._driver_streams.add(stream)
            stream.put(self._drivers_message())
        try:
            while (message := stream.get()) is not None:
                yield message
        finally:
            self._driver_streams.discard(stream)

    def _watch_health(self, _request, context):
        stream = queue.SimpleQueue()
        context.add_callback(lambda: stream.put(None))
        with self._lock:
            self._health_streams.add(stream)
            stream.put(bridge.WatchHealthResponse(devices=self.health))
        try:
            while (message := stream.get()) is not None:
                yield message
        finally:
            self._health_streams.discard(stream)

    def _claims(self, method, request, context):
        self.asked.append((method, [one.uid for one in request.claims]))
        return bridge.ClaimsResponse(answers=self.claims(method, request, context))

    def _report(self, request, _context):
        self.reports.append(request)
        return bridge.ReportResponse()

    def _prefer(self, request, context):
        self.prefers.append(request)
        return bridge.PreferResponse(ids=self.prefer(request, context) if self.prefer else ())
