#include "shim/rpc/keeper.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/pause.h"

struct keeper {
    uv_timer_t timer;
    char *what;
    keeper_serve *serve;
    void *user;
    int error;           /* of the last try */
    uint64_t pause_ms;   /* before the next one, after a failure */
    uint64_t failing_ms; /* since when none was a success; only with `error` */
    bool served;         /* some try was a success */
};

static const char *words_of(int error)
{
    switch (error) {
    case -EADDRINUSE:
        return "another process serves this socket";
    case -EEXIST:
        return "a file that is not empty is in its place";
    case -ENOTEMPTY:
        return "a directory that is not empty is in its place";
    default:
        return strerror(-error);
    }
}

static void tell(struct keeper *keeper, int result)
{
    if (result < 0 && result != keeper->error)
        log_write_about(LOG_LEVEL_ERROR, &(struct log_about){.kind = LOG_KIND_SOCKET_AWAY},
                        "%s: %s; trying again until it works", keeper->what, words_of(result));
    else if (result >= 0 && keeper->error)
        log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_SOCKET_BACK},
                        "%s: works now", keeper->what);
    else if (result > 0 && keeper->served)
        log_write_about(LOG_LEVEL_WARNING, &(struct log_about){.kind = LOG_KIND_SOCKET_BACK},
                        "%s: the socket's file was gone; it is made anew", keeper->what);
}

static uint64_t next_pause(struct keeper *keeper, int result)
{
    if (result >= 0) {
        keeper->pause_ms = 0;
        return KEEPER_LOOK_MS;
    }
    keeper->pause_ms = pause_longer(keeper->pause_ms, KEEPER_AGAIN_MS_MIN, KEEPER_AGAIN_MS_MAX);
    return keeper->pause_ms;
}

static void try_serve(uv_timer_t *timer)
{
    struct keeper *keeper = timer->data;
    int result = keeper->serve(keeper->user);

    tell(keeper, result);
    if (result < 0 && !keeper->error)
        keeper->failing_ms = boot_now_ms();
    keeper->error = result < 0 ? result : 0;
    keeper->served |= result >= 0;
    uv_timer_start(timer, try_serve, next_pause(keeper, result), 0);
}

struct keeper *keeper_start(uv_loop_t *loop, const char *what, keeper_serve *serve, void *user)
{
    struct keeper *keeper = must(calloc(1, sizeof *keeper));

    keeper->what = must(strdup(what));
    keeper->serve = serve;
    keeper->user = user;
    uv_timer_init(loop, &keeper->timer);
    keeper->timer.data = keeper;
    try_serve(&keeper->timer);
    return keeper;
}

const char *keeper_trouble(const struct keeper *keeper, uint64_t *since_ms)
{
    if (!keeper->error)
        return NULL;
    *since_ms = keeper->failing_ms;
    return words_of(keeper->error);
}

static void on_closed(uv_handle_t *handle)
{
    struct keeper *keeper = handle->data;

    free(keeper->what);
    free(keeper);
}

void keeper_stop(struct keeper *keeper)
{
    if (keeper)
        uv_close((uv_handle_t *)&keeper->timer, on_closed);
}
