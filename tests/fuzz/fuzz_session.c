/*
 * The relay's session between two scripted ends.
 *
 * Input: a byte of cuts for the second reading, then a program, one byte an operation with its
 * arguments behind it. Ends that keep to HTTP/2 (h2_peers.h) are driven by most of it and their
 * checks are on; OP_RAW feeds bytes as they are, and from there on only what holds for any bytes is
 * checked (session_run.h). The client's preface goes first, unless the first byte is 0xf0 or more:
 * then the input begins with the arguments of OP_RAW.
 */
#include "shim/relay/frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/h2_peers.h"

#define OPERATIONS_MAX 400

enum operation {
    OP_OPEN,
    OP_DATA,
    OP_TRAILERS,
    OP_ANSWER,
    OP_ANSWER_DATA,
    OP_ANSWER_END,
    OP_RESET,
    OP_WINDOW,
    OP_SETTINGS,
    OP_EXTRA,
    OP_GOAWAY,
    OP_READ,
    OP_CUT,
    OP_POLICY, /* for the calls to come */
    OP_DECIDE, /* for one that waits */
    OP_RAW,
    OP_DRAIN,
    OP_CLASS, /* for the calls to come */
    OPERATIONS,
};

#define NUMBER_MAX (120u << 11)
#define WINDOW_HUGE (1u << 30)

/* A number around which a byte buffer grows: its capacities are powers of two from 256 on, and a
 * message is five bytes longer with its head. */
static size_t growth(unsigned n)
{
    static const size_t less[] = {8, 5, 3, 0};

    return ((size_t)256 << (n >> 2 & 3)) - less[n & 3];
}

/* A byte: a small number as it is, some of the larger ones as a power, the first of which a small
 * one says as well. */
static size_t number(struct fuzz_input *in)
{
    uint8_t n = fuzz_u8(in);

    if (n >= 128 && n < 144)
        return growth(n - 128u);
    return n < 128 ? n : (size_t)(64 + (n & 7) * 8) << ((n >> 3 & 15) * 3 / 4);
}

/* A window: as above, but for the largest number, which is out of all proportion. */
static uint32_t window(struct fuzz_input *in)
{
    size_t n = number(in);

    return n < NUMBER_MAX ? (uint32_t)n : WINDOW_HUGE;
}

static enum session_end end_of(struct fuzz_input *in)
{
    return fuzz_u8(in) & 1 ? SESSION_RUNTIME : SESSION_CLIENT;
}

static struct run_decision decision_of(struct fuzz_input *in)
{
    static const enum run_verdict verdicts[] = {RUN_LATER, RUN_FORWARD, RUN_REFUSE, RUN_FORWARD};
    uint8_t choice = fuzz_u8(in);
    struct run_decision d = {.verdict = verdicts[choice & 3], .code = 1 + (choice >> 2) % 16};

    d.fragment_bytes = number(in);
    if (d.fragment_bytes > RUN_FRAGMENT_BYTES_MAX)
        d.fragment_bytes = RUN_FRAGMENT_BYTES_MAX;
    d.instead = (choice & 3) == 3;
    d.message_bytes = d.instead ? number(in) : 0;
    if (d.message_bytes > RUN_MESSAGE_BYTES_MAX)
        d.message_bytes = RUN_MESSAGE_BYTES_MAX;
    return d;
}

static void set_class(struct peers *p, struct fuzz_input *in)
{
    uint8_t choice = fuzz_u8(in);

    peers_set_class(p, choice & 1 ? PEER_LIST : PEER_OTHER,
                    (enum cri_method_class)((choice >> 1) % 3));
}

static void open_call(struct peers *p, struct fuzz_input *in)
{
    static const enum peer_kind kinds[] = {PEER_CREATE, PEER_LIST, PEER_OBSERVED, PEER_OTHER};
    uint8_t choice = fuzz_u8(in);
    uint8_t layout = fuzz_u8(in);

    peers_open(p, kinds[choice & 3], choice >> 2, number(in), layout);
}

