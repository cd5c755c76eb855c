#!/usr/bin/env bash
# Plants faults in the device manager, and in what of the shim is played with it (sim_lift in
# CMakeLists.txt), one at a time, and lets the simulation find each.
#
#   tests/sim/mutants.sh BUILD_DIR            every fault of mutants.txt
#   tests/sim/mutants.sh BUILD_DIR NAME...    these
#   tests/sim/mutants.sh --fit                looks only whether each still fits the text, within a second
#
# BUILD_DIR is a configured build in which `sim` is up to date. A fault is one perl substitution
# that must fit exactly one file of those. That file is compiled with the build's own command
# and linked with the rest; the tree is not touched. The seeds that found it last are played first,
# then others from 1 on, SEEDS (2000) at most. What is caught is a line "ok", what is not, or does
# not fit or compile any more, a line "not ok". The last line is "N passed, N failed". With
# WORLD=lifts only that small world is played (sim --only); with EVERY=4 only each fourth fault is
# planted; with UPDATE=1 the seeds that were found are written to mutants.txt in place of those that
# do not find it any more.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
list=$root/tests/sim/mutants.txt
seeds=${SEEDS:-2000}

# All that faults are planted in.
mapfile -t sources < <(cd "$root" && printf '%s\n' devicemgr/*/*.c \
    shim/cluster/{lift_driver,pool_order,pools}.c shim/agent/pool_slices.c)

# Prints the files that the substitution changes, and writes them to $2.
plant() {
    perl -e '
        my ($edit, $root, $out, @names) = @ARGV;
        undef $/;
        for my $name (@names) {
            open(my $source, "<", "$root/$name") or die "$name: $!\n";
            my $before = $_ = <$source>;
            eval $edit;
            die $@ if $@;
            next if $_ eq $before;
            system("install", "-D", "/dev/null", "$out/$name") == 0 or die "$out/$name\n";
            open(my $planted, ">", "$out/$name") or die "$out/$name: $!\n";
            print $planted $_;
            print "$name\n";
        }' "$1" "$root" "$2" "${sources[@]}" 2>"$2/perl.log"
}

# Prints each fault that does not fit exactly one of them.
fit() {
    perl -e '
        my ($list, $root, @names) = @ARGV;
        my (%text, $failed);
        for my $name (@names) {
            local $/;
            open(my $source, "<", "$root/$name") or die "$name: $!\n";
            $text{$name} = <$source>;
        }
        open(my $faults, "<", $list) or die "$list: $!\n";
        while (my $heading = <$faults>) {
            next if $heading =~ /^(#|\s*$)/;
            my ($name) = split(" ", $heading);
            my $edit = <$faults>;
            my $change = eval("sub { $edit; }") or die "$name: $@";
            my @files = grep { my $new = $text{$_}; $change->() for $new; $new ne $text{$_} } keys %text;
            next if @files == 1;
            print "not ok $name: it must fit one file, and fits: @files\n";
            $failed = 1;
        }
        exit($failed // 0);' "$list" "$root" "${sources[@]}"
}

# The commands that made an object, and the program, for another source, object and program.
compile() {
    local name=$1 file=$2 out=$3 command
    command=$(grep -F -- "-c $root/$file" "$commands" | tail -n 1)
    [ -n "$command" ] || return 1
    command=$(sed -E "s# -M[DTF]( [^ ]+\.o(\.d)?)?##g; s# -o [^ ]+ -c [^ ]+# -o $out/$name.o -c $out/$file#;
        s# -Werror # #" <<<"$command")
    (cd "$build" && eval "$command") >"$out/compile.log" 2>&1 || return 1
    command=$(grep -E -- ' -o tests/sim/sim ' "$commands" | tail -n 1)
    command=$(sed -E "s# -o tests/sim/sim # -o $out/sim $out/$name.o #" <<<"$command")
    (cd "$build" && eval "$command") >>"$out/compile.log" 2>&1
}

# The first of these seeds that fails. A fault may have it play for ever: no longer than 15 minutes of a processor,
# however long that takes where others have it.
caught_by() {
    local sim=$1 from=$2 len=$3
    (ulimit -t 900 && exec "$sim" ${WORLD:+--only "$WORLD"} --from "$from" --seeds "$len" --quiet --failures 1) 2>&1 |
        grep -aE '^seed [0-9]+:' | head -n 1
}

not_ok() {
    printf 'not ok %s: %s\n' "$1" "$2"
    return 1
}

try() {
    local name=$1 edit=$2 known=$3 out=$work/$1 files line='' seed
    mkdir -p "$out"
    files=$(plant "$edit" "$out") || { not_ok "$name" "no perl: $(head -n 1 "$out/perl.log")"; return; }
    [ "$(wc -w <<<"$files")" -eq 1 ] ||
        { not_ok "$name" "it must fit one file, and fits: ${files:-none}"; return; }
    compile "$name" "$files" "$out" ||
        { not_ok "$name" "$files does not compile with it: $out/compile.log"; return; }
    for seed in $known; do
        line=$(caught_by "$out/sim" "$seed" 1)
        [ -n "$line" ] && break
    done
    if [ -z "$line" ]; then
        line=$(caught_by "$out/sim" 1 "$seeds")
        [ -z "$line" ] || printf '   %s: seeds "%s" do not find it any more, seed %s does\n' \
            "$name" "$known" "$(grep -oE '[0-9]+' <<<"$line" | head -n 1)"
    fi
    [ -n "$line" ] || { not_ok "$name" "no seed of $seeds finds it"; return; }
    rm -rf "$out"
    printf 'ok %s: %.120s\n' "$name" "$line"
}

# Each is three lines: name and known seeds, the substitution, empty.
run_all() {
    local heading edit rest name known number=0
    while read -r heading; do
        case $heading in '' | '#'*) continue ;; esac
        IFS= read -r edit
        name=${heading%% *}
        known=${heading#"$name"}
        if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then
            continue
        fi
        [ $((number++ % ${EVERY:-1})) -eq 0 ] || continue
        while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do
            wait -n
        done
        try "$name" "$edit" "$known" </dev/null &
    done <"$list"
    wait
}

if [ "${1:-}" = --fit ]; then
    fit
    exit
fi
build=$(cd "${1:?usage: mutants.sh BUILD_DIR [NAME]...}" && pwd) || exit 1
shift
wanted=("$@")
work=$build/tests/sim/mutants
commands=$work/commands
mkdir -p "$work"
ninja -C "$build" -t commands tests/sim/sim >"$commands" || exit 1
results=$(run_all | tee "$work/results")
printf '%s\n' "$results"
passed=$(grep -c '^ok ' <<<"$results")
failed=$(grep -c '^not ok ' <<<"$results")
if [ -n "${UPDATE:-}" ]; then
    sed -nE 's/^   ([a-z_0-9]+): seeds "[^"]*" do not find it any more, seed ([0-9]+) does$/\1 \2/p' <<<"$results" |
        while read -r name seed; do
            sed -i -E "s/^$name( [0-9 ]*)?\$/$name $seed/" "$list"
        done
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
