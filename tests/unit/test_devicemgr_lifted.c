/* devicemgr/rules/lifted.c: what is published of a resource as that of a DRA driver. */
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/lifted_name.h"
#include "devicemgr/lift.h"
#include "devicemgr/operator.h"
#include "devicemgr/things/limits.h"
#include "shown_world.h"

/* ---- as text ---- */

struct telling {
    char text[8192];
    size_t devices;
};

static void put_resource(void *user, const struct devicemgr_lifted *lifted)
{
    struct telling *telling = user;
    size_t len = strlen(telling->text);

    snprintf(telling->text + len, sizeof telling->text - len, "%s%s in %s: %zu",
             len > 0 ? ", " : "", lifted->resource, lifted->pool, lifted->devices);
    if (lifted->left_out > 0)
        sprintf(telling->text + strlen(telling->text), " of %zu more", lifted->left_out);
}

static void put_attribute(char *out, const struct devicemgr_attribute *attribute)
{
    out += sprintf(out, " %s=", attribute->name);
    if (attribute->kind == DEVICEMGR_ATTRIBUTE_TEXT)
        sprintf(out, "%s", attribute->text);
    else if (attribute->kind == DEVICEMGR_ATTRIBUTE_NUMBER)
        sprintf(out, "#%lld", (long long)attribute->number);
    else
        sprintf(out, "%s", attribute->flag ? "yes" : "no");
}

static void put_device(void *user, const struct devicemgr_lifted_device *device)
{
    struct telling *telling = user;
    char *text = telling->text;

    if (telling->devices++ > 0)
        strcat(text, ", ");
    strcat(text, device->name);
    for (size_t i = 0; i < device->attributes_len; i++) {
        if (strcmp(device->attributes[i].name, "resource") != 0)
            put_attribute(text + strlen(text), &device->attributes[i]);
    }
    for (size_t i = 0; i < device->taints_len; i++) {
        const char *slash = strchr(device->taints[i].key, '/');

        sprintf(text + strlen(text), " %s%s%s:%s", slash ? slash + 1 : device->taints[i].key,
                *device->taints[i].value ? "=" : "", device->taints[i].value,
                device->taints[i].effect);
    }
}

/* As it was last, in the life of one process. */
static struct {
    uint64_t version;
    char text[2 * 8192];
} before;

/* What is published has another version whenever it is another. */
static void expect_lifted(struct world *w, const char *resources, const char *devices)
{
    struct telling all = {.devices = 0}, of = {.devices = 0};
    char text[2 * 8192];

    devicemgr_lifted(w->mgr, put_resource, &all);
    devicemgr_lifted_devices(w->mgr, GPU, put_device, &of);
    assert_string_equal(all.text, resources);
    assert_string_equal(of.text, devices);
    sprintf(text, "%s;%s", all.text, of.text);
    if (before.version != 0 && strcmp(text, before.text) != 0)
        assert_int_not_equal(devicemgr_lifted_version(w->mgr), before.version);
    before.version = devicemgr_lifted_version(w->mgr);
    strcpy(before.text, text);
}

static void lift_with(struct world *w, const struct devicemgr_settings_attribute *attributes,
                      size_t len)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    before.version = 0;
    own.dra = true;
    own.attributes = attributes;
    own.attributes_len = len;
    world_fresh_with(w, &own);
}

static int lift_setup(void **state)
{
    if (mask_setup(state) < 0)
        return -1;
    lift_with(*state, NULL, 0);
    return 0;
}

#define OF(n) GPU " in " GPU ": " #n

/* ---- which ---- */

static void a_resource_is_published_that_the_settings_say(void **state)
{
    struct world *w = *state;

    expect_lifted(w, "", "");
    nics_up(w, "n0");
    expect_lifted(w, "", "");
    gpus_up(w, "g0 g1@1");
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1 numaNode=#1");
}

static void as_long_as_it_is_there_or_may_come_back(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, MASK_MS - 1);
    expect_lifted(w, OF(1), "g0 id=g0");
    pass(w, 1);
    expect_lifted(w, OF(1), "g0 id=g0 plugin-away:NoSchedule");
    pass_stored(w, GRACE_MS);
    expect_lifted(w, "", "");
    gpus_up(w, "g0");
    expect_lifted(w, OF(1), "g0 id=g0");
}

/* Until its plugin has listed them, as it was shown last. */
static void over_restarts(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1 unhealthy:NoSchedule");
    restart(w);
    before.version = 0;
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1");
    serve(w, "g0 g1!");
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1 unhealthy:NoSchedule");
}

/* ---- what is said of them ---- */

