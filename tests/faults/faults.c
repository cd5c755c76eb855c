/*
 * Preloaded into daemon, bridge and agent: their allocations, and the calls that they make of the
 * kernel through the C library, fail where and when fault_table.h says. SHIM_FAULTS is the table's
 * file. In any other program, as a shell between the test and the daemon, all goes its way.
 *
 * What libraries call is met, too. What the C library does inside, as the open() of fopen(), is
 * not, but for its allocations.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/fault_table.h"

static struct fault_table *table; /* NULL: nothing fails */
static bool begun;
static __thread bool inside; /* what is called to find out is no call of the program's */

/* ---- whether a call fails ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 33;
}

/* Of a frame: the module's name and the offset in it, which are the same in each process. */
static uint64_t frame_key(void *frame, const char **module, size_t *offset)
{
    Dl_info info;
    uint64_t key = 0;

    *module = "?";
    *offset = 0;
    if (!dladdr(frame, &info) || !info.dli_fname)
        return 0;
    *module = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
    *offset = (size_t)((char *)frame - (char *)info.dli_fbase);
    for (const char *at = *module; *at; at++)
        key = mix(key, (unsigned char)*at);
    return mix(key, *offset);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Where the library lies whose calls fail alone. */
static uintptr_t by_begin, by_end;

static int find_by(struct dl_phdr_info *info, size_t bytes, void *user)
{
    const char *name = strrchr(info->dlpi_name, '/');

    (void)bytes;
    (void)user;
    if (!name || strncmp(name + 1, table->by, strlen(table->by)) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > by_end)
            by_end = end;
    }
    by_begin = info->dlpi_addr;
    return 1;
}

static bool is_by(const void *frame)
{
    return (uintptr_t)frame >= by_begin && (uintptr_t)frame < by_end;
}

/* Of a sanitizer, which has threads begin, of libc, by which it does, or of this library. */
static bool is_sanitizers(const char *module)
{
    return strncmp(module, "libasan", strlen("libasan")) == 0 ||
           strncmp(module, "libshim_faults", strlen("libshim_faults")) == 0 ||
           strncmp(module, "libc.so", strlen("libc.so")) == 0;
}

static void describe(struct fault_site *site, const char *what, int err, void **frames, int n)
{
    int len = snprintf(site->text, sizeof site->text, "%s %d", what, err);

    for (int i = 0; i < n && len > 0 && (size_t)len < sizeof site->text; i++) {
        const char *module;
        size_t offset;

        frame_key(frames[i], &module, &offset);
        len +=
            snprintf(site->text + len, sizeof site->text - (size_t)len, " %s+%zx", module, offset);
    }
}

/* An error of a connection is its end, from either side: of the kubelet's to the bridge each costs
 * a registration. */
static bool may(int err)
{
    switch (err) {
    case ECONNRESET:
    case EPIPE:
        return table->connections;
    case ECONNREFUSED:
    case ECONNABORTED:
    case EMFILE:
    case ENFILE:
        return !table->memory_only;
    case ENOMEM:
        return !table->connections;
    default:
        return !table->connections && !table->memory_only;
    }
}

/* With which of these errnos `what` fails now; 0: it does not. */
static __attribute__((noinline)) int fails(const char *what, const int *errnos, size_t n_errnos)
{
    void *all[FAULT_FRAMES_MAX + 2], **frames = all + 2; /* this one, and the wrapper */
    int n, err = 0;
    uint64_t key = 0;

    bool any = false, ours = false; /* not all of it is a sanitizer's own */

    if (!table || inside || atomic_load(&table->budget) <= 0)
        return 0;
    for (size_t i = 0; i < n_errnos; i++)
        any = any || may(errnos[i]);
    if (!any)
        return 0;
    inside = true;
    atomic_fetch_add(&table->calls, 1);
    if (!fault_table_is_time(table, now_ms())) {
        inside = false;
        return 0;
    }
    n = backtrace(all, FAULT_FRAMES_MAX + 2) - 2;
    if (*table->by && !(n > 1 && is_by(frames[1])) && !(n > 2 && is_by(frames[2]))) {
        inside = false;
        return 0;
    }
    for (int i = 0; i < n; i++) {
        const char *module;
        size_t offset;

        key = mix(key, frame_key(frames[i], &module, &offset));
        ours = ours || !is_sanitizers(module);
    }
    for (const char *at = what; *at; at++)
        key = mix(key, (unsigned char)*at);
    for (size_t i = 0; i < n_errnos && ours && !err; i++) {
        struct fault_site *site;
        uint64_t with = mix(key, (uint64_t)errnos[i]);

        if (may(errnos[i]) && fault_table_take(table, with ? with : 1, now_ms(), &site)) {
            err = errnos[i];
            describe(site, what, err, frames, n);
        }
    }
    inside = false;
    return err;
}

