#include "tests/sim/decision.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/sim/heap.h"
#include "tests/sim/world.h"

struct decision {
    unsigned uid;
    unsigned name;
    unsigned attempt;
    uint64_t number; /* of the create */
    char *what;
};

void decision_add(struct world *w, const struct create_sim *create, const char *what)
{
    struct decisions *decisions = &w->decisions;

    if (!w->play.decisions)
        return;
    decisions->v = heap_grow(decisions->v, decisions->len, sizeof *decisions->v);
    decisions->v[decisions->len++] = (struct decision){.uid = create->uid,
                                                       .name = create->name,
                                                       .attempt = create->attempt,
                                                       .number = create->number,
                                                       .what = heap_strdup(what)};
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare(const void *left, const void *right)
{
    const struct decision *a = left, *b = right;

    if (a->uid != b->uid)
        return order(a->uid, b->uid);
    if (a->name != b->name)
        return order(a->name, b->name);
    return a->attempt != b->attempt ? order(a->attempt, b->attempt) : order(a->number, b->number);
}

void decisions_write(struct world *w, FILE *out)
{
    struct decisions *decisions = &w->decisions;

    if (decisions->len > 0)
        qsort(decisions->v, decisions->len, sizeof *decisions->v, compare);
    for (size_t i = 0; i < decisions->len; i++) {
        const struct decision *d = &decisions->v[i];

        fprintf(out, "%" PRIu64 " u%u/%s/%u: %s\n", w->play.seed, d->uid,
                container_sim_name(d->name), d->attempt, d->what);
    }
}

void decisions_fini(struct decisions *decisions)
{
    for (size_t i = 0; i < decisions->len; i++)
        free(decisions->v[i].what);
    free(decisions->v);
    *decisions = (struct decisions){0};
}
