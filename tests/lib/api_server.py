"""A scripted API server: lists, watches, bookmarks, 410, patches, deletecollection, the node authorizer's
refusals; and whatever else a server may do to its clients.

    server = ApiServer(directory / "pki"); server.start()
    server.put("nodes", {"metadata": {"name": "n1"}, "status": {"capacity": {"v.com/gpu": "2"}}})
    path = server.kubeconfig(directory / "kubelet.conf", node="n1")
    server.fault(Fault(status=429, headers={"retry-after": "2"}), path="/api/v1/pods")
    server.stop()

HTTP/2 over TLS, by python3-h2, and HTTP/1.1 for clients that know nothing else. `requests` has all that
was asked, `watches` those that are open. Everything runs on one loop in a thread of its own; what tests
call is carried over to it.
"""

import asyncio
import base64
import contextlib
import copy
import dataclasses
import email.utils
import itertools
import json
import pathlib
import ssl
import threading
import time
import urllib.parse

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import yaml

import api_groups
import api_pods
import api_slices
import serving_thread
from api_groups import RESOURCES
from kube_certificates import Authority
from shim import ROOT
from waiting import GENEROUS_S, wait_until

_FIELDS = {"metadata.name": lambda one: one["metadata"]["name"],
           "spec.nodeName": lambda one: one.get("spec", {}).get("nodeName", ""),
           "spec.driver": lambda one: one.get("spec", {}).get("driver", "")}
_ROLE = "config/agent-rbac.yaml"


@dataclasses.dataclass
class Request:
    method: str
    path: str
    query: dict
    headers: dict
    user: str
    body: bytes = b""
    connection: int = 0
    at: float = dataclasses.field(default_factory=time.monotonic)
    version: str = ""  # of the group

    @property
    def selector(self):
        text = self.query.get("fieldSelector", "")
        return dict(term.split("=", 1) for term in text.split(",") if term)

    @property
    def streams(self):
        """A watch that begins with all there is."""
        return "sendInitialEvents" in self.query

    @property
    def watch(self):
        """None: it is both, and neither."""
        return None if self.streams else "watch" in self.query

    def json(self):
        return json.loads(self.body)


@dataclasses.dataclass
class Fault:
    """What is done in place of an answer: `status` with these headers, and these `words` behind its own; the right answer, but only its first
    `cut` bytes, after which the stream ends as if that were all, or (`reset`) is torn off; `silence`: none
    until the server ends; `late_s`: the right answer, so much later; `endless`: a right beginning and then bytes without
    end; `body` of a 200."""

    status: int = 0
    headers: dict = dataclasses.field(default_factory=dict)
    words: str = ""
    cut: int = None
    reset: bool = False
    silence: bool = False
    late_s: float = 0
    endless: bool = False
    body: bytes = None
    of: bytes = b""  # only of requests whose body has it
    sent: int = 0  # bytes of the endless one


class _Watch:
    def __init__(self, request, resource, send):
        self.request = request
        self.resource = resource
        self.send = send  # send(bytes or None for its end)
        self.since = 0  # the version: what is not newer is not told
        self.known = set()


class Refused(Exception):
    def __init__(self, status, reason, message, headers=None):
        super().__init__(message)
        self.status, self.reason, self.message, self.headers = status, reason, message, headers or {}

    def body(self):
        return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.status,
                           "reason": self.reason, "message": self.message}).encode()


def _role():
    """{(API group, resource): verbs} of an account that is not a node's."""
    (role,) = [one for one in yaml.safe_load_all((ROOT / _ROLE).read_text()) if one["kind"] == "ClusterRole"]
    found = {}
    for rule in role["rules"]:
        for key in itertools.product(rule["apiGroups"], rule["resources"]):
            found.setdefault(key, set()).update(rule["verbs"])
    return found


_ALLOWED = _role()


def _check_role(request, resource, name):
    """Whoever asks: by other credentials it would have to be allowed."""
    verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete" if name else "deletecollection"}.get(
        request.method, "get" if name else "watch" if "watch" in request.query else "list")
    group = api_groups.GROUP if request.path.startswith("/apis/") else ""
    if verb not in _ALLOWED.get((group, resource), ()):
        raise Refused(403, "Forbidden", f"{_ROLE} allows nobody to {verb} {resource}")


