"""Each kind of line that shim/log_kind.h has, as the journal gets it: under its MESSAGE_ID."""

import re

import grpc
import pytest

import kubelet_checkpoint
from agent_process import Agent
from api_server import ApiServer
from asking import by_annotation, by_token, refused
from criclient import Client
from ctl import ctl, ctl_json
from dra_driver import Driver
from dra_node import DraNode
from journal import Journal
from kubelet_checkpoint import Entry
from kubelet_drivers import claim
from node import Node
from plugin import Plugin
from protos import cri, deviceplugin
from scripted_agent import ScriptedAgent
from shim import ROOT, Shim, accepts
from small_disk import SmallDisk
from waiting import wait_until

GPU = "vendor.com/gpu"
DRIVER = "gpu.example.com"
IDS = dict(re.findall(r'= \{"([a-z-]+)", "([0-9a-f]{32})"\}',
                      (ROOT / "shim/log_kind.h").read_text()))
SCENARIOS = {}
UNREAD = 600  # lines: more than the journal's socket holds


def provokes(*kinds):
    def mark(scenario):
        SCENARIOS[scenario] = kinds
        return scenario
    return mark


class Stage:
    """Where a scenario plays: a runtime, a journal, and what it starts."""

    def __init__(self, directory, runtime, closing):
        self.directory = directory
        self.runtime = runtime
        self.closing = closing
        self.journal = closing(Journal(directory))

    def shim(self, start=True, **settings):
        one = self.journal.wrap(self.closing(Shim(
            self.directory, self.runtime.path, log={"format": "journal"},
            **{"plugins": {"hold": "200ms"}, **settings})))
        if start:
            one.start()
        return one

    def plugin(self, shim, *ids):
        one = self.closing(Plugin(shim.plugin_dir, GPU, ids))
        one.start()
        return one

    def client(self, shim):
        return self.closing(Client(shim.socket))

    def wait(self, kind, **fields):
        def look():
            return any(one.get("KIND") == kind and fields.items() <= one.items()
                       for one in self.journal.read())
        wait_until(look, f"the journal has {kind} {fields}")

    def kubelet_gives(self, shim, *entries):
        shim.kubelet_plugin_dir.mkdir(exist_ok=True)
        kubelet_checkpoint.write(shim.kubelet_plugin_dir,
                                 kubelet_checkpoint.encode(entries, {GPU: []}))


@pytest.fixture
def stage(directory, runtime, closing):
    return Stage(directory, runtime, closing)


@provokes("started", "runtime-listed", "registered", "devices-listed", "allocated", "ordered",
          "plugin-away", "removed", "stopping")
