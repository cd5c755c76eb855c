# shellcheck shell=bash disable=SC2154
# The systemd units with the paths of a node, for install.sh to source. Of the sourcing script:
# $here, $work, $prefix, $units, $unit_dir and what install_config.sh reads.

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
                    *) escaped+=$(printf '\\x%02x' "'$c") ;;
                esac
            done
            printf '%s.mount\n' "$escaped"
            [[ $path == /*/* ]] || break
            path=${path%/*}
        done
    done | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# unit_text FILE: with the paths of this node.
unit_text() {
    local mounts
    case $1 in
        *-bridge.service) mounts=$(mount_units "$kubelet_plugin_dir") ;;
        *) mounts=$(mount_units "$state_dir" "$plugin_dir" "$kubelet_plugin_dir") ;;
    esac
    sed -E -e "s,=/usr/local/bin/,=$prefix/bin/," -e "s,^ListenStream=.*,ListenStream=$listen," \
        -e "s#^(Wants|After)=.*\.mount\$#\1=${mounts//\\/\\\\}#" "$here/$1"
}

plan_units() {
    local unit wants link
    for unit in "${units[@]}"; do
        unit_text "$unit" >"$work/$unit"
        stage "$work/$unit" "$unit_dir/$unit" 644
        change_unless_edited "$unit_dir/$unit" "$work/new$unit_dir/$unit"
        wants=$(sed -n 's/^WantedBy=//p' "$work/$unit")
        link=$unit_dir/$wants.wants/$unit # as systemctl enable makes it
        mkdir -p "$work/new$unit_dir/$wants.wants"
        ln -s "$unit_dir/$unit" "$work/new$link"
        change_unless_edited "$link" "$work/new$link"
    done
}
