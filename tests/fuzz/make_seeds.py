#!/usr/bin/python3
"""Writes the seeds of tests/fuzz/corpus anew.

    tests/fuzz/make_seeds.py [CAPTURE]...

A CAPTURE is a recorded connection: records of one direction byte ('>' client to server, '<' back),
8 bytes of time, 4 bytes of length (big endian) and as many bytes. Those up to 6 KiB become seeds of
fuzz_session and their messages seeds of fuzz_message and fuzz_create_container; without captures
the seeds made from them are left as they are.
"""
import gzip
import os
import struct
import sys

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
CAPTURE_BYTES_MAX = 6 * 1024
MESSAGE_BYTES_MAX = 3 * 1024

# The operations of fuzz_session.c, in order.
(OPEN, DATA, TRAILERS, ANSWER, ANSWER_DATA, ANSWER_END, RESET, WINDOW, SETTINGS, EXTRA, GOAWAY,
 READ, CUT, POLICY, DECIDE, RAW, DRAIN, CLASS) = range(18)
CLIENT, RUNTIME = 0, 1
CREATE, LIST, OBSERVED, OTHER = 0, 1, 2, 3
LATER, FORWARD, REFUSE, INSTEAD = 0, 1, 2, 3
RELAY_LISTS, INTERCEPT_LISTS, OBSERVE_VERSIONS = 1, 5, 2
GZIP, UNREADABLE, TOO_LARGE, TAIL, TIMEOUT, CORRUPT = 4, 8, 16, 32, 64, 128
MANY = 0xF6  # as a number: 114,688
CONNECTION = 24
END = 1
ALL = 0xFF  # as a number: 245,760
GROWTH = 128  # as a number: 248, which a buffer's first 256 bytes hold with its message's head


def write(target, name, data):
    directory = os.path.join(CORPUS, target)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as out:
        out.write(data)


# ---- fuzz_session ----

def call(kind, number=20, layout=0):
    return [OPEN, kind, layout, number]


def send(stream, number=ALL, flags=END):
    return [DATA, stream, flags, number]


READ_BOTH = [READ, RUNTIME, 200, READ, CLIENT, 200]


def answer(stream):
    return [ANSWER, stream, 0, ANSWER_DATA, stream, 0, 20, ANSWER_END, stream, 0]


def whole(kind, number=20, layout=0):
    """One call and its answer."""
    return call(kind, number, layout) + send(0) + READ_BOTH + answer(0) + READ_BOTH


HELLO = [SETTINGS, CLIENT, 7, 100, 120, SETTINGS, RUNTIME, 7, 100, 120] + READ_BOTH

