/* How a journal is taken over: what it says, with the last calls of who was killed. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/point.h"
#include "shim/relay/frozen.h"
#include "shim/relay/journal_inside.h"
#include "shim/relay/limits.h"

bool journal_has_sockets(const uint64_t cookies[2], int sockets[2])
{
    int first = sockets[0];
    uint64_t own[2];

    if (journal_cookies(sockets, own) < 0)
        return false;
    if (own[0] == cookies[1]) {
        sockets[0] = sockets[1];
        sockets[1] = first;
    }
    return journal_cookies(sockets, own) == 0 && memcmp(own, cookies, sizeof own) == 0;
}

/* 0 or a negative code. Counts who takes it over. */
static int take(struct journal *j, int sockets[2])
{
    struct head *h = j->head;
    bool moved = h->format == frozen_format(JOURNAL_MOVED_FORMAT);

    if ((!moved && h->format != frozen_format(JOURNAL_FORMAT)) || h->takers >= JOURNAL_TAKERS_MAX)
        return -EPROTO;
    h->takers++;
    POINT("taken over");
    if (moved)
        return journal_move_in(j, sockets);
    return !h->over && journal_has_sockets(h->sockets, sockets) ? 0 : -EPROTO;
}

/* The event at `at`, NULL at the end. 0 or -EPROTO: it cannot be one. */
static int event_or_end(const struct journal *j, uint32_t at, const struct event_head **out)
{
    const struct event_head *e = event_at(j, at);
    uint32_t end = end_of(j);

    *out = NULL;
    if (at == end)
        return 0;
    if (end > EVENTS_BYTES_MAX || end - at < sizeof *e || end - at < span_of(e) ||
        e->kind == JOURNAL_NOTHING || e->kind > JOURNAL_RUNTIME_PASSED)
        return -EPROTO;
    *out = e;
    return 0;
}

static int count_events(struct journal *j)
{
    const struct state_head *state = &j->head->states[state_of(j)];
    const struct event_head *e;
    int r;

    memcpy(j->had, state->had, sizeof j->had);
    for (uint32_t at = 0; (r = event_or_end(j, at, &e)) == 0 && e; at += (uint32_t)span_of(e)) {
        if (e->kind == JOURNAL_CLIENT || e->kind == JOURNAL_CLIENT_PASSED)
            j->had[SESSION_CLIENT] += e->len;
        else if (e->kind == JOURNAL_RUNTIME || e->kind == JOURNAL_RUNTIME_PASSED)
            j->had[SESSION_RUNTIME] += e->len;
    }
    return r;
}

/* The last read, if it is known of, is an event like those before it. */
static int settle_known_read(struct journal *j)
{
    if (read_len(j) > RELAY_READ_BYTES || span(read_len(j)) > EVENTS_BYTES_MAX - end_of(j))
        return -EPROTO;
    j->had[read_from(j)] += read_len(j);
    journal_add_read(j);
    return 0;
}

/* The last read of who was killed: of one end, or none. */
static int settle_read(struct journal *j, const int sockets[2])
{
    ssize_t n[2];

    for (int i = 0; i < 2; i++) {
        n[i] = read_count_resume(&j->counts[i], sockets[i], j->had[i], RELAY_READ_BYTES);
        if (n[i] < 0)
            return -EPROTO;
    }
    if ((n[0] > 0 && n[1] > 0) || end_of(j) + span(RELAY_READ_BYTES) > EVENTS_BYTES_MAX)
        return -EPROTO;
    for (int i = 0; i < 2; i++) {
        if (n[i] > 0)
            journal_add_bytes(j, (enum session_end)i, (size_t)n[i]);
    }
    journal_add_read(j);
    return 0;
}

static int settle_writes(struct head *h)
{
    for (int i = 0; i < 2; i++) {
        ssize_t n = exact_unsettled(&h->writes[i], (uint32_t)h->taken[i]);

        if (n < 0)
            return -EPROTO;
        if (n > 0)
            journal_commit(&h->taken[i], taken_word((h->taken[i] >> 32) + (uint64_t)n,
                                                    exact_serial(&h->writes[i])));
    }
    return 0;
}

