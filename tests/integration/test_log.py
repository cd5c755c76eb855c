"""What daemon and bridge log, and in which form; and what they never do."""

import json
import os
import re
import socket
import subprocess

import grpc
import pytest

from asking import by_annotation, by_token, refused
from journal import WITH_JOURNAL, Journal
from node import Bridge
from plugin import allocate_answer, failing
from protos import cri, deviceplugin
from runtime import Reply
from shim import BINARY, Shim
from waiting import wait_until

GPU = "vendor.com/gpu"
FORMATS = ("plain", "logfmt", "json", "journal")
# Each in another place of what passes, and none a word of anybody's own lines.
SECRETS = {name: f"s3cr3t-{name}-0f9c" for name in
           ("env", "env-of-plugin", "mount", "password", "auth", "token", "registry", "identity",
            "label", "command")}

@pytest.fixture
def journal(directory, closing):
    return closing(Journal(directory))


@pytest.fixture
def formatted(directory, runtime, runtime_socket, closing, journal):
    """formatted(format): a shim that logs so, at level debug, and what it has said by now."""
    def make(form):
        shim = closing(journal.wrap(Shim(directory, runtime_socket,
                                         log={"format": form, "level": "debug"})))
        shim.start()
        return shim, lambda: (journal.read() and journal.raw.decode()) or shim.log()

    return make


def secret_options(request, _context):
    return allocate_answer(
        request, envs={"LICENSE": SECRETS["env-of-plugin"]},
        mounts=[deviceplugin.Mount(container_path="/opt", host_path="/" + SECRETS["mount"])])


def pull_with_secrets(client):
    auth = cri.AuthConfig(username="user", password=SECRETS["password"], auth=SECRETS["auth"],
                          server_address="registry.example", identity_token=SECRETS["identity"],
                          registry_token=SECRETS["registry"])
    client.PullImage(image=cri.ImageSpec(image="registry.example/app"), auth=auth)


@pytest.mark.parametrize("form", FORMATS)
def test_no_secret_is_logged(runtime, formatted, make_plugin, make_client, form):
    """Neither of environment, mounts, commands and labels, nor of what opens a registry: not when
    it passes, is given, is refused, or cannot be read, at level debug."""
    shim, said = formatted(form)
    runtime.on("PullImage", lambda _call: Reply((cri.PullImageResponse(image_ref="app").SerializeToString(),)))
    plugin = make_plugin(shim, GPU, ["g0"])
    plugin.on_allocate = secret_options
    client = make_client(shim)
    asks = {"envs": {"PASSWORD": SECRETS["env"]}, "command": ["sh", SECRETS["command"]]}
    pod = client.run_pod("web", annotations={**by_annotation("app", f"{GPU}=1"),
                                             "note": SECRETS["label"]})
    client.run(pod, "app", **asks)
    client.run(pod, "side", **asks)
    other = client.run_pod("late")
    with refused(grpc.StatusCode.UNAVAILABLE, "g0"):
        client.create(other, "app", annotations={**by_token(GPU, "g0"), "note": SECRETS["token"]},
                      **asks)
    plugin.on_allocate = failing(grpc.StatusCode.INTERNAL, "no")
    client.remove_pod(pod.id)
    with refused(grpc.StatusCode.UNAVAILABLE, "no"):
        client.create(other, "app", annotations=by_token(GPU, "g0"), **asks)
    pull_with_secrets(client)
    wait_until(lambda: said().count("refused (") >= 2, "the refusals are logged")
    text = said()
    assert text.count("\n") > 5
    for name, secret in SECRETS.items():
        assert secret not in text and secret[2:] not in text, name
    assert "PASSWORD" not in text and "LICENSE" not in text


def about(message):
    """What a line names, as the fields of the journal."""
    resource = re.search(r'\bresource (\S+?):', message)
    container = re.match(r'(?:CreateContainer refused \(.*?\): |held: )?'
                         r'container "([^"]+)" of pod "([^"]+)"', message)
    found = {"RESOURCE": resource[1]} if resource else {}
    if container:
        found |= {"CONTAINER": container[1], "POD": container[2]}
    return found


