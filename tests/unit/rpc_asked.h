/*
 * A server of ours (rpc_served.h) and a client that says to it, byte by byte, what the test
 * chooses.
 */
#ifndef TESTS_UNIT_RPC_ASKED_H
#define TESTS_UNIT_RPC_ASKED_H

#include "tests/unit/rpc_served.h"

#define END NGHTTP2_FLAG_END_STREAM

/* The fields of a call of /test/Take, name and value in turn, up to NULL. */
extern const char *const request_fields[];

#define REQUEST "\x1a\x04widg"
#define REQUEST_LEN 6

/* A message of it: bytes, and how many. */
#define WHOLE "\0\0\0\0\6" REQUEST, 5 + REQUEST_LEN

/* A server, what a client asks it, and that client. */
struct fixture {
    struct world *world;
    struct served served;
    struct bytes request; /* a whole call of /test/Take, if the test does not
                             choose another */
    struct raw *raw;      /* NULL while there is none */
};

/* cmocka fixtures: *state is a struct fixture. */
int setup(void **state);
int teardown(void **state);

/* The request above with one of its fields replaced or added; `value` NULL: left out; `name` NULL:
 * none is. */
void request_with(struct bytes *request, const char *name, const char *value, const char *message,
                  size_t len);

void ask(struct fixture *f);
/* A client beside it that sends that, to be closed and freed. */
struct raw *ask_with(struct fixture *f, const struct bytes *request);
/* Asks, and waits until the test may answer. */
void ask_taken(struct fixture *f);
/* Asks and waits for the end of the stream; whether `text` came then. */
bool answers(struct fixture *f, const char *text);
void hang_up(struct fixture *f);
/* For what must hold after the end. */
void end(struct fixture *f);

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
