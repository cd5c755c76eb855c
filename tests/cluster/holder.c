/* The first process of a container of a test: uses the devices that the container was given, and
 * tells what is wrong with them.
 *
 *     holder [-ciw] [-s SECONDS] [-x STATUS] [NAME=COUNT]...
 *     holder -k
 *
 * The variable NAME has the ids of COUNT devices, with commas between. For each the file
 * /held/lock.ID is locked until this process ends, by the kernel's own count: a device that is in
 * two running containers is seen however short that is. Lines go to /held/wrong, or if all is well
 * to /held/started: "POD_NAME POD_UID CONTAINER ID...", of the environment; on SIGTERM to
 * /held/told.
 *
 * -c: containers that have it, too, may have its devices at the same time.
 *
 * It ends with STATUS after SECONDS, or with 0 on SIGTERM; -i: it does not heed that. -k, as a hook
 * of the container: one line in /held/hooked; -w: it waits for that first, though not for ever. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HOOK_WAITS (30 * 50) /* of 20 ms each */

static char whose[512];
static char ids[4096];
static bool is_wrong, is_common;

static const char *env_of(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

/* One line in one write, so that those of several containers do not mix. */
__attribute__((format(printf, 2, 3))) static void say(const char *file, const char *format, ...)
{
    char line[8192];
    size_t at = (size_t)snprintf(line, sizeof line, "%s ", whose);
    va_list args;
    va_start(args, format);
    at += (size_t)vsnprintf(line + at, sizeof line - at - 1, format, args);
    va_end(args);
    if (at > sizeof line - 2)
        at = sizeof line - 2;
    line[at++] = '\n';
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, at) != (ssize_t)at)
        exit(100); /* seen as a pod that has failed */
    close(fd);
}

#define WRONG(...) (is_wrong = true, say("/held/wrong", __VA_ARGS__))

/* The lock's descriptor stays open. */
static void hold(const char *id)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "/dev/%s", id);
    if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode))
        WRONG("has no node for %s", id);
    snprintf(path, sizeof path, "/held/lock.%s", id);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (fd < 0) {
        WRONG("cannot open %s: %s", path, strerror(errno));
        return;
    }
    if (flock(fd, (is_common ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
        char holder[sizeof whose] = "";
        if (read(fd, holder, sizeof holder - 1) < 0)
            holder[0] = '\0';
        WRONG("has %s, which is also in %s", id, holder);
        return;
    }
    if (ftruncate(fd, 0) != 0 || write(fd, whose, strlen(whose)) < 0)
        WRONG("cannot write %s: %s", path, strerror(errno));
}

static void hold_all(char *wanted)
{
    char *count = strchr(wanted, '=');
    if (count == NULL)
        exit(101);
    *count++ = '\0';
    char given[4096];
    snprintf(given, sizeof given, "%s", env_of(wanted));
    long seen = 0;
    for (char *id = strtok(given, ","); id != NULL; id = strtok(NULL, ","), seen++) {
        hold(id);
        size_t at = strlen(ids);
        snprintf(ids + at, sizeof ids - at, " %s", id);
    }
    if (seen != strtol(count, NULL, 10))
        WRONG("wants %s %s, was given '%s'", count, wanted, env_of(wanted));
}

static bool is_hooked(void)
{
    static char text[1 << 20];
    int fd = open("/held/hooked", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[len < 0 ? 0 : len] = '\0';
    return strstr(text, whose) != NULL;
}

int main(int argc, char **argv)
{
    bool is_deaf = false, waits = false;
    long seconds = -1;
    int status = 0;
    snprintf(whose, sizeof whose, "%s %s %s", env_of("POD_NAME"), env_of("POD_UID"),
             env_of("CONTAINER"));
    for (int option; (option = getopt(argc, argv, "ciks:wx:")) != -1;) {
        if (option == 'c')
            is_common = true;
        else if (option == 'i')
            is_deaf = true;
        else if (option == 'k')
            return say("/held/hooked", "%s", ""), 0;
        else if (option == 'w')
            waits = true;
        else if (option == 's')
            seconds = strtol(optarg, NULL, 10);
        else if (option == 'x')
            status = (int)strtol(optarg, NULL, 10);
        else
            return 102;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    for (int i = optind; i < argc; i++)
        hold_all(argv[i]);
    if (!is_wrong)
        say("/held/started", "%s", ids);

    const struct timespec pause_20ms = {.tv_nsec = 20 * 1000 * 1000};
    for (int left = HOOK_WAITS; waits && left > 0 && !is_hooked(); left--)
        nanosleep(&pause_20ms, NULL);

    struct timespec end = {.tv_sec = seconds};
    if (is_deaf) {
        while (seconds < 0)
            pause();
        while (nanosleep(&end, &end) != 0)
            continue;
        return status;
    }
    int number = seconds < 0 ? sigwaitinfo(&signals, NULL) : sigtimedwait(&signals, NULL, &end);
    if (number == SIGTERM)
        return say("/held/told", "%s", ""), 0;
    return seconds < 0 ? 103 : status;
}
