# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# Changes to a node's files that can be taken back, for node.sh to source.
#
# What was there before a file's first change is kept, and so is what was put there in its place, so
# that a file which somebody has changed since is seen. In $store:
#
#   manifest     PATH <tab> ORIGINAL <tab> INSTALLED   for each file
#                PATH/                                 for each directory made
#   backup/PATH  what was there, where ORIGINAL is "backup"; else it is "absent", and there is no such file
#
# INSTALLED holds fingerprints: one, or while a change is under way the old and the new one. All of
# the manifest is written before the first file, so that an install which is cut off at any point
# can be repeated or taken back; and what such a one had put there already is a change to the next, since
# the services may not have been started from it.
#
# A change is a path and its goal: a staged file or link that the path is to become, or one that
# does not exist, for a path that is to go. Of the sourcing script: $root (the node's root
# directory, without '/' at its end), $store and $work (a scratch directory).

declare -A original=() installed=()
declare -A inside=() # directories that are known to be below $root
made_dirs_before=0
made_dirs=() # on the node, in the order of their making
change_paths=() change_goals=()
change_had=() change_prints=() # fingerprints of what is there, and of the goals
recorded=no # whether this run has begun to note its changes
cut_off=no  # whether an earlier one was cut off in the middle of changes that this run would make, too
applied=()  # paths changed in this run
kept=()     # paths left alone because somebody has changed them
left=()     # paths left alone because they are no part of what is taken back

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

exists() { [ -e "$1" ] || [ -L "$1" ]; }

# fingerprint PATH: into `print`, what tells whether somebody has changed a file or link. Where /lib is
# /usr/lib, `systemctl enable` links to a package's unit by the first.
fingerprint() {
    if [ -L "$1" ]; then
        print=$(readlink "$1")
        print=link:${print/#\/lib\//\/usr\/lib\/}
    elif [ -f "$1" ]; then
        print=$(sha256sum <"$1")
        print=file:$(stat -c %a "$1"):${print%% *}
    elif [ -e "$1" ]; then
        print=other
    else
        print=absent
    fi
}

# ---- the manifest ----

manifest_load() {
    local path from to
    [ -f "$store/manifest" ] || return 0
    while IFS=$'\t' read -r path from to; do
        case $path in
            */) made_dirs+=("${path%/}") ;;
            *) original[$path]=$from installed[$path]=$to ;;
        esac
    done <"$store/manifest"
    made_dirs_before=${#made_dirs[@]}
}

manifest_save() {
    local path new=$store/manifest.new
    {
        for path in "${made_dirs[@]}"; do
            printf '%s/\n' "$path"
        done
        for path in "${!original[@]}"; do
            printf '%s\t%s\t%s\n' "$path" "${original[$path]}" "${installed[$path]}"
        done | LC_ALL=C sort
    } >"$new" && sync "$new" && mv -f "$new" "$store/manifest"
}

# edited PATH FINGERPRINT: whether that is neither what was installed there nor what was there before that.
edited() {
    [ -n "${installed[$1]:-}" ] || return 1
    fingerprint "$store/backup$1"
    case " ${installed[$1]} absent $print " in
        *" $2 "*) return 1 ;;
    esac
}

# claim PATH: what is there is ours, and nothing was there before.
claim() {
    fingerprint "$root$1"
    original[$1]=absent installed[$1]=$print
}

# ---- changes ----

