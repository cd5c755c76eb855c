"""That config/OPERATIONS.md has all there is to be told of, as the source and the daemon have it."""

import re

import pytest
import yaml

from metrics import get, scrape
from shim import ROOT, accepts
from waiting import wait_until

DOCUMENT = (ROOT / "config/OPERATIONS.md").read_text()
PREFIX = "cri_device_shim_"
STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
BY_ITSELF = "nothing is to be done: "


def rows(heading, nth=0):
    """Of the table with that first line, as lists of cells."""
    table = DOCUMENT.split(f"{heading}\n")[nth + 1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


def word(cell):
    return cell.strip("`")


def quoted(cell):
    return re.findall(r"`(\w+)`", cell)


def source(name):
    """With what a macro stands for in its place."""
    return (ROOT / name).read_text().replace('BY_ITSELF "', f'"{BY_ITSELF}')


def joined(strings):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)).replace('\\"', '"')


def reasons():
    """[(word, code, what to do)] of the core's grounds to refuse a creation."""
    remedies = {name: joined(words) for name, words in
                re.findall(rf"\[(REASON_\w+)\] =\s*{STRINGS},", source("devicemgr/words/remedy.c"))}
    found = re.findall(r'\[(REASON_\w+)\] = \{"([a-z-]+)", CODE_(\w+),', source("devicemgr/words/reason.c"))
    return [(name, code, remedies[kind]) for kind, name, code in found]


def claim_reasons():
    """Likewise, of what the kubelet asks of a claim."""
    found = re.findall(rf'\[CLAIM_\w+\] =\s*\{{"([a-z-]+)", CODE_(\w+), \w+,\s*{STRINGS},\s*{STRINGS}\}}',
                       source("devicemgr/words/claim.c"))
    return [(name, code, joined(clears)) for name, code, _, clears in found]


REFUSALS = "| word | code | what is so | what to do |"


@pytest.mark.parametrize("nth,named,enum,kinds", [
    (0, reasons, "devicemgr/words/reason.h", "REASON"),
    (1, claim_reasons, "devicemgr/words/claim.h", "CLAIM")])
def test_each_refusal(nth, named, enum, kinds):
    """In the order of the source; what is to be done in the words of "cri-device-shimctl why"."""
    known = re.findall(rf"^    {kinds}_(?!\w*KINDS|ENDS)\w+,", (ROOT / enum).read_text(), re.MULTILINE)
    said = rows(REFUSALS, nth)
    assert [(word(name), word(code), remedy) for name, code, _, remedy in said] == named()
    assert len(said) == len(known) and all(what for _, _, what, _ in said)


def test_each_kind_of_the_log():
    kinds = re.findall(r'= \{"([a-z-]+)", "([0-9a-f]{32})"\}', (ROOT / "shim/log_kind.h").read_text())
    said = rows("| kind | MESSAGE_ID | what has happened | what to do |")
    assert [(word(kind), word(number)) for kind, number, _, _ in said] == kinds
    assert len(kinds) > 30 and all(what and todo for _, _, what, todo in said)


def test_each_part_that_may_be_degraded():
    parts = re.findall(r'\[REPORT_\w+\] = "([a-z]+)"', (ROOT / "shim/report.c").read_text())
    said = rows("| part | what to do |")
    assert sorted(word(part) for part, _ in said) == sorted(parts) and all(todo for _, todo in said)


def test_each_metric(directory, make_shim):
    """That a daemon serves, with its help."""
    path = directory / "metrics.sock"
    make_shim(metrics={"listen": str(path)})
    wait_until(lambda: accepts(path), "the metrics are served")
    served = re.findall(rf"^# HELP {PREFIX}(\w+) (.*)$", get(path, "/metrics")[2], re.MULTILINE)
    assert len(served) > 50
    assert sorted((word(name), words) for name, words in rows("| metric | |")) == sorted(served)


def test_each_label(directory, make_shim):
    """Of each metric that has samples before there are calls and resources."""
    path = directory / "metrics.sock"
    make_shim(metrics={"listen": str(path)})
    wait_until(lambda: accepts(path), "the metrics are served")
    families = scrape(path)
    served = {(name, label) for name, family in families.items() for _, labels in family.samples for label, _ in labels}
    said = {(name, label) for labels, metrics in rows("| label | of |")
            for label in quoted(labels.split(":")[0]) for name in quoted(metrics)}
    assert {name for name, _ in said} <= set(families)
    assert {(name, label) for name, label in said if families[name].samples} == {one for one in served if one[1] != "le"}
    assert len(said) > 30


def test_each_alert():
    """In the order of the rules."""
    rules = yaml.safe_load((ROOT / "config/prometheus/alerts.yaml").read_text())["groups"]
    alerts = [rule["alert"] for group in rules for rule in group["rules"]]
    said = rows("| alert | what to do when the command has spoken |")
    assert [word(alert) for alert, _ in said] == alerts and len(alerts) > 10
    assert all(todo for _, todo in said)