SESSIONS = {
    "other": whole(OTHER),
    "observed": whole(OBSERVED),
    "observed-gzip": whole(OBSERVED | GZIP),
    "create": whole(CREATE),
    "create-fragment": [POLICY, FORWARD, 100] + whole(CREATE),
    "create-fragment-gzip-tail": [POLICY, FORWARD, 100] + whole(CREATE | GZIP | TAIL),
    "create-unreadable": whole(CREATE | UNREADABLE),
    "create-corrupt": whole(CREATE | GZIP | CORRUPT),
    "create-too-large": whole(CREATE | TOO_LARGE),
    "create-too-many": [POLICY, LATER, 0] + call(CREATE, MANY) * 3 +
    ([DATA, 0, 0, ALL, DATA, 1, 0, ALL, DATA, 2, 0, ALL] + READ_BOTH) * 8,
    "observed-large": call(OBSERVED, MANY) + call(OBSERVED, MANY) +
    ([DATA, 0, 0, ALL, DATA, 1, 0, ALL, WINDOW, RUNTIME, CONNECTION, ALL] + READ_BOTH) * 8 +
    [ANSWER, 0, 0] + [ANSWER_DATA, 0, 0, MANY] * 2,
    "create-large-fragment": [POLICY, FORWARD, MANY] + HELLO + call(CREATE, MANY) +
    [DATA, 0, 0, ALL] * 8 + READ_BOTH + [DATA, 0, 0, ALL] * 8,
    "refuse": HELLO + [POLICY, REFUSE | 13 << 2, 0] + whole(CREATE | TIMEOUT),
    "refuse-late": [POLICY, LATER, 0] + call(CREATE) + send(0) +
    [DECIDE, 0, REFUSE | 13 << 2, 0] + READ_BOTH,
    "refuse-answered": [POLICY, LATER, 0] + call(CREATE) + [READ, RUNTIME, 9, ANSWER, 0, 0] +
    send(0) + [ANSWER_END, 0, 0, DECIDE, 0, REFUSE, 0] + READ_BOTH,
    "refuse-table-size": [POLICY, LATER, 0] + HELLO + call(OTHER) + call(CREATE) + send(1) +
    READ_BOTH + [SETTINGS, CLIENT, 1, 0, 0, READ, RUNTIME, 9, SETTINGS, CLIENT, 1, 100, 0] +
    [DECIDE, 0, REFUSE, 0] + READ_BOTH + answer(0) + READ_BOTH,
    "refuse-in-data": [POLICY, REFUSE, 0, CUT, CLIENT, 12] + call(CREATE, 100) +
    [CUT, CLIENT, 30] + send(0, 100, 0) + send(0, 100),
    "held-many": [POLICY, LATER, 0] + (call(CREATE, 100) + call(OTHER, 100)) * 6 +
    sum((send(i, 100) for i in range(12)), []) +
    [DECIDE, 1, FORWARD, 100, DECIDE, 3, REFUSE, 0, RESET, CLIENT, 0, 8] + READ_BOTH,
    "held-grows": [POLICY, LATER, 0] + call(CREATE | TAIL, GROWTH) + send(0, GROWTH + 2, 0) +
    send(0) + READ_BOTH + [DECIDE, 0, FORWARD, 100] + READ_BOTH,
    "small-window": [SETTINGS, RUNTIME, 2, 0, 3] + READ_BOTH + [POLICY, FORWARD, 100] +
    call(CREATE, 100) + [READ, CLIENT, 9] + send(0, 50, 0) + send(0, 100) + READ_BOTH +
    [WINDOW, RUNTIME, 0, 7, SETTINGS, RUNTIME, 2, 0, 0, WINDOW, RUNTIME, CONNECTION, 100] +
    READ_BOTH,
    "layout": call(CREATE, 100, 0x1F) + call(OTHER, 100, 0x1B) + [DATA, 0, 0xF9, 50] +
    [DATA, 1, 0x19, 50] + READ_BOTH + [ANSWER, 0, 0x1F, ANSWER_DATA, 0, 0xF8, 9] +
    [CUT, RUNTIME, 5, ANSWER_END, 0, 0x0F],
    "trailers": [POLICY, LATER, 0] + call(CREATE) + send(0, ALL, 0) + [TRAILERS, 0, 0] + READ_BOTH,
    "resets": (call(CREATE) + call(OBSERVED)) + send(0, 9, 0) + send(1) + [READ, RUNTIME, 9] +
    [RESET, RUNTIME, 0, 8, RESET, CLIENT, 1, 8] + READ_BOTH,
    "goaway": [POLICY, LATER, 0] + call(CREATE) + send(0) + [READ, RUNTIME, 9] + call(CREATE) +
    send(1) + [GOAWAY, DECIDE, 0, FORWARD, 9] + READ_BOTH,
    "table-emptied": [SETTINGS, CLIENT, 9, 100, 0] + HELLO + whole(CREATE) + call(OTHER) +
    [POLICY, REFUSE, 0] + call(CREATE) + [SETTINGS, CLIENT, 9, 100, 0] + send(2) + READ_BOTH +
    answer(1) + READ_BOTH,
    "large-frames": [SETTINGS, RUNTIME, 0x10, ALL, 0] + READ_BOTH + [POLICY, FORWARD, 100] +
    whole(CREATE, MANY),
    "instead-smaller": [POLICY, INSTEAD, 0, 9] + whole(CREATE | TAIL, 100),
    "instead-larger": [POLICY, INSTEAD, 100, MANY] + HELLO + whole(CREATE | GZIP, 100) +
    [WINDOW, RUNTIME, CONNECTION, ALL, WINDOW, RUNTIME, 0, ALL] + READ_BOTH,
    "instead-of-large": [POLICY, INSTEAD, 0, 100] + HELLO + call(CREATE, MANY) +
    ([DATA, 0, 0, ALL] + READ_BOTH) * 9,
    "relists": [CLASS, OBSERVE_VERSIONS, CLASS, INTERCEPT_LISTS, POLICY, LATER, 0] +
    call(OTHER, 0) + call(LIST, 2) + send(0) + send(1) + READ_BOTH + [DECIDE, 0, FORWARD, 0] +
    READ_BOTH + answer(0) + answer(1) + [CLASS, RELAY_LISTS] + call(LIST, 2) + send(2) + READ_BOTH,
    "drain-events": call(OTHER) * 4 + call(OBSERVED, 0) + send(4) + READ_BOTH + [ANSWER, 4, 0] +
    [ANSWER_DATA, 4, 0, 20, DRAIN, ANSWER_DATA, 4, 0, 20] + READ_BOTH,
    "drain": call(CREATE) + [DRAIN] + send(0) + READ_BOTH + answer(0) + READ_BOTH,
    "huge-window": [SETTINGS, RUNTIME, 2, 0, ALL, WINDOW, RUNTIME, CONNECTION, ALL] + READ_BOTH +
    whole(CREATE, MANY),
    "extras": [EXTRA, CLIENT, 0, 0, EXTRA, RUNTIME, 1, 3, EXTRA, CLIENT, 2, 40] + whole(CREATE) +
    [EXTRA, RUNTIME, 5, 60],
}


def raw(end, data):
    return bytes([RAW, end]) + struct.pack(">H", len(data)) + data


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# All literals: a CreateContainer request.
BLOCK = b"\x83\x86\x04\x2a/runtime.v1.RuntimeService/CreateContainer"

