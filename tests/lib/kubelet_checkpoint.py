"""The kubelet's `kubelet_internal_checkpoint`, in which its device manager keeps what it knows.

    text = encode([Entry(...)], {"vendor.com/gpu": ["g0"]})
    entries, registered = decode(text)     # ValueError: its checksum is wrong, or it is no JSON
    write(path, text); read(path)

Written as the kubelet does it: the whole file beside its place, then renamed.
"""

import base64
import dataclasses
import json
import os

NAME = "kubelet_internal_checkpoint"


@dataclasses.dataclass
class Entry:
    """What one container has of one resource; `ids`: {NUMA node, -1 for none: ids}; `response`:
    the plugin's ContainerAllocateResponse as bytes."""

    pod_uid: str
    container: str
    resource: str
    ids: dict
    response: bytes

    def all_ids(self):
        return {one for ids in self.ids.values() for one in ids}


def _go_list(items):
    return f"[{' '.join(items)}]"


def _go_entry(entry):
    ids = " ".join(f"{node}:{_go_list(entry.ids[node])}" for node in sorted(entry.ids))
    response = _go_list(str(byte) for byte in entry.response) if entry.response else "<nil>"
    return (f"{{PodUID:(string){entry.pod_uid} ContainerName:(string){entry.container} "
            f"ResourceName:(string){entry.resource} "
            f"DeviceIDs:(checkpoint.DevicesPerNUMA)map[{ids}] AllocResp:([]uint8){response}}}")


def checksum(entries, registered):
    """FNV-1a over the text in which Go's spew prints the data."""
    listed = _go_list(map(_go_entry, entries)) if entries else "<nil>"
    names = " ".join(f"{name}:{_go_list(registered[name])}" for name in sorted(registered))
    text = (f"(checkpoint.checkpointData){{PodDeviceEntries:([]checkpoint.PodDevicesEntry){listed} "
            f"RegisteredDevices:(map[string][]string)map[{names}]}}")
    value = 0x811c9dc5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xffffffff
    return value


def encode(entries, registered):
    """The file's text; `registered`: {resource: healthy ids}."""
    listed = [{"PodUID": one.pod_uid, "ContainerName": one.container, "ResourceName": one.resource,
               "DeviceIDs": {str(node): ids for node, ids in one.ids.items()},
               "AllocResp": base64.b64encode(one.response).decode() if one.response else None}
              for one in entries]
    data = {"PodDeviceEntries": listed or None, "RegisteredDevices": registered}
    return json.dumps({"Data": data, "Checksum": checksum(entries, registered)},
                      separators=(",", ":"))


def decode(text):
    """(entries, registered); ValueError if the kubelet would call the file corrupt."""
    try:
        whole = json.loads(text)
        data = whole["Data"]
        entries = [Entry(one["PodUID"], one["ContainerName"], one["ResourceName"],
                         {int(node): ids for node, ids in one["DeviceIDs"].items()},
                         base64.b64decode(one["AllocResp"] or ""))
                   for one in data["PodDeviceEntries"] or []]
        registered = {name: ids or [] for name, ids in (data["RegisteredDevices"] or {}).items()}
        written = whole["Checksum"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"checkpoint is corrupted: {error!r}") from error
    if written != checksum(entries, registered):
        raise ValueError("checkpoint is corrupted: checksum")
    return entries, registered


def read(directory):
    """(entries, registered) of the file in the kubelet's plugin directory; FileNotFoundError."""
    return decode((directory / NAME).read_text())


def write(directory, text):
    temporary = directory / f".{NAME}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w",
              encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(directory / NAME)
