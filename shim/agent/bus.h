/*
 * The system bus (D-Bus) on a loop of libuv's: one connection of sd-bus (sd-bus(3)), made anew for
 * ever.
 *
 *     NONE ──timer──▶ CONNECTED ──it ends, or is given up──▶ NONE
 *
 * The address is $DBUS_SYSTEM_BUS_ADDRESS, else /run/dbus/system_bus_socket. Nothing blocks: the
 * connection is set up, written and read as its socket has it.
 */
#ifndef SHIM_AGENT_BUS_H
#define SHIM_AGENT_BUS_H

#include <systemd/sd-bus.h>
#include <uv.h>

struct bus;

struct bus_ops {
    /* There is a connection, borrowed until lost(): what is called on it goes out once it is set
     * up. Replies and signals come from the loop; what they call may be bus_give_up(), and not
     * bus_stop(). */
    void (*connected)(void *user, sd_bus *connection);
    /* Once for each connected(), and for each attempt that came to none. Handlers of that
     * connection are not called any more. `words`: why, borrowed until return. */
    void (*lost)(void *user, const char *words);
};

/* Connects from the loop. `ops` and `user` are borrowed until the end. */
struct bus *bus_start(uv_loop_t *loop, const struct bus_ops *ops, void *user);
/* No callback follows. Accepts NULL. */
void bus_stop(struct bus *bus);

/* To be called after anything was called on the connection. */
void bus_called(struct bus *bus);

/* The connection is of no use, for `words`: lost() follows from the loop, and another attempt after
 * a while. */
void bus_give_up(struct bus *bus, const char *words);

#endif