RAW_SESSIONS = {
    "no-http2": b"GET / HTTP/1.1\r\n\r\n",
    "continuation": PREFACE + frame(1, 0, 1, BLOCK[:20]) + frame(9, 4, 1, BLOCK[20:]) +
    frame(0, 1, 1, b"\0\0\0\0\2ab"),
    "interrupted-block": PREFACE + frame(1, 0, 1, BLOCK[:20]) + frame(6, 0, 0, b"12345678"),
    "padding-too-long": PREFACE + frame(1, 4, 1, BLOCK) + frame(0, 8, 1, b"\x09abc"),
    "headers-too-short": PREFACE + frame(1, 0x2C, 1, b"\0\0\0"),
    "bad-hpack": PREFACE + frame(1, 4, 1, b"\xff\xff\xff\xff\xff"),
    "stream-0": PREFACE + frame(0, 0, 0, b"abc"),
    "settings-odd": PREFACE + frame(4, 0, 0, b"\0\4\x7f\xff\xff\xff\0"),
}

ASKED = PREFACE + frame(4, 0, 0) + frame(1, 4, 1, BLOCK) + frame(0, 1, 1, b"\0\0\0\0\2ab")
RAW_ANSWERS = {
    "push": frame(5, 4, 1, b"\0\0\0\2\x88"),
    "bad-hpack": frame(1, 4, 1, b"\xff\xff\xff\xff\xff") + frame(0, 1, 1, b"\0\0\0\0\1x"),
    "interrupted-block": frame(1, 0, 1, b"\x88") + frame(0, 0, 1, b"x"),
    "ack-of-nothing": frame(4, 1, 0) * 3,
    "short-goaway": frame(7, 0, 0, b"\0\0\0"),
    "odd-update": frame(8, 0, 0, b"\0\0\1") + frame(8, 0, 1, b"\0\0\0\0"),
    "answer": frame(4, 0, 0, b"\0\4\0\0\0\0") + frame(1, 4, 1, b"\x88") +
    frame(0, 0, 1, b"\0\0\0\0\2id") + frame(1, 5, 1, b"\0\x0bgrpc-status\0010"),
}


def session_seeds():
    for name, program in SESSIONS.items():
        write("fuzz_session", name, bytes([3] + program))
    for name, data in RAW_SESSIONS.items():
        write("fuzz_session", "raw-" + name, b"\xf0" + raw(CLIENT, data)[1:])
    for name, data in RAW_ANSWERS.items():
        write("fuzz_session", "raw-runtime-" + name, b"\xf0" + raw(CLIENT, ASKED)[1:] + raw(
            RUNTIME, frame(4, 0, 0) + data))


# ---- protobuf ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def entry(key, value):
    return field(1, key) + field(2, value)


def metadata(name, attempt=0):
    return field(1, field(1, name) + field(2, attempt))


CONFIG = (metadata("main", 1) + field(2, field(1, "busybox")) + field(3, "sleep") +
          field(6, entry("A", "pod")) + field(7, entry("/dev/shm", "/tmp") + field(3, 1)) +
          field(8, entry("/dev/a", "/dev/a") + field(3, "rw")) + field(9, entry("label", "1")) +
          field(10, entry("a", "pod")) + field(10, entry("devices.cri-device-shim/v_gpu", "{}")) +
          field(14, 1) + field(15, field(2, field(2, 1))) + field(17, field(1, "v/gpu=0")))
SANDBOX = (field(1, field(1, "pod") + field(2, "uid") + field(3, "ns")) + field(2, "host") +
           field(7, entry("devices.cri-device-shim/main", "v.com/gpu=1")))
CREATE_REQUEST = field(1, "sandbox") + field(2, CONFIG) + field(3, SANDBOX)
REQUESTS = {
    "plain": CREATE_REQUEST,
    "two-configs": CREATE_REQUEST + field(2, field(6, entry("B", "2")) + field(99, "unknown")),
    "mounts": CREATE_REQUEST + field(2, field(7, field(99, 1) + entry("/t", "/./tmp/") + field(98, 2)) +
                                     field(7, entry("/t", "/tmp") + field(2, "/tmp/x"))),
    "unknown": field(77, "x") + CREATE_REQUEST + field(78, 5),
    "no-config": field(1, "sandbox"),
    "no-sandbox-config": field(1, "sandbox") + field(2, metadata("m") + b"".join(
        field(9, entry("io.kubernetes.pod." + k, k)) for k in ("uid", "name", "namespace"))),
    "truncated": CREATE_REQUEST[:-5],
    "wrong-type": field(1, 5) + field(2, CONFIG),
    "group": field(2, b"\xc3\x3e\x08\x01\xc4\x3e") + CREATE_REQUEST + b"\xc3\x3e\xcb\x3e\xcc\x3e\xc4\x3e",
    "overlong": b"\xc0\xbe\x80\x80\x80\x80\x00\x01" + CREATE_REQUEST + b"\x12\x80\x80\x80\x80\x80\x00",
    "wrong-entry": CREATE_REQUEST + field(2, field(10, b"\x08\x01k" + field(2, "v"))),
    "wrong-boolean": CREATE_REQUEST + field(2, field(7, field(3, b"\x01"))),
    "empty": b"",
}
OPTIONS = bytes([7]) + (b"eA\0plugin\0eA\0again\0m\1/mnt\0/host\0d/dev/gpu0\0/dev/gpu0\0rwm\0"
                        b"aa\0plugin\0ab\0plugin\0cvendor.com/gpu=g0\0")
