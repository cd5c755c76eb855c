/* What the kubelet is shown, in the order of devicemgr.h. */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/limits.h"
#include "devicemgr/request.h"
#include "devicemgr_world.h"

#define MASK_MS 120000

static const char *const ALL[] = {"*"};

/* ---- what is shown, as text ---- */

struct report {
    char text[4096];
    size_t len;
};

static void report_add(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void report_add(struct report *report, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report->len += (size_t)vsnprintf(report->text + report->len, sizeof report->text - report->len,
                                     format, args);
    va_end(args);
    assert_true(report->len < sizeof report->text);
}

/* "g0 g1! g2+ g3@1": g1 unhealthy, g2 held, g3 on NUMA node 1 */
static void add_device(void *user, const struct devicemgr_shown_device *d)
{
    struct report *report = user;

    report_add(report, "%s%s%s%s", report->len ? " " : "", d->id, d->healthy ? "" : "!",
               d->held ? "+" : "");
    for (size_t i = 0; i < d->numa_nodes_len; i++)
        report_add(report, "@%d", (int)d->numa_nodes[i]);
}

static void add_resource(void *user, const struct devicemgr_shown *shown)
{
    struct report *report = user;

    assert_int_not_equal(shown->version, 0);
    report_add(report, "%s%s", report->len ? ", " : "", shown->resource);
}

static void expect_resources(struct world *w, const char *expected)
{
    struct report report = {0};

    devicemgr_shown(w->mgr, add_resource, &report);
    assert_string_equal(report.text, expected);
}

struct wanted {
    const char *resource;
    struct devicemgr_shown shown;
};

static void find_wanted(void *user, const struct devicemgr_shown *shown)
{
    struct wanted *wanted = user;

    if (strcmp(shown->resource, wanted->resource) == 0)
        wanted->shown = *shown;
}

static struct devicemgr_shown shown_of(struct world *w, const char *resource)
{
    struct wanted wanted = {.resource = resource};

    devicemgr_shown(w->mgr, find_wanted, &wanted);
    return wanted.shown;
}

static uint64_t version_of(struct world *w, const char *resource)
{
    return shown_of(w, resource).version;
}

static uint64_t mask_end_of(struct world *w, const char *resource)
{
    return shown_of(w, resource).mask_end_ms;
}

/* What of one resource was seen last: another list must come with other versions. */
struct seen {
    const char *resource;
    uint64_t version;
    uint64_t version_of_all;
    uint64_t mask_end_ms;
    char text[4096];
};

static struct seen seen[2];

static void forget_seen(void)
{
    memset(seen, 0, sizeof seen);
    seen[0].resource = GPU;
    seen[1].resource = NIC;
}

static void look(struct world *w, struct seen *before)
{
    struct seen now = {.resource = before->resource,
                       .version = version_of(w, before->resource),
                       .version_of_all = devicemgr_shown_version(w->mgr),
                       .mask_end_ms = mask_end_of(w, before->resource)};
    struct report report = {0};

    devicemgr_shown_devices(w->mgr, now.resource, add_device, &report);
    strcpy(now.text, report.text);
    assert_int_not_equal(now.version_of_all, 0);
    if (strcmp(now.text, before->text) != 0)
        assert_int_not_equal(now.version, before->version);
    if (now.version != before->version || now.mask_end_ms != before->mask_end_ms)
        assert_int_not_equal(now.version_of_all, before->version_of_all);
    *before = now;
}

static void expect_shown(struct world *w, const char *resource, const char *expected)
{
    struct seen *of = &seen[strcmp(resource, GPU) == 0 ? 0 : 1];

    look(w, of);
    assert_string_equal(of->text, expected);
}

/* ---- the world ---- */

static int mask_setup(void **state)
{
    struct world *w;

    forget_seen();
    world_setup(state);
    w = *state;
    w->settings.mask_ms = MASK_MS;
    w->settings.annotations = true;
    w->settings.namespaces = ALL;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
    kubelet_holds(w, "");
    devicemgr_kubelet_started(w->mgr, w->now_ms);
    return 0;
}

/* For good: the redial fails, too. */
static void lose(struct world *w)
{
    plugin_lost(w, w->endpoint, "killed");
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
}

/* Time passes; what is to be stored is. */
static void pass_stored(struct world *w, uint64_t ms)
{
    pass(w, ms);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

static void restart(struct world *w)
{
    world_restart(w);
    ignore_all(w);
    forget_seen(); /* versions begin anew */
}

/* The plugin that was dialled after a restart serves. */
static void serve(struct world *w, const char *devices)
{
    plugin_back(w, devices);
    if (w->pending)
        committed(w);
    ignore_all(w);
}

static void kubelet_starts(struct world *w)
{
    devicemgr_kubelet_started(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

static void sandbox_ended(struct world *w, const char *id)
{
    sandbox_stopping(w, id);
    sandbox_stopped(w, id);
}

/* ---- which resources ---- */

static void a_resource_is_shown_from_its_first_list_on(void **state)
{
    struct world *w = *state;

    expect_resources(w, "");
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_resources(w, "");
    plugin_list(w, w->endpoint, "");
    expect_resources(w, GPU);
    expect_shown(w, GPU, "");
    expect_shown(w, NIC, "");
}

static void resources_come_in_the_order_of_names(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    nics_up(w, "n0");
    plugin_up(w, "vendor.com/fpga", "fpga.sock", "f0", false, false);
    expect_resources(w, NIC ", vendor.com/fpga, " GPU);
}

static void a_resource_is_shown_from_its_restoring_on(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1@1");
    restart(w);
    expect_resources(w, GPU);
    expect_shown(w, GPU, "g0 g1@1");
}

static void a_resource_is_shown_until_its_grace_is_over(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0");
    lose(w);
    pass_stored(w, GRACE_MS - 1);
    expect_shown(w, GPU, "g0!+");
    pass(w, 1);
    expect_resources(w, "");
    expect_shown(w, GPU, "");
    gpus_up(w, "g0 g1");
    expect_shown(w, GPU, "g0+ g1"); /* the allocation was kept */
}

/* A gRPC library that looks ends the stream over it. */
static void an_id_that_is_no_utf8_is_not_shown(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 \xff\xfe g1!");
    expect_shown(w, GPU, "g0 g1!");
}

static void list_builtin(struct world *w, bool healthy)
{
    const struct devicemgr_builtin_device device = {.id = "x",
                                                    .healthy = healthy,
                                                    .host_path = "/dev/x",
                                                    .container_path = "/dev/x",
                                                    .permissions = "rw"};

    devicemgr_builtin(w->mgr, w->now_ms, GPU, &device, 1);
    devicemgr_run(w->mgr);
}

static void built_in_devices_are_shown_as_they_are(void **state)
{
    struct world *w = *state;

    list_builtin(w, true);
    expect_shown(w, GPU, "x");
    list_builtin(w, false);
    expect_shown(w, GPU, "x!"); /* at once: there is nothing that would come back by itself */
    assert_int_equal(mask_end_of(w, GPU), 0);
}

static void a_name_that_becomes_a_built_in_devices_is_another_list(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    expect_shown(w, GPU, "g0");
    list_builtin(w, true);
    expect_shown(w, GPU, "x");
}

/* ---- healthy while it is, and while its plugin is away for less than the mask ---- */

static void a_device_is_shown_as_its_plugin_says(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g10 g9! g1@1");

    expect_shown(w, GPU, "g1@1 g9! g10");
    plugin_list(w, gpu, "g10! g9 g1@0");
    expect_shown(w, GPU, "g1@0 g9 g10!");
    plugin_list(w, gpu, "g1@0 g2");
    expect_shown(w, GPU, "g1@0 g2");
}

static void while_masked_it_is_shown_as_it_was(void **state)
{
    struct world *w = *state;
    uint64_t end_ms;

    gpus_up(w, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), 0);
    lose(w);
    end_ms = w->now_ms + MASK_MS;
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), end_ms);
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(devicemgr_next_ms(w->mgr), end_ms);
    pass(w, 1);
    expect_shown(w, GPU, "g0! g1!");
    assert_int_equal(mask_end_of(w, GPU), 0); /* it shows already */
}

static void a_plugin_that_flaps_within_the_mask_does_not_show(void **state)
{
    struct world *w = *state;
    uint64_t version, version_of_all;

    gpus_up(w, "g0 g1!");
    expect_shown(w, GPU, "g0 g1!");
    version = version_of(w, GPU);
    for (int i = 0; i < 3; i++) {
        version_of_all = devicemgr_shown_version(w->mgr);
        lose(w);
        assert_int_not_equal(devicemgr_shown_version(w->mgr), version_of_all); /* it may show */
        pass_stored(w, MASK_MS - 1);
        version_of_all = devicemgr_shown_version(w->mgr);
        gpus_up(w, "g0 g1!");
        assert_int_not_equal(devicemgr_shown_version(w->mgr), version_of_all);
        assert_int_equal(mask_end_of(w, GPU), 0);
    }
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(version_of(w, GPU), version);
}

static void the_mask_is_that_of_the_first_loss(void **state)
{
    struct world *w = *state;
    uint64_t end_ms;

    gpus_up(w, "g0");
    lose(w);
    end_ms = w->now_ms + MASK_MS;
    pass_stored(w, MASK_MS / 2);
    plugin_register(w, 2, GPU, "gpu.sock"); /* and dies again */
    plugin_lost(w, w->endpoint, "refused");
    ignore_all(w);
    expect_shown(w, GPU, "g0");
    assert_int_equal(mask_end_of(w, GPU), end_ms);
    pass(w, MASK_MS / 2);
    expect_shown(w, GPU, "g0!");
    plugin_register(w, 3, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    expect_shown(w, GPU, "g0!"); /* it has not listed yet */
    plugin_list(w, w->endpoint, "g0");
    expect_shown(w, GPU, "g0");
}

static void without_a_mask_an_outage_shows_at_once(void **state)
{
    struct world *w = *state;

    w->settings.mask_ms = 0;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    expect_shown(w, GPU, "g0");
    plugin_lost(w, w->endpoint, "killed");
    expect_shown(w, GPU, "g0!"); /* the kubelet's own rule: also if a redial helps */
    assert_int_equal(mask_end_of(w, GPU), 0);
    serve(w, "g0");
    expect_shown(w, GPU, "g0");
}

static void a_mask_may_have_no_end(void **state)
{
    struct world *w = *state;

    w->settings.mask_ms = UINT64_MAX;
    world_fresh_listed(w);
    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, GRACE_MS - 1);
    expect_shown(w, GPU, "g0");
    assert_int_equal(mask_end_of(w, GPU), 0);
}

static void a_plugin_that_registers_anew_is_shown_as_before(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    plugin_register(w, 2, GPU, "new.sock");
    plugin_options(w, w->endpoint, false, false);
    ignore_all(w);
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), 0);
    pass(w, FIRST_LIST_MS); /* it lists nothing: it counts as stopped from then on */
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), w->now_ms + MASK_MS);
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g0! g1!");
}

