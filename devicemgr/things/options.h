/*
 * Device runtime options: what a plugin's Allocate answers for one container, and how the answers
 * for several resources become one (deviceRunContainerOptions in
 * pkg/kubelet/cm/devicemanager/pod_devices.go).
 */
#ifndef DEVICEMGR_THINGS_OPTIONS_H
#define DEVICEMGR_THINGS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/things/mem.h"

/* An empty message; the caller frees it like every one this header gives out. */
V1beta1__ContainerAllocateResponse *options_new(void);
/* Accepts NULL. */
static inline void options_free(V1beta1__ContainerAllocateResponse *options)
{
    if (options)
        v1beta1__container_allocate_response__free_unpacked(options, NULL);
}

/* What it takes in memory, with what the heap adds to each piece. */
size_t options_bytes(const V1beta1__ContainerAllocateResponse *options);
/* Whether all its texts are UTF-8, as a runtime in Go wants them, and a kubelet: protobuf-c does
 * not look. */
bool options_are_text(const V1beta1__ContainerAllocateResponse *options);
/* Deep, with fields this version does not know; those have numbers that there are. */
V1beta1__ContainerAllocateResponse *options_copy(const V1beta1__ContainerAllocateResponse *options);
/* NULL: not a message, or none that could be packed again (field_numbers.h). */
V1beta1__ContainerAllocateResponse *options_unpack(const void *bytes, size_t bytes_len);
/* The caller frees the bytes. */
uint8_t *options_pack(const V1beta1__ContainerAllocateResponse *options, size_t *bytes_len);
/* Whether both say the same, in the same order. */
bool options_equal(const V1beta1__ContainerAllocateResponse *a,
                   const V1beta1__ContainerAllocateResponse *b);

void options_add_annotation(V1beta1__ContainerAllocateResponse *options, const char *key,
                            const char *value);
void options_add_device(V1beta1__ContainerAllocateResponse *options, const char *container_path,
                        const char *host_path, const char *permissions);

/* A union of several options in which the first that names a key wins: env and annotation by key,
 * device and mount by container path, CDI device by name. */
struct options_merge {
    V1beta1__ContainerAllocateResponse *merged;
    struct options_seen *seen;
    size_t conflicts;                  /* keys met again with something else behind them */
    char *conflict;                    /* the first of them */
    bool (*reserved)(const char *key); /* such annotations are left out from now on; NULL: none */
    size_t left_out;                   /* how many were */
};

void options_merge_init(struct options_merge *merge);
/* `options` only read. */
void options_merge_add(struct options_merge *merge,
                       const V1beta1__ContainerAllocateResponse *options);
/* Ownership goes out; `merge` is to be given to options_merge_fini() all the same. */
V1beta1__ContainerAllocateResponse *options_merge_take(struct options_merge *merge);
void options_merge_fini(struct options_merge *merge);

#endif
