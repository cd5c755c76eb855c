#include "shim/tokens.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/token.h"
#include "shim/kubelet/checkpoint_file.h"
#include "shim/printable.h"

static bool has_token(const struct kubelet_allocation *allocation)
{
    const V1beta1__ContainerAllocateResponse *options = allocation->options;

    for (size_t i = 0; options && i < options->n_annotations; i++) {
        if (strncmp(options->annotations[i]->key, TOKEN_KEY_PREFIX, strlen(TOKEN_KEY_PREFIX)) == 0)
            return true;
    }
    return false;
}

static void say(const struct kubelet_allocation *allocation)
{
    put_printable(stdout, allocation->pod_uid);
    putchar('\t');
    put_printable(stdout, allocation->container);
    putchar('\t');
    put_printable(stdout, allocation->resource);
    for (size_t i = 0; i < allocation->devices_len; i++) {
        putchar(i == 0 ? '\t' : ',');
        put_printable(stdout, allocation->devices[i].id);
    }
    putchar('\n');
}

int tokens_list(const char *kubelet_plugin_dir)
{
    char path[PATH_MAX], err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];
    struct kubelet_checkpoint checkpoint = {0};
    enum kubelet_file_state state;
    time_t written;

    snprintf(path, sizeof path, "%s/" KUBELET_CHECKPOINT_FILE, kubelet_plugin_dir);
    state = checkpoint_file_read(path, &checkpoint, &written, err, sizeof err);
    if (state == KUBELET_FILE_MISSING)
        return 0;
    if (state != KUBELET_FILE_READ) {
        fprintf(stderr, "%s: %s\n", path, err);
        return -1;
    }
    for (size_t i = 0; i < checkpoint.allocations_len; i++) {
        if (has_token(&checkpoint.allocations[i]))
            say(&checkpoint.allocations[i]);
    }
    kubelet_checkpoint_fini(&checkpoint);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "the list could not be written\n");
        return -1;
    }
    return 0;
}
