#include "shim/agent/served.h"

#include <stdlib.h>
#include <string.h>

#include "shim/agent/answer.h"
#include "shim/agent/backoff.h"
#include "shim/agent/limits.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"

enum version { V1, V1BETA2, V1BETA1, V1ALPHA3 };
#define VERSIONS (V1ALPHA3 + 1)

/* All groups that there are. */
#define GROUPS_PATH "/apis"

/* The best first. */
static const char *const NAMES[VERSIONS] = {"v1", "v1beta2", "v1beta1", "v1alpha3"};
/* Those that we can read. */
static const unsigned READABLE[SERVED_KINDS] = {
    [SERVED_SLICES] = 1u << V1 | 1u << V1BETA2 | 1u << V1BETA1,
    [SERVED_CLAIMS] = 1u << V1 | 1u << V1BETA2 | 1u << V1BETA1,
    [SERVED_TAINT_RULES] = 1u << V1 | 1u << V1BETA2 | 1u << V1ALPHA3,
};

struct served {
    struct api_client *client;
    void (*changed)(void *user);
    void *user;
    bool known;                     /* what it serves, by its last word */
    unsigned versions;              /* that the group has */
    unsigned missing[SERVED_KINDS]; /* those that have no such objects */
    uint64_t asked_ms;              /* when the server answered last */
    struct api_request *request;
    struct answer answer;
    struct backoff backoff;
    uv_timer_t ask_timer;
    uv_timer_t tell_timer; /* changed(), from the loop */
};

static unsigned usable(const struct served *served, enum served_kind kind)
{
    return served->versions & READABLE[kind] & ~served->missing[kind];
}

bool served_known(const struct served *served)
{
    return served->known;
}

const char *served_version(const struct served *served, enum served_kind kind)
{
    unsigned versions = usable(served, kind);

    return versions ? NAMES[__builtin_ctz(versions)] : NULL;
}

/* ---- asking ---- */

static void ask(uv_timer_t *timer);

static void tell(uv_timer_t *timer)
{
    struct served *served = timer->data;

    served->changed(served->user);
}

/* What is not served may be some day: it is switched on, or the server is upgraded. */
static void ask_again(struct served *served)
{
    bool all = true;

    for (enum served_kind kind = 0; kind < SERVED_KINDS; kind++)
        all &= usable(served, kind) != 0;
    if (!all)
        uv_timer_start(&served->ask_timer, ask, SERVED_AGAIN_MS + backoff_spread(SERVED_AGAIN_MS),
                       0);
}

static void take(struct served *served, unsigned versions)
{
    served->known = true;
    served->versions = versions;
    served->asked_ms = boot_now_ms();
    for (enum served_kind kind = 0; kind < SERVED_KINDS; kind++) {
        if (usable(served, kind) == 0)
            served->missing[kind] = 0;
    }
    uv_timer_start(&served->tell_timer, tell, 0, 0);
    ask_again(served);
}

static unsigned read_versions(const json_t *group)
{
    const json_t *one;
    unsigned versions = 0;
    size_t i;

    json_array_foreach(json_object_get(group, "versions"), i, one) {
        const char *name = json_string_value(json_object_get(one, "version"));

        for (unsigned v = 0; name && v < VERSIONS; v++)
            versions |= strcmp(name, NAMES[v]) == 0 ? 1u << v : 0;
    }
    return versions;
}

static void ask_later(struct served *served, uint64_t at_least_ms)
{
    uv_timer_start(&served->ask_timer, ask,
                   backoff_failed(&served->backoff, boot_now_ms(), at_least_ms, BACKOFF_MS_MAX), 0);
}

static void no_use(struct served *served, const char *path, const struct api_result *result)
{
    log_debug("%s: %s", path, result->outcome == API_DONE ? "an answer of no use" : result->words);
    ask_later(served, result->retry_after_ms);
}

static bool on_body(void *user, const char *bytes, size_t len)
{
    struct served *served = user;

    return answer_add(&served->answer, bytes, len);
}

