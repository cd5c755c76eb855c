/*
 * The properties that hold in every world, and how often each was looked at.
 *
 * A property is the sentence at one check_that(). One that is broken ends the run of its seed; the
 * unit of the last line of `sim` is a property, not a seed.
 */
#ifndef TESTS_SIM_PROPERTY_H
#define TESTS_SIM_PROPERTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

struct property {
    bool known; /* it is in the list */
    bool broken;
    struct property *next;
};

/* The first word on it: takes it into the list. */
void property_meet(struct property *property);
/* Kept in the world, with the sentence, as what ends the run; the first counts. */
void property_break(struct world *w, struct property *property, const char *sentence, ...)
    __attribute__((format(printf, 3, 4)));
/* How many were looked at, and how many of them were broken. */
void properties_count(size_t *looked_at, size_t *broken);

/* The sentence is a printf format; its arguments are evaluated only if it does not hold. */
#define check_that(w, holds, ...)                                                                  \
    do {                                                                                           \
        static struct property check_property;                                                     \
        if (!check_property.known)                                                                 \
            property_meet(&check_property);                                                        \
        if (!(holds))                                                                              \
            property_break((w), &check_property, __VA_ARGS__);                                     \
    } while (0)

#endif
