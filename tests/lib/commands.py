"""The commands that a document shows: lines with "$" in its code, and below them what is printed.

    for one in commands.of(text): one.section, one.text, one.shown

A line that begins with ">" goes on with the command above it. Of what is shown "..." stands for
anything, and how many spaces there are does not matter.
"""

import dataclasses
import re


@dataclasses.dataclass
class Command:
    section: str
    text: str
    shown: list  # lines; empty: it does not matter what it prints

    def shows(self, printed):
        """Whether it may have printed that."""
        lines = [r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
                 for line in map(_narrow, self.shown)]
        said = "".join(f"{_narrow(line)}\n" for line in printed.splitlines())
        return not self.shown or re.fullmatch("".join(lines), said) is not None


def _narrow(line):
    return " ".join(line.split())


def of(document):
    found, section, indent, fresh = [], "", None, False
    for line in document.splitlines():
        heading = re.match(r"## (.*)", line)
        begins = re.match(r"( {4,})\$ (.*)", line)
        if heading:
            section = heading[1]
        elif begins:
            found.append(Command(section, begins[2], []))
            indent, fresh = begins[1], True
        elif indent is None or not line.startswith(indent):
            indent = None
        elif fresh and line.startswith(f"{indent}> "):
            found[-1].text += "\n" + line.removeprefix(f"{indent}> ")
        else:
            found[-1].shown.append(line)
            fresh = False
    return found
