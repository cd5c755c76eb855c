#include "devicemgr/things/cdi.h"

#include <string.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"

#define PHRASE "unresolvable CDI devices "
#define BETWEEN ", "
/* Of a qualified name, vendor.com/class=name, as CDI's specification has it. */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/="

/* A name ends in no colon; one behind it begins other words. */
static void add(struct ids *names, const char *text, size_t len)
{
    char *name;

    while (len > 0 && text[len - 1] == ':')
        len--;
    name = mem_alloc(len + 1, 1);
    memcpy(name, text, len);
    if (len > 0)
        ids_add(names, name);
    free(name);
}

void cdi_unresolved(const char *words, struct ids *names)
{
    const char *at = strstr(words, PHRASE);

    if (!at)
        return;
    for (at += strlen(PHRASE); names->len < UNRESOLVED_MAX;) {
        size_t len = strspn(at, NAME_CHARACTERS);

        add(names, at, len);
        at += len;
        if (len == 0 || strncmp(at, BETWEEN, strlen(BETWEEN)) != 0)
            return;
        at += strlen(BETWEEN);
    }
}
