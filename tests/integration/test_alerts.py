"""The alert rules and the dashboard in config/: that what they ask for is served, and when an alert is given."""

import json
import re
import subprocess
import textwrap

import pytest
import yaml

from asking import by_token
from ctl import CTL
from metrics import PREFIX, scrape
from shim import ROOT, accepts
from waiting import wait_until

RULES = ROOT / "config/prometheus/alerts.yaml"
DASHBOARD = ROOT / "config/grafana/dashboard.json"
DOCUMENT = ROOT / "config/README.md"
# What Prometheus adds to each sample, and a histogram's bound.
EVERYWHERE = {"instance", "job", "le"}
NODE = 'instance="n",job="cri-device-shim"'

# alert: [(whether it is given, after so many minutes, {series: its values, one a minute})]. Not for what ends by
# itself in the time of a restart.
GIVEN = {
    "CRIDeviceShimDown": [
        (True, 6, {"up": "0x10"}), (False, 4, {"up": "0x10"}), (False, 10, {"up": "0x3 1x10"})],
    "CRIDeviceShimNotReady": [
        (True, 6, {"ready": "0x10"}), (False, 4, {"ready": "0x10"}), (False, 10, {"ready": "0x2 1x3 0x2 1x10"})],
    "CRIDeviceShimNotStored": [
        (True, 3, {'degraded{part="store"}': "1x10"}), (False, 1, {'degraded{part="store"}': "1x10"}),
        (False, 10, {'degraded{part="events"}': "1x10"})],
    "CRIDeviceShimPartAway": [
        (True, 4, {'degraded{part="runtime"}': "1x10"}), (True, 4, {'degraded{part="bridge"}': "1x10"}),
        (True, 4, {'degraded{part="relay"}': "1x10"}), (False, 10, {'degraded{part="bridge"}': "1x2 0x10"}),
        (False, 10, {'degraded{part="settings"}': "1x10"})],
    "CRIDeviceShimDegraded": [
        (True, 16, {'degraded{part="settings"}': "1x20"}), (False, 14, {'degraded{part="settings"}': "1x20"}),
        (False, 20, {'degraded{part="store"}': "1x20"})],
    "CRIDeviceShimPluginAway": [
        (True, 3, {'endpoints{state="grace"}': "1x10"}), (False, 10, {'endpoints{state="grace"}': "1 0x10"}),
        (False, 10, {'endpoints{state="active"}': "3x10"})],
    "CRIDeviceShimNoHealthyDevice": [
        (True, 6, {'devices_held{resource="r"}': "2x10", 'devices{resource="r",health="healthy"}': "0x10",
                   'devices{resource="other",health="healthy"}': "2x10"}),
        (True, 6, {'devices_held{resource="r"}': "2x10"}),  # removed
        (False, 10, {'devices_held{resource="r"}': "2x10", 'devices{resource="r",health="healthy"}': "1x10"}),
        (False, 10, {'devices_held{resource="r"}': "2x10", 'devices{resource="r",health="healthy"}': "0x3 2x10"}),
        (False, 10, {'devices_held{resource="r"}': "0x10", 'devices{resource="r",health="healthy"}': "0x10"})],
    "CRIDeviceShimPluginRestarts": [
        (True, 40, {'registrations_total{code="OK"}': "0+1x60", 'endpoints{state="active"}': "2x60",
                    'endpoints{state="grace"}': "0x60"}),
        (True, 40, {'registrations_total{code="OK"}': "0+2x60", 'endpoints{state="active"}': "12x60"}),
        (False, 40, {'registrations_total{code="OK"}': "0x5 8x50", 'endpoints{state="active"}': "1x60"}),
        # One of twelve resources is started anew, twice; the node boots.
        (False, 35, {'registrations_total{code="OK"}': "0x5 12x5 24x50", 'endpoints{state="active"}': "12x60"}),
        (False, 40, {'registrations_total{code="OK"}': "12x15 0 12x40", 'endpoints{state="active"}': "12x60"}),
        (False, 60, {'registrations_total{code="UNAVAILABLE"}': "0+1x60", 'endpoints{state="active"}': "1x60"})],
    "CRIDeviceShimContainersWait": [
        (True, 30, {'refusals_total{reason="plugin-away",code="UNAVAILABLE"}': "0+5x40"}),
        (False, 14, {'refusals_total{reason="plugin-away",code="UNAVAILABLE"}': "0+5x40"}),
        (False, 30, {'refusals_total{reason="plugin-away",code="UNAVAILABLE"}': "0 5 9 9x40"})],
    "CRIDeviceShimDeviceTwice": [
        (True, 2, {"devices_held_twice": "1x5"}), (False, 5, {"devices_held_twice": "0x5"}),
        (False, 5, {"devices_held_twice": "1 0x5"})],
    "CRIDeviceShimEvictionsHeldBack": [
        (True, 11, {"taints_held_back": "5x20"}), (False, 9, {"taints_held_back": "5x20"}),
        (False, 20, {"taints_held_back": "0x20"})],
    "CRIDeviceShimPodsDoNotEnd": [
        (True, 61, {'pods_ending{state="evicting"}': "1x70", 'pods_ending{state="stopping"}': "0x70"}),
        (False, 70, {'pods_ending{state="evicting"}': "1x30 0x40"}),
        (False, 70, {'pods_ending{state="stopped"}': "1x70", 'pods_ending{state="evicted"}': "1x70"})],
    "CRIDeviceShimClaimsRefused": [
        (True, 30, {'claim_requests_total{call="prepare",outcome="driver-away"}': "0+1x40"}),
        (False, 40, {'claim_requests_total{call="prepare",outcome="done"}': "0+1x40",
                     'claim_requests_total{call="unprepare",outcome="owed"}': "0+1x40"}),
        (False, 30, {'claim_requests_total{call="prepare",outcome="driver-away"}': "0 2 2x40"})],
    "CRIDeviceShimClaimsOwed": [
        (True, 31, {'claims{state="owed"}': "1x40"}), (False, 29, {'claims{state="owed"}': "1x40"}),
        (False, 40, {'claims{state="prepared"}': "1x40"})],
    "CRIDeviceShimRestarts": [
        (True, 9, {"uptime_seconds": "600 30 90 20 80 10 70 130 190 250"}),
        (False, 9, {"uptime_seconds": "600 30 90 150 210 270 330 390 450 510"})],
    "CRIDeviceShimConnectionsLost": [
        (True, 2, {"connections_lost_total": "2x20", "uptime_seconds": "30+60x20"}),
        (False, 16, {"connections_lost_total": "2x20", "uptime_seconds": "30+60x20"}),
        (False, 2, {"connections_lost_total": "0x20", "uptime_seconds": "30+60x20"})],
    "CRIDeviceShimGateExpired": [
        (True, 5, {"gate_expired_total": "0 0 1x20"}), (False, 30, {"gate_expired_total": "0 0 1x40"}),
        # As the node boots, of which there was nothing before, or as much.
        (True, 2, {"gate_expired_total": "_ 1x20", "uptime_seconds": "_ 30+60x20"}),
        (True, 20, {"gate_expired_total": "1x40", "uptime_seconds": "9000+60x15 30+60x20"}),
        (False, 30, {"gate_expired_total": "_ 1x40", "uptime_seconds": "_ 30+60x40"}),
        (False, 5, {"gate_expired_total": "0x40", "uptime_seconds": "30+60x40"})],
    "CRIDeviceShimSlowDisk": [
        (True, 35, {'commit_duration_seconds_bucket{le="1"}': "0x40", 'commit_duration_seconds_bucket{le="4"}': "0+3x40",
                    'commit_duration_seconds_bucket{le="+Inf"}': "0+3x40"}),
        (False, 40, {'commit_duration_seconds_bucket{le="1"}': "0+3x40", 'commit_duration_seconds_bucket{le="4"}': "0+3x40",
                     'commit_duration_seconds_bucket{le="+Inf"}': "0+3x40"})],
    "CRIDeviceShimShutdownLasts": [
        (True, 31, {"machine_shutdown": "1x40"}), (False, 29, {"machine_shutdown": "1x40"}),
        (False, 40, {"machine_shutdown": "0x40"})],
}


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries():
    """(where it stands, PromQL, labels that the words about it name) of all that is asked for."""
    for rule in rules():
        words = " ".join(rule["annotations"].values())
        yield rule["alert"], rule["expr"], set(re.findall(r"\$labels\.(\w+)", words))
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    for one in json.loads(DASHBOARD.read_text())["annotations"]["list"]:
        yield one["name"], one["expr"], set(re.findall(r"\{\{(\w+)\}\}", one["titleFormat"]))


