#!/usr/bin/env bash
# Has this node use cri-device-shim, or not: `cri-device-shimctl node` runs it, config/install.sh, and
# what a package does at an upgrade. As root.
#
#   node.sh enable [OPTION]...    the kubelet uses its runtime through the shim; once more: what has changed
#   node.sh disable [OPTION]...   as it was before
#   node.sh upgrade               what was enabled from these files runs from those that are there now
#
#     --dry-run                 show every change as a diff and every command; touch nothing
#     --root DIR                the node's root directory is DIR: for images; nothing is started
#     --runtime-endpoint PATH   the runtime's socket, in place of the one the kubelet uses
#     --no-kubelet              leave the kubelet's settings alone: something else starts it
#     --force                   disable even if running pods lose their devices by it
#     --build DIR               enable: install what was built there, too, from the sources around this
#     --files                   disable: the files of an install with --build go, too, and the settings
#     --prefix DIR              the binaries are in DIR/bin; default: of where this lies, or /usr/local
#
# To enable is: the three systemd units, enabled; that of the agent, where the settings have
# [cluster] enabled = true; unless it is there, /etc/cri-device-shim/config.toml; a drop-in for
# logind.conf, where [shutdown] of the settings needs more time than logind waits at a shutdown; and a
# drop-in for kubelet.service, which adds one argument, --container-runtime-endpoint, orders the kubelet
# behind the shim, and warns at the kubelet's start if its unit is another one by then. The runtime's
# socket for config.toml is read from where the kubelet has it: its arguments (of kubeadm or of a unit
# of any other kind), its configuration file, or its default. A kubelet that is started in a way not
# understood here is not touched, and neither is anything else.
#
# Where something else starts the kubelet the bridge is not started, nor enabled, before somebody uses the shim.
#
# A service is restarted if its own files changed, the daemon before the bridge, the kubelet only if its
# arguments did. Units and drop-in that somebody has edited are kept, config.toml always. If a step
# fails, what the earlier ones did is taken back. What was there before is kept in
# /var/lib/cri-device-shim/install. Of two runs at the same time the second waits for the first.
#
# A pod whose devices came through the shim keeps them as long as its containers run; made anew
# without the shim they would have none, and nobody would notice. So disable names such pods and
# ends, unless told --force. The kubelet's files tell of them, and of those with devices by annotation the
# daemon. So it does where what the settings say is not known: the program itself reads them, for all that
# is done here.
set -euo pipefail
unset CDPATH # with which cd prints
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # su leaves a user's; restorecon may be there, and ss
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=${here%/*} # with --build
build=            # none: the binaries are there
prefix=/usr/local
[[ $here != */lib/cri-device-shim ]] || prefix=${here%/lib/cri-device-shim}
root=
runtime_endpoint=
verb=
dry_run=no
force=no
with_kubelet=yes
with_files=no

config=/etc/cri-device-shim/config.toml
example_doc= # where the description of all settings goes
default_listen=/run/cri-device-shim/cri-device-shim.sock
default_control_socket=/run/cri-device-shim/control.sock
default_kubelet_plugin_dir=/var/lib/kubelet/device-plugins
default_kubelet_registry_dir=/var/lib/kubelet/plugins_registry
unit_dir=/etc/systemd/system
# Sorts behind kubeadm's 10-kubeadm.conf, which sets ExecStart=, too.
kubelet_drop_in=$unit_dir/kubelet.service.d/90-cri-device-shim.conf
units=(cri-device-shim.socket cri-device-shim.service cri-device-shim-bridge.service)
binaries=(cri-device-shim cri-device-shim-bridge cri-device-shimctl)
libraries=() # that the programs bring along, and those that go
bridge_unit=cri-device-shim-bridge.service
agent_unit=cri-device-shim-agent.service # only where it is wanted
agent_binary=cri-device-shim-agent
agent_wanted=no
templates=     # where units are that are made into the node's
package_units= # the same on the node, where systemd finds them by itself; else empty
program=       # the daemon's

# shellcheck source=config/node/files.sh
. "$here/files.sh"
# shellcheck source=config/node/running.sh
. "$here/running.sh"
# shellcheck source=config/node/drop_ins.sh
. "$here/drop_ins.sh"
# shellcheck source=config/node/config.sh
. "$here/config.sh"
# shellcheck source=config/node/kubelet.sh
. "$here/kubelet.sh"
# shellcheck source=config/node/units.sh
. "$here/units.sh"
# shellcheck source=config/node/logind.sh
. "$here/logind.sh"
# shellcheck source=config/node/services.sh
. "$here/services.sh"
# shellcheck source=config/node/enable.sh
. "$here/enable.sh"
# shellcheck source=config/node/disable.sh
. "$here/disable.sh"

say() { printf '%s\n' "$*"; }

parse_options() {
    verb=${1:-}
    case $verb in
        enable | disable | upgrade) shift ;;
        *) die "the first word is enable, disable or upgrade" ;;
    esac
    while [ $# -gt 0 ]; do
        case $1 in
            --dry-run) dry_run=yes ;;
            --files) with_files=yes ;;
            --force) force=yes ;;
            --no-kubelet) with_kubelet=no ;;
            --build | --prefix | --root | --runtime-endpoint)
                [ -n "${2:-}" ] || die "$1 needs a value"
                set_option "$1" "$2"
                shift
                ;;
            *) die "unknown option $1; see --help" ;;
        esac
        shift
    done
}