#define FAILS(what, ...)                                                                           \
    fails(what, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

__attribute__((constructor)) static void faults_init(void)
{
    const char *path = getenv("SHIM_FAULTS"), *name;
    char exe[256];
    void *first[1];
    long len = syscall(SYS_readlink, "/proc/self/exe", exe, sizeof exe - 1);

    backtrace(first, 1); /* loads what it needs */
    begun = true;
    if (!path || len < 0)
        return;
    exe[len] = '\0';
    name = strrchr(exe, '/');
    if (!name || strncmp(name + 1, "cri-device-shim", strlen("cri-device-shim")) != 0)
        return;
    table = fault_table_map(path);
    if (table && *table->program && strcmp(name + 1, table->program) != 0)
        table = NULL;
    if (table && *table->by)
        dl_iterate_phdr(find_by, NULL);
}

/* ---- memory ---- */

/* What is asked for before this library begins, which does last: a sanitizer's functions are not to
 * be called before it has begun itself. It is never given back. */
static char early[4 << 20];
static size_t early_used;

static void *early_memory(size_t bytes)
{
    size_t at = early_used;

    early_used += (bytes + 15) & ~(size_t)15;
    return early_used <= sizeof early ? early + at : NULL;
}

static bool is_early(const void *memory)
{
    return (const char *)memory >= early && (const char *)memory < early + sizeof early;
}

/* The real function of that name in `real`. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    if (!begun)
        return early_memory(bytes);
    REAL(malloc)
    return FAILS("malloc", ENOMEM) ? no_memory() : real(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    if (!begun)
        return early_memory(n * bytes);
    REAL(calloc)
    return FAILS("calloc", ENOMEM) ? no_memory() : real(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
    if (!begun || is_early(old)) {
        size_t left = old ? (size_t)(early + sizeof early - (char *)old) : 0;
        void *memory = malloc(bytes);

        return memory && old ? memcpy(memory, old, bytes < left ? bytes : left) : memory;
    }
    REAL(realloc)
    return bytes && FAILS("realloc", ENOMEM) ? no_memory() : real(old, bytes);
}

void *reallocarray(void *old, size_t n, size_t bytes)
{
    if (!begun || is_early(old))
        return realloc(old, n * bytes);
    REAL(reallocarray)
    return FAILS("reallocarray", ENOMEM) ? no_memory() : real(old, n, bytes);
}

void free(void *memory)
{
    if (!memory || is_early(memory))
        return;
    REAL(free)
    real(memory);
}

/* ---- calls of the kernel ---- */

/* One that fails before anything was done. */
#define CALL(type, name, declared, given, failed, ...)                                             \
    type name declared                                                                             \
    {                                                                                              \
        int err;                                                                                   \
        REAL(name)                                                                                 \
                                                                                                   \
        err = FAILS(#name, __VA_ARGS__);                                                           \
        if (!err)                                                                                  \
            return real given;                                                                     \
        errno = err;                                                                               \
        return failed;                                                                             \
    }

#define CALL_OF_ANY(type, name, declared, given, of_file, of_socket)                               \
    type name declared                                                                             \
    {                                                                                              \
        int err;                                                                                   \
        REAL(name)                                                                                 \
                                                                                                   \
        err = is_socket(fd) ? FAILS(#name, EINTR, of_socket) : FAILS(#name, EINTR, of_file);       \
        if (!err)                                                                                  \
            return real given;                                                                     \
        errno = err;                                                                               \
        return -1;                                                                                 \
    }

static bool is_socket(int fd)
{
    struct stat st;

    return syscall(SYS_fstat, fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Files. */
CALL_OF_ANY(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), EIO, ECONNRESET)
CALL_OF_ANY(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), ENOSPC, EPIPE)
CALL(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), -1, EIO)
CALL(ssize_t, pread64, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), -1, EIO)
CALL(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), -1, ENOSPC)
CALL(ssize_t, pwrite64, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), -1,
     ENOSPC)
CALL(ssize_t, writev, (int fd, const struct iovec *data, int n), (fd, data, n), -1, EINTR, EPIPE)
CALL(ssize_t, pwritev2, (int fd, const struct iovec *data, int n, off_t at, int flags),
     (fd, data, n, at, flags), -1, EAGAIN, ENOSPC)
