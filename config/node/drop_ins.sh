# shellcheck shell=bash disable=SC2154 # what node.sh and its files share
# Which drop-ins of a settings file count on the node, for node.sh to source. Of the sourcing script:
# $root and exists().

# drop_ins NAME OURS DIR...: NAME.d/*.conf of these directories but for the paths in OURS, in the order
# in which systemd reads them: by their names, and of one name only that of the first directory.
drop_ins() {
    local name=$1 ours=$2 dir file
    declare -A found=()
    shift 2
    for dir in "$@"; do
        for file in "$root$dir/$name.d"/*.conf; do
            exists "$file" || continue
            file=${file#"$root"}
            [[ " $ours " != *" $file "* ]] || continue
            [ -n "${found[${file##*/}]:-}" ] || found[${file##*/}]=$file
        done
    done
    for file in "${!found[@]}"; do
        printf '%s\n' "$file"
    done | LC_ALL=C sort | while read -r file; do
        printf '%s\n' "${found[$file]}"
    done
}
