/*
 * What must hold of containers with devices of lifted resources, and of their claims.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/token.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define CODE_UNAVAILABLE 14

/* ---- who may have a device beside whom ---- */

static bool may_share(const struct lift_world *h, const struct lw_had *a, const struct lw_had *b)
{
    bool by_claims = a->claim != LW_NO_CLAIM && b->claim != LW_NO_CLAIM;

    if (a->resource != b->resource || a->device != b->device)
        return true;
    return by_claims &&
           (a->claim == b->claim || h->claims[a->claim].admin || h->claims[b->claim].admin);
}

/* The first device that both have, and only one may; NULL: there is none. */
static const struct lw_had *find_conflict(const struct lift_world *h, const struct lw_had *a,
                                          size_t a_len, const struct lw_had *b, size_t b_len)
{
    for (size_t i = 0; i < a_len; i++) {
        for (size_t k = 0; k < b_len; k++) {
            if (!may_share(h, &a[i], &b[k]))
                return &a[i];
        }
    }
    return NULL;
}

static size_t all_had(const struct lift_world *h, const struct lw_pod *pod,
                      struct lw_had had[LW_HAD])
{
    return lift_pod_had(h, pod, 0, had); /* which has all that the others have */
}

bool lift_is_in_the_way(const struct lift_world *h, const struct lw_pod *pod,
                        const struct lw_pod *other)
{
    struct lw_had mine[LW_HAD], theirs[LW_HAD];
    size_t len = all_had(h, pod, mine), theirs_len = all_had(h, other, theirs);
    bool lives = false;

    for (size_t i = 0; i < other->containers_len; i++)
        lives = lives || lift_container_lives(&other->containers[i]);
    return other != pod && other->there && lives && find_conflict(h, mine, len, theirs, theirs_len);
}

static void judge_two(struct lift_world *h, const struct lw_pod *pod, const struct lw_pod *other)
{
    for (size_t i = 0; i < pod->containers_len; i++) {
        for (size_t k = 0; k < other->containers_len; k++) {
            struct lw_had a[LW_HAD], b[LW_HAD];
            const struct lw_had *both;

            if (!lift_container_lives(&pod->containers[i]) ||
                !lift_container_lives(&other->containers[k]))
                continue;
            both = find_conflict(h, a, lift_pod_had(h, pod, i, a), b, lift_pod_had(h, other, k, b));
            check_that(h->w, !both,
                       "no device is in two containers, each by a right of its own: %zu of %s, in "
                       "u%u and u%u",
                       both->device, lift_resource_name(both->resource), pod->uid, other->uid);
        }
    }
}

void lift_judge(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        for (size_t k = i + 1; k < LW_PODS; k++) {
            if (h->pods[i].there && h->pods[k].there)
                judge_two(h, &h->pods[i], &h->pods[k]);
        }
    }
    lift_judge_seen(h);
}

/* ---- what it is made with ---- */

static const char *find_env(const V1beta1__ContainerAllocateResponse *options, size_t resource)
{
    char key[16];

    snprintf(key, sizeof key, "DEV_%zu", resource);
    for (size_t i = 0; options && i < options->n_envs; i++) {
        if (strcmp(options->envs[i]->key, key) == 0)
            return options->envs[i]->value;
    }
    return NULL;
}

/* "g1,g3,v2": whether it is of the very devices, by a version that there was. */
static bool is_of(const struct lift_world *h, const char *value, size_t resource,
                  const struct lw_had *had, size_t len)
{
    size_t said = 0, wanted = 0;

    for (size_t i = 0; i < len; i++)
        wanted += had[i].resource == resource;
    for (; *value && *value != 'v'; value += strcspn(value, ",") + 1) {
        char id[LW_ID_BYTES];
        size_t i = 0;

        snprintf(id, sizeof id, "%.*s", (int)strcspn(value, ","), value);
        while (i < len &&
               (had[i].resource != resource || had[i].device != lift_device_find(resource, id)))
            i++;
        if (i == len)
            return false;
        said++;
    }
    return said == wanted && *value == 'v' &&
           strtoul(value + 1, NULL, 10) <= h->resources[resource].version;
}

