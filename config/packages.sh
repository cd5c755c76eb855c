# shellcheck shell=bash disable=SC2034 # they are for who sources it
# Packages of Debian 12 and 13, for quickstart.sh and tests/run.sh to source. apt is asked only when one is
# missing. None has a number by which one release names it and another does not: libraries come with what is
# for building with them.

BUILD_PACKAGES=(
    gcc g++ cmake ninja-build ccache pkg-config
    protobuf-compiler protobuf-c-compiler libprotobuf-c-dev
    libuv1-dev libnghttp2-dev libsqlite3-dev libtomlplusplus-dev libjansson-dev zlib1g-dev
    libmicrohttpd-dev libsmartcols-dev
    libcurl4-openssl-dev libssl-dev libyaml-dev libsystemd-dev
    uthash-dev
)
RUNTIME_PACKAGES=(containerd runc busybox-static procps python3-grpcio python3-protobuf)
TEST_PACKAGES=(
    libcmocka-dev python3-h2 python3-pytest nghttp2-client clang clang-tidy libclang-rt-dev systemd
    openssl python3-jsonschema python3-websocket python3-yaml shellcheck zsh iproute2
    dbus python3-dbusmock man-db groff-base
    chromium fonts-dejavu-core prometheus
    curl dpkg-dev file git
    cppcheck codespell python3-pyflakes valgrind
)
# Of config/kubernetes/image.sh. Debian 13's buildah makes no image without netavark, which one of its packages
# only recommends.
IMAGE_PACKAGES=(binutils buildah busybox-static netavark patchelf)
PACKAGE_TEST_PACKAGES=(lintian debootstrap) # of the tests' level "package": they bring a hundred others

# packages_missing NAME...: prints those that are not installed. A node's runtime may be of a package from
# elsewhere, which would have to go for Debian's: the program is enough.
packages_missing() {
    local name
    for name in "$@"; do
        case $name in
            containerd | runc) ! command -v "$name" >/dev/null || continue ;;
        esac
        if [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then
            printf '%s\n' "$name"
        fi
    done
}

# apt_get WORD...: apt-get; what it does not wait for by itself, the locks of its lists and of what it fetches, is
# tried again for five minutes.
apt_get() {
    local said status end=$((SECONDS + 300))
    said=$(mktemp) || return # no variable: what a package's script leaves running may hold stderr for ever
    while :; do
        status=0
        LC_ALL=C apt-get -q -o DPkg::Lock::Timeout=300 "$@" 2>"$said" || status=$?
        cat "$said" >&2
        if [ $status -eq 0 ] || [ $SECONDS -ge $end ] || ! grep -q 'Could not get lock' "$said"; then
            break
        fi
        sleep 5
    done
    rm "$said"
    return $status
}

# packages_install NAME...: installs what is missing of them, without questions; of a settings file that is there
# already dpkg would ask. Waits for whoever installs something else, or fetches, as a machine that has just booted does.
packages_install() {
    local missing
    mapfile -t missing < <(packages_missing "$@")
    if [ ${#missing[@]} -eq 0 ]; then
        return 0
    fi
    printf 'installing %s\n' "${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt_get update && apt_get install -y --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}"
}
