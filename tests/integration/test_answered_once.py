"""lib/answered_once.py: what a server says twice is noticed, whatever it is."""

import pytest

from answered_once import Once
from capture import (ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS,
                     TO_CLIENT, TO_SERVER, Frame)

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
