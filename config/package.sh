#!/usr/bin/env bash
# Builds the Debian package of this tree, and prints its path.
#
#   config/package.sh [OPTION]...
#     --build DIR    where it is built, with Debian's flags; default: build/package/
#     --built DIR    what is built there already, by whatever flags, is packed
#     --to DIR       where the package goes, beside those that are there; default: where it is built
#
# It is the same for the same commit, wherever and whenever it is built by the same compiler, so that
# digests can be compared: all in it has the time of the commit, or of $SOURCE_DATE_EPOCH. The
# maintainer is who $DEBFULLNAME and $DEBEMAIL name, or the author of the commit. In a tree that is
# neither a clone nor what `git archive` makes of one both are to be said.
set -euo pipefail
export LC_ALL=C
umask 022

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$source/build/package
is_built=no
to=

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --build | --built | --to)
            if [ -z "${2:-}" ]; then
                printf 'error: %s needs a directory\n' "$1" >&2
                exit 2
            fi
            mkdir -p "$2"
            dir=$(cd "$2" && pwd)
            case $1 in
                --build) build=$dir ;;
                --built) build=$dir is_built=yes ;;
                --to) to=$dir ;;
            esac
            shift 2
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
done

# Without dpkg-shlibdeps cpack makes a package that depends on no library, and says so only in passing.
check() {
    local tool
    for tool in dpkg-buildflags dpkg-shlibdeps file; do
        if ! command -v "$tool" >/dev/null; then
            printf 'error: %s is missing; install dpkg-dev and file\n' "$tool" >&2
            exit 1
        fi
    done
}

# of_commit FORMAT LINE: of the last one, also for a user to whom the tree does not belong; or the line of
# commit.txt, where `git archive` has written it. A tree without one may lie in another's.
of_commit() {
    if [ -e "$source/.git" ]; then
        git -c safe.directory="$source" -C "$source" log -1 --format="$1"
    else
        sed -n "$2{/Format:/!p}" "$source/shim/commit.txt"
    fi
}

# Debian's own flags, hardening among them; and paths in what is built begin where they are the same
# everywhere. A ccache would make them relative before the compiler sees them.
build() {
    local same="'-ffile-prefix-map=$source=.' '-ffile-prefix-map=$build=build'"
    export DEB_BUILD_MAINT_OPTIONS="hardening=+all reproducible=-fixfilepath,-fixdebugpath" CCACHE_BASEDIR=
    unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS
    cmake -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_C_FLAGS="$(dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS) $same" \
        -DCMAKE_CXX_FLAGS="$(dpkg-buildflags --get CXXFLAGS) $(dpkg-buildflags --get CPPFLAGS) $same" \
        -DCMAKE_EXE_LINKER_FLAGS="$(dpkg-buildflags --get LDFLAGS)"
    ninja -C "$build"
}

# One that is to come sorts before it, and by its commit's time; each before one of Debian's own
# (deb-version(7)).
version() {
    local version
    version=$(sed -n 's/^set(CPACK_PACKAGE_VERSION "\(.*\)")$/\1/p' "$build/CPackConfig.cmake")
    printf '%s' "${version/-dev/~dev$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)}-1~1"
}

maintainer() {
    if [ -n "${DEBEMAIL:-}" ]; then
        printf '%s <%s>' "${DEBFULLNAME:-$DEBEMAIL}" "$DEBEMAIL"
    else
        of_commit '%an <%ae>' 3
    fi
}

# What no program is linked with: libmicrohttpd, which is loaded where metrics are asked for, and
# whose package each Debian names in its own way; libsystemd, which is where a shutdown is to be
# delayed; ss, which tells whether somebody is connected, before the node is disabled; and
# /bin/kill, by which units are reloaded.
needs() {
    local http
    http=$(dpkg-query -W -f '${Depends}' libmicrohttpd-dev | grep -o 'libmicrohttpd[0-9][a-z0-9]*')
    printf '%s, libsystemd0, iproute2, procps' "$http"
}

# The time of all in it is that of the commit.
pack() {
    cpack --config "$build/CPackConfig.cmake" -B "$packed" -D CPACK_PACKAGE_VERSION="$(version)" \
        -D CPACK_DEBIAN_PACKAGE_MAINTAINER="$maintainer" -D CPACK_DEBIAN_PACKAGE_DEPENDS="$(needs)"
}

check
: "${SOURCE_DATE_EPOCH:=$(of_commit %ct 2 2>/dev/null)}"
maintainer=$(maintainer 2>/dev/null) || :
if [ -z "$SOURCE_DATE_EPOCH" ] || [ -z "$maintainer" ]; then
    if [ -e "$source/.git" ] && ! command -v git >/dev/null; then
        why='git is missing: install it, or'
    elif [ -e "$source/.git" ]; then
        why="git names no commit of $source:"
    else
        why="$source is no clone:"
    fi
    printf 'error: %s say SOURCE_DATE_EPOCH and DEBEMAIL\n' "$why" >&2
    exit 1
fi
export SOURCE_DATE_EPOCH
: "${to:=$build}"
{
    [ $is_built = yes ] || build
    packed=$(mktemp -d "$to/.cri-device-shim.XXXXXX")
    trap 'rm -rf "${packed:?}"' EXIT
    pack
} >&2
package=$(cd "$packed" && echo cri-device-shim_*.deb)
mv -f "$packed/$package" "$to/" # beside those of other releases
printf '%s\n' "$to/$package"
