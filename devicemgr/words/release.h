/*
 * Why the devices of a pod cannot be taken from it, in words for the operator who asked.
 */
#ifndef DEVICEMGR_WORDS_RELEASE_H
#define DEVICEMGR_WORDS_RELEASE_H

#include <stdbool.h>

struct allocation;
struct sandbox;
struct state;
struct text;

enum release_bar {
    RELEASE_BAR_NONE,
    RELEASE_BAR_CREATING, /* `holder`: a create of its container is under way */
    RELEASE_BAR_RUNS,     /* `holder`: its container runs, by the runtime's word */
    RELEASE_BAR_UNKNOWN,  /* `holder`: a container of it may be in the making */
    RELEASE_BAR_SANDBOX,  /* `sandbox`: it is ready, the pod is there */
};

/* What is in the way; all of it the state's, until that changes. */
struct release_look {
    enum release_bar bar;
    const struct allocation *holder;
    const struct sandbox *sandbox;
    bool named; /* the kubelet's checkpoint gives the pod devices; in nobody's way */
};

/* Adds the sentence; of nothing in the way only what is `named`, or nothing. */
void release_explain(const struct state *state, const struct release_look *look, struct text *text);

#endif
