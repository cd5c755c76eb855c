/*
 * What DRA drivers have said of their devices' health: of each device the newest word, as the
 * driver said it, unknown fields and all, but for a message that is too long, which is cut. Kept by
 * the daemon, and by the bridge for the kubelet's streams.
 *
 * The kubelet counts a word's age from when it has it, and holds a device Unknown whose word is
 * older than its own timeout (pkg/kubelet/cm/dra/healthinfo.go). So each word is passed on once to
 * whoever is there, not again with others' changes, which would make it look new; and to who comes
 * later only while it is fresh. Where a driver is gone the kubelet forgets what it has said
 * (manager.go); whoever was told a word that holds no longer is told UNKNOWN in its place.
 */
#ifndef SHIM_HEALTH_WORDS_H
#define SHIM_HEALTH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cri-proto/dra_health_v1alpha1.pb-c.h"

/* What a pod's status shows of a message. A kubelet cuts a longer one there, in the middle of a
 * character, too, and then the API server refuses all that it says of the pod (manager.go). */
#define HEALTH_MESSAGE_BYTES_MAX 1024
/* One word, packed: names of 253 and 63 bytes, a message, and as much again for what is not known
 * yet. */
#define HEALTH_WORD_BYTES_MAX 4096
/* Of one driver, with what each word costs beside its bytes: some 4,000 devices with short words,
 * 400 with the longest message that is shown. The kubelet takes 4 MiB in one message. */
#define HEALTH_DRIVER_BYTES_MAX ((size_t)512 * 1024)
/* So all have 32 MiB at most, where each driver says as much as it can. */
#define HEALTH_DRIVERS_MAX 64
/* The kubelet's, of a word that has none. */
#define HEALTH_TIMEOUT_S 30

struct health_word {
    TAILQ_ENTRY(health_word) entry;
    const char *driver;
    const char *pool, *device;
    uint64_t number;     /* grows with each that is taken; from 1 */
    uint64_t source;     /* who has said it; the owner's, from 1; 0 if it is `over` */
    bool over;           /* says that what was said before holds no longer */
    uint64_t said_ms;    /* boot_now_ms() */
    uint64_t timeout_ms; /* so long it is fresh */
    size_t len;
    uint8_t *bytes; /* dra_health.v1alpha1.DeviceHealth */
};

/* Embedded in its owner; private. */
struct health_words {
    TAILQ_HEAD(health_word_list, health_word) list; /* by number */
    struct health_driver *drivers;
    uint64_t number; /* the last */
};

void health_words_init(struct health_words *words);
void health_words_fini(struct health_words *words);

/* Takes it, copied, in place of what was said of that device. False: it was said no later than that
 * one and is the same, or was said before it; it names no device; or there is no room for it, which
 * is logged once for a driver. Those that are not fresh at `said_ms` make room. */
bool health_words_say(struct health_words *words, const char *driver, uint64_t source,
                      uint64_t said_ms, const DraHealth__V1alpha1__DeviceHealth *health);

/* What `source` has said as that driver holds no longer: in place of each such word that is fresh
 * there is one that is `over`, with this text. */
void health_words_end(struct health_words *words, const char *driver, uint64_t source,
                      uint64_t now_ms, const char *message);
/* The same of one device, in the words of who has ended it, also if nothing is known of the device:
 * a process before may have passed something on. False: as health_words_say(), or it is over
 * already. */
bool health_words_end_one(struct health_words *words, const char *driver, uint64_t said_ms,
                          const DraHealth__V1alpha1__DeviceHealth *health);
/* Forgets all of it. */
void health_words_forget_all(struct health_words *words, const char *driver);

/* The first of those with a larger number, and the one after `word`; NULL: none. Until the next
 * change. */
const struct health_word *health_words_after(const struct health_words *words, uint64_t number);
const struct health_word *health_word_next(const struct health_word *word);

/* What was said last of the device; NULL: nothing. Until the next change. */
const struct health_word *health_words_find(const struct health_words *words, const char *driver,
                                            const char *pool, const char *device);

bool health_word_is_fresh(const struct health_word *word, uint64_t now_ms);

#endif
