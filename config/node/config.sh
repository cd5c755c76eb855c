# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# config.toml: what the installer reads of it, and the one it writes where there is none. For
# node.sh to source. Of the sourcing script: $root, $program, $prefix, $work, $config,
# $runtime_endpoint and $default_listen.

# Of the settings that are there, or will be; paths.
listen=              # the shim's socket
configured_endpoint= # the runtime's
state_dir=
plugin_dir=
kubelet_plugin_dir=

# config_value SECTION KEY DEFAULT: a string of the config, if that is there and has it.
config_value() {
    local value=
    [ ! -e "$root$config" ] || value=$(config_string "$1" "$2")
    say "${value:-$3}"
}

# config_string SECTION KEY: in its section, or as section.key. The config was checked before.
config_string() {
    awk -v section="$1" -v key="$2" '
        function named(name) { return "[ \t]*[\"\047]?" name "[\"\047]?[ \t]*" }
        /^[ \t]*\[/ { at = $0; gsub(/#.*|[][ \t]/, "", at); next }
        (at == section && $0 ~ "^" named(key) "=") ||
        (at == "" && section != "" && $0 ~ "^" named(section) "[.]" named(key) "=") {
            sub(/^[^=]*=[ \t]*/, "")
            quote = substr($0, 1, 1)
            $0 = substr($0, 2)
            print substr($0, 1, index($0, quote) - 1)
        }' "$root$config"
}

# config_says SECTION KEY: whether it is true there, in its section or as "section.key".
config_says() {
    [ -e "$root$config" ] && awk -v section="$1" -v key="$2" '
        { sub(/#.*/, ""); gsub(/[ \t]/, "") }
        /^\[/ { at = $0; gsub(/[][]/, "", at); next }
        (at == section && $0 == key "=true") || (at == "" && $0 == section "." key "=true") { found = 1 }
        END { exit !found }' "$root$config"
}

# What the settings say that are there, or will be.
read_config() {
    [ ! -e "$root$config" ] || check_config "$root$config"
    listen=$(config_value "" listen "$default_listen")
    configured_endpoint=$(config_value "" runtime_endpoint /run/containerd/containerd.sock)
    socket_path "$listen" "$config"
    listen=$socket
    socket_path "$configured_endpoint" "$config"
    configured_endpoint=$socket
    state_dir=$(config_value "" state_dir /var/lib/cri-device-shim)
    plugin_dir=$(config_value plugins plugin_dir /var/lib/cri-device-shim/device-plugins)
    kubelet_plugin_dir=$(config_value bridge kubelet_plugin_dir /var/lib/kubelet/device-plugins)
}

check_config() {
    "$program" --check-config "$1" >/dev/null || die "the settings are not valid"
}

# Only what differs from the defaults: those of the next version are to count, too.
config_text() {
    cat <<END
# Settings of cri-device-shim, made by cri-device-shimctl node enable. What is not set here has its default.
# Every setting with its default: $example_doc
# After a change: cri-device-shim --check-config $config

# The socket of the container runtime, as the kubelet used it before.
runtime_endpoint = "$runtime_endpoint"
END
}

plan_config() {
    [ ! -e "$root$config" ] || return 0
    config_text >"$work/config.toml"
    check_config "$work/config.toml"
    stage "$work/config.toml" "$config" 644
    change "$config" "$work/new$config"
}
