#!/usr/bin/env bash
# Compares what two builds of the device manager decide on the same creates.
#
#   tests/sim/decisions.sh OLD_SIM NEW_SIM [SEEDS]      the programs; seeds 1 to SEEDS (2000)
#   tests/sim/decisions.sh OLD_SIM NEW_SIM 50 300       seeds 300 to 349
#   NEW_OPTIONS="--unsteered" tests/sim/decisions.sh ...    for the second alone: without what the first has not
#
# Each plays the seeds, and writes what became of each create: its verdict, devices and reason, in an
# order that does not depend on who was decided first. A world is the same for both as long as they
# do the same at the same times; after a difference it goes its own way. So of each seed that differs
# only where the first line does is told. The status is 0 if there is none.
#
# To compare with another commit, build it with this directory's simulator:
#   git worktree add /tmp/old COMMIT && cp -r tests/sim /tmp/old/tests/ && cmake ... && ninja sim
set -uo pipefail

old=${1:?usage: decisions.sh OLD_SIM NEW_SIM [SEEDS [FROM]]} new=${2:?a second program}
seeds=${3:-2000} from=${4:-1}
read -ra new_options <<<"${NEW_OPTIONS:-}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

play() { # a seed that fails is compared like others
    local sim=$1 out=$2
    shift 2
    "$sim" "$@" --from "$from" --seeds "$seeds" --failures "$seeds" --quiet --decisions "$out" >"$out.log"
    tail -n 2 "$out.log" | head -n 1
    [ -s "$out" ] || { echo "$sim wrote nothing" >&2; exit 1; }
}

play "$old" "$work/old" & first=$!
play "$new" "$work/new" "${new_options[@]}" || exit 1
wait "$first" || exit 1
awk -v of="$seeds" '
    FNR == 1 { file++ }
    { line = $0; sub(/^[0-9]+ /, "", line); }
    file == 1 { count[$1]++; old[$1, count[$1]] = line; next }
    { creates++; seen[$1]++ }
    !($1 in differs) && old[$1, seen[$1]] != line {
        differs[$1] = 1; n++
        if (old[$1, seen[$1]] ~ /: code 0, ids/ && line ~ /: code 0, ids/) others++
        if (n <= 10) printf "seed %s:\n  - %s\n  + %s\n", $1, old[$1, seen[$1]], line
    }
    END {
        for (seed in count)
            if (!(seed in differs) && seen[seed] != count[seed]) { n++; printf "seed %s: %d creates, and %d\n", seed, count[seed], seen[seed] }
        if (n > 10) printf "and %d seeds more\n", n - 10
        printf "%d creates in %d seeds: %d seeds differ, of which %d begin with other devices for a create\n", creates, of, n, others
        exit n > 0
    }' "$work/old" "$work/new"
