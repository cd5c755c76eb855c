#include "shim/agent/logind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/agent/bus.h"
#include "shim/agent/systemd.h"
#include "shim/must.h"

#define NAME "org.freedesktop.login1"
#define PATH "/org/freedesktop/login1"
#define MANAGER "org.freedesktop.login1.Manager"
#define PROPERTIES "org.freedesktop.DBus.Properties"
/* Of a lock: who has it. The kubelet's is in pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go. */
#define WE "cri-device-shim"
#define KUBELET "kubelet"

struct logind {
    const struct logind_ops *ops;
    void *user;
    struct bus *bus;
    sd_bus *connection;       /* NULL: none */
    const struct systemd *sd; /* there is one while there is a connection, and what came of it */
    uv_timer_t timer;
    struct logind_said said;
    struct logind_said read; /* the reading under way */
    bool reading;
    bool again; /* another is to follow */
    bool inhibiting;
};

/* ---- what it says ---- */

static void not_known(struct logind *logind, const char *words)
{
    logind->said.known = false;
    snprintf(logind->said.trouble, sizeof logind->said.trouble, "%s", words);
    logind->ops->said(logind->user, &logind->said);
}

/* Whether the answer is an error; then the connection is given up. */
static bool is_error(struct logind *logind, sd_bus_message *message)
{
    const sd_bus_error *error = logind->sd->message_get_error(message);
    char words[ERROR_WORDS_BYTES_MAX];

    if (!error)
        return false;
    snprintf(words, sizeof words, "logind: %s", error->message);
    bus_give_up(logind->bus, words);
    return true;
}

/* The rest of what could not be read is of no use. */
static int not_understood(struct logind *logind)
{
    bus_give_up(logind->bus, "logind: its answer is not understood");
    return 0;
}

static int on_shutting_down(sd_bus_message *message, void *user, sd_bus_error *error)
{
    struct logind *logind = user;
    int value;

    (void)error;
    if (is_error(logind, message))
        return 0;
    if (logind->sd->message_read(message, "v", "b", &value) < 0)
        return not_understood(logind);
    logind->read.shutting_down = value;
    return 0;
}

static int on_limit(sd_bus_message *message, void *user, sd_bus_error *error)
{
    struct logind *logind = user;
    uint64_t us;

    (void)error;
    if (is_error(logind, message))
        return 0;
    if (logind->sd->message_read(message, "v", "t", &us) < 0)
        return not_understood(logind);
    logind->read.limit_ms = us / 1000;
    return 0;
}

/* Whether `what`, names with colons between them, has a shutdown. */
static bool has_shutdown(const char *what)
{
    while (*what) {
        size_t len = strcspn(what, ":");

        if (len == strlen("shutdown") && strncmp(what, "shutdown", len) == 0)
            return true;
        what += len + (what[len] == ':');
    }
    return false;
}

static int read_inhibitors(struct logind *logind, sd_bus_message *message)
{
    const char *what, *who, *mode;
    int r = logind->sd->message_enter_container(message, 'a', "(ssssuu)");

    while (r > 0) {
        r = logind->sd->message_read(message, "(ssssuu)", &what, &who, NULL, &mode, NULL, NULL);
        if (r <= 0 || strcmp(mode, "delay") != 0 || !has_shutdown(what))
            continue;
        logind->read.ours |= strcmp(who, WE) == 0;
        logind->read.kubelets |= strcmp(who, KUBELET) == 0;
    }
    return r;
}

/* The last of a reading: logind answers in the order in which it is asked. */
static int on_inhibitors(sd_bus_message *message, void *user, sd_bus_error *error)
{
    struct logind *logind = user;

    (void)error;
    if (is_error(logind, message))
        return 0;
    if (read_inhibitors(logind, message) < 0)
        return not_understood(logind);
    logind->read.known = true;
    logind->said = logind->read;
    logind->reading = false;
    if (logind->again)
        logind_read(logind);
    logind->ops->said(logind->user, &logind->said);
    return 0;
}

static int ask(struct logind *logind, const char *property, sd_bus_message_handler_t handler)
{
    return logind->sd->call_method_async(logind->connection, NULL, NAME, PATH, PROPERTIES, "Get",
                                         handler, logind, "ss", MANAGER, property);
}