static void a_restored_resource_counts_as_healthy_until_listed(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1!");
    expect_shown(w, GPU, "g0 g1!");
    restart(w);
    expect_shown(w, GPU, "g0 g1"); /* what was stored of its health may be old */
    assert_int_equal(mask_end_of(w, GPU), w->now_ms + MASK_MS);
    serve(w, "g0 g1!");
    expect_shown(w, GPU, "g0 g1!");
    assert_int_equal(mask_end_of(w, GPU), 0);
    lose(w);
    expect_shown(w, GPU, "g0 g1!"); /* as last listed, now */
}

static void a_restored_resource_that_lists_the_same_is_the_same_list(void **state)
{
    struct world *w = *state;
    uint64_t version;

    gpus_up(w, "g0 g1");
    restart(w);
    expect_shown(w, GPU, "g0 g1");
    version = version_of(w, GPU);
    serve(w, "g0 g1");
    expect_shown(w, GPU, "g0 g1");
    assert_int_equal(version_of(w, GPU), version);
}

static void a_restored_resource_is_masked_no_longer_than_others(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    lose(w);
    pass_stored(w, MASK_MS / 2);
    restart(w); /* the stop time was stored */
    plugin_lost(w, w->endpoint, "refused");
    expect_shown(w, GPU, "g0");
    assert_int_equal(mask_end_of(w, GPU), w->now_ms + MASK_MS / 2);
    pass(w, MASK_MS / 2);
    expect_shown(w, GPU, "g0!");
}