# The pod sets A.
VARIABLES = CREATE_REQUEST + field(2, b"".join(field(3 + i % 2, text) for i, text in enumerate(
    ("$(B)", "$$(B)$(A)", "$(", "a$(B$(B)", "$(E)$()$(C)"))))


def create_seeds():
    for name, request in REQUESTS.items():
        write("fuzz_create_container", name, OPTIONS + request)
        write("fuzz_create_container", name + "-no-options", b"\0" + request)
    write("fuzz_create_container", "variables", b"\3eA\0plugin\0eB\0b$(B)\0eE\0\0" + VARIABLES)


LISTING = b"".join(
    field(1, field(1, "gpu%d" % i) + field(2, "Healthy") +
          field(3, field(1, field(1, i % 2)))) for i in range(5))


def framed(data, flag=0):
    return bytes([flag]) + struct.pack(">I", len(data)) + data


MESSAGES = {
    "two": b"\0\xff\0" + framed(CREATE_REQUEST) + framed(b""),
    "bytewise": b"\4\xff\4" + framed(LISTING) + framed(LISTING[:30]),
    "wrapped-gzip": b"\3\xff\0" + CREATE_REQUEST,
    "small-budget": b"\2\5\4" + LISTING * 3,
    "gzip": b"\1\xff\0" + framed(gzip.compress(CREATE_REQUEST, mtime=0), 1),
    "gzip-bomb": b"\1\x40\0" + framed(gzip.compress(bytes(300000), mtime=0), 1),
    "gzip-cut": b"\1\xff\0" + framed(gzip.compress(CREATE_REQUEST, mtime=0)[:-4], 1),
    "gzip-unasked": b"\0\xff\0" + framed(b"abc", 1),
    "too-large": b"\0\xff\0\0\1\0\0\1",
    "bad-flag": b"\0\xff\0" + framed(b"abc", 2),
    "partial": b"\0\xff\0" + framed(LISTING)[:40],
    "garbage": b"\2\xff\4" + b"\x0a\x00" * 600,
}


# ---- texts ----

TOKEN = b"tdevices.cri-device-shim/v.com_gpu\0"
ANNOTATIONS = {
    "token": TOKEN + b'{"resource":"v.com/gpu","ids":["g0","g1"]}\0',
    "token-escapes": TOKEN + b'{"resource":"v.com/gpu","ids":["\\u00e9\\"\\\\","\xc3\xa9 ,="]}\0',
    "token-bad-key": b'tdevices.cri-device-shim/x\0{"resource":"v.com/gpu","ids":["g0"]}\0',
    "token-no-json": TOKEN + b'{"resource"\0',
    "token-twice": TOKEN + b'{"resource":"v.com/gpu","ids":["a","a"]}\0',
    "annotation": b"av.com/gpu=2, w.org/NIC_1.x=65535\0",
    "annotation-count": b"av.com/gpu=65536\0",
    "annotation-name": b"aV.com/gpu=1\0",
    "annotation-commas": b"av.com/gpu=1,,\0",
    "both": TOKEN + b'{"resource":"v.com/gpu","ids":["g0"]}\0av.com/gpu=2,w.org/nic=1\0',
}
CONFIGS = {
    "full": """listen = "unix:///run/x.sock"
runtime_endpoint = "/run/containerd/containerd.sock"
state_dir = "/var/lib/x"
log_level = "debug"
[plugins]
plugin_dir = "/var/lib/x/plugins"
grace = "1h30m"
hold = "500ms"
allocate_timeout = "10s"
allocates_at_once = 2
prestart_timeout = "30s"
refresh_options = "plugin"
[annotations]
enabled = true
namespaces = ["default", "kube-system"]
[[device]]
resource = "example.com/kvm"
path = "/dev/kvm"
container_path = "/dev/kvm2"
permissions = "rwm"
count = 3
[[device]]
resource = "example.com/serial"
path = "/dev/ttyUSB*"
container_path = "/dev/"
""",
    "unknown-key": "listn = '/x'\n",
    "wrong-type": "listen = 5\n[plugins]\ngrace = true\n",
    "duplicate": "listen = '/x'\nlisten = '/y'\n",
    "all-namespaces": "[annotations]\nenabled = true\nnamespaces = ['*']\n",
    "no-namespace": "[annotations]\nenabled = true\n",
    "inline": "plugins = { hold = '61s', grace = '721h' }\ndevice = [{}]\n",
    "bridge": """[bridge]
enabled = true
socket = "/run/x/b.sock"
kubelet_plugin_dir = "/var/lib/k"
mask = "2m"
preferred_timeout = "500ms"
gate = true
gate_timeout = "10s"
kubelet_processes = ["kubelet", "k3s-server"]
redirect_plugin_mounts = true
""",
    "gate-for-nobody": "bridge = { gate = true, kubelet_processes = [] }\n",
    "dotted": "plugins.hold = '1s'\nannotations.enabled = false\n",
    "not-toml": "listen = \n",
    "relative": "[[device]]\nresource = 'a/b'\npath = 'dev/kvm'\n",
}


