/*
 * Who has a claim, and its device: containers that were asked for with it.
 */
#include <string.h>

#include "tests/sim/home_world.h"
#include "tests/sim/promise.h"

/* ---- what is noted ---- */

/* For certain the shim takes it for the claim's. */
static bool has_device(const struct home_world *h, size_t claim, unsigned device)
{
    const struct hw_claim *is = &h->claims[claim];

    return is->said && is->said_device == device && home_shim_row(h, claim).there;
}

/* Likewise, of what the kubelet was told; it may be letting go of one whose driver has moved, also
 * if that is back by now. */
static bool is_as_told(const struct home_world *h, size_t claim)
{
    const struct hw_claim *is = &h->claims[claim];

    return is->has && has_device(h, claim, is->given) && (is->by_shim || home_shim_is_stored(h));
}

void home_use_note(struct home_world *h, const struct hw_pod *pod)
{
    struct hw_use *use = h->uses;

    for (size_t i = 0; i < HW_USES && use->sandbox != pod->sandbox; i++) {
        if (h->uses[i].sandbox == pod->sandbox || (use->sandbox && !h->uses[i].sandbox))
            use = &h->uses[i];
    }
    check_that(h->w, !use->sandbox || use->sandbox == pod->sandbox, "there is room for a use");
    *use = (struct hw_use){.sandbox = pod->sandbox,
                           .uid = pod->uid,
                           .asked_ms = h->now_ms,
                           .claims_len = pod->claims_len};
    for (size_t i = 0; i < pod->claims_len; i++) {
        use->claims[i] = pod->claims[i];
        use->device[i] = h->claims[pod->claims[i]].given;
        use->named[i] = pod->named[i];
        use->known[i] = is_as_told(h, pod->claims[i]);
    }
    for (size_t i = 0; i < h->claims_len; i++)
        h->claims[i].used_since |= h->claims[i].unsure && home_may_be_used(h, i);
}

void home_use_made(struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; i < HW_USES; i++) {
        if (h->uses[i].sandbox == pod->sandbox)
            h->uses[i].asked_ms = h->now_ms;
    }
}

void home_uses_ended(struct home_world *h, unsigned sandbox)
{
    for (size_t i = 0; i < HW_USES; i++) {
        if (h->uses[i].sandbox == sandbox)
            h->uses[i].over = true;
    }
}

static bool is_running(const struct hw_pod pods[HW_PODS], const struct hw_use *use)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        if (pods[i].there && pods[i].sandbox == use->sandbox)
            return pods[i].state == HW_RUNS;
    }
    return false;
}

/* The shim waits for its row, or for the runtime's answer. */
static bool is_coming(const struct home_world *h, const struct hw_use *use)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *pod = &h->pods[i];

        if (pod->there && pod->sandbox == use->sandbox)
            return pod->create || pod->passed;
    }
    return false;
}

void home_uses_listed(struct home_world *h)
{
    for (size_t i = 0; i < HW_USES; i++) {
        struct hw_use *use = &h->uses[i];

        if (!is_running(h->snapshot, use) && !is_coming(h, use) &&
            h->listed_from_ms >= h->earlier_until_ms &&
            h->listed_from_ms >= use->asked_ms + CLAIM_USER_COMES_MS)
            use->over = true;
    }
}

/* A row that says so, of any claim whose names it has, is read by the shim, whatever the one before
 * it knew. */
static bool is_stored(const struct home_world *h, const struct hw_use *use)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        if (home_shim_row_has(h, i, use->sandbox))
            return true;
    }
    return false;
}

/* Where the driver's names do not tell its claims apart, it may have its device by another, which
 * is stored: then it is in nobody's way. */
static bool may_be_anothers(const struct home_world *h, const struct hw_use *use, size_t index)
{
    size_t claim = use->claims[index], driver = h->claims[claim].driver;

    for (size_t i = 0; h->drivers[driver].same_names && i < h->claims_len; i++) {
        if (i != claim && h->claims[i].driver == driver &&
            h->claims[i].said_device == use->device[index] &&
            strcmp(home_shim_row(h, i).state, "prepared") == 0 &&
            home_shim_row_has(h, i, use->sandbox))
            return true;
    }
    return false;
}

