#include "shim/relay/header_listener.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "shim/relay/hpack.h"
#include "shim/relay/limits.h"
#include "shim/relay/long_strings.h"
#include "shim/rpc/field.h"
#include "shim/rpc/status.h"

/* What a field costs beside its text (RFC 9113 §10.5.1). */
#define FIELD_OVERHEAD_BYTES 32

struct header_listener {
    nghttp2_hd_inflater *inflater;
    struct long_strings strings; /* in front of it */
    struct header_fields fields;
    char *message;     /* of grpc-message; kept for the next one's */
    bool has_message;  /* the block has one */
    size_t list_bytes; /* of the block under way, decoded */
    bool within;       /* between the first and the final piece of a block */
    struct header_memo memo;
    const struct header_memo_entry *recalled; /* the block so far, not decoded */
    uint8_t block[RELAY_HEADER_MEMO_BYTES];   /* the block so far, as much as fits */
    size_t block_bytes;                       /* all of it */
    uint32_t allowed; /* the table's size: what the encoder was allowed last */
    int64_t lowered;  /* what it was lowered to, which the next block must say; -1: it need not */
};

static const struct header_fields NO_FIELDS = {.timeout_ms = UINT64_MAX, .grpc_status = -1};

struct header_listener *header_listener_new(void)
{
    struct header_listener *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    if (nghttp2_hd_inflate_new(&l->inflater) != 0) {
        free(l);
        return NULL;
    }
    l->fields = NO_FIELDS;
    l->allowed = NGHTTP2_DEFAULT_HEADER_TABLE_SIZE;
    l->lowered = -1;
    return l;
}

void header_listener_free(struct header_listener *l)
{
    if (!l)
        return;
    nghttp2_hd_inflate_del(l->inflater);
    free(l->message);
    free(l);
}

static void take_timeout(struct header_fields *fields, const nghttp2_nv *nv)
{
    uint64_t timeout_ms;

    if (status_timeout_parse(nv->value, nv->valuelen, &timeout_ms))
        fields->timeout_ms = timeout_ms;
}

/* An empty one, which comes with each success, is none; without memory there is none, either. */
static void take_message(struct header_listener *l, const nghttp2_nv *nv)
{
    size_t len = nv->valuelen;

    if (len == 0)
        return;
    if (len > RELAY_STATUS_TEXT_BYTES_MAX)
        len = RELAY_STATUS_TEXT_BYTES_MAX;
    free(l->message);
    l->message = malloc(len + 1);
    l->has_message = l->message != NULL;
    if (!l->message)
        return;
    memcpy(l->message, nv->value, len);
    l->message[len] = '\0';
}

static void take(struct header_listener *l, const nghttp2_nv *nv)
{
    struct header_fields *fields = &l->fields;

    if (field_is(nv->name, nv->namelen, ":path"))
        fields->method = cri_method_find((const char *)nv->value, nv->valuelen);
    else if (field_is(nv->name, nv->namelen, "grpc-encoding"))
        fields->encoding = message_encoding_parse(nv->value, nv->valuelen);
    else if (field_is(nv->name, nv->namelen, "grpc-timeout"))
        take_timeout(fields, nv);
    else if (field_is(nv->name, nv->namelen, "grpc-status"))
        fields->grpc_status = status_code_parse(nv->value, nv->valuelen);
    else if (field_is(nv->name, nv->namelen, "grpc-message"))
        take_message(l, nv);
}

static void begin(struct header_listener *l)
{
    l->fields = NO_FIELDS;
    l->has_message = false;
    l->list_bytes = 0;
    l->block_bytes = 0;
    l->within = true;
}

static void end(struct header_listener *l)
{
    nghttp2_hd_inflate_end_headers(l->inflater);
    l->within = false;
    l->lowered = -1;
    if (l->block_bytes <= sizeof l->block)
        header_memo_learn(&l->memo, l->block, l->block_bytes, l->has_message ? NULL : &l->fields);
    else
        header_memo_forget(&l->memo);
}

static void keep(struct header_listener *l, const uint8_t *bytes, size_t len)
{
    if (l->block_bytes + len <= sizeof l->block && len > 0)
        memcpy(l->block + l->block_bytes, bytes, len);
    l->block_bytes += len;
}

static int inflate(struct header_listener *l, const uint8_t *bytes, size_t len, bool final)
{
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(l->inflater, &nv, &flags, bytes, len, final);

        if (n < 0)
            return -EBADMSG;
        bytes += n;
        len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            l->list_bytes += nv.namelen + nv.valuelen + FIELD_OVERHEAD_BYTES;
            if (l->list_bytes > RELAY_HEADER_LIST_BYTES_MAX)
                return -E2BIG;
            take(l, &nv);
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) {
            end(l);
            return nghttp2_hd_inflate_get_dynamic_table_size(l->inflater) >
                           RELAY_HEADER_TABLE_BYTES_MAX
                       ? -E2BIG
                       : 0;
        }
        if (len == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT))
            return 0;
    }
}

static int decode(struct header_listener *l, const uint8_t *bytes, size_t len, bool final)
{
    struct long_strings_part part;
    int r;

    keep(l, bytes, len);
    while ((r = long_strings_next(&l->strings, l->allowed, &bytes, &len, &part)) > 0) {
        r = inflate(l, part.bytes, part.len, false);
        if (r < 0)
            return r;
    }
    if (r < 0 || !final)
        return r;
    return long_strings_end(&l->strings) ? inflate(l, (const uint8_t *)"", 0, true) : -EBADMSG;
}

