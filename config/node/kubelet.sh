# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# How this node's kubelet is started, and which runtime it uses, for node.sh to source.
#
# Read from the files, as systemd and the kubelet read them, and without our own drop-in: so it is
# the same on a running node and below --root. What is not understood ends with a message; nothing
# is guessed. Of the sourcing script: $root, $verb, $runtime_endpoint, $kubelet_drop_in (ours) and
# die().

UNIT_DIRS=(/etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system
    /usr/lib/systemd/system /lib/systemd/system)
DEFAULT_ENDPOINT=unix:///run/containerd/containerd.sock # the kubelet's own, since 1.24

kubelet_unit=            # kubelet.service's file on the node; empty: there is none
kubelet_exec=            # its ExecStart=, as it stands there
kubelet_exec_from=       # the file it stands in
kubelet_argv=()          # the arguments it comes to
kubelet_argv_from=()     # the file each of them is from
kubelet_endpoint=        # a path
kubelet_endpoint_from=
declare -A env_value=() env_from=()
words=() # of split_words

# on_node PATH: where a file of the node is from here; an absolute link is the node's own.
on_node() {
    local path=$1 target hops=0
    while [ -L "$root$path" ] && [ $((hops += 1)) -lt 16 ]; do
        target=$(readlink "$root$path")
        case $target in
            /*) path=$target ;;
            *) path=$(dirname "$path")/$target ;;
        esac
    done
    printf '%s' "$root$path"
}

# split_words TEXT: into `words`, with the quotes and backslashes that systemd takes.
split_words() {
    local text=$1 word='' quote='' inside=no c i
    words=()
    for ((i = 0; i < ${#text}; i++)); do
        c=${text:i:1}
        if [[ $c == \\ && $quote != \' ]]; then
            i=$((i + 1))
            word+=${text:i:1} inside=yes
        elif [[ -n $quote && $c == "$quote" ]]; then
            quote=''
        elif [[ -z $quote && $c == [\"\'] ]]; then
            quote=$c inside=yes
        elif [[ -z $quote && $c == [[:space:]] ]]; then
            [ $inside = no ] || words+=("$word")
            word='' inside=no
        else
            word+=$c inside=yes
        fi
    done
    [ $inside = no ] || words+=("$word")
}

# ---- the unit ----

# kubelet.service and its drop-ins, in the order in which systemd reads them.
unit_files() {
    printf '%s\n' "$kubelet_unit"
    drop_ins kubelet.service "$kubelet_drop_in" "${UNIT_DIRS[@]}"
}

# unit_settings FILE KEY...: "KEY <tab> VALUE" for each of those in its [Service] section.
unit_settings() {
    local file=$1
    shift
    awk -v keys=" $* " '
        /^[ \t]*[#;]/ { next }
        { line = held $0; held = "" }
        line ~ /\\$/ { held = substr(line, 1, length(line) - 1) " "; next }
        { gsub(/^[ \t]+|[ \t\r]+$/, "", line) }
        line ~ /^\[/ { section = line; next }
        section == "[Service]" && (at = index(line, "=")) {
            key = substr(line, 1, at - 1); value = substr(line, at + 1)
            gsub(/[ \t]+$/, "", key); gsub(/^[ \t]+/, "", value)
            if (index(keys, " " key " ")) print key "\t" value
        }' "$(on_node "$file")"
}

find_unit() {
    local dir
    for dir in "${UNIT_DIRS[@]}"; do
        exists "$root$dir/kubelet.service" || continue
        kubelet_unit=$dir/kubelet.service
        [ "$(readlink "$root$kubelet_unit")" != /dev/null ] || die "$kubelet_unit is masked"
        [ -f "$(on_node "$kubelet_unit")" ] || die "$kubelet_unit is a link to nothing"
        return 0
    done
}

read_exec() { # VALUE FILE
    if [ -z "$1" ]; then
        kubelet_exec=
    elif [ -n "$kubelet_exec" ]; then
        die "$2: a second ExecStart=; kubelet.service must have one"
    else
        [[ $2 == */* && ${2##*/} > ${kubelet_drop_in##*/} && $2 == *.d/*.conf ]] &&
            die "$2 sets ExecStart= after ${kubelet_drop_in##*/}; give it a name that sorts before"
        kubelet_exec=$1 kubelet_exec_from=$2
    fi
}

read_unit() {
    local file key value environment_files=()
    while read -r file; do
        while IFS=$'\t' read -r key value; do
            case $key in
                ExecStart) read_exec "$value" "$file" ;;
                Environment) read_environment "$value" "$file" ;;
                EnvironmentFile)
                    [ -n "$value" ] || environment_files=()
                    environment_files+=("${value#-}")
                    ;;
            esac
        done < <(unit_settings "$file" ExecStart Environment EnvironmentFile)
    done < <(unit_files)
    for file in "${environment_files[@]}"; do # these win over Environment=, wherever they stand
        [ -z "$file" ] || read_environment_file "$file"
    done
}