# ---- lists, rows of the checkpoint, the feed, status fields ----

def choice_and_length(choice, data):
    return bytes([choice]) + struct.pack(">H", len(data)) + data


PACKED, MADE = 0, 1
HEALTHY, NODE_0, NODE_1 = 0x10, 0x40, 0xC0
DEVICE_LISTS = {
    "packed": choice_and_length(PACKED, LISTING) * 2 + choice_and_length(PACKED, LISTING[:-18]),
    "made": b"".join(choice_and_length(MADE, bytes(devices)) for devices in (
        [1 | HEALTHY, 2 | HEALTHY, 3], [1, 2 | HEALTHY, 3], [3, 2, 1], [])),
    "repeated": choice_and_length(MADE, bytes([4, 4 | HEALTHY, 0, 12, 4])) * 2,
    "nodes": b"".join(choice_and_length(MADE, bytes(devices)) for devices in (
        [5 | NODE_0, 6 | NODE_1], [5 | NODE_1, 6 | NODE_1], [5, 6])),
}

RESOURCE_ROW = (field(1, "v.com/gpu") + field(2, "gpu.sock") + field(3, 1) + field(4, 1) +
                field(5, field(1, "g0") + field(2, 1) + field(3, varint(0))) +
                field(5, field(1, "g1") + field(3, varint(1))) +
                field(6, 1) + field(7, 5000) + field(8, "b") + field(9, "it was lost"))
OPTIONS_ROW = field(1, entry("A", "1")) + field(3, field(1, "/dev/a") + field(2, "/dev/a") +
                                                field(3, "rw"))
ALLOCATION_ROW = (field(1, "uid") + field(2, "main") + field(3, "v.com/gpu") + field(4, "g1") +
                  field(4, "g0") + field(5, OPTIONS_ROW) + field(6, 1) + field(7, "b") +
                  field(8, 1))
POD_ROW = (field(1, "uid") + field(2, "ns") + field(3, "pod") + field(4, "sandbox") + field(5, 2) +
           field(6, 1) + field(7, 1))
SHUTDOWN_ROW = (field(1, "groups") + field(2, "b") + field(3, 5) + field(4, 30000) + field(6, 1) +
                field(7, field(2, 20000)) + field(7, field(1, 4000000000) + field(2, 10000)) + field(8, 1) +
                field(9, 9) + field(10, field(1, "uid")) + field(10, field(1, "u2") + field(2, 1)))
ROWS = {
    "resource": b"\0v.com/gpu\0\0\0" + RESOURCE_ROW,
    "resource-of-another-name": b"\0v.com/nic\0\0\0" + RESOURCE_ROW,
    "resource-of-another-boot": b"\0v.com/gpu\0\0\0" + RESOURCE_ROW + field(8, "c"),
    "allocation": b"\1uid\0main\0v.com/gpu\0" + ALLOCATION_ROW,
    "allocation-id-twice": b"\1uid\0main\0v.com/gpu\0" + ALLOCATION_ROW + field(4, "g0"),
    "allocation-no-options": b"\1uid\0main\0v.com/gpu\0" + ALLOCATION_ROW + field(6, 0),
    "allocation-replaced": b"\1uid\0main\0v.com/gpu\0" + ALLOCATION_ROW + field(10, "g9") +
                           field(10, "g0"),
    "pod": b"\2uid\0\0\0" + POD_ROW,
    "pod-stopped-when-dead": b"\2uid\0\0\0" + POD_ROW + field(7, 0) + field(9, 1),
    "pod-tokens": b"\2uid\0\0\0" + POD_ROW + field(10, "main") + field(10, "init") +
                  field(10, "main"),
    "shutdown": b"\7shutdown\0\0\0" + SHUTDOWN_ROW,
    "shutdown-of-another-boot": b"\7shutdown\0\0\0" + SHUTDOWN_ROW + field(2, "c"),
    "pod-no-sandbox": b"\2uid\0\0\0" + POD_ROW + field(4, ""),
}

FEED_LIST = (field(1, field(1, "g0") + field(2, 1) + field(3, varint(0) + varint(1)) + field(4, 1)) +
             field(1, field(1, "g1") + field(2, 1)) + field(1, field(1, "g2")))
WATCH = (field(1, "0.1.0") + field(2, 120000) +
         field(3, field(1, "v.com/gpu") + field(2, 7) + field(3, FEED_LIST) + field(5, 1)) +
         field(3, field(1, "a" * 200 + ".com/" + "b" * 60) + field(2, 8) + field(3, FEED_LIST) +
               field(4, 99)) +
         field(3, field(1, "../up") + field(2, 9)))
