#include "shim/relay/header_block.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "shim/relay/limits.h"
#include "shim/rpc/status.h"

/* What a field costs beside its text (RFC 9113 §10.5.1). */
#define FIELD_OVERHEAD_BYTES 32

struct header_listener {
    nghttp2_hd_inflater *inflater;
    struct header_fields fields;
    size_t list_bytes; /* of the block under way, decoded */
    bool within;       /* between the first and the final piece of a block */
    struct header_memo memo;
    const struct header_memo_entry *recalled; /* the block so far, not decoded */
    uint8_t block[RELAY_HEADER_MEMO_BYTES];   /* the block so far, as much as fits */
    size_t block_bytes;                       /* all of it */
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
    return l;
}

void header_listener_free(struct header_listener *l)
{
    if (!l)
        return;
    nghttp2_hd_inflate_del(l->inflater);
    free(l);
}

static bool is(const uint8_t *text, size_t len, const char *literal)
{
    return len == strlen(literal) && memcmp(text, literal, len) == 0;
}

static void take_timeout(struct header_fields *fields, const nghttp2_nv *nv)
{
    uint64_t timeout_ms;

    if (status_timeout_parse(nv->value, nv->valuelen, &timeout_ms))
        fields->timeout_ms = timeout_ms;
}

static void take(struct header_fields *fields, const nghttp2_nv *nv)
{
    if (is(nv->name, nv->namelen, ":path"))
        fields->method = cri_method_find((const char *)nv->value, nv->valuelen);
    else if (is(nv->name, nv->namelen, "grpc-encoding"))
        fields->encoding = message_encoding_parse(nv->value, nv->valuelen);
    else if (is(nv->name, nv->namelen, "grpc-timeout"))
        take_timeout(fields, nv);
    else if (is(nv->name, nv->namelen, "grpc-status"))
        fields->grpc_status = status_code_parse(nv->value, nv->valuelen);
}

static void begin(struct header_listener *l)
{
    l->fields = NO_FIELDS;
    l->list_bytes = 0;
    l->block_bytes = 0;
    l->within = true;
}

static void end(struct header_listener *l)
{
    nghttp2_hd_inflate_end_headers(l->inflater);
    l->within = false;
    if (l->block_bytes <= sizeof l->block)
        header_memo_learn(&l->memo, l->block, l->block_bytes, &l->fields);
    else
        header_memo_forget(&l->memo);
}

static void keep(struct header_listener *l, const uint8_t *bytes, size_t len)
{
    if (l->block_bytes + len <= sizeof l->block && len > 0)
        memcpy(l->block + l->block_bytes, bytes, len);
    l->block_bytes += len;
}

static int decode(struct header_listener *l, const uint8_t *bytes, size_t len, int final)
{
    keep(l, bytes, len);
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
            take(&l->fields, &nv);
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

int header_listener_feed(struct header_listener *l, const uint8_t *bytes, size_t len, int final)
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
            return 0;
        }
        r = decode(l, recalled->bytes, recalled->len, 0); /* it was only the block's beginning */
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
    l->fields = e->fields;
    return true;
}

const struct header_fields *header_listener_fields(const struct header_listener *l)
{
    return &l->fields;
}

int header_listener_table_size(struct header_listener *l, uint32_t bytes)
{
    header_memo_forget(&l->memo);
    return nghttp2_hd_inflate_change_table_size(l->inflater, bytes) == 0 ? 0 : -ENOMEM;
}
