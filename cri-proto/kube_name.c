#include "cri-proto/kube_name.h"

#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define LOWER_OR_UPPER LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Of a label of any kind, and so of a name behind '/', a label's value, a driver. */
#define LABEL_BYTES_MAX 63

/* `ends`, and between the first and the last of them `inner` as well. */
static bool is_word(const char *text, size_t len, const char *ends, const char *inner)
{
    return len > 0 && strchr(ends, text[0]) && strchr(ends, text[len - 1]) &&
           strspn(text, inner) >= len;
}

bool kube_name_is_dns_label(const char *text)
{
    size_t len = strlen(text);

    return len <= LABEL_BYTES_MAX && is_word(text, len, LOWER, LOWER "-");
}

bool kube_name_is_dns_subdomain(const char *text, size_t len)
{
    const char *end = text + len;

    if (len > KUBE_SUBDOMAIN_BYTES_MAX)
        return false;
    for (const char *dot; (dot = memchr(text, '.', (size_t)(end - text))); text = dot + 1) {
        if (!is_word(text, (size_t)(dot - text), LOWER, LOWER "-"))
            return false;
    }
    return is_word(text, (size_t)(end - text), LOWER, LOWER "-");
}

bool kube_name_is_driver(const char *text)
{
    size_t len = strlen(text);

    return len <= LABEL_BYTES_MAX && kube_name_is_dns_subdomain(text, len);
}

bool kube_name_is_qualified(const char *text)
{
    const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;

    return (!slash || kube_name_is_dns_subdomain(text, (size_t)(slash - text))) && *name != '\0' &&
           kube_name_is_label_value(name);
}

bool kube_name_is_label_value(const char *text)
{
    size_t len = strlen(text);

    return len == 0 || (len <= KUBE_LABEL_VALUE_BYTES_MAX &&
                        is_word(text, len, LOWER_OR_UPPER, LOWER_OR_UPPER "-_."));
}
