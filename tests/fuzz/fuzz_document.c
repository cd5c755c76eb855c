/*
 * The document of "checkpoint export", as an import reads it: any bytes are refused with words, or
 * are rows which give a document that is read as the same rows again.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/checkpoint_json.h"
#include "shim/offline/document.h"
#include "tests/fuzz/fuzz.h"

/* The caller frees it. */
static char *text_of(const struct document *document)
{
    static const char *const KINDS[] = {"resource", "allocation", "pod",   "order",
                                        "driver",   "claim",      "ending"};
    json_t *root = checkpoint_json_new();
    char *text;

    checkpoint_json_set_head(root, (uint64_t)document->version, document->sound);
    for (size_t i = 0; i < document->rows.len; i++) {
        const struct devicemgr_record *row = &document->rows.v[i];

        checkpoint_json_add(root, KINDS[row->kind], row->value, row->value_bytes);
    }
    text = json_dumps(root, 0);
    json_decref(root);
    FUZZ_CHECK(text, "it cannot be written");
    return text;
}

static void check_same(const struct document *a, const struct document *b)
{
    FUZZ_CHECK(a->rows.len == b->rows.len, "%zu rows, then %zu", a->rows.len, b->rows.len);
    for (size_t i = 0; i < a->rows.len; i++) {
        const struct devicemgr_record *x = &a->rows.v[i], *y = &b->rows.v[i];

        FUZZ_CHECK(x->kind == y->kind && x->value_bytes == y->value_bytes &&
                       memcmp(x->value, y->value, x->value_bytes) == 0,
                   "row %zu is another", i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[DOCUMENT_ERROR_BYTES_MAX] = "";
    struct document document, again;
    char *text;
    int rc;

    if (document_parse((const char *)data, size, &document, err, sizeof err) < 0) {
        FUZZ_CHECK(err[0] != '\0', "no words");
        return 0;
    }
    text = text_of(&document);
    rc = document_parse(text, strlen(text), &again, err, sizeof err);
    FUZZ_CHECK(rc == 0, "%s", err);
    check_same(&document, &again);
    document_fini(&again);
    document_fini(&document);
    free(text);
    return 0;
}
