"""A CRI runtime that records every call as it came and answers as told.

It takes any method. Requests and answers are raw bytes, so what was recorded is what came over the
wire. Unless a test says otherwise it keeps pods and containers in memory, enough for the shim to
list them after a restart, and echoes the request of any method it does not know.

    runtime = Runtime(directory / "r.sock")
    runtime.start()
    runtime.on("Status", lambda call: Reply(code=grpc.StatusCode.INTERNAL, details="no"))
"""

import concurrent.futures
import dataclasses
import threading
import uuid

import grpc
from google.protobuf.message import DecodeError

from criclient import MESSAGE_BYTES_MAX, Client
from protos import cri
from waiting import GENEROUS_S, wait_until


@dataclasses.dataclass
class Reply:
    """How a call ends; `messages` may be an endless iterator of bytes."""

    messages: object = (b"",)
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    initial: tuple = ()
    trailing: tuple = ()


class Call:
    """One recorded call: its raw requests, and its metadata in the order it came.

    `killed`: set when the runtime that took it is stopped, and so does nothing more for it.
    """

    def __init__(self, path, context, killed):
        self.path = path
        self.method = path.rpartition("/")[2]
        self.metadata = [tuple(pair) for pair in context.invocation_metadata()]
        self.time_remaining = context.time_remaining()
        self.messages = []
        self.killed = killed
        self.over = threading.Event()  # answered, reset by the client or cut off
        context.add_callback(self.over.set)

    @property
    def request(self):
        """The first message, b"" if none came."""
        return self.messages[0] if self.messages else b""

    def parsed(self):
        name = {"GetContainerEvents": "GetEvents"}.get(self.method, self.method)
        return getattr(cri, f"{name}Request").FromString(self.request)


def not_found(what):
    return Reply((), grpc.StatusCode.NOT_FOUND, f"{what}: not found")


class _State:
    """The pods and containers of a runtime, by id."""

    def __init__(self):
        self.pods = {}
        self.containers = {}
        self._lock = threading.Lock()

    def kill(self, killed):
        """Sets it when no call is being answered."""
        with self._lock:
            killed.set()

    def answer(self, call):
        handler = getattr(self, f"_{call.method}", None)
        if handler is None:
            return Reply(call.messages)
        if not call.messages and (call.over.is_set() or call.method == "RunPodSandbox"):
            return Reply((), grpc.StatusCode.CANCELLED, "it was reset before its request was whole")
        try:
            request = call.parsed()
        except DecodeError as error:
            return Reply((), grpc.StatusCode.INTERNAL, f"grpc: error unmarshalling: {error}")
        with self._lock:
            if call.killed.is_set():
                return Reply((), grpc.StatusCode.UNAVAILABLE, "the runtime is stopped")
            answer = handler(request)
        return answer if isinstance(answer, Reply) else Reply((answer.SerializeToString(),))

    def _Version(self, request):
        return cri.VersionResponse(version="0.1.0", runtime_name="recorder", runtime_version="1",
                                   runtime_api_version="v1")

    def _RunPodSandbox(self, request):
        pod_id = uuid.uuid4().hex * 2
        self.pods[pod_id] = cri.PodSandbox(
            id=pod_id, metadata=request.config.metadata, state=cri.SANDBOX_READY, created_at=1,
            labels=request.config.labels, annotations=request.config.annotations)
        return cri.RunPodSandboxResponse(pod_sandbox_id=pod_id)

    def _StopPodSandbox(self, request):
        if request.pod_sandbox_id in self.pods:
            self.pods[request.pod_sandbox_id].state = cri.SANDBOX_NOTREADY
        for container in self.containers.values():
            if container.pod_sandbox_id == request.pod_sandbox_id:
                container.state = cri.CONTAINER_EXITED
        return cri.StopPodSandboxResponse()

    def _RemovePodSandbox(self, request):
        self.pods.pop(request.pod_sandbox_id, None)
        self.containers = {key: container for key, container in self.containers.items()
                           if container.pod_sandbox_id != request.pod_sandbox_id}
        return cri.RemovePodSandboxResponse()

    def _PodSandboxStatus(self, request):
        pod = self.pods.get(request.pod_sandbox_id)
        if pod is None:
            return not_found("sandbox")
        return cri.PodSandboxStatusResponse(status=cri.PodSandboxStatus(
            id=pod.id, metadata=pod.metadata, state=pod.state, created_at=pod.created_at,
            labels=pod.labels, annotations=pod.annotations))

    def _ListPodSandbox(self, request):
        wanted = request.filter.id
        return cri.ListPodSandboxResponse(
            items=[pod for pod in self.pods.values() if pod.id == wanted or not wanted])

    def _CreateContainer(self, request):
        if request.pod_sandbox_id not in self.pods:
            return not_found(f"sandbox {request.pod_sandbox_id!r}")
        container_id = uuid.uuid4().hex * 2
        self.containers[container_id] = cri.Container(
            id=container_id, pod_sandbox_id=request.pod_sandbox_id,
            metadata=request.config.metadata, image=request.config.image,
            state=cri.CONTAINER_CREATED, created_at=1,
            labels=request.config.labels, annotations=request.config.annotations)
        return cri.CreateContainerResponse(container_id=container_id)

    def _set_state(self, container_id, state, answer):
        if container_id not in self.containers:
            return not_found(f"container {container_id!r}")
        self.containers[container_id].state = state
        return answer

    def _StartContainer(self, request):
        return self._set_state(request.container_id, cri.CONTAINER_RUNNING,
                               cri.StartContainerResponse())

    def _StopContainer(self, request):
        return self._set_state(request.container_id, cri.CONTAINER_EXITED,
                               cri.StopContainerResponse())

    def _RemoveContainer(self, request):
        self.containers.pop(request.container_id, None)
        return cri.RemoveContainerResponse()

    def _ListContainers(self, request):
        wanted = request.filter.id
        return cri.ListContainersResponse(
            containers=[one for one in self.containers.values() if one.id == wanted or not wanted])

    def _GetContainerEvents(self, _request):
        return Reply((), grpc.StatusCode.UNIMPLEMENTED, "unknown method GetContainerEvents")

    def _ContainerStatus(self, request):
        one = self.containers.get(request.container_id)
        if one is None:
            return not_found(f"container {request.container_id!r}")
        return cri.ContainerStatusResponse(status=cri.ContainerStatus(
            id=one.id, metadata=one.metadata, state=one.state, created_at=one.created_at,
            labels=one.labels, annotations=one.annotations))


