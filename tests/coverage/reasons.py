"""Why branches of devicemgr/ are not taken: tests/coverage/reasons.txt.

    What is true of all of these, in a line or several.
        devicemgr/things/pod.c: pod_add
            1: if (pod == NULL)
            2: } else if (pod->containers > MAX && !pod->over) {

A reason is what is not indented; below it stand a file and a function, and of that one how many branches of a line are not taken,
and the line. A line is known by its text, since its number changes with every edit; lines of a function with the same text are
one, and one with branches of several reasons stands below each.
"""

import collections
import re

_PLACE = re.compile(r" {4}(\S+): (\S+)")
_LINE = re.compile(r" {8}([1-9][0-9]*): (.+)")


class Malformed(ValueError):
    pass


def read(text):
    """{(file, function, line's text): how many branches}"""
    told, reason, place = collections.Counter(), "", None
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            reason, place = (line if place else f"{reason} {line}"), None
        elif (match := _PLACE.fullmatch(line)) and reason:
            place = match.groups()
        elif (match := _LINE.fullmatch(line)) and place:
            told[(*place, match[2])] += int(match[1])
        else:
            raise Malformed(f"line {number}: {line}")
    return told


def written(lines):
    """As `read` has it, without reasons."""
    text, before = "", None
    for (file, function, line), number in lines.items():
        if (file, function) != before:
            text, before = f"{text}    {file}: {function}\n", (file, function)
        text += f"        {number}: {line}\n"
    return text


def compared(without, told):
    """(what is not taken and has no reason, what has a reason and is taken, or is not there), both as `read` has it."""
    return without - told, told - without