set_option() {
    case $1 in
        --build) build=$2 ;;
        --prefix) prefix=${2%/} ;;
        --root) root=$(cd "$2" && pwd) || exit 1 ;;
        --runtime-endpoint) runtime_endpoint=$2 ;;
    esac
    [ "$root" != / ] || root=
    [[ $prefix =~ ^/[A-Za-z0-9._/+-]*$ ]] || die "--prefix $prefix: expected a plain absolute path"
}

# Where this and the units are: in the sources, or where an install or a package has put them.
find_files() {
    for templates in "$source" "$here" "${here%/*}/systemd/system"; do
        [ ! -e "$templates/cri-device-shim.socket" ] || break
    done
    [[ $templates != */systemd/system ]] || package_units=$prefix/lib/systemd/system
    program=${here%/lib/cri-device-shim}/bin/cri-device-shim
    [ -z "$build" ] || program=$build/shim/cri-device-shim
}

check_tools() {
    local tool
    for tool in awk diff find flock grep sed sha256sum stat; do
        command -v $tool >/dev/null || die "$tool is missing on this machine"
    done
}

# Until this process ends. On a directory that every node has, so that no file is left behind.
lock_node() {
    [ -d "$root/etc" ] || die "there is no $root/etc: not the root directory of a node"
    exec 8<"$root/etc"
    flock -n 8 && return 0
    say "another change of this node is under way; waiting for it" >&2
    flock -w 300 8 || die "another change of this node has been under way for five minutes"
}

# What is left in /usr/local from before the package, and comes first in PATH, knows nothing of the package's
# units: it would stop none of them, and put its own in their place.
check_package() {
    [ -z "$package_units" ] && [ "$prefix" != /usr ] && [ -n "${running[/usr/bin/cri-device-shim]:-}" ] || return 0
    ! exists "$root/usr/bin/cri-device-shimctl" ||
        die "this node is enabled from the package: /usr/bin/cri-device-shimctl node $verb; remove" \
            "what is in $prefix/bin from before"
}

# Whether nothing has started it before this run: its unit comes, or it did not run, and the link comes that
# has it started. Somebody may have taken that away, and stopped all, as in an emergency (config/OPERATIONS.md).
is_new() {
    [ "$verb" != disable ] || return 1
    is_coming "$unit_dir/$1" || { [[ " ${idle[*]} " == *" $1 "* ]] && is_coming "$(wants_link "$1")"; }
}

# Whether this run has begun to change the node; disable begins with what runs.
has_begun() {
    [ $((${#laid[@]} + ${#applied[@]})) -gt 0 ] || [ "$recorded" = yes ] ||
        { [ "$verb" = disable ] && [ ${#restarted[@]} -gt 0 ]; }
}

# Of what a run that failed could not take back.
say_what_helps() {
    if [ "$noted" = yes ] && [ "$verb" != disable ]; then
        echo "error: what an earlier run has put there stays: mend that and run this again, or" \
            "cri-device-shimctl node disable" >&2
    fi
    if [ "$verb" = upgrade ] && [ ${#restarted[@]} -gt 0 ]; then
        echo "error: the programs from before are gone: if the new ones do not start, install the package from before" \
            "(apt install --allow-downgrades ./OLDER.deb)" >&2
    fi
}

# The end of every run. If it failed, everything is put back and runs as before.
finish() {
    local status=$? unit i back=() result="all changes were taken back"
    trap '' INT TERM HUP PIPE # it comes to its end, whoever is impatient, or has gone
    trap - EXIT
    set +e
    if [ $status -ne 0 ] && has_begun; then
        for ((i = ${#restarted[@]} - 1; i >= 0; i--)); do
            unit=${restarted[i]}
            ! is_new "$unit" || systemctl stop "$unit"
        done
        roll_back || result="of the changes those named above are still there, the others were taken back"
        for unit in "${restarted[@]}"; do
            is_new "$unit" || back+=("$unit")
        done
        [ ${#restarted[@]} -eq 0 ] || systemctl daemon-reload
        [ ${#back[@]} -eq 0 ] || systemctl restart "${back[@]}"
        [ "$logind_told" = no ] || systemctl kill --signal=HUP "$LOGIND_UNIT"
        printf 'error: %s\n' "$result" >&2
    fi
    [ $status -eq 0 ] || say_what_helps
    rm -rf "$work"
    exit $status
}

say_commands() {
    local line
    [ ${#commands[@]} -gt 0 ] || return 0
    if [ "$dry_run" = yes ]; then
        say "then:"
    else
        say "systemd does not run here; on the node, if it runs:"
    fi
    for line in "${commands[@]}"; do
        say "    $line"
    done
}

parse_options "$@"
[ -n "$root" ] || [ "$(id -u)" -eq 0 ] || die "run it as root"
check_tools
lock_node
find_files
example_doc=$prefix/share/doc/cri-device-shim/example.toml
store=$root/var/lib/cri-device-shim/install
work=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT TERM HUP PIPE
manifest_load
running_load
check_package
"run_$verb"
say_commands
