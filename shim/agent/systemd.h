/*
 * libsystemd's sd-bus (sd-bus(3)), loaded when it is needed: with what it links itself
 * (compression, cryptography) it takes 700 KiB, which an agent that has nothing to do with the
 * machine's shutdown does not.
 */
#ifndef SHIM_AGENT_SYSTEMD_H
#define SHIM_AGENT_SYSTEMD_H

#include <systemd/sd-bus.h>

/* Each is sd_bus_ and its name here. */
struct systemd {
    __typeof__(sd_bus_open_system) *open_system;
    __typeof__(sd_bus_close_unref) *close_unref;
    __typeof__(sd_bus_set_method_call_timeout) *set_method_call_timeout;
    __typeof__(sd_bus_get_fd) *get_fd;
    __typeof__(sd_bus_get_events) *get_events;
    __typeof__(sd_bus_get_timeout) *get_timeout;
    __typeof__(sd_bus_process) *process;
    __typeof__(sd_bus_call_method_async) *call_method_async;
    __typeof__(sd_bus_match_signal_async) *match_signal_async;
    __typeof__(sd_bus_add_match_async) *add_match_async;
    __typeof__(sd_bus_message_get_error) *message_get_error;
    __typeof__(sd_bus_message_enter_container) *message_enter_container;
    __typeof__(sd_bus_message_read) *message_read;
};

/* For the life of the process. NULL: it is not there, or not as it should be, and *why, which may
 * be NULL, says so, until the next call. */
const struct systemd *systemd_load(const char **why);

#endif
