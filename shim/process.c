#include "shim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/file.h"

#define COMM_BYTES_MAX (PROCESS_NAME_BYTES_MAX - 1)
/* The 22nd field counts from the process's name, the second. */
#define FIELDS_AFTER_COMM 20

static int spare = -1;
static bool keeps_spare;

void process_keep_spare(void)
{
    keeps_spare = true;
    if (spare < 0)
        spare = open("/dev/null", O_PATH | O_CLOEXEC);
}

/* As file_read_text(), also without a descriptor left. */
static int read_text(const char *path, char *text, size_t bytes)
{
    int len = file_read_text(path, text, bytes);

    if (len == -EMFILE && spare >= 0) {
        close(spare);
        spare = -1;
        len = file_read_text(path, text, bytes);
    }
    if (keeps_spare)
        process_keep_spare(); /* another thread may have been quicker, this time or before */
    return len;
}

static int read_proc(pid_t pid, const char *name, char *text, size_t bytes)
{
    char path[64];

    if (pid <= 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return read_text(path, text, bytes) > 0 ? 0 : -1;
}

int process_started(pid_t pid, uint64_t *started)
{
    char text[1024], *at, *end;

    if (read_proc(pid, "stat", text, sizeof text) < 0)
        return -1;
    at = strrchr(text, ')'); /* the name may hold anything, also a ')' */
    for (int i = 0; at && i < FIELDS_AFTER_COMM; i++)
        at = strchr(at + 1, ' ');
    if (!at)
        return -1;
    *started = strtoull(at + 1, &end, 10);
    return end > at + 1 ? 0 : -1;
}

/* As it is: it may hold anything, also a line feed before the one at its end. */
static int read_comm(pid_t pid, char comm[64])
{
    if (read_proc(pid, "comm", comm, 64) < 0)
        return -1;
    comm[strlen(comm) - 1] = '\0';
    return 0;
}

void process_name(pid_t pid, char out[PROCESS_NAME_BYTES_MAX])
{
    char comm[64];

    snprintf(out, PROCESS_NAME_BYTES_MAX, "%.15s", read_comm(pid, comm) < 0 ? "?" : comm);
    for (char *c = out; *c; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
}

bool process_is_one_of(pid_t pid, char *const *names, size_t names_len)
{
    char comm[64];

    if (read_comm(pid, comm) < 0)
        return false;
    for (size_t i = 0; i < names_len; i++) {
        if (strncmp(names[i], comm, COMM_BYTES_MAX) == 0)
            return true;
    }
    return false;
}
