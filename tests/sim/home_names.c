/*
 * What the kubelet names of claims, all that it was told of each, and what goes on of that.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/home_world.h"

/* The kubelet may have what it names by calls of its own, or, where names are the device's, by
 * another claim. */
static bool is_certain(const struct home_world *h, size_t claim)
{
    const struct hw_driver *d = &h->drivers[h->claims[claim].driver];

    return !d->same_names && !d->moved && !d->told && home_shim_row(h, claim).there;
}

size_t home_names(struct home_world *h, struct hw_pod *pod, char names[HW_NAMES][48])
{
    size_t len = 0;

    for (size_t i = 0; i < pod->claims_len; i++) {
        const struct hw_claim *is = &h->claims[pod->claims[i]];
        bool certain = is_certain(h, pod->claims[i]);

        pod->named[i] = is->books;
        pod->given[i] = is->given;
        pod->before[i] = certain ? is->ours & ~(1U << is->given) : 0;
        snprintf(names[len++], 48, "%s/device=all", home_driver_name(is->driver));
        for (unsigned device = 0; device < HW_DEVICES; device++) {
            if (is->books & 1U << device)
                home_cdi_name(h, pod->claims[i], device, names[len++]);
        }
        home_note(h, "u%u names devices %#x of c%zu, which has g%u", pod->uid, pod->named[i],
                  pod->claims[i], is->given);
        if (pod->before[i])
            count_add(COUNT_HOME_NAMED_BEFORE);
    }
    return len;
}

bool home_names_doubtful(const struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        if (pod->named[i] & ~(pod->before[i] | 1U << h->claims[pod->claims[i]].given))
            return true;
    }
    return false;
}

/* As a mask: which of the claim's devices are called so. */
static unsigned called(const struct home_world *h, size_t claim, const char *name)
{
    unsigned mask = 0;
    char is[48];

    for (unsigned device = 0; device < HW_DEVICES; device++) {
        home_cdi_name(h, claim, device, is);
        mask |= strcmp(is, name) == 0 ? 1U << device : 0;
    }
    return mask;
}

static unsigned renamed(const struct home_world *h, size_t claim, unsigned named,
                        const struct devicemgr_verdict *verdict)
{
    unsigned left = 0, put = 0;

    for (size_t i = 0; i < verdict->renames_len; i++) {
        const struct devicemgr_rename *is = &verdict->renames[i];
        unsigned from = named & called(h, claim, is->name);

        left |= from;
        for (size_t k = 0; from && k < is->to_len; k++)
            put |= called(h, claim, is->to[k]);
    }
    return (named & ~left) | put;
}

void home_names_go_on(struct home_world *h, struct hw_pod *pod,
                      const struct devicemgr_verdict *verdict)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        pod->named[i] = renamed(h, pod->claims[i], pod->named[i], verdict);
        home_judge_names(h, pod, i);
    }
}