# Lists with a layout, and what has changed in them: every device; one twice; one that is not there.
CHANGES = {
    "all": field(7, b"") + field(7, field(1, 1) + field(2, 1) + field(3, 1)) +
           field(7, field(1, 2) + field(3, 1)),
    "twice": field(7, field(1, 2) + field(2, 1)) + field(7, field(1, 2)),
    "beyond": field(7, field(1, 1) + field(2, 1)) + field(7, field(1, 3) + field(2, 1)),
}


def changed(name):
    return field(1, "0.1.0") + field(3, field(1, "v.com/" + name) + field(2, 7) +
                                     field(3, FEED_LIST) + field(6, 11) + CHANGES[name])


SNAPSHOT = (b"CDSBRDG1" + b"\0" * 8 + struct.pack("<Q", 5000) +
            b"0d8cd6c6-5be5-4b55-a53e-d8cc7e7e1b24\0")
FEEDS = {
    "watch": b"\x80" + WATCH,
    "watch-masked": b"\2" + WATCH,
    **{"changes-" + name: b"\x80" + changed(name) for name in CHANGES},
    "changes-masked": b"\2" + changed("all"),
    "changes-no-layout": b"\2" + WATCH + field(3, field(1, "v.com/gpu") + field(2, 10) +
                                               field(3, FEED_LIST) + CHANGES["all"]),
    "file": b"\1" + SNAPSHOT + WATCH,
    "file-padded": b"\1" + SNAPSHOT.ljust(88, b"\0") + WATCH,
    "file-short": b"\1" + SNAPSHOT[:20],
}



def frame(kind, flags, stream, payload=b""):
    return (len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") +
            payload)


REQUEST = b"\x83\x04\x1e/v1beta1.DevicePlugin/Allocate\x0f\x10\x10application/grpc"
ASKS = frame(1, 4, 1, REQUEST) + frame(0, 1, 1, b"\0\0\0\0\0")
WINDOWS = frame(4, 0, 0, b"\0\4\0\0\x10\0") + frame(8, 0, 0, b"\0\1\0\0") + frame(
    8, 0, 1, b"\0\1\0\0")
CONNECTIONS = {
    "greeting": b"\0\0" + frame(4, 0, 0) + frame(4, 1, 0) + ASKS,
    "request": b"\3\5" + ASKS,
    "request-pieces": b"\3\0" + frame(1, 0x28, 1, b"\1\0\0\0\0\0" + REQUEST[:9] + b"\0") + frame(
        9, 4, 1, REQUEST[9:]) + frame(0, 8, 1, b"\1\0\0\0\0") + frame(0, 1, 1, b"\0\0"),
    "requests": b"\3\x80" + b"".join(frame(1, 5, 2 * i + 1, REQUEST) for i in range(40)),
    "windows": b"\7\x10" + ASKS + WINDOWS,
    "ended": b"\7\x10" + ASKS + frame(3, 0, 1, b"\0\0\0\x08") + frame(1, 5, 3, REQUEST),
    "pings": b"\3\x40" + frame(6, 0, 0, b"12345678") * 40,
    "unknown": b"\3\x10" + frame(1, 5, 1, REQUEST.replace(b"All", b"all")) + frame(200, 1, 7, b"x"),
    "trailers": b"\3\x10" + frame(1, 4, 1, REQUEST) + frame(1, 5, 1, b"\0\1a\1b"),
}

STATUSES = {
    "code": b"14",
    "text": b"the plugin of v.com/gpu is away",
    "escapes": b"100%25 %E2%82%AC %zz %4 %",
    "nul": b"a%00b",
    "utf8": "\u00e4\u20ac\U0001f600".encode() * 400,
    "half-a-character": b"%F0%9F%98",
    **{"timeout-" + unit: b"99999999" + unit.encode() for unit in "numSMH"},
    "timeout-long": b"100000000m",
}


# ---- captures ----

def records(data):
    at = 0
    while at < len(data):
        direction = data[at:at + 1]
        size = struct.unpack(">I", data[at + 9:at + 13])[0]
        yield direction, data[at + 13:at + 13 + size]
        at += 13 + size


def capture_seed(name, data):
    """The reads of one connection, as operations."""
    program = b""
    for direction, payload in records(data):
        if payload:
            program += raw(CLIENT if direction == b">" else RUNTIME, payload)
    write("fuzz_session", "capture-" + name, b"\xf0" + program[1:])


def capture_messages(name, data):
    """The largest DATA frame of the client, which is a request."""
    stream = b"".join(payload for direction, payload in records(data) if direction == b">")
    at, bodies = len(PREFACE), []
    while at + 9 <= len(stream):
        size = int.from_bytes(stream[at:at + 3], "big")
        if stream[at + 3] == 0 and size > 5:
            bodies.append(stream[at + 9:at + 9 + size])
        at += 9 + size
    bodies = [body for body in bodies if len(body) <= MESSAGE_BYTES_MAX]
    if bodies:
        body = max(bodies, key=len)
        write("fuzz_message", "capture-" + name, b"\0\xff\0" + body)
        write("fuzz_create_container", "capture-" + name, OPTIONS + body[5:])


