#include "shim/control/told_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/hash.h"

bool told_id_is_cut(const char *id)
{
    return strnlen(id, CONTROL_ID_BYTES_MAX + 1) > CONTROL_ID_BYTES_MAX;
}

/* So many of its bytes, and no character in part. */
static int beginning_bytes(const char *id)
{
    int len = CONTROL_ID_BYTES_MAX;

    while (len > CONTROL_ID_BYTES_MAX - 3 && ((unsigned char)id[len] & 0xc0) == 0x80)
        len--;
    return len;
}

void told_id_cut(const char *id, char out[static TOLD_ID_BYTES_MAX])
{
    snprintf(out, TOLD_ID_BYTES_MAX, "%.*s...(%zu bytes, %016" PRIx64 ")", beginning_bytes(id), id,
             strlen(id), hash_text(HASH_BEGIN, id));
}

bool told_id_is_of(const char *told, const char *id)
{
    char again[TOLD_ID_BYTES_MAX];

    if (!told_id_is_cut(id) || memcmp(told, id, CONTROL_ID_BYTES_MAX - 3) != 0)
        return false;
    told_id_cut(id, again);
    return strcmp(told, again) == 0;
}
