#include "devicemgr/choose.h"

#include <string.h>

#include "devicemgr/mem.h"

/* How many candidates not yet taken a NUMA node has. */
struct node {
    int64_t number;
    size_t left;
};

struct choice {
    struct candidate *candidates;
    size_t len;
    size_t missing;
    struct ids *out;
};

static void take(struct choice *choice, struct candidate *candidate)
{
    if (choice->missing == 0 || candidate->taken)
        return;
    candidate->taken = true;
    choice->missing--;
    ids_add(choice->out, candidate->device->id);
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
        if (on_node(choice->candidates[i].device, number))
            take(choice, &choice->candidates[i]);
    }
}

static void node_count(struct node **nodes, size_t *nodes_len, int64_t number)
{
    size_t i = 0;

    while (i < *nodes_len && (*nodes)[i].number != number)
        i++;
    if (i == *nodes_len) {
        *nodes = mem_grow(*nodes, *nodes_len, sizeof **nodes);
        (*nodes)[(*nodes_len)++] = (struct node){.number = number};
    }
    (*nodes)[i].left++;
}

/* The node to take from next: the smallest that has all that is missing, or else the largest; of
 * equals the one with the lower number. */
static const struct node *best_node(const struct node *nodes, size_t nodes_len, size_t missing)
{
    const struct node *best = NULL;

    for (size_t i = 0; i < nodes_len; i++) {
        const struct node *node = &nodes[i];
        bool better;

        if (!best)
            better = true;
        else if (node->left == best->left)
            better = node->number < best->number;
        else if (node->left >= missing && best->left >= missing)
            better = node->left < best->left;
        else
            better = node->left > best->left;
        if (better)
            best = node;
    }
    return best;
}

/* False: no candidate with topology is left. */
static bool take_from_best_node(struct choice *choice)
{
    struct node *nodes = NULL;
    const struct node *best;
    size_t nodes_len = 0;

    for (size_t i = 0; i < choice->len; i++) {
        const struct candidate *candidate = &choice->candidates[i];

        for (size_t n = 0; !candidate->taken && n < candidate->device->nodes_len; n++)
            node_count(&nodes, &nodes_len, candidate->device->nodes[n]);
    }
    best = best_node(nodes, nodes_len, choice->missing);
    if (best)
        take_from_node(choice, best->number);
    free(nodes);
    return best != NULL;
}

/* Nodes that devices taken so far are on cost nothing more. */
static void take_from_nodes_of_taken(struct choice *choice)
{
    struct node *nodes = NULL;
    size_t nodes_len = 0;

    for (size_t i = 0; i < choice->len; i++) {
        const struct candidate *candidate = &choice->candidates[i];

        for (size_t n = 0; candidate->taken && n < candidate->device->nodes_len; n++)
            node_count(&nodes, &nodes_len, candidate->device->nodes[n]);
    }
    for (size_t n = 0; n < nodes_len; n++)
        take_from_node(choice, nodes[n].number);
    free(nodes);
}

void choose_devices(struct candidate *candidates, size_t candidates_len,
                    const struct ids *preferred, size_t count, struct ids *out)
{
    struct choice choice = {candidates, candidates_len, count, out};

    take_reused(&choice);
    take_preferred(&choice, preferred);
    take_from_nodes_of_taken(&choice);
    while (choice.missing > 0 && take_from_best_node(&choice))
        ;
    for (size_t i = 0; i < candidates_len; i++)
        take(&choice, &candidates[i]);
    ids_sort(out);
}