# stays_in_root DIR: an absolute link below --root is the image's own, and would lead out of it here.
stays_in_root() {
    [ -n "$root" ] && [ -n "$1" ] && [ -z "${inside[$1]:-}" ] || return 0
    stays_in_root "${1%/*}"
    if [ -L "$root$1" ] || [[ $1 == */.. ]]; then
        [[ $(realpath -m -- "$root$1")/ == "$(realpath -- "$root")"/* ]] ||
            die "$1 leads out of $root, by an absolute link: say where it is by --prefix, or run this within"
    fi
    inside[$1]=yes
}

under_way() { [[ ${installed[$1]:-} == *" "* ]]; }

# plan_change PATH GOAL FINGERPRINT GOALS_FINGERPRINT
plan_change() {
    local have=$3 new=$4
    stays_in_root "${1%/*}"
    [ "$have" != other ] || die "$root$1 is in the way: neither a file nor a link"
    if [ "$have" = "$new" ]; then
        if under_way "$1"; then
            replaced+=("$1")
            cut_off=yes
        fi
        [ -z "${installed[$1]:-}" ] || installed[$1]=$new
        return 0
    fi
    change_paths+=("$1")
    change_goals+=("$2")
    change_had+=("$have")
    change_prints+=("$new")
}

# compare PATH GOAL: into `have` and `new`, the fingerprints of what is there and of what is to be.
compare() {
    fingerprint "$root$1"
    have=$print
    fingerprint "$2"
    new=$print
}

# change PATH GOAL: plans it, if it is one.
change() {
    local have new
    compare "$1" "$2"
    plan_change "$1" "$2" "$have" "$new"
}

# change_unless_edited PATH GOAL: the same, but what somebody has changed is kept.
change_unless_edited() {
    local have new
    compare "$1" "$2"
    if [ "$have" != "$new" ] && edited "$1" "$have"; then
        kept+=("$1")
    else
        plan_change "$1" "$2" "$have" "$new"
    fi
}

is_planned() {
    local path
    for path in "${change_paths[@]}"; do
        [ "$path" != "$1" ] || return 0
    done
    return 1
}

# Whether it is another one than before this run, or than the services were started from.
is_changed() {
    local path
    for path in "${replaced[@]}"; do
        [ "$path" != "$1" ] || return 0
    done
    is_planned "$1"
}

is_text() { [ ! -s "$1" ] || LC_ALL=C grep -qI . "$1"; }

# Whether a diff of the two would be one of them, whole, and long: a manual, a script of ours.
is_long_news() {
    { [ "$1" = /dev/null ] || [ "$2" = /dev/null ]; } && [ "$(cat "$1" "$2" | wc -l)" -gt 100 ]
}

# show_change PATH GOAL: as a diff; a long file that is new, or goes, by its lines.
show_change() {
    local path=$1 goal=$2 old=$root$1 from=/dev/null to=/dev/null
    if exists "$old"; then from=$path; fi
    if exists "$goal"; then to=$path; fi
    if [ -L "$old" ] || [ -L "$goal" ]; then
        printf -- '--- %s\n+++ %s\n' "$from" "$to"
        [ ! -L "$old" ] || printf -- '-link to %s\n' "$(readlink "$old")"
        [ ! -L "$goal" ] || printf '+link to %s\n' "$(readlink "$goal")"
        return 0
    fi
    exists "$old" || old=/dev/null
    exists "$goal" || goal=/dev/null
    if is_text "$old" && is_text "$goal" && is_long_news "$old" "$goal"; then
        printf -- '--- %s\n+++ %s\n%s lines before, %s after\n' "$from" "$to" \
            "$(wc -l <"$old")" "$(wc -l <"$goal")"
    elif is_text "$old" && is_text "$goal"; then
        diff -u --label "$from" --label "$to" "$old" "$goal" || [ $? -eq 1 ]
    else
        printf -- '--- %s\n+++ %s\nbinary, %s bytes before, %s after\n' "$from" "$to" \
            "$(wc -c <"$old")" "$(wc -c <"$goal")"
    fi
    show_modes "$old" "$goal"
}

show_modes() {
    local old=- new=-
    [ "$1" = /dev/null ] || old=$(stat -c %a "$1")
    [ "$2" = /dev/null ] || new=$(stat -c %a "$2")
    [ "$old" = "$new" ] || printf 'mode %s -> %s\n' "$old" "$new"
}

show_changes() {
    local i
    for i in "${!change_paths[@]}"; do
        show_change "${change_paths[i]}" "${change_goals[i]}"
    done
}

# note_dirs PATH: the directory and those above it, as far as they are missing.
note_dirs() {
    local dir
    [ ! -d "$root$1/" ] || return 0
    for dir in "${made_dirs[@]}"; do
        [ "$dir" != "$1" ] || return 0
    done
    note_dirs "${1%/*}"
    made_dirs+=("$1")
}

# What is left without a manifest: nothing is installed any more, or never was.
remove_store() {
    rm -rf "${store:?}"
    rmdir "${store%/*}" 2>/dev/null || true
}

# The directory that it is in is made as the daemon would make it.
make_store_dirs() {
    local dir
    mkdir -p "${store%/*/*}"
    for dir in "${store%/*}" "$store"; do
        [ -d "$dir" ] || mkdir -m 700 "$dir"
    done
}

make_store() {
    [ -f "$store/manifest" ] || rm -rf "${store:?}" # of an install that was cut off
    note_dirs "${store#"$root"}"
    make_store_dirs
}

# beside PATH: into `new`, where a file is written before it takes its place.
beside() { new=${1%/*}/.${1##*/}.new; }

# relabel PATH: where SELinux is on a file has its label by where it is; one that was moved there
# comes with another.
relabel() {
    [ -z "$root" ] && command -v selinuxenabled >/dev/null && selinuxenabled || return 0
    restorecon -F -- "$1" || printf '%s: its SELinux label could not be set\n' "$1" >&2
}

# put GOAL PATH: the path becomes what the goal is, in one step.
put() {
    local goal=$1 to=$root$2 new
    if ! exists "$goal"; then
        rm -f -- "$to"
        return $? # without it bash, in a trap, returns what was before the trap
    fi
    [ -d "${to%/*}" ] || mkdir -p "${to%/*}" || return 1
    beside "$to"
    if cp -aT -- "$goal" "$new" && { [ -L "$new" ] || sync -- "$new"; } &&
        mv -fT -- "$new" "$to"; then
        relabel "$to"
        return 0
    fi
    rm -f -- "$new"
    return 1
}

# Notes all planned changes in the manifest, and keeps what they replace.
record_changes() {
    local i path new to
    [ ! -f "$store/manifest" ] || cp -a "$store/manifest" "$work/manifest"
    recorded=yes
    make_store
    for i in "${!change_paths[@]}"; do
        path=${change_paths[i]}
        new=${change_prints[i]}
        note_dirs "${path%/*}"
        if [ -n "${original[$path]:-}" ]; then
            installed[$path]+=" $new"
            continue
        fi
        original[$path]=absent installed[$path]="${change_had[i]} $new"
        if exists "$root$path"; then
            original[$path]=backup
            to=$store/backup$path
            [ -d "${to%/*}" ] || mkdir -p "${to%/*}"
            cp -aT -- "$root$path" "$to"
            [ -L "$to" ] || sync -- "$to" # as the manifest is, which says that it is there
        fi
    done
    manifest_save
}

# apply_change PATH GOAL
apply_change() {
    if exists "$root$1"; then
        [ -d "$work/undo${1%/*}" ] || mkdir -p "$work/undo${1%/*}"
        cp -aT -- "$root$1" "$work/undo$1"
    fi
    applied+=("$1")
    put "$2" "$1" || die "$root$1 could not be written"
}

# From here on the changes of this run are the truth.
commit_changes() {
    local i
    for i in "${!change_paths[@]}"; do
        installed[${change_paths[i]}]=${change_prints[i]}
    done
    manifest_save
    applied=()
    recorded=no
}

# Takes back what this run has changed; false: not all of it.
roll_back() {
    local i path have status=0
    for ((i = ${#applied[@]} - 1; i >= 0; i--)); do
        path=${applied[i]}
        fingerprint "$root$path"
        have=$print
        fingerprint "$work/undo$path"
        if [ "$have" != "$print" ] && ! put "$work/undo$path" "$path"; then
            printf 'not put back: %s\n' "$root$path" >&2
            status=1
        fi
    done
    # Where that does not do, the manifest of this run goes on: it has what was before, too.
    if [ $status -ne 0 ]; then
        return $status
    elif [ -f "$work/manifest" ]; then
        cp -a "$work/manifest" "$store/manifest.new" && mv -f "$store/manifest.new" "$store/manifest"
    elif [ "$recorded" = yes ]; then
        rm -rf "$store/manifest" "$store/manifest.new" "$store/backup"
    fi
    remove_dirs "${made_dirs[@]:made_dirs_before}"
}

# remove_dirs PATH...: those that are empty, the last first.
remove_dirs() {
    local i dirs=()
    for ((i = $#; i > 0; i--)); do
        dirs+=("$root${!i}")
    done
    [ $# -eq 0 ] || rmdir -- "${dirs[@]}" 2>/dev/null || true # it goes on after one that is not empty
}

# After the last change back: all goes but what is needed for the files that were kept.
store_close() {
    local path new cut_short=()
    applied=()
    for path in "${!original[@]}"; do
        beside "$root$path"
        cut_short+=("$new")
        if [[ " ${kept[*]} ${left[*]} " != *" $path "* ]]; then
            unset "original[$path]" "installed[$path]"
        fi
    done
    [ ${#cut_short[@]} -eq 0 ] || rm -f -- "${cut_short[@]}" # of an install that was cut off
    remove_dirs "${made_dirs[@]}"
    if [ ${#original[@]} -gt 0 ]; then
        manifest_save
        rm -f "$store/running" "$store/running.new"
    else
        rm -f "$store/manifest"
        remove_store
    fi
}