read_environment() { # VALUE FILE
    local word
    [ -n "$1" ] || env_value=()
    split_words "$1"
    for word in "${words[@]}"; do
        env_value[${word%%=*}]=${word#*=} env_from[${word%%=*}]=$2
    done
}

# systemd_release: the node's, by the name of the library that its programs share; empty: not known.
systemd_release() {
    local path
    for path in "$root"{/usr,}/lib{,/*}/systemd/libsystemd-shared-*.so; do
        [[ $path =~ -shared-([0-9]+)[^/]*$ ]] || continue
        echo "${BASH_REMATCH[1]}"
        return 0
    done
}

# environment_settings FILE: "NAME <tab> VALUE" for each of its settings, as systemd reads them: a value with quotes
# may go over several lines, which are words of it here. Before systemd 254 a comment that ends with a backslash goes
# on in the next line.
environment_settings() {
    local release
    release=$(systemd_release)
    awk -v RS='\001' -v joins="$((${release:-254} < 254))" '
        function take() {
            sub(/[ \t\r]+$/, "", name)
            if (state == "value") value = substr(value, 1, kept)
            gsub(/[\t\n]/, " ", value)
            if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/) print name "\t" value
            name = value = state = ""
        }
        {
            count = split($0 "\n", part, "")
            for (i = 1; i <= count; i++) {
                c = part[i]
                blank = c ~ /[ \t\r\n]/
                if (state == "comment") {
                    if (c == "\\" && joins) i++
                    else if (c == "\n") state = ""
                } else if (state == "" && !blank) {
                    state = c ~ /[#;]/ ? "comment" : "name"
                    if (state == "name") name = c
                } else if (state == "name") {
                    if (c == "\n") name = state = ""
                    else if (c == "=") { state = "before"; kept = 0 }
                    else name = name c
                } else if (state == "single") {
                    if (c == "\047") state = "before"; else value = value c
                } else if (state == "double") {
                    if (c == "\"") state = "before"
                    else if (c != "\\") value = value c
                    else if (part[++i] ~ /["\\`$]/) value = value part[i]
                    else if (part[i] != "\n") value = value c part[i]
                } else if (state != "" && c == "\n") {
                    take()
                } else if (state == "before" && c == "\047") {
                    state = "single"
                } else if (state == "before" && c == "\"") {
                    state = "double"
                } else if (state == "value" || (state == "before" && !blank)) {
                    state = "value"
                    if (c == "\\") { c = part[++i]; blank = c == "\n"; if (blank) c = "" }
                    value = value c
                    if (!blank) kept = length(value)
                }
            }
        }' "$1"
}

# read_environment_file PATTERN
read_environment_file() {
    local path file name value
    while read -r path; do
        file=$(on_node "${path#"$root"}")
        [ -f "$file" ] || continue
        while IFS=$'\t' read -r name value; do
            env_value[$name]=$value env_from[$name]=${path#"$root"}
        done < <(environment_settings "$file")
    done < <(if [[ $1 == *[*?[]* ]]; then compgen -G "$root$1" || true; else printf '%s\n' "$root$1"; fi)
}

# ---- its arguments ----

# expand_word WORD: one word of ExecStart= into the arguments it comes to.
expand_word() {
    local word=$1 out='' name
    if [[ $word =~ ^\$([A-Za-z_][A-Za-z0-9_]*)$ ]]; then
        name=${BASH_REMATCH[1]}
        split_words "${env_value[$name]:-}"
        for word in "${words[@]}"; do
            kubelet_argv+=("$word") kubelet_argv_from+=("${env_from[$name]}")
        done
        return 0
    fi
    while [[ $word =~ ^(.*[^\$]|)\$\{([A-Za-z_][A-Za-z0-9_]*)\}(.*)$ ]]; do
        word=${BASH_REMATCH[1]} out=${env_value[${BASH_REMATCH[2]}]:-}${BASH_REMATCH[3]}$out
    done
    kubelet_argv+=("$word$out") kubelet_argv_from+=("$kubelet_exec_from")
}

read_arguments() {
    local exec_words word by_hand
    by_hand="Give the kubelet --container-runtime-endpoint=unix://$listen by hand,"
    by_hand+=" and use --no-kubelet"
    [ -n "$kubelet_exec" ] || die "$kubelet_unit has no ExecStart="
    split_words "$kubelet_exec"
    exec_words=("${words[@]}")
    [[ ${exec_words[0]} =~ ^[-:+!]*/([^/]+/)*kubelet$ ]] ||
        die "$kubelet_exec_from starts ${exec_words[0]}, which is not a kubelet. $by_hand"
    for word in "${exec_words[@]:1}"; do
        [ "$word" != ';' ] || die "$kubelet_exec_from: ExecStart= holds several commands. $by_hand"
        expand_word "$word"
    done
}