/* ---- healthy if it is held: by an allocation the kubelet made ---- */

static void what_the_kubelet_gave_away_is_healthy_to_one_that_starts(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0 g1");

    expect_shown(w, GPU, "g0+ g1");
    plugin_list(w, gpu, "g0! g1!");
    expect_shown(w, GPU, "g0+ g1!");
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0+ g1!");
    assert_int_equal(devicemgr_next_ms(w->mgr), w->now_ms + 1);
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0!+ g1!");
    plugin_list(w, gpu, "g0 g1!");
    expect_shown(w, GPU, "g0+ g1!");
    plugin_list(w, gpu, "g1");
    expect_shown(w, GPU, "g1"); /* it is gone: the kubelet must not give it to another */
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1");
    lose(w);
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g1!"); /* the outage shows as well by then */
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    container_removed(w, "c-u1-main"); /* the next attempt gets the same */
    expect_shown(w, GPU, "g0+ g1!");
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g1!");
}

/* Nobody can tell whether a kubelet has started while the shim was away. */
static void a_start_of_the_shim_counts_as_one_of_the_kubelet(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    pass_stored(w, MASK_MS);
    restart(w);
    serve(w, "g1");
    expect_shown(w, GPU, "g0+ g1");
    runtime_listed(w, "u1/main");
    pass_stored(w, MASK_MS - 1);
    expect_shown(w, GPU, "g0+ g1");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g1");
}

static void without_a_mask_the_kubelet_sees_all_as_it_is(void **state)
{
    struct world *w = *state;
    uint64_t gpu;

    w->settings.mask_ms = 0;
    world_fresh_listed(w);
    kubelet_starts(w);
    gpu = u1_has_g0(w, "g0 g1");
    plugin_list(w, gpu, "g0! g1");
    expect_shown(w, GPU, "g0!+ g1");
    plugin_list(w, gpu, "g1");
    expect_shown(w, GPU, "g1");
}

/* A pod that was just admitted may take minutes to its first sandbox. */
static void a_pod_that_may_come_holds_its_devices_for_a_time(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g9");
    expect_shown(w, GPU, "g0 g1 g9+");
    pass(w, POD_COMES_MS - 1);
    kubelet_starts(w);
    kubelet_holds(w, "u2=" GPU ":g0 u1=" GPU ":g9"); /* it goes on */
    expect_shown(w, GPU, "g0+ g1 g9+");
    pass(w, 1);
    expect_shown(w, GPU, "g0+ g1"); /* it was deleted before it began */
    sandbox_ran(w, "u1", "s-u1", 0);
    expect_shown(w, GPU, "g0+ g1 g9+"); /* or not */
}

/* What the kubelet's checkpoint had before the runtime's list, of a pod which is not in that list,
 * is of a pod that is gone: the file is written lazily. */
static void a_pod_that_is_not_listed_holds_nothing(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    restart(w);
    kubelet_holds(w, "u1=" GPU ":g9");
    serve(w, "g0 g1");
    expect_shown(w, GPU, "g0 g1 g9+");
    runtime_listed(w, "u2");
    expect_shown(w, GPU, "g0 g1");
    kubelet_holds(w, "u2=" GPU ":g9 u1=" GPU ":g9");
    expect_shown(w, GPU, "g0 g1 g9+"); /* another's */
    kubelet_holds(w, "u3=" GPU ":g8 u1=" GPU ":g9");
    expect_shown(w, GPU, "g0 g1 g8+"); /* told since */
}

/* Its sandbox was made while nobody looked. */
static void a_pod_that_only_a_create_names_is_there(void **state)
{
    struct world *w = *state;

    w->settings.start_without = true;
    w->settings.annotations = false;
    gpus_up(w, "g0 g1");
    restart(w);
    kubelet_holds(w, "u1=" GPU ":g9");
    serve(w, "g0 g1");
    runtime_listed(w, "u2");
    expect_shown(w, GPU, "g0 g1");
    assert_false(create_in(w, 11, "s-u1", "u1", "main", NULL, GPU "=1"));
    expect_shown(w, GPU, "g0 g1 g9+");
}

/* In a new boot it may come as long as the kubelet admits its pods. */
static void a_pod_of_before_a_reboot_may_come(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    w->settings.boot_id = "boot-2";
    restart(w);
    kubelet_holds(w, "u7=" GPU ":g9");
    serve(w, "g0 g1");
    runtime_listed(w, "");
    expect_shown(w, GPU, "g0+ g1 g9+");
    pass_stored(w, MASK_MS);
    expect_shown(w, GPU, "g0+ g1");
}

