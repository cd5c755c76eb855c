#include "shim/agent/reflector.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/backoff.h"
#include "shim/agent/json_splitter.h"
#include "shim/agent/query.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"

/* Opaque texts of the server's. */
#define VERSION_BYTES_MAX 128
#define CONTINUE_BYTES_MAX 6144

enum reflector_state {
    REFLECTOR_WAITING,
    REFLECTOR_LISTING,
    REFLECTOR_STREAMING,
    REFLECTOR_WATCHING,
};

struct reflector {
    struct api_client *client;
    const struct reflector_ops *ops;
    void *user;
    char *path;
    enum reflector_state state;
    uv_timer_t timer;
    struct backoff backoff;
    struct api_request *request;
    struct json_splitter splitter; /* of the answer under way */
    bool pages;                    /* the server does not stream */
    bool listed;                   /* it may be watched from `version` on */
    bool newest;                   /* the next list is the store's, whatever `version` is */
    bool gone;                     /* an event said that `version` is too old */
    char version[VERSION_BYTES_MAX];
    char more[CONTINUE_BYTES_MAX]; /* of the list under way; "": its first page */
    size_t list_bytes;
    uint64_t began_ms;                 /* the watch */
    size_t events;                     /* that it gave */
    char words[ERROR_WORDS_BYTES_MAX]; /* why an answer is of no use; "" */
    bool told_trouble, told_left_out;
};

static void set_state(struct reflector *reflector, enum reflector_state state)
{
    static const unsigned from[] = {
        [REFLECTOR_WAITING] = 1u << REFLECTOR_WAITING | 1u << REFLECTOR_LISTING |
                              1u << REFLECTOR_STREAMING | 1u << REFLECTOR_WATCHING,
        [REFLECTOR_LISTING] =
            1u << REFLECTOR_WAITING | 1u << REFLECTOR_LISTING | 1u << REFLECTOR_STREAMING,
        [REFLECTOR_STREAMING] = 1u << REFLECTOR_WAITING,
        [REFLECTOR_WATCHING] = 1u << REFLECTOR_WAITING | 1u << REFLECTOR_LISTING |
                               1u << REFLECTOR_STREAMING | 1u << REFLECTOR_WATCHING,
    };

    assert(from[state] & 1u << reflector->state);
    reflector->state = state;
}

static void go_on(uv_timer_t *timer);

static void tell_trouble(struct reflector *reflector, const char *words)
{
    if (*words == '\0' && !reflector->told_trouble)
        return;
    if (!reflector->told_trouble)
        log_warning("%.*s: %s; tried again", (int)strcspn(reflector->path, "?"), reflector->path,
                    words);
    else if (*words == '\0')
        log_info("%.*s: it can be had again", (int)strcspn(reflector->path, "?"), reflector->path);
    reflector->told_trouble = *words != '\0';
    reflector->ops->trouble(reflector->user, words);
}

static void try_later(struct reflector *reflector, const char *words,
                      const struct api_result *result)
{
    bool refused = result->outcome == API_REFUSED;
    uint64_t wait_ms = backoff_failed(&reflector->backoff, boot_now_ms(), result->retry_after_ms,
                                      refused ? BACKOFF_REFUSED_MS_MAX : BACKOFF_MS_MAX);

    log_debug("%s: %s; again in %u ms", reflector->path, words, (unsigned)wait_ms);
    set_state(reflector, REFLECTOR_WAITING);
    uv_timer_start(&reflector->timer, go_on, wait_ms, 0);
    if ((refused || result->outcome == API_NOT_FOUND) && reflector->ops->excused &&
        reflector->ops->excused(reflector->user, result->outcome))
        words = "";
    tell_trouble(reflector, words);
}

/* ---- objects ---- */

static const json_t *metadata_of(const json_t *object)
{
    return json_object_get(object, "metadata");
}

/* False: it has none that is right. */
static bool take_version(struct reflector *reflector, const json_t *object)
{
    const char *version =
        json_string_value(json_object_get(metadata_of(object), "resourceVersion"));

    if (!version || strlen(version) >= VERSION_BYTES_MAX)
        return false;
    strcpy(reflector->version, version);
    return true;
}

static bool useless(struct reflector *reflector, const char *words)
{
    snprintf(reflector->words, sizeof reflector->words, "%s", words);
    return false;
}