# argument NAME: the last --NAME into argument_value and argument_from; false: there is none. The kubelet
# takes '_' for '-'.
argument() {
    local i name
    for ((i = ${#kubelet_argv[@]} - 1; i >= 0; i--)); do
        name=${kubelet_argv[i]%%=*}
        [ "${name//_/-}" = "--$1" ] || continue
        case ${kubelet_argv[i]} in
            *=*) argument_value=${kubelet_argv[i]#*=} ;;
            *) argument_value=${kubelet_argv[i + 1]:-} ;;
        esac
        argument_from=${kubelet_argv_from[i]}
        return 0
    done
    return 1
}

# ---- the endpoint ----

# endpoint_in FILE: the KubeletConfiguration's, if it has one; as JSON, too, where name and value are
# in one line. In a string of JSON the quotes around that name would have a backslash.
endpoint_in() {
    local file value
    file=$(on_node "$1")
    [ -f "$file" ] || return 0
    grep -qE '^([^#]*|[[:space:]]*\{.*)containerRuntimeEndpoint' "$file" || return 0
    value=$(sed -nE -e 's/^containerRuntimeEndpoint:[[:space:]]*/=/' -e 's/[[:space:]]+(#.*)?$//' \
        -e 's/^[^#]*"containerRuntimeEndpoint"[[:space:]]*:[[:space:]]*("[^"\]*").*/=\1/' \
        -e "s/^=([\"']?)([^\"'#[:space:]]*)\1\$/=\2/p" "$file")
    [[ $value == =* && $value != *$'\n'* ]] ||
        die "$1: its containerRuntimeEndpoint is not understood; say --runtime-endpoint PATH"
    [ "$value" = = ] || endpoint_is "${value#=}" "$1"
}

endpoint_is() { # VALUE FILE
    kubelet_endpoint=$1 kubelet_endpoint_from=$2
}

find_endpoint() {
    local file
    if argument container-runtime && [ "$argument_value" != remote ]; then
        die "$argument_from: --container-runtime=$argument_value is no CRI runtime"
    fi
    # Without the shim the kubelet goes by what it says itself.
    if [ -n "$runtime_endpoint" ] && [ "$verb" = enable ]; then
        endpoint_is "$runtime_endpoint" --runtime-endpoint
        return 0
    fi
    endpoint_is "$DEFAULT_ENDPOINT" "the kubelet's default"
    if argument container-runtime-endpoint; then
        endpoint_is "$argument_value" "$argument_from"
        return 0
    fi
    if argument config; then
        endpoint_in "$argument_value"
    fi
    if argument config-dir; then
        while read -r file; do
            endpoint_in "$argument_value/$file"
        done < <(config_files "$root$argument_value")
    fi
}

# config_files DIR: its *.conf and those below it, in the kubelet's order: a directory's names sorted.
config_files() {
    [ -d "$1" ] && [ ! -L "$1" ] || return 0
    (cd "$1" && find . -name '*.conf' ! -type d) | tr / '\001' | sort | tr '\001' / | sed 's,^\./,,'
}

# socket_path ENDPOINT WHERE: the path of a unix endpoint into `socket`.
socket_path() {
    local path=$1
    case $path in
        unix://*) path=${path#unix://} ;;
        unix:*) path=${path#unix:} ;;
    esac
    [[ $path =~ ^/[A-Za-z0-9._/@:+-]+$ ]] ||
        die "$2: the endpoint is \"$1\"; expected a unix socket, such as $DEFAULT_ENDPOINT"
    socket=$path
}

# All of the above into the variables; kubelet_unit stays empty if there is none.
kubelet_read() {
    find_unit
    [ -n "$kubelet_unit" ] || return 0
    read_unit
    read_arguments
    find_endpoint
    socket_path "$kubelet_endpoint" "$kubelet_endpoint_from"
    kubelet_endpoint=$socket
}

# In words, how it gets its arguments.
kubelet_kind() {
    case $kubelet_exec in
        *KUBELET_KUBEADM_ARGS*) printf 'set up by kubeadm' ;;
        *\$*) printf 'with arguments from variables' ;;
        *) printf 'with fixed arguments' ;;
    esac
}