static void ask_for(struct served *served, const char *path, const struct api_ops *ops)
{
    const struct transport_call call = {
        .method = "GET", .path = path, .timeout_ms = REQUEST_TIMEOUT_MS};

    served->request = api_client_start(served->client, &call, ops, served);
}

/* The group's versions; 0: it is none of these. */
static unsigned find_versions(const json_t *groups)
{
    const json_t *one;
    size_t i;

    json_array_foreach(groups, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));

        if (name && strcmp(name, SERVED_GROUP) == 0)
            return read_versions(one);
    }
    return 0;
}

/* Who may not see that list takes the 404 for what it says. */
static void on_groups(void *user, const struct api_result *result)
{
    struct served *served = user;
    json_t *list = result->outcome == API_DONE ? answer_json(&served->answer) : NULL;
    const json_t *groups = json_object_get(list, "groups");

    served->request = NULL;
    if (json_is_array(groups) || result->outcome == API_REFUSED)
        take(served, find_versions(groups));
    else
        no_use(served, GROUPS_PATH, result);
    json_decref(list);
    answer_fini(&served->answer);
}

/* A server that does not say has what is asked for, or says 404 to that. A 404 for the group looks
 * the same where a load balancer has no server behind it: what is not in the list of all groups is
 * not served. */
static void on_group(void *user, const struct api_result *result)
{
    static const struct api_ops groups_ops = {.body = on_body, .done = on_groups};
    struct served *served = user;
    json_t *group = result->outcome == API_DONE ? answer_json(&served->answer) : NULL;

    served->request = NULL;
    answer_fini(&served->answer);
    if (json_is_array(json_object_get(group, "versions")))
        take(served, read_versions(group));
    else if (result->outcome == API_NOT_FOUND)
        ask_for(served, GROUPS_PATH, &groups_ops);
    else if (result->outcome == API_REFUSED)
        take(served, 1u << V1);
    else
        no_use(served, SERVED_GROUP_PATH, result);
    json_decref(group);
}

static void ask(uv_timer_t *timer)
{
    static const struct api_ops ops = {.body = on_body, .done = on_group};
    struct served *served = timer->data;

    if (!served->request)
        ask_for(served, SERVED_GROUP_PATH, &ops);
}

void served_missing(struct served *served, enum served_kind kind, const char *version)
{
    for (unsigned v = 0; v < VERSIONS; v++) {
        if (strcmp(version, NAMES[v]) == 0)
            served->missing[kind] |= 1u << v;
    }
    uv_timer_start(&served->tell_timer, tell, 0, 0);
    if (usable(served, kind) != 0)
        return;
    if (kind != SERVED_TAINT_RULES) /* which the group always has: who says so is to be asked */
        served->known = false;
    if (boot_now_ms() - served->asked_ms > SERVED_OLD_MS) /* upgraded, perhaps */
        uv_timer_start(&served->ask_timer, ask, 0, 0);
    else if (!served->known)
        ask_later(served, 0);
    else
        ask_again(served);
}

/* ---- life ---- */

struct served *served_start(uv_loop_t *loop, struct api_client *client, void (*changed)(void *user),
                            void *user)
{
    struct served *served = must(calloc(1, sizeof *served));

    served->client = client;
    served->changed = changed;
    served->user = user;
    uv_timer_init(loop, &served->ask_timer);
    uv_timer_init(loop, &served->tell_timer);
    served->ask_timer.data = served->tell_timer.data = served;
    uv_timer_start(&served->ask_timer, ask, backoff_spread(START_SPREAD_MS), 0);
    return served;
}

static void on_tell_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_ask_closed(uv_handle_t *handle)
{
    struct served *served = handle->data;

    uv_close((uv_handle_t *)&served->tell_timer, on_tell_closed);
}

void served_stop(struct served *served)
{
    if (!served)
        return;
    api_request_cancel(served->request);
    answer_fini(&served->answer);
    uv_timer_stop(&served->tell_timer);
    uv_close((uv_handle_t *)&served->ask_timer, on_ask_closed);
}
