#include "devicemgr/rules/lapsed.h"

#include <string.h>

#include "devicemgr/rules/claimed.h"
#include "devicemgr/rules/rule.h"

/* Whether the cluster has said that the claim is reserved for the pod, or, `is` false, that it is
 * not. */
static bool is_reserved(const struct state *state, const struct claim *claim, const char *pod_uid,
                        bool is)
{
    const struct consumers *consumers = consumers_find(state->tainted.consumers, claim->uid);

    return consumers && ids_contain(&consumers->reserved_for, pod_uid) == is;
}

/* What the kubelet names of it may be of a call that was none of ours: that its driver has moved
 * says the claim, too. */
static bool may_be_the_kubelets(const struct state *state, const struct claim *claim)
{
    const struct driver *driver = drivers_find(&state->drivers, claim->driver);

    return claim->moved || (driver && driver->elsewhere);
}

/* Whether some claim has it now by which the pod may have it. */
static bool is_of_now(const struct state *state, const struct claim *claim, const char *name,
                      const char *pod_uid)
{
    bool ours = is_reserved(state, claim, pod_uid, true);

    for (const struct claim *c = state->claims.by_key; c; c = c->hh.next) {
        if (claim_state_kept(c->state) && claim_has_cdi(c, name) &&
            !(ours && is_reserved(state, c, pod_uid, false)))
            return true;
    }
    return false;
}

/* Whether the request has the name by this device: several may have had it. */
static bool is_by_device(const struct devicemgr_create *request,
                         const struct granted_device *former, const char *name)
{
    return ids_contain(&former->cdi, name) &&
           granted_device_named(former, request->cdi_devices, request->cdi_devices_len);
}

static bool is_by_former(const struct devicemgr_create *request, const struct claim *claim,
                         const char *name)
{
    size_t i = 0;

    while (i < claim->lapsed.len && !is_by_device(request, &claim->lapsed.v[i], name))
        i++;
    return i < claim->lapsed.len;
}

/* Whether the claim has the device in the place of one by which the request has the name. */
static bool is_in_its_place(const struct devicemgr_create *request, const struct claim *claim,
                            const char *name, const struct granted_device *device)
{
    for (size_t i = 0; i < claim->lapsed.len; i++) {
        const struct granted_device *former = &claim->lapsed.v[i];

        if (is_by_device(request, former, name) && granted_meant_alike(device, former))
            return true;
    }
    return false;
}

/* Whether the request names what the claim has in the place of what had the name. */
static bool names_of_now(const struct devicemgr_create *request, const struct claim *claim,
                         const char *name)
{
    size_t i = 0;

    while (i < claim->devices.len &&
           !(is_in_its_place(request, claim, name, &claim->devices.v[i]) &&
             granted_device_named(&claim->devices.v[i], request->cdi_devices,
                                  request->cdi_devices_len)))
        i++;
    return i < claim->devices.len;
}

/* Whether it may be by one that the kubelet had prepared itself, and that nobody knows here. */
static bool may_be_unknown(const struct state *state, const struct claim *claim)
{
    const struct driver *driver = drivers_find(&state->drivers, claim->driver);

    return driver && driver->was_elsewhere;
}

/* Whether it is by this claim that the request has the name, which may be the device's, whatever
 * claim it is given by. */
static bool is_by(const struct state *state, const struct devicemgr_create *request,
                  const struct claim *claim, const char *name)
{
    return strstr(name, claim->uid) || is_reserved(state, claim, request->pod_uid, true) ||
           (names_of_now(request, claim, name) && !may_be_unknown(state, claim) &&
            !is_reserved(state, claim, request->pod_uid, false));
}

/* The claim that had it before, and by which the request has it; NULL: none is known to be that. */
static const struct claim *find_former(const struct state *state,
                                       const struct devicemgr_create *request, const char *name)
{
    for (const struct claim *c = state->claims.by_key; c; c = c->hh.next) {
        if (claim_state_kept(c->state) && is_by_former(request, c, name) &&
            !may_be_the_kubelets(state, c) && is_by(state, request, c, name) &&
            !is_of_now(state, c, name, request->pod_uid))
            return c;
    }
    return NULL;
}

static void add_of_now(const struct devicemgr_create *request, const struct claim *claim,
                       const char *name, struct ids *to)
{
    for (size_t i = 0; i < claim->devices.len; i++) {
        const struct granted_device *device = &claim->devices.v[i];

        for (size_t k = 0; is_in_its_place(request, claim, name, device) && k < device->cdi.len;
             k++) {
            if (!claimed_names(request, 0, device->cdi.v[k]))
                ids_add_new(to, device->cdi.v[k]);
        }
    }
}

struct renames lapsed_look(const struct state *state, const struct devicemgr_create *request)
{
    struct renames renames = {0};

    for (size_t i = 0; i < request->cdi_devices_len; i++) {
        const char *name = request->cdi_devices[i];
        const struct claim *claim =
            renames_find(&renames, name) ? NULL : find_former(state, request, name);

        if (claim)
            add_of_now(request, claim, name, &renames_add(&renames, name)->to);
    }
    return renames;
}
