#include "devicemgr/rules/claimed.h"

#include <string.h>

#include "cri-proto/lift_marker.h"

#include "devicemgr/rules/rule.h"

bool claimed_names(const struct devicemgr_create *request, size_t first, const char *name)
{
    for (size_t i = first; i < request->cdi_devices_len; i++) {
        if (strcmp(request->cdi_devices[i], name) == 0)
            return true;
    }
    return false;
}

/* The first of the claim's devices from `*at` on that the request names, behind which `*at` is
 * then; NULL: there is none. */
static const struct granted_device *next_named(const struct claim *claim,
                                               const struct devicemgr_create *request, size_t *at)
{
    while (claim_state_kept(claim->state) && *at < claim->devices.len) {
        const struct granted_device *device = &claim->devices.v[(*at)++];

        if (granted_device_named(device, request->cdi_devices, request->cdi_devices_len))
            return device;
    }
    return NULL;
}

bool claimed_any(const struct state *state, const struct devicemgr_create *request)
{
    const struct claim *claim = request->cdi_devices_len > 0 ? state->claims.by_key : NULL;

    while (claim &&
           (strcmp(claim->driver, LIFT_DRIVER) == 0 || !next_named(claim, request, &(size_t){0})))
        claim = claim->hh.next;
    return claim;
}

/* NULL: nothing was told of who may use it. */
static const struct ids *reserved_for(const struct state *state, const struct claim *claim)
{
    const struct consumers *consumers = consumers_find(state->tainted.consumers, claim->uid);

    return consumers ? &consumers->reserved_for : NULL;
}

bool claimed_by_another(const struct state *state, const struct claim *claim,
                        const struct granted_device *device, const char *pod_uid)
{
    const struct ids *pods = reserved_for(state, claim);

    if (!pods || ids_contain(pods, pod_uid))
        return false;
    for (const struct claim *other = claim->of->first; other; other = other->next) {
        const struct ids *theirs = other == claim ? NULL : reserved_for(state, other);

        if (theirs && ids_contain(theirs, pod_uid) && claim_state_kept(other->state) &&
            granted_has_alike(&other->devices, device))
            return true;
    }
    return false;
}

bool claimed_by(const struct state *state, const struct claim *claim,
                const struct devicemgr_create *request)
{
    const struct granted_device *device;
    size_t at = 0;

    do
        device = next_named(claim, request, &at);
    while (device && claimed_by_another(state, claim, device, request->pod_uid));
    return device;
}

/* ---- who is known to have them ---- */

bool claimed_used(const struct state *state, const char *sandbox_id, const char *container)
{
    const struct claim *claim = state->claims.by_key;

    while (claim && !claim_find_user(claim, sandbox_id, container))
        claim = claim->hh.next;
    return claim;
}

bool claimed_unstored(const struct state *state, const struct claim *claim, const char *sandbox_id,
                      const char *container)
{
    return claim_find_user(claim, sandbox_id, container) && claim_state_kept(claim->state) &&
           dirty_claim_unstored(state, claim);
}

bool claimed_stored(const struct state *state, const char *sandbox_id, const char *container)
{
    const struct claim *claim = state->claims.by_key;

    while (claim && !claimed_unstored(state, claim, sandbox_id, container))
        claim = claim->hh.next;
    return !claim;
}

/* ---- the runtime ---- */

/* From which of the names on it reads them. */
static size_t first_read(const struct state *state, const struct devicemgr_create *request)
{
    switch (state->cdi) {
    case DEVICEMGR_CDI_NONE:
        return request->cdi_devices_len;
    case DEVICEMGR_CDI_ANNOTATED:
        return request->cdi_devices_len - request->cdi_annotated_len;
    default:
        return 0;
    }
}

/* Adds those of the claim that it would not see. */
static void add_unread(const struct state *state, const struct devicemgr_create *request,
                       const struct claim *claim, struct ids *unread)
{
    size_t first = first_read(state, request);

    for (size_t i = 0; i < first; i++) {
        const char *name = request->cdi_devices[i];

        if (claim_has_cdi(claim, name) && !claimed_names(request, first, name) &&
            !lift_marker_is(name, strlen(name))) /* which no runtime is to see */
            ids_add_new(unread, name);
    }
}

