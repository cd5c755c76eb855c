#include "devicemgr/things/allocation.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/things/options.h"

/* ---- its devices ---- */

static void index_all(struct owners **table, const struct allocation *allocation,
                      const struct ids *ids)
{
    for (size_t i = 0; i < ids->len; i++)
        owners_add(table, (const char *[]){allocation->resource, ids->v[i]}, 2, allocation);
}

static void unindex_all(struct owners **table, const struct allocation *allocation,
                        const struct ids *ids)
{
    for (size_t i = 0; i < ids->len; i++)
        owners_remove(table, (const char *[]){allocation->resource, ids->v[i]}, 2, allocation);
}

void allocation_put_in(struct allocation *allocation)
{
    index_all(&allocation->table->devices, allocation, &allocation->ids);
    index_all(&allocation->table->asked, allocation, &allocation->asked);
}

void allocation_take_out(struct allocation *allocation)
{
    struct allocations *table = allocation->table;

    if (allocation->shown != SHOWN_NOTHING)
        ids_add_new(&table->dropped, allocation->resource);
    unindex_all(&table->devices, allocation, &allocation->ids);
    unindex_all(&table->asked, allocation, &allocation->asked);
}

/* What it has and what it had before change places. */
static void swap_before(struct allocation *allocation)
{
    struct ids ids = allocation->ids, asked = allocation->asked;

    allocation_take_out(allocation);
    allocation->ids = allocation->before;
    allocation->asked = allocation->before_asked;
    allocation->before = ids;
    allocation->before_asked = asked;
    allocation_put_in(allocation);
    allocation_set_changed(allocation);
}

/* ---- what it is, and waits for ---- */

unsigned allocation_waits(const struct allocation *allocation)
{
    unsigned waits = 0;

    if (allocation->row == ALLOCATION_QUEUED || allocation->row == ALLOCATION_CARRIED)
        waits |= ALLOCATION_WAITS_STORE;
    if (allocation->create)
        waits |= ALLOCATION_WAITS_CREATE;
    if (allocation->said.check)
        waits |= ALLOCATION_WAITS_CHECK;
    if (allocation->unknown_in)
        waits |= ALLOCATION_WAITS_LIST;
    if (allocation->token == ALLOCATION_TOKEN_WAITS)
        waits |= ALLOCATION_WAITS_KUBELET;
    return waits;
}

/* ---- who is to look at it ---- */

void allocation_set_stale(struct allocation *allocation)
{
    if (allocation->stale)
        return;
    allocation->stale = true;
    DL_APPEND2(allocation->table->stale, allocation, stale_prev, stale_next);
}

void allocation_set_changed(struct allocation *allocation)
{
    allocation_set_stale(allocation);
    if (allocation->changed)
        return;
    allocation->changed = true;
    DL_APPEND2(allocation->table->changed, allocation, changed_prev, changed_next);
}

void allocation_set_known(struct allocation *allocation, uint64_t now_ms)
{
    enum allocation_life life = allocation_life(allocation);

    if (life != allocation->known)
        allocation->known_ms = now_ms;
    allocation->known = life;
}

void allocation_set_shown(struct allocation *allocation, enum shown_hold shown)
{
    allocation->shown = shown;
}

void allocation_set_own_choice(struct allocation *allocation, bool own_choice)
{
    allocation->own_choice = own_choice;
}

void allocation_set_claimed(struct allocation *allocation, const struct by_claims *by)
{
    by_claims_fini(&allocation->by);
    allocation->claimed = by != NULL;
    if (by)
        by_claims_copy(&allocation->by, by);
}

void allocation_set_tentative(struct allocation *allocation)
{
    allocation->own_choice = true;
    allocation->tentative = true;
}

void allocation_set_token(struct allocation *allocation, enum allocation_token token,
                          uint64_t token_ms)
{
    assert(allocation->token != ALLOCATION_TOKEN_JUDGED);
    allocation->token = token;
    allocation->token_ms = token_ms;
}

bool allocation_conflict_once(struct allocation *allocation)
{
    bool once = !allocation->conflict_logged;

    allocation->conflict_logged = true;
    return once;
}

/* ---- its containers ---- */

void allocation_set_create(struct allocation *allocation, uint64_t create)
{
    allocation->create = create;
    allocation_set_changed(allocation);
}

const char *allocation_live_id(const struct allocation *allocation)
{
    size_t len = allocation->lives_len;

    return len > 0 ? allocation->lives[len - 1].container_id : NULL;
}

