/*
 * A credential plugin: a program that is run, and writes an ExecCredential to its standard output
 * (client.authentication.k8s.io). What it writes to its standard error goes where our lines go.
 */
#ifndef SHIM_AGENT_EXEC_PLUGIN_H
#define SHIM_AGENT_EXEC_PLUGIN_H

#include <stdint.h>

#include <uv.h>

#include "shim/agent/kubeconfig.h"

struct exec_plugin;

/* Borrowed until done() returns; a text is NULL where there is none. */
struct exec_credential {
    const char *token;
    const char *certificate;
    const char *key;
    uint64_t lasts_ms; /* from now on; UINT64_MAX: it does not say. In the past: 0 */
};

struct exec_plugin_ops {
    /* It has ended, and `credential` is what it gave; NULL: nothing that is of use, and `words` say
     * why, without what authenticates. Once, from the loop; the plugin is gone then. */
    void (*done)(void *user, const struct exec_credential *credential, const char *words);
};

/* Runs it, in a session of its own; after EXEC_PLUGIN_TIMEOUT_MS it is killed, with its group.
 * `config`, whose exec has a command, is borrowed until return, `ops` and `user` until done(). A
 * program that cannot be run is told by done(), too. */
struct exec_plugin *exec_plugin_run(uv_loop_t *loop, const struct kubeconfig *config,
                                    const struct exec_plugin_ops *ops, void *user);

/* done() does not come; it is killed, and freed in later turns of the loop. Accepts NULL. */
void exec_plugin_cancel(struct exec_plugin *plugin);

#endif