/* ---- who has them ---- */

/* One whose sandbox nobody knows, and whose row is of an earlier release, may be of any pod; its
 * name decides. */
static bool is_of_pod(const struct state *state, const struct devicemgr_create *request,
                      const struct claim_user *user)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, user->sandbox_id);
    size_t len = strlen(request->pod_namespace);

    if (strcmp(user->sandbox_id, request->sandbox_id) == 0)
        return true;
    if (sandbox)
        return strcmp(sandbox->pod->uid, request->pod_uid) == 0;
    if (user->pod_uid[0] != '\0')
        return strcmp(user->pod_uid, request->pod_uid) == 0;
    return strncmp(user->pod, request->pod_namespace, len) == 0 && user->pod[len] == '/' &&
           strcmp(user->pod + len + 1, request->pod_name) == 0;
}

/* The first user of these devices of the claim who is of the pod, or of another; NULL: there is
 * none. */
static const struct claim_user *find_user(const struct state *state,
                                          const struct devicemgr_create *request,
                                          const struct claim *claim, const struct granted *devices,
                                          bool of_pod)
{
    for (size_t i = 0; i < claim->users_len; i++) {
        const struct claim_user *user = &claim->users[i];

        if (claim_devices_of(claim, user) == devices && is_of_pod(state, request, user) == of_pod)
            return user;
    }
    return NULL;
}

/* In which of its lists the claim has the device. */
static const struct granted *list_of(const struct claim *claim, const struct granted_device *device)
{
    return granted_find(&claim->former, device) == device ? &claim->former : &claim->devices;
}

/* What it has in the cluster; of one that is allocated nothing any more, or is gone there, what it
 * had: that is with whom it runs, whatever is allocated. The driver of lifted resources (lift.h)
 * answers what that is. */
static bool is_known(const struct claim *claim)
{
    return claim->allocated || claim->alone || strcmp(claim->driver, LIFT_DRIVER) == 0;
}

/* Who has it may share it on purpose, or only look at it: what it had before that it looked at,
 * too. */
static bool is_shared(const struct claim *claim, const struct granted_device *device)
{
    if (list_of(claim, device) == &claim->former && claim_looks(claim))
        return true;
    for (size_t i = 0; i < claim->allocation.len; i++) {
        const struct granted_device *is = &claim->allocation.v[i];

        if ((is->share_id || is->admin) && strcmp(is->pool, device->pool) == 0 &&
            strcmp(is->device, device->device) == 0)
            return true;
    }
    return device->share_id;
}

/* Who is in the way of the request. */
struct rival {
    const struct claim_user *user;             /* NULL: nobody */
    const struct granted_device *made_of_same; /* what they have; NULL: the device itself */
};

/* Whether who has the device may have it by this claim as well as by another: where the names are
 * the device's, a container is known by each claim that has it. */
static bool may_have_by(const struct claim *claim, const struct granted_device *device,
                        const struct claim_user *user)
{
    const struct claim_user *same = claim_find_user(claim, user->sandbox_id, user->container);

    return same && granted_find(claim_devices_of(claim, same), device);
}

/* The first of another pod who has the device by this list of the other claim; `known`: and is not
 * known by that, too, by which the request may have it. NULL: there is none. */
static const struct claim_user *find_user_of(const struct state *state,
                                             const struct devicemgr_create *request,
                                             const struct claim *claim, const struct claim *other,
                                             const struct granted *devices,
                                             const struct granted_device *device, bool known)
{
    const struct granted_device *theirs = granted_find(devices, device);

    for (size_t i = 0; theirs && !is_shared(other, theirs) && i < other->users_len; i++) {
        const struct claim_user *user = &other->users[i];

        if (claim_devices_of(other, user) == devices && !is_of_pod(state, request, user) &&
            !(known && may_have_by(claim, device, user)))
            return user;
    }
    return NULL;
}

