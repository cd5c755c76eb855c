/*
 * The clock of all that is compared over a restart: the core's, and that of what is remembered.
 */
#ifndef SHIM_BOOT_CLOCK_H
#define SHIM_BOOT_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME in ms: cannot be set, goes on while the machine sleeps, begins anew at a reboot.
 * Every `now_ms` and `deadline_ms` of the core is of this clock. */
uint64_t boot_now_ms(void);

/* How long it is until then; 0: it is over. */
static inline uint64_t boot_left_ms(uint64_t at_ms)
{
    uint64_t now_ms = boot_now_ms();

    return at_ms > now_ms ? at_ms - now_ms : 0;
}

#endif