static void what_is_held_is_shown_though_it_is_not_listed_any_more(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g1 g2@1 g10");

    container_made(w, 11, "u1", "main", GPU ":g2,g10");
    expect_shown(w, GPU, "g1 g2+@1 g10+");
    plugin_list(w, gpu, "g1 g3");
    expect_shown(w, GPU, "g1 g2+ g3 g10+");
    plugin_list(w, gpu, "");
    expect_shown(w, GPU, "g2+ g10+");
}

static void a_create_under_way_holds_already(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0");

    create_token(w, 11, "u1", GPU ":g0");
    expect(w, "allocate *");
    plugin_list(w, gpu, "g0!");
    expect_shown(w, GPU, "g0+");
    create_cancelled(w, 11);
    expect_shown(w, GPU, "g0!");
}

static void what_cannot_be_stored_is_held_no_more(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_token(w, 11, "u1", GPU ":g0");
    allocated(w, "A=1");
    expect_shown(w, GPU, "g0+");
    commit_failed(w, "disk full");
    expect_shown(w, GPU, "g0");
}

static void devices_are_held_until_the_pod_is_over(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0");

    plugin_list(w, gpu, "g0!");
    sandbox_stopping(w, "s-u1");
    expect_shown(w, GPU, "g0+");
    sandbox_stopped(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    sandbox_ran(w, "u1", "s-u1-1", 1); /* it was only its sandbox */
    expect_shown(w, GPU, "g0+");
    sandbox_ended(w, "s-u1-1");
    sandbox_removed(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    sandbox_removed(w, "s-u1-1");
    expect_shown(w, GPU, "g0!");
}

/* The runtime lists only the sandbox of u1, which is not ready. */
static void list_dead_sandbox(struct world *w)
{
    const struct devicemgr_sandbox dead = {
        .id = "s-u1", .pod_uid = "u1", .pod_namespace = "ns", .pod_name = "u1", .ready = false};

    devicemgr_runtime_listed(w->mgr, w->now_ms, &dead, 1, NULL, 0);
    devicemgr_run(w->mgr);
}

/* After a reboot no sandbox is ready, and the kubelet admits all its pods again. */
static void a_pod_whose_sandbox_was_found_dead_is_not_over(void **state)
{
    struct world *w = *state;

    w->settings.grace_ms = 10 * GRACE_MS; /* of the next ones */
    u1_has_g0(w, "g0 g1");
    for (int i = 0; i < 2; i++) {
        restart(w);
        plugin_lost(w, w->endpoint, "refused");
        list_dead_sandbox(w);
        expect_shown(w, GPU, i == 0 ? "g0+ g1" : "g0+ g1!"); /* the plugin is away for long */
        pass_stored(w, MASK_MS);
    }
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    sandbox_ended(w, "s-u1"); /* the kubelet ends it, or is about to make a new one */
    pass_stored(w, SANDBOX_REMADE_MS - 1);
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1!");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0! g1!");
}

static void what_was_held_is_after_a_restart(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    restart(w);
    expect_shown(w, GPU, "g0+ g1");
    serve(w, "g0! g1!");
    expect_shown(w, GPU, "g0+ g1!");
    runtime_listed(w, "u1/main=" GPU ":g0");
    expect_shown(w, GPU, "g0+ g1!");
    runtime_listed(w, "");
    expect_shown(w, GPU, "g0! g1!");
}

static void a_pod_that_was_over_is_so_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0");

    sandbox_ended(w, "s-u1");
    plugin_list(w, gpu, "g0! g1"); /* its row takes the pod's along */
    expect(w, "commit pod u1, resource " GPU);
    committed(w);
    restart(w);
    serve(w, "g0! g1");
    expect_shown(w, GPU, "g0+ g1"); /* it may have a newer sandbox */
    list_dead_sandbox(w);
    expect_shown(w, GPU, "g0! g1");
}

static void a_pod_that_may_get_a_new_sandbox_holds_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t gpu = u1_has_g0(w, "g0");

    list_dead_sandbox(w);
    sandbox_ended(w, "s-u1");
    plugin_list(w, gpu, "g0! g1"); /* its row takes the pod's along */
    expect(w, "commit pod u1, resource " GPU);
    committed(w);
    restart(w);
    serve(w, "g0! g1");
    list_dead_sandbox(w);
    pass_stored(w, SANDBOX_REMADE_MS - 1);
    kubelet_starts(w);
    expect_shown(w, GPU, "g0+ g1");
    pass_stored(w, 1);
    expect_shown(w, GPU, "g0! g1");
}

/* ---- by the kubelet's own checkpoint ---- */

static void what_the_kubelets_checkpoint_has_is_held(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0! g1! g2!");
    kubelet_holds(w, "u1=" GPU ":g1");
    expect_shown(w, GPU, "g0! g1+ g2!");
    kubelet_holds(w, "u1=" GPU ":g1 u1=" GPU ":g2 u2=" GPU ":g9,g0"); /* g9: gone from the list */
    expect_shown(w, GPU, "g0+ g1+ g2+ g9+");
    kubelet_holds(w, "u2=" GPU ":g9 u1=" GPU ":g10");
    expect_shown(w, GPU, "g0! g1! g2! g9+ g10+");
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g0! g1! g2!");
}

