#!/usr/bin/env bash
# Puts cri-device-shim between this node's kubelet and its container runtime, or takes it away. As
# root.
#
#   config/install.sh [OPTION]...
#     --dry-run                 show every change as a diff and every command; touch nothing
#     --uninstall               put back what was there before
#     --force                   uninstall even if running pods lose their devices by it
#     --build DIR               where the binaries are; default: build/ beside config/
#     --prefix DIR              they go to DIR/bin; default: /usr/local
#     --root DIR                the node's root directory is DIR: for images; nothing is started
#     --runtime-endpoint PATH   the runtime's socket, in place of the one the kubelet uses
#     --no-kubelet              leave the kubelet's settings alone: something else starts it
#
# What it installs: the binaries; three systemd units, enabled; those of the agent, where the settings
# have [cluster] enabled = true; a description of all settings, manual pages, and completions of
# cri-device-shimctl; unless it is there, /etc/cri-device-shim/config.toml; a drop-in for logind.conf, where [shutdown] of the
# settings needs more time than logind waits at a shutdown; and a drop-in for kubelet.service, which adds
# one argument, --container-runtime-endpoint, orders the kubelet behind the shim, and warns at the
# kubelet's start if its unit is another one by then. The runtime's socket for config.toml is read
# from where the kubelet has it: its arguments (of kubeadm or of a unit of any other kind), its
# configuration file, or its default. A kubelet that is started in a way not understood here is not
# touched, and neither is anything else.
#
# Run again, it upgrades: binaries are replaced, the daemon and then the bridge restarted, each only
# if its own files changed, the kubelet only if its arguments did. Units and drop-in that somebody
# has edited are kept, config.toml always. If a step fails, what the earlier ones did is taken back.
# What was there before is kept in /var/lib/cri-device-shim/install. Of two runs at the same time
# the second waits for the first.
#
# A pod whose devices came through the shim keeps them as long as its containers run; made anew
# without the shim they would have none, and nobody would notice. So --uninstall names such pods and
# ends, unless told --force.
set -euo pipefail
export LC_ALL=C
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${here%/*}/build
prefix=/usr/local
root=
runtime_endpoint=
dry_run=no
uninstall=no
force=no
with_kubelet=yes

config=/etc/cri-device-shim/config.toml
example_doc= # where the description of all settings goes
default_listen=/run/cri-device-shim/cri-device-shim.sock
unit_dir=/etc/systemd/system
# Sorts behind kubeadm's 10-kubeadm.conf, which sets ExecStart=, too.
kubelet_drop_in=$unit_dir/kubelet.service.d/90-cri-device-shim.conf
units=(cri-device-shim.socket cri-device-shim.service cri-device-shim-bridge.service)
binaries=(cri-device-shim cri-device-shim-bridge cri-device-shimctl)
agent_unit=cri-device-shim-agent.service # with the next: only where it is wanted
agent_binary=cri-device-shim-agent
agent_wanted=no

# shellcheck source=config/install_files.sh
. "$here/install_files.sh"
# shellcheck source=config/install_config.sh
. "$here/install_config.sh"
# shellcheck source=config/install_kubelet.sh
. "$here/install_kubelet.sh"
# shellcheck source=config/install_units.sh
. "$here/install_units.sh"
# shellcheck source=config/install_logind.sh
. "$here/install_logind.sh"

say() { printf '%s\n' "$*"; }

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
            --dry-run) dry_run=yes ;;
            --uninstall) uninstall=yes ;;
            --force) force=yes ;;
            --no-kubelet) with_kubelet=no ;;
            --build | --prefix | --root | --runtime-endpoint)
                [ -n "${2:-}" ] || die "$1 needs a value"
                set_option "$1" "$2"
                shift
                ;;
            -h | --help)
                sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
                exit 0
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

check_tools() {
    local tool
    for tool in awk diff flock grep sed sha256sum stat; do
        command -v $tool >/dev/null || die "$tool is missing on this machine"
    done
}

# Until this process ends. On a directory that every node has, so that no file is left behind.
lock_node() {
    [ -d "$root/etc" ] || die "there is no $root/etc: not the root directory of a node"
    exec 8<"$root/etc"
    flock -n 8 && return 0
    say "another install.sh is at work on this node; waiting for it" >&2
    flock -w 300 8 || die "another install.sh has been at work for five minutes"
}

# ---- services ----

is_live() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

# systemctl, or a note of what is to be run where that cannot be.
control() {
    if [ $dry_run = no ] && is_live; then
        say "systemctl $*"
        systemctl "$@"
    else
        commands+=("systemctl $*")
    fi
}

# Where that cannot be asked, what this run does not change is running.
is_active() {
    if is_live; then
        systemctl --quiet is-active "$1"
    else
        if is_changed "$unit_dir/$1"; then return 1; fi
    fi
}

# note_restarted UNIT...: they do not run now as they ran before.
note_restarted() {
    if [ $dry_run = no ] && is_live; then
        restarted+=("$@")
    fi
}

# restart UNIT...: in one transaction.
restart() {
    note_restarted "$@"
    control restart "$@" || die "$* did not start; see journalctl ${*/#/-u }"
}

