#include "tests/sim/answer_options.h"

#include <stdlib.h>

#include "shim/hash.h"
#include "tests/sim/heap.h"

V1beta1__ContainerAllocateResponse *answer_options_new(void)
{
    V1beta1__ContainerAllocateResponse *options = heap_alloc(1, sizeof *options);

    v1beta1__container_allocate_response__init(options);
    return options;
}

void answer_options_free(V1beta1__ContainerAllocateResponse *options)
{
    if (options)
        v1beta1__container_allocate_response__free_unpacked(options, NULL);
}

void answer_options_add_env(V1beta1__ContainerAllocateResponse *options, const char *key,
                            const char *value)
{
    V1beta1__ContainerAllocateResponse__EnvsEntry *env = heap_alloc(1, sizeof *env);

    v1beta1__container_allocate_response__envs_entry__init(env);
    env->key = heap_strdup(key);
    env->value = heap_strdup(value);
    options->envs = heap_grow(options->envs, options->n_envs, sizeof *options->envs);
    options->envs[options->n_envs++] = env;
}

void answer_options_add_annotation(V1beta1__ContainerAllocateResponse *options, const char *key,
                                   const char *value)
{
    V1beta1__ContainerAllocateResponse__AnnotationsEntry *entry = heap_alloc(1, sizeof *entry);

    v1beta1__container_allocate_response__annotations_entry__init(entry);
    entry->key = heap_strdup(key);
    entry->value = heap_strdup(value);
    options->annotations =
        heap_grow(options->annotations, options->n_annotations, sizeof *options->annotations);
    options->annotations[options->n_annotations++] = entry;
}

void answer_options_add_device(V1beta1__ContainerAllocateResponse *options,
                               const char *container_path, const char *host_path)
{
    V1beta1__DeviceSpec *device = heap_alloc(1, sizeof *device);

    v1beta1__device_spec__init(device);
    device->container_path = heap_strdup(container_path);
    device->host_path = heap_strdup(host_path);
    device->permissions = heap_strdup("rw");
    options->devices = heap_grow(options->devices, options->n_devices, sizeof *options->devices);
    options->devices[options->n_devices++] = device;
}

void answer_options_add_cdi(V1beta1__ContainerAllocateResponse *options, const char *name)
{
    V1beta1__CDIDevice *device = heap_alloc(1, sizeof *device);

    v1beta1__cdidevice__init(device);
    device->name = heap_strdup(name);
    options->cdi_devices =
        heap_grow(options->cdi_devices, options->n_cdi_devices, sizeof *options->cdi_devices);
    options->cdi_devices[options->n_cdi_devices++] = device;
}

uint64_t answer_options_hash(const V1beta1__ContainerAllocateResponse *options)
{
    size_t len = v1beta1__container_allocate_response__get_packed_size(options);
    uint8_t *bytes = heap_alloc(len, 1);
    uint64_t value;

    v1beta1__container_allocate_response__pack(options, bytes);
    value = hash_bytes(HASH_BEGIN, bytes, len);
    free(bytes);
    return value;
}