static json_t *parse(struct reflector *reflector, const char *text, size_t len)
{
    json_error_t error;
    json_t *object = json_loadb(text, len, JSON_ALLOW_NUL, &error);

    if (!object)
        useless(reflector, "what it answered is no JSON");
    return object;
}

/* `more`: the continue token; "": of the first page. */
static void put_list_query(const struct reflector *reflector, const char *more, struct query *query)
{
    char limit[16];

    snprintf(limit, sizeof limit, "%d", LIST_PAGE);
    query_begin(query, reflector->path);
    if (more[0])
        query_add(query, "continue", more);
    else if (!reflector->newest)
        query_add(query, "resourceVersion", reflector->version[0] ? reflector->version : "0");
    /* With a limit a version is taken for the very one, and not for the oldest that will do. */
    if (more[0] || reflector->newest || !reflector->version[0])
        query_add(query, "limit", limit);
}

/* Each byte of it may be three in a query. */
static bool is_too_long(const struct reflector *reflector, const char *more)
{
    struct query query;

    put_list_query(reflector, more, &query);
    return query.too_long || strlen(more) >= CONTINUE_BYTES_MAX;
}

static bool take_head(struct reflector *reflector, const json_t *head)
{
    const char *more = json_string_value(json_object_get(metadata_of(head), "continue"));

    if (!take_version(reflector, head))
        return useless(reflector, "a list without a resourceVersion");
    if (more && is_too_long(reflector, more))
        return useless(reflector, "a list whose continue token is too long");
    strcpy(reflector->more, more ? more : "");
    return true;
}

static bool on_list_value(void *user, const char *text, size_t len, bool head)
{
    struct reflector *reflector = user;
    json_t *object = parse(reflector, text, len);
    bool right = object != NULL;

    if (object && head)
        right = take_head(reflector, object);
    else if (object)
        reflector->ops->object(reflector->user, object);
    json_decref(object);
    return right;
}

static bool take_error(struct reflector *reflector, const json_t *status)
{
    const char *message = json_string_value(json_object_get(status, "message"));

    reflector->gone = json_integer_value(json_object_get(status, "code")) == 410;
    return useless(reflector, message ? message : "an error that says nothing");
}

/* All there is was told. */
static void listed(struct reflector *reflector)
{
    reflector->listed = true;
    reflector->newest = false;
    reflector->ops->list_ended(reflector->user);
    tell_trouble(reflector, "");
}

static void take_bookmark(struct reflector *reflector, const json_t *object)
{
    const json_t *annotations = json_object_get(metadata_of(object), "annotations");
    const char *end = json_string_value(json_object_get(annotations, "k8s.io/initial-events-end"));

    if (reflector->state != REFLECTOR_STREAMING || !end || strcmp(end, "true") != 0)
        return;
    uv_timer_stop(&reflector->timer);
    set_state(reflector, REFLECTOR_WATCHING);
    listed(reflector);
}

static bool take_event(struct reflector *reflector, const json_t *event)
{
    const char *type = json_string_value(json_object_get(event, "type"));
    const json_t *object = json_object_get(event, "object");

    if (!type || !json_is_object(object))
        return useless(reflector, "an event that is none");
    if (strcmp(type, "ERROR") == 0)
        return take_error(reflector, object);
    if (!take_version(reflector, object))
        return useless(reflector, "an object without a resourceVersion");
    reflector->events++;
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        reflector->ops->object(reflector->user, object);
    else if (strcmp(type, "DELETED") == 0)
        reflector->ops->deleted(reflector->user, object);
    else if (strcmp(type, "BOOKMARK") == 0)
        take_bookmark(reflector, object);
    else
        return useless(reflector, "an event of a type that nobody knows");
    return true;
}

static bool on_event_value(void *user, const char *text, size_t len, bool head)
{
    struct reflector *reflector = user;
    json_t *event = parse(reflector, text, len);
    bool right = event && take_event(reflector, event);

    (void)head;
    json_decref(event);
    return right;
}

/* What was known of it stays so until all is told anew. */
static void look_for_left_out(struct reflector *reflector)
{
    if (reflector->told_left_out || json_splitter_left_out(&reflector->splitter) == 0)
        return;
    reflector->told_left_out = true;
    log_warning("%.*s: an object is too large to be looked into: it is left out",
                (int)strcspn(reflector->path, "?"), reflector->path);
}

