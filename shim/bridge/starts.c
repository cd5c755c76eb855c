#include "shim/bridge/starts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/bridge/limits.h"
#include "shim/file.h"

/* What the last process noted. */
struct starts {
    unsigned quick;    /* so many before it in a row were quick to die */
    uint64_t since_ms; /* when it was to begin to register */
};

static int read_starts(const char *path, struct starts *out)
{
    char text[64];

    if (file_read_text(path, text, sizeof text) < 0)
        return -1;
    /* NOLINTNEXTLINE(cert-err34-c): it is what write_starts() has written */
    return sscanf(text, "%u %" SCNu64, &out->quick, &out->since_ms) == 2 ? 0 : -1;
}

static void write_starts(const char *path, const struct starts *starts)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return;
    dprintf(fd, "%u %" PRIu64 "\n", starts->quick, starts->since_ms);
    close(fd);
}

static uint64_t delay_of(unsigned quick)
{
    uint64_t delay_ms = STARTS_DELAY_MS_MIN;

    if (quick < STARTS_FREE)
        return 0;
    for (unsigned i = STARTS_FREE; i < quick && delay_ms < STARTS_DELAY_MS_MAX; i++)
        delay_ms *= 2;
    return delay_ms < STARTS_DELAY_MS_MAX ? delay_ms : STARTS_DELAY_MS_MAX;
}

uint64_t starts_note(const char *path, uint64_t now_ms)
{
    struct starts last, now = {0};
    uint64_t delay_ms;

    /* One that died while it waited was quick, too. A time to come by more than that is another
     * boot's. */
    if (read_starts(path, &last) == 0 && last.since_ms <= now_ms + STARTS_DELAY_MS_MAX &&
        now_ms < last.since_ms + STARTS_QUICK_MS)
        now.quick = last.quick < STARTS_COUNT_MAX ? last.quick + 1 : last.quick;
    delay_ms = delay_of(now.quick);
    now.since_ms = now_ms + delay_ms;
    write_starts(path, &now);
    return delay_ms;
}

void starts_forget(const char *path)
{
    unlink(path);
}
