"""What must hold of the scripted kubelet's pods with plugins' devices, in front of the scripted runtime.

    watch = DeviceWatch({"vendor.com/gpu": ["gpu0", "gpu1"]}, runtime, kubelet)
    watch.boot = 1
    watch.violations += watch.check_container(request)     # of each CreateContainer
    watch.check_running(); watch.free("vendor.com/gpu")
"""

import json

from node_plugin import container_path, host_path
from protos import cri

_TOKEN = "devices.cri-device-shim/"


def _name(request):
    """Of the container that a CreateContainer makes, whatever its attempt."""
    return request.sandbox_config.metadata.uid, request.config.metadata.name


class DeviceWatch:
    """`resources`: {name: device ids}; ids are of all resources different ones. `boot`: which it is."""

    def __init__(self, resources, runtime, kubelet):
        self.resources = resources
        self.boot = 0
        self.violations = []
        self._runtime = runtime
        self._kubelet = kubelet
        self._paths = {container_path(one) for ids in resources.values() for one in ids}

    def check_container(self, request):
        """What is wrong with a container: it has exactly the devices of its tokens, as many as its
        pod wants, of this boot, and no other live container has one of them."""
        uid = request.sandbox_config.metadata.uid
        name = request.config.metadata.name
        where = f"{request.sandbox_config.metadata.name} {uid} {name}"
        pod = self._kubelet.all_pods.get(uid)
        if pod is None:
            return [f"{where}: of a pod that is not known"]
        wrong = []
        tokens = {key: json.loads(value) for key, value in request.config.annotations.items()
                  if key.startswith(_TOKEN)}
        tokens = {one["resource"]: one["ids"] for one in tokens.values() if "resource" in one}
        wanted = {key: count for key, count in pod.wanted(name).items() if key in self.resources}
        if {key: len(set(ids)) for key, ids in tokens.items()} != wanted:
            wrong.append(f"{where}: wants {wanted}, has the tokens {tokens}")
        ids = {one for each in tokens.values() for one in each}
        devices = {(one.container_path, one.host_path) for one in request.config.devices
                   if one.container_path in self._paths}
        if devices != {(container_path(one), host_path(one, self.boot)) for one in ids}:
            wrong.append(f"{where}: tokens {tokens}, devices {devices} in boot {self.boot}")
        for other in self._live_requests():
            theirs = _name(other)
            shared = {one.container_path for one in other.config.devices} & set(
                map(container_path, ids))
            if shared and theirs != (uid, name):
                wrong.append(f"{where}: {shared} are also in the live container {theirs}")
        return wrong

    def _live_requests(self):
        """Of what runs or will. One whose create the kubelet did not see answered, and which it made
        anew, it never starts."""
        containers = [(one, self._runtime.requests[key])
                      for key, one in list(self._runtime.state.containers.items())
                      if key in self._runtime.requests]
        newest = {}
        for _one, request in containers:
            newest[_name(request)] = max(newest.get(_name(request), 0),
                                         request.config.metadata.attempt)
        return [request for one, request in containers
                if one.state == cri.CONTAINER_RUNNING
                or (one.state == cri.CONTAINER_CREATED
                    and request.config.metadata.attempt == newest[_name(request)])]

    def check_running(self):
        """What is wrong with what runs now: every live pod's containers run, each once."""
        wrong = []
        for pod in self._kubelet.live():
            names = sorted(one.config.metadata.name
                           for one in self._runtime.running_in(pod.uid).values())
            if names != sorted(one["name"] for one in pod.spec["containers"]):
                wrong.append(f"{pod} runs {names}")
        devices = [one.container_path for request in self._runtime.running().values()
                   for one in request.config.devices]
        if len(devices) != len(set(devices)):
            wrong.append(f"two live containers have one device: {sorted(devices)}")
        return wrong

    def free(self, resource):
        """How many devices the scheduler sees free: of pods that are not gone, or whose end the
        kubelet has not reported, none."""
        used = sum(one["limits"].get(resource, 0) for pod in list(self._kubelet.pods.values())
                   if pod.phase not in ("Failed", "Succeeded")
                   for one in pod.spec["containers"])
        return len(self.resources[resource]) - used