/* By its row, if that was not unprepared as it came, since it may have another's. */
static bool is_stored_with(const struct home_world *h, const struct hw_use *use, size_t index)
{
    return home_shim_row_has(h, use->claims[index], use->sandbox) ||
           (!home_shim_row(h, use->claims[index]).there && may_be_anothers(h, use, index));
}

bool home_use_passes(struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; i < HW_USES; i++) {
        struct hw_use *use = &h->uses[i];

        for (size_t k = 0; use->sandbox == pod->sandbox && k < use->claims_len; k++) {
            use->passed = true;
            use->named[k] = pod->named[k];
            if (use->known[k] && !is_stored_with(h, use, k))
                return false;
        }
    }
    return true;
}

void home_uses_shim_started(struct home_world *h)
{
    for (size_t i = 0; i < HW_USES; i++) {
        struct hw_use *use = &h->uses[i];

        use->asked_ms = h->now_ms;
        use->over = use->over && !is_stored(h, use);
        if (use->over)
            *use = (struct hw_use){0};
        for (size_t k = 0; k < use->claims_len; k++)
            use->known[k] = use->known[k] &&
                            (use->passed || home_shim_row_has(h, use->claims[k], use->sandbox));
    }
    for (size_t i = 0; i < h->claims_len; i++) {
        struct hw_row row = home_shim_row(h, i);
        struct hw_claim *claim = &h->claims[i];

        claim->warned = 0;
        claim->alone = row.alone;
        claim->said = row.has_device;
        claim->answered = claim->answered && row.has_device && row.device == claim->taken_device;
        claim->said_device = row.device;
        claim->said_shared = row.shared;
    }
    home_uses_by_rows(h);
}

void home_uses_by_rows(struct home_world *h)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        const struct hw_row row = home_shim_row(h, i);
        struct hw_claim *claim = &h->claims[i];

        claim->unsure = claim->unsure || strcmp(row.state, "unpreparing") == 0 ||
                        strcmp(row.state, "sent") == 0;
        claim->used_since = claim->used_since || (claim->unsure && home_may_be_used(h, i));
    }
}

/* ---- of one claim ---- */

/* Where the driver's names do not tell its claims apart, each container with one of them may. */
bool home_may_be_used(const struct home_world *h, size_t claim)
{
    size_t driver = h->claims[claim].driver;

    for (size_t i = 0; i < HW_USES; i++) {
        for (size_t k = 0; !h->uses[i].over && k < h->uses[i].claims_len; k++) {
            size_t other = h->uses[i].claims[k];

            if (other == claim ||
                (h->drivers[driver].same_names && h->claims[other].driver == driver))
                return true;
        }
    }
    return false;
}

bool home_is_asked_with(const struct home_world *h, size_t claim)
{
    for (size_t i = 0; i < HW_USES; i++) {
        for (size_t k = 0; !h->uses[i].over && k < h->uses[i].claims_len; k++) {
            if (h->uses[i].claims[k] == claim)
                return true;
        }
    }
    return false;
}

bool home_is_used(const struct home_world *h, size_t claim)
{
    for (size_t i = 0; i < HW_USES; i++) {
        const struct hw_use *use = &h->uses[i];

        for (size_t k = 0; !use->over && k < use->claims_len; k++) {
            if (use->claims[k] == claim && use->known[k] && is_running(h->pods, use) &&
                !may_be_anothers(h, use, k))
                return true;
        }
    }
    return false;
}

/* Another claim has a device of the same name: the container may have come for that. */
static bool has_same_name(const struct home_world *h, const struct hw_use *use, size_t index)
{
    size_t claim = use->claims[index], driver = h->claims[claim].driver;

    for (size_t i = 0; h->drivers[driver].same_names && i < h->claims_len; i++) {
        if (i != claim && h->claims[i].driver == driver && h->claims[i].said &&
            h->claims[i].said_device == use->device[index])
            return true;
    }
    return false;
}

