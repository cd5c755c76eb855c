#!/bin/sh
# What the image runs, in a pod on each node of a fleet: config/kubernetes has the pods.
#
#   fleet install [OPTION]...    has the node use this release; OPTIONs are install.sh's, but for those that say
#                                where files are: --build, --prefix and --root
#   fleet remove                 puts back what was there before, if no pod needs it any more
#   fleet ready                  whether that was done and, after an install, the node's status is ok
#
# The work is install.sh's, and it is done by the node: as a unit of its systemd, to which the pod gives
# the release as a stream. So it is done to its end whatever becomes of the pod, which the kubelet that
# is restarted here has started, and whose calls pass through the shim that is replaced; and nothing of
# the pod is needed afterwards. The pod needs the node's root directory for that, at /node, which it
# only reads, and to be root there.
#
# A change that fails is taken back; the pod ends then, and the kubelet starts it again, less and less often.
set -eu

node=/node
release=/release
state=/run/cri-device-shim-fleet # what was done here, by this container

# change WORD...: install.sh of the release, on the node, with these words. systemd has $$ for $.
change() {
    # shellcheck disable=SC2016 # the shell on the node expands it
    tar -C "$release" -cf - . | chroot "$node" systemd-run --quiet --wait --collect --pipe \
        --description="cri-device-shim: $verb, from an image" \
        /bin/sh -ec 'release=$$(mktemp -d /usr/local/.cri-device-shim.XXXXXX)
            cd "$$release"
            ! tar -xf - || exec bash config/kubernetes/on_node.sh "$$@"
            rm -rf "$$release"; exit 1' sh "$@"
}

# A first process has no signals but those that it asks for, and a shell that waits for a command in front
# takes none.
stay() {
    printf 'done; this pod may go now, and the node stays as it is\n'
    while :; do
        sleep 2147483647 &
        wait $!
    done
}

is_ready() {
    [ -e "$state" ] || return 1
    [ "$(cat "$state")" != remove ] || return 0
    socket=$(chroot "$node" /usr/local/bin/cri-device-shim --setting control.socket) && [ -n "$socket" ] || return 1
    [ "$(chroot "$node" /usr/local/bin/cri-device-shimctl --socket "$socket" status -o name)" = status/ok ]
}

verb=${1:-}
[ $# -eq 0 ] || shift
for word in "$@"; do
    case $word in
        --build | --prefix | --root)
            printf 'error: %s: what is on a node is below /usr/local, where it is looked for\n' "$word" >&2
            exit 2
            ;;
    esac
done
case $verb in
    ready)
        is_ready
        exit
        ;;
    install) ;;
    remove) set -- --uninstall "$@" ;;
    *)
        printf 'error: the first word is install, remove or ready\n' >&2
        exit 2
        ;;
esac
trap 'exit 0' TERM INT
rm -f "$state"
change "$@" &
wait $!
printf '%s\n' "$verb" >"$state"
stay
