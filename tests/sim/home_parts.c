/*
 * Devices that are made of the same: of some drivers those of the node's own are parts of one
 * thing, in one pool. What that is, is here; the shim knows what slices tell of it, as counters.
 */
#include <stdio.h>

#include "tests/sim/home_world.h"

#define PARTED_PERCENT 25
#define STAYS_PERCENT 85

/* ---- what they are made of ---- */

/* The whole, two halves, and one that may be a part of either, or of both: of four places, each of
 * which is one's alone. */
static void make_places(struct rng *rng, struct hw_driver *d)
{
    const unsigned places[HW_PARTS] = {0xf, 0x3, 0xc, (unsigned)rng_between(rng, 1, 0xe)};

    for (size_t k = 0; k < HW_PART_KINDS; k++) {
        d->there[k] = 1;
        for (size_t i = 0; i < HW_PARTS; i++)
            d->takes[i][k] = places[i] >> k & 1;
    }
}

/* Or so much of two kinds, whichever that is. */
static void make_amounts(struct rng *rng, struct hw_driver *d)
{
    for (size_t k = 0; k < 2; k++) {
        d->there[k] = 4;
        d->takes[0][k] = 4;
        d->takes[1][k] = 2;
        d->takes[2][k] = (unsigned)rng_between(rng, 1, 2);
        d->takes[3][k] = (unsigned)rng_below(rng, 4);
    }
}

/* From a stream of its own: the other worlds are as they were without it. Who has parts gives them
 * well, as it is about who has them. */
void home_parts_begin(struct home_world *h)
{
    struct rng rng = {.state = h->w->play.seed};

    rng_mix(&rng, UINT64_MAX - 11);
    for (size_t i = 0; i < HW_DRIVERS; i++) {
        struct hw_driver *d = &h->drivers[i];

        d->parted = rng_percent(&rng, PARTED_PERCENT);
        if (!d->parted)
            continue;
        d->same_names = false;
        d->stays = rng_percent(&rng, STAYS_PERCENT);
        d->fails_percent = 10;
        d->told_apart = rng_percent(&rng, 50);
        if (rng_percent(&rng, 60))
            make_places(&rng, d);
        else
            make_amounts(&rng, d);
    }
}

static bool is_part(const struct hw_driver *d, unsigned device)
{
    return d->parted && device < HW_PARTS;
}

bool home_parts_over(const struct hw_driver *d, unsigned device, unsigned all, unsigned others)
{
    for (size_t k = 0; is_part(d, device) && k < HW_PART_KINDS; k++) {
        unsigned sum = d->takes[device][k];
        bool theirs = false;

        for (unsigned i = 0; sum > 0 && i < HW_PARTS; i++) {
            if (i == device || !(all >> i & 1))
                continue;
            sum += d->takes[i][k];
            theirs = theirs || (others >> i & 1 && d->takes[i][k] > 0);
        }
        if (theirs && sum > d->there[k])
            return true;
    }
    return false;
}

bool home_parts_apart(const struct hw_driver *d, unsigned a, unsigned b)
{
    bool apart = is_part(d, a) && is_part(d, b) && a != b;

    for (size_t k = 0; apart && k < HW_PART_KINDS; k++)
        apart = d->takes[a][k] == 0 || d->takes[b][k] == 0;
    return apart;
}

/* ---- what is told of it ---- */

static void name_slices(size_t driver, char devices[16], char counters[16])
{
    snprintf(devices, 16, "parts%zu", driver);
    snprintf(counters, 16, "there%zu", driver);
}

/* What there is of each may stand in a slice of its own. */
void home_parts_tell(struct home_world *h, size_t driver)
{
    static const char *const DEVICES[HW_PARTS] = {"g0", "g1", "g2", "g3"};
    static const char *const KINDS[HW_PART_KINDS] = {"set/a", "set/b", "set/c", "set/d"};
    const struct hw_driver *d = &h->drivers[driver];
    struct devicemgr_counter there[HW_PART_KINDS], drawn[HW_PART_KINDS];
    struct devicemgr_draw draws[HW_PARTS * HW_PART_KINDS];
    char parts_uid[16], there_uid[16];
    struct devicemgr_slice parts = {.uid = parts_uid,
                                    .driver = home_driver_name(driver),
                                    .pool = home_pool_name(d, 0),
                                    .devices = DEVICES,
                                    .devices_len = HW_PARTS,
                                    .counters = d->told_apart ? drawn : there,
                                    .counters_len = HW_PART_KINDS,
                                    .draws = draws};
    const struct devicemgr_slice counters = {.uid = there_uid,
                                             .driver = parts.driver,
                                             .pool = parts.pool,
                                             .apart = true,
                                             .counters = there,
                                             .counters_len = HW_PART_KINDS};

    name_slices(driver, parts_uid, there_uid);
    for (size_t k = 0; k < HW_PART_KINDS; k++) {
        there[k] = (struct devicemgr_counter){KINDS[k], true, d->there[k]};
        drawn[k] = (struct devicemgr_counter){.name = KINDS[k]};
        for (size_t i = 0; i < HW_PARTS; i++) {
            if (d->takes[i][k] > 0)
                draws[parts.draws_len++] = (struct devicemgr_draw){DEVICES[i], k, d->takes[i][k]};
        }
    }
    home_note(h, "the agent tells what parts of driver %zu are made of", driver);
    devicemgr_slice(h->core, h->now_ms, &parts);
    if (d->told_apart)
        devicemgr_slice(h->core, h->now_ms, &counters);
}

void home_parts_gone(struct home_world *h, size_t driver)
{
    char parts_uid[16], there_uid[16];

    name_slices(driver, parts_uid, there_uid);
    home_note(h, "the slices of driver %zu are gone", driver);
    devicemgr_slice_gone(h->core, h->now_ms, parts_uid);
    devicemgr_slice_gone(h->core, h->now_ms, there_uid);
}
