#!/usr/bin/env bash
# Measures the relay beside a byte copier, nghttpx, haproxy, nginx and, where a Go toolchain and
# Debian's golang-google-grpc-dev are installed, a grpc-go relay. Debian 12, as root; installs what
# else is missing. Then what an event costs the device manager (core_bench.c). Prints tables; no part
# of pass or fail. See bench.py; figures that were taken are in RESULTS.md.
#
#   tests/bench/run.sh [--quick] [--json FILE]    about 10 minutes at most; --quick: within 1
#
# Set SHIM_BINARY to measure another build of the shim. How all of it grows with what is on a node is
# scale.py's, with the same build, and scale_curves.py draws what that gave.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build/bench
go_sources=/usr/share/gocode
# shellcheck source=config/packages.sh
. "$root/config/packages.sh"
export PYTHONDONTWRITEBYTECODE=1

policy=/usr/sbin/policy-rc.d # with which no service starts when its package is installed (invoke-rc.d(8))
policy_is_ours=no
off=() # services that do not start with the machine now

settle_relays() {
    local service
    [ $policy_is_ours = no ] || rm -f "$policy"
    trap - EXIT
    for service in "${off[@]}"; do
        systemctl --quiet disable "$service" 2>/dev/null || :
    done
}

# The relays are wanted as programs: no service of theirs is to start, now or with the machine.
install_relays() {
    local service status=0
    [ -n "$(packages_missing "$@")" ] || return 0
    for service in haproxy.service nghttpx.service nginx.service; do
        systemctl --quiet is-enabled "$service" 2>/dev/null || off+=("$service")
    done
    trap settle_relays EXIT # a signal's, too: nobody's service would start on this machine any more
    if [ ! -e "$policy" ]; then
        policy_is_ours=yes
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    packages_install "$@" || status=$?
    settle_relays
    return "$status"
}

build_all() {
    cmake -G Ninja -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DSHIM_BENCH=ON -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
    ninja -C "$build" cri-device-shim cri-device-shim-bridge cri-device-shim-agent bench_copier bench_runtime core_bench store_bench
    if command -v go >/dev/null && [ -d "$go_sources/src/google.golang.org/grpc" ]; then
        GO111MODULE=off GOPATH=$go_sources GOFLAGS='' GOCACHE=$build/go-cache \
            go build -o "$build/grpc_relay" "$root/tests/bench/grpc_relay.go"
    fi
}

packages_install "${BUILD_PACKAGES[@]}" nghttp2-client openssl gnuplot-nox python3 \
    python3-grpcio python3-h2 python3-protobuf python3-pytest python3-yaml # scale.py's, too
install_relays nghttp2-proxy haproxy nginx-light ||
    printf 'not every relay could be installed; the rest is measured\n' >&2
mkdir -p "$build"
trap 'tail -n 60 "$build/build.log"' EXIT
# No part of a condition, in which a step that fails would not end it (set -e).
build_all >"$build/build.log" 2>&1
trap - EXIT
/usr/bin/python3 "$root/tests/bench/bench.py" --build "$build" "$@"
printf '\nThe device manager alone, CPU time\n'
case " $* " in
*' --quick '*) exec "$build/tests/bench/core_bench" 1000 ;;
*) exec "$build/tests/bench/core_bench" ;;
esac
