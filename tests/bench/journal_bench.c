/*
 * What a journal takes of a relayed connection: 64 calls come in one write and go on to the
 * runtime, and their answers come back, all in one thread and without a loop. Prints the
 * microseconds of the relay's part:
 *
 *   without a journal    by recv(2) and send(2)
 *   with the same calls  sendmmsg(2) in the place of send(2), as for a journal, and nothing is
 *                        kept: no journal can take less
 *   with a journal       as it is
 *   bytes kept           as if each read had been looked at: its bytes stay, and a state is due
 *                        each 32 KiB
 *
 *     journal_bench [ROUNDS]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shim/exact_io.h"
#include "shim/relay/frame.h"
#include "shim/relay/journal.h"
#include "shim/relay/limits.h"
#include "shim/relay/session.h"

#define CALLS 64
#define ROUNDS 4000
#define BATCH 20 /* exchanges that are timed together */

enum way { PLAIN, SAME_CALLS, JOURNAL, BYTES_KEPT, WAYS };

static const char *const NAMES[WAYS] = {"without a journal", "with the same calls",
                                        "with a journal", "bytes kept"};

struct bench {
    enum way way;
    struct session *session;
    struct journal *journal;
    struct exact_io *writes; /* of both ends */
    int pairs[2][2];         /* ours, the peer's */
    uint64_t put_out[2];
    uint32_t stream;
};

static void must(bool done)
{
    if (!done) {
        fprintf(stderr, "journal_bench: %s\n", strerror(errno));
        exit(1);
    }
}

/* ---- the session's surroundings ---- */

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct bench *b = user;
    int fd = b->pairs[to][0];
    struct exact_io *io = &b->writes[to];
    ssize_t r;

    must(n == 1);
    if (b->journal)
        r = journal_write(b->journal, to, fd, pieces, n);
    else if (b->way == SAME_CALLS)
        r = exact_write_pieces(io, exact_serial(io), fd, pieces, n);
    else
        r = send(fd, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    must(r == (ssize_t)pieces->iov_len);
    b->put_out[to] += pieces->iov_len;
}

static void on_begun(void *owner, struct session *s, pid_t client)
{
    (void)owner, (void)s, (void)client;
}

static void on_gone(void *owner, struct session *s)
{
    (void)owner, (void)s;
}

static const struct session_ops OPS = {.write = on_write};
static const struct session_owner_ops OWNER = {.begun = on_begun, .gone = on_gone};

static void bench_init(struct bench *b, enum way way)
{
    *b = (struct bench){.way = way, .stream = 1};
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME; i++)
        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b->pairs[i]) == 0);
    b->writes = mmap(NULL, 2 * sizeof *b->writes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    must(b->writes != MAP_FAILED);
    if (way >= JOURNAL)
        b->journal = journal_new((int[]){b->pairs[0][0], b->pairs[1][0]});
    b->session = session_new(&OPS, b, (struct session_owner){&OWNER, NULL});
    must(b->session && (way < JOURNAL || b->journal));
    session_begin(b->session, 0);
}

static void bench_fini(struct bench *b)
{
    session_free(b->session);
    journal_free(b->journal);
    munmap(b->writes, 2 * sizeof *b->writes);
    for (int i = 0; i < 4; i++)
        close(b->pairs[i / 2][i % 2]);
}

/* ---- what is relayed ---- */

static void put(struct buffer *out, const void *bytes, size_t len)
{
    must(buffer_put(out, bytes, len) == 0);
}

static void put_frame(struct buffer *out, enum frame_type type, int flags, uint32_t stream,
                      const void *bytes, size_t len)
{
    const uint8_t head[FRAME_HEAD_BYTES] = {0,
                                            (uint8_t)(len >> 8),
                                            (uint8_t)len,
                                            (uint8_t)type,
                                            (uint8_t)flags,
                                            (uint8_t)(stream >> 24),
                                            (uint8_t)(stream >> 16),
                                            (uint8_t)(stream >> 8),
                                            (uint8_t)stream};

    put(out, head, sizeof head);
    if (len > 0)
        put(out, bytes, len);
}

/* Literals that are not indexed, of which `path` is a method's (RFC 7541 §6.2.2). */
static void put_request(struct buffer *out, uint32_t stream)
{
    static const char path[] = "/runtime.v1.RuntimeService/Status";
    static const uint8_t message[5];
    uint8_t block[64] = {0x83, 0x86, 0x04, sizeof path - 1};

    memcpy(block + 4, path, sizeof path - 1);
    put_frame(out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, stream, block, 4 + sizeof path - 1);
    put_frame(out, FRAME_DATA, FRAME_FLAG_END_STREAM, stream, message, sizeof message);
}

