#include "shim/bridge/enrolment.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/pause.h"

#define FIRST_THREE (ENROLMENT_KUBELET | ENROLMENT_LIST | ENROLMENT_SOCKET)

static const char *const STATE_NAMES[] = {
    [ENROLMENT_WAITING] = "waiting",         [ENROLMENT_ASKING] = "registering",
    [ENROLMENT_OPENED] = "registering",      [ENROLMENT_FORFEIT] = "registering in vain",
    [ENROLMENT_ACCEPTED] = "accepted",       [ENROLMENT_SERVING] = "serving",
    [ENROLMENT_BACKING_OFF] = "backing off",
};

/* ---- what it waits for ---- */

unsigned enrolment_waits(const struct enrolment *enrolment)
{
    switch (enrolment->state) {
    case ENROLMENT_WAITING:
        return enrolment->lacks;
    case ENROLMENT_ASKING:
        return ENROLMENT_ANSWER | ENROLMENT_STREAM;
    case ENROLMENT_OPENED:
    case ENROLMENT_FORFEIT:
        return ENROLMENT_ANSWER;
    case ENROLMENT_ACCEPTED:
        return ENROLMENT_STREAM | ENROLMENT_TIME;
    case ENROLMENT_SERVING:
        return ENROLMENT_END;
    case ENROLMENT_BACKING_OFF:
        return ENROLMENT_TIME;
    }
    return 0;
}

const char *enrolment_waits_text(unsigned waits, char text[ENROLMENT_WAITS_TEXT_BYTES_MAX])
{
    static const char *const NAMES[] = {
        "a kubelet", "a list", "the socket", "the answer", "the stream", "the stream's end", "time",
    };
    int len = 0;

    snprintf(text, ENROLMENT_WAITS_TEXT_BYTES_MAX, "nothing");
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (waits & 1u << i)
            len += snprintf(text + len, ENROLMENT_WAITS_TEXT_BYTES_MAX - (size_t)len, "%s%s",
                            len ? ", " : "", NAMES[i]);
    }
    return text;
}

static void enrolment_set_state(struct enrolment *enrolment, enum enrolment_state state)
{
    static const unsigned from[] = {
        [ENROLMENT_WAITING] = ~0u, /* a kubelet goes at any time */
        [ENROLMENT_ASKING] = 1u << ENROLMENT_WAITING,
        [ENROLMENT_OPENED] = 1u << ENROLMENT_ASKING | 1u << ENROLMENT_FORFEIT,
        [ENROLMENT_FORFEIT] = 1u << ENROLMENT_OPENED,
        [ENROLMENT_ACCEPTED] = 1u << ENROLMENT_ASKING,
        [ENROLMENT_SERVING] = 1u << ENROLMENT_OPENED | 1u << ENROLMENT_ACCEPTED |
                              1u << ENROLMENT_WAITING | 1u << ENROLMENT_BACKING_OFF,
        [ENROLMENT_BACKING_OFF] = 1u << ENROLMENT_WAITING | 1u << ENROLMENT_ASKING |
                                  1u << ENROLMENT_FORFEIT | 1u << ENROLMENT_ACCEPTED |
                                  1u << ENROLMENT_SERVING,
    };
    char waits[ENROLMENT_WAITS_TEXT_BYTES_MAX];

    assert(from[state] & 1u << enrolment->state);
    if (enrolment->state == state)
        return;
    enrolment->state = state;
    log_debug("%s: %s; waits for %s", enrolment->resource, STATE_NAMES[state],
              enrolment_waits_text(enrolment_waits(enrolment), waits));
}

/* ---- Register ---- */

static void on_timer(uv_timer_t *timer);

/* What a Register has left at this kubelet ends now, so that it has the wait to work that off. */
static void back_off(struct enrolment *enrolment)
{
    uint64_t delay_ms = enrolment->again_ms ? enrolment->again_ms : REGISTER_AGAIN_MS_MIN;
    uint64_t leave_ms = enrolment->ops->disconnect(enrolment->user);

    enrolment->again_ms = pause_longer(delay_ms, REGISTER_AGAIN_MS_MIN, REGISTER_AGAIN_MS_MAX);
    enrolment_set_state(enrolment, ENROLMENT_BACKING_OFF);
    uv_timer_start(&enrolment->timer, on_timer, delay_ms > leave_ms ? delay_ms : leave_ms, 0);
}

static void serve(struct enrolment *enrolment)
{
    uv_timer_stop(&enrolment->timer);
    enrolment->refused = false;
    enrolment_set_state(enrolment, ENROLMENT_SERVING);
    log_write_about(LOG_LEVEL_INFO,
                    &(struct log_about){.kind = LOG_KIND_SHOWN, .resource = enrolment->resource},
                    "%s: shown to the kubelet", enrolment->resource);
}

static void on_register_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

/* UNAVAILABLE: it died, which the connection's owner says; and silence is no answer. */
static void note_answer(struct enrolment *enrolment, const struct rpc_status *status)
{
    if (status->code == RPC_UNAVAILABLE)
        return;
    if (status->code != RPC_OK && !enrolment->told)
        log_warning("%s: the kubelet refuses it: %s", enrolment->resource, status->message);
    enrolment->told = status->code != RPC_OK;
    if (status->code != RPC_DEADLINE_EXCEEDED)
        enrolment->refused = status->code != RPC_OK;
}

