"""The maxima of a header of the project, as numbers: limits_of("shim/relay/limits.h")["NAME"]."""

import pathlib
import re

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DEFINE = re.compile(r"^#define[ \t]+(\w+)[ \t]+((?:.*\\\n)*.*)$", re.MULTILINE)


def limits_of(*paths):
    """What each macro that is a number comes to, of headers that build on those before them."""
    text = "".join((_ROOT / path).read_text() for path in paths)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    for name, words in _DEFINE.findall(text):
        words = re.sub(r"\(size_t\)|\\\n", " ", words)
        words = re.sub(r"\b(\d+)(?:u|ULL)\b", r"\1", words).replace("/", "//")
        found[name] = eval(words, {"__builtins__": {}}, found)  # noqa: S307 - our own header
    return found