bool home_is_known(const struct home_world *h, size_t claim)
{
    for (size_t i = 0; i < HW_USES; i++) {
        const struct hw_use *use = &h->uses[i];

        for (size_t k = 0; !use->over && k < use->claims_len; k++) {
            if (use->claims[k] == claim && use->known[k] && !has_same_name(h, use, k))
                return true;
        }
    }
    return false;
}

/* `known`: the shim knows that it has, for certain. */
static bool has(const struct home_world *h, unsigned uid, size_t claim, bool known)
{
    for (size_t i = 0; i < HW_USES; i++) {
        const struct hw_use *use = &h->uses[i];

        for (size_t k = 0; !use->over && use->uid == uid && k < use->claims_len; k++) {
            if (use->claims[k] == claim &&
                (!known || (home_shim_is_stored(h) && home_shim_row_has(h, claim, use->sandbox))))
                return true;
        }
    }
    return false;
}

/* ---- of one device ---- */

/* Whether another may have it, too, as the shim was told; what it had before as it has the
 * other. */
static bool is_shared(const struct hw_claim *claim, unsigned device)
{
    bool former = claim->said && claim->said_device != device;

    if (claim->said_shared)
        return true;
    return claim->told &&
           (former ? claim->told_admin
                   : claim->told_device == device && (claim->told_admin || claim->told_shared));
}

/* The shim knows that it has the device by the claim, whatever that has by now. */
static bool has_by(const struct home_world *h, const struct hw_use *use, size_t index)
{
    return use->known[index] && is_running(h->pods, use) &&
           home_shim_row_has(h, use->claims[index], use->sandbox);
}

/* Which devices it may have by the claim, as a mask: all that it was asked for with, too, since
 * what the claim had before goes on where the kubelet may have that by calls of its own. */
static unsigned may_have(const struct home_world *h, const struct hw_use *use, size_t index)
{
    const struct hw_claim *is = &h->claims[use->claims[index]];

    return use->named[index] | 1U << use->device[index] | (is->said ? 1U << is->said_device : 0);
}

/* Whether the use is of the same device by another claim. */
static bool meets(const struct home_world *h, size_t claim, const struct hw_use *use, size_t index,
                  bool may)
{
    size_t other = use->claims[index];
    unsigned device = h->claims[claim].given;

    if (other == claim || h->claims[other].driver != h->claims[claim].driver)
        return false;
    if (may)
        return may_have(h, use, index) & 1U << device;
    return has_by(h, use, index) && use->device[index] == device && is_as_told(h, claim);
}

static bool is_told(const struct hw_claim *claim, bool may)
{
    return claim->told || claim->alone || (may && claim->told_alone);
}

/* Whether its name may be of another claim's device, as the shim knows it; `may`: for certain. */
static bool is_ambiguous(const struct home_world *h, size_t claim, bool may)
{
    size_t driver = h->claims[claim].driver;
    unsigned device = h->claims[claim].given;

    for (size_t i = 0; h->drivers[driver].same_names && i < h->claims_len; i++) {
        if (i != claim && h->claims[i].driver == driver && h->claims[i].said_device == device &&
            (!may || has_device(h, i, device)))
            return true;
    }
    return false;
}

/* Who has it by the other claim may have it by this one as well. */
static bool has_too(const struct home_world *h, size_t claim, const struct hw_use *use)
{
    for (size_t k = 0; k < use->claims_len; k++) {
        if (use->claims[k] == claim && use->device[k] == h->claims[claim].given)
            return true;
    }
    return false;
}

