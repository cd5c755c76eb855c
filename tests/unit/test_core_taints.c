/* shim/cluster/core_taints.c: what the cluster says of taints, as the core is told it, which is
 * played here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "shim/cluster/core_taints.h"
#include "told_text.h"

/* What the server's clock shows: a moment after the first second of 2026. */
#define NOW_S 1767225601

static char told[1024];

#define say(...) told_text_add(told, sizeof told, __VA_ARGS__)

static void say_taint(const struct devicemgr_taint *taint)
{
    say("%s=%s:%s@%llu%s", taint->key, taint->value, taint->effect,
        (unsigned long long)taint->added_s, taint->age_ms ? " old" : "");
}

void devicemgr_slice_taints(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                            const char *driver, const char *pool, int64_t generation,
                            const struct devicemgr_tainted_device *devices, size_t devices_len)
{
    assert_null(mgr);
    assert_int_equal(now_ms, 7);
    say("slice %s %s %s %lld:", uid, driver, pool, (long long)generation);
    for (size_t i = 0; i < devices_len; i++) {
        say(" %s ", devices[i].device);
        say_taint(&devices[i].taint);
    }
}

void devicemgr_taint_rule(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                          const struct devicemgr_taint_rule *rule)
{
    (void)mgr;
    (void)now_ms;
    say("rule %s %s (%s %s %s) ", uid, rule->name, rule->driver ? rule->driver : "any",
        rule->pool ? rule->pool : "any", rule->device ? rule->device : "any");
    say_taint(&rule->taint);
}

void devicemgr_taint_rule_gone(struct devicemgr *mgr, uint64_t now_ms, const char *uid)
{
    (void)mgr;
    (void)now_ms;
    say("no rule %s", uid);
}

void devicemgr_claim_consumers(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                               const struct devicemgr_claim_consumers *consumers)
{
    (void)mgr;
    (void)now_ms;
    say("claim %s%s:", uid, consumers->extended ? " extended" : "");
    for (size_t i = 0; i < consumers->reserved_for_len; i++)
        say(" %s", consumers->reserved_for[i]);
    for (size_t i = 0; i < consumers->tolerations_len; i++) {
        const struct devicemgr_claim_toleration *one = &consumers->tolerations[i];

        say(" %s/%s/%s %s %s=%s:%s", one->driver, one->pool, one->device, one->toleration.op,
            one->toleration.key, one->toleration.value, one->toleration.effect);
        if (one->toleration.has_seconds)
            say(" %lld s", (long long)one->toleration.seconds);
    }
}

static void assert_told(const char *expected)
{
    assert_string_equal(told, expected);
    told[0] = '\0';
}

static Agent__V1__Taint taint(const char *key, const char *time_added)
{
    Agent__V1__Taint taint = AGENT__V1__TAINT__INIT;

    taint.key = (char *)(uintptr_t)key;
    taint.value = (char *)"v";
    taint.effect = (char *)"NoExecute";
    taint.time_added = (char *)(uintptr_t)time_added;
    return taint;
}

static void a_slice(void **state)
{
    Agent__V1__Taint taints[] = {
        taint("a", "2026-01-01T00:00:00Z"), taint("b", "9999-01-01T00:00:00Z"), taint("c", ""),
        taint("d", "yesterday"), taint("e", "2026-01-01T00:00:00Z and more")};
    Agent__V1__DeviceTaint of[5], *all[5];
    Agent__V1__Slice slice = AGENT__V1__SLICE__INIT;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        agent__v1__device_taint__init(&of[i]);
        of[i].device = (char *)"g0";
        of[i].taint = &taints[i];
        all[i] = &of[i];
    }
    slice.driver = (char *)"d.io";
    slice.pool = (char *)"p";
    slice.generation = 3;
    slice.taints = all;
    core_taints_slice(NULL, 7, NOW_S, "s1", &slice);
    assert_told("slice s1 d.io p 3:"); /* none is told, too */
    slice.n_taints = 5;
    core_taints_slice(NULL, 7, NOW_S, "s1", &slice);
    assert_told("slice s1 d.io p 3: g0 a=v:NoExecute@1767225600 old g0 b=v:NoExecute@253370764800"
                " g0 c=v:NoExecute@0 g0 d=v:NoExecute@0 g0 e=v:NoExecute@0");
}

static void a_rule(void **state)
{
    Agent__V1__Taint is = taint("a", "");
    Agent__V1__TaintSelector selector = AGENT__V1__TAINT_SELECTOR__INIT;
    Agent__V1__TaintRule rule = AGENT__V1__TAINT_RULE__INIT;

    (void)state;
    rule.name = (char *)"r";
    rule.taint = &is;
    core_taints_rule(NULL, 7, NOW_S, "u", &rule);
    assert_told("no rule u"); /* it selects none */
    rule.selector = &selector;
    core_taints_rule(NULL, 7, NOW_S, "u", &rule);
    assert_told("rule u r (any any any) a=v:NoExecute@0");
    selector.driver = (char *)"d.io";
    selector.device = (char *)"g0";
    core_taints_rule(NULL, 7, NOW_S, "u", &rule);
    assert_told("rule u r (d.io any g0) a=v:NoExecute@0");
    selector.more = true; /* nobody knows what */
    core_taints_rule(NULL, 7, NOW_S, "u", &rule);
    assert_told("no rule u");
    core_taints_rule(NULL, 7, NOW_S, "u", NULL);
    assert_told("no rule u");
}

static void a_claim(void **state)
{
    Agent__V1__Toleration one = AGENT__V1__TOLERATION__INIT, other = AGENT__V1__TOLERATION__INIT;
    Agent__V1__Toleration *both[] = {&one, &other}, *second[] = {&other};
    Agent__V1__ClaimDevice device = AGENT__V1__CLAIM_DEVICE__INIT, next = device;
    Agent__V1__ClaimDevice *devices[] = {&device, &next};
    Agent__V1__Claim claim = AGENT__V1__CLAIM__INIT;
    char *pods[] = {(char *)"u1", (char *)"u2"};

    (void)state;
    claim.uid = (char *)"c1";
    core_taints_claim(NULL, 7, &claim);
    assert_told("claim c1:");
    one.key = (char *)"k";
    one.operator_ = (char *)"Exists";
    one.limited = true;
    other.value = (char *)"v";
    other.effect = (char *)"NoExecute";
    device.driver = next.driver = (char *)"d.io";
    device.pool = next.pool = (char *)"p";
    device.device = (char *)"g0";
    next.device = (char *)"g1";
    device.tolerations = both;
    device.n_tolerations = 2;
    next.tolerations = second;
    next.n_tolerations = 1;
    claim.devices = devices;
    claim.n_devices = 2;
    claim.reserved_for = pods;
    claim.n_reserved_for = 2;
    claim.extended = true;
    core_taints_claim(NULL, 7, &claim);
    assert_told("claim c1 extended: u1 u2 d.io/p/g0 Exists k=: 0 s d.io/p/g0  =v:NoExecute"
                " d.io/p/g1  =v:NoExecute");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice),
        cmocka_unit_test(a_rule),
        cmocka_unit_test(a_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