static void on_register_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct enrolment *enrolment = user;

    (void)call;
    enrolment->register_call = NULL;
    note_answer(enrolment, status);
    if (enrolment->state == ENROLMENT_OPENED) {
        serve(enrolment);
    } else if (enrolment->state == ENROLMENT_ASKING && status->code == RPC_OK) {
        enrolment_set_state(enrolment, ENROLMENT_ACCEPTED);
        uv_timer_start(&enrolment->timer, on_timer, STREAM_TIMEOUT_MS, 0);
    } else {
        back_off(enrolment);
    }
    enrolment->ops->changed(enrolment->user);
}

static void ask(struct enrolment *enrolment)
{
    static const struct rpc_call_ops ops = {on_register_message, on_register_done};

    enrolment->asked_pid = registration_pid(enrolment->registration);
    enrolment->register_call = registration_call(enrolment->registration, enrolment->resource,
                                                 enrolment->endpoint, &ops, enrolment);
    if (enrolment->register_call)
        enrolment_set_state(enrolment, ENROLMENT_ASKING);
    else
        back_off(enrolment);
}

/* Registers if nothing lacks. */
static void try_register(struct enrolment *enrolment)
{
    uint64_t leave_ms;

    if (enrolment->state != ENROLMENT_WAITING || enrolment->lacks != 0)
        return;
    leave_ms = enrolment->ops->disconnect(enrolment->user);
    if (leave_ms > 0) {
        enrolment_set_state(enrolment, ENROLMENT_BACKING_OFF);
        uv_timer_start(&enrolment->timer, on_timer, leave_ms, 0);
        return;
    }
    ask(enrolment);
}

static void on_timer(uv_timer_t *timer)
{
    struct enrolment *enrolment = timer->data;

    if (enrolment->state == ENROLMENT_ACCEPTED) {
        log_warning("%s: the kubelet does not ask for its list; registering again",
                    enrolment->resource);
        back_off(enrolment);
        return;
    }
    enrolment_set_state(enrolment, ENROLMENT_WAITING);
    try_register(enrolment);
}

/* ---- what the owner tells ---- */

void enrolment_set_list(struct enrolment *enrolment)
{
    enrolment->lacks &= ~(unsigned)ENROLMENT_LIST;
    try_register(enrolment);
}

void enrolment_set_socket(struct enrolment *enrolment, bool there)
{
    if (there)
        enrolment->lacks &= ~(unsigned)ENROLMENT_SOCKET;
    else
        enrolment->lacks |= ENROLMENT_SOCKET;
    try_register(enrolment);
}

/* The same process as before may be at work on the last Register yet, or on a stream's end. */
void enrolment_kubelet_came(struct enrolment *enrolment, bool streams)
{
    enrolment->lacks &= ~(unsigned)ENROLMENT_KUBELET;
    if (streams)
        serve(enrolment);
    else if (enrolment->asked_pid == registration_pid(enrolment->registration))
        back_off(enrolment);
    else
        try_register(enrolment);
}

void enrolment_kubelet_went(struct enrolment *enrolment)
{
    rpc_call_cancel(enrolment->register_call);
    enrolment->register_call = NULL;
    uv_timer_stop(&enrolment->timer);
    enrolment->again_ms = 0;
    enrolment->refused = false;
    enrolment->lacks |= ENROLMENT_KUBELET;
    enrolment_set_state(enrolment, ENROLMENT_WAITING);
}

void enrolment_stream_opened(struct enrolment *enrolment)
{
    switch (enrolment->state) {
    case ENROLMENT_ASKING:
    case ENROLMENT_FORFEIT:
        enrolment_set_state(enrolment, ENROLMENT_OPENED);
        break;
    case ENROLMENT_WAITING:
    case ENROLMENT_ACCEPTED:
    case ENROLMENT_BACKING_OFF:
        serve(enrolment);
        break;
    case ENROLMENT_OPENED: /* a newer one */
    case ENROLMENT_SERVING:
        break;
    }
}

void enrolment_stream_ended(struct enrolment *enrolment, uint64_t lived_ms)
{
    if (lived_ms >= STREAM_SETTLED_MS)
        enrolment->again_ms = 0;
    if (enrolment->state == ENROLMENT_OPENED)
        enrolment_set_state(enrolment, ENROLMENT_FORFEIT);
    else if (enrolment->state == ENROLMENT_SERVING)
        back_off(enrolment);
}

void enrolment_stream_left(struct enrolment *enrolment)
{
    if (enrolment->state != ENROLMENT_SERVING)
        return;
    enrolment_set_state(enrolment, ENROLMENT_WAITING);
    if (enrolment->lacks == 0)
        ask(enrolment);
}

bool enrolment_refused(const struct enrolment *enrolment)
{
    return enrolment->refused;
}

/* ---- life ---- */

void enrolment_init(struct enrolment *enrolment, uv_loop_t *loop, struct registration *registration,
                    const char *resource, const char *endpoint, const struct enrolment_ops *ops,
                    void *user)
{
    *enrolment = (struct enrolment){.ops = ops,
                                    .user = user,
                                    .registration = registration,
                                    .resource = resource,
                                    .endpoint = endpoint,
                                    .lacks = FIRST_THREE,
                                    .asked_pid = -1};
    if (registration_connected(registration))
        enrolment->lacks &= ~(unsigned)ENROLMENT_KUBELET;
    uv_timer_init(loop, &enrolment->timer);
    enrolment->timer.data = enrolment;
}

void enrolment_fini(struct enrolment *enrolment, uv_close_cb closed)
{
    rpc_call_cancel(enrolment->register_call);
    enrolment->register_call = NULL;
    enrolment->timer.data = enrolment->user;
    uv_close((uv_handle_t *)&enrolment->timer, closed);
}