void logind_read(struct logind *logind)
{
    if (!logind->connection)
        return;
    if (logind->reading) {
        logind->again = true;
        return;
    }
    logind->reading = true;
    logind->again = false;
    memset(&logind->read, 0, sizeof logind->read);
    if (ask(logind, "PreparingForShutdown", on_shutting_down) < 0 ||
        ask(logind, "InhibitDelayMaxUSec", on_limit) < 0 ||
        logind->sd->call_method_async(logind->connection, NULL, NAME, PATH, MANAGER,
                                      "ListInhibitors", on_inhibitors, logind, NULL) < 0)
        bus_give_up(logind->bus, "logind cannot be asked");
    bus_called(logind->bus);
}

/* ---- locks ---- */

static void end_inhibiting(struct logind *logind, int fd, const char *words)
{
    if (!logind->inhibiting)
        return;
    logind->inhibiting = false;
    logind->ops->inhibited(logind->user, fd, words);
}

static int on_inhibited(sd_bus_message *message, void *user, sd_bus_error *error)
{
    struct logind *logind = user;
    const sd_bus_error *refused = logind->sd->message_get_error(message);
    int fd;

    (void)error;
    if (refused)
        end_inhibiting(logind, -1, refused->message);
    else if (logind->sd->message_read(message, "h", &fd) < 0 ||
             (fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0) /* its own goes with the message */
        end_inhibiting(logind, -1, "no descriptor came of it");
    else
        end_inhibiting(logind, fd, "");
    return 0;
}

void logind_inhibit(struct logind *logind)
{
    if (logind->inhibiting)
        return;
    logind->inhibiting = true;
    if (logind->sd->call_method_async(logind->connection, NULL, NAME, PATH, MANAGER, "Inhibit",
                                      on_inhibited, logind, "ssss", "shutdown", WE,
                                      "Pods are ended before the machine goes down", "delay") < 0)
        bus_give_up(logind->bus, "logind cannot be asked");
    bus_called(logind->bus);
}

/* ---- the bus ---- */

/* A shutdown has begun or was cancelled, or a lock has come or gone. */
static int on_changed(sd_bus_message *message, void *user, sd_bus_error *error)
{
    (void)message;
    (void)error;
    logind_read(user);
    return 0;
}

static int on_owner_changed(sd_bus_message *message, void *user, sd_bus_error *error)
{
    struct logind *logind = user;
    const char *owner;

    (void)error;
    if (logind->sd->message_read(message, "sss", NULL, NULL, &owner) < 0)
        return 0;
    if (*owner)
        logind_read(logind);
    else
        not_known(logind, "logind has ended");
    return 0;
}

/* First what is to be told of, then how it is: nothing falls in between. */
static void on_connected(void *user, sd_bus *connection)
{
    struct logind *logind = user;

    logind->connection = connection;
    logind->sd = systemd_load(NULL);
    if (logind->sd->match_signal_async(connection, NULL, NAME, PATH, MANAGER, "PrepareForShutdown",
                                       on_changed, NULL, logind) < 0 ||
        logind->sd->add_match_async(connection, NULL,
                                    "type='signal',sender='" NAME "',path='" PATH "',"
                                    "interface='" PROPERTIES "',member='PropertiesChanged',"
                                    "arg0='" MANAGER "'",
                                    on_changed, NULL, logind) < 0 ||
        logind->sd->add_match_async(connection, NULL,
                                    "type='signal',sender='org.freedesktop.DBus',"
                                    "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                                    "arg0='" NAME "'",
                                    on_owner_changed, NULL, logind) < 0)
        bus_give_up(logind->bus, "logind cannot be watched");
    logind_read(logind);
}

static void on_lost(void *user, const char *words)
{
    struct logind *logind = user;

    logind->connection = NULL;
    logind->reading = logind->again = false;
    end_inhibiting(logind, -1, words);
    not_known(logind, words);
}

/* ---- life ---- */

static void on_timer(uv_timer_t *timer)
{
    logind_read(timer->data);
}

struct logind *logind_start(uv_loop_t *loop, const struct logind_ops *ops, void *user)
{
    static const struct bus_ops bus_ops = {on_connected, on_lost};
    struct logind *logind = must(calloc(1, sizeof *logind));

    logind->ops = ops;
    logind->user = user;
    uv_timer_init(loop, &logind->timer);
    logind->timer.data = logind;
    uv_timer_start(&logind->timer, on_timer, LOGIND_READ_MS, LOGIND_READ_MS);
    logind->bus = bus_start(loop, &bus_ops, logind);
    return logind;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void logind_stop(struct logind *logind)
{
    if (!logind)
        return;
    bus_stop(logind->bus);
    uv_close((uv_handle_t *)&logind->timer, on_closed);
}
