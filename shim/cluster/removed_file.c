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

int removed_file_write(const char *path, const char *const *names, size_t len)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file;
    int err;

    if (len == 0)
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    file = must(open_memstream(&text, &bytes));
    for (size_t i = 0; i < len; i++)
        fprintf(file, "%s\n", names[i]);
    fclose(file);
    err = file_replace(path, must(text), bytes);
    free(text);
    return err;
}
