#include "shim/relay/refusals.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "shim/hash.h"
#include "shim/log.h"
#include "shim/rpc/rpc.h"

struct refusal {
    uint64_t key;
    int code;
    uint64_t same;   /* of the message but for its numbers */
    unsigned unsaid; /* since it was said last */
    unsigned count;  /* all in all */
    uint64_t said_ms;
    char text[REFUSALS_TEXT_BYTES_MAX];
    UT_hash_handle hh;
};

struct refusals {
    struct refusal *by_key; /* the one refused last at the end */
};

/* ---- what is the same ---- */

uint64_t refusals_key(const char *pod_uid, const char *container)
{
    return hash_text(hash_text(HASH_BEGIN, pod_uid), container);
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* The length of a number or a time, "7" or "1m30s" or "0.5s", as a word of its own; 0: none. */
static size_t number_len(const char *word)
{
    size_t len = strspn(word, "0123456789hms.");

    return isdigit((unsigned char)*word) && !in_word(word[len]) ? len : 0;
}

/* Ids of devices, names and paths count with their digits. */
static uint64_t hash_message(const char *message)
{
    uint64_t hash = HASH_BEGIN;
    bool begins = true; /* a word */

    while (*message) {
        size_t len = begins ? number_len(message) : 0;

        begins = len == 0 && (*message == ' ' || *message == '(');
        hash = hash_word(hash, (uint8_t)(len ? '0' : *message));
        message += len ? len : 1;
    }
    return hash;
}

/* ---- the table ---- */

struct refusals *refusals_new(void)
{
    return calloc(1, sizeof(struct refusals));
}

void refusals_free(struct refusals *refusals)
{
    struct refusal *refusal, *next;

    if (!refusals)
        return;
    HASH_ITER(hh, refusals->by_key, refusal, next) {
        HASH_DEL(refusals->by_key, refusal);
        free(refusal);
    }
    free(refusals);
}

static struct log_about about(enum log_kind kind, struct refusals_name name)
{
    return (struct log_about){.kind = kind, .pod = name.pod, .container = name.container};
}

static void tell_unsaid(const struct refusal *refusal, struct refusals_name name)
{
    const struct log_about refused = about(LOG_KIND_REFUSED, name);

    if (refusal->unsaid > 0)
        log_write_about(LOG_LEVEL_WARNING, &refused,
                        "CreateContainer was refused %u times more (%s): %s", refusal->unsaid,
                        rpc_code_name(refusal->code), refusal->text);
}

static void drop(struct refusals *refusals, struct refusal *refusal)
{
    HASH_DEL(refusals->by_key, refusal);
    free(refusal);
}

/* At the end of the order, so that the first was refused longest ago. NULL: out of memory. */
static struct refusal *take(struct refusals *refusals, uint64_t key)
{
    struct refusal *refusal;

    HASH_FIND(hh, refusals->by_key, &key, sizeof key, refusal);
    if (refusal) {
        HASH_DEL(refusals->by_key, refusal);
    } else {
        if (HASH_COUNT(refusals->by_key) >= REFUSALS_MAX) {
            tell_unsaid(refusals->by_key, (struct refusals_name){0});
            drop(refusals, refusals->by_key);
        }
        refusal = calloc(1, sizeof *refusal);
    }
    if (!refusal)
        return NULL;
    refusal->key = key;
    HASH_ADD(hh, refusals->by_key, key, sizeof refusal->key, refusal);
    if (refusal->hh.tbl)
        return refusal;
    free(refusal);
    return NULL;
}

static void say(struct refusals_name name, int code, const char *message, unsigned count)
{
    const struct log_about refused = {.kind = LOG_KIND_REFUSED,
                                      .resource = name.resource,
                                      .pod = name.pod,
                                      .container = name.container};
    char times[64] = "";

    if (count > 1)
        snprintf(times, sizeof times, ", %u times by now", count);
    log_write_about(LOG_LEVEL_WARNING, &refused, "CreateContainer refused (%s%s): %s",
                    rpc_code_name(code), times, message);
}

void refusals_add(struct refusals *refusals, uint64_t key, struct refusals_name name,
                  uint64_t now_ms, int code, const char *message)
{
    struct refusal *refusal = take(refusals, key);
    uint64_t same = hash_message(message);
    bool is_same;

    if (!refusal) {
        say(name, code, message, 1);
        return;
    }
    is_same = refusal->count > 0 && refusal->code == code && refusal->same == same;
    if (!is_same) {
        tell_unsaid(refusal, name);
        refusal->count = refusal->unsaid = 0;
    }
    refusal->code = code;
    refusal->same = same;
    snprintf(refusal->text, sizeof refusal->text, "%s", message);
    refusal->count++;
    refusal->unsaid++;
    if (is_same && now_ms - refusal->said_ms < REFUSALS_TELL_MS)
        return;
    say(name, code, message, refusal->count);
    refusal->unsaid = 0;
    refusal->said_ms = now_ms;
}

void refusals_end(struct refusals *refusals, uint64_t key, struct refusals_name name)
{
    const struct log_about over = about(LOG_KIND_REFUSALS_OVER, name);
    struct refusal *refusal;

    HASH_FIND(hh, refusals->by_key, &key, sizeof key, refusal);
    if (!refusal)
        return;
    if (refusal->count > 1)
        log_write_about(LOG_LEVEL_INFO, &over,
                        "CreateContainer goes on; it was refused %u times (%s), the last time: %s",
                        refusal->count, rpc_code_name(refusal->code), refusal->text);
    drop(refusals, refusal);
}
