"""A container's first CreateContainer: the plugin is asked, its answer is made durable, and only
then does the request go on. Each is of a new pod, so nothing is cached.

What else takes time in it is measured beside it, in the same rounds and with the same client: the
way there and back (a create that names no device), the plugin's own Allocate, and an fsync of the
directory's file system. What is left is the shim's own.
"""

import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import grpc

import criclient
import plugin as plugins
from protos import DEVICE_PLUGIN, deviceplugin

RESOURCE = "bench.example/first"
# One for each create of a run; what a vanished pod held comes back with the runtime's next list.
DEVICES = [f"first{number:04}" for number in range(2000)]
CREATES_OF_A_ROUND = 16
LISTED_MAX = 50  # creates of all rounds that a list came between
ROW_BYTES = 4096  # about what SQLite's log grows by for one allocation


def microseconds(call):
    began = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - began) / 1e3


def _allocate(plugin_dir):
    """A function that calls the plugin's Allocate as the shim does."""
    path = pathlib.Path(plugin_dir) / f"{RESOURCE.replace('/', '_')}.sock"
    channel = grpc.insecure_channel(f"unix:{path}")
    call = channel.unary_unary(f"{DEVICE_PLUGIN}Allocate",
                               request_serializer=deviceplugin.AllocateRequest.SerializeToString,
                               response_deserializer=deviceplugin.AllocateResponse.FromString)
    request = deviceplugin.AllocateRequest()
    request.container_requests.add(devices_ids=DEVICES[:1])
    return lambda: call(request)


class FirstCreates:
    """On the shim that listens on `listen` and whose directories are in `own`."""

    def __init__(self, listen, own):
        self._own = pathlib.Path(own)
        self._plugin = plugins.PluginProcess(self._own / "plugins", RESOURCE, DEVICES)
        self._plugin.start()
        self._client = criclient.Client(listen)
        self._allocate = _allocate(self._own / "plugins")
        self._log = open(self._own / "state" / "bench-fsync", "wb", buffering=0)
        self._pods = 0
        self._listed = 0

    def stop(self):
        self._log.close()
        self._client.channel.close()
        self._plugin.kill()

    def _request(self, asks):
        self._pods += 1
        config = criclient.pod_config(
            f"bench{self._pods}", annotations={"devices.cri-device-shim/main": f"{RESOURCE}=1"}
            if asks else None)
        pod = criclient.Pod(f"bench-sandbox-{self._pods}", config)
        return self._client.create_request(pod, "main")

    def _fsync(self):
        self._log.write(bytes(ROW_BYTES))
        os.fdatasync(self._log.fileno())

    def _first(self):
        """One create, in µs. The runtime lists none of the pods, so that the shim refuses one that
        is just under way when it has asked for the list: that is none."""
        while True:
            request = self._request(True)
            try:
                return microseconds(lambda: self._client.CreateContainer(request))
            except grpc.RpcError as error:
                self._listed += 1
                if error.code() != grpc.StatusCode.FAILED_PRECONDITION or self._listed > LISTED_MAX:
                    raise

    def round(self):
        """The medians of one round, in µs."""
        runs = {"no device": [], "first create": [], "Allocate alone": [], "fdatasync alone": []}
        for _ in range(CREATES_OF_A_ROUND):
            plain = self._request(False)
            runs["no device"].append(microseconds(lambda: self._client.CreateContainer(plain)))
            runs["first create"].append(self._first())
            runs["Allocate alone"].append(microseconds(self._allocate))
            runs["fdatasync alone"].append(microseconds(self._fsync))
        figures = {name: statistics.median(values) for name, values in runs.items()}
        figures["the shim's own"] = (figures["first create"] - figures["no device"]
                                     - figures["Allocate alone"] - figures["fdatasync alone"])
        return figures
