#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each of them for a while, two at once, from its seeds.
#
#   tests/fuzz/run.sh [SECONDS [TARGET]...]   default: 60, all targets
#
# fuzz_session and fuzz_create_container get SECONDS, the others a third of it. What is learned is
# kept in build/fuzz/corpus for the next run. An input that fails is kept and its path printed with
# the command that plays it again. The last line is "N passed, N failed", one for each target.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${1:-60}
dir=$root/build/fuzz
findings=$dir/findings
all=(fuzz_session fuzz_create_container fuzz_message fuzz_request fuzz_config
    fuzz_kubelet_checkpoint fuzz_devices fuzz_record fuzz_status fuzz_feed)
bytes_max=4096
export ASAN_OPTIONS=quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1

build() {
    mkdir -p "$dir" "$findings"
    CC=clang CXX=clang++ cmake -G Ninja -S "$root" -B "$dir" -DSHIM_FUZZ=ON \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER_LAUNCHER=ccache \
        -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >"$dir/build.log" 2>&1 &&
        ninja -C "$dir" fuzz >>"$dir/build.log" 2>&1 && return
    tail -n 60 "$dir/build.log"
    return 1
}

time_of() {
    case $1 in
    fuzz_session | fuzz_create_container) echo "$seconds" ;;
    *) echo $(((seconds + 2) / 3)) ;;
    esac
}

fuzz() {
    local target=$1 program=$dir/tests/fuzz/$1 learned=$dir/corpus/$1 time
    time=$(time_of "$target")
    mkdir -p "$learned"
    timeout --kill-after=10 $((time + 60)) "$program" -max_total_time="$time" -timeout=20 \
        -max_len="$bytes_max" -rss_limit_mb=1500 -print_final_stats=1 \
        -artifact_prefix="$findings/$target-" "$learned" "$root/tests/fuzz/corpus/$target" \
        >"$dir/$target.log" 2>&1
}

report() {
    local target=$1 status=$2 log=$dir/$1.log input
    if [ "$status" -eq 0 ]; then
        printf '%s: %s\n' "$target" "$(grep -m 1 '^Done ' "$log")"
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    tail -n 60 "$log"
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    printf '%s: FAILED with status %d, all of it in %s\n' "$target" "$status" "$log"
    if [ -n "$input" ]; then
        printf '%s: the input is %s; to play it again:\n    FUZZ_TRACE=1 %s %s\n' "$target" \
            "$input" "$dir/tests/fuzz/$target" "$input"
    fi
}

passed=0
failed=0
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")

if ! build; then
    printf '0 passed, %d failed\n' ${#targets[@]}
    exit 1
fi
declare -A target_of
running=0
for target in "${targets[@]}" ''; do
    while [ "$running" -gt 0 ] && { [ "$running" -eq 2 ] || [ -z "$target" ]; }; do
        status=0
        wait -n -p pid || status=$?
        report "${target_of[$pid]}" "$status"
        running=$((running - 1))
    done
    if [ -n "$target" ]; then
        fuzz "$target" &
        target_of[$!]=$target
        running=$((running + 1))
    fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
