#include "tests/unit/rpc_asked.h"

const char *const request_fields[] = {":method",
                                      "POST",
                                      ":scheme",
                                      "http",
                                      ":path",
                                      "/test/Take",
                                      ":authority",
                                      "%2Ftmp%2Fsock",
                                      "content-type",
                                      "application/grpc",
                                      "te",
                                      "trailers",
                                      NULL};

void request_with(struct bytes *request, const char *name, const char *value, const char *message,
                  size_t len)
{
    const char *fields[sizeof request_fields / sizeof *request_fields + 2];
    size_t n = 0;
    bool found = false;

    for (size_t i = 0; request_fields[i]; i += 2) {
        bool this = name && strcmp(request_fields[i], name) == 0;

        fields[n++] = request_fields[i];
        fields[n++] = this ? value : request_fields[i + 1];
        found |= this;
        if (this && !value)
            n -= 2;
    }
    if (name && !found) {
        fields[n++] = name;
        fields[n++] = value;
    }
    fields[n] = NULL;
    request->len = 0;
    bytes_headers(request, 0, 1, fields);
    bytes_frame(request, NGHTTP2_DATA, END, 1, message, len);
}

/* A client with its preface sent and then `request`. */
static struct raw *raw_client(struct world *world, const struct bytes *request)
{
    struct raw *raw = calloc(1, sizeof *raw);
    static struct bytes preface;

    preface.len = 0;
    bytes_preface(&preface);
    raw_connect(raw, world);
    raw_write(raw, &preface);
    raw_write(raw, request);
    return raw;
}

int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    served_open(&f->served, f->world);
    request_with(&f->request, NULL, NULL, WHOLE);
    *state = f;
    return 0;
}

void hang_up(struct fixture *f)
{
    if (f->raw)
        raw_close(f->raw);
    world_settle(f->world);
    free(f->raw);
    f->raw = NULL;
}

void end(struct fixture *f)
{
    hang_up(f);
    served_close(&f->served);
    world_settle(f->world);
}

int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    end(f);
    err = world_free(f->world);
    free(f);
    return err;
}

void ask(struct fixture *f)
{
    f->raw = raw_client(f->world, &f->request);
}

struct raw *ask_with(struct fixture *f, const struct bytes *request)
{
    return raw_client(f->world, request);
}

void ask_taken(struct fixture *f)
{
    ask(f);
    world_wait(f->world, &f->served.called);
}

bool answers(struct fixture *f, const char *text)
{
    bool found;

    ask(f);
    while (!f->raw->request_whole && !f->raw->reset && !f->raw->ended)
        uv_run(&f->world->loop, UV_RUN_ONCE);
    found = raw_got(f->raw, text);
    hang_up(f);
    return found;
}
