#include "shim/ctl/beside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/must.h"
#include "shim/rpc/rpc.h"

#define PROGRAM "cri-device-shim"
/* The status of a child that could not become it, as in a shell. */
#define CANNOT_RUN 127

/* ---- what it is run with ---- */

bool beside_find(char path[static PATH_MAX], const char *name, struct client_failure *failure)
{
    size_t bytes = strlen(name) + 1;
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - bytes);
    char *slash;

    if (len < 0)
        return client_fail(failure, RPC_UNKNOWN, "/proc/self/exe: %s", strerror(errno));
    path[len] = '\0';
    slash = strrchr(path, '/');
    memcpy(slash ? slash + 1 : path, name, bytes);
    if (access(path, X_OK) == 0)
        return true;
    return client_fail(failure, RPC_UNKNOWN, "%s, which would do this: %s", path, strerror(errno));
}

/* The program says so as well, but with one status for all. */
static bool judge_file(const char *path, struct client_failure *failure)
{
    if (access(path, R_OK) == 0)
        return true;
    return client_fail(failure,
                       errno == ENOENT   ? RPC_NOT_FOUND
                       : errno == EACCES ? RPC_PERMISSION_DENIED
                                         : RPC_FAILED_PRECONDITION,
                       "%s: %s", path, strerror(errno));
}

static char *option_of(const char *name, const char *value)
{
    char *text;

    if (asprintf(&text, "--%s=%s", name, value) < 0)
        abort(); /* out of memory */
    return text;
}

/* ---- running it ---- */

/* A file for all that is written to one of its streams: it can be read when it has ended, however
 * much that is. */
static FILE *stream_new(void)
{
    int fd = memfd_create(PROGRAM, MFD_CLOEXEC);
    FILE *stream = fd >= 0 ? fdopen(fd, "r+") : NULL;

    return must(stream);
}

/* For the caller to free. */
static char *stream_text(FILE *stream)
{
    char *text;
    long bytes;

    if (fseek(stream, 0, SEEK_END) < 0 || (bytes = ftell(stream)) < 0 ||
        fseek(stream, 0, SEEK_SET) < 0)
        abort(); /* it is memory */
    text = must(malloc((size_t)bytes + 1));
    text[fread(text, 1, (size_t)bytes, stream)] = '\0';
    return text;
}

static void become(const char *path, char *const *argv, FILE *out, FILE *err)
{
    if (dup2(fileno(out), STDOUT_FILENO) >= 0 && dup2(fileno(err), STDERR_FILENO) >= 0)
        execv(path, argv);
    _exit(CANNOT_RUN);
}

/* How it has ended, as waitpid(2) says it; -1: it has not begun. */
static int run_to_end(const char *path, char *const *argv, FILE *out, FILE *err)
{
    pid_t pid = fork(), ended;
    int status;

    if (pid < 0)
        return -1;
    if (pid == 0)
        become(path, argv, out, err);
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    return ended < 0 ? -1 : status;
}

/* Its last line is why it has failed; others, of one that has not, are warnings. */
static void take_words(char *words, bool failed, struct client_failure *failure)
{
    size_t len = strlen(words);
    char *last;

    while (len > 0 && words[len - 1] == '\n')
        words[--len] = '\0';
    last = strrchr(words, '\n');
    if (failed && last)
        *last++ = '\0';
    else if (failed)
        last = words;
    if (*words && last != words)
        fprintf(stderr, "%s\n", words);
    if (failed)
        client_fail(failure, RPC_FAILED_PRECONDITION, "%s",
                    *last ? last : PROGRAM " has ended without a word");
}

char *beside_run(const struct command_run *run, const char *option, const char *file,
                 const char *const more[BESIDE_ARGUMENTS_MAX], struct client_failure *failure)
{
    const char *config = command_given(run, "config");
    char path[PATH_MAX], *argv[BESIDE_ARGUMENTS_MAX + 4] = {path}, *words, *text;
    size_t len = 1, own;
    FILE *out, *err;
    int status;

    if (!judge_file(file, failure) || !beside_find(path, PROGRAM, failure))
        return NULL;
    argv[len++] = option_of(option, file);
    if (config)
        argv[len++] = option_of("config", config);
    own = len;
    for (size_t i = 0; i < BESIDE_ARGUMENTS_MAX && more[i]; i++)
        argv[len++] = (char *)(uintptr_t)more[i];
    out = stream_new();
    err = stream_new();
    status = run_to_end(path, argv, out, err);
    words = stream_text(err);
    text = stream_text(out);
    take_words(words, status != 0, failure);
    free(words);
    fclose(out);
    fclose(err);
    for (size_t i = 1; i < own; i++)
        free(argv[i]);
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

json_t *beside_ask(const struct command_run *run, const char *option, const char *file,
                   const char *const more[BESIDE_ARGUMENTS_MAX], struct client_failure *failure)
{
    char *text = beside_run(run, option, file, more, failure);
    json_t *answer = text ? json_loads(text, 0, NULL) : NULL;

    if (text && !answer)
        client_fail(failure, RPC_UNKNOWN, "what " PROGRAM " has answered is no JSON");
    free(text);
    return answer;
}

bool beside_judge_config(const struct command_run *run, const char *file,
                         struct client_failure *failure)
{
    return file || !command_given(run, "config") ||
           client_fail(failure, RPC_INVALID_ARGUMENT,
                       "--config is for a file that is named: the daemon knows its own");
}
