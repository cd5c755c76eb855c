/* devicemgr/things/cdi.c: the names in a runtime's words of CDI devices that it cannot resolve. */
#include <stdio.h>

#include "devicemgr/things/cdi.h"
#include "devicemgr/things/limits.h"
#include "devicemgr_world.h"

static void found(const char *words, const char *names)
{
    char text[256] = "";
    struct ids ids = {0};

    cdi_unresolved(words, &ids);
    for (size_t i = 0, len = 0; i < ids.len; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "", ids.v[i]);
    assert_string_equal(text, names);
    ids_fini(&ids);
}

static void names_are_between_other_words(void **state)
{
    (void)state;
    found("failed to inject devices: unresolvable CDI devices a.com/b=c, d.com/e=f: whatever, x",
          "a.com/b=c d.com/e=f");
    found("unresolvable CDI devices a.com/b=c", "a.com/b=c");
    found("unresolvable CDI devices a.com/b=c::", "a.com/b=c");
    found("unresolvable CDI devices :", "");
    found("unresolvable CDI devices ", "");
    found("unresolvable CDI devices a.com/b=c, ", "a.com/b=c");
    found("no space left on device", "");
}

static void there_is_a_most_of_them(void **state)
{
    char words[1024] = "unresolvable CDI devices a.com/b=0";
    size_t len = strlen(words);
    struct ids ids = {0};

    (void)state;
    for (int i = 1; i <= UNRESOLVED_MAX; i++)
        len += (size_t)snprintf(words + len, sizeof words - len, ", a.com/b=%d", i);
    cdi_unresolved(words, &ids);
    assert_int_equal(ids.len, UNRESOLVED_MAX);
    ids_fini(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_between_other_words),
        cmocka_unit_test(there_is_a_most_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
