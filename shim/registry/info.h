/*
 * What a plugin says of itself (PluginInfo), held against what the kubelet's handlers expect
 * (pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, pkg/kubelet/cm/dra/plugin). Messages in,
 * words out; no state.
 */
#ifndef SHIM_REGISTRY_INFO_H
#define SHIM_REGISTRY_INFO_H

#include <stdbool.h>

#include "cri-proto/pluginregistration_v1.pb-c.h"

#define INFO_WORDS_BYTES_MAX 1024

enum info_kind {
    INFO_DRIVER, /* "DRAPlugin" */
    INFO_PLUGIN, /* "DevicePlugin" */
    INFO_OTHER,  /* the kubelet's own, such as "CSIPlugin" */
};

enum info_kind info_kind(const Pluginregistration__PluginInfo *info);

/*
 * The plugin's endpoint: what it says, or `socket`, the one that was asked, if it says nothing or
 * means that one: a plugin that serves both on one socket (SR-IOV's, Mellanox's) names it by the
 * kubelet's directory, where its container has what is ours on the host. Borrowed from either.
 */
const char *info_endpoint(const Pluginregistration__PluginInfo *info, const char *socket);

/*
 * Whether a driver or plugin may be registered as it says; of other kinds the kubelet judges. Else
 * `words` say what is wrong, in the kubelet's where it has some. They are ASCII and printable,
 * whatever the plugin's are.
 */
bool info_check(const Pluginregistration__PluginInfo *info, const char *socket,
                char words[static INFO_WORDS_BYTES_MAX]) __attribute__((warn_unused_result));

#endif
