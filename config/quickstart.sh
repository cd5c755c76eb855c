#!/usr/bin/env bash
# Shows cri-device-shim at work on this machine, in a directory of its own: its own containerd, its
# own shim, a device plugin, real containers. Debian 12 or 13, as root.
#
#   config/quickstart.sh              shows it, and removes all it made
#   config/quickstart.sh --keep       leaves it running and says how to go on
#   config/quickstart.sh --stop DIR   ends what --keep left
set -euo pipefail
unset CDPATH # with which cd prints

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
demo=$root/config/cri-device-shim-demo
shim=$root/build/shim/cri-device-shim
# shellcheck source=config/packages.sh
. "$root/config/packages.sh"
# The demo commands are Python; they leave nothing in the source tree.
export PYTHONDONTWRITEBYTECODE=1

keep=no
dir=
reason=
plugin_pid=
shim_pid=
containerd_pid=

if [ -t 1 ]; then
    bold=$'\033[1m' plain=$'\033[0m'
else
    bold="" plain=""
fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '%s\n' "$*"; }
fail() {
    reason=$*
    exit 1
}

# Prints the command as a user would type it, then runs it.
show() {
    local word
    printf '  $ cri-device-shim-demo'
    for word in "$@"; do
        [[ $word == *[^A-Za-z0-9_./=-]* ]] && word=\'$word\'
        printf ' %s' "$word"
    done
    printf '\n'
    "$demo" --socket "$dir/s.sock" "$@" 2>&1 | sed 's/^/    /'
}

# wait_for WHAT COMMAND...: until the command succeeds, 30 s at most.
wait_for() {
    local what=$1 end=$((SECONDS + 30))
    shift
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $end ] || fail "$what did not come up; see above"
        sleep 0.1
    done
}

# ours PID: whether that is a live process which names our directory.
ours() { [ -n "$1" ] && grep -qsF "$dir" "/proc/$1/cmdline"; }

