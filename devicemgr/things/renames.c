#include "devicemgr/things/renames.h"

#include <string.h>

#include "devicemgr/things/mem.h"

void renames_fini(struct renames *renames)
{
    for (size_t i = 0; i < renames->len; i++) {
        free(renames->v[i].name);
        ids_fini(&renames->v[i].to);
    }
    free(renames->v);
    *renames = (struct renames){0};
}

struct rename *renames_add(struct renames *renames, const char *name)
{
    struct rename *added;

    renames->v = mem_grow(renames->v, renames->len, sizeof *renames->v);
    added = &renames->v[renames->len++];
    *added = (struct rename){.name = mem_strdup(name)};
    return added;
}

const struct rename *renames_find(const struct renames *renames, const char *name)
{
    for (size_t i = 0; i < renames->len; i++) {
        if (strcmp(renames->v[i].name, name) == 0)
            return &renames->v[i];
    }
    return NULL;
}

void renames_copy(struct renames *to, const struct renames *from)
{
    *to = (struct renames){0};
    for (size_t i = 0; i < from->len; i++)
        ids_copy(&renames_add(to, from->v[i].name)->to, from->v[i].to.v, from->v[i].to.len);
}

size_t renames_apply(const struct renames *renames, const char *const *names, size_t len,
                     const char **out)
{
    size_t put = 0;

    for (size_t i = 0; i < len; i++) {
        const struct rename *rename = renames_find(renames, names[i]);
        const char *const *to = rename ? (const char *const *)rename->to.v : &names[i];
        size_t to_len = rename ? rename->to.len : 1;

        for (size_t k = 0; out && k < to_len; k++)
            out[put + k] = to[k];
        put += to_len;
    }
    return put;
}
