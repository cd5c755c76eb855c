#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "alloc_fail.h"

/* ---- the owner ---- */

#define note(w, ...)                                                                               \
    do {                                                                                           \
        if (!(w)->quiet)                                                                           \
            h2_say(&(w)->log, __VA_ARGS__);                                                        \
    } while (0)

static void on_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct world *w = user;

    assert_true(n > 0 && n <= 32);
    w->writes++;
    for (int i = 0; i < n && !w->quiet; i++)
        h2_put(&w->to[to], pieces[i].iov_base, pieces[i].iov_len);
}

static void forget(struct world *w, struct session_call *call)
{
    for (size_t i = 0; i < w->calls_len; i++) {
        if (w->calls[i] != call)
            continue;
        w->calls_len--;
        memmove(w->calls + i, w->calls + i + 1, (w->calls_len - i) * sizeof *w->calls);
        w->calls[w->calls_len] = NULL;
        w->live--;
        return;
    }
    fail_msg("a call ended that was not told, or ended twice");
}

/* A script without memory may lack the call it means. */
static bool is_undecided(const struct world *w, const struct session_call *call)
{
    return call && call->user == w && cri_method_class(call->method) == CRI_CLASS_INTERCEPTED;
}

/* False: it cannot be, of a script without memory. */
static bool begin_forward(struct world *w, struct session_call *call)
{
    if (w->quiet && !is_undecided(w, call))
        return false;
    call->user = &w->decided;
    alloc_fail_enable(true);
    return true;
}

static void end_forward(struct world *w, struct session_call *call, int result)
{
    alloc_fail_enable(w->feeding);
    if (result == 0)
        return;
    assert_int_equal(result, -ENOMEM);
    assert_true(w->quiet);
    forget(w, call);
    session_refuse(w->session, call, 8, "no memory");
}

void forward(struct world *w, struct session_call *call, const char *fragment)
{
    size_t len = fragment ? strlen(fragment) : 0;

    if (begin_forward(w, call))
        end_forward(w, call, session_forward(w->session, call, fragment, len));
}

void forward_instead(struct world *w, struct session_call *call, const char *fragment,
                     const char *bytes, size_t len)
{
    size_t fragment_len = fragment ? strlen(fragment) : 0;

    if (begin_forward(w, call))
        end_forward(w, call,
                    session_forward_instead(w->session, call, fragment, fragment_len, bytes, len));
}

void refuse(struct world *w, struct session_call *call, const char *message)
{
    if (w->quiet && !is_undecided(w, call))
        return;
    forget(w, call);
    alloc_fail_enable(true);
    session_refuse(w->session, call, 14, message);
    alloc_fail_enable(w->feeding);
}

static void on_request(void *user, struct session *session, struct session_call *call)
{
    struct world *w = user;
    unsigned shown = call->message_bytes < 40 ? (unsigned)call->message_bytes : 40;

    assert_ptr_equal(session, w->session);
    assert_true(w->calls_len < SESSION_CALLS_MAX);
    assert_null(call->user);
    call->user = w;
    w->calls[w->calls_len++] = call;
    w->live++;
    note(w, "request %s %zu %.*s\n", cri_method_name(call->method), call->message_bytes, shown,
         (const char *)call->message);
    if (cri_method_class(call->method) != CRI_CLASS_INTERCEPTED)
        return;
    switch (w->plan) {
    case PLAN_HOLD:
        break;
    case PLAN_FORWARD:
        forward(w, call, NULL);
        break;
    case PLAN_FRAGMENT:
        forward(w, call, FRAGMENT);
        break;
    case PLAN_REFUSE:
        refuse(w, call, "no");
        break;
    }
}

static void on_answered(void *user, struct session_call *call, int status, const uint8_t *message,
                        size_t bytes)
{
    struct world *w = user;

    assert_true(call->user == w || call->user == &w->decided);
    if (message)
        note(w, "answered %s %d %.*s\n", cri_method_name(call->method), status,
             (int)(bytes < 40 ? bytes : 40), (const char *)message);
    else
        note(w, "answered %s %d -%s\n", cri_method_name(call->method), status,
             call->status_text ? call->status_text : "");
}

static void on_ended(void *user, struct session_call *call)
{
    struct world *w = user;

    note(w, "ended %s\n", cri_method_name(call->method));
    forget(w, call);
}

static void on_failed(void *user)
{
    struct world *w = user;

    assert_false(w->failed || w->feeding);
    assert_non_null(session_error(w->session));
    w->failed = true;
}

static const struct session_ops OPS = {.write = on_write, .failed = on_failed};
static const struct session_owner_ops OWNER_OPS = {
    .request = on_request, .answered = on_answered, .ended = on_ended};

/* ---- the world ---- */

