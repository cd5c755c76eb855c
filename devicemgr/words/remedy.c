#include "devicemgr/words/remedy.h"

#define BY_ITSELF "nothing is to be done: "

static const char *const REMEDIES[REASON_KINDS] = {
    [REASON_NONE] = BY_ITSELF "the plugin is asked which devices it prefers",
    [REASON_REQUEST_UNREADABLE] = "make the pod anew with an annotation that can be read",
    [REASON_ANNOTATIONS_OFF] = "ask by resources.limits, or set annotations.enabled on this node",
    [REASON_NAMESPACE_NOT_ALLOWED] = "ask by resources.limits, or add the pod's namespace to "
                                     "annotations.namespaces on this node",
    [REASON_PUBLISHED] =
        "ask by a ResourceClaim, for which cri-device-shimctl deviceclass RESOURCE "
        "has the class",
    [REASON_NAMES_TOO_LONG] = "make the pod anew with shorter names",
    [REASON_NO_POD_UID] = "the client of the runtime must name the pod's uid; a kubelet does",
    [REASON_OTHER_PODS_SANDBOX] = "the client of the runtime must name the sandbox of the pod",
    [REASON_REQUEST_CHANGED] = "make the pod anew: a container's devices are as many as at first",
    [REASON_TOKEN_GONE] = BY_ITSELF "the kubelet is removing the pod; a new one of it starts",
    [REASON_TAKEN_OVER] = BY_ITSELF "the newer create goes on",
    [REASON_TOO_MANY_CREATES] = "creates must come to an end: look at the runtime and the plugins",
    [REASON_NODE_SHUTS_DOWN] = BY_ITSELF "the machine goes down, and the pod starts when it is up "
                                         "again; or the shutdown is cancelled (shutdown -c; before "
                                         "systemd 257 systemctl restart systemd-logind behind it)",
    [REASON_POD_ENDED] =
        "cri-device-shimctl end --cancel POD, if the operator has ended it, when it may "
        "run again; else what it was ended for must end",
    [REASON_SANDBOX_STOPS] = BY_ITSELF "the pod ends; the kubelet makes a new sandbox if it must "
                                       "run on",
    [REASON_SANDBOX_REMOVED] = BY_ITSELF "the kubelet makes a new sandbox if the pod must run on",
    [REASON_SANDBOX_NOT_READY] = BY_ITSELF "the runtime lists the sandbox as ready, or the kubelet "
                                           "makes a new one",
    [REASON_RESOURCE_UNKNOWN] = "start the resource's plugin, and see that it registers in "
                                "plugins.plugin_dir",
    [REASON_PLUGIN_AWAY] = "start the resource's plugin: look at its pod or unit, and its log",
    [REASON_DEVICES_UNHEALTHY] = "the plugin must list the devices as healthy: look at its log and "
                                 "the hardware",
    [REASON_NO_OTHER_DEVICE] = "a pod that has such devices must end, or the plugin list them as "
                               "healthy: look at its log and the hardware",
    [REASON_REPLACING] = BY_ITSELF "the kubelet takes a list without the devices, and writes its "
                                   "checkpoint; if it does not, start the bridge",
    [REASON_TOO_FEW_ARE_HEALTHY] =
        "the plugin must list more devices as healthy, or a pod that has "
        "some must end",
    [REASON_TOO_FEW_DEVICES] = "a pod that has such devices must end, or this one ask for less",
    [REASON_RESOURCE_WITHDRAWN] =
        "cri-device-shimctl withdraw --undo RESOURCE, when it may be used "
        "here again",
    [REASON_DEVICES_CORDONED] =
        "cri-device-shimctl uncordon RESOURCE ID, when the device may be used "
        "again",
    [REASON_TOO_FEW_ARE_UNCORDONED] =
        "cri-device-shimctl uncordon RESOURCE ID, when the devices may "
        "be used again; or a pod that has some must end",
    [REASON_DEVICES_TAINTED] = "see cri-device-shimctl taints; untaint RESOURCE ID KEY, when the "
                               "device may be used again, "
                               "or make the pod anew with a toleration",
    [REASON_TOO_FEW_ARE_UNTAINTED] =
        "see cri-device-shimctl taints; untaint RESOURCE ID KEY, or a pod that has some must end",
    [REASON_HOLDER_RUNS] = "the holder's container must end",
    [REASON_HOLDER_ASKED] = BY_ITSELF "the runtime is asked whether the holder's container runs, "
                                      "and the device is free if it does not",
    [REASON_HOLDER_UNKNOWN] = BY_ITSELF "the runtime's next list says whether the holder runs",
    [REASON_HOLDER_CREATED] = BY_ITSELF "the runtime answers the holder's CreateContainer",
    [REASON_UNLISTED] = "the runtime must answer: see cri-device-shimctl status, and its log",
    [REASON_UNLISTED_AGAIN] = BY_ITSELF "the runtime is listed once more within seconds",
    [REASON_CDI_NOT_READ] = "switch CDI on in the runtime's settings (containerd from 1.7.2 on: "
                            "enable_cdi), take a newer runtime, or have the plugin give its "
                            "devices in another way",
    [REASON_CDI_UNHEARD] = BY_ITSELF "the runtime is asked whether it reads CDI devices; if it "
                                     "does not answer, look at its log",
    [REASON_CLAIM_HELD] =
        "the holder's container must end: its claim was given away while it runs, as "
        "after a pod is deleted by force",
    [REASON_CALL_QUEUED] = "the plugin must answer for the others; raise the resource's "
                           "allocates_at_once if it may be asked for several at once",
    [REASON_CALL_UNANSWERED] = "the plugin must answer: look at its log",
    [REASON_CALL_FAILED] = "the plugin must not fail: look at its log",
    [REASON_ANSWER_TOO_LARGE] = "the plugin must answer with less, or pods with devices must end",
    [REASON_ROWS_UNREAD] = "the checkpoint in state_dir must be readable: see cri-device-shimctl "
                           "status",
    [REASON_UNSTORED] = "the disk with state_dir must take what is written: see cri-device-shimctl "
                        "status",
    [REASON_STORE_FAILED] = "the disk with state_dir must take what is written: see "
                            "cri-device-shimctl status",
};

const char *remedy_of(enum reason_kind kind)
{
    return REMEDIES[kind];
}
