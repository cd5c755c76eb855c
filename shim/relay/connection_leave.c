/* How a connection is left to the next process. */
#include <errno.h>
#include <poll.h>

#include "shim/relay/connection_inside.h"

bool connection_put_state(struct connection *c, __typeof__(journal_state) *put)
{
    const struct buffer unsent[2] = {c->ends[SESSION_CLIENT].waiting,
                                     c->ends[SESSION_RUNTIME].waiting};
    struct buffer state = {0};
    int r = session_freeze(c->session, &state);

    if (r == 0)
        put(c->kept.journal, &state, unsent, c->put_out);
    buffer_fini(&state);
    return r != -EAGAIN;
}

static bool can_go_on(const struct connection *c)
{
    return c->kept.journal && c->kept.sure && !c->closing && !c->finishing &&
           !journal_is_over(c->kept.journal);
}

/* The end that is within a header block of which more may come. NULL: none. */
static struct end *within_block(struct connection *c)
{
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME; i++) {
        if (session_is_within_block(c->session, (enum session_end)i) && !c->ends[i].ended)
            return &c->ends[i];
    }
    return NULL;
}

/* Waits for more of a block, and reads it. False: none has come. */
static bool read_of_block(struct connection *c, uint64_t until_ns)
{
    struct end *end = within_block(c);
    uint64_t now_ns = uv_hrtime();
    struct pollfd p = {.fd = end ? end->fd : -1, .events = POLLIN};

    if (!end || now_ns >= until_ns || poll(&p, 1, (int)((until_ns - now_ns) / 1000000)) <= 0)
        return false;
    connection_read(c, end);
    return true;
}

/* Of its calls nothing is decided here any more. */
static void let_go(struct connection *c)
{
    connection_close_handles(c);
    session_free(c->session);
    c->session = NULL;
}

/* What is within a block only this release goes on with. */
bool connection_leave(struct connection *c, uint64_t until_ns)
{
    while (can_go_on(c)) {
        if (connection_put_state(c, journal_move) || !read_of_block(c, until_ns)) {
            let_go(c);
            return true;
        }
    }
    return false;
}
