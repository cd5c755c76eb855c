/* config/compare.c: what differs, and what of it may change without a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/compare.h"

static char said[512];

static void say(void *user, const char *name, bool live)
{
    size_t len = strlen(said);

    (void)user;
    snprintf(said + len, sizeof said - len, "%s%s%s", len ? " " : "", live ? "" : "!", name);
}

static void parse(const char *text, struct config *out)
{
    static struct config_error err;

    if (config_parse(text, strlen(text), "t", out, &err) < 0)
        fail_msg("%s", err.text);
}

static const char *differences(const struct config *a, const struct config *b)
{
    said[0] = '\0';
    config_compare(a, b, say, NULL);
    return said;
}

#define DEVICE "[[device]]\nresource = 'a.b/c'\npath = '/dev/c'\n"
#define RESOURCE "[[resource]]\nname = 'a.b/c'\n"

/* `expected`: "!" in front of what needs a restart; what does not is taken over. */
static void every_kind_of_key(void **state)
{
    static const struct {
        const char *before, *after, *expected, *left;
    } cases[] = {
        {"", "", "", ""},
        {"", "listen = '/run/x.sock'", "!listen !bridge.socket !control.socket",
         "!listen !bridge.socket !control.socket"},
        {"", "log_level = 'debug'", "log.level", ""},
        {"log_level = 'error'", "[log]\nlevel = 'error'", "", ""},
        {"", "[log]\nformat = 'json'", "log.format", ""},
        {"", "drain = '3s'", "drain", ""},
        {"", "state_dir = '/s'", "!state_dir", "!state_dir"},
        {"", "[metrics]\nlisten = '/m'", "!metrics.listen", "!metrics.listen"},
        {"", "[plugins]\nhold = '1s'\ngrace = '1m'", "plugins.grace plugins.hold", ""},
        {"", "[plugins]\nkubelet_wait = '1s'\nhold = '1s'", "plugins.hold !plugins.kubelet_wait",
         "!plugins.kubelet_wait"},
        {"", "[bridge]\ngate = false\nmask = '1s'\ngate_timeout = '1s'",
         "!bridge.mask !bridge.gate bridge.gate_timeout", "!bridge.mask !bridge.gate"},
        {"", "[bridge]\nkubelet_processes = ['x']", "!bridge.kubelet_processes",
         "!bridge.kubelet_processes"},
        {"annotations.namespaces = ['a', 'b']", "annotations.namespaces = ['a', 'c']",
         "annotations.namespaces", ""},
        {"", DEVICE, "![[device]]", "![[device]]"},
        {DEVICE, DEVICE, "", ""},
        {DEVICE, DEVICE "envs = { A = 'b' }", "![[device]]", "![[device]]"},
        {DEVICE "envs = { A = 'b' }", DEVICE "envs = { A = 'c' }", "![[device]]", "![[device]]"},
        {DEVICE "count = 2", DEVICE "count = 3", "![[device]]", "![[device]]"},
        {RESOURCE, RESOURCE "hold = '1s'", "[[resource]]", ""},
        {RESOURCE "hold = '1s'", RESOURCE "hold = '2s'\nexclusive = false", "![[resource]]",
         "![[resource]]"},
        {RESOURCE, "plugins.grace = '1m'\n" RESOURCE, "plugins.grace [[resource]]", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config before, after;

        parse(cases[i].before, &before);
        parse(cases[i].after, &after);
        assert_string_equal(differences(&before, &after), cases[i].expected);
        config_exchange_live(&before, &after);
        config_fini(&after);
        parse(cases[i].after, &after);
        assert_string_equal(differences(&before, &after), cases[i].left);
        config_fini(&before);
        config_fini(&after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_key)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
