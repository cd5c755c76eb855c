#include "shim/level_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/file.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"

#define NAME_BYTES_MAX 16

/* ---- reading ---- */

struct reading {
    uv_work_t work;
    char *path, name[NAME_BYTES_MAX];
    int len; /* file_read_text() */
    void (*done)(void *user, int level);
    void *user;
};

static void on_read_work(uv_work_t *work)
{
    struct reading *reading = work->data;

    reading->len = file_read_text(reading->path, reading->name, sizeof reading->name);
}

static int level_read(struct reading *reading)
{
    int level = 0;

    if (reading->len >= 0) {
        reading->name[strcspn(reading->name, "\n")] = '\0';
        level = log_level_parse(reading->name);
    }
    if (level == 0 && reading->len != -ENOENT)
        log_warning("%s: %s; the level is that of the settings", reading->path,
                    reading->len < 0 ? strerror(-reading->len) : "no log level");
    return level;
}

static void on_read(uv_work_t *work, int status)
{
    struct reading *reading = work->data;

    (void)status; /* nobody cancels it */
    reading->done(reading->user, level_read(reading));
    free(reading->path);
    free(reading);
}

void level_file_read(uv_loop_t *loop, const char *state_dir, void (*done)(void *user, int level),
                     void *user)
{
    struct reading *reading = must(calloc(1, sizeof *reading));

    reading->path = path_join(state_dir, LEVEL_FILE);
    reading->done = done;
    reading->user = user;
    reading->work.data = reading;
    uv_queue_work(loop, &reading->work, on_read_work, on_read);
}

/* ---- writing ---- */

struct writing {
    uv_work_t work;
    char *path;
    int level, err;
    void (*done)(void *user, int level, int err);
    void *user;
};

static void on_work(uv_work_t *work)
{
    struct writing *writing = work->data;
    const char *name = log_level_name(writing->level);

    writing->err = name ? file_replace_synced(writing->path, name, strlen(name))
                        : file_remove_synced(writing->path);
}

static void on_worked(uv_work_t *work, int status)
{
    struct writing *writing = work->data;

    (void)status; /* nobody cancels it */
    writing->done(writing->user, writing->level, writing->err);
    free(writing->path);
    free(writing);
}

void level_file_write(uv_loop_t *loop, const char *state_dir, int level,
                      void (*done)(void *user, int level, int err), void *user)
{
    struct writing *writing = must(calloc(1, sizeof *writing));

    writing->path = path_join(state_dir, LEVEL_FILE);
    writing->level = level;
    writing->done = done;
    writing->user = user;
    writing->work.data = writing;
    uv_queue_work(loop, &writing->work, on_work, on_worked);
}
