"""Objects of dynamic resource allocation, as the API server takes them, and the part of a pod that
names them.

    template("gpu", "gpu.example.com", 2)      # claims of two devices of that driver
    claim("shared", "gpu", "gpu.example.com")  # one
    pod("web", container("main", claims={"gpu": 2}), resourceClaims=[from_template("gpu")])

A claim has one request, which is named as the pods' containers name the claim: its devices' variable
is named by that (unit_driver.py). A driver's DeviceClass has its name. All are written in the version
that this Kubernetes has (kube_release.py).
"""

from kube_release import DRA, GROUP, RELEASE

_VERSION = f"{GROUP}/{DRA}"
API = f"/apis/{_VERSION}"
SLICES = f"{API}/resourceslices"
CLASSES = f"{API}/deviceclasses"
TAINT_RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
CLAIMS = f"{API}/namespaces/default/resourceclaims"
TEMPLATES = f"{API}/namespaces/default/resourceclaimtemplates"


def device_class(driver, extended=None):
    """`extended`: the resource of which a pod's limits get its devices, too, if this Kubernetes can."""
    more = {"extendedResourceName": extended} if extended and RELEASE >= (1, 34) else {}
    return class_of(driver, f'device.driver == "{driver}"', **more)


def class_of(name, expression, **spec):
    return {"apiVersion": _VERSION, "kind": "DeviceClass", "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}], **spec}}


def taint(key, effect):
    return {"key": key, "effect": effect}


def taint_rule(name, driver, device, what):
    return {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {"deviceSelector": {"driver": driver, "device": device}, "taint": what}}


def _spec(request, driver, count):
    exactly = {"deviceClassName": driver, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [
        {"name": request, **(exactly if DRA == "v1beta1" else {"exactly": exactly})}]}}


def template(request, driver, count=1, name=None):
    return {"apiVersion": _VERSION, "kind": "ResourceClaimTemplate",
            "metadata": {"name": name or request}, "spec": {"spec": _spec(request, driver, count)}}


def looking_template(request, driver):
    """Claims of all its devices by admin access, whoever has them."""
    spec = _spec(request, driver, 1)
    asked, = spec["devices"]["requests"]
    exactly = asked.get("exactly", asked)
    del exactly["count"]
    exactly |= {"allocationMode": "All", "adminAccess": True}
    return {"apiVersion": _VERSION, "kind": "ResourceClaimTemplate",
            "metadata": {"name": request}, "spec": {"spec": spec}}


def claim(name, request, driver, count=1):
    return {"apiVersion": _VERSION, "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": _spec(request, driver, count)}


def from_template(name, template_name=None):
    return {"name": name, "resourceClaimTemplateName": template_name or name}


def by_name(name, claim_name):
    return {"name": name, "resourceClaimName": claim_name}
