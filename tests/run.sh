#!/usr/bin/env bash
# Builds and runs the tests; installs what is missing for that. Debian 12, as root.
#
#   tests/run.sh [LEVEL]...   levels: unit, sim, integration, e2e, fuzz; all of them by default
#   tests/run.sh sim --seeds N
#
# Unit tests and the simulation run on the release build and on the one with AddressSanitizer and
# UBSan, integration tests on the latter, end-to-end tests on the former; fuzz targets on one of
# their own, a minute at most for each. A seed that fails is printed with how to replay it. The last
# line is "N passed, N failed"; the status is 0 only if something ran and nothing failed.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
release=$root/build
sanitized=$root/build/asan
python=/usr/bin/python3 # Debian's own, the one its python3-* packages are for
# shellcheck source=config/packages.sh
. "$root/config/packages.sh"
export PYTHONDONTWRITEBYTECODE=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1

passed=0
failed=0
seeds=90000 # of the simulation, three minutes; a fifth as many on the sanitized build

say() { printf '\n== %s\n' "$*"; }

add() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    printf '   %d passed, %d failed\n' "$1" "$2"
}

# build DIRECTORY CMAKE_OPTION...
build() {
    local dir=$1 log
    shift
    say "build $(realpath --relative-to="$root" "$dir")"
    mkdir -p "$dir"
    log=$dir/build.log
    if cmake -G Ninja -S "$root" -B "$dir" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSHIM_TESTS=ON \
        -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
        -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" \
        >"$log" 2>&1 && ninja -C "$dir" >>"$log" 2>&1; then
        return 0
    fi
    grep -vE '^(\[[0-9]+/|-- )' "$log" | tail -n 60
    add 0 1
    return 1
}

build_release() { build "$release" -DSHIM_SANITIZE=OFF; }
build_sanitized() { build "$sanitized" -DSHIM_SANITIZE=ON; }

# The commands of all unit tests of a build, one per line.
unit_commands() {
    ctest --test-dir "$1" --show-only=json-v1 |
        "$python" -c 'import json, sys
for test in json.load(sys.stdin)["tests"]:
    print(test["command"][0])'
}

# One cmocka program: adds what it reports, and one failure if it ends otherwise than it reports.
unit_program() {
    local program=$1 log=$1.log ok not_ok status=0
    (cd "$(dirname "$program")" && CMOCKA_MESSAGE_OUTPUT=TAP timeout 300 "$program") \
        >"$log" 2>&1 || status=$?
    ok=$(grep -c '^ok ' "$log")
    not_ok=$(grep -c '^not ok ' "$log")
    if [ "$status" -ne 0 ] && [ "$not_ok" -eq 0 ]; then
        not_ok=1 # a crash, a leak, a fixture that failed
    fi
    if [ "$not_ok" -ne 0 ] || [ "$ok" -eq 0 ]; then
        tail -n 100 "$log"
        printf '%s ended with status %d\n' "$program" "$status"
    fi
    unit_passed=$((unit_passed + ok))
    unit_failed=$((unit_failed + not_ok))
}

run_unit() {
    local dir=$1 program unit_passed=0 unit_failed=0
    say "unit tests of $(realpath --relative-to="$root" "$dir")"
    while read -r program; do
        unit_program "$program"
    done < <(unit_commands "$dir")
    add "$unit_passed" "$unit_failed"
}

# run_pytest LEVEL BUILD: its own last line is where the counts come from.
run_pytest() {
    local level=$1 log=$2/$1.log status=0 counts ok not_ok
    say "$level tests on $(realpath --relative-to="$root" "$2")"
    SHIM_BUILD_DIR=$2 SHIM_BINARY=$2/shim/cri-device-shim timeout --signal=INT --kill-after=60 2400 \
        "$python" -m pytest -c "$root/tests/pytest.ini" "$root/tests/$level" 2>&1 |
        tee "$log" || status=$?
    counts=$(tail -n 1 "$log")
    ok=$(grep -oE '[0-9]+ passed' <<<"$counts" | cut -d' ' -f1)
    not_ok=$(grep -oE '[0-9]+ (failed|error)' <<<"$counts" | awk '{ n += $1 } END { print n + 0 }')
    if [ "$status" -ne 0 ] && [ "$not_ok" -eq 0 ]; then
        not_ok=1 # pytest itself failed, or took too long
    fi
    add "${ok:-0}" "$not_ok"
}

