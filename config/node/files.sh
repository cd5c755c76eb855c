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
# A change is a path and its goal: a file or link that the path is to become, or one that does not
# exist, for a path that is to go. It is wished for first: to know many files takes two processes, as
# to know one does. Of the sourcing script: $root (the node's root directory, without '/' at its
# end), $store and $work (a scratch directory).

declare -A original=() installed=()
declare -A inside=() # directories that are known to be below $root
made_dirs_before=0
made_dirs=() # on the node, in the order of their making
wish_paths=() wish_places=() wish_goals=() wish_modes=() wish_keeps=() # places: the paths below $root
change_paths=() change_goals=()
change_modes=()                # in place of the goals' own; "": those
change_had=() change_prints=() # fingerprints of what is there, and of the goals
laid=()                        # beside their places, and not there yet
recorded=no # whether this run has begun to note its changes
noted=no    # whether this run notes what it found: done by one that was cut off, or lost its store, or gone
applied=()  # paths changed in this run
kept=()     # paths left alone because somebody has changed them
left=()     # paths left alone because they are no part of what is taken back

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

exists() { [ -e "$1" ] || [ -L "$1" ]; }

# fingerprints PATH...: into `prints`, what tells whether somebody has changed a file or link. Where
# /lib is /usr/lib, `systemctl enable` links to a package's unit by the first. False: one cannot be read.
fingerprints() {
    local path sum i at=() files=() sums modes
    prints=()
    for path in "$@"; do
        if [ -L "$path" ]; then
            print=$(readlink "$path")
            print=link:${print/#\/lib\//\/usr\/lib\/}
        elif [ -f "$path" ]; then
            at+=(${#prints[@]})
            files+=("$path")
            print=unread
        elif [ -e "$path" ]; then
            print=other
        else
            print=absent
        fi
        prints+=("$print")
    done
    [ ${#files[@]} -gt 0 ] || return 0
    sums=$(sha256sum -- "${files[@]}") && modes=$(stat -c %a -- "${files[@]}") || return 1
    mapfile -t sums <<<"$sums"
    mapfile -t modes <<<"$modes"
    for i in "${!at[@]}"; do
        sum=${sums[i]#\\} # before a name that has to be escaped
        prints[at[i]]=file:${modes[i]}:${sum%% *}
    done
}

# fingerprint PATH: the same of one, into `print`.
fingerprint() {
    fingerprints "$1" || return 1
    print=${prints[0]}
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
    } >"$new" && sync -- "$new" && mv -f "$new" "$store/manifest"
}

# edited PATH FINGERPRINT: whether that is neither what was installed there nor what was there before that.
edited() {
    case " ${installed[$1]:-$2} absent " in
        *" $2 "*) return 1 ;;
    esac
    fingerprint "$store/backup$1" || die "$store/backup$1 cannot be read"
    [ "$print" != "$2" ]
}

# claim PATH: what is there is ours, and nothing was there before.
claim() {
    fingerprint "$root$1"
    original[$1]=absent installed[$1]=$print
    noted=yes
}

# forget PATH: nothing of ours is there any more, and what will be is somebody's.
forget() {
    [ -n "${original[$1]:-}" ] || return 0
    unset "original[$1]" "installed[$1]"
    noted=yes
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

# plan_change PATH GOAL MODE FINGERPRINT GOALS_FINGERPRINT: what is as it should be, and not noted, is of
# an install whose store was lost, or of somebody else. It stays, but for what has systemd start us.
plan_change() {
    local have=$4 new=$5
    stays_in_root "${1%/*}"
    [ "$have" != other ] || die "$root$1 is in the way: neither a file nor a link"
    if [ "$have" = "$new" ]; then
        if under_way "$1"; then
            replaced+=("$1")
            noted=yes
        fi
        if [ -n "${installed[$1]:-}" ]; then
            installed[$1]=$new
        elif [[ $1 == /etc/systemd/* && $have != absent ]]; then
            claim "$1"
        fi
        return 0
    fi
    change_paths+=("$1")
    change_goals+=("$2")
    change_modes+=("$3")
    change_had+=("$have")
    change_prints+=("$new")
}

# wish PATH GOAL [MODE [yes]]: it is planned with the next that are. A goal of a MODE is a file; yes:
# what somebody has changed is kept.
wish() {
    local goal=$2
    if [ -n "${3:-}" ] && [ -L "$goal" ]; then goal=$(realpath -- "$goal"); fi
    wish_paths+=("$1")
    wish_places+=("$root$1")
    wish_goals+=("$goal")
    wish_modes+=("${3:-}")
    wish_keeps+=("${4:-no}")
}

wish_unless_edited() { wish "$1" "$2" "${3:-}" yes; }

# Plans what was wished for, where it is a change.
plan_wishes() {
    local i path goal mode had=() have new
    [ ${#wish_paths[@]} -gt 0 ] || return 0
    fingerprints "${wish_places[@]}" "${wish_goals[@]}" || die "what is there is not known"
    had=("${prints[@]}")
    for i in "${!wish_paths[@]}"; do
        path=${wish_paths[i]} goal=${wish_goals[i]} mode=${wish_modes[i]}
        have=${had[i]} new=${had[i + ${#wish_paths[@]}]}
        [ -z "$mode" ] || new=file:$mode:${new##*:}
        if [ "$have" != "$new" ] && [ "${wish_keeps[i]}" = yes ] && edited "$path" "$have"; then
            kept+=("$path")
        else
            plan_change "$path" "$goal" "$mode" "$have" "$new"
        fi
    done
    wish_paths=() wish_places=() wish_goals=() wish_modes=() wish_keeps=()
}

is_planned() {
    local path
    for path in "${change_paths[@]}"; do
        [ "$path" != "$1" ] || return 0
    done
    return 1
}

# Whether it is planned, and was not there before this run.
is_coming() {
    local i
    for i in "${!change_paths[@]}"; do
        [ "${change_paths[i]} ${change_had[i]}" != "$1 absent" ] || return 0
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

# show_change PATH GOAL MODE: as a diff; a long file that is new, or goes, by its lines.
show_change() {
    local path=$1 goal=$2 mode=$3 old=$root$1 from=/dev/null to=/dev/null
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
    show_modes "$old" "$goal" "$mode"
}

show_modes() {
    local old=- new=${3:--}
    [ "$1" = /dev/null ] || old=$(stat -c %a "$1")
    [ "$2" = /dev/null ] || [ -n "$3" ] || new=$(stat -c %a "$2")
    [ "$old" = "$new" ] || printf 'mode %s -> %s\n' "$old" "$new"
}

show_changes() {
    local i
    for i in "${!change_paths[@]}"; do
        show_change "${change_paths[i]}" "${change_goals[i]}" "${change_modes[i]}"
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

# lay GOAL PATH MODE: what the path is to become, beside it.
lay() {
    local to=$root$2 new
    exists "$1" || return 0
    [ -d "${to%/*}" ] || mkdir -p "${to%/*}" || return 1
    beside "$to"
    laid+=("$new")
    if [ -n "$3" ]; then install -m "$3" -T -- "$1" "$new"; else cp -aT -- "$1" "$new"; fi
}

# What is laid is on the disk before it is anything's place.
sync_laid() {
    local new files=()
    for new in "${laid[@]}"; do
        [ -L "$new" ] || files+=("$new")
    done
    [ ${#files[@]} -eq 0 ] || sync -- "${files[@]}"
}

forget_laid() {
    [ ${#laid[@]} -eq 0 ] || rm -f -- "${laid[@]}"
    laid=()
}

# take_place GOAL PATH: the path becomes what was laid, or goes, in one step.
take_place() {
    local to=$root$2 new
    if ! exists "$1"; then
        rm -f -- "$to"
        return $? # without it bash, in a trap, returns what was before the trap
    fi
    beside "$to"
    mv -fT -- "$new" "$to" || return 1
    relabel "$to"
}

# put GOAL PATH: all of that.
put() {
    local status=0
    { lay "$1" "$2" "" && sync_laid && take_place "$1" "$2"; } || status=1
    forget_laid
    return $status
}

# Notes all planned changes in the manifest, and keeps what they replace.
record_changes() {
    local i path new to files=()
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
            [ -L "$to" ] || files+=("$to")
        fi
    done
    [ ${#files[@]} -eq 0 ] || sync -- "${files[@]}" # as the manifest is, which says that they are there
    manifest_save
}

# lay_changes INDEX...: what those paths are to become is beside them, and is what was planned.
lay_changes() {
    local i dir dirs=() wanted=()
    for i in "$@"; do
        dir=$root${change_paths[i]%/*}
        if exists "${change_goals[i]}" && [ ! -d "$dir" ]; then dirs+=("$dir"); fi
    done
    [ ${#dirs[@]} -eq 0 ] || mkdir -p -- "${dirs[@]}" || die "not all directories could be made"
    for i in "$@"; do
        lay "${change_goals[i]}" "${change_paths[i]}" "${change_modes[i]}" ||
            die "$root${change_paths[i]} could not be written"
        ! exists "${change_goals[i]}" || wanted+=("${change_prints[i]}")
    done
    sync_laid || die "not all files could be written"
    if ! fingerprints "${laid[@]}" || [ "${prints[*]}" != "${wanted[*]}" ]; then
        die "what is to be put there was changed meanwhile"
    fi
}

# apply_change PATH GOAL: what was laid takes its place.
apply_change() {
    if exists "$root$1"; then
        [ -d "$work/undo${1%/*}" ] || mkdir -p "$work/undo${1%/*}"
        cp -aT -- "$root$1" "$work/undo$1"
    fi
    applied+=("$1")
    take_place "$2" "$1" || die "$root$1 could not be written"
}

# From here on the changes of this run are the truth.
commit_changes() {
    local i
    for i in "${!change_paths[@]}"; do
        installed[${change_paths[i]}]=${change_prints[i]}
    done
    make_store_dirs
    manifest_save
    applied=()
    recorded=no
}

# Takes back what this run has changed; false: not all of it.
roll_back() {
    local i path status=0
    forget_laid
    for ((i = ${#applied[@]} - 1; i >= 0; i--)); do
        path=${applied[i]}
        fingerprints "$root$path" "$work/undo$path"
        if [ "${prints[0]}" != "${prints[1]}" ] && ! put "$work/undo$path" "$path"; then
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
