#include "shim/control/log_levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/level_file.h"
#include "shim/log.h"
#include "shim/must.h"

struct log_levels {
    uv_loop_t *loop;
    const struct settings *settings;
    void (*set)(void *user, int level);
    void *user;
    bool writing;
    bool freed;                /* while it is */
    struct rpc_incoming *call; /* whose level is written; NULL: its client has gone */
};

static void answer(const struct log_levels *levels, struct rpc_incoming *call)
{
    const struct settings *settings = levels->settings;
    int level = settings->level_set ? settings->level_set : settings->config.log_level;
    Control__V1__LogLevelResponse response = CONTROL__V1__LOG_LEVEL_RESPONSE__INIT;

    response.level = (char *)(uintptr_t)log_level_name(level);
    response.settings = (char *)(uintptr_t)log_level_name(settings->config.log_level);
    response.set = settings->level_set != 0;
    rpc_incoming_answer(call, &response.base);
}

static void on_written(void *user, int level, int err)
{
    struct log_levels *levels = user;
    struct rpc_incoming *call = levels->call;
    char words[128];

    if (levels->freed) {
        free(levels);
        return;
    }
    levels->writing = false;
    levels->call = NULL;
    if (err == 0) {
        levels->set(levels->user, level);
        log_info("log level: %s", level ? log_level_name(level) : "that of the settings");
        if (call)
            answer(levels, call);
    } else if (call) {
        snprintf(words, sizeof words, "nothing has changed: it cannot be kept in state_dir: %s",
                 strerror(-err));
        rpc_incoming_finish(call, RPC_INTERNAL, words);
    }
}

static void on_cancelled(void *user)
{
    ((struct log_levels *)user)->call = NULL;
}

void log_levels_call(struct log_levels *levels, struct rpc_incoming *call,
                     const Control__V1__LogLevelRequest *request)
{
    int level = log_level_parse(request->level);

    if (request->level[0] == '\0' && !request->reset) {
        answer(levels, call);
    } else if (request->reset ? request->level[0] != '\0' : level == 0) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT,
                            "a level is error, warning, info or debug, or it is reset");
    } else if (levels->writing) {
        rpc_incoming_finish(call, RPC_ABORTED, "another level is being set: try again");
    } else {
        levels->writing = true;
        levels->call = call;
        rpc_incoming_on_cancel(call, on_cancelled, levels);
        level_file_write(levels->loop, levels->settings->config.state_dir, level, on_written,
                         levels);
    }
}

struct log_levels *log_levels_new(uv_loop_t *loop, const struct settings *settings,
                                  void (*set)(void *user, int level), void *user)
{
    struct log_levels *levels = must(calloc(1, sizeof *levels));

    levels->loop = loop;
    levels->settings = settings;
    levels->set = set;
    levels->user = user;
    return levels;
}

void log_levels_free(struct log_levels *levels)
{
    levels->freed = true;
    if (!levels->writing)
        free(levels);
}
