"""Directly and through the shim, the same client script sees the same answers of containerd."""

import re

import grpc
from google.protobuf import json_format

import images
from criclient import Pod, container_config, log_lines, pod_config
from protos import IMAGE, RUNTIME, cri
from rawh2 import Connection, framed

_ID = re.compile(r"\b[0-9a-f]{64}\b")
_TIME = re.compile(r'("(?:createdAt|startedAt|finishedAt)": )"\d+"')
_URL = re.compile(r"http://127\.0\.0\.1:\d+/(exec|attach|portforward)/[\w-]+")
_NO_SUCH = "0" * 64


class Transcript:
    """What a client saw, step by step; only ids, times and one-time URLs are made comparable."""

    def __init__(self, client, log_directory):
        self._client = client
        self._replaced = {str(log_directory): "LOGS"}
        self.steps = []

    def _comparable(self, text):
        for word, name in self._replaced.items():
            text = text.replace(word, name)
        text = _ID.sub(lambda found: self._replaced.setdefault(
            found[0], f"ID{len(self._replaced)}"), text)
        return _URL.sub(r"http://HOST/\1/TOKEN", _TIME.sub(r'\1"TIME"', text))

    def note(self, name, text):
        self.steps.append((name, self._comparable(text)))

    def call(self, method, request=None, **fields):
        """The answer, or None if it was an error; either way it is noted."""
        try:
            answer = getattr(self._client, method)(request, **fields)
        except grpc.RpcError as error:
            self.note(method, f"{error.code().name}: {error.details()}")
            return None
        if method == "ListImages":
            answer.images.sort(key=lambda image: image.id)  # containerd's order is random
        self.note(method, json_format.MessageToJson(answer, sort_keys=True))
        return answer


def pods_and_containers(see, pod):
    """Creates, looks at, runs commands in, stops and removes containers of `pod`."""
    def create(name, command, **config):
        return see.call("CreateContainer", cri.CreateContainerRequest(
            pod_sandbox_id=pod.id, config=container_config(name, command, **config),
            sandbox_config=pod.config)).container_id

    app = create("app", ["sh", "-c", "echo out; echo err >&2; env; exec sleep 1000"],
                 envs={"A": "1", "B": "two words"}, annotations={"note": "for the runtime"},
                 mounts=[cri.Mount(container_path="/host-etc", host_path="/etc", readonly=True)],
                 devices=[cri.Device(container_path="/dev/mine", host_path="/dev/full",
                                     permissions="rw")])
    failing = create("failing", ["sh", "-c", "echo failing; exit 3"])
    for container in (app, failing):
        see.call("StartContainer", container_id=container)
    see.client.wait_exit(failing)
    see.call("ContainerStatus", container_id=app)
    see.call("ContainerStatus", container_id=failing)
    see.call("ListContainers", filter={"pod_sandbox_id": pod.id, "label_selector": {
        "io.kubernetes.container.name": "app"}})
    for command in ("ls -l /dev/mine | cut -c1-50; env; exit 7",
                    "head -c 1000000 /dev/zero | tr '\\0' x"):
        see.call("ExecSync", container_id=app, cmd=["sh", "-c", command])
    see.call("ExecSync", container_id=app, cmd=["no-such-program"])
    see.call("Exec", container_id=app, cmd=["sh"], stdin=True, stdout=True, tty=True)
    see.call("UpdateContainerResources", container_id=app, linux={"cpu_shares": 512})
    see.call("ReopenContainerLog", container_id=app)
    see.call("StopContainer", container_id=app, timeout=0)
    see.client.wait_exit(app)
    see.call("ContainerStatus", container_id=app)
    see.note("log of app", str(sorted(log_lines(f"{pod.config.log_directory}/app_0.log"))))
    see.note("log of failing", str(log_lines(f"{pod.config.log_directory}/failing_0.log")))
    see.call("RemoveContainer", container_id=failing)
    see.call("ListContainers", filter={"id": failing})
    return app


