#include "devicemgr/words/shutdown.h"

#include <inttypes.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/moment.h"

#define GOES_DOWN "the machine goes down"

size_t shutdown_remaining(const struct state *state)
{
    size_t len = 0;

    for (const struct shutdown_pod *pod = state->shutdown.pods; pod; pod = pod->hh.next)
        len += !facts_pod_has_left(state, pod);
    return len;
}

uint64_t shutdown_settings_ms(const struct state *state)
{
    uint64_t all_ms = 0;

    for (size_t i = 0; i < state->settings.shutdown_len; i++)
        all_ms += state->settings.shutdown[i].grace_ms;
    return all_ms;
}

/* ---- what it has come to ---- */

static void tell_begun(const struct state *state, struct text *text)
{
    uint64_t limit_ms = state->shutdown.limit_ms;

    text_add(text, GOES_DOWN ": no sandbox and no container is made any more");
    if (limit_ms == 0)
        return;
    text_add(text, "; logind waits for ");
    text_add_duration(text, limit_ms);
    if (limit_ms >= shutdown_settings_ms(state))
        return;
    text_add(text, ", less than the ");
    text_add_duration(text, shutdown_settings_ms(state));
    text_add(text, " of [shutdown]: InhibitDelayMaxSec of logind.conf is too small");
}

static void tell_shortened(const struct state *state, struct text *text)
{
    (void)state;
    text_add(text, GOES_DOWN ": there is less time than [shutdown] wants, whose times are "
                             "shortened alike");
}

static void tell_group(const struct state *state, struct text *text)
{
    const struct shutdown *shutdown = &state->shutdown;

    text_add(text, GOES_DOWN ": %zu pods", shutdown_group_len(shutdown, shutdown->group));
    if (shutdown->by_priority)
        text_add(text, " are ended, group %zu of %zu (priority %" PRId32 "%s), within ",
                 shutdown->group + 1, shutdown->groups_len,
                 shutdown->groups[shutdown->group].priority,
                 shutdown->group == 0 ? ", more or less" : " and more");
    else
        text_add(text,
                 " that have devices are ended, the others' priorities are not known, within ");
    text_add_duration(text, time_left(state->now_ms, shutdown_group_ends_ms(shutdown)));
}

static void tell_kubelet(const struct state *state, struct text *text)
{
    (void)state;
    text_add(text, GOES_DOWN ": the kubelet ends its pods itself");
}

static void tell_left(const struct state *state, struct text *text)
{
    (void)state;
    text_add(text, GOES_DOWN
             ": the kubelet has let go of its lock: what it has not ended is ended from here");
}

static void tell_over(const struct state *state, struct text *text)
{
    (void)state;
    text_add(text, GOES_DOWN ": what was to be done before is done");
}

static void tell_late(const struct state *state, struct text *text)
{
    text_add(text, GOES_DOWN ": there is no time left");
    if (shutdown_remaining(state) > 0)
        text_add(text, " for %zu pods, which have not ended", shutdown_remaining(state));
}

static void tell_cancelled(const struct state *state, struct text *text)
{
    (void)state;
    text_add(text, "the machine does not go down: sandboxes and containers are made again");
}

static void tell_given_up(const struct state *state, struct text *text)
{
    (void)state;
    text_add(text,
             "the machine was to go down and has not: sandboxes and containers are made again");
}

static void tell_restored(const struct state *state, struct text *text)
{
    text_add(text, GOES_DOWN ", since ");
    text_add_duration(text, ago(state->now_ms, state->shutdown.since_ms));
    text_add(text, ", as is known from before this start");
}

void shutdown_tell(const struct state *state, const char *word, struct text *text)
{
    static const struct {
        const char *word;
        void (*tell)(const struct state *state, struct text *text);
    } SENTENCES[] = {{"begun", tell_begun},       {"shortened", tell_shortened},
                     {"group", tell_group},       {"kubelet", tell_kubelet},
                     {"left", tell_left},         {"over", tell_over},
                     {"late", tell_late},         {"cancelled", tell_cancelled},
                     {"given-up", tell_given_up}, {"restored", tell_restored}};

    for (size_t i = 0; i < sizeof SENTENCES / sizeof *SENTENCES; i++) {
        if (strcmp(SENTENCES[i].word, word) == 0)
            SENTENCES[i].tell(state, text);
    }
}

void shutdown_explain(struct text *text)
{
    text_add(text, "node is shutting down");
}
