#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"

void wire_init(struct wire *wire, bool quiet)
{
    *wire = (struct wire){.quiet = quiet};
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_init(&wire->writers[end]);
        h2_reader_init(&wire->readers[end]);
    }
}

void wire_close(struct wire *wire)
{
    session_free(wire->session);
    wire->session = NULL;
}

void wire_fini(struct wire *wire)
{
    wire_close(wire);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_fini(&wire->writers[end]);
        h2_reader_fini(&wire->readers[end]);
        buffer_fini(&wire->to[end]);
    }
    buffer_fini(&wire->out);
}

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct wire *wire = user;

    for (int i = 0; i < n && !wire->quiet; i++)
        h2_put(&wire->to[to], pieces[i].iov_base, pieces[i].iov_len);
}

static void on_failed(void *user)
{
    const struct wire *wire = user;

    assert_true(wire->quiet);
}

static const struct session_ops OPS = {.write = on_write, .failed = on_failed};

void wire_connect(struct wire *wire, struct session_owner owner)
{
    alloc_fail_enable(wire->quiet);
    wire->session = session_new(&OPS, wire, owner);
    alloc_fail_enable(false);
}

void wire_greet(struct wire *wire)
{
    h2_put(&wire->out, H2_PREFACE, strlen(H2_PREFACE));
    wire_feed(wire, CLIENT);
    wire->read_to[RUNTIME] = strlen(H2_PREFACE);
}

void wire_feed(struct wire *wire, enum session_end from)
{
    int r = 0;

    alloc_fail_enable(wire->quiet);
    if (wire->session)
        r = session_feed(wire->session, from, buffer_data(&wire->out), buffer_len(&wire->out));
    alloc_fail_enable(false);
    assert_true(r == 0 || wire->quiet);
    buffer_fini(&wire->out);
}

void wire_call(struct wire *wire, uint32_t id, const char *method, const void *message, size_t len)
{
    struct buffer framed = {0};

    h2_request(&wire->writers[CLIENT], &wire->out, id, method);
    h2_message(&framed, 0, message, len);
    h2_data(&wire->out, id, buffer_data(&framed), buffer_len(&framed), H2_END_STREAM, -1);
    buffer_fini(&framed);
    wire_feed(wire, CLIENT);
}

void wire_answer(struct wire *wire, uint32_t id, const char *message)
{
    h2_answer(&wire->writers[RUNTIME], &wire->out, id, message);
    wire_feed(wire, RUNTIME);
}

void wire_fail(struct wire *wire, uint32_t id, const char *status)
{
    h2_answer_end(&wire->writers[RUNTIME], &wire->out, id, status);
    wire_feed(wire, RUNTIME);
}

void wire_reset(struct wire *wire, enum session_end from, uint32_t id, uint32_t code)
{
    h2_rst(&wire->out, id, code);
    wire_feed(wire, from);
}

void wire_look(struct wire *wire, enum session_end end, struct buffer *text)
{
    h2_look(&wire->readers[end], &wire->to[end], &wire->read_to[end], text);
}
