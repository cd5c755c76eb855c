#include "shim/cluster/removed_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cri-proto/resource_name.h"
#include "shim/cluster/limits.h"
#include "shim/file.h"
#include "shim/log.h"
#include "shim/must.h"

void removed_file_read(const char *path, void (*each)(void *user, const char *name), void *user)
{
    char *text = must(malloc(CLUSTER_REMOVED_BYTES_MAX)), *rest = text, *name;
    int len = file_read_text(path, text, CLUSTER_REMOVED_BYTES_MAX);

    if (len < 0 && len != -ENOENT)
        log_warning("%s: %s; what is in there is not told to the node", path, strerror(-len));
    while (len > 0 && (name = strsep(&rest, "\n"))) {
        if (resource_name_valid(name))
            each(user, name);
    }
    free(text);
}

/* ---- writing ---- */

static void on_work(uv_work_t *work)
{
    struct removed_file *file = work->data;

    file->err = 0;
    if (*file->text)
        file->err = file_replace(file->path, file->text, strlen(file->text));
    else if (unlink(file->path) < 0 && errno != ENOENT)
        file->err = -errno;
}

static void on_worked(uv_work_t *work, int status);

static void write_next(struct removed_file *file)
{
    file->text = file->next;
    file->next = NULL;
    if (file->text)
        uv_queue_work(file->loop, &file->work, on_work, on_worked);
}

static void on_worked(uv_work_t *work, int status)
{
    struct removed_file *file = work->data;
    int err = file->err;

    (void)status; /* nobody cancels it */
    free(file->text);
    write_next(file);
    file->written(file->user, err);
}

static char *text_of(const char *const *names, size_t len)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = must(open_memstream(&text, &bytes));

    for (size_t i = 0; i < len; i++)
        fprintf(file, "%s\n", names[i]);
    fclose(file);
    return must(text);
}

void removed_file_write(struct removed_file *file, const char *const *names, size_t len)
{
    free(file->next);
    file->next = text_of(names, len);
    if (!file->text)
        write_next(file);
}

bool removed_file_writes(const struct removed_file *file)
{
    return file->text != NULL;
}

/* ---- life ---- */

void removed_file_init(struct removed_file *file, uv_loop_t *loop, char *path,
                       void (*written)(void *user, int err), void *user)
{
    *file = (struct removed_file){.loop = loop, .path = path, .written = written, .user = user};
    file->work.data = file;
}

void removed_file_fini(struct removed_file *file)
{
    free(file->path);
}
