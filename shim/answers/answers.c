#include "shim/answers/answers.h"

#include <time.h>

#include "shim/json_value.h"
#include "shim/must.h"

const char *answer_time(uint64_t ms_ago, char out[static ANSWER_TIME_BYTES])
{
    struct timespec now;
    time_t then;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    then = now.tv_sec - (time_t)(ms_ago / 1000);
    if (now.tv_nsec / 1000000 < (long)(ms_ago % 1000))
        then--; /* in one second whenever it is told: the page shows nothing anew then */
    gmtime_r(&then, &tm);
    strftime(out, ANSWER_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

json_t *answer_ago(uint64_t ms)
{
    char words[ANSWER_TIME_BYTES];

    return must(json_string(answer_time(ms, words)));
}

json_t *answer_seconds(uint64_t ms)
{
    return must(json_integer((json_int_t)(ms / 1000)));
}

json_t *answer_cordon(const Control__V1__Cordon *cordon)
{
    json_t *one;

    if (!cordon)
        return json_null();
    one = must(json_object());
    json_value_set(one, "since", answer_ago(cordon->since_ms));
    json_value_set(one, "reason", json_value_text_or_null(cordon->reason));
    return one;
}

json_t *answer_health(const Control__V1__DeviceHealth *health)
{
    json_t *one;

    if (!health)
        return json_null();
    one = must(json_object());
    json_value_set(one, "state", json_value_text(health->state));
    json_value_set(one, "message", json_value_text_or_null(health->message));
    json_value_set(one, "said", answer_ago(health->said_ms));
    return one;
}