static void several_nodes_are_a_text(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0@0@2 g1@7");
    expect_lifted(w, OF(2), "g0 id=g0 numaNodes=0,2, g1 id=g1 numaNode=#7");
    /* which they are no more where it would be too long */
    plugin_list(w, w->endpoint,
                "g0@101@102@103@104@105@106@107@108@109@110@111@112@113@114@115@116@117");
    expect_lifted(w, OF(1), "g0 id=g0");
}

static void an_id_that_is_too_long_is_none(void **state)
{
    char id[LIFTED_TEXT_BYTES_MAX + 2];
    struct world *w = *state;
    struct telling of = {.devices = 0};

    memset(id, 'x', sizeof id);
    id[LIFTED_TEXT_BYTES_MAX] = '\0';
    gpus_up(w, id);
    devicemgr_lifted_devices(w->mgr, GPU, put_device, &of);
    assert_non_null(strstr(of.text, id));
    id[LIFTED_TEXT_BYTES_MAX] = 'x';
    id[LIFTED_TEXT_BYTES_MAX + 1] = '\0';
    plugin_list(w, w->endpoint, id);
    of = (struct telling){.devices = 0};
    devicemgr_lifted_devices(w->mgr, GPU, put_device, &of);
    assert_null(strstr(of.text, "id="));
}

#define TEXT(glob, key, value)                                                                     \
    {                                                                                              \
        glob,                                                                                      \
        {                                                                                          \
            .name = key, .kind = DEVICEMGR_ATTRIBUTE_TEXT, .text = value                           \
        }                                                                                          \
    }

static void the_settings_have_more_to_say(void **state)
{
    static const struct devicemgr_settings_attribute OWN[] = {
        TEXT("g1", "model", "small"),
        TEXT("g*", "model", "large"),
        {"*", {.name = "memory", .kind = DEVICEMGR_ATTRIBUTE_NUMBER, .number = 80}},
        {"g1", {.name = "fast", .kind = DEVICEMGR_ATTRIBUTE_FLAG, .flag = true}},
        TEXT("h*", "model", "none"),
        TEXT("*", "id", "other"),
    };
    struct world *w = *state;

    lift_with(w, OWN, sizeof OWN / sizeof *OWN);
    gpus_up(w, "g0 g1");
    expect_lifted(w, OF(2),
                  "g0 id=g0 model=large memory=#80, g1 id=g1 model=small memory=#80 fast=yes");
    w->own.attributes_len = 1;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    devicemgr_run(w->mgr);
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1 model=small");
}

static void there_is_a_most_of_attributes(void **state)
{
    struct devicemgr_settings_attribute many[LIFTED_ATTRIBUTES_MAX];
    char names[LIFTED_ATTRIBUTES_MAX][8];
    struct world *w = *state;
    struct telling of = {.devices = 0};

    for (size_t i = 0; i < LIFTED_ATTRIBUTES_MAX; i++) {
        sprintf(names[i], "a%zu", i);
        many[i] = (struct devicemgr_settings_attribute)TEXT("*", names[i], "x");
    }
    lift_with(w, many, LIFTED_ATTRIBUTES_MAX);
    gpus_up(w, "g0");
    devicemgr_lifted_devices(w->mgr, GPU, put_device, &of);
    assert_non_null(strstr(of.text, " a29=x")); /* beside resource and id */
    assert_null(strstr(of.text, " a30=x"));
}

/* ---- taints ---- */

static void health_is_a_taint(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1 unhealthy:NoSchedule");
    plugin_list(w, w->endpoint, "g0! g1");
    expect_lifted(w, OF(2), "g0 id=g0 unhealthy:NoSchedule, g1 id=g1");
    plugin_list(w, w->endpoint, "g0 g1");
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1");
}

static void stored(struct world *w)
{
    devicemgr_run(w->mgr);
    ignore_all(w);
    while (w->pending) {
        committed(w);
        ignore_all(w);
    }
}

static void so_is_what_an_operator_sets(void **state)
{
    static const char *const IDS[] = {"g1"};
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    devicemgr_cordon(w->mgr, w->now_ms, 1, GPU, IDS, 1, "dust", 1234);
    devicemgr_taint(w->mgr, w->now_ms, 3, GPU, "g0", "x.io/k:None", 0, "", 1234, false);
    devicemgr_taint(w->mgr, w->now_ms, 3, GPU, "g0", "x.io/n:NoSchedule", 0, "", 1234, false);
    stored(w);
    expect_lifted(w, OF(2),
                  "g0 id=g0 n:NoSchedule, g1 id=g1 cordoned:NoSchedule unhealthy:NoSchedule");
    devicemgr_withdraw(w->mgr, w->now_ms, 4, GPU, "moved", 1234);
    stored(w);
    expect_lifted(w, OF(2),
                  "g0 id=g0 withdrawn:NoSchedule n:NoSchedule, g1 id=g1 withdrawn:NoSchedule "
                  "cordoned:NoSchedule unhealthy:NoSchedule");
    devicemgr_withdraw_undo(w->mgr, w->now_ms, 5, GPU);
    devicemgr_uncordon(w->mgr, w->now_ms, 6, GPU, IDS, 1);
    devicemgr_untaint(w->mgr, w->now_ms, 7, GPU, "g0", "x.io/n");
    stored(w);
    expect_lifted(w, OF(2), "g0 id=g0, g1 id=g1 unhealthy:NoSchedule");
}