any_changed() {
    local path
    for path in "$@"; do
        ! is_changed "$path" || return 0
    done
    return 1
}

# Whether the socket's unit that systemd still knows has another path than the new one.
socket_moves() {
    local unit=$unit_dir/cri-device-shim.socket
    ! cmp -s <(grep ^ListenStream= "$work/undo$unit") <(grep ^ListenStream= "$root$unit")
}

# The daemon before the bridge: a new daemon serves an old bridge, too, and the bridge, whose
# absence the kubelet does not forgive, finds it ready.
start_services() {
    local daemon=cri-device-shim.service socket=cri-device-shim.socket
    local bridge=cri-device-shim-bridge.service unit paths=()
    for unit in "${units[@]}"; do
        paths+=("$unit_dir/$unit")
    done
    if is_changed "$unit_dir/$socket" && is_live && is_active $socket && socket_moves; then
        note_restarted $socket $daemon
        # While systemd knows the old path, to remove it. What it keeps for the daemon goes, too.
        control stop $daemon $socket
    fi
    if is_changed "$unit_dir/$agent_unit"; then
        # While systemd knows one that goes.
        [ $agent_wanted = yes ] || control stop $agent_unit
        paths+=("$unit_dir/$agent_unit")
    fi
    ! any_changed "${paths[@]}" || control daemon-reload
    if is_changed "$unit_dir/$socket" || ! is_active $socket; then
        restart $socket $daemon # together: no socket is started under a daemon that runs
    elif any_changed "$unit_dir/$daemon" "$prefix/bin/cri-device-shim" "$config" ||
        ! is_active $daemon; then
        restart $daemon
    fi
    # By default the feed's socket is beside the other.
    if any_changed "$unit_dir/$bridge" "$unit_dir/$socket" "$prefix/bin/cri-device-shim-bridge" ||
        ! is_active $bridge; then
        restart $bridge
    fi
    if [ $agent_wanted = yes ] && { any_changed "$unit_dir/$agent_unit" \
        "$prefix/bin/$agent_binary" "$config" || ! is_active $agent_unit; }; then
        restart $agent_unit
    fi
}

kubelet_restarts=yes # if its drop-in changes

restart_kubelet() {
    control daemon-reload
    [ $uninstall = yes ] || check_kubelet_command
    if is_live && ! systemctl --quiet is-active kubelet.service; then
        say "kubelet.service does not run; its settings count from its next start"
        return 0
    fi
    restart kubelet.service
    if [ $dry_run = no ] && is_live; then
        kubelet_stays || die "kubelet.service does not stay up; see journalctl -u kubelet"
    fi
}

# That systemd has understood the kubelet's unit as we have.
check_kubelet_command() {
    [ $dry_run = no ] && is_live || return 0
    systemctl show -p ExecStart --value kubelet.service |
        grep -qF -- "--container-runtime-endpoint=unix://$listen" ||
        die "$kubelet_drop_in has no effect: something else sets ExecStart=;" \
            "see systemctl cat kubelet.service"
}

# The kubelet's process, and how often systemd has started one by itself.
kubelet_life() { systemctl show -p MainPID -p NRestarts --value kubelet.service; }

# Whether somebody is connected to the shim; without ss nobody can tell.
shim_is_used() {
    ! command -v ss >/dev/null || [ -n "$(ss -xH state established src "$listen")" ]
}

# A kubelet that cannot reach its runtime ends, sooner or later; one that goes on for some seconds,
# and with the shim, has reached it.
kubelet_stays() {
    local life good=0 seconds=0
    life=$(kubelet_life)
    while [ $good -lt 5 ]; do
        if [ $seconds -ge 60 ]; then # it may wait for something else, such as its certificate
            say "the kubelet runs, but has not come to the shim within a minute" >&2
            return 0
        fi
        sleep 1
        seconds=$((seconds + 1)) good=$((good + 1))
        systemctl --quiet is-active kubelet.service || return 1
        [ "$(kubelet_life)" = "$life" ] || return 1
        [ $uninstall = yes ] || shim_is_used || good=0
    done
}