static void the_same_checkpoint_again_is_no_change(void **state)
{
    struct world *w = *state;
    uint64_t of_gpu, of_nic;

    gpus_up(w, "g0 g1");
    nics_up(w, "n0");
    kubelet_holds(w, "u1=" GPU ":g0,g1 u2=" NIC ":n0");
    of_gpu = version_of(w, GPU);
    of_nic = version_of(w, NIC);
    kubelet_holds(w, "u2=" NIC ":n0 u1=" GPU ":g1,g0"); /* its order means nothing */
    assert_int_equal(version_of(w, GPU), of_gpu);
    assert_int_equal(version_of(w, NIC), of_nic);
    kubelet_holds(w, "u1=" GPU ":g0,g1");
    assert_int_equal(version_of(w, GPU), of_gpu);
    assert_int_not_equal(version_of(w, NIC), of_nic);
    kubelet_holds(w, "u1=" GPU ":g0");
    assert_int_not_equal(version_of(w, GPU), of_gpu);
}

static void resources_not_shown_are_ignored(void **state)
{
    struct world *w = *state;

    kubelet_holds(w, "u1=" GPU ":g0");
    expect_resources(w, "");
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    kubelet_holds(w, "u1=" GPU ":g0,g2");
    expect_resources(w, "");
    expect_shown(w, GPU, "");
    plugin_list(w, w->endpoint, "g1");
    expect_shown(w, GPU, "g0+ g1 g2+"); /* until they are */
}

static void a_pod_that_is_over_holds_nothing_whatever_the_file_says(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0!");
    kubelet_holds(w, "u1=" GPU ":g0"); /* never seen: it may be on its way */
    expect_shown(w, GPU, "g0+");
    sandbox_ran(w, "u1", "s-u1", 0);
    expect_shown(w, GPU, "g0+");
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    sandbox_ran(w, "u1", "s-u1-1", 1);
    expect_shown(w, GPU, "g0+");
    sandbox_removed(w, "s-u1-1");
    sandbox_removed(w, "s-u1");
    expect_shown(w, GPU, "g0!");
    kubelet_holds(w, "");
    kubelet_holds(w, "u1=" GPU ":g0"); /* freed pods stay in it until its next write */
    expect_shown(w, GPU, "g0!");
    sandbox_ran(w, "u1", "s-u1-2", 2);
    expect_shown(w, GPU, "g0+");
}

/* ---- unhealthy if a container holds it that asked by annotation ---- */

static void what_the_shim_gave_away_the_kubelet_must_not(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0 g1");

    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    expect_shown(w, GPU, "g0! g1");
    plugin_list(w, gpu, "g1"); /* and it is not missed */
    expect_shown(w, GPU, "g1");
    plugin_list(w, gpu, "g0 g1");
    container_removed(w, "c-u1-main");
    expect_shown(w, GPU, "g0! g1"); /* the next attempt gets the same */
    sandbox_ended(w, "s-u1");
    expect_shown(w, GPU, "g0 g1");
}

static void it_is_taken_as_soon_as_it_is_chosen(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect(w, "allocate *");
    expect_shown(w, GPU, "g0!");
    create_cancelled(w, 11);
    expect_shown(w, GPU, "g0");
}

static void a_container_that_outlives_its_pod_keeps_its_device(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    sandbox_ran(w, "u1", "s-u1-1", 1);
    sandbox_ended(w, "s-u1-1"); /* the container is in the sandbox before */
    expect_shown(w, GPU, "g0!");
    container_removed(w, "c-u1-main");
    expect_shown(w, GPU, "g0");
}

static void what_the_kubelet_holds_too_is_healthy(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    expect_shown(w, GPU, "g0! g1");
    kubelet_holds(w, "u2=" GPU ":g0");
    expect_shown(w, GPU, "g0+ g1");
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g0! g1");
}

/* A device handed on inside a pod is in two allocations. */
static void what_was_given_away_both_ways_is_healthy(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "init", GPU "=1", "g0");
    container_removed(w, "c-u1-init");
    container_made(w, 12, "u1", "main", GPU ":g0");
    container_made(w, 13, "u2", "init", GPU ":g1");
    container_removed(w, "c-u2-init");
    container_chosen(w, 14, "u2", "main", GPU "=1", "g1");
    expect_shown(w, GPU, "g0+ g1+");
}

static void shared_devices_are_nobodys(void **state)
{
    struct devicemgr_resource_settings own = world_settings_of(GPU);
    struct world *w = *state;

    own.exclusive = false;
    world_fresh_with(w, &own);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    expect_shown(w, GPU, "g0 g1");
    container_made(w, 12, "u2", "main", GPU ":g0");
    expect_shown(w, GPU, "g0+ g1");
}

static void who_chose_is_known_after_a_restart(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1 g2");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    container_made(w, 12, "u2", "main", GPU ":g1");
    restart(w);
    expect_shown(w, GPU, "g0! g1+ g2");
    runtime_listed(w, "u1/main=" GPU ":g0 u2/main=" GPU ":g1");
    expect_shown(w, GPU, "g0! g1+ g2");
}

/* The runtime lists "c-u1-main" with its token, and its pod with `request` as its annotation. */
static void list_u1(struct world *w, const char *request_key, const char *request)
{
    struct devicemgr_annotation asked = {request_key, request};
    struct devicemgr_annotation token = {REQUEST_KEY_PREFIX "vendor.com_gpu",
                                         "{\"resource\":\"" GPU "\",\"ids\":[\"g0\"]}"};
    struct devicemgr_sandbox sandbox = {.id = "s-u1",
                                        .pod_uid = "u1",
                                        .pod_namespace = "ns",
                                        .pod_name = "u1",
                                        .ready = true,
                                        .annotations = &asked,
                                        .annotations_len = request_key ? 1 : 0};
    struct devicemgr_container container = {.id = "c-u1-main",
                                            .sandbox_id = "s-u1",
                                            .name = "main",
                                            .running = true,
                                            .annotations = &token,
                                            .annotations_len = 1};

    world_fresh(w);
    devicemgr_runtime_listed(w->mgr, w->now_ms, &sandbox, 1, &container, 1);
    devicemgr_run(w->mgr);
    expect(w, "commit *");
    committed(w);
    gpus_up(w, "g0 g1");
    forget_seen();
}

