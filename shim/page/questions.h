/*
 * The questions that the page asks, and their answers as JSON (shim/answers/answers.h).
 *
 * A list is {"items": [...], "next": [...]}: rows, and the place at which the next page begins, to
 * be given as `after`, part by part; none: it is the last. Why and status are what
 * cri-device-shimctl says.
 */
#ifndef SHIM_PAGE_QUESTIONS_H
#define SHIM_PAGE_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/list.h"
#include "shim/events/events.h"
#include "shim/page/limits.h"
#include "shim/report.h"
#include "shim/settings.h"

/* What is asked for, as it stands behind the '?': resource, driver, pod and namespace, which rows
 * are meant; after, once for each part; rows, how many at most. */
struct question {
    Control__V1__ListRequest request; /* its texts are borrowed */
    bool wrong;                       /* it can be none that is known here */

    /* private */
    char *place[PAGE_PLACE_PARTS_MAX];
};
void question_init(struct question *question);
/* Unknown names are passed over; `name` and `value` are borrowed. */
void question_add(struct question *question, const char *name, const char *value);

/* What answers are made from, borrowed. */
struct question_from {
    const struct list_from *lists;
    const struct settings *settings;
    const struct report *report;
    const struct events *events;
};

enum question_outcome { QUESTION_ANSWERED, QUESTION_UNKNOWN, QUESTION_WRONG };
/* Of this name. *out is the caller's, with QUESTION_ANSWERED. QUESTION_WRONG: `after` is no place
 * in this list, or not any more. */
enum question_outcome question_answer(const char *name, const struct question *question,
                                      const struct question_from *from, json_t **out);

#endif
