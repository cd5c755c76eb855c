"""Figures that a test measured, shown also when it passes."""


def tell(request, text):
    """One line in pytest's own output; `request` is its fixture."""
    plugins = request.config.pluginmanager
    reporter = plugins.getplugin("terminalreporter")
    with plugins.getplugin("capturemanager").global_and_fixture_disabled():
        reporter.ensure_newline()
        reporter.write_line(text)


def spread(values, unit="ms"):
    """"median 4.1, worst 9.0 ms of 20"."""
    ordered = sorted(values)
    if not ordered:
        return "none"
    median = ordered[len(ordered) // 2]
    return f"median {median:.1f}, worst {ordered[-1]:.1f} {unit} of {len(ordered)}"
