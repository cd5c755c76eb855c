#include "shim/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "shim/log.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

void boot_id_read(char id[BOOT_ID_BYTES_MAX])
{
    int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, id, BOOT_ID_BYTES_MAX - 1);

    if (n < 0)
        log_warning("%s: %s; what is remembered counts as of another boot", BOOT_ID_PATH,
                    strerror(errno));
    id[n < 0 ? 0 : n] = '\0';
    id[strcspn(id, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

uint64_t boot_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

time_t boot_time(void)
{
    struct timespec now, since_boot;

    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    return now.tv_sec - since_boot.tv_sec - (now.tv_nsec < since_boot.tv_nsec);
}
