"""lib/api_server.py: what it must stand of its clients."""

import contextlib
import socket
import ssl

import h2.config
import h2.connection
import h2.events
import pytest

from waiting import GENEROUS_S, wait_until

_CANCEL = 8
NODE = "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1"


@contextlib.contextmanager
def connected(server):
    """(a client's end, what sends what that has to say)."""
    context = ssl.create_default_context(cafile=server.authority.certificate)
    server.authority.sign("client", "system:node:node-1", group="system:nodes")
    context.load_cert_chain(*server.authority.pair("client"))
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", server.port), timeout=GENEROUS_S) as plain, \
            context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
        client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        client.initiate_connection()
        yield client, tls


def ask(client, stream, path):
    client.send_headers(stream, [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"),
                                 (":path", path)], end_stream=True)


def body_of(client, tls, stream):
    body = b""
    while data := tls.recv(65536):
        for event in client.receive_data(data):
            if isinstance(event, h2.events.DataReceived) and event.stream_id == stream:
                body += event.data
            if isinstance(event, h2.events.StreamEnded) and event.stream_id == stream:
                return body
    raise AssertionError("the connection is over")


@pytest.mark.parametrize("path", [NODE, f"{NODE}&watch=1&resourceVersion=101"], ids=["list", "watch"])
def test_a_stream_that_is_given_up_with_its_request_ends_no_other(server, path):
    """In one segment: h2 has taken the reset when the server learns of the request."""
    with connected(server) as (client, tls):
        ask(client, 1, path)
        client.reset_stream(1, _CANCEL)
        ask(client, 3, NODE)
        tls.sendall(client.data_to_send())
        assert b'"node-1"' in body_of(client, tls, 3)
        wait_until(lambda: len(server.cut_off) == 1, "the server knows of it")
        assert server.watches == []
    assert server.connections == 1
