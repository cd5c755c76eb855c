/*
 * Whether the kubelet has a claim in its own books: dra_manager_state in its root directory, which
 * says so before a driver is asked to prepare it, and until it was unprepared; and, from the
 * driver's answer on, its devices (pkg/kubelet/cm/dra/claiminfo.go, state/state_checkpoint.go). It
 * is looked for by its uid alone, whatever the file's form, so that one too many may be found and
 * none too few; then by the form that releases have had since 1.31.
 */
#ifndef SHIM_DRA_KUBELET_CLAIMS_H
#define SHIM_DRA_KUBELET_CLAIMS_H

#include <jansson.h>
#include <uv.h>

/* What is read of it at most: some thousand claims have 2 MiB. */
#define KUBELET_CLAIMS_BYTES_MAX ((size_t)16 * 1024 * 1024)

enum kubelet_claim {
    KUBELET_CLAIM_NONE,
    KUBELET_CLAIM_NAMED,    /* it may be: the file has its uid, in a form that is not known */
    KUBELET_CLAIM_BEGUN,    /* the driver has not answered yet, or had nothing to give */
    KUBELET_CLAIM_PREPARED, /* it has */
};

/* `registry_dir` is the kubelet's plugins_registry, beside which the file lies; it, the driver's
 * name and the claim's uid are copied. Reads in libuv's worker. Ends in `done`, from the loop:
 * `found` is one of these, or a negative errno; a kubelet without the file has no claim. */
void kubelet_claims_ask(uv_loop_t *loop, const char *registry_dir, const char *driver,
                        const char *uid, void (*done)(void *user, int found), void *user);

/* All of its claims, for who may block on the disk: 0 and *list, the file's ClaimInfoStateList,
 * which the caller gives to json_decref(); NULL if there is no file, or `driver` is nowhere in it.
 * Or a negative errno; -EBADMSG: its form is not known. */
int kubelet_claims_read(const char *registry_dir, const char *driver, json_t **list)
    __attribute__((warn_unused_result));

#endif
