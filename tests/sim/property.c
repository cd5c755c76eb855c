#include "tests/sim/property.h"

#include <stdarg.h>
#include <stdio.h>

#include "tests/sim/world.h"

static struct property *properties;

void property_meet(struct property *property)
{
    property->known = true;
    property->next = properties;
    properties = property;
}

void property_break(struct world *w, struct property *property, const char *sentence, ...)
{
    va_list args;

    if (w->broken[0])
        return;
    property->broken = true;
    va_start(args, sentence);
    vsnprintf(w->broken, sizeof w->broken, sentence, args);
    va_end(args);
    world_note(w, "BROKEN: %s", w->broken);
}

void properties_count(size_t *looked_at, size_t *broken)
{
    *looked_at = *broken = 0;
    for (const struct property *p = properties; p; p = p->next) {
        ++*looked_at;
        *broken += p->broken;
    }
}
