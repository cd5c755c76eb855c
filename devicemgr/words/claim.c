#include "devicemgr/words/claim.h"

#include "devicemgr/books/state.h"
#include "devicemgr/things/moment.h"

struct kind {
    int code;
    void (*explain)(const struct state *state, const struct claim_refusal *refusal,
                    struct text *text);
    const char *sentence;
};

static const struct kind *kind_of(const struct claim_refusal *refusal);

static void explain_words(const struct state *state, const struct claim_refusal *refusal,
                          struct text *text)
{
    (void)state;
    text_add(text, "%s", kind_of(refusal)->sentence);
    if (refusal->words)
        text_add_words(text, refusal->words, TEXT_WORDS_BYTES_MAX);
}

static void explain_unread(const struct state *state, const struct claim_refusal *refusal,
                           struct text *text)
{
    text_add(text, "%s", kind_of(refusal)->sentence);
    text_add_words(text, state->unread ? state->unread : "not yet", TEXT_WORDS_BYTES_MAX);
}

static void explain_away(const struct state *state, const struct claim_refusal *refusal,
                         struct text *text)
{
    const struct driver *driver = drivers_find(&state->drivers, refusal->driver);

    if (!driver || !driver->instances) {
        text_add(text, "DRA driver ");
        text_add_words(text, refusal->driver, TEXT_WORDS_BYTES_MAX);
        text_add(text, " is not registered");
    } else {
        text_add(text, "there is no connection to it");
    }
    if (driver) {
        text_add(text, ", for ");
        text_add_duration(text, ago(state->now_ms, driver->away_ms));
    }
    if (driver && driver->why[0] != '\0') {
        text_add(text, " (");
        text_add_words(text, driver->why, TEXT_WORDS_BYTES_MAX / 2);
        text_add(text, ")");
    }
    text_add(text, "; waited ");
    text_add_duration(text, refusal->waited_ms);
}

static void explain_waited(const struct state *state, const struct claim_refusal *refusal,
                           struct text *text)
{
    (void)state;
    text_add(text, "%s", kind_of(refusal)->sentence);
    text_add_duration(text, refusal->waited_ms);
}

static const struct kind KINDS[CLAIM_REFUSAL_KINDS] = {
    [CLAIM_REFUSED_NAMES] = {CODE_INVALID_ARGUMENT, explain_words,
                             "its names are too long, none, or no UTF-8"},
    [CLAIM_REFUSED_MANY] = {CODE_RESOURCE_EXHAUSTED, explain_words,
                            "too many claims are kept on this node already"},
    [CLAIM_REFUSED_QUEUE] = {CODE_RESOURCE_EXHAUSTED, explain_words,
                             "too many claims are waited for on this node already"},
    [CLAIM_REFUSED_UNREAD] = {CODE_UNAVAILABLE, explain_unread,
                              "the state of this node's claims cannot be read: "},
    [CLAIM_REFUSED_DRAIN] = {CODE_UNAVAILABLE, explain_words, "the shim is being stopped"},
    [CLAIM_REFUSED_AWAY] = {CODE_UNAVAILABLE, explain_away, ""},
    [CLAIM_REFUSED_OWED] = {CODE_UNAVAILABLE, explain_words,
                            "the driver has to unprepare another claim first, which was told to be "
                            "unprepared while it was away: "},
    [CLAIM_REFUSED_USED] = {CODE_UNAVAILABLE, explain_words,
                            "it is not unprepared as long as a container may run with it: "},
    [CLAIM_REFUSED_TURN] = {CODE_UNAVAILABLE, explain_waited,
                            "the driver is still busy with what was asked for it before; waited "},
    [CLAIM_REFUSED_UNSTORED] = {CODE_UNAVAILABLE, explain_waited,
                                "that it is asked for was not stored within "},
    [CLAIM_REFUSED_STORE] = {CODE_UNAVAILABLE, explain_words, "it cannot be stored: "},
    [CLAIM_REFUSED_ANSWER] = {CODE_RESOURCE_EXHAUSTED, explain_words,
                              "the driver answered more than can be kept"},
};

static const struct kind *kind_of(const struct claim_refusal *refusal)
{
    return &KINDS[refusal->kind];
}

int claim_refusal_code(enum claim_refusal_kind kind)
{
    return KINDS[kind].code;
}

void claim_refusal_explain(const struct state *state, const struct claim_refusal *refusal,
                           struct text *text)
{
    text_add(text, "claim ");
    text_add_words(text, refusal->pod_namespace, TEXT_IDS_BYTES_MAX);
    text_add(text, "/");
    text_add_words(text, refusal->name, TEXT_IDS_BYTES_MAX);
    text_add(text, ", driver ");
    text_add_words(text, refusal->driver, TEXT_IDS_BYTES_MAX);
    text_add(text, ": ");
    kind_of(refusal)->explain(state, refusal, text);
}

void claim_explain_user(const char *container, const char *pod, struct text *text)
{
    text_add(text, "container \"");
    text_add_words(text, container, TEXT_IDS_BYTES_MAX);
    text_add(text, "\" of pod ");
    text_add_words(text, pod, TEXT_IDS_BYTES_MAX);
}

void claim_explain_owed(const char *driver, const char *pod_namespace, const char *name,
                        const char *words, struct text *text)
{
    text_add(text, "claim ");
    text_add_words(text, pod_namespace, TEXT_IDS_BYTES_MAX);
    text_add(text, "/");
    text_add_words(text, name, TEXT_IDS_BYTES_MAX);
    text_add(text, ", which is to be unprepared since its driver ");
    text_add_words(text, driver, TEXT_IDS_BYTES_MAX);
    text_add(text, " was away, failed: ");
    text_add_words(text, words ? words : "no reason given", TEXT_WORDS_BYTES_MAX);
}

void claim_explain_registered(const char *endpoint, const char *driver, struct text *text)
{
    text_add(text, "endpoint ");
    text_add_words(text, endpoint, TEXT_WORDS_BYTES_MAX);
    text_add(text, " already registered for DRA driver plugin ");
    text_add_words(text, driver, TEXT_WORDS_BYTES_MAX);
}
