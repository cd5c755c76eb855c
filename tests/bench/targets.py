"""What is compared: each target is a unix socket that leads to the scripted runtime.

Every relay runs as one process in the foreground with a config made here: HTTP/2 without TLS over
unix sockets on both sides, one worker, windows wide enough for a 16 MiB answer.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

START_SECONDS_MAX = 10
STOP_SECONDS_MAX = 10
PROBE_SECONDS_MAX = 10
STREAMS_MAX = 2000
WINDOW_BYTES = 64 * 1024 * 1024
STORE_DESCRIPTORS = 1 << 20
STORE_MESSAGE_BYTES = 4096
STORE_MESSAGE_DESCRIPTORS = 253  # SCM_MAX_FD

RESOURCE = "bench.example/zero"


class Unusable(Exception):
    """Why a target cannot be measured."""


def accepts(path):
    """Whether somebody listens on the unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


class Store:
    """A service manager that promises to keep all descriptors, so that a shim with `env` writes a
    journal of each connection. It closes them: nothing is gone on with here."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("")  # an abstract name of the kernel's choice, unix(7)
        self.env = {"NOTIFY_SOCKET": "@" + self._socket.getsockname()[1:].decode(),
                    "FDSTORE": str(STORE_DESCRIPTORS)}
        self.connections = 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            said, fds, *_ = socket.recv_fds(self._socket, STORE_MESSAGE_BYTES,
                                            STORE_MESSAGE_DESCRIPTORS)
            self.connections += b"FDNAME=relayed/" in said and len(fds) > 0
            for fd in fds:
                os.close(fd)


class Target:
    """`argv(listen, runtime, directory)` makes the files it needs and gives the command; None: the
    socket is the runtime's own."""

    def __init__(self, name, argv, env=None):
        self.name = name
        self._env = {**os.environ, **(env or {})}
        self.listen = None
        self._argv = argv
        self._process = None

    def start(self, directory, runtime):
        own = pathlib.Path(directory) / self.name
        own.mkdir()
        self.listen = own / "s"
        argv = self._argv(self.listen, runtime, own)
        if not shutil.which(argv[0]):
            raise Unusable("not installed, or its parts are not")
        with open(own / "log", "wb") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             cwd=own, env=self._env)
        end = time.monotonic() + START_SECONDS_MAX
        while not accepts(self.listen):
            if self._process.poll() is not None or time.monotonic() > end:
                words = (own / "log").read_text(errors="replace").strip().splitlines()
                self.stop()
                raise Unusable("does not start: " + (words[-1] if words else "it says nothing"))
            time.sleep(0.01)

    @property
    def pid(self):
        return self._process.pid

    def stop(self):
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def cpu_ns(self):
        """User and system time of all its threads so far."""
        return sum(int(path.read_text().split()[0])
                   for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/schedstat"))

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def rss_kib(self, field):
        """`field`: VmRSS for now, VmHWM for the peak since forget_peak()."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise Unusable("it ended by itself")


# ---- a call by hand ----

def _frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def _read_exactly(conn, count):
    got = b""
    while len(got) < count:
        piece = conn.recv(count - len(got))
        if not piece:
            raise Unusable("it closes the connection of a gRPC call")
        got += piece
    return got


def probe(path):
    """One gRPC call with frames made here; Unusable unless message and trailers come back, since
    h2load looks at neither."""
    fields = (b"\x83\x86" + _literal(b":path", b"/runtime.v1.RuntimeService/Version")
              + _literal(b":authority", b"localhost") + _literal(b"te", b"trailers")
              + _literal(b"content-type", b"application/grpc"))
    kinds = []
    with socket.socket(socket.AF_UNIX) as conn:
        conn.settimeout(PROBE_SECONDS_MAX)
        try:
            conn.connect(str(path))
            conn.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, b"")
                         + _frame(1, 4, 1, fields) + _frame(0, 1, 1, bytes(5)))
            while True:
                head = _read_exactly(conn, 9)
                _read_exactly(conn, int.from_bytes(head[:3], "big"))
                if int.from_bytes(head[5:9], "big") != 1 or head[3] not in (0, 1, 3):
                    continue
                kinds.append(head[3])
                if head[3] == 3 or head[4] & 1:
                    break
        except OSError as error:
            raise Unusable(f"no answer to a gRPC call: {error}") from error
    if kinds[:1] != [1] or 0 not in kinds or kinds[-1] != 1:
        raise Unusable("does not bring gRPC's trailers back")


# ---- the commands ----

def shim_argv(binary, metrics=False):
    def argv(listen, runtime, own):
        # JSON's strings, numbers and booleans are TOML's too.
        settings = {"": {"listen": str(listen), "runtime_endpoint": str(runtime),
                         "state_dir": str(own / "state"), "drain": "1s"},
                    "[plugins]": {"plugin_dir": str(own / "plugins")},
                    "[bridge]": {"enabled": False},
                    "[annotations]": {"enabled": True, "namespaces": ["*"]},
                    **({"[metrics]": {"listen": str(own / "metrics")}} if metrics else {}),
                    "[[device]]": {"resource": RESOURCE, "path": "/dev/zero", "count": 10}}
        lines = []
        for table, values in settings.items():
            lines += [table, *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        (own / "shim.toml").write_text("\n".join(lines) + "\n")
        return [str(binary), "--config", str(own / "shim.toml")]
    return argv


def plain_argv(binary):
    return lambda listen, runtime, own: [str(binary), str(listen), str(runtime)]


def _nghttpx_argv(listen, runtime, own):
    return ["nghttpx", "--conf=/dev/null", "--single-process", "--workers=1",
            f"--frontend=unix:{listen};no-tls", f"--backend=unix:{runtime};;proto=h2",
            "--log-level=ERROR", "--accesslog-file=/dev/null", "--errorlog-file=/dev/stderr",
            f"--pid-file={own / 'pid'}", "--no-via", "--no-server-push",
            f"--frontend-http2-max-concurrent-streams={STREAMS_MAX}",
            f"--backend-http2-max-concurrent-streams={STREAMS_MAX}",
            f"--backend-http2-window-size={WINDOW_BYTES}"]


def _haproxy_argv(listen, runtime, own):
    (own / "haproxy.cfg").write_text(f"""\
global
    nbthread 1
    maxconn 4000
    tune.h2.max-concurrent-streams {STREAMS_MAX}
    tune.h2.initial-window-size {WINDOW_BYTES}
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend f
    bind unix@{listen} proto h2
    default_backend b
backend b
    server runtime unix@{runtime} proto h2
""")
    return ["haproxy", "-db", "-f", str(own / "haproxy.cfg")]


def _nginx_argv(listen, runtime, own):
    (own / "nginx.conf").write_text(f"""\
daemon off;
master_process off;
pid {own}/pid;
error_log stderr crit;
events {{ worker_connections 4000; }}
http {{
    access_log off;
    client_body_temp_path {own}/body;
    proxy_temp_path {own}/proxy;
    fastcgi_temp_path {own}/fastcgi;
    uwsgi_temp_path {own}/uwsgi;
    scgi_temp_path {own}/scgi;
    client_max_body_size 0;
    keepalive_requests 1000000000;
    http2_max_concurrent_streams {STREAMS_MAX};
    upstream runtime {{
        server unix:{runtime};
        keepalive 2000;
        keepalive_requests 1000000000;
    }}
    server {{
        listen unix:{listen} http2;
        location / {{ grpc_pass grpc://runtime; grpc_buffer_size 64k; }}
    }}
}}
""")
    return ["nginx", "-p", str(own), "-c", str(own / "nginx.conf"), "-e", "stderr"]


def scripted_runtime(build):
    return Target("runtime", lambda listen, runtime, own: [
        str(pathlib.Path(build).resolve() / "tests/bench/bench_runtime"), str(listen)])


def all_targets(build, base, store, metrics):
    """`build`: the directory in which run.sh built; `base`: another build of the shim, or None;
    `store`: that of each shim, or None; `metrics`: the shim that counts calls, too. The first is the
    way without a relay."""
    env = store.env if store else None
    build = pathlib.Path(build).resolve()
    shim = pathlib.Path(os.environ.get("SHIM_BINARY", build / "shim/cri-device-shim")).resolve()
    return [
        Target("direct", None),
        Target("copier", plain_argv(build / "tests/bench/bench_copier")),
        *([Target("shim-base", shim_argv(pathlib.Path(base).resolve()), env)] if base else []),
        Target("shim", shim_argv(shim), env),
        *([Target("shim-metrics", shim_argv(shim, metrics=True), env)] if metrics else []),
        Target("nghttpx", _nghttpx_argv),
        Target("haproxy", _haproxy_argv),
        Target("nginx", _nginx_argv),
        Target("grpc-go", plain_argv(build / "grpc_relay"), env={"GOMAXPROCS": "1"}),
    ]