int journal_open(int memory, int sockets[2], struct journal **out)
{
    struct stat st;
    struct journal *j;
    int r;

    if (fstat(memory, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < HEAD_BYTES ||
        (st.st_size < (off_t)MEMORY_BYTES && ftruncate(memory, (off_t)MEMORY_BYTES) < 0)) {
        close(memory);
        return -EPROTO;
    }
    j = journal_map(memory);
    if (!j)
        return -ENOMEM;
    r = take(j, sockets);
    if (r == 0)
        r = count_events(j);
    if (r == 0)
        r = settle_known_read(j);
    if (r == 0)
        r = settle_read(j, sockets);
    if (r == 0)
        r = settle_writes(j->head);
    if (r == 0)
        *out = j;
    else
        journal_free(j);
    return r;
}

void journal_settled(struct journal *j)
{
    POINT("gone through");
    j->head->takers = 0;
}

static int copy_unsent(struct buffer *out, const uint8_t *bytes, uint64_t len, uint64_t gone)
{
    gone = gone < len ? gone : len;
    return buffer_put(out, bytes + gone, len - gone);
}

int journal_start(struct journal *j, struct journal_start *out)
{
    unsigned state = state_of(j);
    const struct state_head *h = &j->head->states[state];
    const uint8_t *at = state_at(j, state);
    int r = 0;

    *out = (struct journal_start){.session = h->session_len > 0 ? at : NULL,
                                  .session_len = h->session_len};
    if (h->session_len > STATE_BYTES_MAX || h->unsent_len[0] > STATE_BYTES_MAX ||
        h->unsent_len[1] > STATE_BYTES_MAX ||
        h->session_len + h->unsent_len[0] + h->unsent_len[1] > STATE_BYTES_MAX)
        return -EPROTO;
    at += h->session_len;
    for (int i = 0; i < 2 && r == 0; i++) {
        out->put_out[i] = h->put_out[i];
        out->taken[i] = taken_by(j, (enum session_end)i);
        if (h->put_out[i] - h->taken[i] != h->unsent_len[i])
            r = -EPROTO;
        else
            r = copy_unsent(&out->unsent[i], at, h->unsent_len[i], out->taken[i] - h->taken[i]);
        at += h->unsent_len[i];
    }
    for (int i = 0; i < 2 && r < 0; i++)
        buffer_fini(&out->unsent[i]);
    return r;
}

static int read_decision(const uint8_t *bytes, size_t len, struct session_decision *out)
{
    struct decision_head h;

    if (len < sizeof h)
        return -EPROTO;
    memcpy(&h, bytes, sizeof h);
    len -= sizeof h;
    if (h.fragment_bytes > len || h.message_bytes != len - h.fragment_bytes)
        return -EPROTO;
    *out = (struct session_decision){.what = (enum session_decides)h.what,
                                     .stream = h.stream,
                                     .code = (int)h.code,
                                     .method = (enum cri_method)h.method,
                                     .class = (enum cri_method_class)h.class,
                                     .fragment = bytes + sizeof h,
                                     .fragment_bytes = h.fragment_bytes,
                                     .message = bytes + sizeof h + h.fragment_bytes,
                                     .message_bytes = h.message_bytes};
    return 0;
}

/* The bytes are no more, so whom they were for must have had them. */
static int read_passed(const struct journal *j, struct journal_event *out)
{
    enum session_end to = out->kind == JOURNAL_CLIENT_PASSED ? SESSION_RUNTIME : SESSION_CLIENT;

    out->bytes = NULL;
    return out->done && out->put_out[to] <= taken_by(j, to) ? 0 : -EPROTO;
}

int journal_next(struct journal *j, bool look, struct journal_event *out)
{
    const struct event_head *e;
    int r = event_or_end(j, j->at, &e);

    *out = (struct journal_event){.kind = JOURNAL_NOTHING};
    if (r < 0 || !e)
        return r;
    *out = (struct journal_event){.kind = (enum journal_kind)e->kind,
                                  .bytes = (const uint8_t *)(e + 1),
                                  .len = e->len,
                                  .passed = e->passed,
                                  .done = e->done,
                                  .put_out = {e->put_out[0], e->put_out[1]},
                                  .told = e->told};
    if (!look)
        j->at += (uint32_t)span_of(e);
    if (is_passed(e->kind))
        return read_passed(j, out);
    return e->kind == JOURNAL_DECISION ? read_decision(out->bytes, out->len, &out->decision) : 0;
}