/* Who has the device by another claim than that by which the request may have it; `known`: of which
 * the cluster has said what it has. */
static struct rival find_other(const struct state *state, const struct devicemgr_create *request,
                               const struct claim *claim, const struct granted_device *device,
                               bool known)
{
    const struct claim *other = is_shared(claim, device) ? NULL : claim->of->first;
    struct rival rival = {0};

    for (; other && !rival.user; other = other->next) {
        if (other == claim || !claim_state_kept(other->state) || (known && !is_known(other)))
            continue;
        rival.user = find_user_of(state, request, claim, other, &other->devices, device, known);
        if (!rival.user)
            rival.user = find_user_of(state, request, claim, other, &other->former, device, known);
    }
    return rival;
}

/* Devices that are made of the same, as partitions of one: who has such a one. */
struct drawn {
    const char *counter;
    bool known;    /* only those count of which the cluster has said what they have */
    uint64_t left; /* of the counter */
    bool over;     /* there is less than what is drawn */
    uint64_t most; /* that another pod's has */
    struct rival by;
};

static bool is_same(const struct granted_device *a, const struct granted_device *b)
{
    return strcmp(a->pool, b->pool) == 0 && strcmp(a->device, b->device) == 0;
}

/* Whether anybody may run with these devices of the claim. */
static bool are_used(const struct claim *claim, const struct granted *devices)
{
    size_t i = 0;

    while (i < claim->users_len && claim_devices_of(claim, &claim->users[i]) != devices)
        i++;
    return i < claim->users_len;
}

/* A device that somebody may run with by the claim, of what it has and of what it had before. */
static const struct granted_device *next_running(const struct claim *claim, bool known, size_t *at)
{
    while (claim_state_kept(claim->state) && (is_known(claim) || !known) &&
           *at < claim->devices.len + claim->former.len) {
        size_t i = (*at)++;
        const struct granted *of = i < claim->devices.len ? &claim->devices : &claim->former;
        const struct granted_device *device =
            &of->v[of == &claim->former ? i - claim->devices.len : i];

        if (are_used(claim, of) && !is_shared(claim, device))
            return device;
    }
    return NULL;
}

/* Whether the driver's claims have the same device before this one, which is among what they have
 * as well: it is drawn once, however many have it. */
static bool is_drawn_already(const struct claim *claim, const struct granted_device *device,
                             bool known)
{
    for (const struct claim *c = claim->of->first; c; c = c->next) {
        const struct granted_device *theirs;
        size_t at = 0;

        while ((theirs = next_running(c, known, &at))) {
            if (is_same(theirs, device))
                return theirs != device;
        }
    }
    return false;
}

static void draw(const struct state *state, const struct devicemgr_create *request,
                 const struct claim *claim, const struct granted_device *device,
                 struct drawn *drawn)
{
    const struct slice *slice =
        slices_drawing(&state->slices, claim->driver, device->pool, device->device);
    uint64_t much = slice ? slice_draw(slice, device->device, drawn->counter) : 0;
    const struct claim_user *user;

    if (much == 0 || is_drawn_already(claim, device, drawn->known))
        return;
    user = find_user(state, request, claim, list_of(claim, device), false);
    if (much > drawn->most && user) {
        drawn->most = much;
        drawn->by = (struct rival){user, device};
    }
    drawn->over = drawn->over || much > drawn->left;
    drawn->left -= much < drawn->left ? much : drawn->left;
}

/* Whether what is running leaves less of the counter than the device is to have of it. */
static bool is_overdrawn(const struct state *state, const struct devicemgr_create *request,
                         const struct claim *claim, const struct granted_device *device,
                         uint64_t much, struct drawn *drawn)
{
    uint64_t there;

    if (!slices_counter(&state->slices, claim->driver, device->pool, drawn->counter, &there))
        return false;
    drawn->left = much < there ? there - much : 0;
    for (const struct claim *c = claim->of->first; c; c = c->next) {
        const struct granted_device *theirs;
        size_t at = 0;

        while ((theirs = next_running(c, drawn->known, &at))) {
            if (strcmp(theirs->pool, device->pool) == 0 && !is_same(theirs, device))
                draw(state, request, c, theirs, drawn);
        }
    }
    return drawn->over && drawn->by.user;
}

