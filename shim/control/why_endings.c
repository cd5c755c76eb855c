/*
 * The part of the answer to Why that is about pods that are ended, or are to be.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/why.h"
#include "shim/must.h"

static char *copy(const char *text)
{
    return must(strdup(text));
}

static void add_ask(Control__V1__Ending *to, const struct devicemgr_ending_ask *is)
{
    Control__V1__EndingAsk *ask = must(malloc(sizeof *ask));

    control__v1__ending_ask__init(ask);
    ask->asker = copy(is->asker);
    ask->why = copy(is->why);
    ask->own_grace = is->own_grace;
    ask->grace_ms = is->grace_ms;
    ask->here = is->here;
    to->asks[to->n_asks++] = ask;
}

static bool on_ending(void *user, const struct devicemgr_ending_row *is)
{
    struct why *why = user;
    Control__V1__WhyResponse *response = &why->response;
    Control__V1__Ending *to;

    if (response->n_endings == CONTROL_WHY_ENDINGS_MAX) {
        response->more = true;
        return false;
    }
    to = must(malloc(sizeof *to));
    control__v1__ending__init(to);
    to->pod_namespace = copy(is->pod_namespace);
    to->name = copy(is->name);
    to->uid = copy(is->uid);
    to->state = copy(is->state);
    to->asked_ms = is->asked_ms_ago;
    to->due = is->due;
    to->due_in_ms = is->due_in_ms;
    to->asks = must(calloc(is->asks_len + 1, sizeof *to->asks));
    while (to->n_asks < is->asks_len)
        add_ask(to, &is->asks[to->n_asks]);
    response->endings[response->n_endings++] = to;
    return true;
}

void why_add_endings(struct why *why, const struct devicemgr *core, const char *pod)
{
    const struct devicemgr_which which = {.pod = pod};

    why->response.endings = must(calloc(CONTROL_WHY_ENDINGS_MAX, sizeof *why->response.endings));
    devicemgr_ending_rows(core, boot_now_ms(), &which, on_ending, why);
}

void why_free_endings(struct why *why)
{
    for (size_t i = 0; i < why->response.n_endings; i++)
        control__v1__ending__free_unpacked(why->response.endings[i], NULL);
    free(why->response.endings);
}
