#include "shim/page/page.h"

#include <stdlib.h>
#include <string.h>

#include "shim/must.h"
#include "shim/page/authority.h"
#include "shim/page/files.h"
#include "shim/page/questions.h"

#define JSON_PATH "/json/"

struct page {
    const struct settings *settings;
    struct host *host;
    const struct events *events;
    const struct page_ops *ops;
    void *user;
};

/* Its own files and answers are all that the page may have, and nobody else may have them, in a
 * frame neither. A browser keeps no pods' names on its disk. The few connections that there are
 * (HTTP_CONNECTIONS_MAX) are for who asks, not for who may ask again. */
static const struct http_header HEADERS[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"},
    {"Connection", "close"},
    {0}};

static void answer_words(struct http_answer *out, unsigned status, const char *words)
{
    *out = (struct http_answer){.status = status,
                                .type = "text/plain; charset=utf-8",
                                .lasting = words,
                                .len = strlen(words),
                                .headers = HEADERS};
}

static bool answer_file(struct http_answer *out, const char *path)
{
    for (size_t i = 0; i < page_files_len; i++) {
        const struct page_file *file = &page_files[i];

        if (strcmp(path, file->path) == 0) {
            *out = (struct http_answer){.status = 200,
                                        .type = file->type,
                                        .lasting = file->bytes,
                                        .len = file->len,
                                        .headers = HEADERS,
                                        .tagged = true};
            return true;
        }
    }
    return false;
}

static void on_argument(void *user, const char *name, const char *value)
{
    question_add(user, name, value);
}

static void answer_json(struct http_answer *out, json_t *value)
{
    char *text = must(json_dumps(value, JSON_COMPACT));

    json_decref(value);
    *out = (struct http_answer){.status = 200,
                                .type = "application/json",
                                .body = text,
                                .len = strlen(text),
                                .headers = HEADERS,
                                .tagged = true};
}

static bool answer_question(struct page *page, const struct http_request *request,
                            struct http_answer *out)
{
    struct list_from lists = {.core = host_core(page->host)};
    struct report report = {0};
    const struct question_from from = {
        .lists = &lists, .settings = page->settings, .report = &report, .events = page->events};
    struct question question;
    json_t *value = NULL;

    page->ops->look(page->user, &lists);
    page->ops->report(page->user, &report);
    question_init(&question);
    http_request_arguments(request, on_argument, &question);
    switch (question_answer(request->path + strlen(JSON_PATH), &question, &from, &value)) {
    case QUESTION_ANSWERED:
        answer_json(out, value);
        return true;
    case QUESTION_WRONG:
        answer_words(out, 400, "after: no place in this list, or not any more: begin anew\n");
        return true;
    case QUESTION_UNKNOWN:
        break;
    }
    return false;
}

bool page_get(struct page *page, const struct http_request *request, struct http_answer *out)
{
    bool json = strncmp(request->path, JSON_PATH, strlen(JSON_PATH)) == 0;

    if (!authority_is_local(request->host)) {
        answer_words(out, 421, "this is shown at localhost, or at an address, only\n");
        return true;
    }
    return json ? answer_question(page, request, out) : answer_file(out, request->path);
}

struct page *page_new(const struct settings *settings, struct host *host,
                      const struct events *events, const struct page_ops *ops, void *user)
{
    struct page *page = must(calloc(1, sizeof *page));

    *page = (struct page){
        .settings = settings, .host = host, .events = events, .ops = ops, .user = user};
    return page;
}

void page_free(struct page *page)
{
    free(page);
}
