#include "devicemgr/things/ending.h"

#include <assert.h>

#include <utlist.h>

#include "devicemgr/ports.h"
#include "devicemgr/things/enum.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static const char *const ASKERS[END_ASKERS] = {[END_OPERATOR] = "operator",
                                               [END_EVICTION] = DEVICEMGR_ASKER_EVICTION,
                                               [END_SHUTDOWN] = "shutdown"};

static const char *const STATES[ENDING_STATES] = {
    [ENDING_ASKED] = "asked",       [ENDING_EVICTING] = "evicting", [ENDING_EVICTED] = "evicted",
    [ENDING_STOPPING] = "stopping", [ENDING_STOPPED] = "stopped",   [ENDING_GONE] = "gone"};

const char *end_asker_name(enum end_asker asker)
{
    return ASKERS[asker];
}

const char *ending_state_name(enum ending_state state)
{
    return STATES[state];
}

bool end_asker_find(const char *name, enum end_asker *out)
{
    return ENUM_FIND(ASKERS, name, out);
}

bool ending_state_find(const char *name, enum ending_state *out)
{
    return ENUM_FIND(STATES, name, out);
}

/* ---- the table ---- */

void endings_fini(struct endings *table)
{
    while (table->by_uid)
        endings_remove(table, table->by_uid);
}

size_t endings_len(const struct endings *table)
{
    return HASH_COUNT(table->by_uid);
}

const struct ending *endings_find(const struct endings *table, const char *pod_uid)
{
    const struct ending *ending;

    HASH_FIND_STR(table->by_uid, pod_uid, ending);
    return ending;
}

struct ending *endings_edit(struct endings *table, const char *pod_uid)
{
    return (struct ending *)endings_find(table, pod_uid);
}

struct ending *endings_add(struct endings *table, const char *pod_uid, const char *pod_namespace,
                           const char *pod_name)
{
    struct ending *ending = mem_alloc(1, sizeof *ending);

    assert(!endings_find(table, pod_uid));
    ending->pod_uid = mem_strdup(pod_uid);
    ending->pod_namespace = mem_strdup(pod_namespace);
    ending->pod_name = mem_strdup(pod_name);
    HASH_ADD_KEYPTR(hh, table->by_uid, ending->pod_uid, strlen(ending->pod_uid), ending);
    return ending;
}

void endings_remove(struct endings *table, struct ending *ending)
{
    HASH_DEL(table->by_uid, ending);
    while (ending->asks)
        ending_drop_ask(ending, ending->asks);
    free(ending->pod_uid);
    free(ending->pod_namespace);
    free(ending->pod_name);
    ids_fini(&ending->sidecars);
    free(ending);
}

/* ---- one ending ---- */

static bool may_move(enum ending_state from, enum ending_state to)
{
    switch (from) {
    case ENDING_ASKED:
        return to == ENDING_EVICTING || to == ENDING_STOPPING || to == ENDING_GONE;
    case ENDING_EVICTING:
        return to == ENDING_EVICTED || to == ENDING_STOPPING || to == ENDING_GONE;
    case ENDING_EVICTED:
        return to == ENDING_STOPPING || to == ENDING_GONE;
    case ENDING_STOPPING:
        return to == ENDING_STOPPED || to == ENDING_EVICTING || to == ENDING_GONE;
    case ENDING_STOPPED:
        return to == ENDING_STOPPING || to == ENDING_EVICTING || to == ENDING_GONE;
    case ENDING_GONE:
    case ENDING_STATES:
        break;
    }
    return false;
}

void ending_set_state(struct ending *ending, enum ending_state state)
{
    assert(ending->state == state || may_move(ending->state, state));
    ending->state = state;
}

void ending_set_restored(struct ending *ending, enum ending_state state, uint64_t due_ms,
                         bool static_pod, bool earlier_boot)
{
    /* what runs by now is not known */
    ending->state = state == ENDING_STOPPED ? ENDING_STOPPING : state;
    ending->due_ms = due_ms;
    ending->static_pod = static_pod;
    ending->earlier_boot = earlier_boot;
    for (struct ending_ask *ask = ending->asks; ask; ask = ask->next)
        ask->told = ask->told || state == ENDING_STOPPED || state == ENDING_EVICTED;
}

void ending_set_left(struct ending *ending)
{
    ending_set_state(ending, ENDING_EVICTING);
    ending->due_ms = 0;
}

void ending_set_static(struct ending *ending)
{
    ending->static_pod = true;
}

void ending_set_pod_grace(struct ending *ending, uint64_t pod_grace_ms)
{
    ending->pod_grace_ms = pod_grace_ms;
}

void ending_set_seen(struct ending *ending)
{
    ending->earlier_boot = false;
}

