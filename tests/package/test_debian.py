"""The Debian package as it is released: what lintian says of it, the same twice, and installed on bare
Debians. What it does to a node that runs is in e2e/test_package.py."""

import hashlib
import os
import pathlib
import shutil
import subprocess

import pytest

from bare_debian import BareDebian
from shim import BINARY, ROOT

NAME = "cri-device-shim"
BUILD = BINARY.parents[1]
KEPT = BUILD / "bare-debian"
PROGRAMS = (NAME, f"{NAME}-bridge", f"{NAME}-agent", f"{NAME}ctl")
PAGES = (*PROGRAMS, f"{NAME}.toml")
# Of what lintian would say: why it need not.
SUPPRESSED = (
    "binary-has-unneeded-section",  # .comment: cpack's strip leaves it, some 30 bytes
    "package-supports-alternative-init-but-no-init.d-script",  # the units are for systemd only
)
OF_A_NODE = "[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n"


def build(source, to, **env):
    done = subprocess.run([source / "config/package.sh", "--build", to], check=True, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, **env})
    return pathlib.Path(done.stdout.strip())


@pytest.fixture(name="package", scope="module")
def built():
    return build(ROOT, BUILD / "package")


def test_lintian_says_nothing(package):
    done = subprocess.run(["lintian", "--allow-root", "--display-info", "--pedantic",
                           "--fail-on", "error,warning,info,pedantic",
                           "--suppress-tags", ",".join(SUPPRESSED), package],
                          check=False, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_two_builds_are_the_same(package, directory):
    """In another directory, of sources elsewhere, in other surroundings; no path of either is in it."""
    source = directory / "elsewhere/with a longer path"
    shutil.copytree(ROOT, source, symlinks=True,
                    ignore=shutil.ignore_patterns("build*", "__pycache__", ".pytest_cache"))
    again = build(source, directory / "b", TZ="Pacific/Kiritimati", LC_ALL="C.UTF-8", HOME="/",
                  CCACHE_DISABLE="1")
    assert again.name == package.name
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(package.read_bytes()).digest()
    tree = directory / "tree"
    subprocess.run(["dpkg-deb", "--extract", again, tree], check=True)
    for path in (one for one in tree.rglob("*") if one.is_file()):
        for place in (source, ROOT, again.parent, package.parent):
            assert str(place).encode() not in path.read_bytes(), path


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_on_a_bare_debian(package, directory, release):
    """With what it depends on and no more; it leaves nothing."""
    root = BareDebian(release, KEPT, directory / "root")
    root.apt("update")
    depends = subprocess.run(["dpkg-deb", "--field", package, "Depends"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    root.apt("satisfy", depends)
    bare = root.files()
    shutil.copy(package, root.path / "root")
    root.apt("install", f"/root/{package.name}")
    (root.path / "root" / package.name).unlink()
    assert {path.split("/")[1] for path in root.files() - bare} == {"usr"}
    for name in PROGRAMS:
        assert root.run(name, "--version").stdout.startswith(f"{name} ")

    done = root.run(f"{NAME}ctl", "node", "enable", check=False)
    assert done.returncode != 0 and "no kubelet.service" in done.stdout
    kubelet = root.path / "etc/systemd/system/kubelet.service"
    kubelet.parent.mkdir(parents=True, exist_ok=True)
    kubelet.write_text(OF_A_NODE)
    assert "systemctl restart kubelet.service" in root.run(f"{NAME}ctl", "node", "enable").stdout
    shutil.copy(package, root.path / "root")
    root.run("dpkg", "--install", f"/root/{package.name}")
    (root.path / "root" / package.name).unlink()
    assert "taken back" not in root.run("dpkg", "--remove", NAME).stdout
    assert kubelet.read_text() == OF_A_NODE and not kubelet.with_suffix(".service.d").exists()
    kubelet.unlink()
    root.run("dpkg", "--purge", NAME)
    assert root.files() == bare


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_pages_and_units(package, directory, release):
    """By that Debian's own man and systemd."""
    root = BareDebian(release, KEPT, directory / "root")
    root.apt("update")
    shutil.copy(package, root.path / "root")
    root.apt("install", f"/root/{package.name}", "man-db", "groff-base", "systemd", "bash-completion")
    for page in PAGES:
        done = root.run("sh", "-c", f"man --warnings -P cat {page} 2>&1 >/dev/null;"
                                    f" man -P cat {page} | wc -l")
        assert done.stdout.strip().isdecimal() and int(done.stdout) > 20, done.stdout
    units = [path.name for path in (root.path / "usr/lib/systemd/system").glob(f"{NAME}*")]
    assert len(units) == 4
    assert root.run("systemd-analyze", "verify", "--man=yes", *units).stdout == ""
    completion = root.run("bash", "-c", ". /usr/share/bash-completion/bash_completion;"
                          f" _completion_loader {NAME}ctl; complete -p {NAME}ctl")
    assert completion.stdout.strip().endswith(f"{NAME}ctl")
