# shellcheck shell=bash disable=SC2154 # what node.sh and its files share
# The systemd units with the paths of a node, for node.sh to source. Of the sourcing script:
# $root, $templates, $package_units, $work, $prefix, $units, $bridge_unit, $agent_unit, $unit_dir, what
# config.sh reads, $bridge_waits, $original, claim() and forget().

# mount_units PATH...: what a mount unit would be called that any of them lies on, as
# systemd-escape(1) has it.
mount_units() {
    local path name escaped c i
    for path in "$@"; do
        while [[ $path =~ ^/+(.*[^/])/*$ ]]; do
            name=${BASH_REMATCH[1]} escaped=
            for ((i = 0; i < ${#name}; i++)); do
                c=${name:i:1}
                case $c in
                    /) [ "${name:i+1:1}" = / ] || escaped+=- ;;
                    .) [ $i -gt 0 ] && escaped+=. || escaped+='\x2e' ;;
                    [A-Za-z0-9:_]) escaped+=$c ;;
                    *) printf -v c '\\x%02x' "'$c" && escaped+=$c ;;
                esac
            done
            printf '%s.mount\n' "$escaped"
            [[ $path == /*/* ]] || break
            path=${path%/*}
        done
    done | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# home_dirs PATH...: "no" if any of them lies where ProtectHome= shows nothing, by its name or by a link.
home_dirs() {
    local path
    for path in "$@"; do
        path=$(realpath -m -- "$root$path")
        if [[ ${path#"$root"}/ =~ ^/(home|root|run/user)/ ]]; then
            printf no
            return 0
        fi
    done
    printf yes
}

# unit_text FILE: with the paths of this node; `home` as home_dirs says.
unit_text() {
    local mounts
    case $1 in
        *-bridge.service) mounts=$(mount_units "$kubelet_plugin_dir") ;;
        *) mounts=$(mount_units "$state_dir" "$plugin_dir" "$kubelet_plugin_dir") ;;
    esac
    sed -E -e "s,=/usr/local/bin/,=$prefix/bin/," -e "s,^ListenStream=.*,ListenStream=$listen," \
        -e "s,^ProtectHome=yes,ProtectHome=$home," \
        -e "s#^(Wants|After)=.*\.mount\$#\1=${mounts//\\/\\\\}#" "$templates/$1"
}

# wants_link UNIT: as systemctl enable makes it.
wants_link() {
    local line by=
    [ ! -f "$templates/$1" ] || while read -r line; do
        [[ $line != WantedBy=* ]] || by=${line#WantedBy=}
    done <"$templates/$1"
    printf '%s' "$unit_dir/$by.wants/$1"
}

# Links of which nothing is noted, since the store was lost or somebody has made them: by them all of
# it would start at the next boot, under a kubelet that has its runtime without the shim.
claim_links() {
    local unit link
    for unit in "${units[@]}" "$agent_unit"; do
        link=$(wants_link "$unit")
        if [ -z "${original[$link]:-}" ] && [[ $(readlink "$root$link") == */$unit ]]; then
            claim "$link"
        fi
    done
}

# claim_unit PATH: one with other programs than the package's, of which nothing is noted, is of an install
# from before it: systemd would prefer it to the package's, and those programs are to be removed.
claim_unit() {
    [ -z "${installed[$1]:-}" ] && [ -f "$root$1" ] || return 0
    if grep -q '^ExecStart=/' "$root$1" && ! grep -q "^ExecStart=$prefix/bin/" "$root$1"; then claim "$1"; fi
}

# One that a package has brought is used as it is, unless this node's paths are other ones.
plan_unit() {
    local unit=$1 path=$unit_dir/$1 link
    unit_text "$unit" >"$work/$unit"
    [ -z "$package_units" ] || watch "$package_units/$unit"
    if [ -n "$package_units" ] && cmp -s "$work/$unit" "$root$package_units/$unit"; then
        claim_unit "$path"
        [ -z "${installed[$path]:-}" ] || wish_unless_edited "$path" "$store/backup$path"
        path=$package_units/$unit
    else
        wish_unless_edited "$path" "$work/$unit" 644
    fi
    link=$(wants_link "$unit")
    # The next boot may be as early. One that is there is left: somebody wants it. One that is gone is no sign
    # any more that somebody has taken the shim off (taken_off).
    if [ "$unit" = "$bridge_unit" ] && [ "$bridge_waits" = yes ] && ! exists "$root$link"; then
        forget "$link"
        return 0
    fi
    mkdir -p "$work/new${link%/*}"
    ln -s "$path" "$work/new$link"
    wish_unless_edited "$link" "$work/new$link"
}

plan_units() {
    local unit home
    home=$(home_dirs "$listen" "$configured_endpoint" "$state_dir" "$plugin_dir" "$registry_dir" \
        "$kubelet_plugin_dir" "$kubelet_registry_dir")
    for unit in "${units[@]}"; do
        plan_unit "$unit"
    done
}
