"""What hostile plugins make the daemon hold together, against the sum in shim/plugins/limits.h."""

import struct

import pytest

from asking import by_annotation
from bound import Bound
from h2runtime import H2Runtime, Script
from limits import limits_of
from plugin import register
from process import MIB
from rawh2 import framed
from waiting import wait_until

pytestmark = pytest.mark.release

LIMITS = limits_of("shim/rpc/rpc.h", "shim/plugins/limits.h")
LINK_BYTES = 2 * 64 * 1024  # what a connection takes by itself (LINK_IO_BYTES twice), and nghttp2
GPU = "vendor.com/gpu"
HOGS = 40
HALF_BYTES = 8 * MIB
# The first half of a list of 16 MiB; the rest never comes.
HALF_A_LIST = Script(struct.pack(">BI", 0, 2 * HALF_BYTES) + bytes(HALF_BYTES), ends=False)


def half_a_list(call):
    return HALF_A_LIST if call.method == "ListAndWatch" else Script(framed(b""))


@pytest.fixture
def hogs(shim, closing):
    """They register one after the other, each as soon as the one before has been asked for its
    list."""
    made = []
    for number in range(HOGS):
        hog = closing(H2Runtime(shim.plugin_dir / f"hog{number}.sock", script=half_a_list))
        hog.start()
        register(shim.plugin_dir, f"vendor.com/hog{number}", hog.path.name)
        wait_until(lambda one=hog: any(call.method == "ListAndWatch" for call in list(one.calls)),
                   "it is asked for its list")
        made.append(hog)
    return made


def refused(shim):
    return shim.log().count("no room for the message beside others")


def test_many_that_each_send_half_a_list(shim, request, client, make_plugin):
    """Sixteen find room for it, the others are refused, and an honest plugin has its list meanwhile;
    and when they are gone, so is what they took."""
    bound = Bound(shim)
    hogs = request.getfixturevalue("hogs")
    fit = LIMITS["PLUGINS_SHARED_BYTES"] // HALF_BYTES
    wait_until(lambda: refused(shim) >= HOGS - fit - 1, "no more fit")
    make_plugin(shim, GPU, [f"GPU-{number:032x}" for number in range(3000)])
    shim.wait_log("3000 of 3000 devices healthy")
    client.create(client.run_pod("web", annotations=by_annotation("app", f"{GPU}=1")), "app")
    bound.check(LIMITS["PLUGINS_SHARED_BYTES"] + HOGS * (LIMITS["PLUGIN_OWN_BYTES"] + LINK_BYTES)
                + 3000 * 500)
    for hog in hogs:
        hog.stop()
    bound.wait_gone()


def test_a_call_that_registers_is_short(shim):
    """Nobody needs a megabyte to say what a plugin is called."""
    with pytest.raises(Exception, match="no room for the message beside others"):
        register(shim.plugin_dir, "vendor.com/" + "x" * MIB, "one.sock")
