"""lib/answered_once.py: what the bridge says twice is noticed, whatever it is, and nobody else's."""

import socket

import pytest

import kubelet_devices
import kubelet_drivers
from answered_once import AnsweredOnce, Once
from capture import (ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS,
                     TO_CLIENT, TO_SERVER, Frame)
from shim import ROOT

ASKED = [Frame(SETTINGS, 0, 0, b""), Frame(PING, 0, 0, bytes(8))]
SAID = [
    Frame(SETTINGS, 0, 0, b""),
    Frame(SETTINGS, ACK, 0, b""),
    Frame(PING, ACK, 0, bytes(8)),
    Frame(HEADERS, END_HEADERS, 1, b"answer"),
    Frame(DATA, 0, 1, b"\0\0\0\0\4list"),
    Frame(DATA, 0, 1, b"\0\0\0\0\4lust"),
    Frame(DATA, 0, 1, b"\0\0\0\0\4list"),
    Frame(HEADERS, END_HEADERS, 3, b"answer"),
    Frame(HEADERS, END_HEADERS | END_STREAM, 3, b"end"),
]


def wrongs(frames):
    once = Once()
    once.feed(TO_SERVER, PREFACE)
    for frame in ASKED:
        once.feed(TO_SERVER, frame.encode())
    return [wrong for frame in frames for wrong in once.feed(TO_CLIENT, frame.encode())]


def test_what_comes_once_is_right():
    assert not wrongs(SAID)


@pytest.mark.parametrize("place", range(len(SAID)))
def test_what_comes_twice_is_not(place):
    assert len(wrongs([*SAID[:place], SAID[place], *SAID[place:]])) == 1


@pytest.mark.parametrize("told", [[], None], ids=["the bridge", "another"])
def test_whom_nobody_judges_is_only_passed_on(directory, told):
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(directory / "server.sock"))
        listener.listen()
        once = AnsweredOnce(directory / "server.sock", told if told is None else told.append)
        client.connect("\0" + once.target.removeprefix("unix-abstract:"))
        server, _ = listener.accept()
        client.sendall(PREFACE)
        twice = 2 * Frame(SETTINGS, 0, 0, b"").encode()
        server.sendall(twice)
        assert client.recv(len(twice), socket.MSG_WAITALL) == twice
        server.close()
        once.close()
    assert told in (None, ["SETTINGS twice"])


def test_the_bridges_sockets_are_known():
    names = (ROOT / "shim/bridge/names.h").read_text()
    registry = (ROOT / "shim/kubelet_registry.h").read_text()
    assert f'#define NAMES_SUBDIRECTORY "{kubelet_devices.BRIDGES}"' in names
    assert f'#define KUBELET_REGISTRY_STAND_IN "{kubelet_drivers.BRIDGES}"' in registry