# end PID SIGNAL: only if that process is one that works in our directory; waits for its end.
end() {
    local waited=0
    ours "$1" || return 0
    kill "-$2" "$1" 2>/dev/null || return 0
    while ours "$1" && [ $waited -lt 100 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -KILL "$1" 2>/dev/null || true
}

remove_all() {
    end "$plugin_pid" TERM
    end "$shim_pid" TERM
    if ours "$containerd_pid"; then
        "$demo" --socket "$dir/c.sock" rm --all || true
    fi
    end "$containerd_pid" TERM
    awk -v below="$dir/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
        xargs -r umount -l
    find /sys/fs/cgroup -maxdepth 2 -name cri-device-shim -type d \
        -exec rmdir --ignore-fail-on-non-empty {} +
    rm -rf "$dir"
}

# The end of the log of what came last.
show_logs() {
    local log
    for log in shim containerd build apt; do
        if [ -s "$dir/$log.log" ]; then
            tail -n 20 "$dir/$log.log"
            return
        fi
    done
}

finish() {
    local status=$?
    trap '' INT TERM HUP # also if somebody presses Ctrl-C again
    trap - EXIT
    set +e
    if [ $status -ne 0 ] && [ -z "$reason" ]; then
        reason="a command failed, see above"
    fi
    if [ -n "$dir" ] && { [ $status -ne 0 ] || [ $keep = no ]; }; then
        if [ $status -ne 0 ]; then
            show_logs
        fi
        remove_all
    fi
    if [ $status -eq 0 ]; then
        note "quickstart: OK"
    else
        note "quickstart: FAILED: $reason"
    fi
    exit $status
}

interrupted() {
    reason=interrupted
    exit 130
}

# start LOG COMMAND...: its pid in $started. In a session of its own, so that Ctrl-C here
# ends nothing before it is cleaned up in order.
start() {
    local log=$1
    shift
    setsid "$@" </dev/null >>"$log" 2>&1 &
    started=$!
    disown "$started"
}

start_plugin() {
    start "$dir/plugin.log" "$root/config/demo-plugin" "$dir/plugins" "$dir/driver"
    plugin_pid=$started
    wait_for "the device plugin" plugin_serves
}

plugin_serves() {
    if ! kill -0 "$plugin_pid" 2>/dev/null; then
        tail -n 5 "$dir/plugin.log"
        fail "the device plugin ended"
    fi
    grep -q '^registered' "$dir/plugin.log"
}

install() {
    local packages=("${BUILD_PACKAGES[@]}" "${RUNTIME_PACKAGES[@]}")
    [ -z "$(packages_missing "${packages[@]}")" ] || note "Installing packages with apt"
    packages_install "${packages[@]}" >"$dir/apt.log" 2>&1 ||
        fail "apt could not install what is missing; the end of its output is above"
}

build() {
    local ccache=()
    if command -v ccache >/dev/null; then
        ccache=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    note "Building in $root/build, which takes minutes the first time"
    {
        cmake -G Ninja -S "$root" -B "$root/build" "${ccache[@]}" &&
            ninja -C "$root/build" cri-device-shim
    } >"$dir/build.log" 2>&1 || fail "the build failed; the end of its output is above"
}

start_containerd() {
    "$demo" prepare "$dir"
    start "$dir/containerd.log" containerd --config "$dir/config.toml"
    containerd_pid=$started
    wait_for containerd "$demo" --socket "$dir/c.sock" ps >/dev/null
    ctr --address "$dir/c.sock" --namespace k8s.io images import "$dir/images.tar" >/dev/null
}

# A device node that any machine has, and no container by default.
pick_node() {
    local node
    for node in /dev/fuse /dev/kvm /dev/net/tun /dev/loop-control; do
        if [ -c "$node" ]; then
            printf '%s\n' "$node"
            return
        fi
    done
    mknod "$dir/demo-node" c 1 7
    printf '%s\n' "$dir/demo-node"
}

write_shim_config() {
    cat >"$dir/shim.toml" <<EOF
listen = "$dir/s.sock"
runtime_endpoint = "$dir/c.sock"
state_dir = "$dir/shim-state"

[plugins]
plugin_dir = "$dir/plugins"
hold = "1s"

[annotations]
enabled = true
namespaces = ["default"]

[bridge]
enabled = false

[[device]]
resource = "demo.example.com/node"
path = "$1"
EOF
}

start_shim() {
    start "$dir/shim.log" "$shim" --config "$dir/shim.toml"
    shim_pid=$started
    wait_for "the shim" "$demo" --socket "$dir/s.sock" ps >/dev/null
}

built_in_device() {
    local words
    say "1. A built-in device: $node, offered by three lines of TOML, no plugin"
    note "A container that asks for nothing does not have it:"
    words=$(show run --wait plain -- ls -l "$node") && fail "a container got $node without asking"
    note "$words"
    grep -q "No such file" <<<"$words" || fail "a plain container did not run"
    note "One whose pod asks for it has:"
    show run --wait --device demo.example.com/node=1 builtin -- ls -l "$node" ||
        fail "the container did not get $node"
}

plugin_device() {
    say "2. A device plugin: two GPUs; each comes as an env, a mount and a device node"
    start_plugin
    show run --device demo.example.com/gpu=1 train || fail "the container was not created"
    show exec train -- sh -c 'env | grep DEMO; cat /opt/demo-driver/VERSION; ls -l /dev/demo-*' ||
        fail "the container does not have its GPU"
}

plugin_killed() {
    local words
    say "3. The plugin is killed: what a new container is told"
    end "$plugin_pid" KILL
    : >"$dir/plugin.log"
    words=$(show run --device demo.example.com/gpu=1 infer) &&
        fail "a container came without its GPU"
    note "$words"
    grep -q UNAVAILABLE <<<"$words" || fail "the refusal is not UNAVAILABLE"
    note "A kubelet shows that message on the pod, keeps it Pending and tries again."
    note "The container that runs already, and all that want no GPU, do not notice:"
    # shellcheck disable=SC2016 # the container's shell expands it
    show exec train -- sh -c 'echo still here with $DEMO_GPUS' ||
        fail "the running container is gone"
    show run --wait other -- echo "no device, no wait" || fail "a container without devices failed"
}

plugin_back() {
    say "4. The plugin is back: the same container runs"
    start_plugin
    show run --device demo.example.com/gpu=1 infer || fail "the container was not created"
    show exec infer -- sh -c 'env | grep DEMO' || fail "the container does not have its GPU"
    show ps
}

say_how_to_go_on() {
    local demo_word self_word # as a shell reads them: a path may have blanks
    printf -v demo_word %q "$demo"
    printf -v self_word %q "$root/config/quickstart.sh"
    say "All is left running in $dir"
    cat <<EOF
  CRI socket of the shim     $dir/s.sock
  containerd's own           $dir/c.sock
  plugins register on        $dir/plugins/kubelet.sock
  settings, log              $dir/shim.toml  $dir/shim.log

Try:
  alias demo='$demo_word --socket $dir/s.sock'
  demo run --device demo.example.com/gpu=1 mine     # both GPUs are taken: see what it says
  demo rm infer                                     # frees one; try again
  demo exec mine -- env
  demo ps

End it:
  $self_word --stop $dir
EOF
    printf '%s=%s\n' plugin_pid "$plugin_pid" shim_pid "$shim_pid" \
        containerd_pid "$containerd_pid" >"$dir/pids"
}

stop_kept() {
    dir=$(realpath -- "$1")
    [ -f "$dir/pids" ] || {
        note "$1 was not left by quickstart.sh --keep" >&2
        exit 2
    }
    # shellcheck source=/dev/null
    . "$dir/pids"
    remove_all
}

main() {
    case "$# ${1-}" in
    "0 ") ;;
    "1 --keep") keep=yes ;;
    "2 --stop")
        stop_kept "$2"
        return
        ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
    esac
    trap finish EXIT
    trap interrupted INT TERM HUP
    [ "$(id -u)" -eq 0 ] || fail "run it as root: it starts containers"
    command -v apt-get >/dev/null || fail "this needs Debian 12 or 13 (no apt-get here)"

    dir=$(mktemp -d /tmp/cds.XXXXXX)
    chmod 0755 "$dir"
    say "Packages, build, a containerd and the shim, all of it in $dir"
    install
    build
    start_containerd
    node=$(pick_node)
    write_shim_config "$node"
    start_shim
    note "CRI client → $dir/s.sock (shim) → $dir/c.sock ($(containerd --version | cut -d' ' -f1,3))"

    built_in_device
    plugin_device
    plugin_killed
    plugin_back
    if [ $keep = yes ]; then
        say_how_to_go_on
    fi
    say "Done"
}

main "$@"