static void taint(struct world *w, const char *device, const char *text)
{
    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, device, text, 0, "", 1234, false);
    stored(w);
}

/* What an operator and the settings both say is one. */
static void a_taint_is_told_once(void **state)
{
    static const struct devicemgr_settings_taint SET[] = {{GPU, NULL, "x.io/k", "v", "NoSchedule"},
                                                          {GPU, "g1", "x.io/k", "w", "NoSchedule"}};
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    taint(w, "g0", "x.io/k=v:NoSchedule");
    taint(w, "g0", "x.io/k=v:NoExecute");
    w->settings.taints = SET;
    w->settings.taints_len = 2;
    devicemgr_set_settings(w->mgr, w->now_ms, &w->settings);
    stored(w);
    w->settings.taints_len = 0;
    expect_lifted(w, OF(2),
                  "g0 id=g0 k=v:NoExecute k=v:NoSchedule, g1 id=g1 k=v:NoSchedule k=w:NoSchedule");
}

static void there_is_a_most_of_taints(void **state)
{
    struct world *w = *state;
    struct telling of = {.devices = 0};
    size_t taints = 0;

    gpus_up(w, "g0");
    for (unsigned i = 0; i < LIFTED_TAINTS_MAX + 2; i++) {
        char text[32];

        sprintf(text, "x.io/k%u:NoSchedule", i);
        taint(w, "g0", text);
    }
    devicemgr_lifted_devices(w->mgr, GPU, put_device, &of);
    for (const char *at = of.text; (at = strstr(at, ":NoSchedule")); at++)
        taints++;
    assert_int_equal(taints, LIFTED_TAINTS_MAX);
}

/* Nobody is to be evicted for what a restart would forget. */
static void what_evicts_is_durable_first(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0!");
    devicemgr_taint(w->mgr, w->now_ms, 1, GPU, "g0", "x.io/k=v:NoExecute", 0, "", 1234, false);
    devicemgr_run(w->mgr);
    expect_lifted(w, OF(1), "g0 id=g0 unhealthy:NoSchedule");
    stored(w);
    expect_lifted(w, OF(1), "g0 id=g0 k=v:NoExecute unhealthy:NoSchedule");
    devicemgr_untaint(w->mgr, w->now_ms, 2, GPU, "g0", "x.io/k");
    stored(w);
    expect_lifted(w, OF(1), "g0 id=g0 unhealthy:NoSchedule");
}

/* ---- how much ---- */

static void there_is_a_most_of_devices(void **state)
{
    size_t len = LIFTED_DEVICES_MAX + 3, bytes = len * 10;
    char *list = malloc(bytes), *at = list;
    struct world *w = *state;
    struct telling all = {.devices = 0}, of = {.devices = 0};

    assert_non_null(list);
    for (size_t i = 0; i < len; i++)
        at += sprintf(at, "%sg%zu", i > 0 ? " " : "", i);
    gpus_up(w, list);
    free(list);
    devicemgr_lifted(w->mgr, put_resource, &all);
    assert_string_equal(all.text, OF(16384) " of 3 more");
    devicemgr_lifted_devices(w->mgr, NIC, put_device, &of); /* of which none is */
    assert_int_equal(of.devices, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define lift_test(test) cmocka_unit_test_setup_teardown(test, lift_setup, world_teardown)
        lift_test(a_resource_is_published_that_the_settings_say),
        lift_test(as_long_as_it_is_there_or_may_come_back),
        lift_test(over_restarts),
        lift_test(several_nodes_are_a_text),
        lift_test(an_id_that_is_too_long_is_none),
        lift_test(the_settings_have_more_to_say),
        lift_test(there_is_a_most_of_attributes),
        lift_test(health_is_a_taint),
        lift_test(so_is_what_an_operator_sets),
        lift_test(a_taint_is_told_once),
        lift_test(there_is_a_most_of_taints),
        lift_test(what_evicts_is_durable_first),
        lift_test(there_is_a_most_of_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
