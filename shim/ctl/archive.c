#include "shim/ctl/archive.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#include "shim/must.h"

#define BLOCK_BYTES 512

/* A file's head: texts, and numbers in octal (pax(1), "ustar Interchange Format"). */
struct head {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char user[32];
    char group[32];
    char major[8];
    char minor[8];
    char prefix[155];
    char padding[12];
};
_Static_assert(sizeof(struct head) == BLOCK_BYTES, "a head is a block");

struct archive {
    gzFile file;
    char *directory;
    bool failed;
};

struct archive *archive_new(const char *path, const char *directory)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct archive *archive;

    if (fd < 0)
        return NULL;
    archive = must(calloc(1, sizeof *archive));
    archive->file = must(gzdopen(fd, "wb"));
    archive->directory = must(strdup(directory));
    return archive;
}

static void put(struct archive *archive, const void *bytes, size_t len)
{
    if (len > 0 && gzwrite(archive->file, bytes, (unsigned)len) != (int)len)
        archive->failed = true;
}

static void set_checksum(struct head *head)
{
    const uint8_t *bytes = (const uint8_t *)head;
    unsigned sum = 0;

    memset(head->checksum, ' ', sizeof head->checksum);
    for (size_t i = 0; i < sizeof *head; i++)
        sum += bytes[i];
    snprintf(head->checksum, sizeof head->checksum, "%06o", sum);
}

void archive_add(struct archive *archive, const char *name, const void *bytes, size_t len)
{
    static const char zeros[BLOCK_BYTES];
    struct head head = {.mode = "0000600",
                        .uid = "0000000",
                        .gid = "0000000",
                        .type = '0',
                        .magic = "ustar",
                        .version = {'0', '0'}};
    int used = snprintf(head.name, sizeof head.name, "%s/%s", archive->directory, name);

    assert(used > 0 && used < (int)sizeof head.name);
    snprintf(head.size, sizeof head.size, "%011zo", len & 077777777777);
    snprintf(head.mtime, sizeof head.mtime, "%011llo",
             (unsigned long long)time(NULL) & 077777777777);
    set_checksum(&head);
    put(archive, &head, sizeof head);
    put(archive, bytes, len);
    put(archive, zeros, (BLOCK_BYTES - len % BLOCK_BYTES) % BLOCK_BYTES);
}

int archive_finish(struct archive *archive)
{
    static const char zeros[2 * BLOCK_BYTES];
    bool failed;

    put(archive, zeros, sizeof zeros);
    failed = gzclose(archive->file) != Z_OK || archive->failed;
    free(archive->directory);
    free(archive);
    return failed ? -1 : 0;
}