static bool on_body(void *user, const char *bytes, size_t len)
{
    struct reflector *reflector = user;
    bool right;

    if (len == 0 && reflector->state == REFLECTOR_WATCHING)
        tell_trouble(reflector, ""); /* its first event may be a minute away */
    reflector->list_bytes += len;
    if (reflector->state != REFLECTOR_WATCHING && reflector->list_bytes > LIST_BYTES_MAX)
        return useless(reflector, "a list without end");
    right = json_splitter_feed(&reflector->splitter, bytes, len);
    look_for_left_out(reflector);
    if (!right && !reflector->words[0])
        useless(reflector, json_splitter_trouble(&reflector->splitter));
    return right;
}

/* ---- requests ---- */

static void ask(struct reflector *reflector, const struct query *query, enum json_split split,
                bool (*value)(void *, const char *, size_t, bool),
                void (*done)(void *, const struct api_result *));

static void on_list_done(void *user, const struct api_result *result);
static void on_watch_done(void *user, const struct api_result *result);

static void list_page(struct reflector *reflector)
{
    struct query query;

    put_list_query(reflector, reflector->more, &query);
    ask(reflector, &query, JSON_SPLIT_LIST, on_list_value, on_list_done);
}

static void list(struct reflector *reflector)
{
    set_state(reflector, REFLECTOR_LISTING);
    reflector->more[0] = '\0';
    reflector->list_bytes = 0;
    reflector->ops->list_began(reflector->user);
    list_page(reflector);
}

/* From that version on; `all`: what there is first, as it is in that or a newer one ("": the
 * newest). */
static void ask_events(struct reflector *reflector, const char *version, bool all)
{
    struct query query;
    char seconds[16];

    reflector->began_ms = boot_now_ms();
    reflector->events = 0;
    snprintf(seconds, sizeof seconds, "%u",
             WATCH_SECONDS_MIN + (unsigned)backoff_spread(WATCH_SECONDS_SPREAD));
    query_begin(&query, reflector->path);
    query_add(&query, "watch", "1");
    query_add(&query, "allowWatchBookmarks", "true");
    if (*version)
        query_add(&query, "resourceVersion", version);
    if (all) {
        query_add(&query, "sendInitialEvents", "true");
        query_add(&query, "resourceVersionMatch", "NotOlderThan");
    }
    query_add(&query, "timeoutSeconds", seconds);
    ask(reflector, &query, JSON_SPLIT_VALUES, on_event_value, on_watch_done);
}

static void watch(struct reflector *reflector)
{
    set_state(reflector, REFLECTOR_WATCHING);
    ask_events(reflector, reflector->version, false);
}

/* A server that knows nothing of it tells all there is, but never that it was all. */
static void on_stream_late(uv_timer_t *timer)
{
    struct reflector *reflector = timer->data;

    log_debug("%s: not all of it was told in time; it is listed", reflector->path);
    api_request_cancel(reflector->request);
    reflector->pages = true;
    list(reflector);
}

static void stream(struct reflector *reflector)
{
    const char *version = reflector->version[0] ? reflector->version : "0";

    set_state(reflector, REFLECTOR_STREAMING);
    reflector->list_bytes = 0;
    reflector->ops->list_began(reflector->user);
    uv_timer_start(&reflector->timer, on_stream_late, STREAM_TIMEOUT_MS, 0);
    ask_events(reflector, reflector->newest ? "" : version, true);
}

static void go_on(uv_timer_t *timer)
{
    struct reflector *reflector = timer->data;

    if (reflector->listed)
        watch(reflector);
    else if (reflector->pages)
        list(reflector);
    else
        stream(reflector);
}

static void ask(struct reflector *reflector, const struct query *query, enum json_split split,
                bool (*value)(void *, const char *, size_t, bool),
                void (*done)(void *, const struct api_result *))
{
    static const struct api_ops list_ops = {.body = on_body, .done = on_list_done};
    static const struct api_ops watch_ops = {.body = on_body, .done = on_watch_done};
    bool watches = done == on_watch_done;
    const struct transport_call call = {.method = "GET",
                                        .path = query->text,
                                        .timeout_ms = watches ? 0 : LIST_TIMEOUT_MS,
                                        .silence_s = watches ? WATCH_SILENCE_S : 0};

    assert(!query->too_long);
    json_splitter_fini(&reflector->splitter);
    json_splitter_init(&reflector->splitter, split, value, reflector);
    reflector->words[0] = '\0';
    reflector->gone = false;
    reflector->request =
        api_client_start(reflector->client, &call, watches ? &watch_ops : &list_ops, reflector);
}

