/*
 * What no single value shows: settings that do not go together.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/tree.h"
#include "config/values.h"

/* Completes r->config, which has been read from `root` (NULL: no file), and notes what does not fit
 * together. A value that is wrong by itself is not looked at again. */
void check_settings(struct reading *r, struct tree_node *root);

#endif
