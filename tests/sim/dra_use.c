/*
 * Which containers use a claim.
 */
#include <stdio.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "tests/sim/dra.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

struct dra_use *dra_use_find(struct world *w, uint64_t create)
{
    for (size_t i = 0; create && i < DRA_USES_MAX; i++) {
        if (w->dra.uses[i].create == create)
            return &w->dra.uses[i];
    }
    return NULL;
}

static bool uses(const struct dra_use *use, size_t claim, size_t driver, bool known)
{
    for (size_t i = 0; i < use->claims_len; i++) {
        if (use->claims[i] == claim && dra_uses(claim, driver))
            return !known || use->known[i][driver];
    }
    return false;
}

const struct dra_use *dra_user(struct world *w, size_t claim, size_t driver)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];
        const struct dra_use *use = c->id ? dra_use_find(w, c->claimant) : NULL;

        if (use && runtime_live(c) && uses(use, claim, driver, true))
            return use;
    }
    return NULL;
}

/* Whether its container runs, or did until not long ago: the shim has not seen since that it does
 * not. */
static bool may_run(struct world *w, const struct dra_use *use)
{
    uint64_t ended_ms = runtime_ended_ms(w, use->uid);
    uint64_t asked_ms = use->asked_ms > w->shim.started_ms ? use->asked_ms : w->shim.started_ms;

    return use->create && (runtime_runs(w, use->uid) || runtime_may_start_one(w, use->uid) ||
                           !lister_heard_since(w, ended_ms + 1) ||
                           !lister_heard_since(w, asked_ms + CLAIM_USER_COMES_MS) ||
                           !lister_heard_since(w, shim_earlier_until_ms(w)));
}

bool dra_may_be_used(struct world *w, size_t claim, size_t driver)
{
    for (size_t i = 0; i < DRA_USES_MAX; i++) {
        if (uses(&w->dra.uses[i], claim, driver, false) && may_run(w, &w->dra.uses[i]))
            return true;
    }
    return false;
}

/* Whether a claim of one has a device that another claim of the other has, or had when that was
 * asked for. */
static bool meet(const struct dra *dra, const struct dra_use *use, const struct dra_use *other,
                 size_t driver)
{
    for (size_t i = 0; i < use->claims_len; i++) {
        for (size_t k = 0; k < other->claims_len; k++) {
            size_t theirs = other->claims[k];

            if (use->claims[i] != theirs && dra_uses(use->claims[i], driver) &&
                dra_uses(theirs, driver) &&
                (use->device[i][driver] == other->device[k][driver] ||
                 use->device[i][driver] == dra->claims[theirs].given[driver]))
                return true;
        }
    }
    return false;
}

bool dra_may_be_held(struct world *w, const struct dra_use *use)
{
    for (size_t i = 0; i < DRA_USES_MAX; i++) {
        const struct dra_use *other = &w->dra.uses[i];

        if (other->uid == use->uid || !may_run(w, other))
            continue;
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            if (meet(&w->dra, use, other, d))
                return true;
        }
    }
    return false;
}

/* The claim's row; NULL: there is none. The caller frees it. */
static Checkpoint__V1__Claim *read_row(struct world *w, size_t claim, size_t driver)
{
    const struct store_row *row;
    char uid[16];

    dra_claim_names(claim, uid);
    row = store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, dra_driver_name(driver), "");
    return row ? checkpoint__v1__claim__unpack(NULL, row->record.value_bytes, row->record.value)
               : NULL;
}

/* Whether it says that this sandbox has the claim. */
static bool is_stored(struct world *w, size_t claim, size_t driver, const char *sandbox)
{
    Checkpoint__V1__Claim *row = read_row(w, claim, driver);
    bool stored = false;

    for (size_t i = 0; row && i < row->n_users; i++)
        stored = stored || strcmp(row->users[i]->sandbox_id, sandbox) == 0;
    checkpoint__v1__claim__free_unpacked(row, NULL);
    return stored;
}

static unsigned version_in(const Checkpoint__V1__Claim *row)
{
    const struct devicemgr_claim_done done = {.response = row->response.data,
                                              .response_bytes = row->response.len};
    struct dra_answer answer;

    return dra_answer_read(&done, &answer) ? answer.version : 0;
}

/* Whether it says that the claim is prepared as the kubelet was told. What a driver has answered
 * since, and nobody was told of, has other names: it has taken away the file of those before, and
 * no runtime makes a container with them. */
static bool is_as_told(struct world *w, size_t claim, size_t driver)
{
    Checkpoint__V1__Claim *row = read_row(w, claim, driver);
    bool as_told = row && strcmp(row->state, "prepared") == 0 &&
                   version_in(row) == w->dra.claims[claim].has[driver];

    checkpoint__v1__claim__free_unpacked(row, NULL);
    return as_told;
}

unsigned dra_stored_version(struct world *w, size_t claim, size_t driver)
{
    Checkpoint__V1__Claim *row = read_row(w, claim, driver);
    unsigned version = row ? version_in(row) : 0;

    checkpoint__v1__claim__free_unpacked(row, NULL);
    return version;
}

bool dra_use_is_stored(struct world *w, const struct dra_use *use)
{
    char sandbox[16];

    snprintf(sandbox, sizeof sandbox, "s%u", use->sandbox);
    for (size_t c = 0; c < use->claims_len; c++) {
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            if (use->known[c][d] && !is_stored(w, use->claims[c], d, sandbox))
                return false;
        }
    }
    return true;
}

void dra_uses_shim_started(struct world *w)
{
    for (size_t i = 0; i < DRA_USES_MAX; i++) {
        struct dra_use *use = &w->dra.uses[i];
        char sandbox[16];

        snprintf(sandbox, sizeof sandbox, "s%u", use->sandbox);
        for (size_t c = 0; use->create && c < use->claims_len; c++) {
            for (size_t d = 0; d < DRA_DRIVERS; d++)
                use->known[c][d] = use->known[c][d] && is_stored(w, use->claims[c], d, sandbox);
        }
    }
}

/* ---- what is noted ---- */

void dra_use_note(struct world *w, const struct dra_pod *pod, unsigned sandbox, uint64_t number)
{
    struct dra_use *use = &w->dra.uses[w->dra.uses_len++ % DRA_USES_MAX];

    *use = (struct dra_use){.create = number,
                            .uid = pod->uid,
                            .sandbox = sandbox,
                            .claims_len = pod->claims_len,
                            .asked_ms = w->now_ms};
    for (size_t i = 0; i < pod->claims_len; i++) {
        struct dra_claim *claim = &w->dra.claims[pod->claims[i]];

        use->claims[i] = pod->claims[i];
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            claim->truth[d].used_since |= claim->truth[d].unsure;
            use->device[i][d] = claim->given[d];
            use->known[i][d] = claim->has[d] && is_as_told(w, pod->claims[i], d);
        }
    }
}
