#!/usr/bin/env bash
# Builds the image that config/kubernetes installs nodes from, of what was built of this tree. On
# Debian 12, with buildah (later ones want netavark, too), binutils and patchelf.
#
#   config/kubernetes/image.sh [--build DIR] NAME[:TAG]      into buildah's images; then buildah push
#   config/kubernetes/image.sh [--build DIR] --stage DIR     only what is in it, for another builder:
#                                                            docker build -f DIR/Containerfile DIR
#     --build DIR   default: build/
#
# In it are the build with the libraries that it needs but the C library, and what install.sh needs; a
# static busybox, which runs fleet.sh; of each Debian package that something is from its copyright, and
# in usr/share/doc/packages its version.
set -euo pipefail
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin # a user's is without; ldconfig is there
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=${here%/config/kubernetes}
build=$source/build
stage=
name=
programs=(cri-device-shim cri-device-shim-bridge cri-device-shimctl cri-device-shim-agent)
busybox=/bin/busybox
applets=(cat chroot rm sh sleep tar) # of fleet.sh
# Which daemon and agent load when they need them, so that nothing names them.
loaded=(libmicrohttpd.so.12 libsystemd.so.0)

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
            --build | --stage)
                [ -n "${2:-}" ] || die "$1 needs a value"
                [ "$1" = --stage ] || build=$(cd "$2" && pwd)
                [ "$1" = --build ] || stage=$2
                shift
                ;;
            -h | --help)
                sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
                exit 0
                ;;
            -*) die "unknown option $1; see --help" ;;
            *) name=$1 ;;
        esac
        shift
    done
    [ -n "$name$stage" ] || die "what is it to be called? See --help"
}

check() {
    local tool program
    for tool in ldconfig ldd dpkg-query strip patchelf ${name:+buildah}; do
        command -v "$tool" >/dev/null || die "$tool is missing; IMAGE_PACKAGES of config/packages.sh have it"
    done
    for program in "${programs[@]}"; do
        [ -x "$build/shim/$program" ] || die "$build/shim/$program is missing; build it first, or say --build"
    done
    [ -z "$stage" ] || [ ! -e "$stage" ] || die "$stage is there already"
    ! ldd "$busybox" >/dev/null 2>&1 || die "$busybox is not static; install busybox-static"
}

# The libraries that come along, each with the path it is found at. The C library is the node's own: its
# parts belong to each other, and to the node's resolver.
libraries() {
    local name path paths=()
    for name in "${loaded[@]}"; do
        path=$(ldconfig -p | awk -v name="$name" '$1 == name && !found { print $NF; found = 1 }')
        [ -n "$path" ] || die "$name is missing"
        paths+=("$path")
    done
    printf '%s\n' "${paths[@]}"
    ldd "${paths[@]}" "${programs[@]/#/$build/shim/}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
}

c_library() { [[ ${1##*/} =~ ^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv))\.so ]]; }

# keep_copyrights FILE...: of the packages that they are from, and which they are.
keep_copyrights() {
    local found path package
    # A merged /usr has each under one of two names.
    found=$(dpkg-query -S "$@" "${@/#//usr}" "${@/#\/usr/}" 2>/dev/null) || true
    for path in "$@"; do
        [[ $found == *": $path"* || $found == *": /usr$path"* || $found == *": ${path#/usr}"* ]] ||
            die "$path: of no package"
    done
    while read -r package; do
        install -D -m 644 "/usr/share/doc/${package%:*}/copyright" -t "$stage/usr/share/doc/${package%:*}"
        dpkg-query -W "$package" >>"$stage/usr/share/doc/packages"
    done < <(awk -F': ' '{ print $1 }' <<<"$found" | sort -u)
}

stage_build() {
    local program path brought=() to=$stage/release/build
    mkdir -p "$to/shim" "$to/lib/cri-device-shim" "$to/config"
    while read -r path; do
        c_library "$path" || brought+=("$path")
    done < <(libraries | sort -u)
    install -m 644 "${brought[@]}" -t "$to/lib/cri-device-shim"
    keep_copyrights "$busybox" "${brought[@]}"
    for program in "${programs[@]}"; do
        strip -o "$to/shim/$program" "$build/shim/$program"
        # Not RUNPATH, which would not count for what the libraries need themselves.
        patchelf --force-rpath --set-rpath "\$ORIGIN/../lib/cri-device-shim" "$to/shim/$program"
    done
    cp "$build/config/cri-device-shim.toml.5" "$to/config"
}

# What install.sh reads, which is all of config/ but the sources.
stage_config() {
    mkdir -p "$stage/release/config"
    tar -C "$source/config" --exclude='*.c' --exclude='*.cpp' --exclude='*.h' --exclude='*.hpp' \
        -cf - . | tar -C "$stage/release/config" --no-same-permissions --no-same-owner -xf -
}

stage_image() {
    local applet
    mkdir -p "$stage"/{bin,node,run,tmp,usr/share/doc}
    cp "$busybox" "$stage/bin/busybox"
    for applet in "${applets[@]}"; do
        ln -s busybox "$stage/bin/$applet"
    done
    install -m 755 "$here/fleet.sh" "$stage/fleet"
    install -D -m 644 "$source/LICENSE" -t "$stage/usr/share/doc/cri-device-shim"
    stage_config
    stage_build
    (cd "$stage/release" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$stage/sums"
    mv "$stage/sums" "$stage/release/SHA256SUMS"
    cp "$here/Containerfile" "$stage"
}

parse_options "$@"
check
if [ -n "$stage" ]; then
    stage_image
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/image
stage_image
buildah bud --timestamp "${SOURCE_DATE_EPOCH:-0}" -f "$here/Containerfile" -t "$name" "$stage"
