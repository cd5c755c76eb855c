"""cri-device-shimctl deviceclass: what a cluster is told, so that pods can ask for what is published."""

import json

import pytest
import yaml

from ctl import checked, ctl

GPU = "vendor.com/gpu"
SELECTOR = 'device.driver == "plugins.cri-device-shim" && device.attributes["plugins.cri-device-shim"].resource == "{}"'


def said(*arguments):
    """Its documents; no daemon is there."""
    done = ctl("/nowhere", "deviceclass", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return list(yaml.safe_load_all(done.stdout))


def test_it_selects_what_is_published():
    assert said(GPU) == [{
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.vendor.com"},
        "spec": {"selectors": [{"cel": {"expression": SELECTOR.format(GPU)}}]}}]


def test_it_may_have_the_extended_resource_and_a_template():
    one, template = said("--extended", "-t", "--name", "big", GPU)
    assert (one["metadata"]["name"], one["spec"]["extendedResourceName"]) == ("big", GPU)
    assert (template["kind"], template["metadata"]["name"]) == ("ResourceClaimTemplate", "big")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request == {"name": "device", "exactly": {"deviceClassName": "big"}}


@pytest.mark.parametrize("name", ["true", "1.5", "1e3", "null", "0x10", "off", "2024-01-01", "12"])
def test_a_name_is_a_text(name):
    """Whatever YAML would take it for."""
    one, template = said("-t", "--name", name, GPU)
    assert one["metadata"]["name"] == template["metadata"]["name"] == name
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == name


@pytest.mark.parametrize("arguments", [(), ("-e",), ("-t",), ("-e", "-t", "--name", "true")])
def test_the_json_is_the_same(arguments):
    done = ctl("/nowhere", "deviceclass", GPU, *arguments, "-o", "json")
    checked("deviceclass", done.stdout)
    assert json.loads(done.stdout) == {"apiVersion": "v1", "kind": "List", "items": said(GPU, *arguments)}
    names = ctl("/nowhere", "deviceclass", GPU, *arguments, "-o", "name").stdout.split()
    assert names == [f"{one['kind'].lower()}/{one['metadata']['name']}" for one in said(GPU, *arguments)]


@pytest.mark.parametrize(("arguments", "words"), [
    (("gpu",), '"gpu" is no resource\'s name'), (("kubernetes.io/x",), "is no resource's name"),
    ((GPU, "--name", "A"), '"A" is no name of a DeviceClass'), (("vv/" + "A" * 63,), "too long"),
    ((), "an argument is missing: RESOURCE"), ((GPU, "x"), "too many arguments")])
def test_what_is_wrong_is_said(arguments, words):
    done = ctl("/nowhere", "deviceclass", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