static void put_answer(struct buffer *out, uint32_t stream)
{
    static const uint8_t message[5], head[] = {0x88};
    static const uint8_t trailers[] = "\0\013grpc-status\0010";

    put_frame(out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS, stream, head, sizeof head);
    put_frame(out, FRAME_DATA, 0, stream, message, sizeof message);
    put_frame(out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS | FRAME_FLAG_END_STREAM, stream, trailers,
              sizeof trailers - 1);
}

/* ---- relaying ---- */

static void put_state(struct bench *b)
{
    const struct buffer unsent[2] = {{0}};
    struct buffer state = {0};

    must(session_freeze(b->session, &state) == 0);
    journal_state(b->journal, &state, unsent, b->put_out);
    buffer_fini(&state);
}

static void relay(struct bench *b, enum session_end from)
{
    static uint8_t room[RELAY_READ_BYTES];
    struct session_passed passed;
    const uint8_t *bytes = room;
    int fd = b->pairs[from][0];
    ssize_t n = b->journal ? journal_read(b->journal, from, fd, &bytes)
                           : recv(fd, room, sizeof room, MSG_DONTWAIT);

    must(n > 0 && session_feed(b->session, from, bytes, (size_t)n) == 0);
    if (!b->journal)
        return;
    journal_done(b->journal, b->put_out,
                 b->way == JOURNAL && session_passed(b->session, from, &passed) ? &passed : NULL);
    if (journal_is_due(b->journal, session_held(b->session)))
        put_state(b);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Sends the bytes from one end's peer, relays them, takes them at the other's: µs of the relay. */
static double pass(struct bench *b, enum session_end from, const struct buffer *bytes)
{
    static uint8_t away[RELAY_READ_BYTES];
    ssize_t len = (ssize_t)buffer_len(bytes);
    double began, took;

    must(send(b->pairs[from][1], buffer_data(bytes), (size_t)len, 0) == len);
    began = now_us();
    relay(b, from);
    took = now_us() - began;
    must(recv(b->pairs[!from][1], away, sizeof away, MSG_DONTWAIT) == len);
    return took;
}

static void greet(struct bench *b)
{
    struct buffer bytes = {0};

    put(&bytes, FRAME_PREFACE, FRAME_PREFACE_BYTES);
    put_frame(&bytes, FRAME_SETTINGS, 0, 0, NULL, 0);
    pass(b, SESSION_CLIENT, &bytes);
    buffer_fini(&bytes);
    put_frame(&bytes, FRAME_SETTINGS, 0, 0, NULL, 0);
    put_frame(&bytes, FRAME_SETTINGS, FRAME_FLAG_ACK, 0, NULL, 0);
    pass(b, SESSION_RUNTIME, &bytes);
    buffer_fini(&bytes);
    put_frame(&bytes, FRAME_SETTINGS, FRAME_FLAG_ACK, 0, NULL, 0);
    pass(b, SESSION_CLIENT, &bytes);
    buffer_fini(&bytes);
}

static double exchange(struct bench *b)
{
    struct buffer requests = {0}, answers = {0};
    double took;

    for (int i = 0; i < CALLS; i++, b->stream += 2) {
        put_request(&requests, b->stream);
        put_answer(&answers, b->stream);
    }
    took = pass(b, SESSION_CLIENT, &requests);
    took += pass(b, SESSION_RUNTIME, &answers);
    buffer_fini(&requests);
    buffer_fini(&answers);
    return took;
}

/* ---- figures ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The mean of the fastest quarter: what disturbs a run only adds to it. */
static double best_of(double *rounds, size_t n)
{
    double sum = 0;

    qsort(rounds, n, sizeof *rounds, by_size);
    for (size_t i = 0; i < n / 4; i++)
        sum += rounds[i];
    return sum / (double)(n / 4);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    double *took[WAYS], plain;
    struct bench benches[WAYS];

    must(rounds >= 4);
    for (int way = 0; way < WAYS; way++) {
        took[way] = calloc(rounds, sizeof **took);
        must(took[way]);
        bench_init(&benches[way], (enum way)way);
        greet(&benches[way]);
        exchange(&benches[way]);
    }
    for (size_t i = 0; i < rounds; i++) {
        for (int way = 0; way < WAYS; way++) {
            for (int n = 0; n < BATCH; n++)
                took[way][i] += exchange(&benches[way]) / BATCH;
        }
    }
    plain = best_of(took[PLAIN], rounds);
    printf("%d calls and their answers, µs\n", CALLS);
    for (int way = 0; way < WAYS; way++) {
        double best = way == PLAIN ? plain : best_of(took[way], rounds);

        printf("%-20s %6.2f  %+.2f\n", NAMES[way], best, best - plain);
        bench_fini(&benches[way]);
        free(took[way]);
    }
    return 0;
}
