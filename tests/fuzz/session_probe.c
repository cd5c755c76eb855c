#include "tests/fuzz/session_probe.h"

#include "cri-proto/methods.h"
#include "tests/fuzz/fuzz.h"

static enum cri_method_class classes[CRI_METHODS]; /* of the session that reads */
static bool intercepted;

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

#include "shim/relay/header_block.h"

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
    for (int method = 0; method < CRI_METHODS; method++)
        classes[method] = cri_method_class(method);
}
