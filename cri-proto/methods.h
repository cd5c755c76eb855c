/*
 * The gRPC methods this project knows by name.
 *
 * The relay looks every request's :path up here. A path that is not in the table is relayed like
 * any other byte; one that is has a class, which says how much of it the shim looks at.
 */
#ifndef CRI_PROTO_METHODS_H
#define CRI_PROTO_METHODS_H

#include <stddef.h>

/* The API version a plugin must ask for, and the only one the kubelet takes. */
#define DEVICEPLUGIN_VERSION "v1beta1"

#define DEVICEPLUGIN_REGISTER "/v1beta1.Registration/Register"
#define DEVICEPLUGIN_GET_OPTIONS "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define DEVICEPLUGIN_LIST_AND_WATCH "/v1beta1.DevicePlugin/ListAndWatch"
#define DEVICEPLUGIN_GET_PREFERRED_ALLOCATION "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define DEVICEPLUGIN_ALLOCATE "/v1beta1.DevicePlugin/Allocate"
#define DEVICEPLUGIN_PRE_START_CONTAINER "/v1beta1.DevicePlugin/PreStartContainer"

#define PLUGINREGISTRATION_GET_INFO "/pluginregistration.Registration/GetInfo"
#define PLUGINREGISTRATION_NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"

/* The alpha's proto package is v1alpha3, and its directory v1alpha4. */
#define DRA_V1_PREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define DRA_V1_UNPREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
#define DRA_V1BETA1_PREPARE "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources"
#define DRA_V1BETA1_UNPREPARE                                                                      \
    "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources"
#define DRA_ALPHA_PREPARE "/v1alpha3.Node/NodePrepareResources"
#define DRA_ALPHA_UNPREPARE "/v1alpha3.Node/NodeUnprepareResources"
#define DRA_HEALTH_V1ALPHA1_WATCH "/v1alpha1.DRAResourceHealth/NodeWatchResources"

#define CRI_VERSION_PATH "/runtime.v1.RuntimeService/Version"
#define CRI_STATUS_PATH "/runtime.v1.RuntimeService/Status"
#define CRI_LIST_POD_SANDBOX_PATH "/runtime.v1.RuntimeService/ListPodSandbox"
#define CRI_LIST_CONTAINERS_PATH "/runtime.v1.RuntimeService/ListContainers"
#define CRI_STREAM_POD_SANDBOXES_PATH "/runtime.v1.RuntimeService/StreamPodSandboxes"
#define CRI_STREAM_CONTAINERS_PATH "/runtime.v1.RuntimeService/StreamContainers"
#define CRI_STOP_CONTAINER_PATH "/runtime.v1.RuntimeService/StopContainer"
#define CRI_STOP_POD_SANDBOX_PATH "/runtime.v1.RuntimeService/StopPodSandbox"
#define CRI_GET_CONTAINER_EVENTS_PATH "/runtime.v1.RuntimeService/GetContainerEvents"

#define BRIDGE_WATCH "/bridge.v1.Feed/Watch"
#define BRIDGE_REPORT "/bridge.v1.Feed/Report"
#define BRIDGE_PREFER "/bridge.v1.Feed/Prefer"
#define BRIDGE_WATCH_DRIVERS "/bridge.v1.Feed/WatchDrivers"
#define BRIDGE_WATCH_HEALTH "/bridge.v1.Feed/WatchHealth"
#define BRIDGE_PREPARE_CLAIMS "/bridge.v1.Feed/PrepareClaims"
#define BRIDGE_UNPREPARE_CLAIMS "/bridge.v1.Feed/UnprepareClaims"

#define AGENT_WATCH "/agent.v1.Feed/Watch"
#define AGENT_REPORT "/agent.v1.Feed/Report"
#define AGENT_ANSWER "/agent.v1.Feed/Answer"

/* cri-proto/control_v1.proto, and where the daemon serves it unless its settings say otherwise. */
#define CONTROL_STATUS "/control.v1.Control/Status"
#define CONTROL_WHY "/control.v1.Control/Why"
#define CONTROL_RESOURCES "/control.v1.Control/Resources"
#define CONTROL_PLUGINS "/control.v1.Control/Plugins"
#define CONTROL_DEVICES "/control.v1.Control/Devices"
#define CONTROL_ALLOCATIONS "/control.v1.Control/Allocations"
#define CONTROL_PODS "/control.v1.Control/Pods"
#define CONTROL_EVENTS "/control.v1.Control/Events"
#define CONTROL_RELOAD "/control.v1.Control/Reload"
#define CONTROL_LOG_LEVEL "/control.v1.Control/LogLevel"
#define CONTROL_STEER "/control.v1.Control/Steer"
#define CONTROL_CHECKPOINT_EXPORT "/control.v1.Control/CheckpointExport"
#define CONTROL_CHECKPOINT_VERIFY "/control.v1.Control/CheckpointVerify"
#define CONTROL_RELEASE "/control.v1.Control/Release"
#define CONTROL_END "/control.v1.Control/End"
#define CONTROL_ORDERS "/control.v1.Control/Orders"
#define CONTROL_DRIVERS "/control.v1.Control/Drivers"
#define CONTROL_CLAIMS "/control.v1.Control/Claims"
#define CONTROL_TAINTS "/control.v1.Control/Taints"
#define CONTROL_ENDINGS "/control.v1.Control/Endings"
#define CONTROL_DRIVER_DEVICES "/control.v1.Control/DriverDevices"
#define CONTROL_SOCKET_DEFAULT "/run/cri-device-shim/control.sock"

/* The numbers are in what connections are kept by, from release to release: new ones come last. */
enum cri_method {
    CRI_OTHER, /* relayed, not looked at */
    CRI_RUN_POD_SANDBOX,
    CRI_STOP_POD_SANDBOX,
    CRI_REMOVE_POD_SANDBOX,
    CRI_CREATE_CONTAINER,
    CRI_REMOVE_CONTAINER,
    CRI_VERSION, /* with the next: only as far as relists.h wants to see them */
    CRI_LIST_POD_SANDBOX,
    CRI_STREAM_POD_SANDBOXES, /* the same as a stream, since CRI 0.36 (CRIListStreaming) */
    CRI_LIST_CONTAINERS,
    CRI_STREAM_CONTAINERS,
    CRI_GET_CONTAINER_EVENTS, /* has no end of its own */
};
#define CRI_METHODS (CRI_GET_CONTAINER_EVENTS + 1)

enum cri_method_class {
    CRI_CLASS_RELAYED,
    CRI_CLASS_OBSERVED,    /* its bytes pass, a copy is parsed */
    CRI_CLASS_INTERCEPTED, /* its request waits until the shim has decided */
};

/* The method of a :path; CRI_OTHER for any that the table does not hold. `path` need not end in
 * NUL. */
enum cri_method cri_method_find(const char *path, size_t path_len);

/* As long as nobody says otherwise for one connection (session_set_class()). */
enum cri_method_class cri_method_class(enum cri_method method);

/* The method's bare name, "CreateContainer"; "other" for CRI_OTHER. */
const char *cri_method_name(enum cri_method method);

#endif
