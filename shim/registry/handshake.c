#include "shim/registry/handshake.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cri-proto/methods.h"
#include "cri-proto/utf8.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/pause.h"
#include "shim/registry/limits.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"
#include "shim/rpc/unix_socket.h"

#define WORDS_BYTES_MAX (RPC_STATUS_TEXT_BYTES_MAX + 64)

enum handshake_state {
    HANDSHAKE_WAITING,
    HANDSHAKE_ASKING,
    HANDSHAKE_ASKED,
    HANDSHAKE_NOTIFYING,
    HANDSHAKE_DONE,
};

struct handshake {
    uv_loop_t *loop;
    const char *path;
    int file;
    const struct handshake_ops *ops;
    void *user;
    enum handshake_state state;
    uv_timer_t timer;
    uint64_t dial_ms, again_ms; /* the last pauses of either kind; 0: none yet */
    bool refused;               /* the last dial: nobody listens */
    struct message_budget budget;
    struct rpc_channel *channel; /* NULL: none */
    ProtobufCMessage *info;
    uid_t uid;
    bool good;  /* what it is notified of is a success */
    char *told; /* what the log said last; NULL: nothing */
};

static void on_dial(uv_timer_t *timer);

/* Each is entered from its left neighbour, WAITING from any, DONE from ASKED, too. */
static void set_state(struct handshake *h, enum handshake_state state)
{
    assert(state == HANDSHAKE_WAITING || state == h->state + 1 ||
           (h->state == HANDSHAKE_ASKED && state == HANDSHAKE_DONE));
    h->state = state;
}

static void hang_up(struct handshake *h)
{
    rpc_channel_close(h->channel);
    h->channel = NULL;
    if (h->info)
        protobuf_c_message_free_unpacked(h->info, NULL);
    h->info = NULL;
}

/* ---- again ---- */

/* Said once, until it is something else. */
static void tell(struct handshake *h, const char *words)
{
    if (h->ops->quiet || (h->told && strcmp(h->told, words) == 0))
        return;
    log_warning("registration socket %s: %s; trying again", h->path, words);
    free(h->told);
    h->told = must(strdup(words));
}

static void wait_for(struct handshake *h, uint64_t pause_ms)
{
    hang_up(h);
    set_state(h, HANDSHAKE_WAITING);
    uv_timer_start(&h->timer, on_dial, pause_ms, 0);
}

/* The dial failed. What is not there for a moment only is not worth a line. */
static void dial_again(struct handshake *h, const char *reason)
{
    char words[WORDS_BYTES_MAX];

    snprintf(words, sizeof words, "cannot connect: %s", reason);
    h->dial_ms = pause_longer(h->dial_ms, HANDSHAKE_DIAL_MS_MIN, HANDSHAKE_AGAIN_MS_MAX);
    if (h->dial_ms >= HANDSHAKE_AGAIN_MS_MIN)
        tell(h, words);
    wait_for(h, h->dial_ms);
}

bool handshake_is_dead(const struct handshake *h)
{
    int fd;

    if (h->state != HANDSHAKE_DONE)
        return h->state == HANDSHAKE_WAITING && h->refused && h->dial_ms >= HANDSHAKE_AGAIN_MS_MIN;
    fd = unix_connect_file(h->file);
    if (fd >= 0)
        close(fd);
    return fd == -ECONNREFUSED;
}

static void ask_again(struct handshake *h)
{
    h->again_ms = pause_longer(h->again_ms, HANDSHAKE_AGAIN_MS_MIN, HANDSHAKE_AGAIN_MS_MAX);
    wait_for(h, h->again_ms);
}

void handshake_anew(struct handshake *h)
{
    assert(h->state == HANDSHAKE_DONE);
    ask_again(h);
}

/* ---- NotifyRegistrationStatus ---- */

