/*
 * Requests at the control socket: each method, in any order, with any bytes, while clients go, the
 * store takes what is set or does not, and time passes.
 *
 * Input: operations of a byte each. From OTHER on something else happens; below it is the number of
 * a method, two bytes of length, and as many of its request. Each call is answered once at most, an
 * error has words, no answer has more bytes than limits.h says, and what is kept of a call that is
 * open knows when its client goes (control_calls.c).
 */
#include "tests/fuzz/control_stage.h"
#include "tests/fuzz/fuzz.h"

#define OTHER 0x80
#define OPERATIONS_MAX 64

enum other {
    CLIENT_GONE,
    COMMITTED,
    COMMIT_FAILED,
    LISTED,
    PASS,
    LEVEL_WRITTEN,
    LEVEL_FAILED,
    LOOKED,
    LOOK_FAILED,
    OTHERS,
};

static void happen(enum other what)
{
    switch (what) {
    case CLIENT_GONE:
        control_stage_client_gone();
        break;
    case COMMITTED:
        control_stage_committed(NULL);
        break;
    case COMMIT_FAILED:
        control_stage_committed("disk full");
        break;
    case LISTED:
        control_stage_listed();
        break;
    case PASS:
        control_stage_pass(6000);
        break;
    case LEVEL_WRITTEN:
        control_stage_level_written(0);
        break;
    case LEVEL_FAILED:
        control_stage_level_written(-5);
        break;
    case LOOKED:
        control_stage_looked(NULL);
        break;
    case LOOK_FAILED:
    case OTHERS:
        control_stage_looked("locked");
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};

    control_stage_begin();
    for (int i = 0; in.len > 0 && i < OPERATIONS_MAX; i++) {
        uint8_t what = fuzz_u8(&in);

        if (what >= OTHER) {
            happen((enum other)((what - OTHER) % OTHERS));
        } else {
            struct fuzz_input request = fuzz_bytes(&in, fuzz_u16(&in));

            control_stage_call(what % control_stage_methods(), request.bytes, request.len);
        }
    }
    control_stage_end();
    return 0;
}
