#include "shim/bridge/kept_socket.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "CDSKEPT"
#define FORMAT 1

/* A test may end the process here. */
#ifndef KEPT_SOCKET_POINT
#define KEPT_SOCKET_POINT(name) ((void)0)
#endif

enum step {
    STEP_IDLE,
    STEP_WRITING,
    STEP_SPLICING,
};

/* Of two, one counts. `step` and `taking` are also changed where they are, by one store each. */
struct slot {
    uint32_t
        step; /* enum step, and above STEP_BITS the bytes it is about: the first to be written */
    uint32_t taking; /* so many of `in` are perhaps in the socket yet; their effects are made */
    uint32_t out_len;
    uint8_t in[KEPT_READ_BYTES_MAX];
    uint8_t out[KEPT_OUT_BYTES_MAX];
    _Alignas(16) uint8_t user[];
};
#define STEP_BITS 2

/* In front of the slots. */
struct head {
    char magic[8];
    uint32_t format;
    uint32_t user_format;
    uint64_t user_bytes;
    uint64_t cookie; /* of the socket */
    uint64_t resumed_ms;
    uint32_t quick; /* processes in a row that went on with it and died soon */
    uint32_t active;
    uint8_t landing[KEPT_READ_BYTES_MAX];
};

struct kept_socket {
    int fds[KEPT_DESCRIPTORS];
    struct head *head;
    size_t bytes; /* of the memory */
    size_t slot_bytes;
    bool editing;
};

/* ---- memory ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static struct slot *slot_at(const struct kept_socket *kept, uint32_t i)
{
    return (struct slot *)((uint8_t *)kept->head + round_up(sizeof *kept->head) +
                           i * kept->slot_bytes);
}

static struct slot *active(const struct kept_socket *kept)
{
    return slot_at(kept, kept->head->active);
}

static struct slot *passive(const struct kept_socket *kept)
{
    return slot_at(kept, !kept->head->active);
}

/* What was stored before is there when this is: the compiler must not turn them round. */
static void store(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static void measure(struct kept_socket *kept, const struct kept_state *state)
{
    kept->slot_bytes = round_up(sizeof(struct slot) + state->bytes);
    kept->bytes = round_up(sizeof *kept->head) + 2 * kept->slot_bytes;
}

/* 0 or a negative errno. All of it is there from now on: a fault in the middle of a copy would be
 * where a dying process' system call stops. */
static int map(struct kept_socket *kept)
{
    void *memory = mmap(NULL, kept->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        kept->fds[KEPT_MEMORY], 0);

    if (memory == MAP_FAILED)
        return -errno;
    kept->head = memory;
    return 0;
}

static int cookie_of(int fd, uint64_t *out)
{
    socklen_t len = sizeof *out;

    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, out, &len) < 0 ? -errno : 0;
}

/* ---- life ---- */

static struct kept_socket *kept_alloc(const struct kept_state *state)
{
    struct kept_socket *kept = calloc(1, sizeof *kept);

    if (!kept)
        return NULL;
    for (size_t i = 0; i < KEPT_DESCRIPTORS; i++)
        kept->fds[i] = -1;
    measure(kept, state);
    return kept;
}

