#include "cri-proto/lifted_name.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/kube_name.h"

/* 128 bits, five in a character. */
#define HASH_CHARACTERS 26
#define SEPARATOR "--"
#define READABLE_BYTES_MAX (LIFTED_NAME_BYTES - 1 - HASH_CHARACTERS - (sizeof SEPARATOR - 1))
/* Of what has no letter that could stay. */
#define UNREADABLE "device"

typedef unsigned __int128 hash128;

/* The Internet-Draft draft-eastlake-fnv has both numbers. */
static hash128 hash_of(const char *text)
{
    const hash128 prime = (hash128)1 << 88 | 0x13b;
    hash128 hash = (hash128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;

    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * prime;
    return hash;
}

static void put_hash(char *out, const char *text)
{
    static const char DIGITS[] = "abcdefghijklmnopqrstuvwxyz234567";
    hash128 hash = hash_of(text);

    for (size_t i = 0; i < HASH_CHARACTERS; i++) {
        *out++ = DIGITS[hash & 31];
        hash >>= 5;
    }
    *out = '\0';
}

/* Small letters and digits; one '-' for any others between them. */
static size_t put_readable(char *out, const char *text)
{
    bool gap = false;
    size_t len = 0;

    for (; *text && len < READABLE_BYTES_MAX - 1; text++) {
        char c = *text;

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            if (gap && len > 0)
                out[len++] = '-';
            out[len++] = c;
            gap = false;
        } else {
            gap = true;
        }
    }
    return len;
}

static void put_hashed(char *out, const char *text)
{
    size_t len = put_readable(out, text);

    if (len == 0)
        len = (size_t)sprintf(out, "%s", UNREADABLE);
    strcpy(out + len, SEPARATOR);
    put_hash(out + len + strlen(SEPARATOR), text);
}

void lifted_name_device(const char *id, char out[LIFTED_NAME_BYTES])
{
    if (kube_name_is_dns_label(id) && !strstr(id, SEPARATOR))
        strcpy(out, id);
    else
        put_hashed(out, id);
}

void lifted_name_pool(const char *resource, char out[LIFTED_POOL_BYTES])
{
    const char *name = strchr(resource, '/') + 1;
    size_t domain = (size_t)(name - resource);

    assert(domain <= KUBE_SUBDOMAIN_BYTES_MAX + 1); /* a resource's name was looked at */
    memcpy(out, resource, domain);
    if (strlen(name) < LIFTED_NAME_BYTES && kube_name_is_dns_subdomain(name, strlen(name)) &&
        !strstr(name, SEPARATOR))
        strcpy(out + domain, name);
    else
        put_hashed(out + domain, name);
}

bool lifted_name_attribute(const char *resource, char out[LIFTED_POOL_BYTES])
{
    if (strlen(resource) <= LIFTED_TEXT_BYTES_MAX)
        strcpy(out, resource);
    else
        lifted_name_pool(resource, out);
    return strlen(out) <= LIFTED_TEXT_BYTES_MAX;
}

void lifted_name_class(const char *resource, char out[LIFTED_CLASS_BYTES])
{
    char pool[LIFTED_POOL_BYTES];
    const char *name;

    lifted_name_pool(resource, pool);
    name = strchr(pool, '/') + 1;
    if (strlen(pool) < LIFTED_CLASS_BYTES && kube_name_is_dns_label(name))
        sprintf(out, "%s.%.*s", name, (int)(name - 1 - pool), pool);
    else /* one with dots might begin a domain */
        lifted_name_device(resource, out);
}