static void expect_u1(struct world *w, const char *request_key, const char *request,
                      const char *shown)
{
    list_u1(w, request_key, request);
    expect_shown(w, GPU, shown);
}

static void who_chose_is_told_by_the_pods_annotation_if_the_checkpoint_is_lost(void **state)
{
    static const char *const OTHERS[] = {"other"};
    struct world *w = *state;

    expect_u1(w, REQUEST_KEY_PREFIX "main", GPU "=1", "g0! g1");
    restart(w);
    expect_shown(w, GPU, "g0! g1"); /* and is in it again */
    expect_u1(w, NULL, NULL, "g0+ g1");
    expect_u1(w, REQUEST_KEY_PREFIX "other", GPU "=1", "g0+ g1");
    expect_u1(w, REQUEST_KEY_PREFIX "main", NIC "=1", "g0+ g1");
    expect_u1(w, REQUEST_KEY_PREFIX "main", "nonsense", "g0+ g1");
    w->settings.namespaces = OTHERS; /* it counts for nothing there */
    expect_u1(w, REQUEST_KEY_PREFIX "main", GPU "=1", "g0+ g1");
    w->settings.namespaces = ALL;
    w->settings.annotations = false;
    expect_u1(w, REQUEST_KEY_PREFIX "main", GPU "=1", "g0+ g1");
}

static void who_chose_is_told_by_the_next_create_at_the_latest(void **state)
{
    struct world *w = *state;

    expect_u1(w, NULL, NULL, "g0+ g1");
    create_request(w, 11, "u1", "main", GPU "=1");
    expect_shown(w, GPU, "g0! g1");
    allocated(w, "A=1"); /* options are not in the token */
    committed(w);
    restart(w);
    expect_shown(w, GPU, "g0! g1");
}

static void who_asked_last_has_chosen(void **state)
{
    struct world *w = *state;

    u1_has_g0(w, "g0 g1");
    container_removed(w, "c-u1-main");
    create_request(w, 12, "u1", "main", GPU "=1");
    expect(w, "verdict 12 forward *");
    expect(w, "commit allocation u1 main vendor.com/gpu");
    committed(w);
    expect_shown(w, GPU, "g0! g1");
    restart(w);
    expect_shown(w, GPU, "g0! g1");
}

/* ---- versions ---- */

static void what_changes_nothing_keeps_the_version(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0 g1!"), version, version_of_all;

    container_made(w, 11, "u1", "main", GPU ":g0");
    version = version_of(w, GPU);
    version_of_all = devicemgr_shown_version(w->mgr);
    plugin_list(w, gpu, "g0 g1!");
    pass(w, 1000);
    runtime_listed(w, "u1/main=" GPU ":g0");
    sandbox_stopping(w, "s-u1");
    assert_false(create(w, 12, "u3", "main", NULL, NULL));
    create_token(w, 13, "u2", GPU ":g1"); /* held: unhealthy */
    pass(w, HOLD_MS);
    expect_with(w, "verdict 13 refused 14:", NULL);
    container_removed(w, "c-u1-main");
    assert_int_equal(devicemgr_shown_version(w->mgr), version_of_all);
    assert_int_equal(version_of(w, GPU), version);
}

/* On a large node each time would cost a look at all its devices. */
static void what_kubelet_and_token_both_say_is_no_change(void **state)
{
    struct world *w = *state;
    uint64_t version, version_of_all;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "u1=" GPU ":g0"); /* as it is written before the container is made */
    version = version_of(w, GPU);
    version_of_all = devicemgr_shown_version(w->mgr);
    container_made(w, 11, "u1", "main", GPU ":g0");
    expect_shown(w, GPU, "g0+ g1");
    kubelet_holds(w, "");
    kubelet_holds(w, "u1=" GPU ":g0");
    assert_int_equal(version_of(w, GPU), version);
    assert_int_equal(devicemgr_shown_version(w->mgr), version_of_all);
    kubelet_holds(w, "u1=" GPU ":g0,g1"); /* not the same */
    assert_int_not_equal(version_of(w, GPU), version);
    expect_shown(w, GPU, "g0+ g1+");
    kubelet_holds(w, "");
    expect_shown(w, GPU, "g0+ g1");
    kubelet_holds(w, "u1=" GPU ":g0");
    version = version_of(w, GPU);
    sandbox_removed(w, "s-u1");
    assert_int_not_equal(version_of(w, GPU), version);
    expect_shown(w, GPU, "g0 g1");
}

static void another_resources_change_is_none(void **state)
{
    struct world *w = *state;
    uint64_t nic = nics_up(w, "n0 n1"), version;

    gpus_up(w, "g0 g1");
    version = version_of(w, NIC);
    container_made(w, 11, "u1", "main", GPU ":g0");
    kubelet_holds(w, "u1=" GPU ":g0");
    lose(w);
    pass_stored(w, GRACE_MS);
    expect_resources(w, NIC);
    assert_int_equal(version_of(w, NIC), version);
    plugin_list(w, nic, "n0 n1!");
    assert_int_not_equal(version_of(w, NIC), version);
}

static void one_that_waits_for_another_resource_shows_nothing(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0!"), version, version_of_all;

    nics_up(w, "n0");
    version = version_of(w, NIC);
    version_of_all = devicemgr_shown_version(w->mgr);
    create_token(w, 11, "u1", GPU ":g0 " NIC ":n0");
    for (int i = 0; i < 5; i++)
        pass(w, 10);
    assert_int_equal(version_of(w, NIC), version);
    assert_int_equal(devicemgr_shown_version(w->mgr), version_of_all);
    plugin_list(w, gpu, "g0");
    expect_shown(w, NIC, "n0+");
    assert_int_not_equal(version_of(w, NIC), version);
}

