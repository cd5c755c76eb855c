#include "shim/relay/replay.h"

#include <errno.h>
#include <stdbool.h>

struct replay {
    struct journal *journal;
    struct session *session;
    int error;
};

static int decide(struct replay *r, const struct session_decision *d)
{
    const char *text = d->message;

    if (d->what == SESSION_REFUSES && (d->message_bytes == 0 || text[d->message_bytes - 1]))
        return -EPROTO;
    return session_apply(r->session, d);
}

/* The owner before was told the same, and may have decided from inside of that. */
static void on_told(struct replay *r)
{
    struct journal_event e;

    while (r->error == 0) {
        r->error = journal_next(r->journal, true, &e);
        if (r->error < 0 || e.kind != JOURNAL_DECISION || e.told == 0 ||
            e.told != session_told(r->session))
            return;
        r->error = journal_next(r->journal, false, &e);
        if (r->error == 0)
            r->error = decide(r, &e.decision);
    }
}

static void on_begun(void *owner, struct session *session, pid_t client)
{
    (void)session, (void)client;
    on_told(owner);
}

static void on_gone(void *owner, struct session *session)
{
    (void)owner, (void)session;
}

static void on_request(void *owner, struct session *session, struct session_call *call)
{
    (void)session, (void)call;
    on_told(owner);
}

static void on_answered(void *owner, struct session_call *call, int status, const uint8_t *message,
                        size_t message_bytes)
{
    (void)call, (void)status, (void)message, (void)message_bytes;
    on_told(owner);
}

static void on_ended(void *owner, struct session_call *call)
{
    (void)call;
    on_told(owner);
}

static const struct session_owner_ops OWNER_OPS = {.begun = on_begun,
                                                   .gone = on_gone,
                                                   .request = on_request,
                                                   .answered = on_answered,
                                                   .ended = on_ended,
                                                   .regained = on_request};
/* Whoever frees a session that was not begun again. */
static struct replay nobody = {.error = -EPROTO};

/* Both ends have had it. */
static int pass(struct replay *r, const struct journal_event *e, uint64_t put_out[2])
{
    enum session_end from = e->kind == JOURNAL_CLIENT_PASSED ? SESSION_CLIENT : SESSION_RUNTIME;
    enum session_end to = from == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT;

    if (e->put_out[to] < put_out[to])
        return -EPROTO;
    put_out[to] = e->put_out[to];
    return session_pass(r->session, from, &e->passed);
}

static int repeat(struct replay *r, const struct journal_event *e, uint64_t put_out[2])
{
    switch (e->kind) {
    case JOURNAL_CLIENT:
        return session_feed(r->session, SESSION_CLIENT, e->bytes, e->len);
    case JOURNAL_RUNTIME:
        return session_feed(r->session, SESSION_RUNTIME, e->bytes, e->len);
    case JOURNAL_BEGIN:
        session_begin(r->session, 0);
        return 0;
    case JOURNAL_DECISION: /* one from inside of a callback belongs to the event before it */
        return e->told == 0 ? decide(r, &e->decision) : -EPROTO;
    case JOURNAL_CLIENT_PASSED:
    case JOURNAL_RUNTIME_PASSED:
        return pass(r, e, put_out);
    case JOURNAL_NOTHING:
        break;
    }
    return -EPROTO;
}

static int repeat_all(struct replay *r, uint64_t put_out[2])
{
    struct journal_event e;

    for (;;) {
        int error = journal_next(r->journal, false, &e);

        if (error < 0 || e.kind == JOURNAL_NOTHING)
            return error;
        error = repeat(r, &e, put_out);
        if (error < 0 || r->error < 0)
            return error < 0 ? error : r->error;
        if (session_error(r->session) ||
            (e.done && (e.put_out[0] != put_out[0] || e.put_out[1] != put_out[1])))
            return -EPROTO;
    }
}

int replay(struct journal *j, struct session *session, uint64_t put_out[2])
{
    struct replay r = {.journal = j, .session = session};
    int error;

    session_set_owner(session, (struct session_owner){&OWNER_OPS, &r});
    error = repeat_all(&r, put_out);
    session_set_owner(session, (struct session_owner){&OWNER_OPS, &nobody});
    return error;
}
