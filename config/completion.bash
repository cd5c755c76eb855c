# shellcheck shell=bash
# Completion of cri-device-shimctl, for bash: the program says what there is.

_cri_device_shimctl() {
    local word=${COMP_WORDS[COMP_CWORD]} found files=()
    found=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
    if [[ $found == *:files* ]]; then
        mapfile -t files < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null # what a shell has to quote, and the slash of a directory
    fi
    mapfile -t COMPREPLY < <(compgen -W "${found//:files/}" -- "$word")
    COMPREPLY+=("${files[@]}")
}

complete -F _cri_device_shimctl cri-device-shimctl