static enum hw_held held_by(const struct home_world *h, size_t claim, const struct hw_use *use,
                            size_t index, bool may)
{
    const struct hw_claim *is = &h->claims[claim], *theirs = &h->claims[use->claims[index]];

    if (is_shared(is, is->given) || is_shared(theirs, is->given))
        return HW_SHARED;
    if (!is_told(is, may) || !is_told(theirs, may))
        return HW_UNKNOWN;
    return is_ambiguous(h, claim, may) || (!may && has_too(h, claim, use)) ? HW_AMBIGUOUS : HW_HELD;
}

/* ---- of what devices are made of ---- */

/* Those by which one who has the claim is in the way of others, as a mask. */
static unsigned devices_of(const struct home_world *h, const struct hw_use *use, size_t index,
                           bool may)
{
    unsigned mask = may ? may_have(h, use, index) : 1U << use->device[index];

    if (!may && !has_by(h, use, index))
        return 0;
    for (unsigned device = 0; device < HW_DEVICES; device++) {
        if (is_shared(&h->claims[use->claims[index]], device))
            mask &= ~(1U << device);
    }
    return mask;
}

static bool is_beside(const struct home_world *h, size_t claim, unsigned others)
{
    const struct hw_driver *d = &h->drivers[h->claims[claim].driver];

    return d->parted && h->claims[claim].given < HW_PARTS &&
           (others & ((1U << HW_PARTS) - 1) & ~(1U << h->claims[claim].given));
}

/* `told`: only claims count of which the cluster has said what they have. */
static bool is_over(const struct home_world *h, const struct hw_pod *pod, size_t claim, bool may,
                    bool told)
{
    size_t driver = h->claims[claim].driver;
    unsigned all = 0, others = 0;

    for (size_t i = 0; i < HW_USES; i++) {
        const struct hw_use *use = &h->uses[i];

        for (size_t k = 0; !use->over && k < use->claims_len; k++) {
            const struct hw_claim *theirs = &h->claims[use->claims[k]];
            unsigned mask = theirs->driver == driver && (!told || is_told(theirs, may))
                                ? devices_of(h, use, k, may)
                                : 0;

            all |= mask;
            others |= use->uid == pod->uid ? 0 : mask;
        }
    }
    if (!may && !told && is_beside(h, claim, others))
        count_add(COUNT_HOME_PART_BESIDE);
    return home_parts_over(&h->drivers[driver], h->claims[claim].given, all, others);
}

/* As far as slices say it by now. */
static enum hw_held part_held(const struct home_world *h, const struct hw_pod *pod, size_t claim,
                              bool may)
{
    const struct hw_claim *is = &h->claims[claim];

    if (!h->sliced[is->driver] || is_shared(is, is->given) || (!may && !is_as_told(h, claim)))
        return HW_FREE;
    if (is_told(is, may) && is_over(h, pod, claim, may, true))
        return HW_HELD;
    if (!is_over(h, pod, claim, may, false))
        return HW_FREE;
    if (!may)
        count_add(COUNT_HOME_PART_UNKNOWN);
    return HW_UNKNOWN;
}

/* A pod that has the claim by now keeps it. */
static enum hw_held claim_held(const struct home_world *h, const struct hw_pod *pod, size_t claim,
                               bool may)
{
    enum hw_held worst = part_held(h, pod, claim, may);

    for (size_t i = 0; i < HW_USES; i++) {
        const struct hw_use *use = &h->uses[i];

        for (size_t k = 0; !use->over && use->uid != pod->uid && k < use->claims_len; k++) {
            if (meets(h, claim, use, k, may) && held_by(h, claim, use, k, may) > worst)
                worst = held_by(h, claim, use, k, may);
        }
    }
    return worst > HW_SHARED && has(h, pod->uid, claim, may) ? HW_OWN : worst;
}

enum hw_held home_held(const struct home_world *h, const struct hw_pod *pod, bool may,
                       size_t *claim)
{
    enum hw_held worst = HW_FREE;

    for (size_t i = 0; i < pod->claims_len; i++) {
        enum hw_held held = claim_held(h, pod, pod->claims[i], may);

        if (held <= worst)
            continue;
        worst = held;
        *claim = pod->claims[i];
    }
    return worst;
}
