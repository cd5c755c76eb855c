/*
 * cri-device-shimctl why
 */
#ifndef SHIM_CTL_WHY_H
#define SHIM_CTL_WHY_H

#include "shim/ctl/client.h"
#include "shim/ctl/show.h"

/* struct command's run. */
bool why_run(struct client *client, const struct show *show, char *const *arguments,
             size_t arguments_len, struct client_failure *failure);

#endif
