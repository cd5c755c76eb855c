#include "shim/relay/create_changes.h"

#include "shim/relay/cdi_names.h"
#include "shim/relay/command_vars.h"
#include "shim/relay/mount_redirect.h"
#include "shim/relay/token_displace.h"

/* The message as it is by now, and whether that is in `out`. */
struct changing {
    const uint8_t *bytes;
    size_t len;
    struct buffer *out;
    bool changed;
};

/* `r` is what a change came to, and `next` what it wrote. 0, or its error. */
static int take(struct changing *c, int r, const struct buffer *next)
{
    if (r <= 0)
        return r;
    buffer_fini(c->out);
    *c->out = *next;
    c->bytes = buffer_data(c->out);
    c->len = buffer_len(c->out);
    c->changed = true;
    return 0;
}

static int redirect(struct changing *c, const struct plugin_mounts *mounts)
{
    struct buffer next = {0};

    if (!mounts)
        return 0;
    return take(c, mount_redirect(c->bytes, c->len, mounts->from, mounts->to, &next), &next);
}

static int name_once(struct changing *c, const V1beta1__ContainerAllocateResponse *options,
                     const struct create_changes *changes, size_t *repeats)
{
    const struct cdi_names names = {options, changes->cdi_field_read, changes->renames,
                                    changes->renames_len};
    struct buffer next = {0};

    return take(c, cdi_names_once(c->bytes, c->len, &names, &next, repeats), &next);
}

static int displace(struct changing *c, const V1beta1__ContainerAllocateResponse *options)
{
    struct buffer next = {0};

    if (!options)
        return 0;
    return take(c, token_displace(c->bytes, c->len, options, &next), &next);
}

static int expand(struct changing *c, const V1beta1__ContainerAllocateResponse *options)
{
    struct buffer next = {0};

    if (!options)
        return 0;
    return take(c, command_vars_expand(c->bytes, c->len, options, &next), &next);
}

int create_changes_make(const struct create_changes *changes, const uint8_t *message, size_t len,
                        const V1beta1__ContainerAllocateResponse *options, struct buffer *out,
                        size_t *repeats)
{
    struct changing c = {message, len, out, false};
    int r = redirect(&c, changes->mounts);

    *repeats = 0;
    if (r == 0)
        r = redirect(&c, changes->driver_mounts);
    if (r == 0)
        r = displace(&c, options);
    if (r == 0)
        r = expand(&c, options);
    if (r == 0 && changes->cdi)
        r = name_once(&c, options, changes, repeats);
    if (r < 0)
        buffer_fini(out);
    return r < 0 ? r : c.changed;
}
