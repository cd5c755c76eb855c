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

#include <jansson.h>

#include "shim/file.h"
#include "shim/must.h"
#include "shim/path.h"

#define FILE_NAME "dra_manager_state"

struct asking {
    uv_work_t work;
    char *path;
    char *driver;
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

/* {"Data": "{\"ClaimInfoStateList\": [...]}", "Checksum": ...}; the kubelet itself sees to the
 * sum. */
static json_t *list_of(const char *text, size_t len)
{
    json_t *file = json_loadb(text, len, 0, NULL);
    json_t *data = json_object_get(file, "Data");
    json_t *claims = json_is_string(data)
                         ? json_loadb(json_string_value(data), json_string_length(data), 0, NULL)
                         : NULL;
    json_t *list = json_incref(json_object_get(claims, "ClaimInfoStateList"));

    json_decref(claims);
    json_decref(file);
    return list;
}

/* Of a claim that the file has in some form. */
static enum kubelet_claim state_of(const char *text, size_t len, const struct asking *asking)
{
    enum kubelet_claim found = KUBELET_CLAIM_NAMED;
    json_t *list = list_of(text, len), *claim;
    size_t i;

    json_array_foreach(list, i, claim) {
        const char *uid = json_string_value(json_object_get(claim, "ClaimUID"));
        const json_t *driver =
            json_object_get(json_object_get(claim, "DriverState"), asking->driver);

        if (!uid || strcmp(uid, asking->uid) != 0)
            continue;
        found = json_array_size(json_object_get(driver, "Devices")) > 0 ? KUBELET_CLAIM_PREPARED
                                                                        : KUBELET_CLAIM_BEGUN;
        break;
    }
    json_decref(list);
    return found;
}

/* *text is the caller's to free. */
static int read_all(int fd, char **text, size_t *len)
{
    struct stat st;
    int err;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size > KUBELET_CLAIMS_BYTES_MAX)
        return -EFBIG;
    *text = must(malloc((size_t)st.st_size + 1));
    err = file_read(fd, *text, (size_t)st.st_size, len);
    if (err)
        free(*text);
    return err;
}

static int read_and_look(int fd, const struct asking *asking)
{
    char *text;
    size_t len;
    int found = read_all(fd, &text, &len);

    if (found < 0)
        return found;
    if (has(text, len, asking->uid))
        found = (int)state_of(text, len, asking);
    free(text);
    return found;
}

static int read_list(int fd, const char *driver, json_t **list)
{
    char *text;
    size_t len;
    int err = read_all(fd, &text, &len);

    if (err)
        return err;
    if (memmem(text, len, driver, strlen(driver))) {
        *list = list_of(text, len);
        err = json_is_array(*list) ? 0 : -EBADMSG;
    }
    free(text);
    return err;
}

int kubelet_claims_read(const char *registry_dir, const char *driver, json_t **list)
{
    char *path = path_beside(registry_dir, FILE_NAME);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = fd < 0 ? -errno : 0;

    *list = NULL;
    if (fd >= 0) {
        err = read_list(fd, driver, list);
        close(fd);
    }
    free(path);
    if (err) {
        json_decref(*list);
        *list = NULL;
    }
    return err == -ENOENT ? 0 : err;
}

static void on_work(uv_work_t *work)
{
    struct asking *asking = work->data;
    int fd = open(asking->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        asking->found = errno == ENOENT ? KUBELET_CLAIM_NONE : -errno;
        return;
    }
    asking->found = read_and_look(fd, asking);
    close(fd);
}

static void on_worked(uv_work_t *work, int status)
{
    struct asking *asking = work->data;

    assert(status == 0); /* nobody cancels it */
    asking->done(asking->user, asking->found);
    free(asking->path);
    free(asking->driver);
    free(asking->uid);
    free(asking);
}

void kubelet_claims_ask(uv_loop_t *loop, const char *registry_dir, const char *driver,
                        const char *uid, void (*done)(void *user, int found), void *user)
{
    struct asking *asking = must(calloc(1, sizeof *asking));
    int r;

    *asking = (struct asking){.path = path_beside(registry_dir, FILE_NAME),
                              .driver = must(strdup(driver)),
                              .uid = must(strdup(uid)),
                              .done = done,
                              .user = user};
    asking->work.data = asking;
    r = uv_queue_work(loop, &asking->work, on_work, on_worked);
    assert(r == 0); /* fails only without a function */
}
