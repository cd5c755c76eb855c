"""A ClaimsNode whose devices are a plugin's, published as those of a DRA driver.

    node = LiftNode(directory, seed); node.start()
    pod = node.come([node.claim(), node.claim(2)])   # LookupError: nothing is offered now
    node.settle()                                    # as ClaimsNode; and what is published is right then

Its scheduler allocates what slices offer, and by nothing else. A plugin's paths name the boot.
"""

import dataclasses
import json
import pathlib

from claims_node import NODE, ClaimsNode
from ctl import ctl
from kubelet_claims import PodClaim
from lift_scheduler import LiftScheduler, Request, Unallocatable
from node_plugin import NodePlugin, env_of, host_path
from waiting import wait_until

DRIVER = "plugins.cri-device-shim"
GPU = "vendor.com/gpu"
IDS = [f"gpu-{number}" for number in range(80)]  # two slices


@dataclasses.dataclass(frozen=True)
class LiftClaim(PodClaim):
    ids: tuple


class LiftNode(ClaimsNode):
    drivers = (DRIVER,)

    def __init__(self, directory, seed=""):
        super().__init__(directory, seed, resources=[{"name": GPU, "dra": True}], plugins={"hold": "250ms", "grace": "1h"},
                         control={"socket": str(pathlib.Path(directory) / "control.sock")})
        self.scheduler = LiftScheduler(self.server, DRIVER, NODE)
        self._allocated = {}  # as _claims, while their devices are nobody else's

    def _make_drivers(self, seed):
        return [NodePlugin(self.daemon.plugin_dir, GPU, IDS, log_path=self.directory / "plugin.log")]

    def _boot(self):
        super()._boot()
        self.parts["driver"][0].settings["boot"] = self.boot

    def up(self, part):
        """A kubelet that starts deletes the slices of its node."""
        super().up(part)
        with self.scheduling:
            for _, name in list(self.server.objects["resourceslices"]) if part == "kubelet" else ():
                self.server.remove("resourceslices", name)

    def publish(self):
        """That is the shim's to do."""
        wait_until(lambda: self.published() == {one: [] for one in IDS}, f"all is published: {self.published()}")

    def published(self):
        """{device: its taints' keys}, of pools that are whole."""
        return {device["name"]: [taint["key"] for taint in device.get("taints", ())]
                for _, slices in self.scheduler.pools() for one in slices for device in one["devices"]}

    # ---- claims and pods ----

    def claim(self, count=1):
        with self.scheduling:
            self._release()
            uid = f"c-{next(self._numbers)}"
            try:
                ids = self.scheduler.allocate(uid, Request("r", count))
            except Unallocatable as error:
                raise LookupError(str(error)) from error
            claim = LiftClaim(uid, self.drivers, tuple(ids))
            self._claims[uid] = self._allocated[uid] = claim
        return claim

    def _release(self):
        """What pods that are gone had: other claims may have it."""
        for uid in [uid for uid, one in self._allocated.items() if self._is_over(one)]:
            self.scheduler.release(uid)
            del self._allocated[uid]

    def forget(self):
        with self.scheduling:
            self._release()
        super().forget()

    # ---- what must hold ----

    @staticmethod
    def names_of(pod):
        return sorted(id_ for one in pod.claims for id_ in one.ids)

    def given(self, request):
        """Its devices of this boot, as the plugin gave them; anything else as it is."""
        config = request.config
        ids = [one for env in config.envs if env.key == env_of(GPU) for one in env.value.decode().split(",")]
        paths = [device.host_path for device in config.devices]
        if config.CDI_devices or sorted(paths) != sorted(host_path(one, self.boot) for one in ids):
            return [str(config)]
        return sorted(ids)

    def is_running(self, pod):
        """One container runs with its devices, of this boot or, made before, of another."""
        envs = [{one.key: one.value.decode() for one in request.config.envs} for request in self.runtime.running_in(pod.uid).values()]
        return [sorted(env.get(env_of(GPU), "").split(",")) for env in envs] == [self.names_of(pod)]

    def _devices_of_claim(self, claim):
        return {(GPU, one) for one in claim.ids}

    def _left_over(self):
        wrong = [] if self.published() == {one: [] for one in IDS} else [f"published is {self.published()}"]
        wanted = sorted({one.uid for pod in self.kubelet.live() for one in pod.claims})
        said = ctl(self.daemon, "claims", "-o", "json")
        known = sorted(one["uid"] for one in json.loads(said.stdout)["items"]) if said.returncode == 0 else said.stderr
        return wrong if known == wanted else [*wrong, f"prepared is {known}, and not {wanted}"]
