#include "devicemgr/books/action.h"

#include "devicemgr/things/claim.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/options.h"

struct action *action_push(struct action_queue *queue, enum action_kind kind, uint64_t subject)
{
    struct action *action = mem_alloc(1, sizeof *action);

    action->kind = kind;
    action->subject = subject;
    if (queue->last)
        queue->last->next = action;
    else
        queue->first = action;
    queue->last = action;
    return action;
}

void action_steered(struct action_queue *queue, uint64_t number, int code, bool changed,
                    const char *text)
{
    struct action *action = action_push(queue, ACTION_STEERED, number);

    action->code = code;
    action->changed = changed;
    action->text = mem_strdup(text);
}

struct devicemgr_eviction *action_eviction(const struct devicemgr_eviction *from)
{
    size_t bytes = mem_text_bytes(from->pod_uid) + mem_text_bytes(from->pod_namespace) +
                   mem_text_bytes(from->pod_name) + mem_text_bytes(from->why);
    struct devicemgr_eviction *to = mem_alloc(sizeof *to + bytes, 1);
    char *end = (char *)(to + 1);

    *to = *from;
    to->pod_uid = mem_text_move(&end, from->pod_uid);
    to->pod_namespace = mem_text_move(&end, from->pod_namespace);
    to->pod_name = mem_text_move(&end, from->pod_name);
    to->why = mem_text_move(&end, from->why);
    return to;
}

struct devicemgr_claim *action_claim(const struct claim *claim)
{
    struct devicemgr_claim *names =
        mem_alloc(sizeof *names + mem_text_bytes(claim->pod_namespace) +
                      mem_text_bytes(claim->name) + mem_text_bytes(claim->uid),
                  1);
    char *end = (char *)(names + 1);

    names->pod_namespace = mem_text_move(&end, claim->pod_namespace);
    names->name = mem_text_move(&end, claim->name);
    names->uid = mem_text_move(&end, claim->uid);
    return names;
}

/* The oldest; ownership goes out. NULL: none. */
static struct action *take(struct action_queue *queue)
{
    struct action *action = queue->first;

    if (!action)
        return NULL;
    queue->first = action->next;
    if (!queue->first)
        queue->last = NULL;
    action->next = NULL;
    return action;
}

bool actions_drop(struct action_queue *queue, enum action_kind kind, uint64_t subject,
                  uint64_t call)
{
    bool found = false;

    for (struct action *action = queue->first; action; action = action->next) {
        if (action->kind != kind || action->subject != subject || action->call != call)
            continue;
        action->kind = ACTION_NONE;
        found = true;
    }
    return found;
}

static void rows_free(struct action_row *rows, size_t rows_len)
{
    for (size_t i = 0; i < rows_len; i++) {
        free(rows[i].names);
        free(rows[i].value);
    }
    free(rows);
}

static void action_free(struct action *action)
{
    free(action->text);
    free(action->socket_name);
    free(action->resource);
    ids_fini(&action->ids);
    ids_fini(&action->must_include);
    options_free(action->options);
    renames_fini(&action->renames);
    rows_free(action->rows, action->rows_len);
    free(action->event);
    free(action->about);
    free(action->claim);
    free(action->eviction);
    free(action->response);
    free(action);
}

void actions_fini(struct action_queue *queue)
{
    struct action *action;

    while ((action = take(queue)))
        action_free(action);
}

static void commit(const struct action *action, const struct devicemgr_ports *ports, void *user)
{
    struct devicemgr_record *records = mem_alloc(action->rows_len, sizeof *records);

    for (size_t i = 0; i < action->rows_len; i++) {
        const struct action_row *row = &action->rows[i];

        records[i] = (struct devicemgr_record){
            .kind = row->kind,
            .key = {row->key[0], row->key[1], row->key[2]},
            .value = row->value,
            .value_bytes = row->value_bytes,
        };
    }
    ports->commit(user, action->subject, records, action->rows_len);
    free(records);
}

static void verdict(const struct action *action, const struct devicemgr_ports *ports, void *user)
{
    size_t len = action->renames.len;
    struct devicemgr_rename *renames = len > 0 ? mem_alloc(len, sizeof *renames) : NULL;
    struct devicemgr_verdict verdict = {.code = action->code,
                                        .message = action->text,
                                        .resource = action->resource,
                                        .held_ms = action->held_ms,
                                        .options = action->options,
                                        .renames = renames,
                                        .renames_len = len};

    for (size_t i = 0; i < len; i++) {
        const struct rename *is = &action->renames.v[i];

        renames[i] = (struct devicemgr_rename){is->name, (const char *const *)is->to.v, is->to.len};
    }
    ports->verdict(user, action->subject, &verdict);
    free(renames);
}

