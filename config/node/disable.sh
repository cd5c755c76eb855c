# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# The way back: the node as it was before, for node.sh to source.

# What has the node use the shim; --files: and the files themselves, settings among them.
plan_disable() {
    local path
    claim_links
    [ ${#original[@]} -gt 0 ] || return 0
    while read -r path; do
        if [ "$with_files" = yes ] || [[ $path == /etc/systemd/* ]]; then
            wish_unless_edited "$path" "$store/backup$path"
        else
            left+=("$path")
        fi
    done < <(printf '%s\n' "${!original[@]}" | sort)
    plan_wishes
}

# A kubelet that would go on using the shim's socket must not lose it.
check_kubelet_without() {
    local path endpoint from
    for path in "${kept[@]}"; do
        [ "$path" != "$kubelet_drop_in" ] ||
            die "$root$path was edited: take the shim out of it or remove it, then run this again"
    done
    IFS=$'\t' read -r endpoint from < <(kubelet_read 2>/dev/null &&
        printf '%s\t%s\n' "$kubelet_endpoint" "$kubelet_endpoint_from") || return 0
    if [ -n "$endpoint" ] && same_socket "$endpoint" "$listen"; then
        die "$from has the kubelet use the shim's socket; change that first"
    fi
}

# pod_name UID: as the kubelet names the directory of its logs, which goes with the pod. 1: gone. Its own
# of pods, like the one in which it looks for drivers, is in its --root-dir.
pod_name() {
    local dir name logs=/var/log/pods pods=${kubelet_registry_dir%/*}/pods
    for dir in "$logs"/*_"$1"; do
        [ -d "$dir" ] || continue
        name=${dir##*/}
        name=${name%_*}
        printf '%s/%s' "${name%%_*}" "${name#*_}"
        return 0
    done
    if [ -d "$pods/$1" ] || { [ ! -d "$pods" ] && [ ! -d $logs ]; }; then
        printf 'with the UID %s' "$1"
        return 0
    fi
    return 1
}

# Without the store nobody knows what was there before the drop-in.
check_drop_in() {
    if exists "$root$kubelet_drop_in" && [ -z "${original[$kubelet_drop_in]:-}" ]; then
        die "$root$kubelet_drop_in is there, but $store, where it would be noted, is not: run" \
            "cri-device-shimctl node enable, which notes it anew, first, or remove it and restart" \
            "the kubelet"
    fi
}

# in_prefix NAME: that program as it is on the node; gone from there, the one beside ours.
in_prefix() {
    local path=$prefix/bin/$1
    [ -x "$path" ] || path=${program%/*}/$1
    printf '%s' "$path"
}

not_known() {
    [ "$force" = yes ] || die "whether pods would lose their devices is not known; --force does not ask"
}

# Pods that the kubelet would go on running without the devices it thinks they have.
find_tokens() {
    local list uid container resource ids name
    list=$("$(in_prefix cri-device-shim)" --list-tokens) || not_known
    while IFS=$'\t' read -r uid container resource ids; do
        [ -n "$uid" ] || continue
        name=$(pod_name "$uid") || continue
        found=yes
        [[ $container == "claim "* ]] || container="container $container"
        printf 'pod %s, %s has %s through the shim\n' "$name" "$container" "$resource${ids:+ }$ids" >&2
    done <<<"$list"
}

# Those that have some by annotation, of which the kubelet knows nothing: only the daemon does. Where
# nothing of the shim runs, and the kubelet has its runtime without it, there is nothing more to lose.
find_chosen() {
    local list pod_namespace pod container resource name
    any_runs || is_changed "$kubelet_drop_in" || return 0
    if ! list=$("$(in_prefix cri-device-shimctl)" --socket "$control_socket" \
        allocations --chosen-by shim -o name 2>"$work/refused"); then
        [ "$annotations" = true ] || return 0
        cat "$work/refused" >&2
        not_known
    fi
    while IFS=/ read -r _ pod_namespace pod container resource; do
        [ -n "$pod" ] || continue
        found=yes
        name=$pod_namespace/$pod
        [ "$pod_namespace" != '?' ] || name="with the UID $pod"
        printf 'pod %s, container %s has %s by annotation\n' "$name" "$container" "$resource" >&2
    done <<<"$list"
}

# Pods whose containers would be made anew without their devices.
check_tokens() {
    local found=no
    [ -z "$root" ] || return 0
    find_tokens
    find_chosen
    [ $found = yes ] || return 0
    if [ "$force" = yes ] || [ "$dry_run" = yes ]; then
        say "their containers, made anew without the shim, have no devices: delete these pods"
    else
        die "their containers, made anew without the shim, would have no devices; delete these" \
            "pods first (the kubelet may need two minutes until nothing is left of one), or say --force"
    fi
}

# What it answers the kubelet is a token, which no runtime knows: a pod that is admitted by it, and made
# without the shim, would run without its devices. Who was admitted before the kubelet has noted by now.
stop_bridge() {
    is_live && is_active "$bridge_unit" || return 0
    note_restarted "$bridge_unit"
    control stop "$bridge_unit"
    [ "$dry_run" = yes ] || [ "$force" = yes ] || check_tokens
}

# Of each resource that the bridge shows the kubelet, which has a socket there, and of each driver. A resource's
# name has '_' for its '/'; before that is a domain, which has none. Behind a driver's is a number.
say_shown() {
    local socket
    [ -z "$root" ] || return 0
    for socket in "$kubelet_plugin_dir/cri-device-shim"/*.sock; do
        [ -S "$socket" ] || continue
        socket=${socket##*/}
        socket=${socket%.sock}
        say "the kubelet loses ${socket/_//}, until its plugin registers with the kubelet"
    done
    for socket in "$kubelet_registry_dir"/dra-cri-device-shim-*.sock; do
        [ -S "$socket" ] || continue
        socket=${socket##*/dra-cri-device-shim-}
        socket=${socket%-*}
        [ "$socket" = plugins.cri-device-shim ] || # our own: its pods are named
            say "the kubelet loses the driver $socket, until that registers with the kubelet: pods with" \
                "its claims neither start nor end"
    done
}

# A kubelet that something else starts may be one of those who are connected.
check_users() {
    [ -z "${original[$kubelet_drop_in]:-}" ] || return 0
    say "a kubelet that something else starts must be using its runtime's socket again"
    is_live && any_runs && shim_is_used || return 0
    [ "$force" = yes ] || [ "$dry_run" = yes ] ||
        die "somebody is connected to $listen: a kubelet that would lose its runtime, or another" \
            "program (ss -xp shows the process); end that first, or say --force"
}

# Whether an earlier one was cut off when the drop-in was gone already: the kubelet goes on as it was started.
kubelet_was_left() { [ -n "${original[$kubelet_drop_in]:-}" ] && is_live && shim_is_used; }

# Whether there is anything to take back.
is_installed() {
    [ "$with_files" = no ] || [ ${#original[@]} -gt 0 ] || return 1
    [ "$with_files" = yes ] || [ ${#change_paths[@]} -gt 0 ] || any_runs
}

# The bridge first, which would have pods admitted that need the shim; then the kubelet, while that still
# serves it.
run_disable() {
    check_drop_in
    plan_disable
    read_config_for_disable
    check_kubelet_without
    if ! is_installed; then
        say_kept "it was edited; it stays there"
        if [ "$with_files" = yes ]; then say "nothing is installed"; else say "nothing is enabled"; fi
        [ ${#original[@]} -gt 0 ] || [ "$dry_run" = yes ] || remove_store
        return 0
    fi
    check_tokens
    say_shown
    check_users
    [ "$dry_run" = no ] || show_changes
    say_kept "it was edited; it stays there"
    stop_bridge
    apply_changes yes
    if is_changed "$kubelet_drop_in" || kubelet_was_left; then
        restart_kubelet
    fi
    stop_services
    apply_changes no
    tell_logind
    control daemon-reload
    [ "$dry_run" = no ] || return 0
    restarted=() # from here on nothing of it is started again
    store_close
    if is_live; then
        rm -rf /run/cri-device-shim "${kubelet_plugin_dir:?}/cri-device-shim"
        # It would dial them in vain, and keep the drivers that it has registered there.
        rm -f "${kubelet_registry_dir:?}"/dra-cri-device-shim-*.sock
    fi
    say "which containers hold which devices stays in the state_dir," \
        "by default /var/lib/cri-device-shim"
}
