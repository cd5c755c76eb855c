/*
 * The rows of pods that are being ended.
 */
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/utf8.h"
#include "devicemgr/books/record.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static void ask_of(const struct ending_ask *ask, Checkpoint__V1__EndingAsk *row)
{
    checkpoint__v1__ending_ask__init(row);
    row->asker = (char *)end_asker_name(ask->asker);
    row->token = ask->token;
    row->asked_ms = ask->asked_ms;
    row->own_grace = ask->grace_ms == ENDING_POD_GRACE;
    row->grace_ms = row->own_grace ? 0 : ask->grace_ms;
    row->or_less = ask->or_less;
    row->here = ask->force_local;
    row->why = ask->why;
    row->at_s = ask->at_s;
    row->told = ask->told;
}

/* The pod's own is said as what it is, if that is known: after a restart it is not at first. */
static void put_order(const struct ending *ending, Checkpoint__V1__Ending *row)
{
    uint64_t grace_ms = ending_order_grace_ms(ending);

    if (ending->state != ENDING_EVICTED)
        return;
    row->order_own_grace = grace_ms == ENDING_POD_GRACE;
    row->order_grace_ms = row->order_own_grace ? 0 : grace_ms;
}

uint8_t *record_of_ending(const struct ending *ending, const char *boot_id, size_t *bytes_len)
{
    Checkpoint__V1__Ending row = CHECKPOINT__V1__ENDING__INIT;
    Checkpoint__V1__EndingAsk asks[ENDING_ASKS_MAX], *all[ENDING_ASKS_MAX];

    row.pod_uid = ending->pod_uid;
    row.namespace_ = ending->pod_namespace;
    row.name = ending->pod_name;
    row.state = (char *)ending_state_name(ending->state);
    row.boot_id = (char *)boot_id;
    row.asked_ms = ending_asked_ms(ending);
    row.due_ms = ending->due_ms;
    row.static_pod = ending->static_pod;
    row.earlier_boot = ending->earlier_boot;
    row.unasked_ms = ending->unasked_ms;
    row.unasked_since_ms = ending->unasked_since_ms;
    put_order(ending, &row);
    row.sidecars = ending->sidecars.v;
    row.n_sidecars = ending->sidecars.len;
    row.asks = all;
    for (const struct ending_ask *ask = ending->asks; ask; ask = ask->next) {
        ask_of(ask, &asks[row.n_asks]);
        all[row.n_asks] = &asks[row.n_asks];
        row.n_asks++;
    }
    return record_pack(&row.base, bytes_len);
}

static bool row_valid(const struct endings *endings, const Checkpoint__V1__Ending *row,
                      const struct devicemgr_record *record, enum ending_state *state)
{
    enum end_asker asker;

    if (strcmp(row->pod_uid, record->key[0]) != 0 || row->pod_uid[0] == '\0' ||
        !ending_state_find(row->state, state) || *state == ENDING_GONE || row->n_asks == 0 ||
        row->n_asks > ENDING_ASKS_MAX || row->n_sidecars > SIDECARS_MAX ||
        endings_find(endings, row->pod_uid) || endings_len(endings) >= ENDINGS_MAX)
        return false;
    for (size_t i = 0; i < row->n_asks; i++) {
        if (!end_asker_find(row->asks[i]->asker, &asker) || !utf8_is_text(row->asks[i]->why))
            return false;
    }
    for (size_t i = 0; i < row->n_sidecars; i++) {
        if (!utf8_is_text(row->sidecars[i]))
            return false;
    }
    return utf8_is_text(row->pod_uid) && utf8_is_text(row->namespace_) && utf8_is_text(row->name);
}

static void restore_ask(struct ending *ending, const Checkpoint__V1__EndingAsk *row,
                        uint64_t asked_ms)
{
    struct ending_ask ask = {.token = row->token,
                             .asked_ms = asked_ms,
                             .grace_ms = row->own_grace ? ENDING_POD_GRACE : row->grace_ms,
                             .or_less = row->or_less,
                             .force_local = row->here,
                             .why = row->why,
                             .at_s = row->at_s,
                             .told = row->told};

    if (end_asker_find(row->asker, &ask.asker))
        ending_ask(ending, &ask);
}

/* In one of an earlier boot it is as if all had asked now. */
static void restore_asks(struct ending *ending, const Checkpoint__V1__Ending *row, uint64_t now_ms,
                         bool is_boot)
{
    for (size_t i = 0; i < row->n_asks; i++) {
        const Checkpoint__V1__EndingAsk *ask = row->asks[i];
        uint64_t asked_ms = ask->asked_ms ? ask->asked_ms : row->asked_ms;

        restore_ask(ending, ask, is_boot ? earlier(asked_ms, now_ms) : now_ms);
    }
}

int record_restore_ending(struct endings *endings, uint64_t now_ms, const char *boot_id,
                          const struct devicemgr_record *record)
{
    Checkpoint__V1__Ending *row =
        checkpoint__v1__ending__unpack(NULL, record->value_bytes, record->value);
    enum ending_state state;
    int result = -1;

    if (row && row_valid(endings, row, record, &state)) {
        bool is_boot = same_boot(row->boot_id, boot_id);
        struct ending *ending = endings_add(endings, row->pod_uid, row->namespace_, row->name);

        restore_asks(ending, row, now_ms, is_boot);
        ending_set_restored(ending, state, is_boot ? row->due_ms : 0, row->static_pod,
                            !is_boot || row->earlier_boot);
        ending->order_grace_ms = row->order_own_grace ? ENDING_POD_GRACE : row->order_grace_ms;
        if (is_boot) {
            ending->unasked_ms = row->unasked_ms;
            ending->unasked_since_ms = earlier(row->unasked_since_ms, now_ms);
        }
        ending_set_sidecars(ending, row->sidecars, row->n_sidecars);
        ending->stored = true;
        result = 0;
    }
    checkpoint__v1__ending__free_unpacked(row, NULL);
    return result;
}