static void steered(const struct action *action, const struct devicemgr_ports *ports, void *user)
{
    const struct devicemgr_steered steered = {action->code, action->changed, action->text};

    ports->steered(user, action->subject, &steered);
}

static void claim_done(const struct action *action, const struct devicemgr_ports *ports, void *user)
{
    const struct devicemgr_claim_done done = {.code = action->code,
                                              .message = action->text,
                                              .stops = action->stops,
                                              .response = action->response,
                                              .response_bytes = action->response_bytes};

    ports->claim_done(user, action->subject, &done);
}

static const struct devicemgr_about about_nothing;

static void carry_out(const struct action *a, const struct devicemgr_ports *ports, void *user)
{
    const char *const *ids = (const char *const *)a->ids.v;

    switch (a->kind) {
    case ACTION_NONE:
        break;
    case ACTION_ENDPOINT_OPEN:
        ports->endpoint_open(user, a->subject, a->resource, a->socket_name, a->uid);
        break;
    case ACTION_ENDPOINT_CLOSE:
        ports->endpoint_close(user, a->subject);
        break;
    case ACTION_REGISTER_DONE:
        ports->register_done(user, a->subject, a->code, a->text);
        break;
    case ACTION_ALLOCATE:
        ports->allocate(user, a->subject, a->call, ids, a->ids.len, a->timeout_ms);
        break;
    case ACTION_PREFER:
        ports->prefer(user, a->subject, a->call, ids, a->ids.len,
                      (const char *const *)a->must_include.v, a->must_include.len, a->size,
                      a->timeout_ms);
        break;
    case ACTION_PRESTART:
        ports->prestart(user, a->subject, a->call, ids, a->ids.len, a->timeout_ms);
        break;
    case ACTION_CALL_CANCEL:
        ports->call_cancel(user, a->call);
        break;
    case ACTION_COMMIT:
        commit(a, ports, user);
        break;
    case ACTION_CONTAINER_CHECK:
        ports->container_check(user, a->subject, a->text);
        break;
    case ACTION_RUNTIME_LIST:
        ports->runtime_list(user);
        break;
    case ACTION_STOP_CONTAINER:
        ports->stop_container(user, a->subject, a->text, a->timeout_ms);
        break;
    case ACTION_STOP_CANCEL:
        ports->stop_cancel(user, a->subject);
        break;
    case ACTION_STOP_SANDBOX:
        ports->stop_sandbox(user, a->subject, a->text);
        break;
    case ACTION_EVICT_POD:
        ports->evict_pod(user, a->subject, a->eviction);
        break;
    case ACTION_EVICT_CANCEL:
        ports->evict_cancel(user, a->subject);
        break;
    case ACTION_VERDICT:
        verdict(a, ports, user);
        break;
    case ACTION_PREFERRED:
        ports->preferred(user, a->subject, ids, a->ids.len);
        break;
    case ACTION_EVENT:
        ports->event(user, a->event);
        break;
    case ACTION_STEERED:
        steered(a, ports, user);
        break;
    case ACTION_DRIVER_REGISTERED:
        ports->driver_registered(user, a->subject, a->code, a->text);
        break;
    case ACTION_DRIVER_PREPARE:
        ports->driver_prepare(user, a->subject, a->call, a->batch, a->claim, a->timeout_ms);
        break;
    case ACTION_DRIVER_UNPREPARE:
        ports->driver_unprepare(user, a->subject, a->call, a->batch, a->claim, a->timeout_ms);
        break;
    case ACTION_DRIVER_SETTLE:
        if (ports->driver_settle)
            ports->driver_settle(user, a->subject, a->call, a->claim, a->asked, a->timeout_ms);
        else
            ports->driver_unprepare(user, a->subject, a->call, a->batch, a->claim, a->timeout_ms);
        break;
    case ACTION_CLAIM_LOOK:
        if (ports->claim_look)
            ports->claim_look(user, a->claim);
        break;
    case ACTION_CLAIM_DONE:
        claim_done(a, ports, user);
        break;
    case ACTION_LOG:
        ports->log(user, a->code, a->about ? a->about : &about_nothing, a->text);
        break;
    }
}

void actions_carry_out(struct action_queue *queue, const struct devicemgr_ports *ports, void *user)
{
    struct action *action;

    while ((action = take(queue))) {
        carry_out(action, ports, user);
        action_free(action);
    }
}
