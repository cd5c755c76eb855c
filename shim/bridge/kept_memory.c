#include "shim/bridge/kept_memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/point.h"

#define MAGIC "CDSKEPT"
/* Of the root, and of what the fields of ours mean. */
#define FORMAT 4

/* Where the images may be, and the areas: the same in every release. */
#define IMAGES 2
#define IMAGE_AT(i) ((off_t)((i) ? 16 * 1024 * 1024 : ROOT_BYTES))
#define IMAGE_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define AREAS_AT ((off_t)32 * 1024 * 1024)
#define ROOT_BYTES 65536 /* the largest page that there is */

#define ALIGNED 64
#define TAG_USER (KEPT_TAG_SLOT + 0x100)

/* ---- how it lies there ---- */

#define OF_HEAD(tag, kind, field)                                                                  \
    {                                                                                              \
        tag, kind, (uint32_t)offsetof(struct kept_head, field),                                    \
            sizeof(((struct kept_head *)0)->field), 1, 0                                           \
    }
#define OF_SLOT(number, kind, field)                                                               \
    {                                                                                              \
        KEPT_TAG_SLOT + (number), kind, (uint32_t)offsetof(struct kept_slot, field),               \
            sizeof(((struct kept_slot *)0)->field), 1, 0                                           \
    }

/* Those of the head in relation to it. */
static const struct kept_field OWN[] = {
    OF_HEAD(KEPT_TAG_ACTIVE, KEPT_NUMBER, active),
    {KEPT_TAG_SLOTS, KEPT_BYTES, 0, 0, KEPT_SLOTS, 0}, /* measure() */
    OF_HEAD(3, KEPT_EXACT, reading),
    OF_HEAD(4, KEPT_EXACT, writing),
    OF_HEAD(5, KEPT_BYTES, landing),
    OF_SLOT(1, KEPT_NUMBER, read),
    OF_SLOT(2, KEPT_NUMBER, written),
    OF_SLOT(3, KEPT_NUMBER, out_len),
    OF_SLOT(4, KEPT_BYTES, out),
};
#define OWN_FIELDS (sizeof OWN / sizeof OWN[0])

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
}

static size_t page_up(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static void measure(struct kept_memory *m, const struct kept_state *state)
{
    size_t head_at = kept_layout_bytes(m->fields_len);
    size_t slots_at = head_at + round_up(sizeof *m->head);

    m->user_bytes = state->bytes;
    m->slot_bytes = round_up(sizeof(struct kept_slot) + state->bytes);
    m->image_bytes = page_up(slots_at + KEPT_SLOTS * m->slot_bytes);
    assert(m->image_bytes <= IMAGE_BYTES_MAX && state->area_bytes <= KEPT_AREA_BYTES_MAX);
    m->areas = state->areas;
    m->area_bytes = page_up(state->area_bytes);
    for (size_t i = 0; i < OWN_FIELDS; i++) {
        m->fields[i] = OWN[i];
        if (OWN[i].tag < KEPT_TAG_SLOT)
            m->fields[i].at += (uint32_t)head_at;
        if (OWN[i].tag == KEPT_TAG_SLOTS) {
            m->fields[i].at = (uint32_t)slots_at;
            m->fields[i].bytes = m->fields[i].stride = (uint32_t)m->slot_bytes;
        }
    }
    for (size_t i = 0; i < state->fields_len; i++) {
        struct kept_field *field = &m->fields[OWN_FIELDS + i];

        *field = state->fields[i];
        assert(field->tag < KEPT_USER_TAGS);
        field->tag += TAG_USER;
        field->at += (uint32_t)offsetof(struct kept_slot, user);
    }
}

/* With the areas. */
static off_t file_bytes(const struct kept_memory *m)
{
    return AREAS_AT + (off_t)(m->areas * KEPT_AREA_BYTES_MAX);
}

static void *map(const struct kept_memory *m, off_t at, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, at);

    return memory == MAP_FAILED ? NULL : memory;
}

/* 0 or -ENOMEM. */
static int map_root(struct kept_memory *m)
{
    m->root = map(m, 0, sizeof *m->root);
    return m->root ? 0 : -ENOMEM;
}

/* The image in that place is this process'. 0 or -ENOMEM. */
static int map_image(struct kept_memory *m, uint32_t i)
{
    void *head;

    m->image = map(m, IMAGE_AT(i), m->image_bytes);
    if (!m->image)
        return -ENOMEM;
    head = m->image + kept_layout_bytes(m->fields_len);
    m->head = head;
    return 0;
}

/* ---- life ---- */

/* 0 or -ENOMEM. */
static int init(struct kept_memory *m, const struct kept_state *state)
{
    *m = (struct kept_memory){.fd = -1,
                              .fields_len = OWN_FIELDS + state->fields_len,
                              .fields = calloc(OWN_FIELDS + state->fields_len, sizeof *m->fields),
                              .area = calloc(state->areas + 1, sizeof *m->area)};
    if (!m->fields || !m->area)
        return -ENOMEM;
    measure(m, state);
    return 0;
}

