"""config/kubernetes: its manifests fit each other, the image and the installer; what its scripts refuse. e2e/test_fleet.py
has the image and its pods on a node, cluster/test_fleet.py an API server."""

import pathlib
import re
import subprocess

import pytest
import yaml

import built
from containerd import overlayfs_works
from shim import BINARY, ROOT

KUBERNETES = ROOT / "config/kubernetes"
BASE = KUBERNETES / "base"
FLEET = (KUBERNETES / "fleet.sh").read_text()
INSTALL = ROOT / "config/install.sh"
VERBS = ("install", "remove")


def load(path):
    return yaml.safe_load((KUBERNETES / path).read_text())


def assigned(name):
    """What a variable of fleet.sh begins as."""
    return re.search(rf"^{name}=(\S+)", FLEET, re.MULTILINE)[1]


# ---- the manifests ----

def test_the_base_has_all_its_files():
    objects = {path.name: yaml.safe_load(path.read_text()) for path in BASE.glob("*.yaml")}
    kustomization = objects.pop("kustomization.yaml")
    assert sorted(kustomization["resources"]) == sorted(objects)
    assert {one["kind"] for one in objects.values()} == {"Namespace", "ServiceAccount", "DaemonSet"}
    namespace = objects["namespace.yaml"]["metadata"]
    assert kustomization["namespace"] == namespace["name"]
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"  # hostPath is no less


@pytest.mark.parametrize("verb", VERBS)
def test_a_pod_has_no_more_than_it_needs(verb):
    """No role and no token; no privilege but to look at the node's root directory from within."""
    pod = load(f"base/{verb}.yaml")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == load("base/account.yaml")["metadata"]["name"]
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostPID", "hostIPC", "initContainers", "priorityClassName"} & set(pod)
    (container,) = pod["containers"]
    assert not {"ports", "env", "envFrom", "lifecycle", "livenessProbe"} & set(container)
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["SYS_CHROOT"]}
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    # Who may speak with systemd, where either of them is on.
    assert security["seLinuxOptions"] == {"type": "spc_t"} and security["appArmorProfile"] == {"type": "Unconfined"}
    assert "privileged" not in security and security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {one["name"]: one.get("readOnly", False) for one in container["volumeMounts"]} == {
        "node": True, "run": False}
    paths = {one["name"]: one.get("hostPath", {}).get("path") for one in pod["volumes"]}
    assert paths == {"node": "/", "run": None}


@pytest.mark.parametrize("verb", VERBS)
def test_a_daemon_set_fits_itself_and_the_image(verb):
    one = load(f"base/{verb}.yaml")
    spec, template = one["spec"], one["spec"]["template"]
    assert one["metadata"]["name"] == f"cri-device-shim-{verb}"
    assert spec["selector"]["matchLabels"] == template["metadata"]["labels"]
    assert template["metadata"]["labels"]["app.kubernetes.io/component"] == verb
    assert template["spec"]["nodeSelector"]["cri-device-shim/node"] == verb
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    (container,) = template["spec"]["containers"]
    (entry,) = re.findall(r'^ENTRYPOINT \["(.*)"\]$', (KUBERNETES / "Containerfile").read_text(), re.MULTILINE)
    assert container["readinessProbe"]["exec"]["command"] == [entry, "ready"]
    assert container["args"] == [verb]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert mounts["node"] == assigned("node")
    assert str(pathlib.PurePath(assigned("state")).parent) == mounts["run"]


def test_paths_of_the_node():
    """What the image asks is where install.sh has put it, and the package where that puts it."""
    node = (ROOT / "config/node/node.sh").read_text()
    prefix = re.search(r"^prefix=(\S+)", node, re.MULTILINE)[1]
    assert set(re.findall(r'"\$node" (\S+)', FLEET)) == {
        "systemd-run", f"{prefix}/bin/cri-device-shim", f"{prefix}/bin/cri-device-shimctl"}
    assert f"mktemp -d {prefix}/.cri-device-shim." in FLEET
    assert f"find {prefix} " in (KUBERNETES / "on_node.sh").read_text()


