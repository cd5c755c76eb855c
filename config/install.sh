#!/usr/bin/env bash
# Puts cri-device-shim between this node's kubelet and its container runtime, or takes it away. As
# root.
#
#   config/install.sh [OPTION]...
#     --dry-run                 show every change as a diff and every command; touch nothing
#     --uninstall               put back what was there before
#     --force                   uninstall even if running pods lose their devices by it
#     --build DIR               where the binaries are; default: build/ beside config/
#     --prefix DIR              they go to DIR/bin; default: /usr/local
#     --root DIR                the node's root directory is DIR: for images; nothing is started
#     --runtime-endpoint PATH   the runtime's socket, in place of the one the kubelet uses
#     --no-kubelet              leave the kubelet's settings alone: something else starts it
#
# It is `cri-device-shimctl node enable` together with the files that a package would bring: the
# binaries, what the node command itself is made of, a description of all settings, and the manual
# pages and completions. cri-device-shimctl(1) says what that does to a node, config/README.md more.
# All of it is one step: if any of it fails, everything is taken back.
#
# Run again, it upgrades: binaries are replaced, the daemon and then the bridge restarted, each only
# if its own files changed, the kubelet only if its arguments did. Units and drop-in that somebody
# has edited are kept, config.toml always.
set -euo pipefail
unset CDPATH # with which cd prints

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command=(enable)
options=()
for option in "$@"; do
    case $option in
        --uninstall) command=(disable --files) ;;
        -h | --help)
            sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *) options+=("$option") ;;
    esac
done
exec "$here/node/node.sh" "${command[@]}" --build "${here%/*}/build" "${options[@]}"