(JOURNAL_CLIENT, JOURNAL_RUNTIME, JOURNAL_BEGIN, JOURNAL_DECISION, JOURNAL_CLIENT_PASSED,
 JOURNAL_RUNTIME_PASSED) = range(1, 7)


def left(how, state=b"", unsent=(0, 0), damages=(), events=()):
    """What a process leaves of a connection; `how`: 1 moved, 2 `state` is what its client said, 4 the
    last bytes were read only just."""
    return (bytes([how]) + struct.pack(">H", len(state)) + state + struct.pack(">HH", *unsent) +
            bytes([len(damages)]) + b"".join(struct.pack(">HB", *one) for one in damages) +
            b"".join(bytes([kind]) + struct.pack(">H", len(data)) + data for kind, data in events))


def passed(data=0, stream=0, place=b""):
    """struct session_passed; `place`: left, length, type, flags, stream, how, within, carry."""
    return struct.pack("<II", data, stream) + place


WITHIN_PING = struct.pack("<IIBBHIBBB9x", 5, 8, 6, 0, 0, 0, 0, 1, 0)

JOURNALS = {
    "new": left(0, events=[(JOURNAL_BEGIN, b""), (JOURNAL_CLIENT, ASKED),
                           (JOURNAL_RUNTIME, frame(4, 0, 0))]),
    "decided": left(0, events=[(JOURNAL_BEGIN, b""), (JOURNAL_CLIENT, ASKED),
                               (JOURNAL_DECISION, bytes(40))]),
    "lived": left(2, ASKED),
    "lived-on": left(2, ASKED, events=[(JOURNAL_RUNTIME, frame(4, 0, 0))]),
    "reading": left(4, events=[(JOURNAL_BEGIN, b""), (JOURNAL_CLIENT, ASKED)]),
    "passed": left(2, ASKED, events=[(JOURNAL_CLIENT_PASSED, passed(0, 0, bytes(28))),
                                   (JOURNAL_CLIENT_PASSED, passed(7, 9, WITHIN_PING)),
                                   (JOURNAL_CLIENT, bytes(5))]),
    "unsent": left(2, ASKED, (10, 100)),
    "damaged-state": left(2, ASKED, damages=[(8, 1), (40, 9)]),
    "damaged-event": left(0, damages=[(3, 1), (40, 200)],
                          events=[(JOURNAL_BEGIN, b""), (JOURNAL_CLIENT, ASKED)]),
    "moved": left(3, ASKED, (0, 20)),
    "moved-damaged": left(3, ASKED, damages=[(150, 1), (200, 255)]),
}


# ---- fuzz_control ----

# The methods of shim/control/control.c, in order, then what else happens.
(RESOURCES, PLUGINS, DEVICES, ALLOCATIONS, PODS, STEER, VERIFY, EXPORT, RELEASE, ORDERS, RELOAD,
 LOG_LEVEL, EVENTS, WHY, STATUS) = range(15)
(GONE, COMMITTED, COMMIT_FAILED, LISTED, PASS, LEVEL_WRITTEN, LEVEL_FAILED, LOOKED,
 LOOK_FAILED) = (bytes([0x80 + number]) for number in range(9))
GPU = field(2, b"vendor.com/gpu")
CUT_ID = b"x" * 1024 + b"...(3000 bytes, 0123456789abcdef)"


def asked(method, request=b""):
    return struct.pack(">BH", method, len(request)) + request


