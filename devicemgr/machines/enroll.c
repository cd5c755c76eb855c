#include "devicemgr/machines/enroll.h"

#include <assert.h>
#include <string.h>

#include "cri-proto/utf8.h"
#include "devicemgr/books/happened.h"
#include "devicemgr/books/state.h"
#include "devicemgr/dra.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/words/claim.h"

/* ---- one that has gone ---- */

static bool is_held(const struct state *state, const struct driver *driver)
{
    return driver->instances || claims_of(&state->claims, driver->name) ||
           driver->elsewhere; /* or that it is with the kubelet would not be told again */
}

/* It is to be wiped, as long as that takes (shim/cluster/wipes.h). */
static bool has_slices(const struct state *state, const struct driver *driver)
{
    return state->settings.cluster && !driver->wiped && !driver->moved;
}

/* UINT64_MAX: it is not to be forgotten. */
static uint64_t forget_ms(const struct state *state, const struct driver *driver)
{
    if (is_held(state, driver) || has_slices(state, driver))
        return UINT64_MAX;
    return later_by(driver->away_ms, DRIVER_KEEP_MS);
}

static void forget(struct state *state, struct driver *driver)
{
    dirty_touch_driver(state, driver);
    drivers_remove(&state->drivers, driver);
}

void enroll_tick(struct state *state)
{
    struct driver *driver, *next;

    HASH_ITER(hh, state->drivers.by_name, driver, next) {
        if (state->now_ms >= forget_ms(state, driver))
            forget(state, driver);
    }
}

uint64_t enroll_next_ms(const struct state *state)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct driver *d = state->drivers.by_name; d; d = d->hh.next)
        next_ms = earlier(next_ms, forget_ms(state, d));
    return next_ms;
}

/* Away for longer than all others of which nothing is kept; NULL: there is none. */
static struct driver *longest_gone(const struct state *state)
{
    struct driver *longest = NULL;

    for (struct driver *d = state->drivers.by_name; d; d = d->hh.next) {
        if (!is_held(state, d) && (!longest || d->away_ms < longest->away_ms))
            longest = d;
    }
    return longest;
}

static bool has_room(const struct state *state)
{
    return drivers_len(&state->drivers) < DRIVERS_MAX || longest_gone(state);
}

/* One that has gone may wait for ever to be wiped, as where there is no agent: who comes has its
 * place, then. */
static struct driver *ensure(struct state *state, const char *name, const struct ids *services)
{
    if (!drivers_find(&state->drivers, name) && drivers_len(&state->drivers) >= DRIVERS_MAX)
        forget(state, longest_gone(state));
    return drivers_ensure(&state->drivers, state->now_ms, name, services);
}

/* ---- one that comes ---- */

static void answer(struct state *state, uint64_t number, int code, const struct text *text)
{
    struct action *action = action_push(&state->actions, ACTION_DRIVER_REGISTERED, number);

    action->code = code;
    action->text = mem_strdup(text->buf);
}

static bool names_fit(const struct devicemgr_driver_instance *is)
{
    size_t bytes = strlen(is->name) + strlen(is->endpoint);

    if (is->name[0] == '\0' || !utf8_is_text(is->name) || is->services_len > DRIVER_SERVICES_MAX)
        return false;
    for (size_t i = 0; i < is->services_len; i++) {
        if (!utf8_is_text(is->services[i]))
            return false;
        bytes += strlen(is->services[i]);
    }
    return bytes <= DRIVER_NAMES_BYTES_MAX;
}

static size_t count(const struct driver_instance *instances)
{
    size_t len = 0;

    for (const struct driver_instance *i = instances; i; i = i->next)
        len++;
    return len;
}

/* Plain errors, as the kubelet's own. */
static int check(const struct state *state, const struct devicemgr_driver_instance *is,
                 struct text *text)
{
    const struct driver *driver = drivers_find(&state->drivers, is->name);

    if (!names_fit(is))
        text_add(text, "the driver's name, endpoint or services are too long, none, or no UTF-8");
    else if (driver && driver_find_endpoint(driver, is->endpoint))
        claim_explain_registered(is->endpoint, is->name, text);
    else if (driver && count(driver->instances) >= DRIVER_INSTANCES_MAX)
        text_add(text, "too many endpoints of the driver are registered already");
    else if (!driver && !has_room(state))
        text_add(text, "too many drivers are registered already");
    return text->len > 0 ? CODE_UNKNOWN : CODE_OK;
}

static void log_driver(struct state *state, int level, enum devicemgr_line line,
                       const struct driver *driver, const char *endpoint, const char *what,
                       const char *why)
{
    struct text text = {0};

    text_add(&text, "DRA driver ");
    text_add_words(&text, driver->name, TEXT_WORDS_BYTES_MAX);
    if (endpoint[0] != '\0') { /* that of lifted resources has none */
        text_add(&text, ": endpoint ");
        text_add_words(&text, endpoint, TEXT_WORDS_BYTES_MAX);
    }
    text_add(&text, " %s", what);
    if (why && why[0] != '\0') {
        text_add(&text, ": ");
        text_add_words(&text, why, TEXT_WORDS_BYTES_MAX);
    }
    state_log_about(state, level, (struct devicemgr_about){.line = line, .resource = driver->name},
                    &text);
}

