#include "cri-proto/methods.h"

#include <string.h>

/* Without the leading slash, which grpc-go servers do not insist on. */
#define RUNTIME_SERVICE "runtime.v1.RuntimeService/"

struct entry {
    const char *name;
    enum cri_method method;
    enum cri_method_class class;
};

static const struct entry TABLE[] = {
    {"RunPodSandbox", CRI_RUN_POD_SANDBOX, CRI_CLASS_OBSERVED},
    {"StopPodSandbox", CRI_STOP_POD_SANDBOX, CRI_CLASS_OBSERVED},
    {"RemovePodSandbox", CRI_REMOVE_POD_SANDBOX, CRI_CLASS_OBSERVED},
    {"CreateContainer", CRI_CREATE_CONTAINER, CRI_CLASS_INTERCEPTED},
    {"RemoveContainer", CRI_REMOVE_CONTAINER, CRI_CLASS_OBSERVED},
    {"Version", CRI_VERSION, CRI_CLASS_RELAYED},
    {"ListPodSandbox", CRI_LIST_POD_SANDBOX, CRI_CLASS_RELAYED},
    {"StreamPodSandboxes", CRI_STREAM_POD_SANDBOXES, CRI_CLASS_RELAYED},
    {"ListContainers", CRI_LIST_CONTAINERS, CRI_CLASS_RELAYED},
    {"StreamContainers", CRI_STREAM_CONTAINERS, CRI_CLASS_RELAYED},
    {"GetContainerEvents", CRI_GET_CONTAINER_EVENTS, CRI_CLASS_OBSERVED},
};

#define TABLE_LEN (sizeof TABLE / sizeof TABLE[0])

enum cri_method cri_method_find(const char *path, size_t path_len)
{
    size_t prefix_len = strlen(RUNTIME_SERVICE);

    if (path_len > 0 && path[0] == '/') {
        path++;
        path_len--;
    }
    if (path_len <= prefix_len || memcmp(path, RUNTIME_SERVICE, prefix_len) != 0)
        return CRI_OTHER;
    path += prefix_len;
    path_len -= prefix_len;
    for (size_t i = 0; i < TABLE_LEN; i++) {
        if (strlen(TABLE[i].name) == path_len && memcmp(path, TABLE[i].name, path_len) == 0)
            return TABLE[i].method;
    }
    return CRI_OTHER;
}

static const struct entry *entry_of(enum cri_method method)
{
    for (size_t i = 0; i < TABLE_LEN; i++) {
        if (TABLE[i].method == method)
            return &TABLE[i];
    }
    return NULL;
}

enum cri_method_class cri_method_class(enum cri_method method)
{
    const struct entry *e = entry_of(method);

    return e ? e->class : CRI_CLASS_RELAYED;
}

const char *cri_method_name(enum cri_method method)
{
    const struct entry *e = entry_of(method);

    return e ? e->name : "other";
}