/* ---- their ends ---- */

/* What is to be told of an answer; NULL: it is a good one. */
static const char *wrong(const struct reflector *reflector, const struct api_result *result)
{
    if (reflector->words[0])
        return reflector->words;
    if (result->outcome != API_DONE)
        return result->words;
    return json_splitter_whole(&reflector->splitter) ? NULL : "an answer that ends within";
}

/* A server that has not seen that version yet answers 504, and so ends what is asked of a cache. */
static bool too_old(const struct reflector *reflector, const struct api_result *result)
{
    return reflector->gone || result->outcome == API_GONE ||
           (result->status == 504 && reflector->state != REFLECTOR_WATCHING);
}

static void on_list_done(void *user, const struct api_result *result)
{
    struct reflector *reflector = user;
    const char *words = wrong(reflector, result);

    reflector->request = NULL;
    if (words) {
        reflector->newest |= too_old(reflector, result);
        try_later(reflector, words, result);
    } else if (reflector->more[0]) {
        list_page(reflector);
    } else {
        listed(reflector);
        watch(reflector);
    }
}

/* Its end before all was told. What the server does not know it takes for invalid. */
static void stream_ended(struct reflector *reflector, const char *words,
                         const struct api_result *result)
{
    uv_timer_stop(&reflector->timer);
    reflector->newest |= too_old(reflector, result);
    if (result->status == 400 || result->status == 422) {
        reflector->pages = true;
        list(reflector);
    } else {
        try_later(reflector, words ? words : "it ended before all was told", result);
    }
}

/* Not even a bookmark has come of it, for so long that it was given up. That is a connection that
 * is dead; or `version` is one that the server has not come to, as its store was restored from
 * before that: then nothing would be told until it has, and what has changed meanwhile never. */
static bool was_silent(const struct reflector *reflector)
{
    return reflector->events == 0 &&
           boot_now_ms() - reflector->began_ms >= (uint64_t)WATCH_SILENCE_S * 1000;
}

/* A watch that ends by itself goes on from where it was, and so does one whose connection has
 * ended: many a balancer ends what is idle for less than the minute between two bookmarks. One that
 * ends at once would do so without end; behind each event, that is one a second. */
static void on_watch_done(void *user, const struct api_result *result)
{
    struct reflector *reflector = user;
    const char *words = wrong(reflector, result);
    uint64_t early_ms = boot_left_ms(reflector->began_ms + WATCH_SHORT_MS);
    bool short_lived = reflector->events == 0 && early_ms > 0;

    reflector->request = NULL;
    if (reflector->state == REFLECTOR_STREAMING) {
        stream_ended(reflector, words, result);
    } else if (too_old(reflector, result) || was_silent(reflector)) {
        reflector->listed = false;
        reflector->newest |= was_silent(reflector);
        try_later(reflector, words ? words : "too old", result);
    } else if ((words && !(result->torn && reflector->words[0] == '\0')) || short_lived) {
        try_later(reflector, words ? words : "its watch ended at once", result);
    } else {
        set_state(reflector, REFLECTOR_WAITING);
        uv_timer_start(&reflector->timer, go_on, early_ms, 0);
    }
}

/* ---- life ---- */

struct reflector *reflector_start(uv_loop_t *loop, struct api_client *client, const char *path,
                                  const struct reflector_ops *ops, void *user)
{
    struct reflector *reflector = must(calloc(1, sizeof *reflector));

    reflector->client = client;
    reflector->ops = ops;
    reflector->user = user;
    reflector->path = must(strdup(path));
    uv_timer_init(loop, &reflector->timer);
    reflector->timer.data = reflector;
    uv_timer_start(&reflector->timer, go_on, backoff_spread(START_SPREAD_MS), 0);
    return reflector;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void reflector_stop(struct reflector *reflector)
{
    if (!reflector)
        return;
    api_request_cancel(reflector->request);
    json_splitter_fini(&reflector->splitter);
    free(reflector->path);
    uv_close((uv_handle_t *)&reflector->timer, on_closed);
}