class _AnyMethod(grpc.GenericRpcHandler):
    def __init__(self, runtime, killed):
        self._runtime, self._killed = runtime, killed

    def service(self, handler_call_details):
        path = handler_call_details.method

        def behaviour(requests, context):
            return self._runtime.serve(Call(path, context, self._killed), requests, context)

        return grpc.stream_stream_rpc_method_handler(behaviour)


class Runtime:
    """`calls` are those that came with a whole request message, in order. `at_once`: so many of one connection are served
    beside each other (None: as many as there are), from the next start() on."""

    def __init__(self, path):
        self.path = path
        self.at_once = None
        self.state = _State()
        self.calls = []
        self._handlers = {}
        self._server = None
        self._killed = None

    def start(self):
        self._killed = threading.Event()
        self._server = grpc.server(
            # A held CreateContainer is open here already, and takes a thread.
            concurrent.futures.ThreadPoolExecutor(max_workers=256),
            handlers=[_AnyMethod(self, self._killed)],
            options=[("grpc.max_metadata_size", 1 << 20),
                     ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                     ("grpc.max_send_message_length", -1),
                     *([("grpc.max_concurrent_streams", self.at_once)] if self.at_once else [])])
        assert self._server.add_insecure_port(f"unix:{self.path}"), f"cannot listen on {self.path}"
        self._server.start()

    def stop(self):
        """Cuts every connection; the state stays for the next start(), and no call that is still under
        way changes it: its thread goes on, where a runtime's process is gone."""
        if self._server is not None:
            self.state.kill(self._killed)
            self._server.stop(grace=None).wait(GENEROUS_S)
            self._server = None

    def client(self):
        return Client(self.path)

    def on(self, method, handler=None):
        """handler(call) -> Reply answers `method` from now on; None: the default again."""
        if handler is None:
            self._handlers.pop(method, None)
        else:
            self._handlers[method] = handler

    def stop_container(self, call):
        """The default answer to StopContainer."""
        return self.state.answer(call)

    def calls_of(self, method):
        return [call for call in list(self.calls) if call.method == method]

    def wait_calls(self, method, count=1):
        """The calls of `method` so far, once there are `count` of them."""
        return wait_until(lambda: len(found := self.calls_of(method)) >= count and found,
                          f"{count} calls of {method} reach the runtime")

    def serve(self, call, requests, context):
        try:
            call.messages.extend(requests)
        except grpc.RpcError:
            return
        if call.messages:  # else reset before its request was whole, as by the shim's refusals
            self.calls.append(call)
        reply = self.answer(call)
        if reply.initial:
            context.send_initial_metadata(reply.initial)
        yield from reply.messages
        context.set_trailing_metadata(reply.trailing)
        context.set_code(reply.code)
        context.set_details(reply.details)

    def answer(self, call):
        return self._handlers.get(call.method, self.state.answer)(call)

    def create_requests(self):
        """What reached the runtime as CreateContainer, parsed."""
        return [call.parsed() for call in self.calls_of("CreateContainer")]