def errors(see, pod, stopped):
    """What a client gets wrong: unknown ids, missing parts, names taken, images not there."""
    for method in ("StartContainer", "StopContainer", "RemoveContainer", "ContainerStatus", "Exec"):
        see.call(method, container_id=_NO_SUCH)
    for method in ("StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus"):
        see.call(method, pod_sandbox_id=_NO_SUCH)
    see.call("ExecSync", container_id=stopped, cmd=["true"])
    see.call("StartContainer", container_id=stopped)
    see.call("CreateContainer", pod_sandbox_id=_NO_SUCH)
    see.call("CreateContainer", pod_sandbox_id=pod.id, sandbox_config=pod.config)
    see.call("CreateContainer", cri.CreateContainerRequest(
        pod_sandbox_id=pod.id, config=container_config("app", ["sh"]), sandbox_config=pod.config))
    see.call("CreateContainer", cri.CreateContainerRequest(
        pod_sandbox_id=pod.id, config=container_config("none", ["sh"], image="no.such/image:1"),
        sandbox_config=pod.config))
    see.call("CreateContainer", cri.CreateContainerRequest(
        pod_sandbox_id=pod.id, sandbox_config=pod.config, config=container_config(
            "nodev", ["sh"], devices=[cri.Device(host_path="/dev/none", container_path="/dev/n")])))
    see.call("RunPodSandbox", config=cri.PodSandboxConfig())
    see.call("RunPodSandbox", config=pod.config)
    see.call("RunPodSandbox", config=pod_config("x", uid="x"), runtime_handler="no-such-handler")
    see.call("PullImage", image={"image": "!"})


def unread_paths(see):
    """Calls that are in no table, bytes that are no message."""
    for path, request in ((RUNTIME + "NoSuchMethod", b""), ("/no.Such/Service", b""),
                          (IMAGE + "ImageFsInfo", b"\xff\xff"), (RUNTIME + "Version", b"\x0a\xff"),
                          (RUNTIME + "CreateContainer", b"\x12\xff\xff"),
                          (RUNTIME + "CreateContainer", b"\x12\x03\x0a\x7f\x0a"),
                          (RUNTIME + "RunPodSandbox", b"\xff\xff\xff\xff")):
        try:
            answer, _call = see.client.unary(path, request)
            see.note(path, repr(answer))
        except grpc.RpcError as error:
            see.note(path, f"{error.code().name}: {error.details()}")


def script(client, log_directory):
    """Everything one after the other; returns what was seen."""
    see = Transcript(client, log_directory)
    see.client = client
    see.call("Version", version="v1")
    see.call("Status")
    see.call("ListImages")
    see.call("ImageStatus", image={"image": images.APP}, verbose=True)
    see.call("ImageStatus", image={"image": "no.such/image:1"})
    config = pod_config("web", uid="7c7d2c7e-0000-4000-8000-000000000001",
                        log_directory=log_directory, annotations={"some": "annotation"})
    pod = Pod(see.call("RunPodSandbox", config=config).pod_sandbox_id, config)
    see.call("PodSandboxStatus", pod_sandbox_id=pod.id)
    see.call("ListPodSandbox", filter={"state": {"state": cri.SANDBOX_READY}})
    app = pods_and_containers(see, pod)
    errors(see, pod, app)
    unread_paths(see)
    see.note("events", _events_error(client))
    for method in ("StopPodSandbox", "RemovePodSandbox", "RemovePodSandbox", "PodSandboxStatus"):
        see.call(method, pod_sandbox_id=pod.id)
    see.call("ListPodSandbox")
    see.call("ListContainers")
    see.call("RemoveImage", image={"image": "no.such/image:1"})
    return see.steps


def _events_error(client):
    try:
        return f"{next(client.events(timeout=30))}"
    except grpc.RpcError as error:
        return f"{error.code().name}: {error.details()}"


def test_same_answers(direct, client, directory):
    """Through the shim and directly, the same client script (pods, containers, exec, logs, images,
    errors, unknown methods) sees the same answers."""
    directly = script(direct, directory / "logs-a")
    through = script(client, directory / "logs-b")
    for ours, theirs in zip(through, directly):
        assert ours == theirs
    assert len(through) == len(directly) > 60


def test_padded_frames(containerd, shim, client):
    """DATA frames with padding, whose bytes count for flow control only, reach containerd right."""
    pod = client.run_pod("web")
    request = framed(client.create_request(pod, "app", image="no.such/image:1").SerializeToString())
    answers = []
    for path in (containerd.socket, shim.socket):
        with Connection(path) as connection:
            for _ in range(400):  # 400 * 256 bytes of padding are more than one window
                stream = connection.begin(RUNTIME + "CreateContainer")
                connection.h2.send_data(stream, request, end_stream=True, pad_length=255)
                connection.flush()
                answer = connection.wait_end(stream)
                answers.append((answer.status, answer.message))
    assert len(set(answers)) == 1 and answers[0][0] == grpc.StatusCode.NOT_FOUND.value[0]
