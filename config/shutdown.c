#include "config/config.h"

uint64_t config_shutdown_ms(const struct config_shutdown *shutdown)
{
    uint64_t sum_ms = shutdown->grace_ms; /* the critical pods' is a part of it */

    for (size_t i = 0; i < shutdown->periods_len; i++)
        sum_ms += shutdown->periods[i].grace_ms;
    return sum_ms;
}
