"""Figures that a test measured, shown also when it passes."""

import json
import os


def tell(request, text):
    """One line in pytest's own output, and in tests/run.sh's; `request` is its fixture."""
    plugins = request.config.pluginmanager
    reporter = plugins.getplugin("terminalreporter")
    with plugins.getplugin("capturemanager").global_and_fixture_disabled():
        reporter.ensure_newline()
        reporter.write_line(text)
    if results := os.environ.get("SHIM_TEST_RESULTS"):
        with open(results, "a", encoding="utf-8") as file:
            print(json.dumps({"figure": text}), file=file)


def spread(values, unit="ms"):
    """"median 4.1, worst 9.0 ms of 20"."""
    ordered = sorted(values)
    if not ordered:
        return "none"
    median = ordered[len(ordered) // 2]
    return f"median {median:.1f}, worst {ordered[-1]:.1f} {unit} of {len(ordered)}"
