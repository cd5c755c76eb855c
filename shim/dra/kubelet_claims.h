/*
 * Whether the kubelet has a claim in its own books: dra_manager_state in its root directory, which
 * says so before a driver is asked to prepare it, and until it was unprepared
 * (pkg/kubelet/cm/dra/claiminfo.go). It is looked for by its uid alone, whatever the file's form,
 * so that one too many may be found and none too few.
 */
#ifndef SHIM_DRA_KUBELET_CLAIMS_H
#define SHIM_DRA_KUBELET_CLAIMS_H

#include <uv.h>

/* What is read of it at most: some thousand claims have 2 MiB. */
#define KUBELET_CLAIMS_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* `registry_dir` is the kubelet's plugins_registry, beside which the file lies; it and `uid` are
 * copied. Reads in libuv's worker. Ends in `done`, from the loop: `found` is 1, 0, or a negative
 * errno; a kubelet without the file has no claim. */
void kubelet_claims_ask(uv_loop_t *loop, const char *registry_dir, const char *uid,
                        void (*done)(void *user, int found), void *user);

#endif
