#include "shim/ctl/list.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* Each list has its own message, and all have these fields. */
static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessage *page, const char *name)
{
    return protobuf_c_message_descriptor_get_field_by_name(page->descriptor, name);
}

static bool has_rows(const ProtobufCMessage *page)
{
    size_t len;

    memcpy(&len, (const char *)page + field_of(page, "rows")->quantifier_offset, sizeof len);
    return len > 0;
}

/* Where the next page begins, as a page says it; true: there is one. */
static bool read_next(const ProtobufCMessage *page, char ***next, size_t *next_len)
{
    const ProtobufCFieldDescriptor *field = field_of(page, "next");
    const char *bytes = (const char *)page;

    memcpy(next, bytes + field->offset, sizeof *next);
    memcpy(next_len, bytes + field->quantifier_offset, sizeof *next_len);
    return *next_len > 0;
}

struct pages {
    ProtobufCMessage **v;
    size_t len;
};

static void pages_fini(struct pages *pages)
{
    for (size_t i = 0; i < pages->len; i++)
        protobuf_c_message_free_unpacked(pages->v[i], NULL);
    free(pages->v);
}

/* All, one after the other. */
static bool read_all(const struct command_run *run, const struct list *list,
                     Control__V1__ListRequest *request, struct pages *pages,
                     struct client_failure *failure)
{
    ProtobufCMessage *page;

    do {
        page = client_ask(run->client, list->method, &request->base, list->response, failure);
        if (!page)
            return false;
        pages->v = must(realloc(pages->v, (pages->len + 1) * sizeof(ProtobufCMessage *)));
        pages->v[pages->len++] = page;
    } while (read_next(page, &request->after, &request->n_after));
    return true;
}

static void show_pages(const struct show *show, const struct list *list, const struct pages *pages)
{
    struct listing listing = {.show = show};
    json_t *all = NULL;

    if (show->format == SHOW_JSON) {
        all = must(json_object());
        listing.items = must(json_array());
        json_value_set(all, "items", listing.items);
    } else if (show->format != SHOW_NAME) {
        listing.table = table_new(show, list->columns, list->columns_len);
    }
    for (size_t i = 0; i < pages->len; i++)
        list->put(&listing, pages->v[i]);
    list->put(&listing, NULL);
    if (all)
        show_json(show, all);
    else if (listing.table)
        table_print(listing.table);
}

bool list_run(const struct command_run *run, const struct list *list,
              Control__V1__ListRequest *request, struct client_failure *failure)
{
    bool named = request->resource[0] != '\0' || request->pod[0] != '\0';
    struct pages pages = {0};
    bool done = read_all(run, list, request, &pages, failure);

    if (done && named && list->none && !has_rows(pages.v[0])) {
        failure->code = RPC_NOT_FOUND;
        snprintf(failure->words, sizeof failure->words, "%s", list->none);
        done = false;
    }
    if (done)
        show_pages(&run->show, list, &pages);
    pages_fini(&pages);
    return done;
}

void list_put_name(const struct listing *listing, const char *kind, ...)
{
    const char *part;
    va_list parts;

    fputs(kind, listing->show->out);
    va_start(parts, kind);
    while ((part = va_arg(parts, const char *))) {
        fputc('/', listing->show->out);
        show_put(listing->show, part);
    }
    va_end(parts);
    fputc('\n', listing->show->out);
}

char *list_option(const struct command_run *run, const char *name)
{
    const char *given = command_given(run, name);

    return (char *)(uintptr_t)(given ? given : ""); /* it is only packed */
}

char *list_pod_name(const char *pod_namespace, const char *name, const char *uid)
{
    char *text;

    if (asprintf(&text, "%s/%s", name[0] ? pod_namespace : "?", name[0] ? name : uid) < 0)
        abort(); /* out of memory */
    return text;
}

json_t *list_cordon(const Control__V1__Cordon *cordon)
{
    json_t *one;

    if (!cordon)
        return json_null();
    one = must(json_object());
    json_value_set(one, "since", show_ago(cordon->since_ms));
    json_value_set(one, "reason", json_value_text_or_null(cordon->reason));
    return one;
}