static void live_remove(struct allocation *allocation, size_t at)
{
    struct allocation_live *lives = allocation->lives;
    const char *container_id = lives[at].container_id;

    owners_remove(&allocation->table->containers, &container_id, 1, allocation);
    free(lives[at].container_id);
    free(lives[at].sandbox_id);
    allocation->lives_len--;
    memmove(&lives[at], &lives[at + 1], (allocation->lives_len - at) * sizeof *lives);
}

void allocation_drop_lives(struct allocation *allocation)
{
    while (allocation->lives_len > 0)
        live_remove(allocation, allocation->lives_len - 1);
}

/* What was asked or said of its containers was not about those it has now. */
static void forget_answers(struct allocation *allocation)
{
    allocation_set_changed(allocation);
    allocation->said = (struct allocation_said){0};
}

static void set_unknown(struct allocation *allocation, const char *sandbox_id)
{
    char *copy = sandbox_id ? mem_strdup(sandbox_id) : NULL; /* it may be its own */

    allocation_set_changed(allocation);
    free(allocation->unknown_in);
    allocation->unknown_in = copy;
}

/* A container was made with its devices, or may be. */
static void set_made(struct allocation *allocation)
{
    allocation->tentative = false;
    ids_fini(&allocation->before);
    ids_fini(&allocation->before_asked);
}

void allocation_set_live(struct allocation *allocation, const char *container_id,
                         const char *sandbox_id, uint32_t attempt)
{
    struct allocation_live live = {mem_strdup(container_id), mem_strdup(sandbox_id), attempt};
    struct allocation_live *lives;
    size_t at = 0;

    allocation_set_ended(allocation, container_id); /* told again */
    forget_answers(allocation);
    set_made(allocation);
    while (at < allocation->lives_len && allocation->lives[at].attempt <= attempt)
        at++;
    lives = mem_alloc(allocation->lives_len + 1, sizeof *lives);
    for (size_t i = 0; i < allocation->lives_len; i++)
        lives[i + (i >= at)] = allocation->lives[i];
    lives[at] = live;
    free(allocation->lives);
    allocation->lives = lives;
    allocation->lives_len++;
    owners_add(&allocation->table->containers, &container_id, 1, allocation);
}

void allocation_set_unknown(struct allocation *allocation, const char *sandbox_id,
                            uint64_t until_ms)
{
    forget_answers(allocation);
    set_unknown(allocation, sandbox_id);
    allocation->unknown_until_ms = until_ms;
    set_made(allocation);
}

bool allocation_set_ended(struct allocation *allocation, const char *container_id)
{
    allocation->table->looks++;
    for (size_t i = 0; i < allocation->lives_len; i++) {
        if (strcmp(allocation->lives[i].container_id, container_id) != 0)
            continue;
        live_remove(allocation, i);
        forget_answers(allocation);
        return true;
    }
    return false;
}

void allocation_set_sandbox_closed(struct allocation *allocation, const char *sandbox_id)
{
    if (allocation->unknown_in && strcmp(allocation->unknown_in, sandbox_id) == 0)
        set_unknown(allocation, NULL);
}

void allocation_set_sandbox_ended(struct allocation *allocation, const char *sandbox_id)
{
    for (size_t i = allocation->lives_len; i > 0; i--) {
        if (strcmp(allocation->lives[i - 1].sandbox_id, sandbox_id) != 0)
            continue;
        live_remove(allocation, i - 1);
        forget_answers(allocation);
    }
    allocation_set_sandbox_closed(allocation, sandbox_id);
}

void allocation_set_idle(struct allocation *allocation)
{
    forget_answers(allocation);
    set_unknown(allocation, NULL);
    allocation_drop_lives(allocation);
}

void allocation_set_epoch(struct allocation *allocation, uint64_t epoch)
{
    allocation->epoch = epoch;
}

void allocation_set_exited(struct allocation *allocation)
{
    allocation->said.exited = true;
}

void allocation_set_asked(struct allocation *allocation, uint64_t check)
{
    assert(allocation->lives_len > 0 && !allocation->said.check);
    allocation->said.check = check;
}

bool allocation_set_answered(struct allocation *allocation, uint64_t check)
{
    if (allocation->said.check != check)
        return false;
    allocation->said.check = 0;
    return true;
}

void allocation_set_unanswered(struct allocation *allocation, uint64_t again_ms)
{
    allocation->said.again_ms = again_ms;
}

void allocation_set_said_to_run(struct allocation *allocation, uint64_t create,
                                uint64_t late_until_ms)
{
    allocation->said.to = create;
    if (late_until_ms > 0)
        allocation->said.late_until_ms = late_until_ms;
}

/* ---- its row ---- */