/* What is written on it is what it is known by without a checkpoint. */
static bool is_written(const struct lw_container *container, size_t resource)
{
    char *key = token_key(lift_resource_name(resource));
    bool is = false;

    for (size_t i = 0; i < container->tokens_len; i++)
        is = is || strcmp(container->tokens[i][0], key) == 0;
    free(key);
    return is;
}

void lift_judge_asked(const struct lift_world *h, const struct lw_pod *pod)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        if (!lift_is_in_the_way(h, pod, &h->pods[i]))
            continue;
        count_add(lift_pod_by_claims(pod) == lift_pod_by_claims(&h->pods[i])
                      ? COUNT_LIFT_BESIDE_CLAIM
                      : COUNT_LIFT_BESIDE);
    }
}

void lift_judge_forward(struct lift_world *h, const struct lw_pod *pod, size_t container,
                        const V1beta1__ContainerAllocateResponse *options)
{
    struct lw_had had[LW_HAD];
    size_t len = lift_pod_had(h, pod, container, had);

    count_add(lift_pod_by_claims(pod) ? COUNT_LIFT_MADE : COUNT_LIFT_MADE_BEFORE);
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        const char *value = find_env(options, r);
        size_t of = 0;

        for (size_t i = 0; i < len; i++)
            of += had[i].resource == r;
        check_that(h->w, (of > 0) == (value != NULL),
                   "a container of u%u has something of resource %zu if its claims have", pod->uid,
                   r);
        check_that(h->w, !value || is_of(h, value, r, had, len),
                   "a container of u%u has its plugin's options for the devices that are its own: "
                   "%s",
                   pod->uid, value);
        check_that(h->w, !value || is_written(&pod->containers[container], r),
                   "what a container of u%u has of resource %zu is written on it", pod->uid, r);
    }
}

/* ---- refusals ---- */

/* What is true of some device that the container is to have. */
enum truth { UNHEALTHY, UNLISTED, AWAY, MOVED_BACK };

static bool is_true(const struct lift_world *h, const struct lw_had *had, enum truth truth)
{
    const struct lw_resource *resource = &h->resources[had->resource];
    const struct lw_device *device = &resource->device[had->device];

    switch (truth) {
    case UNHEALTHY:
        return resource->listed && device->said && !device->said_healthy;
    case UNLISTED:
        return !resource->listed || !device->said;
    case AWAY:
        return resource->endpoint == 0 || !resource->listed;
    case MOVED_BACK:
        break;
    }
    return !resource->lifted;
}

static bool is_true_of_any(const struct lift_world *h, const struct lw_had *had, size_t len,
                           enum truth truth)
{
    for (size_t i = 0; i < len; i++) {
        if (is_true(h, &had[i], truth))
            return true;
    }
    return false;
}

static bool has_any(const struct lw_had *a, size_t a_len, const struct lw_had *b, size_t b_len)
{
    for (size_t i = 0; i < a_len; i++) {
        for (size_t k = 0; k < b_len; k++) {
            if (a[i].resource == b[k].resource && a[i].device == b[k].device)
                return true;
        }
    }
    return false;
}

/* Whether a claim of the pod's only looks at the device, and the shim does not know that. It may
 * have it by several. */
static bool has_untold(const struct lift_world *h, const struct lw_pod *pod,
                       const struct lw_had *had)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        const struct lw_claim *claim = &h->claims[pod->claims[i]];

        for (size_t k = 0; claim->admin && !claim->told && k < claim->results_len; k++) {
            if (claim->results[k].resource == had->resource &&
                claim->results[k].device == had->device)
                return true;
        }
    }
    return false;
}

/* Whether both have a device by claims of which one only looks at it, and the shim does not
 * know. */
