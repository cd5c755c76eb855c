/*
 * What is said of the machine's shutdown.
 */
#ifndef DEVICEMGR_WORDS_SHUTDOWN_H
#define DEVICEMGR_WORDS_SHUTDOWN_H

#include <stddef.h>

#include "devicemgr/things/text.h"

struct state;

/* Adds a sentence for people: what it has come to. `word`: begun, shortened, group, kubelet, over,
 * late, cancelled, given-up, restored. */
void shutdown_tell(const struct state *state, const char *word, struct text *text);
/* Adds why nothing is made, as a refusal says it: always the same, since the kubelet tells of each
 * other one anew. */
void shutdown_explain(struct text *text);
/* How many pods are still to end in it. */
size_t shutdown_remaining(const struct state *state);
/* What the settings' groups come to. */
uint64_t shutdown_settings_ms(const struct state *state);

#endif
