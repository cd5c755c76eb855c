/*
 * All that a person who is to help will ask for, in one file, and nothing that is secret: what the
 * commands that only read say, the machine, and the log of daemon, bridge and agent. Neither the
 * settings' file nor the checkpoint, which may have containers' environment in them.
 */
#include "shim/ctl/commands.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cri-proto/control_v1.pb-c.h"
#include "shim/ctl/archive.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"
#include "shim/version.h"

#define NAME_BYTES_MAX 96
/* Of a file, or of a program's words. */
#define PIECE_BYTES_MAX (4u * 1024 * 1024)
#define JOURNAL                                                                                    \
    "timeout 30 journalctl --no-pager -q -o short-iso -n 5000 -u cri-device-shim -u "              \
    "cri-device-shim-bridge "                                                                      \
    "-u cri-device-shim-agent 2>/dev/null"

struct support {
    const struct command_run *run;
    struct archive *archive;
    unsigned missing;
    bool hung; /* the daemon has not said even its status: it is not asked more */
};

/* ---- what the daemon says ---- */

static void put_failure(struct support *support, const char *name,
                        const struct client_failure *failure)
{
    char text[CLIENT_WORDS_BYTES_MAX + 1];
    int len = snprintf(text, sizeof text, "%s\n", failure->words);

    fprintf(stderr, "warning: %s: %s\n", name, failure->words);
    support->missing++;
    archive_add(support->archive, name, text, (size_t)len);
}

static void put_name(char out[static NAME_BYTES_MAX], const char *command, const char *ending)
{
    snprintf(out, NAME_BYTES_MAX, "%.60s%s", command, ending);
    for (char *c = out; *c; c++)
        if (*c == ' ')
            *c = '-';
}

/* As its JSON. */
static void put_command(struct support *support, const struct command *command,
                        char *const *arguments, size_t arguments_len, const char *as)
{
    struct command_run run = {.command = command,
                              .client = support->run->client,
                              .show = {.format = SHOW_JSON},
                              .arguments = arguments,
                              .arguments_len = arguments_len};
    struct client_failure failure = {0};
    char name[NAME_BYTES_MAX], *text = NULL;
    size_t len;
    bool done;

    run.show.out = must(open_memstream(&text, &len));
    if (support->hung)
        snprintf(failure.words, sizeof failure.words, "not asked: the daemon does not answer");
    done = !support->hung && command->run(&run, &failure);
    if (fclose(run.show.out) != 0)
        abort(); /* out of memory */
    if (done) {
        put_name(name, as, ".json");
        archive_add(support->archive, name, text, len);
    } else {
        put_name(name, as, ".error");
        put_failure(support, name, &failure);
    }
    if (command == &status_command)
        support->hung = failure.code == RPC_DEADLINE_EXCEEDED;
    free(text);
}

static void put_commands(struct support *support)
{
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->changes && commands[i]->arguments_min == 0)
            put_command(support, commands[i], NULL, 0, commands[i]->name);
    }
}

/* ---- what the machine says ---- */

static void put_stream(struct support *support, const char *name, FILE *stream)
{
    char *bytes = must(malloc(PIECE_BYTES_MAX));
    size_t len = fread(bytes, 1, PIECE_BYTES_MAX, stream);

    if (len > 0)
        archive_add(support->archive, name, bytes, len);
    free(bytes);
}

static void put_file(struct support *support, const char *name, const char *path)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return;
    put_stream(support, name, file);
    fclose(file);
}

static void put_machine(struct support *support)
{
    struct utsname kernel;
    char text[sizeof kernel + 256];
    FILE *journal;
    int len;

    uname(&kernel);
    len = snprintf(text, sizeof text, "cri-device-shimctl %s\n%s %s %s %s\n", version_text,
                   kernel.sysname, kernel.release, kernel.version, kernel.machine);
    archive_add(support->archive, "versions.txt", text, (size_t)len);
    put_file(support, "os-release.txt", "/etc/os-release");
    /* NOLINTNEXTLINE(cert-env33-c): the command is a constant */
    journal = popen(JOURNAL, "re");
    if (!journal)
        return;
    put_stream(support, "journal.txt", journal);
    pclose(journal);
}

/* ---- the command ---- */

/* What is written; NULL: nothing is. */
static const char *volatile unfinished;

/* A part of it would be in the way of the next. */
static void on_interrupt(int signal_number)
{
    if (unfinished)
        unlink(unfinished);
    raise(signal_number); /* by now it ends the process, as it would have */
}

static void take_care_of(const char *path)
{
    static const int SIGNALS[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND}, before;

    unfinished = path;
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) {
        sigaction(SIGNALS[i], NULL, &before);
        if (before.sa_handler == SIG_DFL)
            sigaction(SIGNALS[i], &action, NULL);
    }
}

static void name_it(char out[static NAME_BYTES_MAX])
{
    char host[HOST_NAME_MAX + 1] = "", when[32];
    time_t now = time(NULL);
    struct tm tm;

    gethostname(host, sizeof host - 1);
    gmtime_r(&now, &tm);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(out, NAME_BYTES_MAX, "cri-device-shim-%.30s-%s", host, when);
}

static bool run(const struct command_run *command_run, struct client_failure *failure)
{
    struct support support = {.run = command_run};
    char name[NAME_BYTES_MAX], beside[NAME_BYTES_MAX + 8];
    const char *path = beside;

    name_it(name);
    snprintf(beside, sizeof beside, "%s.tar.gz", name);
    if (command_run->arguments_len > 0)
        path = command_run->arguments[0];
    support.archive = archive_new(path, name);
    if (!support.archive)
        return client_fail(failure, RPC_UNKNOWN, "%s: %s", path, strerror(errno));
    take_care_of(path);
    put_commands(&support);
    client_rest(command_run->client); /* a journal takes its time */
    put_machine(&support);
    if (archive_finish(support.archive) < 0) {
        unlink(path);
        return client_fail(failure, RPC_UNKNOWN, "%s: %s", path, "it could not be written");
    }
    unfinished = NULL;
    if (command_run->show.format == SHOW_JSON) {
        json_t *all = must(json_object());

        json_value_set(all, "file", json_value_text(path));
        json_value_set(all, "missing", json_integer((json_int_t)support.missing));
        show_json(&command_run->show, all);
    } else {
        fprintf(command_run->show.out, "%s\n", path);
    }
    return true;
}

const struct command support_command = {
    .name = "support",
    .arguments = "[FILE]",
    .summary =
        "all that the commands that read say, versions and log, in one .tar.gz without secrets",
    .arguments_max = 1,
    .changes = true, /* each time another file */
    .run = run,
};
