#include "shim/bridge/request_block.h"

#include <errno.h>

#include "shim/rpc/field.h"

/* All fields of a block, as RFC 9113 §6.5.2 counts them. */
#define FIELDS_BYTES_MAX ((size_t)64 * 1024)
/* "The table has no bytes": a later block need not say it again, an inflater of its own must hear
 * it (RFC 7541 §6.3). */
static const uint8_t NO_TABLE = 0x20;

struct reading {
    const char *const *paths;
    size_t paths_len;
    struct request_block *out;
    bool has_path;
    size_t bytes;
};

static size_t find(const struct reading *reading, const nghttp2_nv *path)
{
    size_t i = 0;

    while (i < reading->paths_len && !field_is(path->value, path->valuelen, reading->paths[i]))
        i++;
    return i;
}

static void take(struct reading *reading, const nghttp2_nv *nv)
{
    struct request_block *out = reading->out;

    if (field_is(nv->name, nv->namelen, ":path")) {
        out->malformed |= reading->has_path;
        reading->has_path = true;
        out->method = find(reading, nv);
    } else if (field_is(nv->name, nv->namelen, ":method")) {
        out->post = field_is(nv->value, nv->valuelen, "POST");
    } else if (field_is(nv->name, nv->namelen, "content-type")) {
        out->grpc = field_is_grpc_type(nv->value, nv->valuelen);
    } else if (field_is(nv->name, nv->namelen, "grpc-encoding")) {
        out->encoding = message_encoding_parse(nv->value, nv->valuelen);
    }
}

static int decode(nghttp2_hd_inflater *inflater, const uint8_t *bytes, size_t len, bool final,
                  struct reading *reading)
{
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, bytes, len, final);

        if (n < 0)
            return n == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EBADMSG;
        bytes += n;
        len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            reading->bytes += field_bytes(nv.namelen, nv.valuelen);
            if (reading->bytes > FIELDS_BYTES_MAX)
                return -E2BIG;
            take(reading, &nv);
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            return nghttp2_hd_inflate_end_headers(inflater) ? -EBADMSG : 0;
        if (len == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT))
            return 0;
    }
}

static int decode_alone(const uint8_t *bytes, size_t len, struct reading *reading)
{
    nghttp2_hd_inflater *inflater;
    int err;

    if (nghttp2_hd_inflate_new(&inflater) != 0)
        return -ENOMEM;
    err = nghttp2_hd_inflate_change_table_size(inflater, 0) ? -ENOMEM : 0;
    if (!err)
        err = decode(inflater, &NO_TABLE, 1, false, reading);
    if (!err)
        err = decode(inflater, bytes, len, true, reading);
    nghttp2_hd_inflate_del(inflater);
    return err;
}

int request_block_read(nghttp2_hd_inflater *inflater, const uint8_t *bytes, size_t len,
                       const char *const *paths, size_t paths_len, struct request_block *out)
{
    struct reading reading = {.paths = paths, .paths_len = paths_len, .out = out};
    int err;

    *out = (struct request_block){.method = paths_len};
    err = inflater ? decode(inflater, bytes, len, true, &reading)
                   : decode_alone(bytes, len, &reading);
    out->malformed = out->malformed || !reading.has_path;
    return err;
}