CONTROLS = {
    "lists": b"".join(asked(method) for method in (RESOURCES, PLUGINS, DEVICES, ALLOCATIONS, PODS)),
    "lists-of": b"".join(asked(method, field(1, b"vendor.com/gpu") + field(2, b"ns/web")
                               + field(3, b"ns")) for method in (RESOURCES, DEVICES, ALLOCATIONS, PODS)),
    "place": asked(DEVICES, field(4, b"vendor.com/gpu") + field(4, b"g0")),
    "place-cut": asked(DEVICES, field(4, b"vendor.com/gpu") + field(4, CUT_ID)),
    "place-part": asked(RESOURCES, field(4, b"vendor.com/gpu") + field(4, CUT_ID)
                        + field(4, b"1") * 4),
    "place-ids": asked(ALLOCATIONS, b"".join(field(4, part) for part in (
        b"ns", b"web", b"7d8b1c52-9b1f-4c58-8a0e-0c8f3a8b1d10", b"app", b"vendor.com/gpu", b"1"))),
    "cordon": asked(STEER, GPU + field(3, b"g0") + field(3, b"g9") + field(4, b"dust")) + COMMITTED
              + asked(ORDERS) + asked(STATUS) + asked(STEER, field(1, 1) + GPU + field(3, b"g0"))
              + COMMIT_FAILED + asked(ORDERS, field(1, b"vendor.com/gpu")),
    "cordon-gone": asked(STEER, GPU + field(3, b"g0")) + GONE + COMMITTED,
    "withdraw": asked(STEER, field(1, 2) + GPU + field(4, b"moved")) + COMMITTED + asked(RESOURCES)
                + asked(STEER, field(1, 3) + GPU) + COMMITTED,
    "grace": asked(STEER, field(1, 4) + GPU + field(5, 3_600_000)) + COMMITTED + asked(PLUGINS)
             + asked(STEER, field(1, 5) + GPU) + COMMITTED + PASS,
    "of-another-release": asked(STEER, field(1, 77) + GPU),
    "release": asked(RELEASE, field(1, b"web") + field(2, 1)) + LISTED
               + asked(RELEASE, field(1, b"ns/web") + field(3, b"left over")) + LISTED + COMMITTED,
    "release-late": asked(RELEASE, field(1, b"web")) + PASS,
    "level": asked(LOG_LEVEL, field(1, b"debug")) + LEVEL_WRITTEN + asked(LOG_LEVEL, field(2, 1))
             + LEVEL_FAILED + asked(LOG_LEVEL) + asked(RELOAD),
    "follow": asked(EVENTS, field(5, 1)) + asked(EVENTS, field(4, 9)) + asked(
        EVENTS, field(1, b"vendor.com/gpu") + field(2, b"ns/web") + field(3, 1000)) + GONE,
    "checkpoint": asked(VERIFY) + asked(EXPORT) + LOOKED + asked(VERIFY) + GONE + LOOK_FAILED,
    "why": asked(WHY) + asked(WHY, field(1, b"web") + field(2, b"app")),
    "unknown-field": asked(STEER, GPU + field(3, b"g0") + field(2_000_000_000 >> 3, b"?")),
}


# ---- fuzz_driver ----

def info(kind, name, endpoint, *versions):
    return b"\0" + b"".join(field(number, text.encode()) for number, text in [
        (1, kind), (2, name), (3, endpoint), *((4, one) for one in versions)])


def claims(kind, *entries):
    return bytes([kind]) + b"".join(field(1, field(1, uid) + field(2, value)) for uid, value in entries)


DEVICE = field(1, b"gpu") + field(2, b"node-1") + field(3, b"gpu-0") + field(4, b"example.com/gpu=u")
DRIVERS = {
    "driver": info("DRAPlugin", "gpu.example.com", "/plugins/gpu/dra.sock", "v1.DRAPlugin", "v1beta1.DRAPlugin",
                   "v1alpha1.DRAResourceHealth"),
    "driver-alpha": info("DRAPlugin", "gpu.example.com", "", "1.0.0"),
    "driver-unknown": info("DRAPlugin", "gpu.example.com", "/x", "v9.DRAPlugin"),
    "driver-name": info("DRAPlugin", "Not A Name", "/x", "v1.DRAPlugin"),
    "plugin": info("DevicePlugin", "vendor.com/gpu", "/plugins/gpu.sock", "v1beta1"),
    "plugin-version": info("DevicePlugin", "vendor.com/gpu", "", "v1", "v2"),
    "csi": info("CSIPlugin", "csi.example.com", "/plugins/csi.sock", "1.0.0"),
    "prepared": claims(1, (b"u", field(1, DEVICE) + field(1, DEVICE + field(5, b"share")))),
    "prepared-unknown-field": claims(1, (b"u", field(1, DEVICE + b"\xc2\x3e\x03abc"))),
    "prepared-error": claims(1, (b"u", field(2, b"no such device"))),
    "prepared-twice": claims(1, (b"u", field(2, b"no")), (b"u", field(1, DEVICE))),
    "prepared-another": claims(1, (b"u", b""), (b"v", b"")),
    "prepared-none": claims(1),
    "unprepared": claims(2, (b"u", b"")),
    "unprepared-error": claims(2, (b"u", field(1, b"busy"))),
}


def main():
    session_seeds()
    create_seeds()
    for name, data in MESSAGES.items():
        write("fuzz_message", name, data)
    for name, data in ANNOTATIONS.items():
        write("fuzz_request", name, data)
    for name, text in CONFIGS.items():
        write("fuzz_config", name, text.encode())
    for target, seeds in (("fuzz_devices", DEVICE_LISTS), ("fuzz_record", ROWS),
                          ("fuzz_feed", FEEDS), ("fuzz_status", STATUSES),
                          ("fuzz_h2", CONNECTIONS), ("fuzz_journal", JOURNALS),
                          ("fuzz_control", CONTROLS), ("fuzz_driver", DRIVERS)):
        for name, data in seeds.items():
            write(target, name, data)
    for path in sys.argv[1:]:
        with open(path, "rb") as capture:
            data = capture.read()
        name = os.path.basename(path).removesuffix(".cap")
        if len(data) <= CAPTURE_BYTES_MAX:
            capture_seed(name, data)
        capture_messages(name, data)


main()