static bool looks_untold(const struct lift_world *h, const struct lw_pod *pod,
                         const struct lw_pod *other)
{
    struct lw_had mine[LW_HAD], theirs[LW_HAD];
    size_t len = all_had(h, pod, mine), theirs_len = all_had(h, other, theirs);

    for (size_t i = 0; i < len; i++) {
        if (mine[i].claim != LW_NO_CLAIM && has_any(&mine[i], 1, theirs, theirs_len) &&
            (has_untold(h, pod, &mine[i]) || has_untold(h, other, &mine[i])))
            return true;
    }
    return false;
}

/* Whether one of the pod's ran since the create began, which may have been looked at then. */
static bool ran_since(const struct lw_pod *pod, uint64_t ms)
{
    for (size_t i = 0; i < pod->containers_len; i++) {
        if (pod->containers[i].ended_ms > 0 && pod->containers[i].ended_ms >= ms)
            return true;
    }
    return false;
}

/* The last pod that the words name has a device of this one's; one that is gone may have had. Who
 * only looks at it is told so by the cluster alone, which says nothing just after a start, nor once
 * its claim has nothing any more. */
static bool is_holder(const struct lift_world *h, const struct lw_pod *pod, size_t container,
                      const char *message, bool lives)
{
    const char *name = strrchr(message, '/');
    unsigned uid = name ? (unsigned)strtoul(name + 2, NULL, 10) : 0;
    struct lw_had mine[LW_HAD], theirs[LW_HAD];
    size_t len = all_had(h, pod, mine), theirs_len;

    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *other = &h->pods[i];

        if (!other->there || other->uid != uid)
            continue;
        theirs_len = all_had(h, other, theirs);
        if (lives && other != pod && !lift_is_in_the_way(h, pod, other) &&
            !ran_since(other, pod->containers[container].asked_ms))
            return h->rows_lost || /* it has the same claim, as the token on it does not say */
                   looks_untold(h, pod, other);
        return other == pod || has_any(mine, len, theirs, theirs_len);
    }
    return !lives;
}

/* What was not listed when it was asked for is known by its name alone: if that is not its id, it
 * is so for this create, until the kubelet's next. */
static bool names_a_name(const char *message)
{
    return strstr(message, "not listed by the plugin: device ids port-");
}

void lift_judge_refused(struct lift_world *h, const struct lw_pod *pod, size_t container, int code,
                        const char *message)
{
    static const struct {
        const char *words;
        enum truth truth;
    } WORDS[] = {{": unhealthy for ", UNHEALTHY},
                 {": not listed by the plugin", UNLISTED},
                 {"\" stopped ", AWAY},
                 {" has been connecting for ", AWAY},
                 {" is not registered on this node", AWAY},
                 {" stands for no resource ", MOVED_BACK}};
    struct lw_had had[LW_HAD];
    size_t len = lift_pod_had(h, pod, container, had);

    check_that(h->w, code != 0, "a refusal has a code");
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        check_that(h->w,
                   !strstr(message, WORDS[i].words) || names_a_name(message) ||
                       is_true_of_any(h, had, len, WORDS[i].truth),
                   "what a refusal says is so: %s", message);
    check_that(
        h->w, !strstr(message, ", which still runs") || is_holder(h, pod, container, message, true),
        "who is said to run with a device does: %s", message);
    check_that(h->w,
               !strstr(message, "by another claim") || is_holder(h, pod, container, message, false),
               "who is said to have a device by another claim may: %s", message);
    count_add(strstr(message, "by another claim") ? COUNT_LIFT_REFUSED_CLAIM : COUNT_LIFT_REFUSED);
}

/* ---- claims ---- */

static const struct lw_result *find_result(const struct lw_claim *claim, const char *pool,
                                           const char *name)
{
    for (size_t i = 0; i < claim->results_len; i++) {
        if (strcmp(claim->results[i].pool, pool) == 0 && strcmp(claim->results[i].name, name) == 0)
            return &claim->results[i];
    }
    return NULL;
}

