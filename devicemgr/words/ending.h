/*
 * What is said of a pod that is being ended.
 */
#ifndef DEVICEMGR_WORDS_ENDING_H
#define DEVICEMGR_WORDS_ENDING_H

#include "devicemgr/ports.h"
#include "devicemgr/things/ending.h"
#include "devicemgr/things/text.h"

/* Adds whom it is about, how far it is, by whom and why: a sentence for people. */
void ending_tell(const struct ending *ending, struct text *text);
/* Adds what an operator is told who is about to take his word back. */
void ending_tell_taken_back(const struct ending *ending, struct text *text);
/* Adds why nothing of the pod is made any more, as a refusal says it. */
void ending_explain(const struct ending *ending, struct text *text);
/* The same of a sandbox, with its pod. */
void ending_refuse_sandbox(const struct ending *ending, struct text *text);
/* Whom a line of the log is about; borrowed. */
struct devicemgr_about ending_about(const struct ending *ending);

#endif
