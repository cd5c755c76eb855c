"""A small CRI client on python3-grpcio, without generated stubs: for demo command and tests.

    with Client("/run/x.sock") as client:
        client.Version()              # any of METHODS, with keyword arguments or a request
        pod = client.run_pod("web")   # a host-network pod: no CNI needed
        container = client.run(pod, "app", ["sh", "-c", "env"])
        client.wait_exit(container)

A failed call raises grpc.RpcError with code() and details().
"""

import itertools
import os
import uuid

import grpc

import images
from protos import IMAGE, RUNTIME, cri
from waiting import GENEROUS_S, wait_until

MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # the kubelet's own limit
METADATA_BYTES_MAX = 16 * 1024 * 1024  # grpc-go's, so the kubelet's
# Test runs side by side have one each, so that none removes another's.
CGROUP_PARENT = os.environ.get("SHIM_CGROUP_PARENT", "/cri-device-shim")

_RUNTIME_METHODS = (
    "Version", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus",
    "ListPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer",
    "ListContainers", "ContainerStatus", "UpdateContainerResources", "ReopenContainerLog",
    "ExecSync", "Exec", "UpdateRuntimeConfig", "Status")
_IMAGE_METHODS = ("ListImages", "ImageStatus", "PullImage", "RemoveImage")
METHODS = dict.fromkeys(_RUNTIME_METHODS, RUNTIME) | dict.fromkeys(_IMAGE_METHODS, IMAGE)


def request_type(method):
    return getattr(cri, f"{method}Request")


class Pod:
    """A sandbox that run_pod() made, and the config that each CreateContainer in it repeats."""

    def __init__(self, sandbox_id, config):
        self.id = sandbox_id
        self.config = config
        self.uid = config.metadata.uid


def pod_config(name, uid=None, namespace="default", attempt=0, annotations=None, log_directory=""):
    uid = uid or str(uuid.uuid4())
    config = cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name=name, uid=uid, namespace=namespace, attempt=attempt),
        log_directory=str(log_directory),
        labels={"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace,
                "io.kubernetes.pod.uid": uid},
        annotations=annotations or {})
    config.linux.cgroup_parent = CGROUP_PARENT
    config.linux.security_context.namespace_options.network = cri.NODE
    return config


def container_config(name, command, attempt=0, image=images.APP, envs=None, annotations=None,
                     **more):
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=name, attempt=attempt),
        image=cri.ImageSpec(image=image), command=command, log_path=f"{name}_{attempt}.log",
        envs=[cri.KeyValue(key=key, value=value.encode()) for key, value in (envs or {}).items()],
        labels={"io.kubernetes.container.name": name}, annotations=annotations or {}, **more)


class Client:
    """One connection of its own to the CRI socket `path`.

    gRPC's C core reads nothing while no call is open, so that an idle client does not learn that
    its connection has ended before its next call fails with UNAVAILABLE: after a restart of the
    server, reconnect().
    """

    def __init__(self, path, timeout_s=GENEROUS_S):
        self.path = str(path)
        self.timeout_s = timeout_s
        self.channel = self._open()

    def _open(self):
        return grpc.insecure_channel(f"unix:{self.path}", options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", METADATA_BYTES_MAX),
            # A ping of the C core's own that fails would tell it by chance, if it comes in time.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200)])

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def close(self):
        self.channel.close()

    def reconnect(self):
        """A new connection, which the server has taken; open calls end as CANCELLED."""
        self.close()
        self.channel = self._open()
        self.wait_ready()

    def wait_ready(self, seconds=GENEROUS_S):
        """Of a connection that is not made yet: one that has ended unnoticed counts as ready."""
        grpc.channel_ready_future(self.channel).result(timeout=seconds)

    def unary(self, path, request=b"", **options):
        """Any unary method, bytes in and bytes out; returns (answer, the call)."""
        options.setdefault("timeout", self.timeout_s)
        return self.channel.unary_unary(path).with_call(request, **options)

    def begin(self, method, request, **options):
        """Starts a call and returns its future."""
        options.setdefault("timeout", self.timeout_s)
        return self._callable(method).future(request, **options)

    def _callable(self, method):
        return self.channel.unary_unary(
            METHODS[method] + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=getattr(cri, f"{method}Response").FromString)

    def __getattr__(self, method):
        if method not in METHODS:
            raise AttributeError(method)

        def call(request=None, timeout=None, **fields):
            if request is None:
                request = request_type(method)(**fields)
            return self._callable(method)(request, timeout=timeout or self.timeout_s)

        return call

    def events(self, timeout=None):
        """The GetContainerEvents stream: an iterator of ContainerEventResponse, with cancel()."""
        stream = self.channel.unary_stream(
            RUNTIME + "GetContainerEvents",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=cri.ContainerEventResponse.FromString)
        return stream(cri.GetEventsRequest(), timeout=timeout)

    def run_pod(self, name, **config):
        config = pod_config(name, **config)
        return Pod(self.RunPodSandbox(config=config).pod_sandbox_id, config)

    def create_request(self, pod, name, command=(), **config):
        return cri.CreateContainerRequest(
            pod_sandbox_id=pod.id, config=container_config(name, command, **config),
            sandbox_config=pod.config)

    def create(self, pod, name, command=(), timeout=None, **config):
        request = self.create_request(pod, name, command, **config)
        return self.CreateContainer(request, timeout=timeout).container_id

    def run(self, pod, name, command=(), **config):
        container_id = self.create(pod, name, command, **config)
        self.StartContainer(container_id=container_id)
        return container_id

    def wait_state(self, container_id, state):
        def status():
            answer = self.ContainerStatus(container_id=container_id).status
            return answer if answer.state == state else None

        return wait_until(status, f"container {container_id} is {cri.ContainerState.Name(state)}")

    def wait_exit(self, container_id):
        return self.wait_state(container_id, cri.CONTAINER_EXITED)

    def exec(self, container_id, *command, timeout_s=30):
        """The output of a command in a running container; AssertionError if it failed."""
        answer = self.ExecSync(container_id=container_id, cmd=command, timeout=timeout_s)
        assert answer.exit_code == 0, f"{command}: {answer.exit_code}, {answer.stderr.decode()}"
        return answer.stdout.decode()

    def remove_pod(self, pod_id):
        self.StopPodSandbox(pod_sandbox_id=pod_id)
        self.RemovePodSandbox(pod_sandbox_id=pod_id)

    def remove_all_pods(self):
        for pod in self.ListPodSandbox().items:
            self.remove_pod(pod.id)


def log_lines(path):
    """The text of a container's CRI log file: [(stream, line), ...]; partial lines are joined."""
    lines, open_parts = [], {}
    with open(path, encoding="utf-8") as file:
        for _time, stream, tag, text in (line.rstrip("\n").split(" ", 3) for line in file):
            text = open_parts.pop(stream, "") + text
            if tag.startswith("P"):
                open_parts[stream] = text
            else:
                lines.append((stream, text))
    return list(itertools.chain(lines, open_parts.items()))
