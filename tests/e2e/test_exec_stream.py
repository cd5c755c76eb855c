"""A stream of exec, as `kubectl exec -i` opens it: it goes to the runtime's own server, so that it
goes on whatever becomes of the shim. In the form of RFC 6455 with Kubernetes' v4.channel.k8s.io."""

import contextlib

import pytest
import websocket

STDIN, STDOUT = b"\0", b"\1"  # the first byte of each message


@contextlib.contextmanager
def executing(client, container, *command):
    url = client.Exec(container_id=container, cmd=list(command), stdin=True, stdout=True,
                      stderr=False).url
    stream = websocket.create_connection(url.replace("http:", "ws:", 1), timeout=30,
                                         subprotocols=["v4.channel.k8s.io"])
    with contextlib.closing(stream):
        yield stream


def said(stream, length):
    """As much of what the command writes."""
    text = b""
    while len(text) < length:
        message = stream.recv()
        text += message[1:] if message[:1] == STDOUT else b""
    return text


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_it_outlives_the_shim(shim, client, end):
    container = client.run(client.run_pod("web"), "app", ["sleep", "infinity"])
    with executing(client, container, "cat") as stream:
        stream.send_binary(STDIN + b"before")
        assert said(stream, 6) == b"before"
        getattr(shim, end)()
        stream.send_binary(STDIN + b"meanwhile")
        assert said(stream, 9) == b"meanwhile"
        shim.start()
        stream.send_binary(STDIN + b"after")
        assert said(stream, 5) == b"after"
