/*
 * The kubelet's checkpoint: the input is its "Data", to which the right checksum is added, so that
 * what is damaged gets past it. Any bytes are either read and become rows, or refused with words.
 */
#include <inttypes.h>
#include <string.h>

#include "devicemgr/kubelet_file/kubelet_checkpoint.h"
#include "devicemgr/kubelet_file/kubelet_rows.h"
#include "tests/fuzz/fuzz.h"

#define WRONG_SUM "its checksum is -1, its data gives "

/* A file of this data and checksum; the caller frees it. */
static char *make_file(const uint8_t *data, size_t size, long long sum, size_t *len)
{
    static const char HEAD[] = "{\"Data\":";
    char *text = malloc(size + 64);

    if (!text)
        abort();
    memcpy(text, HEAD, sizeof HEAD - 1);
    if (size > 0)
        memcpy(text + sizeof HEAD - 1, data, size);
    *len = sizeof HEAD - 1 + size;
    *len += (size_t)sprintf(text + *len, ",\"Checksum\":%lld}", sum);
    return text;
}

static int parse(const uint8_t *data, size_t size, long long sum, struct kubelet_checkpoint *out,
                 char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX])
{
    size_t len;
    char *text = make_file(data, size, sum, &len);
    int rc = kubelet_checkpoint_parse(text, len, out, err, KUBELET_CHECKPOINT_ERROR_BYTES_MAX);

    free(text);
    return rc;
}

static void check_rows(const struct kubelet_checkpoint *checkpoint)
{
    struct kubelet_rows rows;

    kubelet_rows_init(&rows, checkpoint, "boot");
    FUZZ_CHECK(rows.len + rows.left_out == checkpoint->allocations_len + checkpoint->resources_len,
               "%zu rows, %zu left out", rows.len, rows.left_out);
    kubelet_rows_fini(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX] = "";
    struct kubelet_checkpoint checkpoint;
    int rc = parse(data, size, -1, &checkpoint, err);

    if (rc < 0 && strncmp(err, WRONG_SUM, strlen(WRONG_SUM)) == 0) {
        rc = parse(data, size, strtoll(err + strlen(WRONG_SUM), NULL, 10), &checkpoint, err);
        FUZZ_CHECK(rc == 0, "%s", err);
    }
    if (rc < 0) {
        FUZZ_CHECK(err[0] != '\0', "no words");
        return 0;
    }
    check_rows(&checkpoint);
    kubelet_checkpoint_fini(&checkpoint);
    return 0;
}
