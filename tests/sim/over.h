/*
 * When a pod is over to the shim: what it was told of the pod's newest sandbox, by lists, by stops
 * that were asked for and answered, and by the durable row of the pod when it started.
 *
 * A sandbox that was dead when it was stopped is followed by another, mostly: until
 * SANDBOX_REMADE_MS later its pod is not over. A shim that starts in that time counts it anew.
 */
#ifndef TESTS_SIM_OVER_H
#define TESTS_SIM_OVER_H

#include <stdbool.h>

struct rt_sandbox;
struct world;

/* The pod's with the highest attempt; NULL: the runtime has none. */
struct rt_sandbox *over_newest(const struct world *w, unsigned uid);

/* A list that has come shows the sandbox. */
void over_listed(struct world *w, unsigned sandbox, bool ready);
/* The shim is told that its stop is asked for. */
void over_stop_asked(struct world *w, struct rt_sandbox *sandbox);
/* And that it succeeded. */
void over_stop_told(struct world *w, struct rt_sandbox *sandbox);
/* After each event: what was stopped some time ago is stored as stopped. */
void over_check(struct world *w);
/* A shim starts with the rows that the store has. */
void over_shim_started(struct world *w);

/* None of its containers runs, it has no sandbox that is ready, and a list told the shim. */
bool over_listed_as_ended(const struct world *w, unsigned uid);
/* To the shim, too: that its newest sandbox was stopped, and no other will come. */
bool over_surely(const struct world *w, unsigned uid);
/* It lives, and the shim must know that it may get another sandbox. */
bool over_remade(struct world *w, unsigned uid);

#endif