/* 0 or a negative errno: kept_socket_free() then. */
static int make_descriptors(struct kept_socket *kept)
{
    int pipes[2];

    kept->fds[KEPT_MEMORY] = memfd_create("kept-socket", MFD_CLOEXEC);
    if (kept->fds[KEPT_MEMORY] < 0 || ftruncate(kept->fds[KEPT_MEMORY], (off_t)kept->bytes) < 0 ||
        pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    kept->fds[KEPT_PIPE_OUT] = pipes[0];
    kept->fds[KEPT_PIPE_IN] = pipes[1];
    return map(kept);
}

int kept_socket_new(int fd, const struct kept_state *state, struct kept_socket **out)
{
    struct kept_socket *kept = kept_alloc(state);
    uint64_t cookie;
    int err;

    if (!kept)
        return -ENOMEM;
    err = cookie_of(fd, &cookie);
    if (!err)
        err = make_descriptors(kept);
    if (err) {
        kept_socket_free(kept);
        return err;
    }
    *kept->head = (struct head){.magic = MAGIC,
                                .format = FORMAT,
                                .user_format = state->format,
                                .user_bytes = state->bytes,
                                .cookie = cookie};
    kept->fds[KEPT_SOCKET] = fd;
    *out = kept;
    return 0;
}

void kept_socket_free(struct kept_socket *kept)
{
    if (!kept)
        return;
    if (kept->head)
        munmap(kept->head, kept->bytes);
    for (size_t i = 0; i < KEPT_DESCRIPTORS; i++) {
        if (kept->fds[i] >= 0)
            close(kept->fds[i]);
    }
    free(kept);
}

int kept_socket_fd(const struct kept_socket *kept, enum kept_descriptor which)
{
    return kept->fds[which];
}

/* ---- the state ---- */

const void *kept_socket_state(const struct kept_socket *kept)
{
    return active(kept)->user;
}

static size_t step_len(const struct slot *slot)
{
    return slot->step >> STEP_BITS;
}

static enum step step_of(const struct slot *slot)
{
    return slot->step & ((1 << STEP_BITS) - 1);
}

static void set_step(struct slot *slot, enum step step, size_t len)
{
    store(&slot->step, (uint32_t)(len << STEP_BITS | step));
}

/* The bytes that were read have no meaning any more. */
static struct slot *edit(struct kept_socket *kept)
{
    const struct slot *from = active(kept);
    struct slot *to = passive(kept);

    assert(!kept->editing);
    kept->editing = true;
    to->step = from->step;
    to->taking = 0;
    to->out_len = from->out_len;
    memcpy(to->out, from->out, from->out_len);
    memcpy(to->user, from->user, kept->head->user_bytes);
    return to;
}

void *kept_socket_edit(struct kept_socket *kept)
{
    return edit(kept)->user;
}

size_t kept_socket_room(const struct kept_socket *kept)
{
    const struct slot *slot = kept->editing ? passive(kept) : active(kept);

    return KEPT_OUT_BYTES_MAX - slot->out_len;
}

void kept_socket_put(struct kept_socket *kept, const void *bytes, size_t len)
{
    struct slot *slot = passive(kept);

    assert(kept->editing && len <= kept_socket_room(kept));
    memcpy(slot->out + slot->out_len, bytes, len);
    slot->out_len += (uint32_t)len;
}

void kept_socket_commit(struct kept_socket *kept)
{
    assert(kept->editing);
    kept->editing = false;
    KEPT_SOCKET_POINT("before commit");
    store(&kept->head->active, !kept->head->active);
    KEPT_SOCKET_POINT("after commit");
}

/* ---- reading ---- */

/* 0 or a negative errno. Only as much as was looked at is asked for, and it is there. */
static int take(struct kept_socket *kept, size_t from)
{
    struct slot *slot = active(kept);

    while (from < slot->taking) {
        ssize_t n = recv(kept->fds[KEPT_SOCKET], kept->head->landing + from, slot->taking - from,
                         MSG_DONTWAIT);

        KEPT_SOCKET_POINT("taken");
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EUCLEAN;
        from += (size_t)n;
    }
    KEPT_SOCKET_POINT("before it is noted");
    store(&slot->taking, 0);
    return 0;
}

int kept_socket_read(struct kept_socket *kept, kept_socket_eat *eat)
{
    uint8_t bytes[KEPT_READ_BYTES_MAX];
    struct slot *next;
    ssize_t n;
    int err;

    do
        n = recv(kept->fds[KEPT_SOCKET], bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    KEPT_SOCKET_POINT("looked at");
    next = edit(kept);
    memcpy(next->in, bytes, (size_t)n);
    for (ssize_t i = 0; i < n; i++)
        kept->head->landing[i] = (uint8_t)~bytes[i];
    next->taking = (uint32_t)n;
    eat(kept, next->user, bytes, (size_t)n);
    kept_socket_commit(kept);
    err = take(kept, 0);
    return err ? err : (int)n;
}

/* ---- writing ---- */

/* What the pipe holds, or a negative errno. */
static int pipe_holds(const struct kept_socket *kept)
{
    int holds;

    return ioctl(kept->fds[KEPT_PIPE_OUT], FIONREAD, &holds) < 0 ? -errno : holds;
}

static int fill_pipe(struct kept_socket *kept)
{
    struct slot *slot = active(kept);
    size_t len = slot->out_len < KEPT_WRITE_BYTES_MAX ? slot->out_len : KEPT_WRITE_BYTES_MAX;
    ssize_t n;

    set_step(slot, STEP_WRITING, len);
    KEPT_SOCKET_POINT("about to write");
    n = write(kept->fds[KEPT_PIPE_IN], slot->out, len);
    KEPT_SOCKET_POINT("written");
    if (n <= 0)
        return n < 0 ? -errno : -EUCLEAN;
    set_step(slot, STEP_SPLICING, (size_t)n);
    return 0;
}

/* 0: the pipe is empty. */
static int empty_pipe(struct kept_socket *kept)
{
    int left;

    while ((left = pipe_holds(kept)) > 0) {
        ssize_t n = splice(kept->fds[KEPT_PIPE_OUT], NULL, kept->fds[KEPT_SOCKET], NULL,
                           (size_t)left, SPLICE_F_NONBLOCK);

        KEPT_SOCKET_POINT("spliced");
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -EUCLEAN;
    }
    return left;
}

/* The bytes of the step are written. */
static void drop_written(struct kept_socket *kept)
{
    struct slot *next = edit(kept);
    size_t written = step_len(next);

    next->taking = active(kept)->taking;
    next->out_len -= (uint32_t)written;
    memmove(next->out, next->out + written, next->out_len);
    next->step = STEP_IDLE;
    kept_socket_commit(kept);
}

int kept_socket_write(struct kept_socket *kept)
{
    while (active(kept)->out_len > 0) {
        int err = step_of(active(kept)) == STEP_IDLE ? fill_pipe(kept) : 0;

        if (!err)
            err = empty_pipe(kept);
        if (err)
            return err;
        drop_written(kept);
    }
    return 0;
}

/* ---- going on ---- */

/* How many bytes were taken, of those that were to be. */
static size_t taken(const struct kept_socket *kept)
{
    const struct slot *slot = active(kept);
    size_t n = 0;

    while (n < slot->taking && kept->head->landing[n] == slot->in[n])
        n++;
    return n;
}

/* A write that was begun has filled the pipe, or has not. */
static int settle_write(struct kept_socket *kept)
{
    struct slot *slot = active(kept);
    int holds = pipe_holds(kept);

    if (holds < 0)
        return holds;
    if ((size_t)holds > step_len(slot))
        return -EUCLEAN;
    if (step_of(slot) == STEP_WRITING)
        set_step(slot, holds > 0 ? STEP_SPLICING : STEP_IDLE, (size_t)holds);
    return 0;
}

static bool makes_sense(const struct slot *slot)
{
    return slot->taking <= KEPT_READ_BYTES_MAX && slot->out_len <= KEPT_OUT_BYTES_MAX &&
           step_of(slot) <= STEP_SPLICING && step_len(slot) <= slot->out_len &&
           (step_of(slot) != STEP_IDLE || step_len(slot) == 0);
}

/* 0 or why it is none of ours. */
static int check(const struct kept_socket *kept, const struct kept_state *state)
{
    const struct head *head = kept->head;
    uint64_t cookie;
    int err = cookie_of(kept->fds[KEPT_SOCKET], &cookie);

    if (err)
        return err;
    if (memcmp(head->magic, MAGIC, sizeof head->magic) != 0 || head->format != FORMAT ||
        head->user_format != state->format || head->user_bytes != state->bytes ||
        head->cookie != cookie)
        return -ESTALE;
    return head->active <= 1 && makes_sense(active(kept)) ? 0 : -EUCLEAN;
}

/* Counts this process, and those before it that died soon. */
static int count(struct kept_socket *kept, uint64_t now_ms)
{
    struct head *head = kept->head;
    bool quick = head->resumed_ms > 0 && now_ms - head->resumed_ms < KEPT_QUICK_MS;

    if (quick && head->quick >= KEPT_QUICK_MAX)
        return -ELOOP;
    head->quick = quick ? head->quick + 1 : 0;
    head->resumed_ms = now_ms;
    return 0;
}

static int attach(struct kept_socket *kept, const struct kept_state *state, uint64_t now_ms)
{
    struct stat st;
    int err;

    if (fstat(kept->fds[KEPT_MEMORY], &st) < 0)
        return -errno;
    if ((size_t)st.st_size != kept->bytes)
        return -ESTALE;
    err = map(kept);
    if (!err)
        err = check(kept, state);
    if (!err)
        err = count(kept, now_ms);
    if (!err)
        err = take(kept, taken(kept));
    return err ? err : settle_write(kept);
}

int kept_socket_resume(const int fds[KEPT_DESCRIPTORS], const struct kept_state *state,
                       uint64_t now_ms, struct kept_socket **out)
{
    struct kept_socket *kept = kept_alloc(state);
    int err;

    if (!kept)
        return -ENOMEM;
    memcpy(kept->fds, fds, sizeof kept->fds);
    err = attach(kept, state, now_ms);
    if (err) {
        for (size_t i = 0; i < KEPT_DESCRIPTORS; i++)
            kept->fds[i] = -1; /* the caller's yet */
        kept_socket_free(kept);
        return err;
    }
    *out = kept;
    return 0;
}