/* The very devices that are allocated, each of the request that it is for. */
static void judge_prepared(struct lift_world *h, size_t id, const struct devicemgr_claim_done *done)
{
    const struct lw_claim *claim = &h->claims[id];
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, done->response_bytes, done->response);

    check_that(h->w, message && message->n_devices == claim->results_len,
               "c%zu is prepared with as many devices as it has", id);
    for (size_t i = 0; message && i < message->n_devices; i++) {
        const Dra__V1__Device *device = message->devices[i];
        const struct lw_result *result = find_result(claim, device->pool_name, device->device_name);
        size_t main = result ? strcspn(result->request, "/") : 0;

        check_that(h->w,
                   result && device->n_request_names == 1 &&
                       strlen(device->request_names[0]) == main &&
                       strncmp(device->request_names[0], result->request, main) == 0,
                   "c%zu is prepared with what it has, for the requests that it is for: %s", id,
                   device->device_name);
        check_that(h->w, device->n_cdi_device_ids == 1, "each device has a name of its own");
    }
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
}

/* A container runs with it, or may. */
static bool is_used(const struct lift_world *h, size_t claim)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->pods[i];

        for (size_t c = 0; pod->there && c < pod->claims_len; c++) {
            for (size_t k = 0; pod->claims[c] == claim && k < pod->containers_len; k++) {
                if (lift_container_lives(&pod->containers[k]) && pod->containers[k].known &&
                    (k == 0 || !h->claims[claim].extended))
                    return true;
            }
        }
    }
    return false;
}

void lift_judge_done(struct lift_world *h, size_t id, const struct devicemgr_claim_done *done)
{
    const struct lw_claim *claim = &h->claims[id];

    if (done->code != 0) {
        check_that(h->w, !strstr(done->message, "nothing is allocated to it") || !claim->allocated,
                   "what has nothing is said to: c%zu", id);
        count_add(COUNT_LIFT_CLAIM_REFUSED);
        return;
    }
    if (claim->asks_prepare) {
        count_add(COUNT_LIFT_PREPARED);
        judge_prepared(h, id, done);
        return;
    }
    count_add(COUNT_LIFT_UNPREPARED);
    check_that(h->w, claim->lost || !is_used(h, id),
               "c%zu is not unprepared while a container runs with it", id);
}

/* ---- in the end ---- */

static bool shares(const struct lw_pod *pod, const struct lw_pod *other)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        for (size_t k = 0; k < other->claims_len; k++) {
            if (pod->claims[i] == other->claims[k])
                return true;
        }
    }
    return false;
}

static bool may_wait(const struct lift_world *h, const struct lw_pod *pod)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        if (lift_is_in_the_way(h, pod, &h->pods[i]))
            return true;
        if (h->rows_lost && h->pods[i].there && shares(pod, &h->pods[i]))
            return true;
    }
    return false;
}

void lift_judge_rest(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->pods[i];

        if (!pod->there || may_wait(h, pod))
            continue;
        check_that(h->w, !pod->deleting && lift_pod_runs(pod), "pod u%u runs, or is gone",
                   pod->uid);
        count_add(lift_pod_by_claims(pod) ? COUNT_LIFT_RUNS : COUNT_LIFT_RUNS_BEFORE);
    }
    lift_judge_published(h);
}

void lift_judge_end(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++)
        check_that(h->w, !h->pods[i].there, "pod u%u is gone", h->pods[i].uid);
    for (size_t i = 0; i < h->claims_len; i++)
        check_that(h->w, !lift_shim_has_claim(h, i), "nothing is kept of c%zu", i);
    for (size_t i = 0; i < LW_ORDERS; i++)
        check_that(h->w, !h->orders[i].id, "nothing is ordered any more: %" PRIu64,
                   h->orders[i].id);
}