static size_t piece_of(struct world *w, size_t len)
{
    size_t n = w->random_cuts ? 1 + h2_random(&w->random, 40) : w->cut;

    return n == 0 || n > len ? len : n;
}

int feed_bytes(struct world *w, enum session_end from, const uint8_t *bytes, size_t len)
{
    if (!w->quiet)
        h2_put(&w->fed[from], bytes, len);
    while (len > 0 && w->error == 0) {
        size_t n = piece_of(w, len);
        uint8_t *copy = malloc(n); /* exact, so that a sanitizer sees a read behind it */

        if (!copy)
            return w->error;
        memcpy(copy, bytes, n);
        w->feeding = true;
        alloc_fail_enable(true);
        w->error = session_feed(w->session, from, copy, n);
        alloc_fail_enable(false);
        w->feeding = false;
        free(copy);
        bytes += n;
        len -= n;
    }
    return w->error;
}

/* Feeds what the script has put into `out`. */
void feed(struct world *w, enum session_end from)
{
    feed_bytes(w, from, buffer_data(&w->out), buffer_len(&w->out));
    buffer_fini(&w->out);
    if (!w->quiet)
        assert_int_equal(w->error, 0);
}

void feed_bad(struct world *w, enum session_end from, const char *text)
{
    assert_int_equal(feed_bytes(w, from, buffer_data(&w->out), buffer_len(&w->out)), -EPROTO);
    buffer_fini(&w->out);
    assert_string_equal(session_error(w->session), text);
    assert_int_equal(session_feed(w->session, from, (const uint8_t *)"x", 1), -EPROTO);
}

/* What an end has been sent since the last look. */
void saw(struct world *w, enum session_end end, const char *expected)
{
    struct buffer text = {0};

    if (w->quiet)
        return;
    h2_look(&w->readers[end], &w->to[end], &w->read_to[end], &text);
    assert_string_equal((const char *)buffer_data(&text), expected);
    buffer_fini(&text);
}

void told(struct world *w, const char *expected)
{
    struct buffer text = {0};

    if (w->quiet)
        return;
    h2_put(&text, buffer_data(&w->log) + w->log_read, buffer_len(&w->log) - w->log_read);
    h2_put(&text, "", 1);
    w->log_read = buffer_len(&w->log);
    assert_string_equal((const char *)buffer_data(&text), expected);
    buffer_fini(&text);
}

void move_on(struct world *w)
{
    struct buffer text = {0};

    for (int end = CLIENT; end <= RUNTIME && !w->quiet; end++)
        h2_look(&w->readers[end], &w->to[end], &w->read_to[end], &text);
    w->log_read = buffer_len(&w->log);
    buffer_fini(&text);
}

void world_init(struct world *w)
{
    alloc_fail_enable(true);
    w->session = session_new(&OPS, w, (struct session_owner){&OWNER_OPS, w});
    alloc_fail_enable(false);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_init(&w->writers[end]);
        h2_reader_init(&w->readers[end]);
    }
}

void world_fini(struct world *w)
{
    session_free(w->session);
    assert_int_equal(w->live, 0);
    for (int end = CLIENT; end <= RUNTIME; end++) {
        h2_writer_fini(&w->writers[end]);
        h2_reader_fini(&w->readers[end]);
        buffer_fini(&w->fed[end]);
        buffer_fini(&w->to[end]);
    }
    buffer_fini(&w->log);
    buffer_fini(&w->out);
}

/* Preface and SETTINGS both ways, acknowledged. */
void greet(struct world *w)
{
    h2_put(&w->out, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&w->out, -1, 0);
    feed(w, CLIENT);
    h2_settings(&w->out, -1, 0);
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    h2_settings_ack(&w->out);
    feed(w, CLIENT);
    w->read_to[RUNTIME] = strlen(H2_PREFACE);
    saw(w, RUNTIME, "SETTINGS\nSETTINGS ACK\n");
    saw(w, CLIENT, "SETTINGS\nSETTINGS ACK\n");
}

void same(const struct buffer *a, const struct buffer *b)
{
    assert_int_equal(buffer_len(a), buffer_len(b));
    if (buffer_len(a) > 0)
        assert_memory_equal(buffer_data(a), buffer_data(b), buffer_len(a));
}

void play(scenario *script, size_t n)
{
    static const size_t cuts[SESSION_PLAYS] = {0, 1, 2, 3, 7, 0, 0, 0};
    struct world first = {0};

    world_init(&first);
    greet(&first);
    script(&first);
    for (size_t i = 1; i < n; i++) {
        struct world w = {.cut = cuts[i]};

        w.random_cuts = cuts[i] == 0;
        w.random.state = 1000 + i;
        world_init(&w);
        greet(&w);
        script(&w);
        same(&w.to[CLIENT], &first.to[CLIENT]);
        if (!w.error) /* else how much passed before depends on the cuts */
            same(&w.to[RUNTIME], &first.to[RUNTIME]);
        same(&w.log, &first.log);
        world_fini(&w);
    }
    world_fini(&first);
}