void ending_set_due(struct ending *ending, uint64_t due_ms)
{
    ending->due_ms = earlier(moment_or_never(ending->due_ms), due_ms);
}

void ending_set_sidecars(struct ending *ending, char *const *names, size_t names_len)
{
    ids_fini(&ending->sidecars);
    ids_copy(&ending->sidecars, names, names_len);
}

/* ---- who asks ---- */

static struct ending_ask *find_ask(const struct ending *ending, enum end_asker asker,
                                   uint64_t token)
{
    struct ending_ask *ask;

    DL_FOREACH(ending->asks, ask) {
        if (ask->asker == asker && ask->token == token)
            return ask;
    }
    return NULL;
}

const struct ending_ask *ending_find_ask(const struct ending *ending, enum end_asker asker,
                                         uint64_t token)
{
    return find_ask(ending, asker, token);
}

/* The pod's own counts as the longest as long as nobody knows it; who has asked for it and for
 * another has the shorter. */
struct ending_ask *ending_ask(struct ending *ending, const struct ending_ask *said)
{
    struct ending_ask *ask = find_ask(ending, said->asker, said->token);

    if (!ask && ending->asks_len == ENDING_ASKS_MAX)
        return NULL;
    if (!ask) {
        ask = mem_alloc(1, sizeof *ask);
        ask->asker = said->asker;
        ask->token = said->token;
        ask->asked_ms = said->asked_ms;
        ask->grace_ms = said->grace_ms;
        DL_APPEND(ending->asks, ask);
        ending->asks_len++;
    }
    free(ask->why);
    ask->why = mem_strdup(said->why);
    ask->or_less = ask->or_less || said->or_less ||
                   (ask->grace_ms == ENDING_POD_GRACE) != (said->grace_ms == ENDING_POD_GRACE);
    ask->grace_ms = earlier(ask->grace_ms, said->grace_ms);
    ask->force_local = ask->force_local || said->force_local;
    ask->at_s = said->at_s;
    ask->told = said->told;
    return ask;
}

void ending_drop_ask(struct ending *ending, const struct ending_ask *ask)
{
    struct ending_ask *own = find_ask(ending, ask->asker, ask->token);

    DL_DELETE(ending->asks, own);
    ending->asks_len--;
    free(own->why);
    free(own);
}

void ending_ask_set_told(struct ending_ask *ask)
{
    ask->told = true;
}

bool ending_told(const struct ending *ending)
{
    const struct ending_ask *ask = ending->asks;

    while (ask && ask->told)
        ask = ask->next;
    return ask == NULL;
}

uint64_t ending_asked_ms(const struct ending *ending)
{
    uint64_t asked_ms = UINT64_MAX;

    for (const struct ending_ask *ask = ending->asks; ask; ask = ask->next)
        asked_ms = earlier(asked_ms, ask->asked_ms);
    return asked_ms;
}

static uint64_t shortest_ms(const struct ending *ending, uint64_t pod_ms)
{
    uint64_t grace_ms = UINT64_MAX;

    for (const struct ending_ask *ask = ending->asks; ask; ask = ask->next) {
        grace_ms = earlier(grace_ms, ask->grace_ms == ENDING_POD_GRACE ? pod_ms : ask->grace_ms);
        if (ask->or_less)
            grace_ms = earlier(grace_ms, pod_ms);
    }
    return grace_ms;
}

static uint64_t pod_ms(const struct ending *ending)
{
    return ending->pod_grace_ms != 0 ? ending->pod_grace_ms : ENDING_POD_GRACE;
}

uint64_t ending_grace_ms(const struct ending *ending)
{
    return shortest_ms(ending, pod_ms(ending));
}

bool ending_grace_is_open(const struct ending *ending)
{
    return ending->pod_grace_ms == 0 && shortest_ms(ending, 0) == 0 &&
           shortest_ms(ending, ENDING_POD_GRACE) != ENDING_POD_GRACE;
}

uint64_t ending_order_grace_ms(const struct ending *ending)
{
    return ending->order_grace_ms == ENDING_POD_GRACE ? pod_ms(ending) : ending->order_grace_ms;
}

bool ending_grace_is_shorter(const struct ending *ending)
{
    return ending_grace_ms(ending) < ending_order_grace_ms(ending);
}

bool ending_asked_only_by(const struct ending *ending, enum end_asker asker)
{
    const struct ending_ask *ask = ending->asks;

    while (ask && ask->asker == asker)
        ask = ask->next;
    return ask == NULL;
}

bool ending_forced_local(const struct ending *ending)
{
    const struct ending_ask *ask = ending->asks;

    while (ask && !ask->force_local)
        ask = ask->next;
    return ask != NULL;
}
