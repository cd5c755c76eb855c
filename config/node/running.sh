# shellcheck shell=bash disable=SC2154 # what node.sh and its files share
# What the services run from that others put there: a package replaces its programs and units before
# anything here is called. For node.sh to source. In $store/running, for each such file,
#
#   PATH <tab> FINGERPRINT   as it was when the services were last started from it
#
# Of the sourcing script: $root, $store, $work, make_store_dirs(), fingerprints() and fingerprint().

declare -A running=() # as that file has it
watched=()            # files of this run
replaced=()           # those that are others by now

running_load() {
    local path print
    [ -f "$store/running" ] || return 0
    while IFS=$'\t' read -r path print; do
        running[$path]=$print
    done <"$store/running"
}

# watch PATH: services are started anew if it is another one than they were started from.
watch() {
    watched+=("$1")
    fingerprint "$root$1"
    [ "${running[$1]:-}" = "$print" ] || replaced+=("$1")
}

# All services run from what is there now.
running_save() {
    local i path places=()
    for path in "${watched[@]}"; do
        places+=("$root$path")
    done
    fingerprints "${places[@]}"
    for i in "${!watched[@]}"; do
        printf '%s\t%s\n' "${watched[i]}" "${prints[i]}"
    done >"$work/running"
    cmp -s "$work/running" "$store/running" && return 0
    make_store_dirs
    cat "$work/running" >"$store/running.new" && mv -f "$store/running.new" "$store/running"
}