void without_memory(scenario *script)
{
    for (unsigned n = 1;; n++) {
        struct world w = {.quiet = true};

        alloc_fail_at(n);
        world_init(&w);
        if (w.session) {
            greet(&w);
            script(&w);
        }
        assert_true(w.error == 0 || w.error == -ENOMEM || w.error == -EPROTO);
        if (w.session && session_error(w.session))
            assert_true(w.error < 0 || w.failed); /* or nobody would close it */
        world_fini(&w);
        if (!alloc_failed())
            break;
    }
    alloc_fail_at(0);
}

/* ---- words ---- */

void calls_are(const struct world *w, size_t n)
{
    if (!w->quiet)
        assert_int_equal(session_calls(w->session), n);
}

void request(struct world *w, uint32_t stream, const char *method)
{
    h2_request(&w->writers[CLIENT], &w->out, stream, method);
}

void message(struct world *w, uint32_t stream, const char *text, int flags)
{
    struct buffer framed = {0};

    h2_message(&framed, 0, text, strlen(text));
    h2_data(&w->out, stream, buffer_data(&framed), buffer_len(&framed), flags, -1);
    buffer_fini(&framed);
}

void data(struct world *w, uint32_t stream, const void *bytes, size_t len, int flags)
{
    h2_data(&w->out, stream, bytes, len, flags, -1);
}

/* A whole request in one feed. */
void call(struct world *w, uint32_t stream, const char *method, const char *text)
{
    request(w, stream, method);
    message(w, stream, text, H2_END_STREAM);
    feed(w, CLIENT);
}

void answer(struct world *w, uint32_t stream, const char *text)
{
    h2_answer(&w->writers[RUNTIME], &w->out, stream, text);
    feed(w, RUNTIME);
}

void ack(struct world *w, enum session_end from)
{
    h2_settings_ack(&w->out);
    feed(w, from);
}

void gzip(struct buffer *out, const void *bytes, size_t len)
{
    z_stream z = {.next_in = (void *)bytes, .avail_in = (uInt)len};
    size_t room = compressBound(len) + 64;
    uint8_t *packed = malloc(room);

    assert_non_null(packed);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = packed;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    h2_message(out, 1, packed, z.total_out);
    deflateEnd(&z);
    free(packed);
}

void request_in(struct world *w, uint32_t stream, const char *method, const char *encoding)
{
    char path[128];
    const char *const fields[] = {":path", path, "grpc-encoding", encoding, NULL};

    snprintf(path, sizeof path, "/runtime.v1.RuntimeService/%s", method);
    h2_headers(&w->writers[CLIENT], &w->out, stream, 0, -1, 0, fields);
}

void zip_call(struct world *w, uint32_t stream, const char *method, const char *encoding,
              const struct buffer *framed)
{
    request_in(w, stream, method, encoding);
    data(w, stream, buffer_data(framed), buffer_len(framed), H2_END_STREAM);
    feed(w, CLIENT);
}

void fill(struct world *w, uint32_t stream, size_t len, int flags)
{
    uint8_t *bytes = calloc(1, 16384);

    assert_non_null(bytes);
    while (len > 0) {
        size_t n = len < 16384 ? len : 16384;

        len -= n;
        data(w, stream, bytes, n, len == 0 ? flags : 0);
    }
    free(bytes);
}

/* What the client believes it may send on the connection. */
int64_t client_window(const struct world *w)
{
    struct h2_reader r = {.bytes = buffer_data(&w->fed[CLIENT]) + strlen(H2_PREFACE),
                          .len = buffer_len(&w->fed[CLIENT]) - strlen(H2_PREFACE)};
    int64_t window = 65535;

    for (int end = CLIENT; end <= RUNTIME; end++) {
        while (r.len >= 9) {
            size_t len = (size_t)r.bytes[0] << 16 | (size_t)r.bytes[1] << 8 | r.bytes[2];

            if (end == CLIENT && r.bytes[3] == NGHTTP2_DATA)
                window -= (int64_t)len;
            if (end == RUNTIME && r.bytes[3] == NGHTTP2_WINDOW_UPDATE && r.bytes[8] == 0)
                window += r.bytes[9] << 24 | r.bytes[10] << 16 | r.bytes[11] << 8 | r.bytes[12];
            r.bytes += 9 + len;
            r.len -= 9 + len;
        }
        r.bytes = buffer_data(&w->to[CLIENT]);
        r.len = buffer_len(&w->to[CLIENT]);
    }
    return window;
}
