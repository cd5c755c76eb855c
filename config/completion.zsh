#compdef cri-device-shimctl
# Completion of cri-device-shimctl, for zsh: the program says what there is.

local -a found
found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
if (( ${found[(I):files]} )); then
    _files
fi
found=("${(@)found:#:files}")
if (( $#found )); then
    found=("${(@)found//:/\\:}")
    found=("${(@)found/$'\t'/:}")
    _describe 'cri-device-shimctl' found
fi
