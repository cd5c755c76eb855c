# shellcheck shell=bash disable=SC2154 # what node.sh and its files share
# How long systemd-logind waits for locks on the machine's shutdown: as long as [shutdown] takes, for
# node.sh to source.
#
# Read from the files, as logind reads them, without our own: so it is the same on a running node and
# below --root. Of the sourcing script: $root, $program, $config, $work, $installed and say(), die(),
# control(), wish_unless_edited().

LOGIND_DIRS=(/etc/systemd /run/systemd /usr/local/lib/systemd /usr/lib/systemd /lib/systemd)
LOGIND_DEFAULT_US=5000000 # its own
# Besides what [shutdown] takes: until that has begun, and so that all is over before logind goes on by
# itself.
LOGIND_SPARE_US=5000000
LOGIND_UNIT=systemd-logind.service
# Of all drop-ins the one whose name sorts last counts. The first of these sorts before the kubelet's
# 99-kubelet.conf, which the kubelet writes if it needs more than there is; the other is for a node on
# which a later one says less than we need.
logind_drop_ins=(/etc/systemd/logind.conf.d/90-cri-device-shim.conf
    /etc/systemd/logind.conf.d/zz-cri-device-shim.conf)

shutdown_us=0 # what [shutdown] takes, with that
logind_us=
logind_from= # the file that says so
logind_told=no

# timespan_us TEXT: systemd.time(7), "Parsing time spans"; false: it is none.
timespan_us() {
    awk -v text="$1" 'BEGIN {
        units = "us usec 1 ms msec 1e3 s sec second seconds 1e6 m min minute minutes 6e7" \
            " h hr hour hours 36e8 d day days 864e8 w week weeks 6048e8 M month months 2629800e6" \
            " y year years 315576e8"
        for (i = split(units, word, " "); i > 0; i--)
            if (word[i] ~ /^[0-9]/) factor = word[i] + 0; else unit[word[i]] = factor
        unit[""] = 1e6
        if (text == "infinity") { print "9000000000000000000"; exit 0 }
        while (match(text, /^[ \t]*[0-9]+(\.[0-9]+)?[ \t]*/)) {
            number = substr(text, 1, RLENGTH) + 0
            text = substr(text, RLENGTH + 1)
            match(text, /^[A-Za-z]*/)
            name = substr(text, 1, RLENGTH)
            if (!(name in unit)) exit 1
            sum += number * unit[name]
            text = substr(text, RLENGTH + 1)
            some = 1
        }
        if (!some || text !~ /^[ \t]*$/) exit 1
        printf "%.0f\n", sum
    }'
}

# logind.conf and its drop-ins but ours, in the order in which logind reads them.
logind_files() {
    local dir
    for dir in "${LOGIND_DIRS[@]}"; do
        if exists "$root$dir/logind.conf"; then
            printf '%s\n' "$dir/logind.conf"
            break
        fi
    done
    drop_ins logind.conf "${logind_drop_ins[*]}" "${LOGIND_DIRS[@]}"
}

# logind_value FILE: its InhibitDelayMaxSec=, behind a "="; nothing, if it has none.
logind_value() {
    [ -f "$(on_node "$1")" ] || return 0
    awk '
        /^[ \t]*[#;]/ { next }
        { gsub(/^[ \t]+|[ \t\r]+$/, "") }
        /^\[/ { section = $0; next }
        section == "[Login]" && /^InhibitDelayMaxSec[ \t]*=/ { sub(/^[^=]*=[ \t]*/, ""); value = "=" $0 }
        END { if (value) print value }' "$(on_node "$1")"
}

read_logind() {
    local file value
    logind_us=$LOGIND_DEFAULT_US logind_from="its default"
    while read -r file; do
        value=$(logind_value "$file")
        [ -n "$value" ] || continue
        logind_from=$file
        if [ "$value" = = ]; then
            logind_us=$LOGIND_DEFAULT_US
        else
            logind_us=$(timespan_us "${value#=}") ||
                die "$file: InhibitDelayMaxSec$value is not understood"
        fi
    done < <(logind_files)
}

# Which of ours is to be there; none, if there is time enough, or nothing that we write would count.
choose_logind_drop_in() {
    local path last=
    [ "$shutdown_us" -gt "$logind_us" ] || return 0
    [[ $logind_from != *.d/*.conf ]] || last=${logind_from##*/}
    for path in "${logind_drop_ins[@]}"; do
        if [[ ${path##*/} > $last ]]; then
            printf '%s' "$path"
            return 0
        fi
    done
    printf '%s: less than [shutdown] takes, and it sorts behind whatever could say more\n' \
        "$logind_from" >&2
}

logind_drop_in_text() {
    cat <<END
# Made by cri-device-shimctl node enable: what [shutdown] of cri-device-shim takes, and a little more.
# Without it: $((logind_us / 1000)) ms, by $logind_from.
[Login]
InhibitDelayMaxSec=$(((shutdown_us + 999999) / 1000000))
END
}

plan_logind() {
    local path chosen=
    if [ -e "$root$config" ]; then
        shutdown_us=$("$program" --config "$root$config" --shutdown-time) ||
            die "how long [shutdown] takes is not known"
    fi
    if [ "$shutdown_us" -gt 0 ]; then
        shutdown_us=$((shutdown_us + LOGIND_SPARE_US))
        read_logind
        chosen=$(choose_logind_drop_in)
    fi
    for path in "${logind_drop_ins[@]}"; do
        if [ "$path" = "$chosen" ]; then
            logind_drop_in_text >"$work/logind"
            wish_unless_edited "$path" "$work/logind" 644
        elif [ -n "${installed[$path]:-}" ]; then
            wish_unless_edited "$path" "$store/backup$path"
        fi
    done
}

# It reads its files anew on SIGHUP, as the kubelet has it read its own.
tell_logind() {
    any_changed "${logind_drop_ins[@]}" || return 0
    if [ "$dry_run" = no ] && is_live; then logind_told=yes; fi
    control kill --signal=HUP $LOGIND_UNIT ||
        say "$LOGIND_UNIT was not told; it reads its settings at its next start" >&2
}

logind_says() {
    busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
        org.freedesktop.login1.Manager InhibitDelayMaxUSec
}

# That logind has understood its files as we have.
check_logind() {
    local tries=0 says=
    [ $logind_told = yes ] && command -v busctl >/dev/null || return 0
    while [ $tries -lt 10 ]; do
        says=$(logind_says) || says=
        [ "${says#t }" -lt "$shutdown_us" ] 2>/dev/null || return 0
        tries=$((tries + 1))
        sleep 0.2
    done
    say "logind waits for ${says#t } microseconds at a shutdown, whatever its files say" >&2
}
