# shellcheck shell=bash disable=SC2034,SC2154 # what node.sh and its files share
# config.toml: what the installer reads of it, and the one it writes where there is none. For
# node.sh to source. Of the sourcing script: $root, $program, $prefix, $work, $config,
# $runtime_endpoint, $force, $agent_wanted and the defaults.

# Of the settings that are there, or will be; paths.
listen=              # the shim's socket
configured_endpoint= # the runtime's
state_dir=
plugin_dir=
kubelet_plugin_dir=
registry_dir=
kubelet_registry_dir=
control_socket=
annotations= # whether pods may ask for devices by them

# config_value NAME DEFAULT: what a setting is, as the program itself reads the file; without one, the
# default.
config_value() {
    if [ -e "$root$config" ]; then
        "$program" --config "$root$config" --setting "$1"
    else
        say "$2"
    fi
}

# What the settings say that are there, or will be.
read_config() {
    local cluster
    [ ! -e "$root$config" ] || check_config "$root$config"
    listen=$(config_value listen "$default_listen")
    configured_endpoint=$(config_value runtime_endpoint /run/containerd/containerd.sock)
    socket_path "$listen" "$config"
    socket_path "$configured_endpoint" "$config"
    state_dir=$(config_value state_dir /var/lib/cri-device-shim)
    plugin_dir=$(config_value plugins.plugin_dir /var/lib/cri-device-shim/device-plugins)
    kubelet_plugin_dir=$(config_value bridge.kubelet_plugin_dir "$default_kubelet_plugin_dir")
    registry_dir=$(config_value dra.registry_dir /var/lib/cri-device-shim/plugins_registry)
    kubelet_registry_dir=$(config_value dra.kubelet_registry_dir "$default_kubelet_registry_dir")
    cluster=$(config_value cluster.enabled false)
    [ "$cluster" != true ] || agent_wanted=yes
}

# What the way back needs of them; the build whose program would say it may be gone.
read_config_for_disable() {
    [ -x "$program" ] || program=$prefix/bin/cri-device-shim
    if ! listen=$(config_value listen "$default_listen") ||
        ! control_socket=$(config_value control.socket "$default_control_socket") ||
        ! annotations=$(config_value annotations.enabled false) ||
        ! kubelet_plugin_dir=$(config_value bridge.kubelet_plugin_dir "$default_kubelet_plugin_dir") ||
        ! kubelet_registry_dir=$(config_value dra.kubelet_registry_dir "$default_kubelet_registry_dir"); then
        [ "$force" = yes ] || die "what $config says is not known; --force goes by the defaults"
        listen=$default_listen
        control_socket=$default_control_socket
        annotations=false
        kubelet_plugin_dir=$default_kubelet_plugin_dir
        kubelet_registry_dir=$default_kubelet_registry_dir
    fi
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
    wish "$config" "$work/config.toml" 644
}
