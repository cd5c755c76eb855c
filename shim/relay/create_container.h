/*
 * A CreateContainer request, read; and the fragment that gives it device runtime options.
 *
 * The request is decoded only to read, and only what is wanted of it (cri-proto/create_v1.proto).
 * What is put in is a second, partial CreateContainerRequest in front of the caller's own bytes:
 * protobuf merges the two (repeated fields are appended, so the plugin's envs, mounts and devices
 * come first and the pod's later env wins in the runtime; of map entries with one key the later,
 * the caller's, wins), which is what the kubelet does with a plugin's answer, and unknown fields
 * survive.
 */
#ifndef SHIM_RELAY_CREATE_CONTAINER_H
#define SHIM_RELAY_CREATE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"

struct create_container; /* a decoded request */

/*
 * Decodes `bytes`: whatever a runtime makes a request of, which protobuf-c does not always
 * (wire.h). 0 and *out, or the gRPC code of what is wrong: RPC_INTERNAL: it does not parse, for a
 * runtime neither; RPC_INVALID_ARGUMENT: an annotation, a label or the name of a CDI device does
 * not, of which one runtime makes this and another one that; RPC_RESOURCE_EXHAUSTED: it would take
 * too much memory. `bytes` are not needed afterwards.
 */
int create_container_read(const uint8_t *bytes, size_t len, struct create_container **out)
    __attribute__((warn_unused_result));
void create_container_free(struct create_container *c); /* accepts NULL */

/*
 * The request as the device manager wants it, without deadline_ms; borrowed from `c`. A request
 * without sandbox_config (the kubelet always sends it) is taken for the pod named by the
 * container's labels, else for a pod whose uid is the sandbox id.
 */
void create_container_request(struct create_container *c, struct devicemgr_create *out);

/* What the container mounts from the host: the host_path of each of its mounts, borrowed from `c`,
 * and whether it is read-only there. */
size_t create_container_mounts_len(const struct create_container *c);
const char *create_container_mount(const struct create_container *c, size_t index);
bool create_container_mount_readonly(const struct create_container *c, size_t index);

/*
 * Packs the fragment that goes in front of the request at `bytes`, which could be read: that says
 * whose ids its mounts are to have. 0 and *out (the caller frees it) with *out_len, -ENOMEM, or
 * -EMSGSIZE: those may be over RELAY_MESSAGE_BYTES_MAX.
 */
int create_container_fragment(const V1beta1__ContainerAllocateResponse *options,
                              const uint8_t *bytes, size_t len, uint8_t **out, size_t *out_len)
    __attribute__((warn_unused_result));

/* The container's id in a CreateContainerResponse, which the caller frees; NULL: none can be
 * read. */
char *create_container_id(const uint8_t *message, size_t len);
/*
 * What a runtime answers for its own haste, and not for the container: its caller gave up or was
 * too slow, or it is itself about to end. The container may be made all the same: CRI-O keeps one
 * that came too late, and hands it out when it is asked for again. `status`: gRPC's.
 */
bool create_container_may_be(int status);

#endif
