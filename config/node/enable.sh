# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# What makes a node use the shim, for node.sh to source.

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
    if argument root-dir && [ "${argument_value%/}/plugins_registry" != "$kubelet_registry_dir" ]; then
        say "$argument_from: the kubelet has --root-dir=$argument_value; so that it finds DRA drivers, set" \
            "kubelet_registry_dir = \"${argument_value%/}/plugins_registry\" in [dra] of $config" >&2
    fi
}

choose_endpoint() {
    if [ -n "$runtime_endpoint" ]; then
        socket_path "$runtime_endpoint" --runtime-endpoint
        runtime_endpoint=$socket
    elif [ "$with_kubelet" = yes ] && ! same_socket "$kubelet_endpoint" "$listen"; then
        runtime_endpoint=$kubelet_endpoint
    elif [ -e "$root$config" ] || [ "$with_kubelet" = no ]; then
        runtime_endpoint=$configured_endpoint
    else
        die "the kubelet uses the shim's socket already ($kubelet_endpoint_from), so its runtime" \
            "is not known; say --runtime-endpoint PATH"
    fi
    same_socket "$runtime_endpoint" "$listen" && die "$runtime_endpoint is the shim's own socket"
    if [ "$dry_run" = no ] && is_live && [ ! -S "$runtime_endpoint" ]; then
        die "there is no socket $runtime_endpoint: the runtime must run"
    fi
    [ -e "$root$config" ] || return 0
    same_socket "$runtime_endpoint" "$configured_endpoint" ||
        die "$config has runtime_endpoint = \"$configured_endpoint\", but the runtime is" \
            "$runtime_endpoint; change one of them"
}

# plan_binary NAME: that of a build, or, without one, that it is there.
plan_binary() {
    local path=$prefix/bin/$1
    if [ -z "$build" ]; then
        [ -x "$root$path" ] || die "$root$path is missing"
    else
        [ -x "$build/shim/$1" ] ||
            die "$build/shim/$1 is missing; build it first (cmake -G Ninja -S ${source%/*}" \
                "-B $build && ninja -C $build), or say --build"
        wish "$path" "$build/shim/$1" 755
    fi
    [ "$1" = cri-device-shimctl ] || watch_program "$1"
}

plan_binaries() {
    local name
    for name in "${binaries[@]}"; do
        plan_binary "$name"
    done
}

# That of a build is seen as a change.
watch_program() {
    if [ -z "$build" ]; then
        watch "$prefix/bin/$1"
    else
        watched+=("$prefix/bin/$1")
    fi
}

