#include "shim/ctl/consent.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/rpc/rpc.h"

bool consent_given(const struct command_run *run, const char *plan, const char *question,
                   struct client_failure *failure)
{
    char *line = NULL;
    size_t size = 0;
    bool yes;

    if (command_given(run, "yes"))
        return true;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return client_fail(failure, RPC_INVALID_ARGUMENT,
                           "nothing is changed without --yes; --dry-run says what would be done");
    client_rest(run->client);
    fprintf(stderr, "%s%s [y/N] ", plan, question);
    yes = getline(&line, &size, stdin) > 0 && (line[0] == 'y' || line[0] == 'Y');
    free(line);
    return yes || client_fail(failure, RPC_ABORTED, "nothing has changed");
}
