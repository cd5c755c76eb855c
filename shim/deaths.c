#include "shim/deaths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/boot_clock.h"
#include "shim/file.h"
#include "shim/hash.h"
#include "shim/log.h"
#include "shim/path.h"

/* What is read of the file: its end. */
#define NOTES_MAX (2 * DEATHS_HELD_MAX)
/* A stack of its own for the handler: the other one may be used up. */
#define STACK_BYTES 65536

struct note {
    uint64_t at_ms; /* of the boot's clock */
    uint64_t job;
};

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define SIGNALS_LEN (sizeof SIGNALS / sizeof *SIGNALS)

static char path[PATH_MAX]; /* "": nothing is noted */
static char mark_path[PATH_MAX + sizeof DEATHS_MARK_SUFFIX];
/* At what the thread of the messages is; its job is 0 while it is at none. In a page of the mark's
 * file, or, if there is none, seen by nobody. */
static struct note unseen;
static volatile struct note *mark = &unseen;
static bool mark_made; /* or it is not ours to make */
static struct sigaction before[SIGNALS_LEN];
static struct note notes[NOTES_MAX]; /* of earlier processes, the oldest first */
static size_t notes_len;
static uint64_t held[DEATHS_HELD_MAX];
static volatile size_t held_len;
static _Thread_local volatile uint64_t entered;

/* ---- in the handler: nothing but what signal-safety(7) allows ---- */

/* Its job is a message's. */
static bool is_digest(uint64_t job)
{
    return job > DEATHS_SNAPSHOT;
}

static int open_to_write(const char *file)
{
    return open(file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static void put_note(int fd, uint64_t job)
{
    const struct note note = {.at_ms = boot_now_ms(), .job = job};

    if (write(fd, &note, sizeof note) < 0)
        return; /* it dies all the same */
}

static void on_fatal(int number)
{
    int fd = -1;

    mark->job = DEATHS_NO_JOB; /* it is noted here */
    if (entered || held_len > 0)
        fd = open_to_write(path);
    if (fd >= 0 && entered)
        put_note(fd, entered);
    for (size_t i = 0; fd >= 0 && !entered && i < held_len; i++)
        put_note(fd, held[i]);
    for (size_t i = 0; i < SIGNALS_LEN; i++) {
        if (SIGNALS[i] == number)
            sigaction(number, &before[i], NULL);
    }
    raise(number); /* delivered on return */
}

static void install(void)
{
    static char stack[STACK_BYTES];
    const stack_t room = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK};

    sigaltstack(&room, NULL);
    for (size_t i = 0; i < SIGNALS_LEN; i++)
        sigaction(SIGNALS[i], &action, &before[i]);
}

/* ---- what was noted ---- */

/* The last of a file's, `most` at most; how many. */
static size_t read_file(const char *file, struct note *out, size_t most)
{
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const off_t size = sizeof *out, room = (off_t)most * size;
    size_t bytes = 0;
    struct stat st;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_size > room)
            lseek(fd, (st.st_size - room) / size * size, SEEK_SET);
        if (file_read(fd, out, (size_t)room, &bytes) < 0)
            bytes = 0;
    }
    close(fd);
    return bytes / sizeof *out;
}

/* What the process before was at when somebody ended it. */
static void take_mark(void)
{
    struct note note;
    int fd;

    if (read_file(mark_path, &note, 1) != 1 || !is_digest(note.job))
        return;
    fd = open_to_write(path);
    if (fd < 0)
        return;
    if (write(fd, &note, sizeof note) < 0)
        log_warning("%s: %s", path, strerror(errno));
    close(fd);
}

/* Whether the mark is one's who lives: a second daemon is started by hand beside the first. */
static bool is_anothers(void)
{
    int fd = open(mark_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

    if (fd >= 0)
        close(fd);
    return locked;
}

/* A new file, so that nobody else can make it shorter, whose page there is: a store that finds no
 * room would be fatal. It is locked for as long as this process lives (is_anothers()): the page
 * keeps what was opened, and the lock with it, without a descriptor. */
static void make_mark(void)
{
    const struct note none = {0};
    void *page = MAP_FAILED;
    int fd;

    mark_made = true;
    fd = open(mark_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, &none, sizeof none) == sizeof none)
        page = mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
        flock(fd, LOCK_EX | LOCK_NB);
        mark = page;
    }
    close(fd);
}

void deaths_watch(const char *file)
{
    snprintf(path, sizeof path, "%s", file);
    snprintf(mark_path, sizeof mark_path, "%s" DEATHS_MARK_SUFFIX, file);
    mark_made = is_anothers();
    if (!mark_made) {
        take_mark();
        unlink(mark_path);
    }
    notes_len = read_file(path, notes, NOTES_MAX);
    /* Or the file would grow for ever. */
    if (notes_len > 0 && notes[notes_len - 1].at_ms + DEATHS_REMEMBERED_MS < boot_now_ms())
        deaths_forget();
    else if (notes_len == NOTES_MAX)
        (void)!file_replace(path, notes, sizeof notes);
    install();
}

void deaths_watch_beside(const char *beside, const char *name)
{
    char *file = path_beside(beside, name);

    deaths_watch(file);
    free(file);
}

bool deaths_of(uint64_t job, unsigned times)
{
    uint64_t now_ms = boot_now_ms(), last_ms = 0;

    for (size_t i = notes_len; i > 0 && times > 0; i--) {
        const struct note *note = &notes[i - 1];

        if (note->job != job)
            continue;
        if (!last_ms)
            last_ms = note->at_ms;
        if (note->at_ms > now_ms || now_ms - last_ms > DEATHS_REMEMBERED_MS ||
            last_ms - note->at_ms > DEATHS_TOGETHER_MS)
            return false;
        times--;
    }
    return times == 0;
}

void deaths_forget(void)
{
    notes_len = 0;
    unlink(path);
}

/* ---- jobs ---- */

static void set_mark(uint64_t job)
{
    mark->job = DEATHS_NO_JOB;
    if (!job)
        return;
    if (!mark_made)
        make_mark();
    mark->at_ms = boot_now_ms();
    mark->job = job;
}

uint64_t deaths_enter(uint64_t job)
{
    uint64_t was = entered;

    entered = job;
    if (*path && (is_digest(job) || is_digest(was)))
        set_mark(is_digest(job) ? job : DEATHS_NO_JOB);
    return was;
}

void deaths_hold(uint64_t job)
{
    if (held_len < DEATHS_HELD_MAX) {
        held[held_len] = job;
        held_len++;
    }
}

void deaths_release(uint64_t job)
{
    for (size_t i = held_len; i > 0; i--) {
        if (held[i - 1] != job)
            continue;
        held[i - 1] = held[held_len - 1];
        held_len--;
        return;
    }
}

uint64_t deaths_digest(const uint8_t *message, size_t len)
{
    size_t count[256] = {0};
    uint64_t hash = HASH_BEGIN;

    for (size_t i = 0; i < len; i++)
        count[message[i]]++;
    for (size_t i = 0; i < 256; i++)
        hash = hash_word(hash, count[i]);
    return hash > DEATHS_SNAPSHOT ? hash : hash + DEATHS_SNAPSHOT + 1;
}
