/*
 * What ends a reason to wait or to refuse: a sentence for each, for who asks why.
 */
#ifndef DEVICEMGR_WORDS_REMEDY_H
#define DEVICEMGR_WORDS_REMEDY_H

#include "devicemgr/words/reason.h"

/* What must happen, by whom, so that it is one no more. */
const char *remedy_of(enum reason_kind kind);

#endif
