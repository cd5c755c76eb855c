/*
 * What the daemon's rooms say of themselves, put together by who ties them, for who asks.
 */
#ifndef SHIM_CONTROL_REPORT_H
#define SHIM_CONTROL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/control/limits.h"

#define REPORT_NAME_BYTES_MAX 128
#define REPORT_WORDS_BYTES_MAX 512

/* Something that is not as it should be. */
struct report_trouble {
    const char *what; /* one word, static */
    char why[REPORT_WORDS_BYTES_MAX];
    uint64_t since_ms; /* boot_now_ms() */
};

/* Texts that are empty, and pids that are 0, are not known. */
struct report {
    bool bridge_wanted;
    pid_t bridge_pid;
    char bridge_version[REPORT_NAME_BYTES_MAX];
    bool runtime_connected;
    uint64_t runtime_since_ms; /* boot_now_ms() */
    char runtime_name[REPORT_NAME_BYTES_MAX];
    char runtime_version[REPORT_NAME_BYTES_MAX];
    bool runtime_listed;
    pid_t kubelet_pid;
    const char *gate; /* static */
    uint64_t gate_held_ms;
    char kubelet_words[REPORT_WORDS_BYTES_MAX];
    struct report_trouble troubles[CONTROL_TROUBLES_MAX];
    size_t troubles_len;
};

/* Notes one; `why` is cut if it is too long, and what is beyond CONTROL_TROUBLES_MAX left out. */
void report_trouble(struct report *report, const char *what, const char *why, uint64_t since_ms);

#endif