int header_listener_feed(struct header_listener *l, const uint8_t *bytes, size_t len, bool final)
{
    const struct header_memo_entry *recalled = l->recalled;
    int r;

    if (!l->within)
        begin(l);
    if (recalled) {
        if (len == 0 && !final)
            return 0;
        l->recalled = NULL;
        if (len == 0) {
            l->fields = recalled->fields;
            l->within = false;
            return 0; /* what is remembered has no message */
        }
        /* It was only the block's beginning. */
        r = decode(l, recalled->bytes, recalled->len, false);
        if (r < 0)
            return r;
    } else if (l->block_bytes == 0 && !final) {
        l->recalled = header_memo_find(&l->memo, bytes, len);
        if (l->recalled)
            return 0;
    }
    return decode(l, bytes, len, final);
}

bool header_listener_recall(struct header_listener *l, const uint8_t *bytes, size_t len)
{
    const struct header_memo_entry *e = header_memo_find(&l->memo, bytes, len);

    if (!e)
        return false;
    l->has_message = false;
    l->fields = e->fields;
    return true;
}

const struct header_memo *header_listener_memo(const struct header_listener *l)
{
    return &l->memo;
}

const struct header_fields *header_listener_fields(const struct header_listener *l)
{
    return &l->fields;
}

const char *header_listener_message(const struct header_listener *l)
{
    return l->has_message ? l->message : NULL;
}

int header_listener_table_size(struct header_listener *l, uint32_t bytes)
{
    header_memo_forget(&l->memo);
    if (bytes < nghttp2_hd_inflate_get_max_dynamic_table_size(l->inflater))
        l->lowered = bytes;
    l->allowed = bytes;
    return nghttp2_hd_inflate_change_table_size(l->inflater, bytes) == 0 ? 0 : -ENOMEM;
}

/* ---- frozen ----
 *
 * The table is written as the block that makes it: a size update, then each entry, the oldest
 * first, as a literal that is indexed (RFC 7541 §6.2.1, §6.3). */

#define STATIC_ENTRIES 61 /* RFC 7541, appendix A */
/* A size update, and what the entries take. Each is counted FIELD_OVERHEAD_BYTES larger than its
 * texts, which three integers do not need. */
#define FROZEN_BLOCK_BYTES_MAX (RELAY_HEADER_TABLE_BYTES_MAX + HPACK_INTEGER_BYTES_MAX)
/* So that the block may name any. */
#define LARGEST_SIZE UINT32_MAX

static int put_text(struct buffer *block, const uint8_t *text, size_t len)
{
    uint8_t head[HPACK_INTEGER_BYTES_MAX];
    size_t head_len = hpack_put_integer(head, 0, 7, len);
    int r = buffer_put(block, head, head_len);

    return r < 0 ? r : buffer_put(block, text, len);
}

static int put_table(const struct header_listener *l, struct buffer *block)
{
    size_t size = nghttp2_hd_inflate_get_max_dynamic_table_size(l->inflater);
    uint8_t head[HPACK_INTEGER_BYTES_MAX];
    size_t head_len = hpack_put_integer(head, HPACK_TABLE_SIZE, 5, size + (l->lowered >= 0));
    int r = buffer_put(block, head, head_len);

    for (size_t i = nghttp2_hd_inflate_get_num_table_entries(l->inflater);
         r == 0 && i > STATIC_ENTRIES; i--) {
        const nghttp2_nv *nv = nghttp2_hd_inflate_get_table_entry(l->inflater, i);

        r = buffer_put(block, &(uint8_t){HPACK_LITERAL_INDEXED}, 1);
        if (r == 0)
            r = put_text(block, nv->name, nv->namelen);
        if (r == 0)
            r = put_text(block, nv->value, nv->valuelen);
    }
    return r;
}

void header_listener_freeze(const struct header_listener *l, struct frozen_writer *w)
{
    struct buffer block = {0};

    assert(!l->within);
    if (put_table(l, &block) < 0)
        w->no_memory = true;
    frozen_put(w, l->allowed);
    frozen_put(w, (uint64_t)(l->lowered + 1));
    frozen_put_bytes(w, buffer_data(&block), buffer_len(&block));
    buffer_fini(&block);
}

struct header_listener *header_listener_thaw(struct frozen_reader *r)
{
    uint32_t allowed = (uint32_t)frozen_take_most(r, UINT32_MAX);
    int64_t lowered = (int64_t)frozen_take_most(r, (uint64_t)UINT32_MAX + 1) - 1;
    size_t len;
    const uint8_t *block = frozen_take_bytes(r, FROZEN_BLOCK_BYTES_MAX, &len);
    struct header_listener *l = r->bad ? NULL : header_listener_new();

    if (!l)
        return NULL;
    if (header_listener_table_size(l, LARGEST_SIZE) == 0 &&
        header_listener_feed(l, block, len, true) == 0 &&
        (lowered < 0 || header_listener_table_size(l, (uint32_t)lowered) == 0) &&
        header_listener_table_size(l, allowed) == 0) {
        header_memo_forget(&l->memo);
        return l;
    }
    r->bad = true;
    header_listener_free(l);
    return NULL;
}
