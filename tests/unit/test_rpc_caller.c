/* shim/rpc/caller.c: clients whose connection goes wrong, against raw bytes. */
#include "tests/unit/rpc_asked.h"

static void garbage_ends_only_its_connection(void **state)
{
    static struct bytes garbage;
    struct fixture *f = *state;
    struct raw *bad = calloc(1, sizeof *bad);

    bytes_add(&garbage, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 36);
    ask(f);
    bad->greeting = &garbage;
    raw_connect(bad, f->world);
    world_wait(f->world, &bad->ended);
    world_wait(f->world, &f->served.called);
    assert_false(f->raw->ended || f->served.cancelled);
    raw_close(bad);
    end(f);
    free(bad);
}

static void a_flood_of_pings_is_hung_up_on(void **state)
{
    struct fixture *f = *state;

    f->request.len = 0;
    for (size_t i = 0; i < 15000; i++)
        bytes_frame(&f->request, NGHTTP2_PING, 0, 0, "12345678", 8);
    ask(f);
    uv_read_stop((uv_stream_t *)&f->raw->pipe);
    for (size_t i = 0; i < 4; i++)
        raw_write(f->raw, &f->request);
    while (!f->raw->write_failed)
        uv_run(&f->world->loop, UV_RUN_ONCE);
}

static void endless_headers_reset_the_stream(void **state)
{
    const char *fields[2 * 60 + 1];
    char text[121];
    struct fixture *f = *state;

    memset(text, 'a', 120);
    text[120] = '\0';
    for (size_t i = 0; i < 60; i++) {
        fields[2 * i] = "x-filler";
        fields[2 * i + 1] = text;
    }
    fields[120] = NULL;
    f->request.len = 0;
    for (size_t i = 0; i < 8; i++)
        bytes_headers(&f->request, 0, 1, fields);
    ask(f);
    world_wait(f->world, &f->raw->reset);
    end(f);
    assert_int_equal(f->served.calls, 0);
}

static void a_deadline_passes_while_the_request_is_still_coming(void **state)
{
    const char *const fields[] = {":method",      "POST",         ":path",
                                  "/test/Take",   "content-type", "application/grpc",
                                  "grpc-timeout", "0n",           NULL};
    struct fixture *f = *state;

    f->request.len = 0;
    bytes_headers(&f->request, 0, 1, fields);
    ask(f);
    world_wait(f->world, &f->raw->reset); /* the answer, and then NO_ERROR: send no more */
    assert_int_equal(f->raw->reset_code, NGHTTP2_NO_ERROR);
    assert_true(raw_got(f->raw, "deadline"));
    end(f);
    assert_false(f->served.called || f->served.cancelled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(garbage_ends_only_its_connection),
        TEST(a_flood_of_pings_is_hung_up_on),
        TEST(endless_headers_reset_the_stream),
        TEST(a_deadline_passes_while_the_request_is_still_coming),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