static void send_window(struct peers *p, struct fuzz_input *in)
{
    enum session_end end = end_of(in);
    size_t stream = fuzz_u8(in) % (PEERS_STREAMS_MAX + 1);

    peers_window(p, end, stream, window(in));
}

static void send_settings(struct peers *p, struct fuzz_input *in)
{
    enum session_end end = end_of(in);
    uint8_t which = fuzz_u8(in);
    size_t table = number(in);

    peers_settings(p, end, which, (uint32_t)table, window(in));
}

static void decide(struct peers *p, struct fuzz_input *in)
{
    size_t call = fuzz_u8(in);
    struct run_decision decision = decision_of(in);

    if (decision.verdict != RUN_LATER)
        run_decide(peers_run(p), call, &decision);
}

static void send_raw(struct peers *p, struct fuzz_input *in)
{
    enum session_end end = end_of(in);
    struct fuzz_input bytes = fuzz_bytes(in, fuzz_u16(in));

    peers_send_raw(p, end, bytes.bytes, bytes.len);
}

/* A DATA operation's arguments: stream, flags, number. */
static void send_data(struct peers *p, struct fuzz_input *in, bool answer)
{
    uint8_t stream = fuzz_u8(in);
    uint8_t choice = fuzz_u8(in);
    size_t bytes = number(in);

    if (answer)
        peers_answer_data(p, stream, bytes, choice & 1, choice & ~7u);
    else
        peers_send_data(p, stream, bytes, choice & 1, choice & ~7u);
}

static void operate(struct peers *p, struct fuzz_input *in)
{
    enum operation operation = (enum operation)(fuzz_u8(in) % OPERATIONS);
    struct run_decision decision;
    enum session_end end;
    uint8_t stream;

    switch (operation) {
    case OP_OPEN:
        open_call(p, in);
        break;
    case OP_DATA:
        send_data(p, in, false);
        break;
    case OP_TRAILERS:
        stream = fuzz_u8(in);
        peers_send_trailers(p, stream, fuzz_u8(in));
        break;
    case OP_ANSWER:
        stream = fuzz_u8(in);
        peers_answer(p, stream, fuzz_u8(in));
        break;
    case OP_ANSWER_DATA:
        send_data(p, in, true);
        break;
    case OP_ANSWER_END:
        stream = fuzz_u8(in);
        peers_answer_end(p, stream, fuzz_u8(in));
        break;
    case OP_RESET:
        end = end_of(in);
        stream = fuzz_u8(in);
        peers_reset(p, end, stream, fuzz_u8(in) % 14);
        break;
    case OP_WINDOW:
        send_window(p, in);
        break;
    case OP_SETTINGS:
        send_settings(p, in);
        break;
    case OP_EXTRA:
        end = end_of(in);
        stream = fuzz_u8(in);
        peers_extra(p, end, stream, fuzz_u8(in));
        break;
    case OP_GOAWAY:
        peers_goaway(p);
        break;
    case OP_READ:
        end = end_of(in);
        peers_read(p, end, 1 + (size_t)fuzz_u8(in));
        break;
    case OP_CUT:
        end = end_of(in);
        peers_cut(p, end, number(in));
        break;
    case OP_POLICY:
        decision = decision_of(in);
        peers_set_decision(p, &decision);
        break;
    case OP_DECIDE:
        decide(p, in);
        break;
    case OP_DRAIN:
        peers_drain(p);
        break;
    case OP_CLASS:
        set_class(p, in);
        break;
    case OP_RAW:
    case OPERATIONS:
        send_raw(p, in);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    uint8_t choice = fuzz_u8(&in);
    struct peers *p = peers_new();

    if (choice < 0xf0)
        run_feed(peers_run(p), SESSION_CLIENT, (const uint8_t *)FRAME_PREFACE, FRAME_PREFACE_BYTES);
    else
        send_raw(p, &in);
    for (int i = 0; i < OPERATIONS_MAX && in.len > 0 && peers_run(p)->error == 0; i++)
        operate(p, &in);
    peers_settle(p);
    run_finish(peers_run(p), choice);
    peers_free(p);
    return 0;
}
