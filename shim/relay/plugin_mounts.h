/*
 * Plugins in pods, which register in a directory of the kubelet's (device plugins where its socket
 * is, DRA drivers where it looks for theirs): which containers get ours in its place, and what the
 * log says of it.
 */
#ifndef SHIM_RELAY_PLUGIN_MOUNTS_H
#define SHIM_RELAY_PLUGIN_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "shim/relay/create_container.h"

/* Containers whose line in the log is remembered; of the oldest it is said again. */
#define PLUGIN_MOUNTS_TOLD_MAX 256

/* A pod that has it, with the value "true", is named (below). */
#define PLUGIN_MOUNTS_ANNOTATION "dra.cri-device-shim/redirect"

/* For embedding; zeroed it redirects nothing, and it holds nothing to free. What it points to is
 * borrowed. */
struct plugin_mounts {
    const char *from;  /* the kubelet's directory; NULL: nothing is redirected */
    const char *to;    /* ours */
    const char *whose; /* whom that is for, for people: "device plugin" */
    bool named_only;   /* not every pod, but those named: by the annotation, or by one of these */
    const char *const *pods; /* "namespace/name", either with glob(7) characters */
    size_t pods_len;
    uint64_t told[PLUGIN_MOUNTS_TOLD_MAX]; /* hashes */
    size_t told_next;
};

/*
 * Whether the container mounts `from`, so that its request is to be given to mount_redirect(). Says
 * so in the log, and warns of a mount that holds `from` or lies in it, which stays as it is: once
 * for each pod and container. A read-only mount stays, too: nobody can make a socket in it
 * (bind(2), EROFS), so that it is no plugin's but of one that reads what the kubelet keeps there;
 * of directories above that is not worth a line. Of a pod that is not named nothing is said.
 * `request` is what create_container_request() makes of `c`.
 */
bool plugin_mounts_look(struct plugin_mounts *m, const struct create_container *c,
                        const struct devicemgr_create *request);

#endif
