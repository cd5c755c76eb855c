/*
 * Taints that the cluster has.
 */
#include "devicemgr/taints.h"

#include <string.h>

#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"

void devicemgr_slice_taints(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                            const char *driver, const char *pool, int64_t generation,
                            const struct devicemgr_tainted_device *devices, size_t devices_len)
{
    state_at(&mgr->state, now_ms);
    cluster_taints_set_slice(&mgr->state.tainted.cluster, now_ms, uid, driver, pool, generation,
                             devices, devices_len);
}

static void log_refused(struct state *state, const struct devicemgr_taint_rule *rule)
{
    struct text text = {0};

    text_add(&text, "the DeviceTaintRule ");
    text_add_words(&text, rule->name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, " is not followed: its selector is empty, so that it is for every device");
    state_log(state, LEVEL_WARNING, &text);
}

void devicemgr_taint_rule(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                          const struct devicemgr_taint_rule *rule)
{
    struct state *state = &mgr->state;
    const struct taint_rule *before = cluster_taints_find_rule(&state->tainted.cluster, uid), *is;
    bool was_refused = before && before->refused;

    state_at(state, now_ms);
    is = cluster_taints_set_rule(&state->tainted.cluster, now_ms, uid, rule);
    if (is && is->refused && !was_refused)
        log_refused(state, rule);
}

void devicemgr_taint_rule_gone(struct devicemgr *mgr, uint64_t now_ms, const char *uid)
{
    state_at(&mgr->state, now_ms);
    cluster_taints_drop_rule(&mgr->state.tainted.cluster, uid);
}

void devicemgr_taints_told(struct devicemgr *mgr, uint64_t now_ms)
{
    state_at(&mgr->state, now_ms);
    mgr->state.tainted.told = true;
    mgr->state.tainted.doubted = false;
}

void devicemgr_taints_doubted(struct devicemgr *mgr, uint64_t now_ms)
{
    state_at(&mgr->state, now_ms);
    mgr->state.tainted.doubted = true;
    evicts_doubt(&mgr->evicts);
}

/* An API server that has just started refuses for a while what it knows: its node authorizer waits
 * for no pod that it has yet to hear of. So what was told before stands, and of what was not a
 * refusal is a word only if it is the same some time later, and it was there all the time. */
static bool is_passing(struct devicemgr *mgr, const char *uid)
{
    struct state *state = &mgr->state;
    bool passing = false;

    if (consumers_find(state->tainted.consumers, uid))
        return true;
    for (struct claim *claim = state->claims.by_key; claim; claim = claim->hh.next) {
        if (strcmp(claim->uid, uid) != 0)
            continue;
        if (claim->refused_ms <= state->tainted.away_ms) {
            claim->refused_ms = state->now_ms;
            claim->look_again_ms = state->now_ms + CLAIM_LOOK_REFUSED_MS;
            evicts_look_at(&mgr->evicts, claim->look_again_ms);
        }
        passing |= state->now_ms < claim->refused_ms + CLAIM_LOOK_REFUSED_MS;
    }
    return passing;
}

void devicemgr_claim_consumers(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                               const struct devicemgr_claim_consumers *consumers)
{
    state_at(&mgr->state, now_ms);
    if (!consumers && is_passing(mgr, uid))
        return;
    if (claims_have(&mgr->state.claims, uid)) /* else it is over meanwhile */
        consumers_set(&mgr->state.tainted.consumers, uid, consumers);
}
