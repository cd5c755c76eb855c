/*
 * What was decided on each create, as lines that two builds of the core can be compared by: the
 * order in which creates are decided does not show, and two that decide alike write the same.
 */
#ifndef TESTS_SIM_DECISION_H
#define TESTS_SIM_DECISION_H

#include <stddef.h>
#include <stdio.h>

struct create_sim;
struct world;

struct decision;

/* A zeroed struct is empty. */
struct decisions {
    struct decision *v;
    size_t len;
};

/* One line of what became of the create; `what` copied. Nothing unless somebody reads them. */
void decision_add(struct world *w, const struct create_sim *create, const char *what);
/* A line each, in the order of pod, container, attempt, and of asking: "seed u1/main/0: what". */
void decisions_write(struct world *w, FILE *out);
void decisions_fini(struct decisions *decisions);

#endif
