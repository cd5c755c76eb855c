#include "shim/boot.h"

#include <string.h>

#include "shim/file.h"
#include "shim/log.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

void boot_id_read(char id[BOOT_ID_BYTES_MAX])
{
    int r = file_read_text(BOOT_ID_PATH, id, BOOT_ID_BYTES_MAX);

    if (r < 0) {
        log_warning("%s: %s; what is remembered counts as of another boot", BOOT_ID_PATH,
                    strerror(-r));
        *id = '\0';
    }
    id[strcspn(id, "\n")] = '\0';
}

time_t boot_time(void)
{
    struct timespec now, since_boot;

    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    return now.tv_sec - since_boot.tv_sec - (now.tv_nsec < since_boot.tv_nsec);
}