def plain(expr):
    """As Prometheus gets it from Grafana."""
    return expr.replace("$__rate_interval", "5m").replace("$instance", ".*")


@pytest.fixture
def served(make_shim, runtime, make_plugin, make_client, directory):
    """{name of a sample: {label: values}} of a daemon at work."""
    path = directory / "metrics.sock"
    shim = make_shim(metrics={"listen": str(path)})
    make_plugin(shim, "vendor.com/gpu", ["g0"])
    client = make_client(shim)
    client.run(client.run_pod("web"), "app", annotations=by_token("vendor.com/gpu", "g0"))
    wait_until(lambda: accepts(path), "the metrics are served")
    found = {}
    for family in scrape(path).values():
        for name, labels in family.samples:
            labels_of = found.setdefault(name, {})
            for label, value in labels:
                labels_of.setdefault(label, set()).add(value)
    assert runtime and len(found) > 60
    return found


def test_all_that_is_asked_for_is_served(served):
    """Each metric, each of its labels, and each value of one that is named."""
    wrong, seen = [], set()
    for where, expr, told in queries():
        names = set(re.findall(rf"\b{PREFIX}\w+", expr))
        seen |= names
        assert names or expr.startswith("up{"), where
        if names - set(served):
            wrong.append((where, names - set(served)))
            continue
        labels = {label: set().union(*(served[name].get(label, set()) for name in names))
                  for name in names for label in served[name]}
        asked = set(re.findall(r"\b(?:by|without|ignoring|on|group_left) \(([^)]*)\)", expr))
        asked = {label for text in asked for label in text.replace(" ", "").split(",")} | told
        for label, operator, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', expr):
            asked.add(label)
            if operator != "!=" and label not in EVERYWHERE:
                wrong += [(where, label, one) for one in value.split("|") if one not in labels.get(label, ())]
        wrong += [(where, label) for label in asked - EVERYWHERE - set(labels)]
    assert wrong == []
    assert len(seen) > 40


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_reads_them(directory):
    """The rules, and each expression of the dashboard."""
    promtool("check", "rules", RULES)
    path = directory / "dashboard.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": [
        {"record": f"panel:{number}", "expr": plain(expr)} for number, (_, expr, _) in enumerate(queries())]}]}))
    promtool("check", "rules", path)