def test_k3s_has_the_installers_options(directory):
    """Its patch is of the container that there is, and the installer knows what that then says."""
    overlay = load("k3s/kustomization.yaml")
    assert [KUBERNETES / "k3s" / one for one in overlay["resources"]] == [KUBERNETES / "k3s/../base"]
    (patch,) = overlay["patches"]
    assert patch["target"] == {"kind": "DaemonSet", "name": load("base/install.yaml")["metadata"]["name"]}
    (operation,) = yaml.safe_load(patch["patch"])
    assert operation["path"] == "/spec/template/spec/containers/0/args"
    verb, *options = operation["value"]
    assert verb == "install"
    (directory / "etc").mkdir()
    built.copy(directory / "build")
    done = subprocess.run([INSTALL, "--root", directory, "--dry-run", "--build", directory / "build", *options],
                          check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert '+runtime_endpoint = "/run/k3s/containerd/containerd.sock"' in done.stdout
    assert "give the kubelet --container-runtime-endpoint=unix:///run/cri-device-shim" in done.stdout


# ---- the scripts ----

@pytest.mark.parametrize("words", [(), ("upgrade",)])
def test_fleet_refuses_other_words(words):
    done = subprocess.run(["sh", KUBERNETES / "fleet.sh", *words], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "install, remove or ready" in done.stderr


@pytest.mark.parametrize("option", ["--prefix", "--root", "--build"])
def test_fleet_knows_where_its_files_are(option):
    """With them elsewhere its pod was never ready, and no node after it installed."""
    done = subprocess.run(["sh", KUBERNETES / "fleet.sh", "install", "--no-kubelet", option, "/opt"], check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and f"error: {option}: " in done.stderr


@pytest.mark.parametrize("words,error", [
    ([], "what is it to be called"), (["--stage"], "--stage needs a value"), (["--push", "x"], "unknown option --push"),
    (["--build", "/usr", "x"], "/usr/shim/cri-device-shim is missing; build it first"),
    (["--build", BINARY.parents[1], "--stage", "/usr"], "/usr is there already")])
def test_image_refuses(words, error):
    done = subprocess.run([KUBERNETES / "image.sh", *words], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"error: {error}" in done.stderr


def test_image_of_an_ordinary_user(directory):
    """To whom Debian gives a PATH without /sbin, where ldconfig is."""
    done = subprocess.run([KUBERNETES / "image.sh", "--build", directory, "x"], check=False, capture_output=True, text=True,
                          timeout=60, env={"PATH": "/usr/local/bin:/usr/bin:/bin"})
    assert done.returncode == 1 and f"error: {directory}/shim/cri-device-shim is missing; build it first" in done.stderr


def test_a_node_that_has_no_room_for_the_release(directory):
    """Nothing is unpacked in another place, or removed from there: systemd's units begin in /."""
    release, root, tools = (directory / name for name in ("release", "root", "tools"))
    for path in (release / "config/kubernetes", root, tools):
        path.mkdir(parents=True)
    (release / "config/kubernetes/on_node.sh").write_text("touch was-run\n")
    for name, text in (("chroot", 'shift\nexec "$@"'), ("mktemp", 'echo "no space" >&2\nexit 1'),
                       ("systemd-run", f'while [ "${{1#--}}" != "$1" ]; do shift; done\ncd {root}\n'
                        f'exec "$1" "$2" "$(printf %s "$3" | sed "s,[$][$],$,g")" "$4" "$5"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    fleet = FLEET.replace("release=/release", f"release={release}").replace("state=/run", f"state={directory}")
    done = subprocess.run(["sh", "-c", fleet, "fleet", "install"], check=False, capture_output=True, text=True,
                          timeout=60, env={"PATH": f"{tools}:/usr/bin:/bin"})
    assert done.returncode == 1 and "no space" in done.stderr
    assert root.exists() and not list(root.iterdir())


@pytest.mark.parametrize("settings,socket", [
    ("", "/run/cri-device-shim/control.sock"), ('listen = "/run/other/shim.sock"', "/run/other/control.sock"),
    ('[control]\nsocket = ""', None)])
def test_ready_by_the_control_socket_of_the_settings(directory, settings, socket):
    """Where else nobody answers."""
    (directory / "config.toml").write_text(settings)
    (directory / "state").write_text("install\n")
    for name, text in (("chroot", f'program=${{2##*/}}\nshift 2\nexec {directory}/$program "$@"'),
                       ("cri-device-shim", f'exec {BINARY} --config {directory}/config.toml "$@"'),
                       ("cri-device-shimctl", f'[ "$*" = "--socket {socket} status -o name" ] && echo status/ok')):
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    fleet = re.sub(r"^state=\S+", f"state={directory}/state", FLEET, flags=re.MULTILINE)
    done = subprocess.run(["sh", "-c", fleet, "fleet", "ready"], check=False, timeout=60,
                          env={"PATH": f"{directory}:/usr/bin:/bin"})
    assert (done.returncode == 0) == bool(socket)


@pytest.fixture(name="release")
def unpacked(directory):
    """As the node has it from the image, but that nothing is installed; on_node() runs its part."""
    release = directory / "release"
    for path, text in (("config/install.sh", 'echo "installs $*"\nyes | head -200000\ntouch "$DONE"\n'),
                       ("build/shim/cri-device-shim", "echo a version\n")):
        (release / path).parent.mkdir(parents=True)
        (release / path).write_text(f"#!/bin/bash\n{text}")
        (release / path).chmod(0o755)
    (release / "config/kubernetes").mkdir()
    (release / "config/kubernetes/on_node.sh").write_text((KUBERNETES / "on_node.sh").read_text())
    subprocess.run("find . -type f | xargs sha256sum >../sums && mv ../sums SHA256SUMS", shell=True,
                   check=True, cwd=release)
    return release


def on_node(release, before="", after=""):
    """Its status and words; `before`, `after`: shell around it. Nothing is left of what was unpacked."""
    command = f"{before} bash {release}/config/kubernetes/on_node.sh --one --two {after}"
    done = subprocess.run(["unshare", "--mount", "bash", "-o", "pipefail", "-c", command], check=False,
                          capture_output=True, text=True, timeout=60, env={"DONE": release.parent / "done",
                                                                           "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    assert not release.exists()
    return done.returncode, done.stdout, (release.parent / "done").exists()


def test_on_node(release):
    status, said, done = on_node(release)
    assert (status, done) == (0, True) and said.startswith("a version\ninstalls --one --two\ny\n")


def test_the_change_ends_though_nobody_reads_its_words(release):
    status, _, done = on_node(release, after="| true")
    assert (status, done) == (0, True)


def test_a_release_that_did_not_come_whole(release):
    (release / "config/install.sh").write_text("#!/bin/bash\n")
    status, said, done = on_node(release)
    assert (status, done) == (1, False) and "error: the release did not come whole" in said


def test_programs_that_do_not_run_there(release):
    (release / "build/shim/cri-device-shim").write_text("#!/bin/no-such-loader\n")
    subprocess.run("sha256sum $(awk '{ print $2 }' SHA256SUMS) >sums; mv sums SHA256SUMS", shell=True,
                   check=True, cwd=release)
    status, said, done = on_node(release)
    assert (status, done) == (1, False) and "error: the programs do not run on this node" in said


def test_a_node_that_has_the_package(release, directory):
    if not overlayfs_works(directory):
        pytest.skip("no overlayfs here")
    (directory / "upper/cri-device-shim").mkdir(parents=True)
    (directory / "upper/cri-device-shim/node.sh").touch()
    (directory / "work").mkdir()
    status, said, done = on_node(release, before=f"mount -t overlay overlay -o lowerdir=/usr/lib,"
                                 f"upperdir={directory}/upper,workdir={directory}/work /usr/lib &&")
    assert (status, done) == (1, False) and "has the package cri-device-shim" in said
