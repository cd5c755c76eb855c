#include "shim/ctl/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/rpc/rpc.h"

size_t command_options_len(const struct command *command)
{
    size_t len = 0;

    while (len < COMMAND_OPTIONS_MAX && command->options[len].name)
        len++;
    return len;
}

const char *command_given(const struct command_run *run, const char *name)
{
    for (size_t i = 0; i < command_options_len(run->command); i++) {
        if (strcmp(run->command->options[i].name, name) == 0)
            return run->options[i];
    }
    abort(); /* a command asks for an option that it does not have */
}

bool command_not_written(struct client_failure *failure, int err)
{
    *failure = (struct client_failure){.code = RPC_UNKNOWN};
    if (err != -EPIPE)
        snprintf(failure->words, sizeof failure->words, "the answer cannot be written: %s",
                 strerror(-err));
    return false;
}

void command_say_unsure(struct client_failure *failure)
{
    size_t len = strlen(failure->words);

    if (failure->unanswered)
        snprintf(failure->words + len, sizeof failure->words - len,
                 "; it may be done all the same: see cri-device-shimctl events");
}

enum command_exit command_exit_of(const struct client_failure *failure)
{
    switch (failure->code) {
    case RPC_INVALID_ARGUMENT:
        return COMMAND_USAGE;
    case RPC_NOT_FOUND:
        return COMMAND_NOT_FOUND;
    case RPC_UNAVAILABLE:
    case RPC_DEADLINE_EXCEEDED:
        return COMMAND_UNREACHABLE;
    case RPC_PERMISSION_DENIED:
        return COMMAND_DENIED;
    default:
        return COMMAND_FAILED;
    }
}
