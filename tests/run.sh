#!/usr/bin/env bash
# Builds and runs the tests; installs what is missing for that. Debian 12, as root.
#
#   tests/run.sh [NAME]...        levels, files, single tests; all levels but seven by default
#   tests/run.sh --list           all names
#   tests/run.sh --help           what else; tests/README.md says what each level is
#
# What fails is shown with the end of its log. At the end there is a line for each level, which says
# how many were skipped, too; the last line is "N passed, N failed": of tests. The status is 0 only
# if something ran and nothing failed, or could not be started.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=config/packages.sh
. "$root/config/packages.sh"
export PYTHONDONTWRITEBYTECODE=1

die() {
    printf '%s\n\n0 passed, 1 failed\n' "$1"
    exit 1
}

# Tests mount directories of their own over these, and run what they write to /tmp.
check_places() {
    case $root/ in
        /etc/* | /run/* | /usr/local/* | /var/lib/* | /var/log/*)
            die "tests hide $root: move it from /etc, /run, /usr/local, /var/lib or /var/log"
            ;;
        *[[:space:]]*) die "$root has a blank in it, which tests cannot do with" ;; # as LD_PRELOAD
    esac
    case ,$(findmnt --noheadings --output OPTIONS --target /tmp), in
        *,noexec,*) die "/tmp is mounted noexec: tests run programs there" ;;
    esac
}

packages=("${BUILD_PACKAGES[@]}" "${RUNTIME_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${IMAGE_PACKAGES[@]}")
case " $* " in
    *" package"[\ /]* | *" tests/package/"*) packages+=("${PACKAGE_TEST_PACKAGES[@]}") ;;
esac
case " $* " in
    *" --list "* | *" --help "* | *" -h "*) packages=(python3) ;; # nothing is run
    *) check_places ;;
esac
packages_install "${packages[@]}" || die "packages are missing and apt could not install them"

# Debian 12's sanitizers do not work with more random bits in addresses than Debian's kernels have, as others may
# below a container (google/sanitizers#1614, #1716).
with=()
bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
if [ "$bits" -gt 28 ] && setarch --addr-no-randomize true; then
    with=(setarch --addr-no-randomize)
fi
# Debian's own Python, the one its python3-* packages are for.
exec "${with[@]}" /usr/bin/python3 "$root/tests/runner" "$@"
