"""What was built, as install.sh looks for it below --build."""

import shutil

from shim import BINARY

PAGE = "config/cri-device-shim.toml.5"


def copy(to):
    """The programs and the manual page of the settings, so that they can be replaced there."""
    shutil.copytree(BINARY.parent, to / "shim", dirs_exist_ok=True,
                    ignore=lambda _, names: [n for n in names if not n.startswith("cri-device-shim")])
    (to / PAGE).parent.mkdir(exist_ok=True)
    shutil.copy2(BINARY.parents[1] / PAGE, to / PAGE)
