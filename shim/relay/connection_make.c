/* How a connection is made: of a client that has come, or of what a process before has left; and
 * the list of its owner's. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "shim/relay/connection_inside.h"
#include "shim/relay/limits.h"
#include "shim/relay/replay.h"
#include "shim/rpc/rpc.h"
#include "shim/rpc/unix_socket.h"

static struct connection *connection_new(const struct connection_world *world)
{
    struct connection *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->world = *world;
    c->ends[SESSION_CLIENT].fd = c->ends[SESSION_RUNTIME].fd = -1;
    return c;
}

static void init_timers(struct connection *c)
{
    uv_timer_init(c->world.loop, &c->linger);
    c->linger.data = c;
    uv_timer_init(c->world.loop, &c->look);
    c->look.data = c;
    c->handles = 2;
}

/* Takes the socket, also on failure. */
static int end_open(struct connection *c, struct end *end, int fd)
{
    int r = uv_poll_init(c->world.loop, &end->poll, fd);

    if (r < 0) {
        close(fd);
        return r;
    }
    end->poll.data = c;
    end->fd = fd;
    c->handles++;
    return 0;
}

/* Only a matter of speed, so that an error is none. */
static void widen(struct end *end)
{
    int bytes = RELAY_SOCKET_BYTES;

    if (setsockopt(end->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0) /* not root */
        (void)setsockopt(end->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static pid_t peer_pid(const struct end *end)
{
    struct ucred peer;

    return unix_peer(end->fd, &peer) < 0 ? 0 : peer.pid;
}

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

/* Without memory for it the connection's calls are not counted. */
void connection_count(struct connection *c)
{
    if (!c->world.tally || !(c->tally = calloc(1, sizeof *c->tally)))
        return;
    c->tally->counts = c->world.tally;
    c->tally->now_us = now_us;
    session_set_tally(c->session, c->tally);
}

void connection_uncount(struct connection *c)
{
    if (c->tally)
        tally_end_all(c->tally, RPC_CANCELLED);
    free(c->tally);
    c->tally = NULL;
}

/* Both ends are there. */
static void begin(struct connection *c)
{
    connection_count(c);
    if (c->kept.journal)
        journal_begin(c->kept.journal);
    session_begin(c->session, peer_pid(&c->ends[SESSION_CLIENT]));
    connection_look_at_journal(c);
    connection_look(c);
}

/* What is wanting here, or there for a moment: the client waits for that. */
static bool is_to_wait(int err)
{
    return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EAGAIN;
}

/* `fd`: its socket, which is taken; or why there is none. */
static void take_runtime(struct connection *c, int fd)
{
    bool is_open = fd >= 0 && end_open(c, &c->ends[SESSION_RUNTIME], fd) == 0;
    int sockets[2];

    c->world.ops->runtime(c->world.user, fd < 0 ? fd : 0);
    if (!is_open) {
        connection_close(c);
        return;
    }
    widen(&c->ends[SESSION_CLIENT]);
    widen(&c->ends[SESSION_RUNTIME]);
    sockets[SESSION_CLIENT] = c->ends[SESSION_CLIENT].fd;
    sockets[SESSION_RUNTIME] = fd;
    kept_init(&c->kept, c->world.store, sockets);
    begin(c);
}

int connection_accept(const struct connection_world *world, int client, const char *runtime_path,
                      struct connection **out)
{
    struct connection *c = connection_new(world);
    int runtime;

    if (!c)
        return -ENOMEM;
    c->session = session_new(&connection_session_ops, c, world->owner);
    runtime = c->session ? unix_connect(runtime_path) : -ENOMEM;
    if (is_to_wait(runtime)) {
        connection_fini(c);
        free(c);
        return runtime;
    }
    init_timers(c);
    if (end_open(c, &c->ends[SESSION_CLIENT], client) == 0) {
        take_runtime(c, runtime);
    } else {
        if (runtime >= 0)
            close(runtime);
        connection_close(c);
    }
    *out = c;
    return 0;
}

/* ---- going on ---- */

/* What the journal says, up to the last event. */
static int make_again(struct connection *c)
{
    struct journal *j = c->kept.journal;
    struct journal_start start;
    int r = journal_start(j, &start);

    if (r < 0)
        return r;
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME; i++) {
        c->ends[i].waiting = start.unsent[i];
        c->put_out[i] = start.put_out[i];
        c->taken[i] = start.taken[i];
    }
    if (start.session)
        r = session_thaw(start.session, start.session_len, &connection_session_ops, c,
                         c->world.owner, &c->session);
    else if (!(c->session = session_new(&connection_session_ops, c, c->world.owner)))
        r = -ENOMEM;
    if (r == 0)
        r = replay(j, c->session, c->put_out);
    if (r == 0 && c->no_memory)
        r = -ENOMEM;
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME && r == 0; i++)
        r = c->taken[i] <= c->put_out[i] ? 0 : -EPROTO;
    return r;
}

static bool open_ends(struct connection *c)
{
    bool client = end_open(c, &c->ends[SESSION_CLIENT], c->kept.sockets[SESSION_CLIENT]) == 0;

    return end_open(c, &c->ends[SESSION_RUNTIME], c->kept.sockets[SESSION_RUNTIME]) == 0 && client;
}

struct connection *connection_resume(const struct connection_world *world, struct kept *kept)
{
    struct connection *c = connection_new(world);
    int r = c ? 0 : -ENOMEM;

    if (c) {
        c->kept = *kept;
        c->replaying = true;
        r = make_again(c);
        c->replaying = false;
    }
    if (r < 0) {
        kept_end(kept);
        kept->journal = NULL;
        if (c) {
            c->kept = (struct kept){0};
            connection_fini(c);
        }
        free(c);
        return NULL;
    }
    init_timers(c);
    session_set_owner(c->session, c->world.owner);
    if (open_ends(c))
        begin(c);
    else
        connection_close(c);
    if (c->kept.journal)
        journal_settled(c->kept.journal);
    return c;
}

/* ---- the owner's list ---- */

struct connection *connection_next(const struct connection *c)
{
    return c->next;
}

void connection_link(struct connection *c, struct connection **head)
{
    DL_APPEND(*head, c);
}

void connection_unlink(struct connection *c, struct connection **head)
{
    DL_DELETE(*head, c);
}
