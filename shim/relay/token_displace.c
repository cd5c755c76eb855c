#include "shim/relay/token_displace.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cri-proto/token.h"
#include "shim/relay/create_fields.h"
#include "shim/relay/wire.h"

static bool is_token(const char *key)
{
    return strncmp(key, TOKEN_KEY_PREFIX, strlen(TOKEN_KEY_PREFIX)) == 0;
}

static bool has_tokens(const V1beta1__ContainerAllocateResponse *options)
{
    size_t i = 0;

    while (i < options->n_annotations && !is_token(options->annotations[i]->key))
        i++;
    return i < options->n_annotations;
}

static bool is_there(const V1beta1__ContainerAllocateResponse *options, const uint8_t *key,
                     size_t len)
{
    for (size_t i = 0; i < options->n_annotations; i++) {
        const char *own = options->annotations[i]->key;

        if (is_token(own) && strlen(own) == len && memcmp(own, key, len) == 0)
            return true;
    }
    return false;
}

/* Of an entry: whether it is displaced, or -EBADMSG. The last key counts. */
static int is_displaced(const V1beta1__ContainerAllocateResponse *options,
                        const struct wire_field *entry)
{
    struct wire_field key;
    int r = wire_last(entry->value, entry->end, CREATE_ENTRY_KEY, &key);

    if (r < 0 || !key.start)
        return r;
    return is_there(options, key.value, (size_t)(key.end - key.value));
}

/* The fields of a config; 1: one was left out. */
static int put_config(void *user, const struct wire_field *config, struct buffer *out)
{
    const V1beta1__ContainerAllocateResponse *options = user;
    const uint8_t *at = config->value;
    bool changed = false;
    struct wire_field f;
    int r;

    while ((r = wire_next(&at, config->end, &f)) > 0) {
        if (f.number == CREATE_CONFIG_ANNOTATIONS)
            r = f.type == WIRE_BYTES ? is_displaced(options, &f) : -EBADMSG;
        else
            r = 0;
        changed = changed || r > 0;
        if (r == 0)
            r = wire_put_range(out, f.start, f.end);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : changed;
}

int token_displace(const uint8_t *request, size_t request_len,
                   const V1beta1__ContainerAllocateResponse *options, struct buffer *out)
{
    int r = 0;

    if (has_tokens(options))
        r = wire_put_changed(out, request, request_len, CREATE_CONFIG, put_config, (void *)options);
    if (r <= 0)
        buffer_fini(out);
    return r == -EBADMSG ? 0 : r;
}