def a_plugins_life(stage):
    shim = stage.shim()
    stage.wait("runtime-listed")
    plugin = stage.plugin(shim, "g0")
    stage.wait("registered", RESOURCE=GPU)
    stage.wait("devices-listed", RESOURCE=GPU)
    client = stage.client(shim)
    client.run(client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1")), "app")
    stage.wait("allocated", POD="default/web", CONTAINER="app")
    assert ctl(shim, "cordon", GPU, "g0").returncode == 0
    stage.wait("ordered", RESOURCE=GPU)
    plugin.stop()
    stage.wait("plugin-away", RESOURCE=GPU)
    assert ctl(shim, "grace", "end", GPU).returncode == 0
    stage.wait("removed", RESOURCE=GPU)
    shim.terminate()


@provokes("refused", "refusals-over")
def one_that_is_made_at_last(stage):
    shim = stage.shim()
    client = stage.client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    for _ in range(2):
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(pod, "app")
    stage.wait("refused", POD="default/web", CONTAINER="app")
    stage.plugin(shim, "g0")
    stage.wait("devices-listed")
    client.create(pod, "app")


@provokes("ending")
def a_pod_that_is_ended(stage):
    shim = stage.shim()
    stage.wait("runtime-listed")
    client = stage.client(shim)
    client.run(client.run_pod("web"), "app")
    assert ctl(shim, "end", "web").returncode == 0
    stage.wait("ending", POD="default/web")


@provokes("shutdown")
def a_machine_that_goes_down(stage):
    socket = stage.directory / "agent.sock"
    stage.shim(cluster={"enabled": True, "socket": str(socket)}, shutdown={"grace": "30s"})
    wait_until(lambda: accepts(socket), "an agent may come")
    agent = stage.closing(ScriptedAgent(socket))
    agent.start()
    agent.tell(known=True, under_way=True)
    stage.wait("shutdown")


@provokes("freed")
def a_device_of_one_that_no_longer_runs(stage):
    shim = stage.shim()
    stage.plugin(shim, "g0")
    client = stage.client(shim)
    pod = client.run_pod("web")
    container = client.run(pod, "app", annotations=by_token(GPU, "g0"))
    stage.runtime.state.containers[container].state = cri.CONTAINER_EXITED
    client.create(client.run_pod("other"), "app", annotations=by_token(GPU, "g0"))
    stage.wait("freed", RESOURCE=GPU, POD="default/web", CONTAINER="app")


@provokes("replaced")
def a_device_that_is_lost(stage):
    shim = stage.shim(resources=[{"name": GPU, "replace": True, "replace_after": "0s"}])
    plugin = stage.plugin(shim, "g0", "g1")
    client = stage.client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.StopContainer(container_id=client.run(pod, "app"))
    plugin.set_devices(["g1"])
    wait_until(lambda: "unlisted" in [one["health"] for one in ctl_json(shim, "devices")["items"]], "g0 goes from the list")
    client.create(pod, "app")
    stage.wait("replaced", RESOURCE=GPU, POD="default/web", CONTAINER="app")


@provokes("adopted")
def one_that_the_kubelet_gave_a_device_itself(stage):
    shim = stage.shim()
    client = stage.client(shim)
    pod = client.run_pod("web")
    client.run(pod, "app")
    response = deviceplugin.ContainerAllocateResponse(envs={"A": "1"}).SerializeToString()
    stage.kubelet_gives(shim, Entry(pod.uid, "app", GPU, {-1: ["g0"]}, response))
    stage.plugin(shim, "g0")
    stage.wait("adopted", RESOURCE=GPU, POD="default/web", CONTAINER="app")


@provokes("strange-token")
def a_token_that_the_kubelet_knows_nothing_of(stage):
    shim = stage.shim()
    stage.plugin(shim, "g0")
    client = stage.client(shim)
    client.run(client.run_pod("web"), "app", annotations=by_token(GPU, "g0"))
    stage.kubelet_gives(shim, Entry("another", "app", GPU, {-1: ["g0"]}, b""))
    stage.wait("strange-token", RESOURCE=GPU, POD="default/web", CONTAINER="app")


@provokes("unstored", "stored", "events-unkept", "events-kept")
def a_disk_that_is_full_for_a_while(stage):
    disk = stage.closing(SmallDisk(stage.directory / "state"))
    shim = stage.shim()
    stage.plugin(shim, *(f"g{number}" for number in range(65)))
    client = stage.client(shim)
    stage.wait("devices-listed")
    disk.fill()
    for number in range(64):  # the files' last pages may have room
        try:
            client.create(client.run_pod(f"web-{number}"), "app",
                          annotations=by_token(GPU, f"g{number}"))
        except grpc.RpcError:
            pass
    stage.wait("unstored")
    stage.wait("events-unkept")
    disk.free()
    client.create(client.run_pod("late"), "app", annotations=by_token(GPU, "g64"))
    stage.wait("stored")
    stage.wait("events-kept")


@provokes("socket-away", "socket-back")
def a_socket_whose_place_is_taken(stage):
    shim = stage.shim(start=False)
    shim.control.mkdir()
    (shim.control / "something").write_text("")
    shim.start()
    stage.wait("socket-away")
    (shim.control / "something").unlink()
    stage.wait("socket-back")


@provokes("runtime-away", "runtime-back")
def a_runtime_that_restarts(stage):
    shim = stage.shim()
    client = stage.client(shim)
    client.Version()
    stage.runtime.stop()
    assert accepts(shim.socket)  # a connection to the runtime is made for it
    stage.wait("runtime-away")
    stage.runtime.start()
    client.reconnect()
    client.Version()
    stage.wait("runtime-back")


@provokes("settings")
def a_file_with_a_mistake(stage):
    shim = stage.shim()
    wait_until((shim.state_dir / "config.last-good.toml").exists, "the settings are kept")
    shim.terminate()
    shim.wrapper = ("env", "CRI_DEVICE_SHIM_LOG_FORMAT=journal", *shim.wrapper)
    text = shim.config_text
    shim.config_text = lambda: text() + "\nnonsense = 1\n"
    shim.start()
    stage.wait("settings")


@provokes("driver-came", "claim-prepared", "driver-went", "slices-wiped", "claim-owed", "claim-unprepared", "driver-moved")
def a_driver_s_life(stage):
    server = stage.closing(ApiServer(stage.directory / "pki"))
    server.start()
    server.put("nodes", {"metadata": {"name": "node-1"}, "spec": {}, "status": {}})
    server.put("resourceslices", {"metadata": {"name": "s-1"}, "spec": {
        "driver": DRIVER, "nodeName": "node-1", "pool": {"name": "node-1", "generation": 1},
        "devices": [{"name": "claim-c-1-0"}]}})
    shim = stage.shim(dra={"wipe_after": "100ms"},
                      cluster={"enabled": True, "socket": str(stage.directory / "run" / "agent.sock")})
    agent = stage.closing(Agent(stage.directory, server.kubeconfig(stage.directory / "kubelet.conf", "node-1")))
    agent.start()
    node = DraNode(stage.directory, shim, stage.closing)
    driver = node.driver(DRIVER)
    stage.wait("driver-came", RESOURCE=DRIVER)
    node.kubelet.prepare(DRIVER, [claim("c-1")])
    stage.wait("claim-prepared", RESOURCE=DRIVER)
    wait_until(lambda: ctl_json(shim, "claims")["items"][0]["local"], "its slice is known")
    driver.stop_serving()
    stage.wait("driver-went", RESOURCE=DRIVER)
    stage.wait("slices-wiped", RESOURCE=DRIVER)
    node.kubelet.unprepare(DRIVER, [claim("c-1")])
    stage.wait("claim-owed", RESOURCE=DRIVER)
    driver.serve()
    stage.wait("claim-unprepared", RESOURCE=DRIVER)
    driver.stop()
    stage.closing(Driver(node.kubelet.registry, stage.directory / "plugins", DRIVER)).start()
    stage.wait("driver-moved", RESOURCE=DRIVER)


@provokes("reloaded")
def settings_that_are_read_again(stage):
    shim = stage.shim()
    wait_until(lambda: accepts(shim.control), "the control socket is there")
    assert ctl(shim, "reload").returncode == 0
    stage.wait("reloaded")


@provokes("lost")
def a_journal_that_nobody_reads(stage):
    shim = stage.shim()
    stage.wait("runtime-listed")
    client = stage.client(shim)

    def refuse(name):
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            client.create(client.run_pod(name), "app", annotations=by_token(GPU, "g0"))

    for number in range(UNREAD):
        refuse(f"web-{number}")
    stage.journal.read()
    refuse("last")
    stage.wait("lost")


@provokes("bridge-here", "bridge-gone", "kubelet-started", "gate-opened", "shown")
def a_whole_node(stage):
    node = stage.closing(Node(stage.directory / "node", {GPU: ["g0"]}))
    for program in (node.daemon, node.bridge):
        node.daemon.log_settings["format"] = "journal"
        stage.journal.wrap(program)
    node.start()
    stage.wait("bridge-here")
    stage.wait("shown", RESOURCE=GPU)
    stage.wait("kubelet-started")
    stage.wait("gate-opened")
    node.down("bridge")
    stage.wait("bridge-gone")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_what_is_logged_has_its_id(stage, scenario):
    scenario(stage)
    wait_until(lambda: {one.get("KIND") for one in stage.journal.read()} >= set(SCENARIOS[scenario]),
               "each kind is logged")
    for one in stage.journal.entries:
        assert one.get("MESSAGE_ID") == IDS.get(one.get("KIND")), one


def test_each_kind_is_provoked():
    """One that is new has a scenario here."""
    assert {kind for kinds in SCENARIOS.values() for kind in kinds} == set(IDS)


def test_each_kind_has_an_id_of_its_own():
    kinds = re.findall(r"^\s*(LOG_KIND_\w+)\b", (ROOT / "shim/log.h").read_text(), re.MULTILINE)
    named = re.findall(r"\[(LOG_KIND_\w+)\] = ", (ROOT / "shim/log_kind.h").read_text())
    assert sorted(set(kinds) - {"LOG_KINDS"}) == sorted(named)
    assert len(IDS) == len(named) - 1 == len(set(IDS.values()))  # LOG_KIND_NONE has none
