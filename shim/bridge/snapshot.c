#include "shim/bridge/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "shim/boot.h"
#include "shim/bridge/limits.h"
#include "shim/file.h"

#define MAGIC "CDSBRDG1"

/* In front of the packed state. Read only where it was written, so in the machine's own order. */
struct head {
    char magic[8];
    uint64_t checksum; /* CRC-32 of all that follows */
    uint64_t lost_ms;
    char boot_id[BOOT_ID_BYTES_MAX];
};

#define CHECKED_FROM offsetof(struct head, lost_ms)

static uint64_t checksum(const uint8_t *file, size_t len)
{
    return crc32_z(crc32_z(0, NULL, 0), file + CHECKED_FROM, len - CHECKED_FROM);
}

/* ---- reading ---- */

/* All of its `len` bytes, or NULL. */
static uint8_t *read_all(int fd, size_t len)
{
    uint8_t *file = malloc(len + 1);
    size_t have;

    if (file && file_read(fd, file, len, &have) == 0 && have == len)
        return file;
    free(file);
    return NULL;
}

/* The whole file, or NULL. */
static uint8_t *read_file(const char *path, size_t *len, const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    uint8_t *file = NULL;
    struct stat st;

    *why = fd < 0 ? strerror(errno) : "it cannot be read";
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_size < (off_t)sizeof(struct head) || st.st_size > SNAPSHOT_BYTES_MAX) {
            *why = "it has no such size";
        } else {
            *len = (size_t)st.st_size;
            file = read_all(fd, *len);
        }
    }
    close(fd);
    return file;
}

static const char *check(const uint8_t *file, size_t len, const char *boot_id)
{
    struct head head;

    memcpy(&head, file, sizeof head);
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0)
        return "it is of another version";
    if (head.checksum != checksum(file, len))
        return "its checksum is wrong";
    if (!boot_id[0] || strncmp(head.boot_id, boot_id, sizeof head.boot_id) != 0)
        return "it is of another boot";
    return NULL;
}

Bridge__V1__WatchResponse *snapshot_read(const char *path, const char *boot_id, uint64_t *lost_ms,
                                         const char **why)
{
    Bridge__V1__WatchResponse *state = NULL;
    size_t len;
    uint8_t *file = read_file(path, &len, why);

    if (!file)
        return NULL;
    *why = check(file, len, boot_id);
    if (!*why) {
        state = bridge__v1__watch_response__unpack(NULL, len - sizeof(struct head),
                                                   file + sizeof(struct head));
        *why = "it does not parse";
        memcpy(lost_ms, file + offsetof(struct head, lost_ms), sizeof *lost_ms);
    }
    free(file);
    return state;
}

/* ---- writing ---- */

int snapshot_write(const char *path, const char *boot_id, uint64_t lost_ms,
                   const Bridge__V1__WatchResponse *state)
{
    struct head head = {.lost_ms = lost_ms};
    size_t len = sizeof head + protobuf_c_message_get_packed_size(&state->base);
    uint8_t *file;
    uint64_t sum;
    int err;

    if (len > SNAPSHOT_BYTES_MAX) {
        unlink(path);
        return -EFBIG;
    }
    file = malloc(len);
    if (!file)
        return -ENOMEM;
    memcpy(head.magic, MAGIC, sizeof head.magic);
    snprintf(head.boot_id, sizeof head.boot_id, "%s", boot_id);
    memcpy(file, &head, sizeof head);
    protobuf_c_message_pack(&state->base, file + sizeof head);
    sum = checksum(file, len);
    memcpy(file + offsetof(struct head, checksum), &sum, sizeof sum);
    err = file_replace(path, file, len);
    free(file);
    return err;
}
