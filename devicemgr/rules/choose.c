#include "devicemgr/rules/choose.h"

#include <string.h>

#include "devicemgr/things/limits.h"

struct choice {
    struct candidate *candidates;
    size_t len;
    size_t missing;
    struct ids *out;
    size_t left[NUMA_NODES_MAX]; /* how many candidates not yet taken a node has */
};

static void count_left(struct choice *choice)
{
    for (size_t i = 0; i < choice->len; i++) {
        const struct device *device = choice->candidates[i].device;

        for (size_t n = 0; n < device->nodes_len; n++)
            choice->left[device->nodes[n]]++;
    }
}

static void take(struct choice *choice, struct candidate *candidate)
{
    const struct device *device = candidate->device;

    if (choice->missing == 0 || candidate->taken)
        return;
    candidate->taken = true;
    choice->missing--;
    ids_add(choice->out, device->id);
    for (size_t n = 0; n < device->nodes_len; n++)
        choice->left[device->nodes[n]]--;
}

static void take_reused(struct choice *choice)
{
    for (size_t i = 0; i < choice->len; i++) {
        if (choice->candidates[i].reused)
            take(choice, &choice->candidates[i]);
    }
}

static int compare_id(const void *id, const void *candidate)
{
    return strverscmp(id, ((const struct candidate *)candidate)->device->id);
}

static void take_preferred(struct choice *choice, const struct ids *preferred)
{
    for (size_t i = 0; i < preferred->len; i++) {
        struct candidate *found = bsearch(preferred->v[i], choice->candidates, choice->len,
                                          sizeof *choice->candidates, compare_id);

        if (found)
            take(choice, found);
    }
}

static bool on_node(const struct device *device, int64_t number)
{
    for (size_t i = 0; i < device->nodes_len; i++) {
        if (device->nodes[i] == number)
            return true;
    }
    return false;
}

static void take_from_node(struct choice *choice, int64_t number)
{
    for (size_t i = 0; i < choice->len && choice->missing > 0; i++) {
        if (!choice->candidates[i].taken && on_node(choice->candidates[i].device, number))
            take(choice, &choice->candidates[i]);
    }
}

/* Whether `a` is rather to be taken from than `b`: the smallest that has all that is missing, or
 * else the largest. */
static bool is_better(size_t a, size_t b, size_t missing)
{
    return a >= missing && b >= missing ? a < b : a > b;
}

/* False: no candidate with topology is left. */
static bool take_from_best_node(struct choice *choice)
{
    const size_t *left = choice->left;
    int64_t best = -1;

    for (int64_t n = 0; n < NUMA_NODES_MAX; n++) {
        if (left[n] > 0 && (best < 0 || is_better(left[n], left[best], choice->missing)))
            best = n; /* of equals the one with the lower number */
    }
    if (best >= 0)
        take_from_node(choice, best);
    return best >= 0;
}

/* Nodes that devices taken so far are on cost nothing more. */
static void take_from_nodes_of_taken(struct choice *choice)
{
    bool seen[NUMA_NODES_MAX] = {false};
    int64_t nodes[NUMA_NODES_MAX];
    size_t nodes_len = 0;

    for (size_t i = 0; i < choice->len; i++) {
        const struct candidate *candidate = &choice->candidates[i];

        for (size_t n = 0; candidate->taken && n < candidate->device->nodes_len; n++) {
            int64_t number = candidate->device->nodes[n];

            if (!seen[number])
                nodes[nodes_len++] = number;
            seen[number] = true;
        }
    }
    for (size_t n = 0; n < nodes_len; n++)
        take_from_node(choice, nodes[n]);
}

void choose_devices(struct candidate *candidates, size_t candidates_len,
                    const struct ids *preferred, size_t count, struct ids *out)
{
    struct choice choice = {
        .candidates = candidates, .len = candidates_len, .missing = count, .out = out};

    count_left(&choice);
    take_reused(&choice);
    take_preferred(&choice, preferred);
    take_from_nodes_of_taken(&choice);
    while (choice.missing > 0 && take_from_best_node(&choice))
        ;
    for (size_t i = 0; i < candidates_len; i++)
        take(&choice, &candidates[i]);
    ids_sort(out);
}