# The end of every run. If it failed, everything is put back and runs as before.
finish() {
    local status=$? unit i back=()
    trap - EXIT INT TERM HUP
    set +e
    if [ $status -ne 0 ] && { [ ${#applied[@]} -gt 0 ] || [ $recorded = yes ]; }; then
        for ((i = ${#restarted[@]} - 1; i >= 0; i--)); do
            unit=$unit_dir/${restarted[i]}
            if is_changed "$unit" && ! exists "$work/undo$unit"; then
                systemctl stop "${restarted[i]}"
            fi
        done
        roll_back
        for unit in "${restarted[@]}"; do
            if ! is_changed "$unit_dir/$unit" || exists "$work/undo$unit_dir/$unit"; then
                back+=("$unit")
            fi
        done
        [ ${#restarted[@]} -eq 0 ] || systemctl daemon-reload
        [ ${#back[@]} -eq 0 ] || systemctl restart "${back[@]}"
        [ "$logind_told" = no ] || systemctl kill --signal=HUP "$LOGIND_UNIT"
        printf '%s: all changes were taken back\n' "${0##*/}" >&2
    fi
    rm -rf "$work"
    exit $status
}

# ---- what is to be installed ----

# stage SOURCE PATH MODE
stage() { install -D -m "$3" "$1" "$work/new$2"; }

same_socket() { [ "${1/#\/var\/run\///run/}" = "${2/#\/var\/run\///run/}" ]; }

read_kubelet() {
    kubelet_read
    if [ -z "$kubelet_unit" ]; then
        die "no kubelet.service in ${UNIT_DIRS[*]}. For a kubelet that something else starts," \
            "such as k3s: --no-kubelet, and give it" \
            "--container-runtime-endpoint=unix://$listen"
    fi
    say "$kubelet_unit: a kubelet $(kubelet_kind); its runtime is $kubelet_endpoint" \
        "($kubelet_endpoint_from)"
}

choose_endpoint() {
    if [ -n "$runtime_endpoint" ]; then
        socket_path "$runtime_endpoint" --runtime-endpoint
        runtime_endpoint=$socket
    elif [ $with_kubelet = yes ] && ! same_socket "$kubelet_endpoint" "$listen"; then
        runtime_endpoint=$kubelet_endpoint
    elif [ -e "$root$config" ] || [ $with_kubelet = no ]; then
        runtime_endpoint=$configured_endpoint
    else
        die "the kubelet uses the shim's socket already ($kubelet_endpoint_from), so its runtime" \
            "is not known; say --runtime-endpoint PATH"
    fi
    same_socket "$runtime_endpoint" "$listen" && die "$runtime_endpoint is the shim's own socket"
    if [ $dry_run = no ] && is_live && [ ! -S "$runtime_endpoint" ]; then
        die "there is no socket $runtime_endpoint: the runtime must run"
    fi
    [ -e "$root$config" ] || return 0
    same_socket "$runtime_endpoint" "$configured_endpoint" ||
        die "$config has runtime_endpoint = \"$configured_endpoint\", but the runtime is" \
            "$runtime_endpoint; change one of them"
}

plan_binaries() {
    local name
    for name in "${binaries[@]}"; do
        [ -x "$build/shim/$name" ] ||
            die "$build/shim/$name is missing; build it first (cmake -G Ninja -S ${here%/*} -B" \
                "$build && ninja -C $build), or say --build"
        stage "$build/shim/$name" "$prefix/bin/$name" 755
        change "$prefix/bin/$name" "$work/new$prefix/bin/$name"
    done
}

# plan_document SOURCE PATH
plan_document() {
    [ -e "$1" ] || die "$1 is missing; build it first (ninja -C $build), or say --build"
    stage "$1" "$2" 644
    change "$2" "$work/new$2"
}

plan_documents() {
    local share=$prefix/share page
    plan_document "$here/example.toml" "$example_doc"
    for page in cri-device-shim{,-bridge,-agent}.8; do
        plan_document "$here/$page" "$share/man/man8/$page"
    done
    plan_document "$here/cri-device-shimctl.1" "$share/man/man1/cri-device-shimctl.1"
    plan_document "$build/config/cri-device-shim.toml.5" "$share/man/man5/cri-device-shim.toml.5"
    plan_document "$here/completion.bash" "$share/bash-completion/completions/cri-device-shimctl"
    plan_document "$here/completion.zsh" "$share/zsh/site-functions/_cri-device-shimctl"
}

plan_kubelet() {
    kubelet_drop_in_text >"$work/drop-in"
    stage "$work/drop-in" "$kubelet_drop_in" 644
    kubelet_command_changes || kubelet_restarts=no
    change_unless_edited "$kubelet_drop_in" "$work/new$kubelet_drop_in"
    if is_changed "$kubelet_drop_in" && exists "$root$kubelet_drop_in" &&
        [ $kubelet_restarts = yes ]; then
        say "$kubelet_exec_from: another ExecStart= than at the last install; it is taken over"
    fi
}

# Where it is wanted no more, what was there before it.
plan_agent() {
    local path
    if config_says cluster enabled; then
        agent_wanted=yes
        units+=("$agent_unit")
        binaries+=("$agent_binary")
        return 0
    fi
    for path in "$unit_dir/multi-user.target.wants/$agent_unit" "$unit_dir/$agent_unit" \
        "$prefix/bin/$agent_binary"; do
        [ -z "${installed[$path]:-}" ] || change_unless_edited "$path" "$(original_of "$path")"
    done
}

plan_install() {
    plan_agent
    plan_binaries
    read_config
    [ $with_kubelet = no ] || read_kubelet
    choose_endpoint
    plan_config
    plan_documents
    plan_units
    plan_logind
    [ $with_kubelet = no ] || plan_kubelet
}

# ---- doing it ----

# apply_changes yes|no: all but the kubelet's, or only the kubelet's.
apply_changes() {
    local i of_kubelet
    for i in "${!change_paths[@]}"; do
        of_kubelet=no
        [ "${change_paths[i]}" != "$kubelet_drop_in" ] || of_kubelet=yes
        if [ $of_kubelet = "$1" ] && [ $dry_run = no ]; then
            apply_change "${change_paths[i]}" "${change_goals[i]}"
        fi
    done
}

# The files first, the kubelet last.
run_install() {
    plan_install
    say_kept "it was edited; it stays as it is"
    [ ${#change_paths[@]} -gt 0 ] || say "all files are as they should be"
    [ $dry_run = no ] || show_changes
    if [ $dry_run = no ] && [ ${#change_paths[@]} -gt 0 ]; then
        record_changes
    fi
    apply_changes no
    tell_logind
    start_services
    if is_changed "$kubelet_drop_in"; then
        apply_changes yes
        if [ $kubelet_restarts = yes ]; then
            restart_kubelet
        else
            control daemon-reload
        fi
    fi
    if [ $with_kubelet = no ]; then
        say "give the kubelet --container-runtime-endpoint=unix://$listen, and start it behind" \
            "cri-device-shim.service; if its process has a name of its own, bridge.kubelet_processes" \
            "in $config is to have it (config/README.md has more)"
    fi
    check_logind
    # Either the changes of this run, or those of one that was cut off just before this.
    if [ "$recorded" = yes ] || { [ $dry_run = no ] && [ -e "$store/manifest.new" ]; }; then
        commit_changes
    fi
}

say_kept() {
    local path
    for path in "${kept[@]}"; do
        printf '%s: %s\n' "$root$path" "$1" >&2
    done
}

plan_uninstall() {
    local path
    while read -r path; do
        change_unless_edited "$path" "$(original_of "$path")"
    done < <(printf '%s\n' "${!original[@]}" | sort)
}

# A kubelet that would go on using the shim's socket must not lose it.
check_kubelet_without() {
    local path endpoint from
    for path in "${kept[@]}"; do
        [ "$path" != "$kubelet_drop_in" ] ||
            die "$root$path was edited: take the shim out of it or remove it, then run this again"
    done
    listen=$(config_value "" listen $default_listen)
    listen=${listen#unix://}
    IFS=$'\t' read -r endpoint from < <(kubelet_read 2>/dev/null &&
        printf '%s\t%s\n' "$kubelet_endpoint" "$kubelet_endpoint_from") || return 0
    if [ -n "$endpoint" ] && same_socket "$endpoint" "$listen"; then
        die "$from has the kubelet use the shim's socket; change that first"
    fi
}

# pod_name UID: as the kubelet names the directory of its logs, which goes with the pod. 1: gone.
pod_name() {
    local dir name logs=/var/log/pods pods=/var/lib/kubelet/pods
    for dir in "$logs"/*_"$1"; do
        [ -d "$dir" ] || continue
        name=${dir##*/}
        name=${name%_*}
        printf '%s/%s' "${name%%_*}" "${name#*_}"
        return 0
    done
    if [ -d "$pods/$1" ] || { [ ! -d $pods ] && [ ! -d $logs ]; }; then
        printf 'with the UID %s' "$1"
        return 0
    fi
    return 1
}

# Without the store nobody knows what was there before the drop-in.
check_drop_in() {
    if exists "$root$kubelet_drop_in" && [ -z "${original[$kubelet_drop_in]:-}" ]; then
        die "$root$kubelet_drop_in is there, but $store, where it would be noted, is not: remove" \
            "it and restart the kubelet first"
    fi
}

# Pods that the kubelet would go on running without the devices it thinks they have.
check_tokens() {
    local binary=$prefix/bin/cri-device-shim list uid container resource ids name found=no
    [ -z "$root" ] || return 0
    [ -x "$binary" ] || binary=$build/shim/cri-device-shim
    list=$("$binary" --list-tokens) || [ $force = yes ] ||
        die "whether pods would lose their devices is not known; --force does not ask"
    while IFS=$'\t' read -r uid container resource ids; do
        [ -n "$uid" ] || continue
        name=$(pod_name "$uid") || continue
        found=yes
        printf 'pod %s, container %s has %s %s through the shim\n' \
            "$name" "$container" "$resource" "$ids" >&2
    done <<<"$list"
    [ $found = yes ] || return 0
    if [ $force = yes ] || [ $dry_run = yes ]; then
        say "their containers, made anew without the shim, have no devices: delete these pods"
    else
        die "their containers, made anew without the shim, would have no devices; delete these" \
            "pods first, or say --force"
    fi
}

# Where the bridge has a socket for each resource that it shows the kubelet.
shown_dir() {
    say "$(config_value bridge kubelet_plugin_dir /var/lib/kubelet/device-plugins)/cri-device-shim"
}

say_shown() {
    local socket
    [ -z "$root" ] || return 0
    for socket in "$(shown_dir)"/*.sock; do
        [ -S "$socket" ] || continue
        socket=${socket##*/}
        say "the kubelet loses ${socket%.sock}, until its plugin registers with the kubelet"
    done
}

# Those that are there: they are not, if an uninstall was cut off or kept something.
stop_services() {
    local unit present=()
    for unit in "$agent_unit" "${units[@]}"; do
        ! exists "$root$unit_dir/$unit" || present+=("$unit")
    done
    [ ${#present[@]} -eq 0 ] || control stop "${present[@]}"
}

# The kubelet first, while the shim still serves it.
run_uninstall() {
    check_drop_in
    if [ ${#original[@]} -eq 0 ]; then
        say "nothing is installed"
        [ $dry_run = yes ] || remove_store
        return 0
    fi
    plan_uninstall
    check_kubelet_without
    check_tokens
    say_shown
    if [ -n "${original[$unit_dir/${units[0]}]:-}" ] &&
        [ -z "${original[$kubelet_drop_in]:-}" ]; then
        say "a kubelet that something else starts must be using its runtime's socket again"
    fi
    [ $dry_run = no ] || show_changes
    say_kept "it was edited; it stays there"
    if is_changed "$kubelet_drop_in"; then
        apply_changes yes
        restart_kubelet
    fi
    stop_services
    apply_changes no
    tell_logind
    control daemon-reload
    [ $dry_run = no ] || return 0
    store_close
    if is_live; then
        rm -rf /run/cri-device-shim "$(shown_dir)"
    fi
    say "which containers hold which devices stays in the state_dir," \
        "by default /var/lib/cri-device-shim"
}

say_commands() {
    local line
    [ ${#commands[@]} -gt 0 ] || return 0
    if [ $dry_run = yes ]; then
        say "then:"
    else
        say "systemd does not run here; on the node, if it runs:"
    fi
    for line in "${commands[@]}"; do
        say "    $line"
    done
}

parse_options "$@"
check_tools
lock_node
example_doc=$prefix/share/doc/cri-device-shim/example.toml
store=$root/var/lib/cri-device-shim/install
work=$(mktemp -d)
commands=()  # not run
restarted=() # units, in this order
trap finish EXIT
trap 'exit 130' INT TERM HUP
manifest_load
if [ $uninstall = yes ]; then
    run_uninstall
else
    run_install
fi
say_commands
