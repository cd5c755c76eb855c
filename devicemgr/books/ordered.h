/*
 * What follows from what an operator has set (order.h), for whoever it concerns.
 */
#ifndef DEVICEMGR_BOOKS_ORDERED_H
#define DEVICEMGR_BOOKS_ORDERED_H

#include <stdbool.h>
#include <stdint.h>

struct order;
struct order_words;
struct resource;
struct state;

/* One of its has come, is another, or is going: the kubelet is shown something else, and creates
 * that want the resource are looked at again. */
void ordered_changed(struct state *state, const char *resource);
/* The commit that carried it is over. */
void ordered_committed(struct state *state, struct order *order, bool durable);
/* All rows are in: what was set of a grace period that is under way no more is over, and of a taint
 * whose time has begun anew that is stored. */
void ordered_restored(struct state *state);

/* What is set of the grace period under way, and in force; NULL: nothing. */
const struct order_words *ordered_grace(const struct state *state, const char *resource);
/* How long a plugin of the resource may be away, all in all. */
uint64_t ordered_grace_ms(const struct state *state, const struct resource *resource);
/* The grace period that is under way, if one is, has ended. */
void ordered_grace_over(struct state *state, const char *resource);

#endif