level_unit() {
    build_release && run_unit "$release"
    build_sanitized && run_unit "$sanitized"
}
# sim_result LOG STATUS: the counts are its own last line; of a failure the end, and every seed.
sim_result() {
    local log=$1 status=$2 ok not_ok
    ok=$(tail -n 1 "$log" | grep -oE '^[0-9]+ passed' | cut -d' ' -f1)
    not_ok=$(tail -n 1 "$log" | grep -oE '[0-9]+ failed$' | cut -d' ' -f1)
    if [ "$status" -ne 0 ] && [ "${not_ok:-0}" -eq 0 ]; then
        not_ok=1 # the sanitizer, or it took too long
    fi
    if [ "$status" -eq 0 ]; then
        tail -n 2 "$log"
    else
        tail -n 100 "$log"
        grep -aE '^(seed|replay)' "$log"
    fi
    add "${ok:-0}" "${not_ok:-0}"
}

# run_sim BUILD FROM SEEDS: on each processor a process with its part of the seeds.
run_sim() {
    local dir=$1 from=$2 seeds_left=$3 part parts i status pids=()
    parts=$(nproc)
    part=$((($3 + parts - 1) / parts))
    say "simulation on $(realpath --relative-to="$root" "$dir"), $3 seeds from $from"
    for ((i = 0; seeds_left > 0; i++)); do
        timeout --kill-after=60 900 "$dir/tests/sim/sim" --from "$from" \
            --seeds $((part < seeds_left ? part : seeds_left)) >"$dir/sim.$i.log" 2>&1 &
        pids+=($!)
        from=$((from + part))
        seeds_left=$((seeds_left - part))
    done
    for i in "${!pids[@]}"; do
        status=0
        wait "${pids[i]}" || status=$?
        sim_result "$dir/sim.$i.log" "$status"
    done
}

level_sim() {
    build_release && run_sim "$release" 1 "$seeds"
    build_sanitized && run_sim "$sanitized" $((seeds + 1)) $((seeds / 5))
}
level_integration() { build_sanitized && run_pytest integration "$sanitized"; }
level_e2e() { build_release && run_pytest e2e "$release"; }
level_fuzz() {
    local log=$root/build/fuzz.log counts
    say "fuzz targets"
    mkdir -p "$root/build"
    "$root/tests/fuzz/run.sh" 2>&1 | tee "$log"
    counts=$(tail -n 1 "$log")
    if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        add "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    else
        add 0 1
    fi
}

main() {
    local level levels=()
    while [ $# -gt 0 ]; do
        if [ "$1" = --seeds ]; then
            seeds=${2:?--seeds takes a number}
            shift
        else
            levels+=("$1")
        fi
        shift
    done
    if [ ${#levels[@]} -eq 0 ]; then
        levels=(unit sim integration e2e fuzz)
    fi
    for level in "${levels[@]}"; do
        if ! declare -F "level_$level" >/dev/null; then
            printf 'no such level: %s; there are unit, sim, integration, e2e and fuzz\n' "$level" >&2
            exit 2
        fi
    done
    if ! packages_install \
        "${BUILD_PACKAGES[@]}" "${RUNTIME_PACKAGES[@]}" "${TEST_PACKAGES[@]}"; then
        say "packages are missing and apt could not install them"
        add 0 1
    else
        for level in "${levels[@]}"; do
            "level_$level"
        done
    fi
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

main "$@"
