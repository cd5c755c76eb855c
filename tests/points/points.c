/*
 * Daemon and bridge as another release, which a test can have end at a point (shim/point.h) as by
 * kill -9: SHIM_POINT="FILE NAME" in the environment, e.g. "shim/exact_io.c moved", at the
 * SHIM_POINT_COUNT-th time that it is passed.
 */
#include "tests/points/points.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/version.h"

/* In the place of the library's. */
const char version_text[] = "9.9.9-points";

static const char *wanted;
static atomic_int left; /* passed by the workers' threads, too */

__attribute__((constructor)) static void points_init(void)
{
    const char *count = getenv("SHIM_POINT_COUNT");

    wanted = getenv("SHIM_POINT");
    atomic_store(&left, count ? atoi(count) : 1);
}

void point_passed(const char *point)
{
    if (wanted && strcmp(point, wanted) == 0 && atomic_fetch_sub(&left, 1) == 1)
        kill(getpid(), SIGKILL);
}