int kept_memory_new(struct kept_memory *m, const struct kept_state *state, uint64_t cookie, int *fd)
{
    int err = init(m, state);

    if (err)
        return err;
    m->fd = *fd = memfd_create("kept-socket", MFD_CLOEXEC);
    if (m->fd < 0 || ftruncate(m->fd, file_bytes(m)) < 0)
        return -errno;
    err = map_root(m);
    if (!err)
        err = map_image(m, 0);
    if (err)
        return err;
    kept_layout_write(m->image, m->image_bytes, m->fields, m->fields_len);
    *m->root = (struct kept_root){
        .magic = MAGIC, .format = FORMAT, .user_format = state->format, .cookie = cookie};
    return 0;
}

void kept_memory_fini(struct kept_memory *m)
{
    if (m->root)
        munmap(m->root, sizeof *m->root);
    if (m->image)
        munmap(m->image, m->image_bytes);
    for (size_t i = 0; i < m->areas && m->area; i++) {
        if (m->area[i])
            munmap(m->area[i], m->area_bytes);
    }
    free(m->area);
    free(m->fields);
}

struct kept_slot *kept_memory_slot(const struct kept_memory *m, uint32_t i)
{
    return (struct kept_slot *)((uint8_t *)m->head + round_up(sizeof *m->head) + i * m->slot_bytes);
}

/* ---- areas ---- */

static off_t area_at(size_t i)
{
    return AREAS_AT + (off_t)(i * KEPT_AREA_BYTES_MAX);
}

uint8_t *kept_memory_area(struct kept_memory *m, size_t i)
{
    if (!m->area[i])
        m->area[i] = map(m, area_at(i), m->area_bytes);
    return m->area[i];
}

void kept_memory_discard(struct kept_memory *m, size_t i)
{
    if (m->area[i])
        munmap(m->area[i], m->area_bytes);
    m->area[i] = NULL;
    fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, area_at(i),
              (off_t)KEPT_AREA_BYTES_MAX);
}

/* ---- going on ---- */

/* 0 or why it is none of ours. */
static int check(const struct kept_memory *m, const struct kept_state *state, uint64_t cookie)
{
    const struct kept_root *root = m->root;

    if (memcmp(root->magic, MAGIC, sizeof root->magic) != 0 || root->format != FORMAT ||
        root->user_format != state->format || root->cookie != cookie)
        return -ESTALE;
    return root->image < IMAGES ? 0 : -EUCLEAN;
}

static int count(struct kept_memory *m)
{
    if (m->root->takeovers >= KEPT_TAKEOVERS_MAX)
        return -ELOOP;
    m->root->takeovers++;
    POINT("taken over");
    return 0;
}

/* What is written takes memory, if only zeros. */
static void clear_image(const struct kept_memory *m, uint32_t place)
{
    if (fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, IMAGE_AT(place),
                  (off_t)IMAGE_BYTES_MAX) < 0)
        memset(m->image, 0, m->image_bytes);
}

/* What lies otherwise than here gets another image, in the other place, where one that was killed
 * at this may have left something. 0 or a negative errno. */
static int lay_out_anew(struct kept_memory *m, const void *before,
                        bool (*sound)(const struct kept_memory *m))
{
    uint32_t place = !m->root->image;
    int err;

    err = map_image(m, place);
    if (err)
        return err;
    clear_image(m, place);
    kept_layout_write(m->image, m->image_bytes, m->fields, m->fields_len);
    err = kept_layout_copy(before, m->image);
    if (!err && !sound(m))
        err = -EUCLEAN;
    if (err)
        return err;
    POINT("before another image");
    kept_memory_store(&m->root->image, place);
    POINT("another image");
    fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, IMAGE_AT(!place),
              (off_t)IMAGE_BYTES_MAX);
    return 0;
}

/* 0 or a negative errno. */
static int take_image(struct kept_memory *m, bool (*sound)(const struct kept_memory *m))
{
    uint32_t place = m->root->image;
    uint8_t *before = map(m, IMAGE_AT(place), IMAGE_BYTES_MAX);
    int err;

    if (!before)
        return -ENOMEM;
    if (kept_layout_image_bytes(before) > IMAGE_BYTES_MAX)
        err = -EUCLEAN;
    else if (!kept_layout_is(before, m->fields, m->fields_len))
        err = lay_out_anew(m, before, sound);
    else
        err = map_image(m, place);
    munmap(before, IMAGE_BYTES_MAX);
    if (!err && (m->head->active > 1 || !sound(m)))
        err = -EUCLEAN;
    return err;
}

/* Areas that only this release has are behind those that there are. */
int kept_memory_open(struct kept_memory *m, int fd, const struct kept_state *state, uint64_t cookie,
                     bool (*sound)(const struct kept_memory *m))
{
    struct stat st;
    int err = init(m, state);

    if (err)
        return err;
    m->fd = fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < AREAS_AT)
        return -ESTALE;
    if (st.st_size < file_bytes(m) && ftruncate(fd, file_bytes(m)) < 0)
        return -errno;
    err = map_root(m);
    if (!err)
        err = check(m, state, cookie);
    if (!err)
        err = count(m);
    return err ? err : take_image(m, sound);
}