static void versions_are_never_reused(void **state)
{
    struct world *w = *state;
    uint64_t gpu = gpus_up(w, "g0"), last = 0;

    for (int i = 0; i < 4; i++) {
        plugin_list(w, gpu, i % 2 ? "g0" : "g0!");
        assert_true(version_of(w, GPU) > last);
        last = version_of(w, GPU);
    }
    lose(w);
    pass_stored(w, GRACE_MS);
    gpus_up(w, "g0");
    assert_true(version_of(w, GPU) > last);
}

/* ---- random ---- */

static const char *const UIDS[] = {"u1", "u2", "u3"};
static const char *const LISTS[] = {"g0 g1 g2", "g0! g1 g2", "g1", "g2! g1! g0!", "", "g0 g1 g2@1"};

static void random_create(struct world *w, uint64_t number)
{
    const char *uid = UIDS[rand() % 3];
    const char *token =
        (const char *[]){GPU ":g0", GPU ":g1", NIC ":n0", GPU ":g2 " NIC ":n0"}[rand() % 4];

    if (!create(w, number, uid, rand() % 2 ? "main" : "side", rand() % 3 ? token : NULL, GPU "=1"))
        return;
    if (rand() % 4)
        allocated(w, "A=1");
    if (w->pending)
        committed(w);
    if (rand() % 2)
        create_answered(w, number, rand() % 2 ? "c" : NULL);
    else
        create_cancelled(w, number);
}

static void random_event(struct world *w, uint64_t number)
{
    const char *const sandboxes[] = {"s-u1", "s-u2", "s-u3"};
    int pod = rand() % 3;

    switch (rand() % 12) {
    case 0:
        plugin_register(w, number, GPU, "gpu.sock");
        plugin_options(w, w->endpoint, false, false);
        break;
    case 1:
    case 2:
        plugin_list(w, w->endpoint, LISTS[rand() % 6]);
        break;
    case 3:
        plugin_lost(w, w->endpoint, "killed");
        break;
    case 4:
        pass(w, (uint64_t)(rand() % 4) * MASK_MS / 3);
        break;
    case 5:
        sandbox_ran(w, UIDS[pod], sandboxes[pod], 0);
        break;
    case 6:
        sandbox_stopping(w, sandboxes[pod]);
        sandbox_stopped(w, sandboxes[pod]);
        break;
    case 7:
        if (rand() % 3 == 0)
            sandbox_removed(w, sandboxes[pod]);
        break;
    case 8:
        kubelet_holds(w, rand() % 2 ? "u1=" GPU ":g0 u2=" NIC ":n0" : "u1=" GPU ":g0,g1");
        break;
    case 9:
        runtime_listed(w, rand() % 2 ? "u1/main=" GPU ":g0 u2" : "u1 u2 u3");
        break;
    default:
        random_create(w, number);
    }
    if (w->pending)
        committed(w);
    ignore_all(w);
    logged(w, "");
}

/* What does not have its version cannot be in a list: look() compares after each event. */
static void no_list_differs_without_its_version(void **state)
{
    struct world *w = *state;

    for (unsigned seed = 1; seed <= 20; seed++) {
        srand(seed);
        w->settings.checked = true;
        world_fresh(w);
        forget_seen();
        runtime_listed(w, "");
        nics_up(w, "n0 n1");
        gpus_up(w, "g0 g1 g2");
        for (uint64_t i = 0; i < 300; i++) {
            random_event(w, 100 + i);
            look(w, &seen[0]);
            look(w, &seen[1]);
        }
    }
}

/* ---- size ---- */

#define MANY_RESOURCES 200
#define MANY_DEVICES 100000

static void list_many(struct world *w, size_t len, const char *last)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device *devices = calloc(len, sizeof *devices);
    V1beta1__Device **pointers = calloc(len, sizeof *pointers);
    char(*ids)[32] = calloc(len, sizeof *ids);

    for (size_t i = 0; i < len; i++) {
        snprintf(ids[i], sizeof ids[i], "g%zu", i);
        v1beta1__device__init(&devices[i]);
        devices[i].id = ids[i];
        devices[i].health = (char *)(i + 1 < len ? "Healthy" : last);
        pointers[i] = &devices[i];
    }
    list.n_devices = len;
    list.devices = pointers;
    devicemgr_endpoint_list(w->mgr, w->now_ms, w->endpoint, &list);
    devicemgr_run(w->mgr);
    free(ids);
    free(pointers);
    free(devices);
}

struct count {
    size_t devices;
    size_t healthy;
    size_t held;
};

static void count_device(void *user, const struct devicemgr_shown_device *device)
{
    struct count *count = user;

    count->devices++;
    count->healthy += device->healthy;
    count->held += device->held;
}

static void expect_count(struct world *w, size_t devices, size_t healthy, size_t held)
{
    struct count count = {0};

    devicemgr_shown_devices(w->mgr, GPU, count_device, &count);
    assert_int_equal(count.devices, devices);
    assert_int_equal(count.healthy, healthy);
    assert_int_equal(count.held, held);
}

/* How many lists have another version than in `before`, which is brought up to date: so many are
 * packed anew. */
struct versions {
    uint64_t v[MANY_RESOURCES + 1];
    size_t len;
    size_t differ;
};

