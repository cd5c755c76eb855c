#include "shim/dra/kubelet_claims.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/file.h"
#include "shim/must.h"
#include "shim/path.h"

#define FILE_NAME "dra_manager_state"

struct asking {
    uv_work_t work;
    char *path;
    char *uid;
    int found;
    void (*done)(void *user, int found);
    void *user;
};

/* What a uid may go on with; else one would be found within another. */
static bool goes_on(const char *text, const char *end, const char *at)
{
    return at >= text && at < end && (isalnum((unsigned char)*at) || *at == '-');
}

static bool has(const char *text, size_t len, const char *uid)
{
    const char *end = text + len, *at = text;
    size_t uid_len = strlen(uid);

    for (; uid_len > 0 && (at = memmem(at, (size_t)(end - at), uid, uid_len)); at++) {
        if (!goes_on(text, end, at - 1) && !goes_on(text, end, at + uid_len))
            return true;
    }
    return false;
}

static int read_and_look(int fd, const char *uid)
{
    struct stat st;
    char *text;
    size_t len;
    int err;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size > KUBELET_CLAIMS_BYTES_MAX)
        return -EFBIG;
    text = must(malloc((size_t)st.st_size + 1));
    err = file_read(fd, text, (size_t)st.st_size, &len);
    if (!err)
        err = has(text, len, uid);
    free(text);
    return err;
}

static void on_work(uv_work_t *work)
{
    struct asking *asking = work->data;
    int fd = open(asking->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        asking->found = errno == ENOENT ? 0 : -errno;
        return;
    }
    asking->found = read_and_look(fd, asking->uid);
    close(fd);
}

static void on_worked(uv_work_t *work, int status)
{
    struct asking *asking = work->data;

    assert(status == 0); /* nobody cancels it */
    asking->done(asking->user, asking->found);
    free(asking->path);
    free(asking->uid);
    free(asking);
}

void kubelet_claims_ask(uv_loop_t *loop, const char *registry_dir, const char *uid,
                        void (*done)(void *user, int found), void *user)
{
    struct asking *asking = must(calloc(1, sizeof *asking));
    int r;

    *asking = (struct asking){.path = path_beside(registry_dir, FILE_NAME),
                              .uid = must(strdup(uid)),
                              .done = done,
                              .user = user};
    asking->work.data = asking;
    r = uv_queue_work(loop, &asking->work, on_work, on_worked);
    assert(r == 0); /* fails only without a function */
}
