#include "shim/runtime/identity.h"

#include <stdio.h>
#include <string.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/runtime/cdi_support.h"

/* In StatusResponse.info, where it is asked to be verbose. */
#define SETTINGS_KEY "config"

static void tell_cdi(struct identity *identity, const char *settings)
{
    identity->told = true;
    identity->cdi(identity->user, cdi_support(identity->name, identity->version, settings));
}

/* It does not answer, and is asked again later. One that begins makes no containers yet, either
 * (containerd: "server is not initialized yet"); for any other nobody is to wait. */
static void tell_nothing(struct identity *identity)
{
    identity->asked = false;
    if (identity->told || !identity->listed)
        return;
    identity->told = true;
    identity->cdi(identity->user, DEVICEMGR_CDI_UNKNOWN);
}

/* ---- its settings ---- */

/* They may have secrets in them: they are looked at, and not kept. */
static void on_status(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__StatusResponse *said = (const void *)message;
    struct identity *identity = user;
    const char *settings = NULL;

    (void)call;
    for (size_t i = 0; i < said->n_info; i++) {
        if (strcmp(said->info[i]->key, SETTINGS_KEY) == 0)
            settings = said->info[i]->value;
    }
    tell_cdi(identity, settings);
}

static void on_status_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct identity *identity = user;

    (void)call;
    if (status->code != RPC_OK)
        tell_nothing(identity);
}

static const struct rpc_call_ops STATUS_OPS = {.message = on_status, .done = on_status_done};

static bool ask_status(struct identity *identity)
{
    Runtime__V1__StatusRequest request = RUNTIME__V1__STATUS_REQUEST__INIT;

    request.verbose = true;
    return rpc_channel_call(identity->channel, CRI_STATUS_PATH, &request.base,
                            &runtime__v1__status_response__descriptor, false, identity->timeout_ms,
                            &STATUS_OPS, identity);
}

/* ---- its name ---- */

static void take_words(char out[IDENTITY_NAME_BYTES_MAX], const char *words)
{
    snprintf(out, IDENTITY_NAME_BYTES_MAX, "%s", words);
    for (char *c = out; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            *c = '?';
}

static void on_version(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__VersionResponse *said = (const void *)message;
    struct identity *identity = user;

    (void)call;
    take_words(identity->name, said->runtime_name);
    take_words(identity->version, said->runtime_version);
}

static void on_version_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct identity *identity = user;

    (void)call;
    identity->known(identity->user);
    if (status->code == RPC_OK && !cdi_support_by_settings(identity->name))
        tell_cdi(identity, NULL);
    else if (status->code != RPC_OK || !ask_status(identity))
        tell_nothing(identity);
}

static const struct rpc_call_ops VERSION_OPS = {.message = on_version, .done = on_version_done};

void identity_ask(struct identity *identity, struct rpc_channel *channel, uint64_t timeout_ms)
{
    Runtime__V1__VersionRequest request = RUNTIME__V1__VERSION_REQUEST__INIT;

    if (identity->asked)
        return;
    identity->channel = channel;
    identity->timeout_ms = timeout_ms;
    identity->asked = rpc_channel_call(channel, CRI_VERSION_PATH, &request.base,
                                       &runtime__v1__version_response__descriptor, false,
                                       timeout_ms, &VERSION_OPS, identity);
}

void identity_forget(struct identity *identity)
{
    identity->channel = NULL;
    identity->asked = identity->listed = identity->told = false;
    identity->name[0] = identity->version[0] = '\0';
}
