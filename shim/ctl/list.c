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

    request->n_after = 0;
    do {
        page = client_ask(run->client, list->method, &request->base, list->response, failure);
        if (!page)
            return false;
        pages->v = must(realloc(pages->v, (pages->len + 1) * sizeof(ProtobufCMessage *)));
        pages->v[pages->len++] = page;
    } while (read_next(page, &request->after, &request->n_after));
    return true;
}

/* Rows of one list, in the table that they share, or in a JSON array of their own. */
static void put_pages(struct listing *listing, const struct list *list, const struct pages *pages,
                      json_t *all, const char *items)
{
    if (all) {
        listing->items = must(json_array());
        json_value_set(all, items, listing->items);
    }
    for (size_t i = 0; i < pages->len; i++)
        list->put(listing, pages->v[i]);
    list->put(listing, NULL);
}

static void show_pages(const struct command_run *run, const struct list *list,
                       const struct pages *pages, const struct pages *behind)
{
    const struct show *show = &run->show;
    struct listing listing = {.run = run, .show = show};
    json_t *all = show->format == SHOW_JSON ? must(json_object()) : NULL;

    if (!all && show->format != SHOW_NAME)
        listing.table = table_new(show, list->columns, list->columns_len);
    put_pages(&listing, list, pages, all, "items");
    if (list->behind)
        put_pages(&listing, list->behind, behind, all, list->behind_items);
    if (all)
        show_json(show, all);
    else if (listing.table)
        table_print(listing.table);
}

/* A page without rows may be a part of the way to one that has some. */
static bool is_empty(const struct pages *pages)
{
    size_t i = 0;

    while (i < pages->len && !has_rows(pages->v[i]))
        i++;
    return i == pages->len;
}

static bool names_some(const Control__V1__ListRequest *request)
{
    return request->resource[0] != '\0' || request->pod[0] != '\0' || request->driver[0] != '\0';
}

/* What an option was given; NULL: nothing, or the command has none of that name. */
static const char *option(const struct command_run *run, const char *name)
{
    for (size_t i = 0; i < command_options_len(run->command); i++) {
        if (strcmp(run->command->options[i].name, name) == 0)
            return run->options[i];
    }
    return NULL;
}

/* A field without a text stays empty. */
static void put_field(char **field, const char *text)
{
    if (text)
        *field = (char *)(uintptr_t)text; /* it is only packed */
}

static void make_request(const struct command_run *run, Control__V1__ListRequest *request)
{
    unsigned is = run->command->list->argument;
    const char *argument = run->arguments_len > 0 ? run->arguments[0] : NULL;

    control__v1__list_request__init(request);
    put_field(&request->resource, is & LIST_RESOURCE ? argument : NULL);
    put_field(&request->driver, is & LIST_DRIVER ? argument : NULL);
    put_field(&request->pod, is & LIST_POD ? argument : option(run, "pod"));
    put_field(&request->pod_namespace, option(run, "namespace"));
}

bool list_run(const struct command_run *run, struct client_failure *failure)
{
    const struct list *list = run->command->list;
    Control__V1__ListRequest request;
    struct pages pages = {0}, behind = {0};
    bool done;

    make_request(run, &request);
    done = read_all(run, list, &request, &pages, failure) &&
           (!list->behind || read_all(run, list->behind, &request, &behind, failure));
    if (done && names_some(&request) && list->none && is_empty(&pages) && is_empty(&behind))
        done = client_fail(failure, RPC_NOT_FOUND, "%s", list->none);
    if (done)
        show_pages(run, list, &pages, &behind);
    pages_fini(&pages);
    pages_fini(&behind);
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

char *list_pod_name(const char *pod_namespace, const char *name, const char *uid)
{
    char *text;

    if (asprintf(&text, "%s/%s", name[0] ? pod_namespace : "?", name[0] ? name : uid) < 0)
        abort(); /* out of memory */
    return text;
}

char *list_join(char *const *texts, size_t len)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = must(open_memstream(&text, &bytes));

    for (size_t i = 0; i < len; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", texts[i]);
    if (fclose(out) != 0)
        abort(); /* out of memory */
    return text;
}