/* Who has a device that cannot be had beside this one; of several the one that takes most. The
 * scheduler looks at it so, but no more at claims that are gone. */
static struct rival find_made_of_same(const struct state *state,
                                      const struct devicemgr_create *request,
                                      const struct claim *claim,
                                      const struct granted_device *device, bool known)
{
    const struct slice *slice =
        is_shared(claim, device)
            ? NULL
            : slices_drawing(&state->slices, claim->driver, device->pool, device->device);

    for (size_t i = 0; slice && i < slice->draws_len; i++) {
        const struct slice_draw *is = &slice->draws[i];
        struct drawn drawn = {.counter = slice->counters[is->counter].name, .known = known};

        if (strcmp(is->device, device->device) == 0 && is->much > 0 &&
            is_overdrawn(state, request, claim, device, is->much, &drawn))
            return drawn.by;
    }
    return (struct rival){0};
}

/* Who has the same, or one that is made of the same. */
static struct rival find_in_the_way(const struct state *state,
                                    const struct devicemgr_create *request,
                                    const struct claim *claim, const struct granted_device *device,
                                    bool known)
{
    struct rival rival = find_other(state, request, claim, device, known);

    return rival.user ? rival : find_made_of_same(state, request, claim, device, known);
}

/* Of one device of a claim that the request names. A pod that has it by now keeps it. Where the
 * driver has the same names for it in several claims, the request may be by each of those. */
static void look_at_device(const struct state *state, const struct devicemgr_create *request,
                           const struct claim *claim, const struct granted_device *device,
                           struct look *look)
{
    struct rival known = find_in_the_way(state, request, claim, device, true);
    struct rival rival = known.user ? known : find_in_the_way(state, request, claim, device, false);
    bool ambiguous = false;

    if (!rival.user || find_user(state, request, claim, &claim->devices, true))
        return;
    for (const struct claim *c = claim->of->first; c; c = c->next) {
        const struct granted_device *same =
            c == claim || !claim_state_kept(c->state) ? NULL : granted_find(&c->devices, device);

        if (!same || !granted_named_alike(same, device))
            continue;
        if (find_user(state, request, c, &c->devices, true))
            return;
        ambiguous = true;
    }
    look_fini(look);
    look->step = is_known(claim) && known.user && !ambiguous ? LOOK_REFUSE : LOOK_GO;
    look->reason = (struct reason){.kind = REASON_CLAIM_HELD,
                                   .claim = claim,
                                   .user = rival.user,
                                   .made_of_same = rival.made_of_same};
    ids_add(&look->reason.ids, device->device);
}

/* GO with a reason is not as bad as REFUSE. */
static void look_at_holders(const struct state *state, const struct devicemgr_create *request,
                            const struct claim *claim, struct look *look)
{
    const struct granted_device *device;
    size_t at = 0;

    while (look->step == LOOK_GO && (device = next_named(claim, request, &at)))
        look_at_device(state, request, claim, device, look);
}

/* ---- all ---- */

struct look claimed_look(const struct state *state, const struct devicemgr_create *request)
{
    const struct claim *claim = request->cdi_devices_len > 0 ? state->claims.by_key : NULL;
    struct look look = {0};
    struct ids unread = {0};

    for (; claim; claim = claim->hh.next) {
        if (!claim_state_kept(claim->state))
            continue;
        add_unread(state, request, claim, &unread);
        if (look.step == LOOK_GO)
            look_at_holders(state, request, claim, &look);
    }
    if (unread.len == 0)
        return look;
    look_fini(&look);
    look.step = LOOK_REFUSE;
    look.reason = (struct reason){.kind = REASON_CDI_NOT_READ, .ids = unread};
    return look;
}