# unit_check FILE: for the drop-in, a warning at the kubelet's start if the file is another one than
# now: then its new arguments do not count. Nothing for a path that would need quotes.
unit_check() {
    local hash
    [[ $1 =~ ^/[A-Za-z0-9._/@:+-]+$ ]] || return 0
    hash=$(sha256sum <"$(on_node "$1")")
    cat <<END
ExecStartPre=-/bin/sh -c 'echo "${hash%% *}  $1" | sha256sum --status -c || echo "<4>$1 has changed since cri-device-shim was enabled: run cri-device-shimctl node enable again"'
END
}

DROP_IN_BEGINS="# Made by cri-device-shimctl node enable:"

# The drop-in: the unit's own ExecStart= with one argument more; the last of a kind counts.
# Not by KUBELET_EXTRA_ARGS: only kubeadm's unit has it, and its file belongs to the administrator.
kubelet_drop_in_text() {
    cat <<END
$DROP_IN_BEGINS the kubelet uses the runtime through the shim.
# ExecStart= is the one of $kubelet_exec_from with the last argument added; should that one
# change, run that again.
[Unit]
Wants=cri-device-shim.service cri-device-shim-bridge.service
After=cri-device-shim.service cri-device-shim-bridge.service

[Service]
$(unit_check "$kubelet_exec_from")
ExecStart=
ExecStart=$kubelet_exec --container-runtime-endpoint=unix://$listen
END
}

# Whether the drop-in that is there starts another command than the one that is to come.
kubelet_command_changes() {
    local new
    new=$(grep '^ExecStart=.' "$work/drop-in")
    ! grep -qsxF -- "$new" "$root$kubelet_drop_in"
}