static bool may_move(enum allocation_row from, enum allocation_row to)
{
    switch (from) {
    case ALLOCATION_RESERVED:
        return to == ALLOCATION_QUEUED || to == ALLOCATION_DURABLE;
    case ALLOCATION_DURABLE:
        return to != ALLOCATION_CARRIED;
    case ALLOCATION_QUEUED:
        return to == ALLOCATION_CARRIED || to == ALLOCATION_DURABLE;
    case ALLOCATION_CARRIED:
        return to == ALLOCATION_DURABLE;
    }
    return false;
}

static void set_row(struct allocation *allocation, enum allocation_row row, uint64_t commit)
{
    assert(may_move(allocation->row, row));
    assert((row == ALLOCATION_CARRIED) == (commit != 0));
    allocation->row = row;
    allocation->renews = allocation->renews && row != ALLOCATION_DURABLE;
    allocation->commit = commit;
}

void allocation_set_found(struct allocation *allocation)
{
    assert(!allocation_durable(allocation));
    if (allocation->row == ALLOCATION_RESERVED)
        set_row(allocation, ALLOCATION_DURABLE, 0);
    else
        allocation->renews = true;
}

/* Takes `options`, may be NULL, in the place of what was there. */
static void put_options(struct allocation *allocation, V1beta1__ContainerAllocateResponse **place,
                        size_t *bytes, V1beta1__ContainerAllocateResponse *options)
{
    allocation->table->options_bytes -= *bytes;
    options_free(*place);
    *place = options;
    *bytes = options ? options_bytes(options) : 0;
    allocation->table->options_bytes += *bytes;
}

static void set_fresh(struct allocation *allocation, V1beta1__ContainerAllocateResponse *fresh)
{
    put_options(allocation, &allocation->fresh, &allocation->fresh_bytes, fresh);
}

static void set_options(struct allocation *allocation, V1beta1__ContainerAllocateResponse *options)
{
    put_options(allocation, &allocation->options, &allocation->options_bytes, options);
}

static void set_boot(struct allocation *allocation, const char *boot_id)
{
    free(allocation->boot_id);
    allocation->boot_id = mem_strdup(boot_id);
}

void allocation_set_restored(struct allocation *allocation,
                             V1beta1__ContainerAllocateResponse *options, const char *boot_id)
{
    allocation_set_found(allocation);
    set_options(allocation, options);
    set_boot(allocation, boot_id);
}

void allocation_replace(struct allocation *allocation, const struct ids *ids,
                        const struct ids *asked)
{
    set_made(allocation);
    ids_copy(&allocation->before, ids->v, ids->len);
    ids_sort(&allocation->before);
    ids_copy(&allocation->before_asked, asked->v, asked->len);
    ids_sort(&allocation->before_asked);
    if (ids_equal(&allocation->before_asked, &allocation->before))
        ids_fini(&allocation->before_asked);
    swap_before(allocation);
    forget_answers(allocation);
    set_options(allocation, NULL);
    set_boot(allocation, "");
    set_row(allocation, ALLOCATION_RESERVED, 0);
    allocation->renews = true;
    allocation_set_tentative(allocation);
}

void allocation_queue(struct allocation *allocation)
{
    allocation->renews = allocation_durable(allocation);
    set_row(allocation, ALLOCATION_QUEUED, 0);
}

void allocation_forget_before(struct allocation *allocation)
{
    assert(allocation->row == ALLOCATION_RESERVED);
    ids_fini(&allocation->before);
    ids_fini(&allocation->before_asked);
    allocation->renews = false;
}

void allocation_carry(struct allocation *allocation, uint64_t commit)
{
    set_row(allocation, ALLOCATION_CARRIED, commit);
}

void allocation_set_fresh(struct allocation *allocation,
                          V1beta1__ContainerAllocateResponse *options, uint64_t generation)
{
    set_fresh(allocation, options);
    allocation->fresh_generation = generation;
}

void allocation_confirm(struct allocation *allocation, const char *boot_id)
{
    V1beta1__ContainerAllocateResponse *fresh = allocation->fresh;

    assert(allocation->row == ALLOCATION_CARRIED);
    set_row(allocation, ALLOCATION_DURABLE, 0);
    if (!fresh)
        return;
    set_options(allocation, NULL);
    allocation->options = fresh;
    allocation->options_bytes = allocation->fresh_bytes;
    allocation->fresh = NULL;
    allocation->fresh_bytes = 0;
    allocation->generation = allocation->fresh_generation;
    set_boot(allocation, boot_id);
}

void allocation_revert(struct allocation *allocation)
{
    assert(allocation_durable(allocation));
    if (allocation->before.len > 0) {
        swap_before(allocation);
        set_made(allocation);
        set_options(allocation, NULL); /* which are of the others, if there are any */
        set_boot(allocation, "");
    }
    set_row(allocation, ALLOCATION_DURABLE, 0);
    set_fresh(allocation, NULL);
}