# Those that a build for other machines than its own brings along, beside node.sh, where its programs
# look for them first; one that it brings no more goes.
plan_libraries() {
    local from=$build/lib/cri-device-shim to=$prefix/lib/cri-device-shim path
    for path in "$from"/lib*.so.*; do
        [ -e "$path" ] || continue
        path=$to/${path##*/}
        libraries+=("$path")
        wish "$path" "$from/${path##*/}" 644
    done
    while read -r path; do
        [[ $path == "$to"/lib*.so.* && ! -e $from/${path##*/} ]] || continue
        libraries+=("$path")
        wish_unless_edited "$path" "$store/backup$path"
    done < <(printf '%s\n' "${!installed[@]}" | sort)
}

# plan_document SOURCE PATH
plan_document() {
    [ -e "$1" ] || die "$1 is missing; build it first (ninja -C $build), or say --build"
    wish "$2" "$1" 644
}

plan_documents() {
    local share=$prefix/share page
    plan_document "$source/example.toml" "$example_doc"
    for page in cri-device-shim{,-bridge,-agent}.8; do
        plan_document "$source/$page" "$share/man/man8/$page"
    done
    plan_document "$source/cri-device-shimctl.1" "$share/man/man1/cri-device-shimctl.1"
    plan_document "$build/config/cri-device-shim.toml.5" "$share/man/man5/cri-device-shim.toml.5"
    plan_document "$source/prometheus/alerts.yaml" "$share/cri-device-shim/alerts.yaml"
    plan_document "$source/grafana/dashboard.json" "$share/cri-device-shim/dashboard.json"
    plan_document "$source/agent-rbac.yaml" "$share/cri-device-shim/agent-rbac.yaml"
    plan_document "$source/completion.bash" "$share/bash-completion/completions/cri-device-shimctl"
    plan_document "$source/completion.zsh" "$share/zsh/site-functions/_cri-device-shimctl"
}

# This command, in one file, and what it makes units of: so it is there without the sources.
plan_command() {
    local lib=$prefix/lib/cri-device-shim unit
    awk -v here="$here" '
        /^# shellcheck / { next }
        /^\. "\$here\// {
            file = here "/" substr($2, 8, length($2) - 8)
            while ((getline < file) > 0)
                if ($0 !~ /^# shellcheck /) print
            print ""
            next
        }
        { print }' "$here/node.sh" >"$work/node.sh"
    wish "$lib/node.sh" "$work/node.sh" 755
    for unit in "${units[@]}" "$agent_unit"; do
        plan_document "$templates/$unit" "$lib/$unit"
    done
}

# A kubelet whose drop-in is kept would be left with a socket that goes.
check_kept_drop_in() {
    [[ " ${kept[*]} " == *" $kubelet_drop_in "* ]] || return 0
    grep -qsw -- "^[^#;].*$listen" "$root$kubelet_drop_in" ||
        same_socket "$kubelet_endpoint" "$listen" ||
        die "$root$kubelet_drop_in was edited, and does not have the kubelet use $listen: change" \
            "that first, or remove it"
}

plan_kubelet() {
    kubelet_drop_in_text >"$work/drop-in"
    kubelet_command_changes || under_way "$kubelet_drop_in" || kubelet_restarts=no
    # One of ours of which nothing is noted, since the store was lost, is nothing that was there before.
    if [ -z "${original[$kubelet_drop_in]:-}" ] && grep -qsx "$DROP_IN_BEGINS.*" "$root$kubelet_drop_in"; then
        claim "$kubelet_drop_in"
    fi
    wish_unless_edited "$kubelet_drop_in" "$work/drop-in" 644
    plan_wishes # whether it is a change is asked next
    check_kept_drop_in
    if is_changed "$kubelet_drop_in" && exists "$root$kubelet_drop_in" &&
        [ "$kubelet_restarts" = yes ]; then
        say "$kubelet_exec_from: another ExecStart= than at the last install; it is taken over"
    fi
}

# Its program is there in any case, so that enable alone can have it run. Where it is wanted no more, the
# rest is as before.
plan_agent() {
    local path
    if [ -n "$build" ] || [ "$agent_wanted" = yes ]; then
        plan_binary "$agent_binary"
    fi
    if [ "$agent_wanted" = yes ]; then
        units+=("$agent_unit")
        return 0
    fi
    for path in "$(wants_link "$agent_unit")" "$unit_dir/$agent_unit"; do
        [ -z "${installed[$path]:-}" ] || wish_unless_edited "$path" "$store/backup$path"
    done
}

# An upgrade does not restart the kubelet, so its socket stays; and so does what runs: a daemon that
# is started alone has the bridge's socket beside the new one.
check_socket_stays() {
    socket_path_in "$root$unit_dir" "$root$package_units" | grep -qxF -- "ListenStream=$listen" ||
        die "$config has listen = \"$listen\", which is not the socket that the kubelet uses: run" \
            "cri-device-shimctl node enable, or change it back"
}

# An upgrade of the package leaves the kubelet alone, and asks nothing that was answered before.
plan_install() {
    [ -z "$build" ] || plan_command
    plan_binaries
    [ -z "$build" ] || plan_libraries
    read_config
    [ "$verb" != upgrade ] || check_socket_stays
    claim_links
    plan_agent
    [ "$with_kubelet" = no ] || read_kubelet
    if [ "$verb" != upgrade ]; then
        choose_endpoint
        plan_config
    fi
    [ -z "$build" ] || plan_documents
    ! bridge_is_early || bridge_waits=yes
    plan_units
    plan_logind
    [ "$with_kubelet" = no ] || plan_kubelet
    plan_wishes
}

# ---- doing it ----

# apply_changes yes|no: all but the kubelet's, or only the kubelet's. These are its drop-in, and the link by
# which the bridge is started at boot, which is not there without that: a node that loses its power in
# between shows no devices to a kubelet without the shim.
apply_changes() {
    local i path these=() of_kubelet=("$kubelet_drop_in" "$(wants_link "$bridge_unit")")
    [ "$dry_run" = no ] || return 0
    [ "$verb" != disable ] || of_kubelet=("${of_kubelet[1]}" "${of_kubelet[0]}")
    if [ "$1" = yes ]; then
        for path in "${of_kubelet[@]}"; do
            for i in "${!change_paths[@]}"; do
                [ "${change_paths[i]}" != "$path" ] || these+=("$i")
            done
        done
    else
        for i in "${!change_paths[@]}"; do
            [[ " ${of_kubelet[*]} " == *" ${change_paths[i]} "* ]] || these+=("$i")
        done
    fi
    lay_changes "${these[@]}"
    for i in "${these[@]}"; do
        apply_change "${change_paths[i]}" "${change_goals[i]}"
    done
    laid=()
}

# The files first, the kubelet last.
run_enable() {
    plan_install
    say_kept "it was edited; it stays as it is"
    [ ${#change_paths[@]} -gt 0 ] || say "all files are as they should be"
    [ "$dry_run" = no ] || show_changes
    if [ "$dry_run" = no ] && [ ${#change_paths[@]} -gt 0 ]; then
        record_changes
    fi
    apply_changes no
    tell_logind
    start_services
    apply_changes yes
    if is_changed "$kubelet_drop_in"; then
        if [ "$kubelet_restarts" = yes ]; then
            restart_kubelet
        else
            control daemon-reload
        fi
    fi
    if [ "$with_kubelet" = no ] && [ "$verb" != upgrade ]; then
        say "give the kubelet --container-runtime-endpoint=unix://$listen, and its unit Wants= and After=" \
            "of cri-device-shim.service and $bridge_unit; if its process has a name of its own," \
            "bridge.kubelet_processes in $config is to have it (config/README.md has more)"
    fi
    check_logind
    # Either the changes of this run, or those of an earlier one that are not noted.
    if [ "$recorded" = yes ] || { [ "$dry_run" = no ] && { [ "$noted" = yes ] || [ -e "$store/manifest.new" ]; }; }; then
        commit_changes
    fi
    [ "$dry_run" = yes ] || running_save
}

# taken_off: into `gone`, what somebody has removed by hand since, as in an emergency (config/OPERATIONS.md). The
# kubelet may have its runtime again by that, and would give away what the bridge shows it to containers without it.
taken_off() {
    local unit paths=("$kubelet_drop_in")
    for unit in "${units[@]}"; do
        paths+=("$(wants_link "$unit")")
    done
    for gone in "${paths[@]}"; do
        case ${installed[$gone]:-absent} in
            absent | *' '*) ;; # not there before, or not yet
            *) exists "$root$gone" || return 0 ;;
        esac
    done
    return 1
}

# Of a package that was replaced by another: what runs from it, if this node was enabled from it.
run_upgrade() {
    local gone
    [ -n "${running[$prefix/bin/cri-device-shim]:-}" ] || return 0
    if taken_off; then
        say "$root$gone was removed: nothing is started, until cri-device-shimctl node enable" >&2
        control daemon-reload
        return 0
    fi
    with_kubelet=no
    run_enable
}

say_kept() {
    local path
    for path in "${kept[@]}"; do
        printf '%s: %s\n' "$root$path" "$1" >&2
    done
}

