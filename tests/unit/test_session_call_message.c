/*
 * shim/relay/session/call_message.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

SCENARIO(a_gzip_message_goes_on_plain_with_a_fragment_and_packed_without)
{
    struct buffer packed = {0};
    char text[64];

    gzip(&packed, "hello", 5);
    zip_call(w, 1, CREATE, "gzip", &packed);
    told(w, "request CreateContainer 5 hello\n");
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME,
        "HEADERS 1 :path=/runtime.v1.RuntimeService/CreateContainer grpc-encoding=gzip\n"
        "DATA 1 20 .....<fragment>hello END\n");
    zip_call(w, 3, CREATE, "gzip", &packed);
    move_on(w);
    forward(w, w->calls[1], NULL);
    snprintf(text, sizeof text, "DATA 3 %zu", buffer_len(&packed));
    if (!w->quiet)
        assert_memory_equal(buffer_data(&w->to[RUNTIME]) + buffer_len(&w->to[RUNTIME]) -
                                buffer_len(&packed),
                            buffer_data(&packed), buffer_len(&packed));
    zip_call(w, 7, CREATE, "gzip", &packed);
    forward_instead(w, w->calls[2], NULL, "hullo", 5);
    move_on(w);
    if (!w->quiet)
        assert_memory_equal(buffer_data(&w->to[RUNTIME]) + buffer_len(&w->to[RUNTIME]) - 10,
                            "\0\0\0\0\5hullo", 10);
    /* an observed one, and a packed answer */
    zip_call(w, 9, "StopPodSandbox", "gzip", &packed);
    told(w, "request StopPodSandbox 5 hello\n");
    h2_headers(&w->writers[RUNTIME], &w->out, 9, 0, -1, 0,
               (const char *[]){":status", "200", "grpc-encoding", "gzip", NULL});
    data(w, 9, buffer_data(&packed), buffer_len(&packed), 0);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 9, "0");
    feed(w, RUNTIME);
    told(w, "answered StopPodSandbox 0 hello\nended StopPodSandbox\n");
    buffer_fini(&packed);
}

ONCE(a_gzip_bomb_is_refused)
{
    size_t len = 17u << 20;
    uint8_t *zeros = calloc(1, len);
    struct buffer packed = {0};

    assert_non_null(zeros);
    gzip(&packed, zeros, len);
    free(zeros);
    request_in(w, 1, CREATE, "gzip");
    for (size_t at = 0; at < buffer_len(&packed); at += 16384) {
        size_t n = buffer_len(&packed) - at < 16384 ? buffer_len(&packed) - at : 16384;

        data(w, 1, buffer_data(&packed) + at, n, 0);
    }
    feed(w, CLIENT);
    told(w, "");
    ack(w, RUNTIME);
    assert_non_null(memmem(buffer_data(&w->to[CLIENT]), buffer_len(&w->to[CLIENT]),
                           "message inflates to more than 16 MiB", 36));
    buffer_fini(&packed);
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

/* What compressed messages take while they are held has a bound, all of them together; what cannot
 * be read takes nothing. */
ONCE(inflated_messages_have_a_common_bound)
{
    size_t len = 12u << 20;
    uint8_t *zeros = calloc(1, len);
    struct buffer packed = {0}, broken = {0};

    assert_non_null(zeros);
    gzip(&packed, zeros, len);
    free(zeros);
    h2_put(&broken, buffer_data(&packed), buffer_len(&packed));
    broken.bytes[broken.end - 5] ^= 1; /* in its sum */
    for (uint32_t id = 1; id <= 7; id += 2)
        zip_call(w, id, CREATE, "gzip", id < 5 ? &broken : &packed);
    assert_int_equal(w->calls_len, 1);
    move_on(w);
    for (int i = 0; i < 3; i++)
        ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=13 grpc-message="
        "CreateContainer: compressed message does not inflate\n"
        "HEADERS 3 END :status=200 content-type=application/grpc grpc-status=13 grpc-message="
        "CreateContainer: compressed message does not inflate\n"
        "HEADERS 7 END :status=200 content-type=application/grpc grpc-status=8 grpc-message="
        "CreateContainer: no room for the message beside others\n");
    forward(w, w->calls[0], NULL);
    zip_call(w, 9, CREATE, "gzip", &packed);
    assert_int_equal(w->calls_len, 2);
    move_on(w);
    buffer_fini(&packed);
    buffer_fini(&broken);
}

SCENARIO(compressions_that_cannot_be_read)
{
    struct buffer framed = {0};

    h2_message(&framed, 1, "????", 4);
    zip_call(w, 1, CREATE, "snappy", &framed);
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=12 grpc-message="
        "CreateContainer: of the compressions in grpc-encoding the shim reads only gzip\n");
    /* no encoding named: the runtime's to refuse */
    zip_call(w, 3, CREATE, "identity", &framed);
    saw(w, RUNTIME,
        "HEADERS 3 :path=/runtime.v1.RuntimeService/CreateContainer grpc-encoding=identity\n"
        "DATA 3 9 .....???? END\n");
    zip_call(w, 7, "RunPodSandbox", "gzip", &framed);
    told(w, "");
    buffer_fini(&framed);
}

/* Go reads more gzip than zlib does: what is nothing to the one may be whole to the other. */
SCENARIO(gzip_that_does_not_inflate_never_passes)
{
    struct buffer all[3] = {{0}};
    char text[160];

    h2_message(&all[0], 1, "????", 4);
    gzip(&all[1], "hello", 5);
    gzip(&all[2], "hello", 5);
    h2_put(&all[2], buffer_data(&all[1]) + 5, buffer_len(&all[1]) - 5); /* a second member */
    all[2].bytes[all[2].start + 4] = (uint8_t)(buffer_len(&all[2]) - 5);
    all[1].bytes[all[1].start + 5 + 3] |= 0x20; /* a flag that is not in use (RFC 1952 §2.3.1.2) */
    for (uint32_t i = 0; i < 3; i++) {
        zip_call(w, 2 * i + 1, CREATE, "gzip", &all[i]);
        move_on(w);
        ack(w, RUNTIME);
        snprintf(text, sizeof text,
                 "HEADERS %u END :status=200 content-type=application/grpc grpc-status=13 "
                 "grpc-message=CreateContainer: compressed message does not inflate\n",
                 2 * i + 1);
        saw(w, CLIENT, text);
        buffer_fini(&all[i]);
    }
    told(w, "");
}

/* A refusal of the relay's own says which method it was. */
SCENARIO(a_method_that_cannot_be_read_is_named)
{
    struct buffer framed = {0};

    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_INTERCEPTED);
    h2_message(&framed, 1, "????", 4);
    zip_call(w, 1, LIST, "snappy", &framed);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "WINDOW 0 +9\n"
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=12 grpc-message="
        "ListContainers: of the compressions in grpc-encoding the shim reads only gzip\n");
    buffer_fini(&framed);
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(a_gzip_message_goes_on_plain_with_a_fragment_and_packed_without_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gzip_message_goes_on_plain_with_a_fragment_and_packed_without),
        cmocka_unit_test(a_gzip_bomb_is_refused),
        cmocka_unit_test(inflated_messages_have_a_common_bound),
        cmocka_unit_test(compressions_that_cannot_be_read),
        cmocka_unit_test(gzip_that_does_not_inflate_never_passes),
        cmocka_unit_test(a_method_that_cannot_be_read_is_named),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
