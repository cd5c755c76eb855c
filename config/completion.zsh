#compdef cri-device-shimctl
# Completion of cri-device-shimctl, for zsh.

_arguments \
    '(-o --output)'{-o,--output}'[in place of a table]:format:(json wide name)' \
    '(-w --watch)'{-w,--watch}'[ask again each second, and show what is new]' \
    '(-s --socket)'{-s,--socket}'[the control.socket of the daemon]:socket:_files' \
    '(-h --help)'{-h,--help}'[how it is used]' \
    '(-V --version)'{-V,--version}'[the version]' \
    '1:command:((status\:"processes, troubles, settings" why\:"what a container waits for"))' \
    '*:argument:'
