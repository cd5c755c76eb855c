#!/usr/bin/env bash
# The part of fleet.sh that the node does: config/install.sh of a release that was unpacked for that, and
# goes afterwards. Its words are install.sh's.
set -euo pipefail

release=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
trap 'rm -rf "${release:?}"' EXIT
trap 'exit 130' INT TERM HUP

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

change() {
    cd "$release"
    sha256sum --check --quiet --strict SHA256SUMS || die "the release did not come whole"
    [ ! -e /usr/lib/cri-device-shim/node.sh ] ||
        die "this node has the package cri-device-shim, which its package manager is to upgrade or remove"
    build/shim/cri-device-shim --version ||
        die "the programs do not run on this node: they need the C library of Debian 12, or a newer one"
    config/install.sh "$@"
}

# Of a node that was switched off in the middle.
find /usr/local -maxdepth 1 -name '.cri-device-shim.*' -cmin +60 -exec rm -rf {} +

# To the pod as long as it is there: with -p tee goes on when nobody reads any more, and so does the change.
change "$@" 2>&1 | tee -p /dev/null