void enroll_begin(struct state *state, uint64_t number, const struct devicemgr_driver_instance *is)
{
    const struct ids services = {(char **)is->services, is->services_len};
    struct text text = {0};
    int code = check(state, is, &text);

    if (code == CODE_OK) {
        struct driver *driver = ensure(state, is->name, &services);

        drivers_add_instance(&state->drivers, driver, state->now_ms, number, is->endpoint,
                             &services);
        dirty_touch_driver(state, driver);
        log_driver(state, LEVEL_INFO, DEVICEMGR_LINE_OTHER, driver, is->endpoint, "registers",
                   NULL);
    }
    answer(state, number, code, &text);
}

static void came(struct state *state, const struct driver_instance *instance)
{
    const struct driver *driver = instance->driver;

    if (!driver_usable(driver))
        happened_to_resource(state, DEVICEMGR_EVENT_DRIVER_CAME, driver->restored, driver->name,
                             instance->endpoint);
    if (driver->wiped || driver->moved)
        dirty_touch_driver(state, driver);
    log_driver(state, LEVEL_INFO, DEVICEMGR_LINE_DRIVER_CAME, driver, instance->endpoint,
               "is connected", NULL);
}

bool enroll_connected(struct state *state, uint64_t number)
{
    const struct driver_instance *instance = drivers_find_instance(&state->drivers, number);

    if (!instance || instance->connected)
        return false;
    if (!instance->elsewhere)
        came(state, instance);
    drivers_set_connected(&state->drivers, number, state->now_ms);
    return true;
}

/* ---- one that has moved ---- */

/* As soon as it is both: away here, and seen with the kubelet. */
static void note_moved(struct state *state, struct driver *driver)
{
    const char *endpoint = driver->elsewhere ? driver->elsewhere->endpoint : NULL;

    if (!endpoint || driver->moved || driver_usable(driver))
        return;
    driver_set_moved(driver, state->now_ms);
    dirty_touch_driver(state, driver);
    log_driver(state, LEVEL_INFO, DEVICEMGR_LINE_DRIVER_MOVED, driver, endpoint,
               "has registered with the kubelet itself, whose it is until it is back", NULL);
    happened_to_resource(state, DEVICEMGR_EVENT_DRIVER_MOVED, false, driver->name, endpoint);
}

bool enroll_moved(struct state *state, uint64_t number, const struct devicemgr_driver_instance *is)
{
    const struct ids services = {(char **)is->services, is->services_len};
    struct driver *driver = drivers_edit(&state->drivers, is->name);

    if (!driver && claims_of(&state->claims, is->name) && has_room(state))
        driver = ensure(state, is->name, &services);
    if (!driver || !names_fit(is) || count(driver->elsewhere) >= DRIVER_INSTANCES_MAX)
        return false;
    if (!driver->was_elsewhere)
        dirty_touch_driver(state, driver);
    drivers_add_elsewhere(&state->drivers, driver, state->now_ms, number, is->endpoint, &services);
    note_moved(state, driver);
    return true;
}

void enroll_wiped(struct state *state, const char *name)
{
    struct driver *driver = drivers_edit(&state->drivers, name);
    struct text text = {0};

    if (!driver || driver_usable(driver))
        return;
    state->drivers.wipes++;
    driver_set_wiped(driver, true);
    dirty_touch_driver(state, driver);
    text_add(&text, "DRA driver ");
    text_add_words(&text, name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, ": its ResourceSlices are removed, since it is away for ");
    text_add_duration(&text, ago(state->now_ms, driver->away_ms));
    state_log_about(
        state, LEVEL_INFO,
        (struct devicemgr_about){.line = DEVICEMGR_LINE_SLICES_WIPED, .resource = driver->name},
        &text);
    happened_to_resource(state, DEVICEMGR_EVENT_SLICES_WIPED, false, driver->name, NULL);
}

/* It registered, and was never connected. */
static void note_unreached(struct state *state, const struct driver_instance *instance,
                           const char *why)
{
    struct driver *driver = instance->driver;

    if (instance->elsewhere)
        return;
    log_driver(state, LEVEL_WARNING, DEVICEMGR_LINE_OTHER, driver, instance->endpoint,
               "cannot be reached", why);
    if (!driver_usable(driver))
        drivers_set_why(&state->drivers, driver, why);
}

bool enroll_lost(struct state *state, uint64_t number, const char *why)
{
    const struct driver_instance *instance = drivers_find_instance(&state->drivers, number);

    if (!instance)
        return false;
    if (!instance->connected) {
        note_unreached(state, instance, why);
        return false;
    }
    drivers_set_lost(&state->drivers, number, state->now_ms, why);
    if (instance->elsewhere)
        return true;
    log_driver(state, LEVEL_WARNING, DEVICEMGR_LINE_DRIVER_WENT, instance->driver,
               instance->endpoint, "is lost", why);
    if (!driver_usable(instance->driver))
        happened_to_resource(state, DEVICEMGR_EVENT_DRIVER_WENT, false, instance->driver->name,
                             why);
    note_moved(state, instance->driver);
    return true;
}

void enroll_end(struct state *state, uint64_t number)
{
    const struct driver_instance *instance = drivers_find_instance(&state->drivers, number);

    if (!instance)
        return;
    assert(!instance->connected);
    if (!instance->elsewhere)
        log_driver(state, LEVEL_INFO, DEVICEMGR_LINE_OTHER, instance->driver, instance->endpoint,
                   "is deregistered", NULL);
    drivers_remove_instance(&state->drivers, number);
}
