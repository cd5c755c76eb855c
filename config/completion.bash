# shellcheck shell=bash
# Completion of cri-device-shimctl, for bash.

_cri_device_shimctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    case $before in
        -o | --output) mapfile -t COMPREPLY < <(compgen -W 'json wide name' -- "$word") ;;
        -s | --socket) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        *)
            mapfile -t COMPREPLY < <(compgen -W '-o --output -w --watch -s --socket -h --help
                -V --version status why' -- "$word")
            ;;
    esac
}

complete -F _cri_device_shimctl cri-device-shimctl
