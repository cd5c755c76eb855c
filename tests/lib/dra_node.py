"""A daemon, a bridge, a kubelet and DRA drivers, all that `cri-device-shimctl drivers` and `claims` tell of.

    node = DraNode(directory, shim, closing); node.driver("gpu.example.com"); node.kubelet.prepare(...)
"""

from bridge_process import Bridge
from criclient import Client
from dra_driver import Driver
from kubelet_drivers import KubeletDrivers


class DraNode:
    def __init__(self, directory, shim, closing):
        self.directory, self.shim, self._closing = directory, shim, closing
        shim.wait_control()
        self.kubelet = closing(KubeletDrivers(directory / "kubelets_registry"))
        self.kubelet.start()
        self.bridge = closing(Bridge(directory, socket=str(shim.feed)))
        self.bridge.start()
        self.client = closing(Client(shim.socket))

    def driver(self, name, registered=True, **settings):
        """One that the kubelet has; `registered` False: that the daemon has."""
        one = self._closing(Driver(self.shim.registry_dir, self.directory / "plugins", name, **settings))
        one.start()
        one.wait_registered()
        if registered:
            self.kubelet.wait_registered(name)
        return one

    def use(self, pod_name, container, *cdi_names):
        """A container of a pod, made with these CDI names; the pod."""
        pod = self.client.run_pod(pod_name)
        request = self.client.create_request(pod, container)
        for name in cdi_names:
            request.config.CDI_devices.add(name=name)
        made = self.client.CreateContainer(request)
        self.client.StartContainer(container_id=made.container_id)
        return pod
