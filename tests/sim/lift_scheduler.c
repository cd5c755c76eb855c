/*
 * A scheduler's stand-in: it knows of devices what the API server's slices say, and nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define ADMIN_PERCENT 8
#define EXTENDED_PERCENT 25
#define FREED_PERCENT 70
#define OFFERS 512

struct offer {
    const struct lw_slice *slice;
    const Agent__V1__PoolDevice *device;
    size_t resource, id;
};

/* What a request selects by, as CEL would. */
struct wish {
    size_t resource;   /* LW_RESOURCES: any */
    int node;          /* -1: any */
    const char *model; /* NULL: any */
};

static const Agent__V1__Attribute *find_attribute(const Agent__V1__PoolDevice *device,
                                                  const char *name)
{
    for (size_t i = 0; i < device->n_attributes; i++) {
        if (strcmp(device->attributes[i]->name, name) == 0)
            return device->attributes[i];
    }
    return NULL;
}

static bool is_taken(const struct lift_world *h, const char *pool, const char *name)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        const struct lw_claim *claim = &h->claims[i];

        for (size_t k = 0; claim->allocated && !claim->admin && k < claim->results_len; k++) {
            if (strcmp(claim->results[k].name, name) == 0 &&
                strcmp(claim->results[k].pool, pool) == 0)
                return true;
        }
    }
    return false;
}

static bool is_tainted(const Agent__V1__PoolDevice *device)
{
    for (size_t i = 0; i < device->n_taints; i++) {
        if (strcmp(device->taints[i]->effect, "None") != 0)
            return true;
    }
    return false;
}

static bool fits(const struct wish *wish, const struct offer *offer)
{
    const Agent__V1__Attribute *node = find_attribute(offer->device, "numaNode");
    const Agent__V1__Attribute *model = find_attribute(offer->device, "model");

    return (wish->resource == LW_RESOURCES || offer->resource == wish->resource) &&
           (wish->node < 0 || (node && node->number == wish->node)) &&
           (!wish->model || (model && strcmp(model->text, wish->model) == 0));
}

/* Which of the world's it is, by its attributes. */
static bool identify(struct lift_world *h, struct offer *offer)
{
    const Agent__V1__Attribute *resource = find_attribute(offer->device, "resource");
    const Agent__V1__Attribute *id = find_attribute(offer->device, "id");

    check_that(h->w, resource && id, "every device says what it is");
    if (!resource || !id)
        return false;
    offer->resource = lift_resource_find(resource->text);
    offer->id =
        offer->resource < LW_RESOURCES ? lift_device_find(offer->resource, id->text) : LW_DEVICES;
    check_that(h->w, offer->id < LW_DEVICES, "what is published is a plugin's: %s %s",
               resource->text, id->text);
    return offer->id < LW_DEVICES;
}

/* What nobody has, of pools that are whole. */
static size_t look(struct lift_world *h, struct offer offers[OFFERS])
{
    size_t len = 0;

    for (size_t i = 0; i < LW_SLICES; i++) {
        const struct lw_slice *slice = &h->slices[i];
        bool whole;

        if (!slice->uid || lift_api_generation(h, slice->pool, &whole) != slice->generation ||
            !whole)
            continue;
        for (size_t k = 0; k < slice->what->n_devices && len < OFFERS; k++) {
            struct offer offer = {.slice = slice, .device = slice->what->devices[k]};

            if (!is_tainted(offer.device) && identify(h, &offer))
                offers[len++] = offer;
        }
    }
    return len;
}

static void take(struct lw_claim *claim, const struct offer *offer, size_t request)
{
    struct lw_result *result = &claim->results[claim->results_len++];

    *result = (struct lw_result){.resource = offer->resource, .device = offer->id};
    snprintf(result->pool, sizeof result->pool, "%s", offer->slice->pool);
    snprintf(result->name, sizeof result->name, "%s", offer->device->name);
    /* of a request, or of one of its subrequests (firstAvailable) */
    snprintf(result->request, sizeof result->request, "r%zu%s", request,
             request % 2 == 1 ? "/small" : "");
}

static bool has(const struct lw_claim *claim, const struct offer *offer)
{
    for (size_t i = 0; i < claim->results_len; i++) {
        if (claim->results[i].resource == offer->resource && claim->results[i].device == offer->id)
            return true;
    }
    return false;
}

static bool pick(struct lift_world *h, struct lw_claim *claim, const struct wish *wish,
                 const struct offer *offers, size_t len, size_t request)
{
    size_t from = len > 0 ? rng_below(&h->rng, len) : 0;

    for (size_t i = 0; i < len; i++) {
        const struct offer *offer = &offers[(from + i) % len];

        if (!fits(wish, offer) || has(claim, offer) ||
            (!claim->admin && is_taken(h, offer->slice->pool, offer->device->name)))
            continue;
        take(claim, offer, request);
        return true;
    }
    return false;
}

static struct wish any_wish(struct lift_world *h, bool extended)
{
    struct wish wish = {.resource = rng_below(&h->rng, LW_RESOURCES + 1), .node = -1};

    if (extended) /* by the resource's name alone */
        wish.resource = rng_below(&h->rng, LW_RESOURCES);
    else if (rng_percent(&h->rng, 30))
        wish.node = (int)rng_below(&h->rng, 2);
    else if (rng_percent(&h->rng, 30))
        wish.model = rng_percent(&h->rng, 50) ? "odd" : "even";
    return wish;
}

/* What was taken back by force, and may run yet, is often given away at once. */
static void pick_freed(struct lift_world *h, struct lw_claim *claim, const struct offer *offers,
                       size_t len)
{
    for (size_t i = 0; h->freed && i < len; i++) {
        if (offers[i].resource != h->freed->resource || offers[i].id != h->freed->device ||
            is_taken(h, offers[i].slice->pool, offers[i].device->name))
            continue;
        take(claim, &offers[i], 0);
        count_add(COUNT_LIFT_GIVEN_ON);
        break;
    }
    h->freed = NULL;
}

size_t lift_claim_new(struct lift_world *h)
{
    struct lw_claim claim = {.life = LW_WANTED, .allocated = true};
    struct offer offers[OFFERS];
    size_t len, requests = rng_between(&h->rng, 1, LW_CLAIM_DEVICES);

    if (h->claims_len == LW_CLAIMS)
        return LW_CLAIMS;
    len = look(h, offers);
    claim.extended = rng_percent(&h->rng, EXTENDED_PERCENT);
    claim.admin = !claim.extended && rng_percent(&h->rng, ADMIN_PERCENT);
    if (!claim.admin && rng_percent(&h->rng, FREED_PERCENT))
        pick_freed(h, &claim, offers, len);
    for (size_t i = claim.results_len; i < requests; i++) {
        const struct wish wish = any_wish(h, claim.extended);

        if (!pick(h, &claim, &wish, offers, len, i))
            return LW_CLAIMS;
    }
    h->claims[h->claims_len] = claim;
    lift_note(h, "claim c%zu has %zu devices, from %s of %s on%s%s", h->claims_len,
              claim.results_len, claim.results[0].name, claim.results[0].pool,
              claim.admin ? ", to look at" : "", claim.extended ? ", extended" : "");
    count_add(claim.extended ? COUNT_LIFT_EXTENDED : COUNT_LIFT_ALLOCATED);
    return h->claims_len++;
}

void lift_claim_deallocated(struct lift_world *h, size_t claim)
{
    lift_note(h, "claim c%zu has nothing any more", claim);
    h->claims[claim].allocated = false;
    h->freed = &h->claims[claim].results[0];
}
