#include "shim/bridge/kept_socket.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/exact_io.h"
#include "shim/point.h"

#define MAGIC "CDSKEPT"
#define FORMAT 3

/* Of two, one counts. */
struct slot {
    uint32_t read, written; /* the last calls that are in here */
    uint32_t out_len;
    uint8_t out[KEPT_OUT_BYTES_MAX];
    _Alignas(16) uint8_t user[];
};

/* In front of the slots. */
struct head {
    char magic[8];
    uint32_t format;
    uint32_t user_format;
    uint64_t user_bytes;
    uint64_t cookie;    /* of the socket */
    uint32_t takeovers; /* by processes in a row that were not settled */
    uint32_t active;
    struct exact_io reading, writing;
    uint8_t landing[KEPT_READ_BYTES_MAX]; /* of the last read */
};

struct kept_socket {
    int fds[KEPT_DESCRIPTORS];
    struct head *head;
    size_t bytes; /* of the memory */
    size_t slot_bytes;
    bool editing;
    size_t (*used)(const void *state);
    size_t areas, area_bytes;
    uint8_t **area; /* NULL: not mapped */
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

static size_t page_up(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static void measure(struct kept_socket *kept, const struct kept_state *state)
{
    kept->slot_bytes = round_up(sizeof(struct slot) + state->bytes);
    kept->bytes = page_up(round_up(sizeof *kept->head) + 2 * kept->slot_bytes);
    kept->used = state->used;
    kept->areas = state->areas;
    kept->area_bytes = page_up(state->area_bytes);
}

/* With the areas. */
static size_t file_bytes(const struct kept_socket *kept)
{
    return kept->bytes + kept->areas * kept->area_bytes;
}

/* 0 or a negative errno. */
static int map(struct kept_socket *kept)
{
    void *memory =
        mmap(NULL, kept->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kept->fds[KEPT_MEMORY], 0);

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
    uint8_t **area = calloc(state->areas + 1, sizeof *area);

    if (!kept || !area) {
        free(kept);
        free(area);
        return NULL;
    }
    kept->area = area;
    for (size_t i = 0; i < KEPT_DESCRIPTORS; i++)
        kept->fds[i] = -1;
    measure(kept, state);
    return kept;
}

/* 0 or a negative errno: kept_socket_free() then. */
static int make_descriptors(struct kept_socket *kept)
{
    kept->fds[KEPT_MEMORY] = memfd_create("kept-socket", MFD_CLOEXEC);
    if (kept->fds[KEPT_MEMORY] < 0 ||
        ftruncate(kept->fds[KEPT_MEMORY], (off_t)file_bytes(kept)) < 0)
        return -errno;
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
    for (size_t i = 0; i < kept->areas; i++) {
        if (kept->area[i])
            munmap(kept->area[i], kept->area_bytes);
    }
    for (size_t i = 0; i < KEPT_DESCRIPTORS; i++) {
        if (kept->fds[i] >= 0)
            close(kept->fds[i]);
    }
    free(kept->area);
    free(kept);
}

uint64_t kept_socket_cookie(const struct kept_socket *kept)
{
    return kept->head->cookie;
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

static struct slot *edit(struct kept_socket *kept)
{
    const struct slot *from = active(kept);
    struct slot *to = passive(kept);

    assert(!kept->editing);
    kept->editing = true;
    to->read = from->read;
    to->written = from->written;
    to->out_len = from->out_len;
    memcpy(to->out, from->out, from->out_len);
    memcpy(to->user, from->user, kept->used ? kept->used(from->user) : kept->head->user_bytes);
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
    POINT("before commit");
    store(&kept->head->active, !kept->head->active);
    POINT("after commit");
}

void kept_socket_abandon(struct kept_socket *kept)
{
    assert(kept->editing);
    kept->editing = false;
}

/* ---- areas ---- */

static off_t area_offset(const struct kept_socket *kept, size_t i)
{
    return (off_t)(kept->bytes + i * kept->area_bytes);
}

uint8_t *kept_socket_area(struct kept_socket *kept, size_t i)
{
    void *area;

    if (kept->area[i])
        return kept->area[i];
    area = mmap(NULL, kept->area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kept->fds[KEPT_MEMORY],
                area_offset(kept, i));
    if (area == MAP_FAILED)
        return NULL;
    kept->area[i] = area;
    return area;
}

void kept_socket_discard(struct kept_socket *kept, size_t i)
{
    if (kept->area[i])
        munmap(kept->area[i], kept->area_bytes);
    kept->area[i] = NULL;
    fallocate(kept->fds[KEPT_MEMORY], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              area_offset(kept, i), (off_t)kept->area_bytes);
}

/* ---- reading and writing ---- */

int kept_socket_read(struct kept_socket *kept, kept_socket_eat *eat, void *user)
{
    struct head *head = kept->head;
    uint32_t settled = active(kept)->read;
    ssize_t n = exact_unsettled(&head->reading, settled);
    struct slot *next;

    if (n == 0)
        n = exact_read(&head->reading, settled, kept->fds[KEPT_SOCKET], head->landing,
                       sizeof head->landing);
    if (n <= 0)
        return (int)n;
    POINT("read");
    next = edit(kept);
    next->read = exact_serial(&head->reading);
    eat(kept, next->user, head->landing, (size_t)n, user);
    kept_socket_commit(kept);
    return (int)n;
}

static void drop_written(struct kept_socket *kept, size_t written)
{
    struct slot *next = edit(kept);

    next->written = exact_serial(&kept->head->writing);
    next->out_len -= (uint32_t)written;
    memmove(next->out, next->out + written, next->out_len);
    kept_socket_commit(kept);
}

int kept_socket_write(struct kept_socket *kept)
{
    struct exact_io *writing = &kept->head->writing;

    for (;;) {
        const struct slot *slot = active(kept);
        size_t len = slot->out_len < KEPT_WRITE_BYTES_MAX ? slot->out_len : KEPT_WRITE_BYTES_MAX;
        ssize_t n = exact_unsettled(writing, slot->written);

        if (n == 0 && len == 0)
            return 0;
        if (n == 0)
            n = exact_write(writing, slot->written, kept->fds[KEPT_SOCKET], slot->out, len);
        if (n < 0)
            return (int)n;
        POINT("written");
        drop_written(kept, (size_t)n);
    }
}

/* ---- going on ---- */

static bool makes_sense(const struct kept_socket *kept)
{
    const struct slot *slot = active(kept);
    ssize_t read = exact_unsettled(&kept->head->reading, slot->read);
    ssize_t written = exact_unsettled(&kept->head->writing, slot->written);

    return slot->out_len <= KEPT_OUT_BYTES_MAX && read >= 0 &&
           (size_t)read <= KEPT_READ_BYTES_MAX && written >= 0 && (size_t)written <= slot->out_len;
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
    return head->active <= 1 && makes_sense(kept) ? 0 : -EUCLEAN;
}

static int count(struct kept_socket *kept)
{
    if (kept->head->takeovers >= KEPT_TAKEOVERS_MAX)
        return -ELOOP;
    kept->head->takeovers++;
    POINT("taken over");
    return 0;
}

void kept_socket_settled(struct kept_socket *kept)
{
    kept->head->takeovers = 0;
}

static int attach(struct kept_socket *kept, const struct kept_state *state)
{
    struct stat st;
    int err;

    if (fstat(kept->fds[KEPT_MEMORY], &st) < 0)
        return -errno;
    if ((size_t)st.st_size != file_bytes(kept))
        return -ESTALE;
    err = map(kept);
    if (!err)
        err = check(kept, state);
    return err ? err : count(kept);
}

int kept_socket_resume(const int fds[KEPT_DESCRIPTORS], const struct kept_state *state,
                       struct kept_socket **out)
{
    struct kept_socket *kept = kept_alloc(state);
    int err;

    if (!kept)
        return -ENOMEM;
    memcpy(kept->fds, fds, sizeof kept->fds);
    err = attach(kept, state);
    if (err) {
        for (size_t i = 0; i < KEPT_DESCRIPTORS; i++)
            kept->fds[i] = -1; /* the caller's yet */
        kept_socket_free(kept);
        return err;
    }
    *out = kept;
    return 0;
}
