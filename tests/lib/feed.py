"""The daemon's feed (cri-proto/bridge_v1.proto) seen by a bridge, or by a test in its place.

    feed = Feed(shim.feed)
    watcher = feed.watch()
    watcher.wait(lambda shown: "vendor.com/gpu" in shown)   # {resource: Shown}
    feed.report(kubelet_pid, watcher.shown, stored=True)
    feed.prefer("vendor.com/gpu", ["g0", "g1"], [], 1)
"""

import dataclasses
import sys
import threading

import grpc

import nursery
from criclient import MESSAGE_BYTES_MAX
from protos import FEED, bridge
from waiting import GENEROUS_S, wait_until


@dataclasses.dataclass
class Shown:
    """A resource as it is to be shown; `devices`: {id: Device message}."""

    version: int
    mask_end_ms: int
    devices: dict

    def health(self):
        return {one: device.healthy for one, device in self.devices.items()}


class Watcher:
    """One open Watch; `messages` are all that came, `shown` is what they add up to."""

    def __init__(self, call):
        self.call = call
        self.messages = []
        self.shown = {}
        self._layouts = {}
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        try:
            for message in self.call:
                self.shown = {one.name: self._take(one) for one in message.resources}
                self.messages.append(message)
        except grpc.RpcError:
            pass  # call.code() says why
        self.over.set()

    def _take(self, resource):
        if resource.HasField("list"):
            devices = {device.id: device for device in resource.list.devices}
            self._layouts[resource.name] = resource.layout, list(devices)
        else:
            devices = dict(self.shown[resource.name].devices)
        for change in resource.changes:
            layout, ids = self._layouts[resource.name]
            assert resource.layout == layout, "changes of another list"
            device = bridge.Device()
            device.CopyFrom(devices[ids[change.place]])
            device.healthy, device.held = change.healthy, change.held
            devices[ids[change.place]] = device
        return Shown(resource.version, resource.mask_end_ms, devices)

    def wait(self, condition, what="the feed shows it"):
        """The first truthy condition({resource: Shown})."""
        return wait_until(lambda: self.messages and condition(self.shown), what)

    def wait_over(self):
        assert self.over.wait(GENEROUS_S), "the feed has ended the stream"

    def stop(self):
        self.call.cancel()
        self.wait_over()


class Feed:
    """A connection to the feed."""

    def __init__(self, path):
        self.path = path
        self._channel = grpc.insecure_channel(
            f"unix:{path}", options=[("grpc.use_local_subchannel_pool", 1),
                                     ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)])

    def _method(self, kind, name, response):
        return kind(f"{FEED}{name}", request_serializer=lambda one: one.SerializeToString(),
                    response_deserializer=response.FromString)

    def begin_watch(self, version="test", takes_changes=False):
        """The bare call: next() reads one message, and nothing is read before."""
        call = self._method(self._channel.unary_stream, "Watch", bridge.WatchResponse)
        return call(bridge.WatchRequest(bridge_version=version, takes_changes=takes_changes),
                    wait_for_ready=True)

    def watch(self, version="test", takes_changes=False):
        return Watcher(self.begin_watch(version, takes_changes))

    def report(self, kubelet_pid, shown, **state):
        """`state`: registered, stored, version, of all; by default registered with what was
        shown."""
        resources = [bridge.ResourceReport(**{"name": name, "registered": True,
                                              "version": one.version, **state})
                     for name, one in shown.items()]
        call = self._method(self._channel.unary_unary, "Report", bridge.ReportResponse)
        call(bridge.ReportRequest(kubelet_pid=kubelet_pid, resources=resources),
             timeout=GENEROUS_S)

    def begin_prefer(self, resource, available, must_include, size, timeout=GENEROUS_S):
        call = self._method(self._channel.unary_unary, "Prefer", bridge.PreferResponse)
        return call.future(bridge.PreferRequest(resource=resource, available=available,
                                                must_include=must_include, size=size),
                           timeout=timeout)

    def claims(self, method, driver, uids):
        """PrepareClaims or UnprepareClaims: the answers."""
        request = bridge.ClaimsRequest(driver=driver, claims=[
            bridge.Claim(namespace="default", uid=one, name=one) for one in uids])
        call = self._method(self._channel.unary_unary, method, bridge.ClaimsResponse)
        return call(request, timeout=GENEROUS_S).answers

    def prefer(self, *question):
        return list(self.begin_prefer(*question).result().ids)

    def close(self):
        self._channel.close()


class FeedProcess:
    """A bridge in a process of its own, that reports everything stored by `kubelet_pid`."""

    def __init__(self, path, kubelet_pid):
        self._settings = [str(path), str(kubelet_pid)]
        self._process = None

    def start(self):
        """Returns when it has reported."""
        self._process = nursery.start(__file__, *self._settings)
        assert self._process.stdout.readline() == "reported\n", "the bridge did not report"

    @property
    def pid(self):
        return self._process.pid

    def kill(self):
        self._process.kill()
        self._process.wait(GENEROUS_S)
        self._process.stdin.close()
        self._process.stdout.close()

    stop = kill


def main():
    feed = Feed(sys.argv[1])
    watcher = feed.watch()
    watcher.wait(lambda shown: True)
    feed.report(int(sys.argv[2]), watcher.shown, stored=True)
    print("reported", flush=True)
    sys.stdin.read()  # until the test is gone
