#include "shim/bridge/registration.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/unix_socket.h"

enum registration_state {
    REGISTRATION_ABSENT,
    REGISTRATION_CONNECTING,
    REGISTRATION_CONNECTED,
};

struct registration {
    uv_loop_t *loop;
    char *path;
    const struct registration_ops *ops;
    void *user;
    enum registration_state state;
    uv_timer_t timer;
    uint64_t since_ms; /* CONNECTING: since when the steps count, the loop's time */
    uint64_t connected_ms;
    bool flaps; /* the connection before did not hold: of this one only debug lines tell */
    int error;  /* of the last try */
    struct rpc_channel *channel;
    struct ucred peer;
    unsigned epoch;
    struct file_identity file;
};

static void registration_set_state(struct registration *r, enum registration_state state)
{
    static const unsigned from[] = {
        [REGISTRATION_ABSENT] = 1u << REGISTRATION_ABSENT | 1u << REGISTRATION_CONNECTING,
        [REGISTRATION_CONNECTING] = 1u << REGISTRATION_ABSENT | 1u << REGISTRATION_CONNECTING |
                                    1u << REGISTRATION_CONNECTED,
        [REGISTRATION_CONNECTED] = 1u << REGISTRATION_CONNECTING,
    };

    assert(from[state] & 1u << r->state);
    r->state = state;
}

/* ---- connecting ---- */

static void try_connect(uv_timer_t *timer);

static uint64_t next_try_ms(const struct registration *r)
{
    static const struct {
        uint64_t until_ms, every_ms;
    } STEPS[] = CONNECT_STEPS;
    uint64_t age_ms = uv_now(r->loop) - r->since_ms;

    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        if (age_ms < STEPS[i].until_ms)
            return STEPS[i].every_ms;
    }
    return CONNECT_SLOW_MS;
}

static void drop_channel(struct registration *r)
{
    rpc_channel_close(r->channel);
    r->channel = NULL;
    r->peer = (struct ucred){0};
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct registration *r = user;
    bool settled = uv_now(r->loop) - r->connected_ms >= CONNECT_SETTLED_MS;

    (void)channel;
    log_write(settled || !r->flaps ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
              "kubelet: connection to pid %d lost: %s", (int)r->peer.pid, reason);
    r->flaps = !settled;
    drop_channel(r);
    registration_set_state(r, REGISTRATION_CONNECTING);
    if (settled)
        r->since_ms = uv_now(r->loop);
    uv_timer_start(&r->timer, try_connect, settled ? 0 : next_try_ms(r), 0);
    r->ops->lost(r->user);
}

static const struct rpc_channel_ops CHANNEL_OPS = {.lost = on_lost};

/* 0 with the connection, or a negative error. */
static int connect_channel(struct registration *r)
{
    struct ucred peer;
    int fd = unix_connect(r->path), err;

    if (fd < 0)
        return fd;
    err = unix_peer(fd, &peer);
    if (err) {
        close(fd);
        return err;
    }
    err = rpc_channel_open_fd(r->loop, fd, &CHANNEL_OPS, r, &r->channel);
    if (!err)
        r->peer = peer;
    return err;
}

/* The timer may come before the event that tells of another file: without the first look the
 * connection to a new kubelet would be dropped, and made again, when that event comes. The second
 * is for a file that has come in between. */
static void try_connect(uv_timer_t *timer)
{
    struct registration *r = timer->data;
    int err;

    r->ops->look(r->user);
    if (r->state != REGISTRATION_CONNECTING)
        return;
    err = connect_channel(r);
    if (err) {
        if (err != r->error)
            log_debug("kubelet: %s: %s", r->path, strerror(-err));
        r->error = err;
        uv_timer_start(&r->timer, try_connect, next_try_ms(r), 0);
        return;
    }
    r->error = 0;
    r->ops->look(r->user);
    if (!r->channel)
        return;
    uv_timer_stop(&r->timer);
    r->connected_ms = uv_now(r->loop);
    registration_set_state(r, REGISTRATION_CONNECTED);
    log_write(r->flaps ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, "kubelet: connected to pid %d",
              (int)r->peer.pid);
    r->ops->connected(r->user);
}

/* ---- the owner's side ---- */

struct registration *registration_new(uv_loop_t *loop, const char *path,
                                      const struct registration_ops *ops, void *user)
{
    struct registration *r = must(calloc(1, sizeof *r));

    r->loop = loop;
    r->path = must(strdup(path));
    r->ops = ops;
    r->user = user;
    uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    return r;
}

static void on_closed(uv_handle_t *handle)
{
    struct registration *r = handle->data;

    free(r->path);
    free(r);
}

void registration_free(struct registration *r)
{
    if (!r)
        return;
    rpc_channel_close(r->channel);
    uv_close((uv_handle_t *)&r->timer, on_closed);
}

static void begin_connecting(struct registration *r)
{
    drop_channel(r);
    registration_set_state(r, REGISTRATION_CONNECTING);
    uv_update_time(r->loop);
    r->since_ms = uv_now(r->loop);
    uv_timer_start(&r->timer, try_connect, 0, 0);
}

static void stop_connecting(struct registration *r)
{
    drop_channel(r);
    registration_set_state(r, REGISTRATION_ABSENT);
    uv_timer_stop(&r->timer);
}

void registration_socket(struct registration *r, enum kubelet_socket now)
{
    struct stat st;

    if (now != KUBELET_SOCKET_NEW)
        log_debug("kubelet: its socket %s", now == KUBELET_SOCKET_BACK ? "is back" : "has gone");
    if (now == KUBELET_SOCKET_NEW) {
        r->epoch++;
        r->flaps = false;
        r->file = (struct file_identity){0};
        if (lstat(r->path, &st) == 0)
            r->file = file_identity_of(&st);
        begin_connecting(r);
    } else if (r->state == REGISTRATION_CONNECTED) {
        return;
    } else if (now == KUBELET_SOCKET_BACK) {
        begin_connecting(r);
    } else {
        stop_connecting(r);
    }
}

bool registration_connected(const struct registration *r)
{
    return r->state == REGISTRATION_CONNECTED;
}

pid_t registration_pid(const struct registration *r)
{
    return r->peer.pid;
}

unsigned registration_epoch(const struct registration *r)
{
    return r->epoch;
}

struct file_identity registration_file(const struct registration *r)
{
    return r->file;
}

struct rpc_call *registration_call(struct registration *r, const char *resource,
                                   const char *endpoint, const struct rpc_call_ops *ops, void *user)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    options.get_preferred_allocation_available = true;
    request.version = (char *)DEVICEPLUGIN_VERSION;
    request.endpoint = (char *)endpoint;
    request.resource_name = (char *)resource;
    request.options = &options;
    return rpc_channel_call(r->channel, DEVICEPLUGIN_REGISTER, &request.base,
                            &v1beta1__empty__descriptor, false, REGISTER_TIMEOUT_MS, ops, user);
}
