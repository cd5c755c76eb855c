#include "shim/relay/command_vars.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "shim/relay/create_fields.h"
#include "shim/relay/wire.h"

#define OPENER "$("
#define CLOSER ')'

/* ---- the variables ---- */

struct var {
    const char *name;
    const char *value;
    size_t value_len;
    UT_hash_handle hh;
};

struct vars {
    struct var *all;
    struct var *table; /* those of them that the request does not set, by name */
};

static struct var *var_find(const struct vars *vars, const void *name, size_t len)
{
    struct var *var;

    HASH_FIND(hh, vars->table, name, len, var);
    return var;
}

static bool var_add(struct vars *vars, struct var *var)
{
    HASH_ADD_KEYPTR(hh, vars->table, var->name, strlen(var->name), var);
    return var->hh.tbl != NULL;
}

/* 0 or -ENOMEM; vars_fini() in either case. */
static int vars_init(struct vars *vars, const V1beta1__ContainerAllocateResponse *options)
{
    *vars = (struct vars){.all = calloc(options->n_envs, sizeof *vars->all)};
    if (!vars->all)
        return -ENOMEM;
    for (size_t i = options->n_envs; i-- > 0;) {
        const V1beta1__ContainerAllocateResponse__EnvsEntry *env = options->envs[i];

        vars->all[i] = (struct var){env->key, env->value, strlen(env->value), {0}};
        if (!var_find(vars, env->key, strlen(env->key)) && !var_add(vars, &vars->all[i]))
            return -ENOMEM;
    }
    return 0;
}

static void vars_fini(struct vars *vars)
{
    HASH_CLEAR(hh, vars->table);
    free(vars->all);
}

/* ---- one text ---- */

struct reference {
    const uint8_t *start;
    const uint8_t *end;
    const struct var *to;
};

/* The next one from `*at` on to one of the variables, `*at` behind it; false: there is none. */
static bool reference_next(const struct vars *vars, const uint8_t **at, const uint8_t *end,
                           struct reference *out)
{
    const uint8_t *name, *closer;

    out->to = NULL;
    while (!out->to && (out->start = memmem(*at, (size_t)(end - *at), OPENER, strlen(OPENER)))) {
        name = out->start + strlen(OPENER);
        closer = memchr(name, CLOSER, (size_t)(end - name));
        if (!closer)
            return false;
        out->to = var_find(vars, name, (size_t)(closer - name));
        *at = out->end = closer + 1;
    }
    return out->to != NULL;
}

/* How long it is with the values; false: it has no reference. */
static bool expanded_len(const struct vars *vars, const struct wire_field *text, size_t *len)
{
    const uint8_t *at = text->value;
    struct reference reference;
    bool found = false;

    *len = (size_t)(text->end - text->value);
    while (reference_next(vars, &at, text->end, &reference)) {
        *len = *len - (size_t)(reference.end - reference.start) + reference.to->value_len;
        found = true;
    }
    return found;
}

/* Of a command or args; 1: it has changed. */
static int put_text(const struct vars *vars, const struct wire_field *text, struct buffer *out)
{
    const uint8_t *at = text->value, *kept = at;
    struct reference reference;
    size_t len;
    int r;

    if (text->type != WIRE_BYTES)
        return -EBADMSG;
    if (!expanded_len(vars, text, &len))
        return wire_put_range(out, text->start, text->end);
    r = wire_put_head(out, text, len);
    while (r == 0 && reference_next(vars, &at, text->end, &reference)) {
        const uint8_t *value = (const uint8_t *)reference.to->value;

        r = wire_put_range(out, kept, reference.start);
        if (r == 0)
            r = wire_put_range(out, value, value + reference.to->value_len);
        kept = reference.end;
    }
    if (r == 0)
        r = wire_put_range(out, kept, text->end);
    return r < 0 ? r : 1;
}

/* ---- the request ---- */

static bool is_text(const struct wire_field *f)
{
    return f->number == CREATE_CONFIG_COMMAND || f->number == CREATE_CONFIG_ARGS;
}

/* Each field of each config, until a visit is not 0: what it was; 0; or -EBADMSG. */
static int visit_configs(const uint8_t *at, const uint8_t *end,
                         int (*visit)(const struct wire_field *f, void *user), void *user)
{
    struct wire_field config, f;
    int r;

    while ((r = wire_next(&at, end, &config)) > 0) {
        const uint8_t *inner = config.value;

        if (config.number != CREATE_CONFIG)
            continue;
        if (config.type != WIRE_BYTES)
            return -EBADMSG;
        while ((r = wire_next(&inner, config.end, &f)) > 0) {
            r = visit(&f, user);
            if (r != 0)
                return r;
        }
        if (r < 0)
            return r;
    }
    return r;
}

static int has_opener(const struct wire_field *f, void *user)
{
    (void)user;
    return is_text(f) && f->type == WIRE_BYTES &&
           memmem(f->value, (size_t)(f->end - f->value), OPENER, strlen(OPENER));
}

/* Of an env: it is none of ours any more. Of two keys the last counts. */
static int leave_to_request(const struct wire_field *f, void *user)
{
    struct vars *vars = user;
    struct wire_field key;
    struct var *var;
    int r;

    if (f->number != CREATE_CONFIG_ENVS)
        return 0;
    if (f->type != WIRE_BYTES)
        return -EBADMSG;
    r = wire_last(f->value, f->end, CREATE_ENTRY_KEY, &key);
    if (r < 0)
        return r;
    var = var_find(vars, key.value, (size_t)(key.end - key.value));
    if (var)
        HASH_DEL(vars->table, var);
    return 0;
}

/* The fields of a config; 1: one has changed. */
static int put_config(void *user, const struct wire_field *config, struct buffer *out)
{
    const struct vars *vars = user;
    const uint8_t *at = config->value;
    bool changed = false;
    struct wire_field f;
    int r;

    while ((r = wire_next(&at, config->end, &f)) > 0) {
        r = is_text(&f) ? put_text(vars, &f, out) : wire_put_range(out, f.start, f.end);
        if (r < 0)
            return r;
        changed = changed || r > 0;
    }
    return r < 0 ? r : changed;
}

static int expand(const uint8_t *at, const uint8_t *end,
                  const V1beta1__ContainerAllocateResponse *options, struct buffer *out)
{
    struct vars vars;
    int r = vars_init(&vars, options);

    if (r == 0)
        r = visit_configs(at, end, leave_to_request, &vars);
    if (r == 0 && vars.table)
        r = wire_put_changed(out, at, (size_t)(end - at), CREATE_CONFIG, put_config, &vars);
    vars_fini(&vars);
    return r;
}

int command_vars_expand(const uint8_t *request, size_t request_len,
                        const V1beta1__ContainerAllocateResponse *options, struct buffer *out)
{
    const uint8_t *end = request + request_len;
    int r = options->n_envs > 0 ? visit_configs(request, end, has_opener, NULL) : 0;

    if (r > 0)
        r = expand(request, end, options, out);
    if (r <= 0)
        buffer_fini(out);
    return r == -EBADMSG ? 0 : r;
}
