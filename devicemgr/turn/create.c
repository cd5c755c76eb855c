/*
 * A CreateContainer comes.
 */
#include "devicemgr/devicemgr.h"

#include <stdlib.h>

#include "devicemgr/rules/lapsed.h"
#include "devicemgr/turn/turn.h"

/* What the request is with other names; it borrows all of it, and the names that are returned,
 * which the caller frees. */
static const char **rename_of(const struct renames *renames, const struct devicemgr_create *request,
                              struct devicemgr_create *out)
{
    const char *const *all = request->cdi_devices;
    size_t annotated = request->cdi_annotated_len, field = request->cdi_devices_len - annotated;
    size_t len = renames_apply(renames, all, request->cdi_devices_len, NULL);
    const char **names = mem_alloc(len, sizeof *names);
    size_t put = renames_apply(renames, all, field, names);

    *out = *request;
    out->cdi_devices = names;
    out->cdi_devices_len = len;
    out->cdi_annotated_len = renames_apply(renames, all + field, annotated, names + put);
    return names;
}

static bool decide(struct devicemgr *mgr, uint64_t create, const struct devicemgr_create *request,
                   bool renamed)
{
    /* Names of CDI devices may be a claim's. */
    if (request->cdi_devices_len > 0 && turn_claims_refuse(mgr, create, request))
        return true;
    if (creates_begin(&mgr->creates, create, request) ||
        creates_begin_claimed(&mgr->creates, create, request, renamed))
        return true;
    adopt_created(&mgr->state, request->sandbox_id, request->pod_uid, request->container);
    refused_made(&mgr->state.refused, request->pod_uid, request->container);
    return false;
}

/* All is decided for the names that go on. */
bool devicemgr_create(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                      const struct devicemgr_create *request)
{
    struct devicemgr_create renamed;
    struct renames renames;
    const char **names;
    bool decided;

    state_at(&mgr->state, now_ms);
    renames = lapsed_look(&mgr->state, request);
    if (renames.len == 0)
        return decide(mgr, create, request, false);
    names = rename_of(&renames, request, &renamed);
    decided = decide(mgr, create, &renamed, true);
    creates_rename(&mgr->creates, create, &renames);
    free(names);
    return decided;
}
