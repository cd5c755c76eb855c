/*
 * Frames that are put into what a kept socket is to write (RFC 9113 §6), within a change of its
 * state. No I/O.
 */
#ifndef SHIM_BRIDGE_H2_PUT_H
#define SHIM_BRIDGE_H2_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/bridge/kept_socket.h"

void h2_put_head(struct kept_socket *kept, size_t length, uint8_t type, uint8_t flags,
                 uint32_t stream_id);
/* A frame of one number. */
void h2_put_number(struct kept_socket *kept, uint8_t type, uint32_t stream_id, uint32_t number);

struct h2_setting {
    uint16_t id;
    uint32_t value;
};
void h2_put_settings(struct kept_socket *kept, const struct h2_setting *settings, size_t len);
void h2_put_goaway(struct kept_socket *kept, uint32_t last_id, uint32_t error);

/* Of a gRPC call: what stands in front of its messages; what ends it, behind them or, `only`,
 * alone. No table of the client's is changed by it (RFC 7541 §6.2.2). `text` is encoded. */
void h2_put_headers(struct kept_socket *kept, uint32_t stream_id);
void h2_put_status(struct kept_socket *kept, uint32_t stream_id, int code, const char *text,
                   bool only);

#endif
