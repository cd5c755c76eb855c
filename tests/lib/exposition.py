"""A strict reader of Prometheus' text format 0.0.4, and of its naming.

    families = parse(text)      # {name: Family}; AssertionError for anything that is not as it should be
    families["x_total"].value(code="OK")
"""

import math
import re
import typing

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf'({_NAME})(?:\{{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)+)\}})? (\S+)')
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"')
_TYPES = ("counter", "gauge", "histogram")
# What a name of ours ends with tells the unit, where there is one.
_UNITS = ("_seconds", "_bytes", "_total", "_info")


class Family(typing.NamedTuple):
    name: str
    kind: str
    help: str
    samples: dict  # {(sample name, frozenset of labels): value}

    def value(self, suffix="", **labels):
        return self.samples[self.name + suffix, frozenset(labels.items())]

    def total(self, **labels):
        """Of all samples that have these labels, among others."""
        return sum(value for (name, found), value in self.samples.items()
                   if name == self.name and frozenset(labels.items()) <= found)


def _labels(text):
    found = _LABEL.findall(text or "")
    assert len(dict(found)) == len(found), f"a label comes twice: {text}"
    assert ",".join(f'{name}="{value}"' for name, value in found) == (text or ""), text
    return frozenset((name, re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value))
                     for name, value in found)


def _check_name(family):
    assert family.name.startswith("cri_device_shim_"), family.name
    assert family.help.endswith("."), family.name
    assert (family.kind == "counter") == family.name.endswith("_total"), family.name
    if family.kind == "histogram":
        assert family.name.endswith(_UNITS[:2]), family.name


def _check_histogram(family):
    series = {}
    for (name, labels), value in family.samples.items():
        suffix = name.removeprefix(family.name)
        plain = frozenset(one for one in labels if one[0] != "le")
        one = series.setdefault(plain, {"buckets": []})
        if suffix == "_bucket":
            one["buckets"].append((float(dict(labels)["le"]), value))
        else:
            assert suffix in ("_sum", "_count") and plain == labels, name
            one[suffix] = value
    assert series, family.name
    for labels, one in series.items():
        bounds, counts = zip(*one["buckets"])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, labels)
        assert list(counts) == sorted(counts) and counts[-1] == one["_count"], (family.name, labels)
        assert one["_sum"] >= 0


def _check(family):
    _check_name(family)
    if family.kind == "histogram":
        _check_histogram(family)
    else:
        assert {name for name, _ in family.samples} <= {family.name}
    keys = {frozenset(name for name, _ in labels if name != "le") for _, labels in family.samples}
    assert len(keys) <= 1, f"{family.name}: its samples differ in their labels: {keys}"
    for value in family.samples.values():
        assert family.kind == "gauge" or value >= 0


def parse(text):
    assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
    families, lines, now = {}, iter(text.split("\n")[:-1]), None
    for line in lines:
        if line.startswith("# HELP "):
            name, help_text = line.removeprefix("# HELP ").split(" ", 1)
            word, name_again, kind = next(lines).removeprefix("# ").split(" ")
            assert (word, name_again) == ("TYPE", name) and kind in _TYPES, line
            assert name not in families, f"{name} comes twice"
            now = families[name] = Family(name, kind, help_text, {})
            continue
        match = _SAMPLE.fullmatch(line)
        assert match and now, f"no sample: {line!r}"
        key = match[1], _labels(match[2])
        assert match[1].startswith(now.name) and key not in now.samples, line
        now.samples[key] = float(match[3])
    for family in families.values():
        _check(family)
    return families
