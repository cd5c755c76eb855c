/*
 * libmicrohttpd, loaded when it is needed: with what it links itself (TLS) it takes 3 MiB, which a
 * daemon without metrics does not.
 */
#ifndef SHIM_METRICS_MICROHTTPD_H
#define SHIM_METRICS_MICROHTTPD_H

#include <microhttpd.h>

struct microhttpd {
    __typeof__(MHD_start_daemon) *start_daemon;
    __typeof__(MHD_stop_daemon) *stop_daemon;
    __typeof__(MHD_run) *run;
    __typeof__(MHD_get_timeout) *get_timeout;
    __typeof__(MHD_get_daemon_info) *get_daemon_info;
    __typeof__(MHD_get_connection_info) *get_connection_info;
    __typeof__(MHD_lookup_connection_value) *lookup_value;
    __typeof__(MHD_get_connection_values) *each_value;
    __typeof__(MHD_create_response_from_buffer) *create_response;
    __typeof__(MHD_add_response_header) *add_header;
    __typeof__(MHD_queue_response) *queue_response;
    __typeof__(MHD_destroy_response) *destroy_response;
};

/* For the life of the process. NULL: it is not there, or not as it should be; once said in the
 * log. */
const struct microhttpd *microhttpd_load(void);

#endif
