#include "cri-proto/resource_name.h"

#include <string.h>

#define SUBDOMAIN_BYTES_MAX 253
#define NAME_PART_BYTES_MAX 63
/* What the kubelet puts in front before it applies the rule of qualified names. */
#define QUOTA_PREFIX "requests."

/* Own tests instead of isalnum(3): the answer must not depend on the locale. */
static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

static bool is_subdomain(const char *s, size_t len)
{
    char before = '.';

    if (len == 0 || len + strlen(QUOTA_PREFIX) > SUBDOMAIN_BYTES_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool inner = before != '.' && i + 1 < len && s[i + 1] != '.';

        if (!is_lower_or_digit(s[i]) && !(s[i] == '-' && inner) &&
            !(s[i] == '.' && before != '.' && i + 1 < len))
            return false;
        before = s[i];
    }
    return true;
}

static bool is_name_part(const char *s)
{
    size_t len = strlen(s);

    if (len == 0 || len > NAME_PART_BYTES_MAX || !is_alnum(s[0]) || !is_alnum(s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(s[i]) && !strchr("-_.", s[i]))
            return false;
    }
    return true;
}

bool resource_name_valid(const char *name)
{
    const char *slash = strchr(name, '/');

    if (!slash || strstr(name, "kubernetes.io/") ||
        strncmp(name, QUOTA_PREFIX, strlen(QUOTA_PREFIX)) == 0)
        return false;
    return is_subdomain(name, (size_t)(slash - name)) && is_name_part(slash + 1);
}