def test_what_scrapes(directory):
    """As config/README.md has it: for Prometheus, by the rules' job, and with a name for each node, where another address is
    the same. At 9100 is Prometheus' node exporter, on most nodes."""
    text = textwrap.dedent(re.search(r"^(    scrape_configs:\n(?: .*\n)+)", DOCUMENT.read_text(), re.MULTILINE)[1])
    path = directory / "prometheus.yaml"
    path.write_text(text)
    promtool("check", "config", path)
    (job,) = yaml.safe_load(text)["scrape_configs"]
    (target,) = job["static_configs"]
    assert f'job="{job["job_name"]}"' in RULES.read_text() and target["labels"] == {"instance": "NODE"}
    (address,) = target["targets"]
    assert address in (ROOT / "config/example.toml").read_text() and not address.endswith(":9100")


def series_of(name, values):
    """`name` is without the prefix, and without what each sample has."""
    name, _, labels = name.rstrip("}").partition("{")
    name = name if name == "up" else PREFIX + name
    return {"series": f"{name}{{{','.join(filter(None, [NODE, labels]))}}}", "values": values}


def test_when_they_are_given(directory):
    """Each alert has what raises it, and what does not, nor does a moment of it."""
    names = [rule["alert"] for rule in rules()]
    assert names == list(GIVEN)
    assert all({True, False} == {given for given, _, _ in cases} for cases in GIVEN.values())
    path = directory / "tests.yaml"
    path.write_text(yaml.safe_dump({
        "rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [
            {"interval": "1m", "name": f"{alert} after {minutes} min: {series}",
             "input_series": [series_of(*one) for one in series.items()],
             "promql_expr_test": [{
                 "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing",instance="n"}})',
                 "eval_time": f"{minutes}m",
                 "exp_samples": [{"labels": "{}", "value": 1}] if given else []}]}
            for alert, cases in GIVEN.items() for given, minutes, series in cases]}))
    promtool("test", "rules", path)


# Ours, and those of coreutils, procps and systemd: what a Debian has that nothing was added to.
ON_EACH_NODE = {"cri-device-shimctl", "df", "journalctl", "systemctl", "systemd-inhibit", "vmstat"}


def test_what_they_say(directory):
    """Each says what is so, what comes of it, and which command to begin with: one that there is."""
    commands = set()
    for rule in rules():
        said = rule["annotations"]
        assert set(said) == {"summary", "description", "command"}, rule["alert"]
        assert "$labels.instance" in said["summary"], rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning")
        for command in said["command"].split(";"):
            assert command.split()[0] in ON_EACH_NODE, command
            if command.split()[0] == "cri-device-shimctl":
                commands.add(tuple(re.sub(r"\{\{.*\}\}", "vendor.com/gpu", command).split()[1:]))
        commands |= {tuple(words.split()) for words in
                     re.findall(r"cri-device-shimctl ((?:[a-z-]+ )*[A-Z]+ \w+)", said["description"])}
    assert len(commands) > 8
    for words in sorted(commands):
        done = subprocess.run([CTL, "-s", "/nowhere", *words], capture_output=True, text=True, check=False, timeout=60,
                              cwd=directory)
        assert "cannot reach the daemon at /nowhere" in done.stderr, (words, done.stderr)


def test_the_dashboard_is_whole():
    """Panels have their own places and ids, and say what they show."""
    every = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in every}) == len(every) > 25
    taken = set()
    for panel in every:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["title"]
    assert len({panel["title"] for panel in every}) == len(every)
