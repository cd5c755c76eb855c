/*
 * Rows of the checkpoint: what the device manager's objects look like when stored
 * (checkpoint_v1.proto), and back.
 */
#ifndef DEVICEMGR_BOOKS_RECORD_H
#define DEVICEMGR_BOOKS_RECORD_H

#include "devicemgr/ports.h"
#include "devicemgr/things/allocation.h"
#include "devicemgr/things/claim.h"
#include "devicemgr/things/driver.h"
#include "devicemgr/things/ending.h"
#include "devicemgr/things/order.h"
#include "devicemgr/things/pod.h"
#include "devicemgr/things/resource.h"
#include "devicemgr/things/shutdown.h"

/* The value of a row; the caller frees it. `boot_id` is the boot of all times in ms. */
uint8_t *record_of_resource(const struct resource *resource, const char *boot_id,
                            size_t *bytes_len);
/* With the options that the commit under way makes the ones in force. */
uint8_t *record_of_allocation(const struct allocation *allocation, const char *boot_id,
                              size_t *bytes_len);
uint8_t *record_of_pod(const struct pod *pod, uint64_t now_ms, size_t *bytes_len);
uint8_t *record_of_order(const struct order *order, const char *boot_id, size_t *bytes_len);
uint8_t *record_of_driver(const struct driver *driver, size_t *bytes_len);
uint8_t *record_of_claim(const struct claim *claim, const char *boot_id, size_t *bytes_len);
uint8_t *record_of_ending(const struct ending *ending, const char *boot_id, size_t *bytes_len);
uint8_t *record_of_shutdown(const struct shutdown *shutdown, const char *boot_id,
                            size_t *bytes_len);

/*
 * These add what a row says; 0, or -1 with nothing changed: it is no such message, its key says
 * otherwise, or it breaks a rule.
 */

/* A stop time of `boot_id` is the endpoint's; one of another boot says nothing now. */
int record_restore_resource(struct resource **table, uint64_t now_ms, const char *boot_id,
                            const struct devicemgr_record *record)
    __attribute__((warn_unused_result));
/* Whether a container of it runs is not known, until a list asked for from `unknown_until_ms`
 * on. */
int record_restore_allocation(struct allocations *table, uint64_t unknown_until_ms,
                              const struct devicemgr_record *record)
    __attribute__((warn_unused_result));
/* A new sandbox that was to come yet may take as long from now as it might then. */
int record_restore_pod(struct pods *pods, uint64_t now_ms, const struct devicemgr_record *record)
    __attribute__((warn_unused_result));
int record_restore_order(struct orders *orders, uint64_t now_ms, const char *boot_id,
                         const struct devicemgr_record *record) __attribute__((warn_unused_result));
/* It is away since now. */
int record_restore_driver(struct drivers *drivers, uint64_t now_ms,
                          const struct devicemgr_record *record)
    __attribute__((warn_unused_result));
/* Its users may be in the making as if they had been asked for now. Since when it is prepared is
 * known if that was in `boot_id`. */
int record_restore_claim(struct claims *claims, uint64_t now_ms, const char *boot_id,
                         const struct devicemgr_record *record) __attribute__((warn_unused_result));
/* Moments of another boot say nothing now: who asked asks now, and nothing was sent. */
int record_restore_ending(struct endings *endings, uint64_t now_ms, const char *boot_id,
                          const struct devicemgr_record *record)
    __attribute__((warn_unused_result));
/* One of another boot is none; the row is there all the same. */
int record_restore_shutdown(struct shutdown *shutdown, uint64_t now_ms, const char *boot_id,
                            const struct devicemgr_record *record)
    __attribute__((warn_unused_result));

/* ---- for record_*.c ---- */

struct ProtobufCMessage;

/* The row as the value of a record; the caller frees it. */
uint8_t *record_pack(const struct ProtobufCMessage *row, size_t *bytes_len);

#endif
