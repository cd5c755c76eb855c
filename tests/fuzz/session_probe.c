#include "tests/fuzz/session_probe.h"

#include "cri-proto/methods.h"
#include "tests/fuzz/fuzz.h"

static enum cri_method_class classes[CRI_METHODS]; /* of the session that reads */
static bool intercepted;
/* One feed of so many is looked at for what passes, and with no more calls under way: states are
 * long. */
#define PASSING_EVERY 8
#define PASSING_CALLS_MAX 3
static unsigned feeds;

/* Maxima that a short input can meet. */
#include "shim/relay/limits.h"
#undef RELAY_MESSAGE_BYTES_MAX
#define RELAY_MESSAGE_BYTES_MAX SESSION_PROBE_MESSAGE_BYTES_MAX
#undef RELAY_HELD_BYTES_MAX
#define RELAY_HELD_BYTES_MAX 200000
#undef RELAY_OBSERVED_BYTES_MAX
#define RELAY_OBSERVED_BYTES_MAX 150000
#undef RELAY_INFLATED_BYTES_MAX
#define RELAY_INFLATED_BYTES_MAX (2 * ((size_t)RELAY_MESSAGE_BYTES_MAX + 1))
#undef RELAY_RESPONSE_BYTES_MAX
#define RELAY_RESPONSE_BYTES_MAX 3000

#include "shim/relay/header_listener.h"

/* What the session looks up, it looks up by these fields. */
static const struct header_fields *watch_fields(const struct header_listener *l)
{
    const struct header_fields *fields = header_listener_fields(l);

    intercepted = intercepted || classes[fields->method] == CRI_CLASS_INTERCEPTED;
    return fields;
}

/* The session itself, built in here, so that its structures are known, its look-ups are seen and
 * its maxima are these. */
#define header_listener_fields watch_fields
#include "shim/relay/session.c"
#include "shim/relay/session/blocks.c"
#include "shim/relay/session/call_message.c"
#include "shim/relay/session/dispatch.c"
#include "shim/relay/session/ending.c"
#include "shim/relay/session/freeze.c"
#include "shim/relay/session/from_client.c"
#include "shim/relay/session/from_runtime.c"
#include "shim/relay/session/inside.c"
#include "shim/relay/session/late_acks.c"
#include "shim/relay/session/settings_frames.c"
#include "shim/relay/session/settings_queue.c"
#include "shim/relay/session/stream.c"
#include "shim/relay/session/windows.c"
#include "shim/relay/session/withheld.c"

void session_probe_set_class(struct session *s, enum cri_method method, enum cri_method_class class)
{
    classes[method] = class;
    session_set_class(s, method, class);
}

void session_probe_check(const struct session *s)
{
    const struct stream *st;
    size_t queued = 0;

    FUZZ_CHECK(flow_check(&s->windows.flow), "the connection's ledger");
    for (st = s->streams; st; st = st->hh.next) {
        FUZZ_CHECK(flow_check(&st->flow), "the ledger of stream %u", st->id);
        queued += stream_is_queued(st);
        FUZZ_CHECK(stream_waits(st) != 0, "stream %u in %s waits for nothing", st->id,
                   stream_phase_name(st->phase));
    }
    FUZZ_CHECK(queued == s->queued, "%zu queued, not %zu", queued, s->queued);
}

static void twin_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    (void)user, (void)pieces, (void)n;
    FUZZ_CHECK(false, "what passed is written again, to end %d", to);
}

static void twin_ended(void *owner, struct session_call *call)
{
    (void)owner, (void)call;
}

/* Never begun. */
static const struct session_owner_ops TWIN_OWNER = {.ended = twin_ended};

static struct buffer state_of(struct session *s)
{
    struct buffer state = {0};

    if (session_freeze(s, &state) < 0)
        buffer_fini(&state);
    return state;
}

static void check_passed(struct session *s, const struct buffer *before,
                         const struct session_passed *passed, enum session_end from)
{
    static const struct session_ops ops = {.write = twin_write};
    struct buffer after = state_of(s), twin_after;
    struct session *twin;

    FUZZ_CHECK(session_thaw(buffer_data(before), buffer_len(before), &ops, NULL,
                            (struct session_owner){&TWIN_OWNER, NULL}, &twin) == 0,
               "a state that cannot be read");
    FUZZ_CHECK(session_pass(twin, from, passed) == 0, "what passed cannot have passed");
    twin_after = state_of(twin);
    FUZZ_CHECK(buffer_len(&after) == buffer_len(&twin_after) && buffer_len(&after) > 0 &&
                   memcmp(buffer_data(&after), buffer_data(&twin_after), buffer_len(&after)) == 0,
               "another state after what passed");
    session_free(twin);
    buffer_fini(&after);
    buffer_fini(&twin_after);
}

int session_probe_feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len)
{
    struct buffer before = {0};
    struct session_passed passed;
    int r;

    if (feeds++ % PASSING_EVERY == 0 && session_calls(s) <= PASSING_CALLS_MAX)
        before = state_of(s);
    r = session_feed(s, from, bytes, len);
    if (buffer_len(&before) > 0 && session_passed(s, from, &passed))
        check_passed(s, &before, &passed, from);
    buffer_fini(&before);
    return r;
}

uint32_t session_probe_stream_id(const struct session_call *call)
{
    return ((const struct stream *)call)->id;
}

bool session_probe_waits(const struct session_call *call)
{
    return ((const struct stream *)call)->kind == STREAM_INTERCEPTED;
}

bool session_probe_intercepted(void)
{
    return intercepted;
}

void session_probe_reset(void)
{
    intercepted = false;
    feeds = 0;
    for (int method = 0; method < CRI_METHODS; method++)
        classes[method] = cri_method_class(method);
}
