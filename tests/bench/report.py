"""Medians, ratios, the aims and the tables of bench.py's figures."""

import statistics

FLOOR = "copier"
OURS = "shim"
NO_RELAY_OF_OTHERS = ("direct", FLOOR, OURS, "shim-base", "shim-metrics")

# What the relay is to reach.
ADDED_MAX = 1.15  # of the copier's
CPU_MAX = 1.15
RATE_MIN = 0.95
LARGE_MIN = 0.9  # of direct
IDLE_KIB_MAX = 6 * 1024
CREATE_US_MAX = 100
METRICS_MAX = 1.02  # of the shim's that counts nothing


class Figures:
    """What the rounds gave; None wherever a target or a point was not measured."""

    def __init__(self, runs):
        self._runs = runs

    def _rounds(self, target, point, metric):
        return [figures[metric] for figures in self._runs.get((target, point), [])
                if metric in figures]

    def median(self, target, point, metric):
        values = self._rounds(target, point, metric)
        return statistics.median(values) if values else None

    def _paired(self, target, base, point, metric, of):
        pairs = list(zip(self._rounds(target, point, metric), self._rounds(base, point, metric)))
        return statistics.median(of(a, b) for a, b in pairs) if pairs else None

    def ratio(self, target, base, point, metric):
        return self._paired(target, base, point, metric, lambda a, b: a / b)

    def added(self, target, point, metric):
        return self._paired(target, "direct", point, metric, lambda a, b: a - b)

    def added_ratio(self, target, point, metric):
        """To the floor's; None also where the floor adds nothing that could be measured."""
        ours, floor = self.added(target, point, metric), self.added(FLOOR, point, metric)
        return ours / floor if ours is not None and floor and floor > 0 else None


def _point(figures, name, target):
    out = {metric: figures.median(target, name, metric)
           for metric in ("calls_per_s", "p50_us", "p99_us", "mb_per_s", "events_per_s", "cpu_us",
                          "rss_peak_kib")}
    for metric in ("p50_us", "p99_us"):
        out["added_" + metric] = figures.added(target, name, metric)
    out["added_p50_of_copier"] = figures.added_ratio(target, name, "p50_us")
    out["calls_of_copier"] = figures.ratio(target, FLOOR, name, "calls_per_s")
    out["calls_of_direct"] = figures.ratio(target, "direct", name, "calls_per_s")
    out["cpu_of_copier"] = figures.ratio(target, FLOOR, name, "cpu_us")
    if target != OURS:
        out["cpu_of_shim"] = figures.ratio(target, OURS, name, "cpu_us")
    return {key: value for key, value in out.items() if value is not None}


def _creates(runs):
    """Of each kind of create; empty if they were not measured."""
    out = {name: {key: statistics.median(figures[key] for figures in known)
                  for key in ("p50_us", "p99_us", "cpu_us")} for name, known in runs.items()}
    for name, known in runs.items():
        pairs = zip(known, runs["relayed"])
        out[name]["over_relayed_us"] = statistics.median(
            a["p50_us"] - b["p50_us"] for a, b in pairs)
    return out


def _first_creates(rounds):
    """Of each part of a first create, its median over the rounds."""
    return {name: statistics.median(figures[name] for figures in rounds)
            for name in (rounds[0] if rounds else {})}


def _aim(text, figure, limit, reached):
    return {"aim": text, "figure": figure, "limit": limit,
            "reached": None if figure is None else reached(figure, limit)}


def _at_most(text, figure, limit):
    return _aim(text, figure, limit, lambda a, b: a <= b)


def _at_least(text, figure, limit):
    return _aim(text, figure, limit, lambda a, b: a >= b)


def _of_best(points, point, key, best, others):
    """Our figure over the best of the other relays'."""
    ours = points.get(point, {}).get(OURS, {}).get(key)
    theirs = [points[point][name][key] for name in others
              if key in points.get(point, {}).get(name, {})]
    return ours / best(theirs) if ours is not None and theirs else None


def _aims(points, idle_kib, creates, others):
    def ours(point, key):
        return points.get(point, {}).get(OURS, {}).get(key)

    aims = [_at_most("added latency p50, 1 in flight, of the copier's",
                     ours("1", "added_p50_of_copier"), ADDED_MAX)]
    for point in ("1", "16", "64"):
        aims.append(_at_most(f"CPU per call, {point} in flight, of the copier's",
                             ours(point, "cpu_of_copier"), CPU_MAX))
    for point in ("16", "64"):
        aims.append(_at_least(f"calls/s, {point} in flight, of the copier's",
                              ours(point, "calls_of_copier"), RATE_MIN))
    aims.append(_at_least("16 MiB answers, of direct", ours("16 MiB", "calls_of_direct"),
                          LARGE_MIN))
    aims.append(_at_most("latency p50, 1 in flight, of the best other relay",
                         _of_best(points, "1", "p50_us", min, others), 1))
    for point in ("16", "64"):
        aims.append(_at_least(f"calls/s, {point} in flight, of the best other relay",
                              _of_best(points, point, "calls_per_s", max, others), 1))
    for point in ("1", "16", "64"):
        aims.append(_at_most(f"CPU per call, {point} in flight, of the best other relay",
                             _of_best(points, point, "cpu_us", min, others), 1))
    for point in ("1", "16", "64"):
        aims.append(_at_most(f"CPU per call, {point} in flight, with metrics, of without",
                             points.get(point, {}).get("shim-metrics", {}).get("cpu_of_shim"),
                             METRICS_MAX))
    aims.append(_at_most("RSS idle, KiB", idle_kib.get(OURS), IDLE_KIB_MAX))
    aims.append(_at_most("intercepted create over a relayed one, p50 µs",
                         creates.get("cached options", {}).get("over_relayed_us"), CREATE_US_MAX))
    return aims