class ApiServer:
    """`pki`: a directory that is made. `served`: what each version of a group has; others are 404."""

    def __init__(self, pki, http2=True, release="1.36", streaming=None):
        self.authority = Authority(pki)
        self.authority.sign("server", "kube-apiserver", addresses=["127.0.0.1"])
        self.http2 = http2
        self.port = 0
        self.requests = []
        self.watches = []
        self.cut_off = []  # requests that the client has given up, over HTTP/2
        self.connections = 0  # that were made
        self.open = 0
        self.tokens = {}  # {token: user}
        self.budgets = []  # api_pods.Budget
        self.served = api_groups.served(release)
        self.streaming = release in api_groups.STREAMING if streaming is None else streaming
        self.ahead_s = None  # of its clock, before the machine's; None: its answers say nothing of it
        self.mute_end = False  # what streams is all told, but never that it is
        self.error_events = False  # 410 as an event, not as a status
        self.objects = {name: {} for name in RESOURCES}
        self._version = 100
        self._history = []  # (version, resource, type, object before, object)
        self._compacted = 0
        self._faults = []
        self._loop = None
        self._thread = None
        self._server = None
        self._tasks = set()
        self._protocols = set()

    # ---- what tests do ----

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def start(self):
        self._thread = serving_thread.start(self._run)

    def stop(self):
        """All connections are torn off; start() serves the same port and objects again."""
        if self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GENEROUS_S)
        assert not self._thread.is_alive()
        self._thread = None

    def put(self, resource, one):
        """Adds it, or changes the one of that name; its uid and version are filled in."""
        return self._call(self._put, resource, one)

    def remove(self, resource, name, namespace=None):
        self._call(self._remove, resource, (namespace, name))

    def get(self, resource, name, namespace=None):
        return copy.deepcopy(self.objects[resource].get((namespace, name)))

    def bookmark(self):
        self._call(self._bookmark)

    def compact(self, beyond=0):
        """Whoever asks to go on from a version before now is told 410. `beyond`: only if more than so many events are kept."""
        if len(self._history) >= beyond:
            self._call(self._compact)

    def backup(self):
        return self._call(lambda: (copy.deepcopy(self.objects), self._version))

    def restore(self, backup):
        """While it is stopped: its store is that of then, and so is its version. Whoever asks to go on from a later one
        hears nothing before there is a newer one yet, as with etcd's "snapshot restore" without --bump-revision."""
        objects, self._version = backup
        self.objects = copy.deepcopy(objects)
        self._history = [event for event in self._history if event[0] <= self._version]

    def end_watches(self):
        """As a server does when their time is over."""
        self._call(lambda: [watch.send(None) for watch in list(self.watches)])

    def go_away(self):
        """As a server that wants its clients elsewhere (--goaway-chance), over HTTP/2: what has begun on a connection goes
        on there, and what is begun later it does not hear."""
        self._call(lambda: [protocol.go_away() for protocol in list(self._protocols)])

    def send_raw(self, data):
        """These bytes, to all watches."""
        self._call(lambda: [watch.send(data) for watch in list(self.watches)])

    def fault(self, fault, path="", method="", watch=None, times=1):
        """For the next `times` requests that match; None: from now on."""
        self._faults.append([fault, path, method, watch, times])
        return fault

    def mend(self):
        self._faults.clear()

    def asked(self, path="", method="GET", watch=None):
        return [one for one in list(self.requests) if one.path.startswith(path) and one.method == method
                and (watch is None or one.watch == watch)]

    def wait_asked(self, path="", method="GET", watch=None, count=1):
        return wait_until(lambda: len(found := self.asked(path, method, watch)) >= count and found,
                          f"{count} of {method} {path}; there were {[(r.method, r.path) for r in self.requests]}")

    def wait_watched(self, resource, seconds=GENEROUS_S):
        return wait_until(lambda: [one for one in list(self.watches) if one.resource == resource],
                          f"somebody watches {resource}", seconds)

    def watches_of(self, resource):
        """What they asked for that are open."""
        return [one.request for one in list(self.watches) if one.resource == resource]

    def kubeconfig(self, path, node=None, **user):
        """Writes one, for a node's certificate or what `user` is (as in kubectl's `users[].user`)."""
        path = pathlib.Path(path)
        if node:
            name = f"node-{node}"
            if not self.authority.pair(name)[0].exists():
                self.authority.sign(name, f"system:node:{node}", group="system:nodes")
            certificate, key = self.authority.pair(name)
            user = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key), **user}
        path.write_text(json.dumps(self.config(user)))
        return path

    def config(self, user, **cluster):
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.authority.certificate), **cluster}
        return {"apiVersion": "v1", "kind": "Config", "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": {key: one for key, one in cluster.items() if one is not None}}],
                "users": [{"name": "it", "user": user}]}

    # ---- its loop ----

    def _call(self, function, *arguments):
        if self._thread is None:
            return function(*arguments)
        done, result = threading.Event(), []

        def run():
            try:
                result.append(function(*arguments))
            finally:
                done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(GENEROUS_S)
        return result[0]

    def _run(self, started):
        self._loop = asyncio.new_event_loop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.authority.pair("server"))
        context.load_verify_locations(self.authority.certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["h2", "http/1.1"] if self.http2 else ["http/1.1"])
        self._server = self._loop.run_until_complete(self._loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, ssl=context))
        self.port = self._server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        self._server.close()
        for protocol in list(self._protocols):
            protocol.abort()
        for task in list(self._tasks):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self.watches.clear()
        self._loop.close()

    def task(self, coroutine):
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- objects ----

    def _put(self, resource, one):
        one = copy.deepcopy(one)
        kind, version = RESOURCES[resource]
        key = (one["metadata"].get("namespace"), one["metadata"]["name"])
        before = self.objects[resource].get(key)
        self._version += 1
        one.update(apiVersion=version, kind=kind)
        one["metadata"].setdefault("uid", before["metadata"]["uid"] if before else f"uid-{self._version}")
        one["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource][key] = one
        self._tell(resource, "MODIFIED" if before else "ADDED", before, one)
        return copy.deepcopy(one)

    def _remove(self, resource, key):
        self._version += 1
        one = copy.deepcopy(self.objects[resource].pop(key))
        one["metadata"]["resourceVersion"] = str(self._version)
        self._tell(resource, "DELETED", one, one)

    def _tell(self, resource, kind, before, one):
        event = (self._version, resource, kind, before, one)
        self._history.append(event)
        for watch in list(self.watches):
            if watch.resource == resource and self._version > watch.since:
                _send_event(watch, event)

    def _bookmark(self):
        for watch in list(self.watches):
            if self._version >= watch.since:
                _send(watch, "BOOKMARK", self._empty(watch.resource))

    def _empty(self, resource):
        kind, version = RESOURCES[resource]
        return {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": str(self._version)}}

    def _compact(self):
        self._version += 1
        self._compacted = self._version
        self._history.clear()

    # ---- answering ----

    def answer(self, request, respond, send):
        """respond(status, headers, body) ends it; or respond(200, {}, None), then send(bytes), send(None)."""
        self.requests.append(request)
        fault = self._find_fault(request)
        try:
            if fault and fault.silence:
                return
            if fault and fault.late_s:
                self.task(self._late(fault, request, respond, send))
                return
            if fault and fault.status:
                raise Refused(fault.status, "Scripted", "as the script says" + fault.words, fault.headers)
            if fault and fault.body is not None:
                respond(200, {}, fault.body)
                return
            if fault and fault.endless:
                respond(200, {}, None)
                self.task(self._endless(fault, request, send))
                return
            self._answer_right(request, respond, send, fault)
        except Refused as refused:
            respond(refused.status, refused.headers, refused.body())

    def _find_fault(self, request):
        for row in self._faults:
            fault, path, method, watch, times = row
            if (not request.path.startswith(path) or (method and method != request.method)
                    or (watch is not None and watch != request.watch) or times == 0
                    or fault.of not in request.body):
                continue
            if times is not None:
                row[4] -= 1
            return fault
        return None

    async def _late(self, fault, request, respond, send):
        await asyncio.sleep(fault.late_s)
        with contextlib.suppress(KeyError):  # it was given up
            self._answer_right(request, respond, send, None)

    async def _endless(self, fault, request, send):
        data = b'{"type":"ADDED","object":{"x":"' if request.watch else b'{"metadata":{},"items":[{"x":"'
        while await send(data):
            fault.sent += len(data)
            data = b"x" * 65536

    def _answer_right(self, request, respond, send, fault):
        if not request.user:
            raise Refused(401, "Unauthorized", "Unauthorized")
        if request.path == f"/apis/{api_groups.GROUP}" and request.method == "GET":
            _respond_right(respond, self._group(), fault)
            return
        if request.path == "/apis" and request.method == "GET":
            _respond_right(respond, api_groups.groups(self.served), fault)
            return
        resource, namespace, name, sub = self._route(request)
        _check_role(request, "/".join(filter(None, (resource, sub))), name)
        self._authorize(request, resource, namespace, name)
        if request.method == "GET" and name:
            body = api_groups.as_version(self._get(resource, namespace, name), request.version)
        elif request.method == "GET" and "watch" in request.query:
            self._watch(request, resource, respond, send)
            return
        elif request.method == "GET":
            body = self._list(request, resource, namespace)
        elif resource == "pods" and name:
            body = self._change_pod(request, namespace, name, sub)
        elif resource == "resourceslices" and (name or request.method == "POST"):
            body = self._change_slice(request, name)
        elif request.method == "PATCH":
            body = self._patch(request, resource, namespace, name, sub)
        elif request.method == "POST":
            body = self._put(resource, request.json())
        elif request.method == "DELETE" and not name:
            body = self._delete_all(request, resource)
        else:
            raise Refused(405, "MethodNotAllowed", "no such method")
        _respond_right(respond, body, fault)

    def _group(self):
        group = api_groups.group(self.served)
        if group is None:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        return group

    def _route(self, request):
        parts = request.path.strip("/").split("/")
        request.version, parts = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = None
        if len(parts) > 2 and parts[0] == "namespaces":
            namespace, parts = parts[1], parts[2:]
        resource, name, sub = (parts + [None, None, None])[:3]
        if resource not in self.served.get(request.version, ()):
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        return resource, namespace, name, sub

    def _authorize(self, request, resource, namespace, name):
        """plugin/pkg/auth/authorizer/node, for users system:node:NAME; others may do all."""
        if not request.user.startswith("system:node:"):
            return
        node, selector, method = request.user[len("system:node:"):], request.selector, request.method
        allowed = {
            "nodes": method in ("GET", "PATCH") and (name or selector.get("metadata.name")) == node,
            "pods": (self._is_bound(node, namespace, name) if name else
                     method == "GET" and selector.get("spec.nodeName") == node),
            "resourceslices": bool(name) or method == "POST" or selector.get("spec.nodeName") == node,
            "resourceclaims": method == "GET" and bool(name) and self._names_claim(node, namespace, name),
            "events": method in ("POST", "PATCH"),
        }.get(resource, False)
        if not allowed:
            raise Refused(403, "Forbidden", f'User "{request.user}" cannot do that with {resource}')

    def _is_bound(self, node, namespace, name):
        pod = self.objects["pods"].get((namespace, name))
        return pod is not None and pod["spec"].get("nodeName") == node

    def _change_pod(self, request, namespace, name, sub):
        pod, body = self._get("pods", namespace, name), request.json()
        try:
            if request.method == "PATCH" and sub == "status":
                pod = api_pods.patched(pod, body)
            elif request.method == "POST" and sub == "eviction":
                pod = api_pods.evicted(pod, body["deleteOptions"], self.budgets)
            elif request.method == "DELETE" and not sub:
                pod = api_pods.deleted(pod, body)
            else:
                raise Refused(405, "MethodNotAllowed", "no such method")
        except api_pods.Unlike as unlike:
            raise Refused(409, "Conflict", str(unlike)) from unlike
        except api_pods.NotNow as not_now:
            if not_now.several:
                raise Refused(500, "InternalError", str(not_now)) from not_now
            raise Refused(429, "TooManyRequests", str(not_now), {"retry-after": "1"}) from not_now
        return self._put("pods", pod)

    def _change_slice(self, request, name):
        """In the version that was asked for, both ways. What changes nothing is no event."""
        user = request.user
        node = user[len("system:node:"):] if user.startswith("system:node:") else None
        before = self.objects["resourceslices"].get((None, name)) if name else None
        try:
            if request.method == "POST":
                one = api_groups.from_version(request.json(), request.version)
                if (None, one["metadata"]["name"]) in self.objects["resourceslices"]:
                    raise Refused(409, "AlreadyExists", f'resourceslices "{one["metadata"]["name"]}" already exists')
            else:
                api_slices.check_node(self._get("resourceslices", None, name), node)
                _check_preconditions(before, request)
            if request.method == "DELETE":
                self._remove("resourceslices", (None, name))
                return before
            if request.method == "PATCH":
                shown = api_groups.as_version(before, request.version)
                one = api_groups.from_version(api_slices.merged(shown, request.json()), request.version)
            api_slices.check_node(one, node)
            api_slices.check(one, before)
        except api_slices.Invalid as invalid:
            raise Refused(422, "Invalid", str(invalid)) from invalid
        except api_slices.Foreign as foreign:
            raise Refused(403, "Forbidden", str(foreign)) from foreign
        one = api_slices.complete(one, f"2026-01-01T00:{self._version // 60 % 60:02}:{self._version % 60:02}Z")
        one["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"] if before else ""
        kept = before if one == before else self._put("resourceslices", one)
        return api_groups.as_version(kept, request.version)

    def _names_claim(self, node, namespace, name):
        for pod in self.objects["pods"].values():
            if pod["spec"].get("nodeName") != node or pod["metadata"]["namespace"] != namespace:
                continue
            claims = pod["spec"].get("resourceClaims", []) + pod.get("status", {}).get("resourceClaimStatuses", [])
            if any(claim.get("resourceClaimName") == name for claim in claims):
                return True
        return False

    def _get(self, resource, namespace, name):
        one = self.objects[resource].get((namespace, name))
        if one is None:
            raise Refused(404, "NotFound", f'{resource} "{name}" not found')
        return one

    def _selected(self, request, resource):
        return [one for one in self.objects[resource].values() if _matches(one, request.selector)]

    def _list(self, request, resource, namespace):
        """Of the cache (resourceVersion=0) all at once, as the API server has it; else in pages. With a limit
        another version is that very one."""
        exact = "limit" in request.query and request.query.get("resourceVersion", "0") != "0"
        if exact and int(request.query["resourceVersion"]) < self._compacted:
            raise Refused(410, "Expired", "too old resource version")
        found = [one for one in self._selected(request, resource)
                 if namespace in (None, one["metadata"].get("namespace"))]
        limit, begin = int(request.query.get("limit", 0)), 0
        version = self._version
        if "continue" in request.query:
            version, begin = map(int, base64.urlsafe_b64decode(request.query["continue"]).split(b":"))
            if version < self._compacted:
                raise Refused(410, "Expired", "the continue token is too old")
        elif request.query.get("resourceVersion") == "0":
            limit = 0
        end = begin + limit if limit else len(found)
        metadata = {"resourceVersion": str(version)}
        if end < len(found):
            metadata["continue"] = base64.urlsafe_b64encode(b"%d:%d" % (version, end)).decode()
        return {"kind": f"{RESOURCES[resource][0]}List", "apiVersion": request.version, "metadata": metadata,
                "items": [api_groups.as_version(one, request.version) for one in found[begin:end]]}

    def _watch(self, request, resource, respond, send):
        if request.streams:
            self._stream(request, resource, respond, send)
            return
        version = int(request.query["resourceVersion"])
        gone = Refused(410, "Expired", "too old resource version")
        if version < self._compacted and not self.error_events:
            raise gone
        respond(200, {}, None)
        watch = _Watch(request, resource, send)
        watch.since = version
        if version < self._compacted:
            _send(watch, "ERROR", json.loads(gone.body()))
            send(None)
            return
        self.watches.append(watch)
        for event in self._history:
            if event[0] > version and event[1] == resource:
                _send_event(watch, event)

    def _stream(self, request, resource, respond, send):
        if not self.streaming:
            raise Refused(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch "
                                          "unless the WatchList feature gate is enabled")
        if request.query.get("resourceVersionMatch") != "NotOlderThan":
            raise Refused(422, "Invalid", "resourceVersionMatch: Forbidden")
        respond(200, {}, None)
        watch = _Watch(request, resource, send)
        self.watches.append(watch)
        for one in self._selected(request, resource):
            _send(watch, "ADDED", one)
        end = self._empty(resource)
        end["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
        if not self.mute_end:
            _send(watch, "BOOKMARK", end)

    def forget_watch(self, send):
        self.watches[:] = [watch for watch in self.watches if watch.send is not send]

    def _patch(self, request, resource, namespace, name, sub):
        one = copy.deepcopy(self._get(resource, namespace, name))
        kind = request.headers.get("content-type")
        if kind == "application/merge-patch+json" and all(
                not isinstance(value, (dict, type(None))) for value in request.json().values()):
            return self._put(resource, {**one, **request.json()})  # RFC 7396, of what is flat
        if kind != "application/json-patch+json":
            raise Refused(415, "UnsupportedMediaType", "no such patch")
        for step in request.json():
            parts = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
            if sub and parts[0] != sub:
                continue
            at = one
            for part in parts[:-1]:
                at = at[part]
            if step["op"] in ("test", "replace") and parts[-1] not in at:
                raise Refused(422, "Invalid", "the server rejected our request due to an error in our request")
            if step["op"] == "test" and at[parts[-1]] != step["value"]:
                raise Refused(422, "Invalid", "testing value failed")
            if step["op"] in ("add", "replace"):
                at[parts[-1]] = step["value"]
        return self._put(resource, one)

    def _delete_all(self, request, resource):
        found = self._selected(request, resource)
        for one in found:
            self._remove(resource, (one["metadata"].get("namespace"), one["metadata"]["name"]))
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": found}

    def user_of(self, headers, certificate):
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer "):
            return self.tokens.get(bearer[len("Bearer "):], "")
        names = dict(pair for rdn in (certificate or {}).get("subject", ()) for pair in rdn)
        return names.get("commonName", "")


def _check_preconditions(one, request):
    """metadata.resourceVersion of a patch, preconditions.uid of a DELETE's options."""
    body = request.json() if request.body else {}
    version = body.get("metadata", {}).get("resourceVersion")
    uid = body.get("preconditions", {}).get("uid")
    if version not in (None, one["metadata"]["resourceVersion"]) or uid not in (None, one["metadata"]["uid"]):
        raise Refused(409, "Conflict", "the object has been modified; please apply your changes to the latest version")


def _respond_right(respond, body, fault):
    data = json.dumps(body).encode()
    if fault and fault.cut is not None:
        respond(200, {"reset": "1"} if fault.reset else {}, data[:fault.cut])
    else:
        respond(200, {}, data)


def _base64(path):
    return base64.b64encode(pathlib.Path(path).read_bytes()).decode()


def _matches(one, selector):
    return all(_FIELDS[field](one) == value for field, value in selector.items())


def _send(watch, kind, one):
    if "apiVersion" in one and one["kind"] != "Status":
        one = api_groups.as_version(one, watch.request.version)
    watch.send(json.dumps({"type": kind, "object": one}).encode() + b"\n")


def _send_event(watch, event):
    """What begins, or ceases, to match is added or deleted."""
    _, _, kind, before, one = event
    was = before is not None and _matches(before, watch.request.selector)
    now = kind != "DELETED" and _matches(one, watch.request.selector)
    if now:
        _send(watch, "MODIFIED" if was else "ADDED", one)
    elif was:
        _send(watch, "DELETED", one)


class _Connection(asyncio.Protocol):
    """One client, in either protocol."""

    def __init__(self, server):
        self._server = server
        self._h2 = None
        self._requests = {}
        self._bodies = {}
        self._asked = {}
        self._room = asyncio.Event()
        self._text = b""
        self._deaf_from = None  # streams

    def connection_made(self, transport):
        self._transport = transport
        self._server.connections += 1
        self._server.open += 1
        self._number = self._server.connections
        self._server._protocols.add(self)
        tls = transport.get_extra_info("ssl_object")
        self._certificate = tls.getpeercert()
        if tls.selected_alpn_protocol() == "h2":
            self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
            self._h2.initiate_connection()
            self._flush()

    def connection_lost(self, _error):
        self._server.open -= 1
        self._server._protocols.discard(self)
        self._transport = None
        self._room.set()
        for send in [send for send, *_ in self._bodies.values()]:
            self._server.forget_watch(send)

    def abort(self):
        if self._transport:
            self._transport.abort()

    def go_away(self):
        """RFC 9113 section 6.8; python3-h2 would end what has begun."""
        last = max([*self._bodies, *self._requests], default=0)
        self._deaf_from = last + 1
        self._transport.write(b"\0\0\x08\x07\0" + bytes(4) + last.to_bytes(4, "big") + bytes(4))

    def _flush(self):
        if self._transport:
            self._transport.write(self._h2.data_to_send())

    def data_received(self, data):
        if self._h2 is None:
            self._take_text(data)
            return
        try:
            events = self._h2.receive_data(data)
        except h2.exceptions.ProtocolError:
            self.abort()
            return
        for event in events:
            self._take(event)
        self._room.set()
        self._flush()

    # ---- HTTP/2 ----

    def _take(self, event):
        stream = getattr(event, "stream_id", None)
        if stream and self._deaf_from and stream >= self._deaf_from:
            return
        if isinstance(event, h2.events.RequestReceived):
            self._requests[stream] = [dict(event.headers), b""]
        elif isinstance(event, h2.events.DataReceived):
            self._requests[stream][1] += event.data
            self._h2.acknowledge_received_data(event.flow_controlled_length, stream)
        elif isinstance(event, h2.events.StreamEnded):
            headers, body = self._requests.pop(stream)
            self._begin(stream, headers.pop(":method"), headers.pop(":path"), headers, body)
        elif isinstance(event, h2.events.StreamReset):
            self._server.cut_off += [self._asked[stream]] if stream in self._bodies else []
            self._end(stream)

    def _begin(self, stream, method, target, headers, body):
        url = urllib.parse.urlsplit(target)
        queue = asyncio.Queue()

        def send(data):
            """For whoever does not wait; for who does, whether more can be sent."""
            waiter = asyncio.get_running_loop().create_future()
            queue.put_nowait((data, waiter))
            return waiter

        self._bodies[stream] = (send, queue)
        request = Request(method, urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query)), headers,
                          self._server.user_of(headers, self._certificate), body, self._number)
        self._asked[stream] = request
        self._server.answer(request, lambda *answer: self._respond(stream, *answer), send)

    def _end(self, stream):
        send, queue = self._bodies.pop(stream, (None, None))
        self._asked.pop(stream, None)
        if send:
            self._server.forget_watch(send)
            queue.put_nowait((None, None))

    def _respond(self, stream, status, headers, body):
        send, queue = self._bodies[stream]
        reset = headers.pop("reset", None)
        head = [(":status", str(status)), ("content-type", "application/json"), *headers.items()]
        if self._server.ahead_s is not None:
            head.append(("date", email.utils.formatdate(time.time() + self._server.ahead_s, usegmt=True)))
        with contextlib.suppress(h2.exceptions.ProtocolError):  # it was given up with the request's last bytes
            self._h2.send_headers(stream, head)
        self._flush()
        if body is not None:
            send(body)
            send(None)
        self._server.task(self._write(stream, queue, reset))

    async def _write(self, stream, queue, reset):
        try:
            while True:
                data, waiter = await queue.get()
                if data is None:
                    break
                going = await self._write_all(stream, data)
                if waiter and not waiter.done():
                    waiter.set_result(going)
                if not going:
                    return
            if stream in self._bodies:
                if reset:
                    self._h2.reset_stream(stream, 2)
                else:
                    self._h2.end_stream(stream)
                self._flush()
                self._end(stream)
        except h2.exceptions.ProtocolError:
            self._end(stream)

    async def _write_all(self, stream, data):
        while data:
            if self._transport is None or stream not in self._bodies:
                return False
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            self._h2.send_data(stream, data[:room])
            data = data[room:]
            self._flush()
            await asyncio.sleep(0)
        return True

    # ---- HTTP/1.1, one request at a time ----

    def _take_text(self, data):
        self._text += data
        head, end, rest = self._text.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:] if ": " in line)}
        length = int(headers.get("content-length", 0))
        if not end or len(rest) < length:
            return
        self._text = rest[length:]
        method, target, _ = lines[0].split(" ")
        url = urllib.parse.urlsplit(target)
        request = Request(method, urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query)), headers,
                          self._server.user_of(headers, self._certificate), rest[:length], self._number)

        def send(data):
            if self._transport:
                self._transport.write(b"%x\r\n%s\r\n" % (len(data or b""), data or b""))
            done = asyncio.get_running_loop().create_future()
            done.set_result(self._transport is not None)
            return done

        def respond(status, more, body):
            head = [f"HTTP/1.1 {status} OK", "content-type: application/json", "transfer-encoding: chunked",
                    *(f"{name}: {value}" for name, value in more.items())]
            self._transport.write("\r\n".join(head).encode() + b"\r\n\r\n")
            if body is not None:
                if body:
                    send(body)
                send(None)

        self._bodies[0] = (send, None)
        self._server.answer(request, respond, send)
