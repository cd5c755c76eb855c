/*
 * Which boot this is: what was remembered in another one may no longer hold.
 */
#ifndef SHIM_BOOT_H
#define SHIM_BOOT_H

#include <time.h>

#define BOOT_ID_BYTES_MAX 64

/* The kernel's id of this boot. Empty if it cannot be read, with a log line: then it is equal to
 * none, itself included, and what is remembered counts as of another boot. */
void boot_id_read(char id[BOOT_ID_BYTES_MAX]);

/* When this boot began, by the wall clock as it is set now. */
time_t boot_time(void);

#endif