def collect(bench):
    """All figures, as JSON takes them."""
    runs = Figures(bench.runs)
    names = [target.name for target in bench.every]
    points = {point.name: {name: _point(runs, point.name, name) for name in names}
              for point in bench.points}
    creates = _creates(bench.creates)
    others = [name for name in names if name not in NO_RELAY_OF_OTHERS]
    return {
        "settings": bench.settings,
        "targets": names,
        "unusable": bench.unusable,
        "points": points,
        "rss_idle_kib": bench.idle_kib,
        "creates": creates,
        "first_creates": _first_creates(bench.first_creates),
        "aims": _aims(points, bench.idle_kib, creates, others),
    }


# ---- text ----

def _number(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"


def _table(title, columns, rows):
    lines = [[""] + columns] + rows
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
            for line in lines]
    return "\n".join(["", title, *text])


def _by_target(figures, title, wanted):
    """`wanted`: (column, point, key, digits) each; left out where the point was not measured."""
    wanted = [item for item in wanted if item[1] in figures["points"]]
    rows = [[name] + [_number(figures["points"][point][name].get(key), digits)
                      for _, point, key, digits in wanted] for name in figures["targets"]]
    return _table(title, [item[0] for item in wanted], rows) if wanted else ""


def _latency(figures):
    return _by_target(figures, "One call at a time, µs", [
        ("p50", "1", "p50_us", 1), ("added", "1", "added_p50_us", 1),
        ("of copier", "1", "added_p50_of_copier", 2), ("p99", "1", "p99_us", 1),
        ("added", "1", "added_p99_us", 1), ("CPU/call", "1", "cpu_us", 2),
        ("of copier", "1", "cpu_of_copier", 2), ("of shim", "1", "cpu_of_shim", 3)])


def _rate(figures, point, title):
    return _by_target(figures, title, [
        ("calls/s", point, "calls_per_s", 0), ("of direct", point, "calls_of_direct", 2),
        ("of copier", point, "calls_of_copier", 2), ("CPU µs/call", point, "cpu_us", 2),
        ("of copier", point, "cpu_of_copier", 2), ("of shim", point, "cpu_of_shim", 3),
        ("p50 µs", point, "p50_us", 0), ("p99 µs", point, "p99_us", 0)])


def _size(figures, point, what="Answers"):
    return _by_target(figures, f"{what} of {point.removesuffix(' up')}, one at a time", [
        ("MB/s", point, "mb_per_s", 0), ("of direct", point, "calls_of_direct", 2),
        ("of copier", point, "calls_of_copier", 2), ("CPU µs/call", point, "cpu_us", 0),
        ("of copier", point, "cpu_of_copier", 2), ("p50 µs", point, "p50_us", 0),
        ("p99 µs", point, "p99_us", 0)])


def _events(figures):
    return _by_target(figures, "A stream of events of 200 bytes, a frame each", [
        ("events/s", "events", "events_per_s", 0), ("of direct", "events", "calls_of_direct", 2),
        ("of copier", "events", "calls_of_copier", 2), ("CPU µs/event", "events", "cpu_us", 3),
        ("of copier", "events", "cpu_of_copier", 2)])


def _memory(figures):
    points = list(figures["points"])
    rows = []
    for name in figures["targets"]:
        peaks = [figures["points"][point][name].get("rss_peak_kib") for point in points]
        rows.append([name] + [_number(value and value / 1024, 1)
                              for value in [figures["rss_idle_kib"].get(name), *peaks]])
    return _table("Memory, MiB: RSS idle, then its peak in each run above (in flight, connections,"
                  " answers)", ["idle", *points], rows)


def _create_table(figures):
    rows = [[name] + [_number(known.get(key), 1) for key in
                      ("p50_us", "over_relayed_us", "p99_us", "cpu_us")]
            for name, known in figures["creates"].items()]
    return _table("The same CreateContainer through the shim (cached: of a built-in device), µs",
                  ["p50", "over relayed", "p99", "CPU/call"], rows) if rows else ""


def _first_create_table(figures):
    rows = [[name, _number(value, 0)] for name, value in figures["first_creates"].items()]
    return _table("The first CreateContainer of a pod, a Python client and plugin, p50 µs", ["p50"],
                  rows) if rows else ""


def _aims_table(figures):
    said = {True: "reached", False: "NOT reached", None: "not measured"}
    rows = []
    for aim in figures["aims"]:
        digits = 3 if aim["limit"] < 10 else 0
        rows.append([aim["aim"], _number(aim["figure"], digits), _number(aim["limit"], digits),
                     said[aim["reached"]]])
    return _table("Aims", ["figure", "limit", ""], rows)


def text(figures):
    parts = [
        _latency(figures),
        _rate(figures, "16", "16 in flight on one connection"),
        _rate(figures, "64", "64 in flight on one connection"),
        _rate(figures, "1000", "1,000 in flight on one connection"),
        _rate(figures, "16 conn", "16 connections, one in flight on each"),
        _rate(figures, "200 conn", "200 connections, one in flight on each"),
        _size(figures, "16 KiB"), _size(figures, "1 MiB"), _size(figures, "16 MiB"),
        _size(figures, "1 MiB up", "Requests"), _events(figures), _memory(figures),
        _create_table(figures), _first_create_table(figures), _aims_table(figures),
        "\n".join(f"\n{name}: not measured: {why}" for name, why in figures["unusable"].items()),
        f"\n{figures['settings']['rounds']} rounds, {figures['seconds']} s in all,"
        f" {figures['cores']} cores; load average before: {figures['load_average_before']:.1f}",
    ]
    return "\n".join(part for part in parts if part).lstrip("\n")