static void compare_version(void *user, const struct devicemgr_shown *shown)
{
    struct versions *versions = user;

    assert_true(versions->len < MANY_RESOURCES + 1);
    versions->differ += versions->v[versions->len] != shown->version;
    versions->v[versions->len++] = shown->version;
}

static void expect_packed(struct world *w, struct versions *versions, size_t expected)
{
    versions->len = versions->differ = 0;
    devicemgr_shown(w->mgr, compare_version, versions);
    assert_int_equal(versions->differ, expected);
}

static void only_what_changes_is_packed_anew_on_a_large_node(void **state)
{
    struct world *w = *state;
    struct versions versions = {0};
    char name[64];

    for (unsigned i = 0; i < MANY_RESOURCES; i++) {
        snprintf(name, sizeof name, "vendor.com/r%u", i);
        plugin_up(w, name, "x.sock", "x0 x1", false, false);
    }
    plugin_register(w, 1, GPU, "gpu.sock");
    plugin_options(w, w->endpoint, false, false);
    list_many(w, MANY_DEVICES, "Healthy");
    committed(w);
    ignore_all(w);
    expect_packed(w, &versions, MANY_RESOURCES + 1);
    expect_count(w, MANY_DEVICES, MANY_DEVICES, 0);

    list_many(w, MANY_DEVICES, "Healthy");
    expect_packed(w, &versions, 0);
    list_many(w, MANY_DEVICES, "Unhealthy");
    expect_packed(w, &versions, 1);
    expect_count(w, MANY_DEVICES, MANY_DEVICES - 1, 0);
    container_made(w, 11, "u1", "main", "vendor.com/r7:x0");
    kubelet_holds(w, "u1=vendor.com/r7:x0");
    expect_packed(w, &versions, 1);
    kubelet_holds(w, "u1=vendor.com/r7:x0 u2=" GPU ":g99999,gone");
    expect_packed(w, &versions, 1);
    expect_count(w, MANY_DEVICES + 1, MANY_DEVICES + 1, 2);
    lose(w);
    expect_packed(w, &versions, 0);
    pass_stored(w, MASK_MS - 1);
    expect_packed(w, &versions, 0);
    pass_stored(w, 1);
    expect_packed(w, &versions, 2); /* what is held is not said to be healthy any more */
    expect_count(w, MANY_DEVICES, 0, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, mask_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_resource_is_shown_from_its_first_list_on),
        TEST(resources_come_in_the_order_of_names),
        TEST(a_resource_is_shown_from_its_restoring_on),
        TEST(a_resource_is_shown_until_its_grace_is_over),
        TEST(an_id_that_is_no_utf8_is_not_shown),
        TEST(built_in_devices_are_shown_as_they_are),
        TEST(a_name_that_becomes_a_built_in_devices_is_another_list),
        TEST(a_device_is_shown_as_its_plugin_says),
        TEST(while_masked_it_is_shown_as_it_was),
        TEST(a_plugin_that_flaps_within_the_mask_does_not_show),
        TEST(the_mask_is_that_of_the_first_loss),
        TEST(without_a_mask_an_outage_shows_at_once),
        TEST(a_mask_may_have_no_end),
        TEST(a_plugin_that_registers_anew_is_shown_as_before),
        TEST(a_restored_resource_counts_as_healthy_until_listed),
        TEST(a_restored_resource_that_lists_the_same_is_the_same_list),
        TEST(a_restored_resource_is_masked_no_longer_than_others),
        TEST(what_the_kubelet_gave_away_is_healthy_to_one_that_starts),
        TEST(a_start_of_the_shim_counts_as_one_of_the_kubelet),
        TEST(without_a_mask_the_kubelet_sees_all_as_it_is),
        TEST(a_pod_that_may_come_holds_its_devices_for_a_time),
        TEST(a_pod_that_is_not_listed_holds_nothing),
        TEST(a_pod_that_only_a_create_names_is_there),
        TEST(a_pod_of_before_a_reboot_may_come),
        TEST(what_is_held_is_shown_though_it_is_not_listed_any_more),
        TEST(a_create_under_way_holds_already),
        TEST(what_cannot_be_stored_is_held_no_more),
        TEST(devices_are_held_until_the_pod_is_over),
        TEST(a_pod_whose_sandbox_was_found_dead_is_not_over),
        TEST(what_was_held_is_after_a_restart),
        TEST(a_pod_that_was_over_is_so_after_a_restart),
        TEST(a_pod_that_may_get_a_new_sandbox_holds_after_a_restart),
        TEST(what_the_kubelets_checkpoint_has_is_held),
        TEST(the_same_checkpoint_again_is_no_change),
        TEST(resources_not_shown_are_ignored),
        TEST(a_pod_that_is_over_holds_nothing_whatever_the_file_says),
        TEST(what_the_shim_gave_away_the_kubelet_must_not),
        TEST(it_is_taken_as_soon_as_it_is_chosen),
        TEST(a_container_that_outlives_its_pod_keeps_its_device),
        TEST(what_the_kubelet_holds_too_is_healthy),
        TEST(what_was_given_away_both_ways_is_healthy),
        TEST(shared_devices_are_nobodys),
        TEST(who_chose_is_known_after_a_restart),
        TEST(who_chose_is_told_by_the_pods_annotation_if_the_checkpoint_is_lost),
        TEST(who_chose_is_told_by_the_next_create_at_the_latest),
        TEST(who_asked_last_has_chosen),
        TEST(what_changes_nothing_keeps_the_version),
        TEST(what_kubelet_and_token_both_say_is_no_change),
        TEST(another_resources_change_is_none),
        TEST(one_that_waits_for_another_resource_shows_nothing),
        TEST(versions_are_never_reused),
        TEST(no_list_differs_without_its_version),
        TEST(only_what_changes_is_packed_anew_on_a_large_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