/* It says nothing. */
static void on_notify_answer(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static void on_notified(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct handshake *h = user;
    char words[WORDS_BYTES_MAX];

    (void)call;
    if (status->code != RPC_OK && h->good) {
        snprintf(words, sizeof words, "NotifyRegistrationStatus: %s: %s",
                 rpc_code_name(status->code), status->message);
        tell(h, words);
    }
    if (status->code == RPC_OK && h->good) {
        hang_up(h);
        set_state(h, HANDSHAKE_DONE);
        return;
    }
    ask_again(h);
    if (h->good)
        h->ops->refused(h->user);
}

static const struct rpc_call_ops NOTIFY_OPS = {.message = on_notify_answer, .done = on_notified};

void handshake_answer(struct handshake *h, const char *error)
{
    Pluginregistration__RegistrationStatus status = PLUGINREGISTRATION__REGISTRATION_STATUS__INIT;
    char words[WORDS_BYTES_MAX];

    assert(h->state == HANDSHAKE_ASKED);
    h->good = !error;
    status.plugin_registered = !error;
    if (error) {
        /* The plugin's own words are in it, perhaps cut: one in Go takes no text but UTF-8. */
        utf8_copy(words, sizeof words, error);
        status.error = words;
        tell(h, words);
    }
    set_state(h, HANDSHAKE_NOTIFYING);
    if (h->channel &&
        rpc_channel_call(h->channel, PLUGINREGISTRATION_NOTIFY, &status.base,
                         &pluginregistration__registration_status_response__descriptor, false,
                         HANDSHAKE_NOTIFY_MS, &NOTIFY_OPS, h))
        return;
    /* From the loop, as if the call had failed. */
    rpc_channel_close(h->channel);
    h->channel = NULL;
    uv_timer_start(&h->timer, on_dial, 0, 0);
}

void handshake_leave(struct handshake *h)
{
    set_state(h, HANDSHAKE_DONE);
    hang_up(h);
}

/* ---- GetInfo ---- */

static void on_info(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct handshake *h = user;

    (void)call;
    h->info = message_copy(message);
}

static void on_info_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct handshake *h = user;
    char words[WORDS_BYTES_MAX];
    ProtobufCMessage *info = h->info;

    (void)call;
    if (status->code != RPC_OK || !info) {
        snprintf(words, sizeof words, "GetInfo: %s: %s", rpc_code_name(status->code),
                 status->code == RPC_OK ? "no memory for the answer" : status->message);
        tell(h, words);
        ask_again(h);
        return;
    }
    h->info = NULL; /* the handshake may be over when the owner returns */
    set_state(h, HANDSHAKE_ASKED);
    h->ops->asked(h->user, (const Pluginregistration__PluginInfo *)info, h->uid);
    protobuf_c_message_free_unpacked(info, NULL);
}

static const struct rpc_call_ops INFO_OPS = {.message = on_info, .done = on_info_done};

/* Calls tell their ends themselves; while the owner decides there is none. */
static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct handshake *h = user;

    (void)reason;
    if (h->channel == channel) {
        h->channel = NULL;
        rpc_channel_close(channel);
    }
}

static const struct rpc_channel_ops CHANNEL_OPS = {.lost = on_lost};

/* 0 or a negative errno; `fd` is taken. */
static int ask(struct handshake *h, int fd)
{
    Pluginregistration__InfoRequest request = PLUGINREGISTRATION__INFO_REQUEST__INIT;
    struct ucred peer;
    int err = unix_peer(fd, &peer);

    if (err) {
        close(fd);
        return err;
    }
    h->uid = peer.uid;
    err = rpc_channel_open_fd(h->loop, fd, &CHANNEL_OPS, h, &h->channel);
    if (err)
        return err;
    h->budget = (struct message_budget){.left = REGISTRY_RECEIVED_BYTES_MAX};
    rpc_channel_set_budget(h->channel, &h->budget);
    if (!rpc_channel_call(h->channel, PLUGINREGISTRATION_GET_INFO, &request.base,
                          &pluginregistration__plugin_info__descriptor, false, HANDSHAKE_INFO_MS,
                          &INFO_OPS, h))
        return -ENOMEM;
    set_state(h, HANDSHAKE_ASKING);
    return 0;
}

static void on_dial(uv_timer_t *timer)
{
    static const struct rpc_status lost = {RPC_UNAVAILABLE, "the connection is gone"};
    struct handshake *h = timer->data;
    int err;

    if (h->state == HANDSHAKE_NOTIFYING) {
        on_notified(NULL, &lost, h);
        return;
    }
    err = unix_connect_file(h->file);
    h->refused = err == -ECONNREFUSED;
    if (err >= 0)
        err = ask(h, err);
    if (err < 0)
        dial_again(h, strerror(-err));
}

/* ---- life ---- */

struct handshake *handshake_start(uv_loop_t *loop, const char *path, int file,
                                  const struct handshake_ops *ops, void *user)
{
    struct handshake *h = must(calloc(1, sizeof *h));

    h->loop = loop;
    h->path = path;
    h->file = file;
    h->ops = ops;
    h->user = user;
    uv_timer_init(loop, &h->timer);
    h->timer.data = h;
    uv_timer_start(&h->timer, on_dial, 0, 0);
    return h;
}

static void on_closed(uv_handle_t *handle)
{
    struct handshake *h = handle->data;

    free(h->told);
    free(h);
}

void handshake_stop(struct handshake *h)
{
    if (!h)
        return;
    hang_up(h);
    uv_close((uv_handle_t *)&h->timer, on_closed);
}