CALL(int, ftruncate, (int fd, off_t n), (fd, n), -1, EIO)
CALL(int, ftruncate64, (int fd, off_t n), (fd, n), -1, EIO)
CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), -1, ENOSPC)
CALL(int, fsync, (int fd), (fd), -1, EIO)
CALL(int, fdatasync, (int fd), (fd), -1, EIO)
CALL(int, rename, (const char *from, const char *to), (from, to), -1, ENOSPC)
CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1, ENOSPC)
CALL(int, unlink, (const char *path), (path), -1, EACCES)
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), -1, EACCES)
CALL(int, symlinkat, (const char *to, int at, const char *path), (to, at, path), -1, ENOSPC)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
CALL(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), -1, ENOSPC)
CALL(int, chmod, (const char *path, mode_t mode), (path, mode), -1, EPERM)
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, EPERM)
CALL(int, stat, (const char *path, struct stat *out), (path, out), -1, EACCES)
CALL(int, lstat, (const char *path, struct stat *out), (path, out), -1, EACCES)
CALL(int, fstat, (int fd, struct stat *out), (fd, out), -1, EIO)
CALL(int, fstatat, (int at, const char *path, struct stat *out, int flags), (at, path, out, flags),
     -1, EACCES)
CALL(ssize_t, readlink, (const char *path, char *out, size_t n), (path, out, n), -1, EACCES)
CALL(ssize_t, readlinkat, (int at, const char *path, char *out, size_t n), (at, path, out, n), -1,
     EACCES)
CALL(off_t, lseek, (int fd, off_t to, int from), (fd, to, from), -1, EINVAL)
CALL(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
CALL(int, inotify_init1, (int flags), (flags), -1, EMFILE)
CALL(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), -1,
     ENOSPC)
CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, ENFILE)
CALL(ssize_t, getrandom, (void *data, size_t n, unsigned flags), (data, n, flags), -1, EINTR)

/* Sockets. */
CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE,
     ENFILE)
CALL(int, socketpair, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds), -1, EMFILE)
CALL(int, bind, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), -1, EADDRINUSE)
CALL(int, listen, (int fd, int n), (fd, n), -1, EADDRINUSE)
CALL(int, connect, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), -1, EAGAIN,
     ECONNREFUSED)
CALL(int, accept4, (int fd, struct sockaddr *from, socklen_t *n, int flags), (fd, from, n, flags),
     -1, EMFILE, ENFILE, ECONNABORTED)
CALL(int, accept, (int fd, struct sockaddr *from, socklen_t *n), (fd, from, n), -1, EMFILE, ENFILE)
CALL(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags), -1, EINTR,
     ECONNRESET)
CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1, EINTR,
     ECONNRESET)
CALL(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags), -1,
     EAGAIN, EPIPE)
CALL(ssize_t, sendto,
     (int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t bytes),
     (fd, data, n, flags, to, bytes), -1, EAGAIN, ENOBUFS, EPIPE)
CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1,
     EAGAIN, ENOBUFS, EPIPE)
CALL(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n),
     (fd, level, name, value, n), -1, ENOBUFS)
CALL(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
     (fd, level, name, value, n), -1, ENOBUFS)
CALL(int, shutdown, (int fd, int how), (fd, how), -1, ENOTCONN)

/* What the loop and its threads need. */
CALL(int, epoll_create1, (int flags), (flags), -1, EMFILE)
CALL(int, epoll_wait, (int fd, struct epoll_event *events, int n, int ms), (fd, events, n, ms), -1,
     EINTR)
CALL(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask),
     (fd, events, n, ms, mask), -1, EINTR)
CALL(int, epoll_ctl, (int fd, int what, int other, struct epoll_event *event),
     (fd, what, other, event), -1, ENOMEM)
CALL(int, eventfd, (unsigned first, int flags), (first, flags), -1, EMFILE)
CALL(int, pipe2, (int fds[2], int flags), (fds, flags), -1, EMFILE)
CALL(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t from),
     (at, n, prot, flags, fd, from), MAP_FAILED, ENOMEM)
CALL(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd, off_t from),
     (at, n, prot, flags, fd, from), MAP_FAILED, ENOMEM)

/* pthread functions return their error. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *user)
{
    int err;
    REAL(pthread_create)

    err = FAILS("pthread_create", EAGAIN);
    return err ? err : real(thread, attr, run, user);
}

/* It has closed whatever it says. */
int close(int fd)
{
    int err, result;
    REAL(close)

    err = FAILS("close", EINTR, EIO);
    result = real(fd);
    if (!err || result < 0)
        return result;
    errno = err;
    return -1;
}

/* Those with a mode that is there or not. */
#define OPEN(name, declared, given)                                                                \
    int name declared                                                                              \
    {                                                                                              \
        va_list more;                                                                              \
        mode_t mode;                                                                               \
        int err;                                                                                   \
        REAL(name)                                                                                 \
                                                                                                   \
        va_start(more, flags);                                                                     \
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                           \
        va_end(more);                                                                              \
        err = FAILS(#name, EMFILE, EACCES);                                                        \
        if (!err)                                                                                  \
            return real given;                                                                     \
        errno = err;                                                                               \
        return -1;                                                                                 \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
