"""Restarts of kubelet, plugin, daemon, bridge and runtime, and reboots, each alone and every two
overlapping: no pod fails, none runs without exactly its devices, no device is in two containers,
and every pod runs in the end.

The connections of daemon and bridge are kept by service managers. What one without a store gives is
measured beside it: there a pod that a kubelet, long through with its start, admits in the moment in which the
bridge's process is being restarted may be rejected. Those are counted, and so is how long that moment
is; there is a bound for both.

SHIM_RESTART_SEED plays other rounds, SHIM_RESTART_ROUNDS more of them; tests/lib/restarts.py does one
pair by hand.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import tempfile
import threading

import pytest

import containerd
import nursery
from restarts import EXCUSED_SHARE_MAX, RESTARTS
from shim import ROOT
from telling import spread, tell

SEED = os.environ.get("SHIM_RESTART_SEED", "1")
ROUNDS = int(os.environ.get("SHIM_RESTART_ROUNDS", "6"))
_NODES = 2  # that run at the same time
_END_S = 40 * ROUNDS
_ALL = [(first, second) for first in RESTARTS for second in (None, *RESTARTS)]
_WITHOUT = [("daemon", None, "without-store"), ("bridge", None, "without-store"),
            ("daemon", "bridge", "without-store")]


def run(first, second, directory, *options):
    """One node and its rounds, in processes of their own: (result, log)."""
    directory.mkdir()
    log = directory / "log"
    with open(log, "wb") as errors:
        process = nursery.start(
            ROOT / "tests/lib/restarts.py", first, *([second] if second else []), "--seed", SEED,
            "--rounds", ROUNDS, "--keep", directory, *(f"--{one}" for one in options), log=errors)
    timer = threading.Timer(_END_S, process.kill)
    timer.start()
    with process.stdin, process.stdout:
        result = process.stdout.read()
    status = process.wait()
    timer.cancel()
    text = log.read_text(errors="replace")
    assert status == 0, text[-10_000:]
    return json.loads(result), text


@pytest.fixture(scope="module")
def results(request):
    """{(first, second): future of its result} of all that are to be tested."""
    wanted = [item.callspec.params["pair"] for item in request.session.items
              if item.module is request.module]
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cds-", dir="/tmp"))
    with concurrent.futures.ThreadPoolExecutor(max_workers=_NODES) as pool:
        yield {pair: pool.submit(run, *pair[:2], directory / str(number), *pair[2:])
               for number, pair in enumerate(wanted)}
        pool.shutdown(cancel_futures=True)
    left = containerd.processes_naming(str(directory))
    shutil.rmtree(directory)
    assert not left, f"processes left behind: {left}"


@pytest.fixture(scope="module")
def seen(request):
    """{whether with a store: the results so far}; what they come to is told at the end."""
    found = {True: [], False: []}
    yield found
    for store, results in found.items():
        if not results:
            continue
        excused = sum(one["excused"] for one in results)
        pods = sum(one["pods"] for one in results)
        windows = [each for one in results for each in one["windows_ms"]]
        tell(request, f"{sum(one['rounds'] for one in results)} rounds of restarts, seed {SEED}, "
                      f"with{'' if store else 'out'} a store: {pods} pods came, {excused} were "
                      "rejected while the bridge was being restarted"
                      + ("" if store else f", which took {spread(windows)}"))
        assert excused <= (0 if store else max(10, EXCUSED_SHARE_MAX * pods))


@pytest.mark.parametrize("pair", _ALL + _WITHOUT, ids=lambda pair: "-".join(filter(None, pair)))
def test_restarts(pair, results, seen):
    """All pods run with exactly their devices after each round; see the module."""
    result, log = results[pair].result()
    print(f"SHIM_RESTART_SEED={SEED} SHIM_RESTART_ROUNDS={ROUNDS}", log[-20_000:], sep="\n")
    assert not result["violations"], result["violations"]
    assert result["rounds"] == ROUNDS and result["pods"] > 0
    seen[pair not in _WITHOUT].append(result)
