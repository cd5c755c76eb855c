#include "devicemgr/words/claim.h"

#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/things/moment.h"

struct kind {
    const char *word;
    int code;
    void (*explain)(const struct state *state, const struct claim_refusal *refusal,
                    struct text *text);
    const char *sentence;
    const char *clears;
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
    if (driver && driver->moved) {
        text_add(text, " (it has registered with the kubelet itself)");
    } else if (driver && driver->why[0] != '\0') {
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

static void explain_owed(const struct state *state, const struct claim_refusal *refusal,
                         struct text *text)
{
    const struct driver *driver = drivers_find(&state->drivers, refusal->driver);

    text_add(text, "%s", kind_of(refusal)->sentence);
    if (!driver) { /* nor since when */
        text_add(text, ": it is not registered");
    } else if (!driver_callable(driver)) {
        text_add(text, ": it is still away, for ");
        text_add_duration(text, ago(state->now_ms, driver->away_ms));
    } else if (refusal->words) {
        text_add(text, ": it was, and failed: ");
        text_add_words(text, refusal->words, TEXT_WORDS_BYTES_MAX);
    }
}

#define BY_ITSELF "nothing is to be done: "

static const struct kind KINDS[CLAIM_REFUSAL_KINDS] = {
    [CLAIM_REFUSED_NAMES] = {"claim-names-wrong", CODE_INVALID_ARGUMENT, explain_words,
                             "its names are too long, none, or no UTF-8",
                             "make claim and pod anew with other names"},
    [CLAIM_REFUSED_MANY] = {"too-many-claims", CODE_RESOURCE_EXHAUSTED, explain_words,
                            "too many claims are kept on this node already",
                            "claims must be unprepared: see cri-device-shimctl claims"},
    [CLAIM_REFUSED_QUEUE] = {"too-many-claims-asked", CODE_RESOURCE_EXHAUSTED, explain_words,
                             "too many claims are waited for on this node already",
                             "drivers must answer: see cri-device-shimctl drivers"},
    [CLAIM_REFUSED_UNREAD] = {"claims-unread", CODE_UNAVAILABLE, explain_unread,
                              "the state of this node's claims cannot be read: ",
                              "the checkpoint in state_dir must be readable: see "
                              "cri-device-shimctl status"},
    [CLAIM_REFUSED_DRAIN] = {"shim-stops", CODE_UNAVAILABLE, explain_words,
                             "the shim is being stopped",
                             BY_ITSELF "the bridge asks again once the shim is started"},
    [CLAIM_REFUSED_AWAY] = {"driver-away", CODE_UNAVAILABLE, explain_away, "",
                            "start the driver: look at its pod or unit, and its log"},
    [CLAIM_REFUSED_OWED] = {"other-claim-owed", CODE_UNAVAILABLE, explain_words,
                            "the driver has to unprepare another claim first, which was told to be "
                            "unprepared while it was away: ",
                            "the driver must unprepare that claim: look at its log, and at "
                            "cri-device-shimctl claims"},
    [CLAIM_REFUSED_USED] = {"claim-used", CODE_UNAVAILABLE, explain_words,
                            "it is not unprepared as long as a container may run with it: ",
                            "that container must end"},
    [CLAIM_REFUSED_TURN] = {"driver-busy", CODE_UNAVAILABLE, explain_waited,
                            "the driver is still busy with what was asked for it before; waited ",
                            "the driver must answer: look at its log"},
    [CLAIM_REFUSED_UNSTORED] = {"claim-unstored", CODE_UNAVAILABLE, explain_waited,
                                "that it is asked for was not stored within ",
                                "the disk with state_dir must take what is written: see "
                                "cri-device-shimctl status"},
    [CLAIM_REFUSED_STORE] = {"claim-store-failed", CODE_UNAVAILABLE, explain_words,
                             "it cannot be stored: ",
                             "the disk with state_dir must take what is written: see "
                             "cri-device-shimctl status"},
    [CLAIM_REFUSED_ANSWER] = {"driver-answer-too-large", CODE_RESOURCE_EXHAUSTED, explain_words,
                              "the driver answered more than can be kept",
                              "the driver must answer with less, or claims must be unprepared"},
    [CLAIM_REFUSED_DRIVER] = {"driver-failed", CODE_UNKNOWN, explain_words,
                              "the driver said: ", "the driver must not fail: look at its log"},
    [CLAIM_REFUSED_LOST] = {"driver-lost", CODE_UNAVAILABLE, explain_words,
                            "the driver has ended each time that it was asked",
                            "the driver must not end while it is asked: look at its log"},
    [CLAIM_WAITS_DRIVER] = {"driver-asked", CODE_UNAVAILABLE, explain_waited,
                            "the driver is being asked; waited ",
                            BY_ITSELF "the driver answers; if it does not, look at its log"},
    [CLAIM_WAITS_OWED] =
        {"claim-owed", CODE_UNAVAILABLE, explain_owed,
         "it was told to be unprepared while its driver was away, which is still to "
         "be told",
         BY_ITSELF "the driver is told when it is there, again and again if it "
                   "fails; if it never comes back, start it or look at its log"},
};

static const struct kind *kind_of(const struct claim_refusal *refusal)
{
    return &KINDS[refusal->kind];
}

struct claim_refusal claim_refusal_of(const struct claim *claim, enum claim_refusal_kind kind,
                                      bool unprepare)
{
    return (struct claim_refusal){.kind = kind,
                                  .driver = claim->driver,
                                  .pod_namespace = claim->pod_namespace,
                                  .name = claim->name,
                                  .uid = claim->uid,
                                  .unprepare = unprepare};
}

int claim_refusal_code(enum claim_refusal_kind kind)
{
    return KINDS[kind].code;
}

const char *claim_refusal_word(enum claim_refusal_kind kind)
{
    return KINDS[kind].word;
}

const char *claim_refusal_clears(enum claim_refusal_kind kind)
{
    return KINDS[kind].clears;
}

static void name(const char *driver, const char *pod_namespace, const char *claim,
                 struct text *text)
{
    text_add(text, "claim ");
    text_add_words(text, pod_namespace, TEXT_IDS_BYTES_MAX);
    text_add(text, "/");
    text_add_words(text, claim, TEXT_IDS_BYTES_MAX);
    text_add(text, ", driver ");
    text_add_words(text, driver, TEXT_IDS_BYTES_MAX);
    text_add(text, ": ");
}

static void name_claim(const struct claim *claim, struct text *text)
{
    name(claim->driver, claim->pod_namespace, claim->name, text);
}

void claim_explain_done(const struct claim *claim, const char *what, struct text *text)
{
    name_claim(claim, text);
    text_add(text, "%s", what);
}

void claim_refusal_explain(const struct state *state, const struct claim_refusal *refusal,
                           struct text *text)
{
    name(refusal->driver, refusal->pod_namespace, refusal->name, text);
    kind_of(refusal)->explain(state, refusal, text);
}

void claim_explain_user(const char *container, const char *pod, struct text *text)
{
    text_add(text, "container \"");
    text_add_words(text, container, TEXT_IDS_BYTES_MAX);
    text_add(text, "\" of pod ");
    text_add_words(text, pod, TEXT_IDS_BYTES_MAX);
}

bool claim_user_is_of(const struct claim_user *user, const char *pod_namespace)
{
    size_t len = strlen(pod_namespace);

    return strncmp(user->pod, pod_namespace, len) == 0 && user->pod[len] == '/';
}

void claim_explain_held(const struct claim *claim, const struct claim_user *user,
                        const struct ids *ids, const struct granted_device *made_of_same,
                        bool hidden, struct text *text)
{
    text_add(text, "device ");
    text_add_ids(text, ids);
    text_add(text, " of claim ");
    text_add_words(text, claim->name, TEXT_IDS_BYTES_MAX);
    text_add(text, ", driver ");
    text_add_words(text, claim->driver, TEXT_IDS_BYTES_MAX);
    text_add(text, ", may still be used by ");
    if (hidden)
        text_add(text, "a container of another namespace");
    else
        claim_explain_user(user->container, user->pod, text);
    if (!made_of_same) {
        text_add(text, ", which has it by another claim");
        return;
    }
    text_add(text, ", which has device ");
    text_add_words(text, made_of_same->device, TEXT_IDS_BYTES_MAX);
    text_add(text, " by another claim, and both draw on the same counters");
}

void claim_explain_anew(const struct claim *claim, const char *cdi, uint64_t pause_ms,
                        struct text *text)
{
    name_claim(claim, text);
    text_add(text, "the runtime cannot resolve its CDI device ");
    text_add_words(text, cdi, TEXT_IDS_BYTES_MAX);
    text_add(text, ": it is prepared anew for the kubelet's next try; not again within ");
    text_add_duration(text, pause_ms);
}

void claim_explain_renewed(const struct claim *claim, const char *words, struct text *text)
{
    name_claim(claim, text);
    text_add(text, words ? "preparing it anew failed: " : "it was prepared anew");
    if (words)
        text_add_words(text, words, TEXT_WORDS_BYTES_MAX);
}

void claim_explain_owed(const struct claim *claim, const char *words, struct text *text)
{
    text_add(text, "claim ");
    text_add_words(text, claim->pod_namespace, TEXT_IDS_BYTES_MAX);
    text_add(text, "/");
    text_add_words(text, claim->name, TEXT_IDS_BYTES_MAX);
    text_add(text, ", which is to be unprepared since its driver ");
    text_add_words(text, claim->driver, TEXT_IDS_BYTES_MAX);
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