def test_a_line_has_what_it_is_about_in_fields(runtime, formatted, journal, make_plugin, make_client):
    """Every line of the device manager that names a resource, a pod or a container."""
    shim, _ = formatted("journal")
    plugin = make_plugin(shim, GPU, ["g0", "g1"])
    client = make_client(shim)
    pod = client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1"))
    client.run(pod, "app")
    plugin.stop()
    with refused(grpc.StatusCode.UNAVAILABLE, GPU):
        client.create(client.run_pod("late"), "app", annotations=by_token(GPU, "g1"))
    client.remove_pod(pod.id)
    wait_until(lambda: sum("CreateContainer refused" in one["MESSAGE"] for one in journal.read()) == 1,
               "the refusal is logged")
    named = [one for one in journal.entries if about(one["MESSAGE"])]
    for one in named:
        wanted = about(one["MESSAGE"])
        assert {key: one.get(key) for key in wanted} == wanted, one
    said = {key: [one["MESSAGE"] for one in named if key in one] for key in
            ("RESOURCE", "POD", "CONTAINER")}
    for words in ("plugin registers with endpoint", "is active", "lost ("):
        assert any(words in message for message in said["RESOURCE"]), words
    for words in ("forwarded with", "held: ", "CreateContainer refused"):
        assert any(words in message for message in said["POD"]), words
        assert any(words in message for message in said["CONTAINER"]), words


def lines_of(form, text):
    """Each line as {key: value}; of plain ones nothing is known."""
    if form == "json":
        return [json.loads(line) for line in text.splitlines()]
    found = []
    for line in text.splitlines():
        assert re.fullmatch(r'ts=\S+ level=\w+( \w+="([^"\\]|\\.)*")* msg="([^"\\]|\\.)*"', line), line
        pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line)
        found.append({key: re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
                      for key, value in pairs})
    return found


def refuse_one(client):
    pod = client.run_pod("web")
    with refused(grpc.StatusCode.FAILED_PRECONDITION, GPU):
        client.create(pod, "app", annotations=by_token(GPU, "g0"))


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_lines_for_machines(formatted, make_client, form):
    shim, said = formatted(form)
    refuse_one(make_client(shim))
    wait_until(lambda: "refused" in said(), "the refusal is logged")
    shim.terminate()
    lines = lines_of(form, said())
    (one,) = [line for line in lines if line.get("kind") == "refused"]
    assert (one["level"], one["pod"], one["container"]) == ("warning", "default/web", "app")
    assert one["msg"].startswith("CreateContainer refused (FAILED_PRECONDITION)")
    assert [line["kind"] for line in lines if "kind" in line][0] == "started"
    assert lines[-1]["level"] in ("info", "debug")


def test_the_journal_is_told_in_fields(formatted, make_client, journal):
    shim, _ = formatted("journal")
    refuse_one(make_client(shim))
    wait_until(lambda: any(one.get("KIND") == "refused" for one in journal.read()), "the refusal")
    (one,) = [one for one in journal.entries if one.get("KIND") == "refused"]
    assert (one["POD"], one["CONTAINER"], one["PRIORITY"]) == ("default/web", "app", "4")
    assert re.fullmatch("[0-9a-f]{32}", one["MESSAGE_ID"])
    assert one["SYSLOG_IDENTIFIER"] == "cri-device-shim"
    assert shim.log() == ""


def test_auto_is_the_journal_where_stderr_is_its_stream(directory, runtime_socket, journal, closing):
    """As systemd starts it: a socket, whose name is in the environment. Redirected it is logfmt."""
    shim = Shim(directory, runtime_socket, log={"format": "auto"})
    shim.config_path.write_text(shim.config_text())
    ours, theirs = socket.socketpair()
    closing(ours)
    there = os.fstat(theirs.fileno())
    environment = {name: value for name, value in os.environ.items()
                   if name != "CRI_DEVICE_SHIM_LOG_FORMAT"}
    environment["JOURNAL_STREAM"] = f"{there.st_dev}:{there.st_ino}"
    command = [*WITH_JOURNAL, journal.directory, BINARY, "--config", shim.config_path]
    process = subprocess.Popen(command, stderr=theirs, env=environment)
    theirs.close()
    wait_until(lambda: any(one.get("KIND") == "started" for one in journal.read()), "it has started")
    process.terminate()
    assert process.wait(60) == 0
    ours.setblocking(False)
    assert ours.recv(100) == b""  # the end, and nothing before
    with open(shim.log_path, "ab") as log:
        process = subprocess.Popen(command, stderr=log, env=environment)
    wait_until(lambda: "kind=\"started\"" in shim.log(), "it has started")
    process.terminate()
    assert process.wait(60) == 0
    assert lines_of("logfmt", shim.log())


def test_the_bridge_logs_alike(directory, shim, closing):
    shim.log_settings["format"] = "json"
    shim.config_path.write_text(shim.config_text())
    bridge = closing(Bridge(shim.config_path, directory / "bridge.log"))
    bridge.start()
    wait_until(lambda: '"kind":"started"' in bridge.log(), "the bridge has started")
    assert {"ts", "level", "msg"} <= set(lines_of("json", bridge.log())[0])
