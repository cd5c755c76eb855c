# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# The services of a node: started, restarted and stopped in the order that pods need, for node.sh to
# source. Of the sourcing script: its settings, the changes of files.sh and the files of running.sh.

restarted=() # units, in this order
idle=()      # of these, that did not run before
commands=()  # not run
kubelet_restarts=yes # if its drop-in changes
bridge_waits=no      # as bridge_is_early has it, before anything is started

is_live() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

# systemctl, or a note of what is to be run where that cannot be.
control() {
    if [ "$dry_run" = no ] && is_live; then
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
        if unit_changed "$1"; then return 1; fi
    fi
}

# note_restarted UNIT...: they do not run now as they ran before.
note_restarted() {
    local unit
    [ "$dry_run" = no ] && is_live || return 0
    for unit in "$@"; do
        [[ " ${restarted[*]} " == *" $unit "* ]] || is_active "$unit" || idle+=("$unit")
        restarted+=("$unit")
    done
}

# come_up UNIT...: all of them run within some seconds, since systemd starts again by itself what did not start.
come_up() {
    local tries unit up
    for ((tries = 0; tries < 10; tries++)); do
        sleep 0.5
        up=yes
        for unit in "$@"; do
            systemctl --quiet is-active "$unit" || up=no
        done
        [ $up = no ] || return 0
    done
    return 1
}

# restart UNIT...: in one transaction. Of what does not start it is said why, as systemd tells it then.
restart() {
    note_restarted "$@"
    ! control restart "$@" || return 0
    systemctl status --no-pager --full "$@" >&2 || :
    come_up "$@" || die "$* did not start; see journalctl ${*/#/-u }"
    say "$* did not start at once, but runs now"
}

any_changed() {
    local path
    for path in "$@"; do
        ! is_changed "$path" || return 0
    done
    return 1
}

# unit_changed UNIT...: the node's own, or the package's.
unit_changed() {
    local unit
    for unit in "$@"; do
        ! any_changed "$unit_dir/$unit" "$package_units/$unit" || return 0
    done
    return 1
}

# socket_path_in DIR...: of its unit, in the first of them that has one.
socket_path_in() {
    local dir
    for dir in "$@"; do
        ! grep ^ListenStream= "$dir/cri-device-shim.socket" 2>/dev/null || return 0
    done
}

# Whether the socket's unit that systemd still knows has another path than the new one.
socket_moves() {
    local before=$root$unit_dir
    ! is_changed "$unit_dir/cri-device-shim.socket" || before=$work/undo$unit_dir
    [ "$(socket_path_in "$before" "$root$package_units")" != \
        "$(socket_path_in "$root$unit_dir" "$root$package_units")" ]
}

# Not one of its name that somebody has made for a kubelet that something else starts.
has_our_drop_in() { [ -n "${original[$kubelet_drop_in]:-}" ] && exists "$root$kubelet_drop_in"; }

# Whether the bridge, which does not run, would be started under a kubelet that makes its containers without
# the shim yet: that would be given devices which nobody puts into them. One that something else starts comes to
# the shim when somebody has told it to; and who is connected to the shim uses it.
bridge_is_early() {
    [ "$with_kubelet" = no ] && is_live && ! has_our_drop_in && ! is_active "$bridge_unit" && ! shim_is_used
}

# The daemon before the bridge: a new daemon serves an old bridge, too, and the bridge, whose
# absence the kubelet does not forgive, finds it ready.
start_services() {
    local daemon=cri-device-shim.service socket=cri-device-shim.socket
    if unit_changed $socket && is_live && is_active $socket && socket_moves; then
        note_restarted $socket $daemon
        # While systemd knows the old path, to remove it. What it keeps for the daemon goes, too.
        control stop $daemon $socket
    fi
    # While systemd knows one that goes.
    if [ "$agent_wanted" = no ] && any_changed "$unit_dir/$agent_unit" "$(wants_link "$agent_unit")"; then
        control stop "$agent_unit"
    fi
    if [ "$verb" = upgrade ] || unit_changed "${units[@]}" "$agent_unit"; then
        control daemon-reload
    fi
    if unit_changed $socket || ! is_active $socket; then
        restart $socket $daemon # together: no socket is started under a daemon that runs
    # An agent that comes, or goes: the daemon looks for one, or misses it, by the settings of its start.
    elif unit_changed $daemon || any_changed "$prefix/bin/cri-device-shim" "${libraries[@]}" "$config" \
        "$(wants_link "$agent_unit")" || ! is_active $daemon; then
        restart $daemon
    fi
    # By default the feed's socket is beside the other.
    if [ $bridge_waits = yes ]; then
        say "$bridge_unit is not started before the kubelet uses the shim: once it does, run this again," \
            "unless the kubelet's unit wants it (config/README.md)" >&2
    elif unit_changed "$bridge_unit" $socket ||
        any_changed "$prefix/bin/cri-device-shim-bridge" "${libraries[@]}" || ! is_active "$bridge_unit"; then
        restart "$bridge_unit"
    fi
    if [ "$agent_wanted" = yes ] && { unit_changed "$agent_unit" || any_changed \
        "$prefix/bin/$agent_binary" "${libraries[@]}" "$config" || ! is_active "$agent_unit"; }; then
        restart "$agent_unit"
    fi
}

restart_kubelet() {
    control daemon-reload
    # A kubelet that systemd has started anew before that has had it started, too.
    [ "$verb" != disable ] || [ "$dry_run" = yes ] || stop_bridge
    check_kubelet_command
    if is_live && ! systemctl --quiet is-active kubelet.service; then
        say "kubelet.service does not run; its settings count from its next start"
        return 0
    fi
    restart kubelet.service
    if [ "$dry_run" = no ] && is_live; then
        kubelet_stays || die "kubelet.service does not stay up; see journalctl -u kubelet"
    fi
}

# That systemd has understood the kubelet's unit as we have.
check_kubelet_command() {
    [ "$dry_run" = no ] && is_live || return 0
    if systemctl show -p ExecStart --value kubelet.service |
        grep -qF -- "--container-runtime-endpoint=unix://$listen"; then
        [ "$verb" != disable ] ||
            die "kubelet.service would go on using the shim's socket; see systemctl cat kubelet.service"
    else
        [ "$verb" = disable ] ||
            die "$kubelet_drop_in has no effect: something else sets ExecStart=;" \
                "see systemctl cat kubelet.service"
    fi
}

# The kubelet's process, and how often systemd has started one by itself.
kubelet_life() { systemctl show -p MainPID -p NRestarts --value kubelet.service; }

# Whether somebody is connected to the shim. A node may be without ss.
shim_is_used() {
    if command -v ss >/dev/null; then
        [ -n "$(ss -xH state established src "$listen")" ]
    else
        awk -v path="$listen" '$NF == path && $6 == "03" { used = 1 } END { exit !used }' /proc/net/unix
    fi
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
        [ "$verb" = disable ] || shim_is_used || good=0
    done
}

# Those that are there: they are not, if an uninstall was cut off or kept something.
stop_services() {
    local unit present=()
    for unit in "$agent_unit" "${units[@]}"; do
        if exists "$root$unit_dir/$unit" || exists "$root$package_units/$unit"; then
            present+=("$unit")
            ! is_live || ! is_active "$unit" || note_restarted "$unit"
        fi
    done
    [ ${#present[@]} -eq 0 ] || control stop "${present[@]}"
}

any_runs() {
    local unit
    is_live || return 1
    for unit in "$agent_unit" "${units[@]}"; do
        ! systemctl --quiet is-active "$unit" || return 0
    done
    return 1
}
