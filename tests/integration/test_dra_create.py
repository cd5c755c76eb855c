"""CreateContainer with the CDI devices of claims."""

import pytest

from bridge_process import Bridge
from dra_driver import Driver
from kubelet_drivers import KubeletDrivers, claim
from protos import cri
from supervisor import Supervisor, supervised

GPU = "gpu.example.com"
NIC = "nic.example.com"


@pytest.fixture
def kubelet(directory, closing):
    one = closing(KubeletDrivers(directory / "kubelets_registry"))
    one.start()
    return one


@pytest.fixture
def bridge(directory, closing, shim):
    one = closing(supervised(Bridge, closing(Supervisor(directory, name="notify-bridge")))(
        directory, socket=str(shim.feed)))
    one.start()
    return one


@pytest.fixture
def make_driver(shim, directory, closing, bridge, kubelet):
    def make(name=GPU, **settings):
        one = closing(Driver(shim.registry_dir, directory / "plugins", name, **settings))
        one.start()
        one.wait_registered()
        kubelet.wait_registered(name)
        return one

    return make


@pytest.fixture
def client(shim, make_client):
    return make_client(shim)


def prepared(kubelet, name, *uids):
    """The CDI names of the claims, in their order."""
    answers = kubelet.prepare(name, [claim(uid) for uid in uids])
    assert not any(answer.error for answer in answers.values())
    return [cdi for uid in uids for device in answers[uid].devices for cdi in device.cdi_device_ids]


def with_names(names, **more):
    """Of a container's config, as the kubelet makes it of claims."""
    return {"CDI_devices": [cri.CDIDevice(name=name) for name in names], **more}


def last_create(runtime):
    return runtime.calls_of("CreateContainer")[-1]


def test_what_is_named_twice_is_passed_on_once(runtime, kubelet, make_driver, client):
    """A kubelet that was restarted has asked twice, and keeps what came twice; two requests of a claim have a
    device in common; two drivers name one, too."""
    make_driver()
    make_driver(NIC)
    names = prepared(kubelet, GPU, "c-1", "c-2") + prepared(kubelet, NIC, "c-1")
    again = prepared(kubelet, GPU, "c-1", "c-2")
    assert again == names[:2]
    pod = client.run_pod("web")
    request = client.create_request(pod, "main", ["x"], **with_names(names + again, envs={"A": "1"}))
    once = client.create_request(pod, "main", ["x"], **with_names(names, envs={"A": "1"}))
    client.CreateContainer(request)
    assert last_create(runtime).parsed() == once


def test_what_is_named_once_passes_as_it_came(runtime, kubelet, make_driver, client):
    """By annotation, too, for runtimes that know that alone."""
    make_driver()
    names = prepared(kubelet, GPU, "c-1", "c-2")
    pod = client.run_pod("web")
    request = client.create_request(pod, "main", ["x"], **with_names(
        names, annotations={f"cdi.k8s.io/{GPU}_c": ",".join(names)}))
    client.CreateContainer(request)
    assert last_create(runtime).parsed() == request
