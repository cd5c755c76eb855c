#include "tests/unit/registering.h"

#include "cri-proto/methods.h"
#include "cri-proto/pluginregistration_v1.pb-c.h"

static void on_cancelled(void *user)
{
    ((struct registering *)user)->held = NULL;
}

static void on_info(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;
    struct registering *plugin = user;
    const char *versions[REGISTERING_VERSIONS_MAX + 1];
    char *padding = calloc(1, plugin->padding + 1);

    (void)message;
    plugin->asked++;
    if (plugin->mute) {
        plugin->held = call;
        rpc_incoming_on_cancel(call, on_cancelled, plugin);
        free(padding);
        return;
    }
    assert_non_null(padding);
    memset(padding, 'v', plugin->padding);
    memcpy(versions, plugin->versions, sizeof plugin->versions);
    info.type = (char *)plugin->type;
    info.name = (char *)plugin->name;
    info.endpoint = (char *)(plugin->endpoint ? plugin->endpoint : "");
    info.supported_versions = (char **)versions;
    info.n_supported_versions = plugin->versions_len;
    if (plugin->padding)
        versions[info.n_supported_versions++] = padding;
    incoming_answer(call, &info.base, plugin->info_code, "the plugin says no");
    free(padding);
}

static void on_notify(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Pluginregistration__RegistrationStatus *status = (const void *)message;
    Pluginregistration__RegistrationStatusResponse response =
        PLUGINREGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;
    struct registering *plugin = user;

    plugin->notified++;
    plugin->registered = status->plugin_registered;
    snprintf(plugin->error, sizeof plugin->error, "%s", status->error);
    incoming_answer(call, &response.base, plugin->notify_code, "the plugin says no");
}

static const struct rpc_method METHODS[] = {
    {PLUGINREGISTRATION_GET_INFO, &pluginregistration__info_request__descriptor, on_info},
    {PLUGINREGISTRATION_NOTIFY, &pluginregistration__registration_status__descriptor, on_notify},
};

void registering_serve(struct registering *plugin, struct world *world, const char *path)
{
    snprintf(plugin->path, sizeof plugin->path, "%s", path);
    assert_int_equal(serve_at(&world->loop, path, METHODS, sizeof METHODS / sizeof *METHODS, plugin,
                              &plugin->server),
                     0);
}

void registering_close(struct registering *plugin)
{
    rpc_server_close(plugin->server);
    plugin->server = NULL;
    plugin->held = NULL;
}
