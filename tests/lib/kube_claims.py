"""Objects of dynamic resource allocation, as the API server takes them, and the part of a pod that
names them.

    template("gpu", "gpu.example.com", 2)      # claims of two devices of that driver
    claim("shared", "gpu", "gpu.example.com")  # one
    pod("web", container("main", claims={"gpu": 2}), resourceClaims=[from_template("gpu")])

A claim has one request, which is named as the pods' containers name the claim: its devices' variable
is named by that (unit_driver.py). A driver's DeviceClass has its name.
"""

API = "/apis/resource.k8s.io/v1"
CLASSES = f"{API}/deviceclasses"
CLAIMS = f"{API}/namespaces/default/resourceclaims"
TEMPLATES = f"{API}/namespaces/default/resourceclaimtemplates"
_VERSION = "resource.k8s.io/v1"


def device_class(driver):
    return {"apiVersion": _VERSION, "kind": "DeviceClass", "metadata": {"name": driver},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}}


def _spec(request, driver, count):
    return {"devices": {"requests": [{"name": request, "exactly": {
        "deviceClassName": driver, "allocationMode": "ExactCount", "count": count}}]}}


def template(request, driver, count=1, name=None):
    return {"apiVersion": _VERSION, "kind": "ResourceClaimTemplate",
            "metadata": {"name": name or request}, "spec": {"spec": _spec(request, driver, count)}}


def claim(name, request, driver, count=1):
    return {"apiVersion": _VERSION, "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": _spec(request, driver, count)}


def from_template(name, template_name=None):
    return {"name": name, "resourceClaimTemplateName": template_name or name}


def by_name(name, claim_name):
    return {"name": name, "resourceClaimName": claim_name}
