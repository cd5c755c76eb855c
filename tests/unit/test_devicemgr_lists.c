/* devicemgr/turn/list_*.c: the lists, and going on with them from a place. */
#include "devicemgr/lists.h"
#include "devicemgr/operator.h"

#include <stdio.h>
#include <stdlib.h>

#include "devicemgr_world.h"
#include "told_text.h"

/* What was told, a line each; and after how many rows nobody listens any more. */
struct told {
    char text[1 << 17];
    size_t rows, rows_max;
    char *key[DEVICEMGR_ALLOCATION_KEY]; /* of the last */
};

static struct told told;

static void forget_key(void)
{
    for (size_t i = 0; i < DEVICEMGR_ALLOCATION_KEY; i++) {
        free(told.key[i]);
        told.key[i] = NULL;
    }
}

static void begin(size_t rows_max)
{
    forget_key();
    told = (struct told){.rows_max = rows_max};
}

#define put(...) told_text_add(told.text, sizeof told.text, __VA_ARGS__)

static bool end_row(const char *const *key, size_t parts)
{
    put("\n");
    forget_key();
    for (size_t i = 0; i < parts; i++)
        told.key[i] = strdup(key[i]);
    return ++told.rows < told.rows_max;
}

static bool on_resource(void *user, const struct devicemgr_resource *row)
{
    (void)user;
    put("%s %s%s %zu %zu held %zu free %zu shown %d %zu %zu", row->name, row->state,
        row->exclusive ? " exclusive" : "", row->devices, row->healthy, row->held, row->free,
        row->shown, row->shown_devices, row->shown_healthy);
    if (row->cordoned > 0)
        put(" cordoned %zu", row->cordoned);
    if (row->withdrawn)
        put(" withdrawn(%s %llu)", row->withdrawn, (unsigned long long)row->withdrawn_at_s);
    return end_row(&row->name, DEVICEMGR_RESOURCE_KEY);
}

static bool on_plugin(void *user, const struct devicemgr_plugin *row)
{
    (void)user;
    put("%s %s %s %llu", row->resource, row->socket, row->state,
        (unsigned long long)row->since_ms_ago);
    if (row->stopped)
        put(" away %llu left %llu (%s)", (unsigned long long)row->stopped_ms_ago,
            (unsigned long long)row->grace_left_ms, row->error ? row->error : "");
    if (row->grace_more_ms > 0)
        put(" of these %llu by order", (unsigned long long)row->grace_more_ms);
    put("%s%s%s", row->have_options ? " options" : "", row->pre_start ? " prestart" : "",
        row->preferred ? " preferred" : "");
    return end_row(&row->resource, DEVICEMGR_PLUGIN_KEY);
}

static bool on_device(void *user, const struct devicemgr_device *row)
{
    (void)user;
    put("%s %s %s%s%s", row->resource, row->id,
        !row->listed   ? "unlisted"
        : row->healthy ? "healthy"
                       : "unhealthy",
        row->free ? " free" : "",
        !row->shown          ? " unseen"
        : row->shown_healthy ? ""
                             : " seen-unhealthy");
    if (row->cordon)
        put(" cordoned(%s %llu)", row->cordon, (unsigned long long)row->cordon_at_s);
    if (row->withdrawn)
        put(" withdrawn(%s %llu)", row->withdrawn, (unsigned long long)row->withdrawn_at_s);
    for (size_t i = 0; i < row->nodes_len; i++)
        put(" @%d", (int)row->nodes[i]);
    for (size_t i = 0; i < row->holders_len; i++)
        put(" %s/%s/%s:%s", row->holders[i].pod_namespace, row->holders[i].pod_name,
            row->holders[i].container, row->holders[i].state);
    return end_row((const char *const[]){row->resource, row->id}, DEVICEMGR_DEVICE_KEY);
}

static bool on_allocation(void *user, const struct devicemgr_allocation *row)
{
    (void)user;
    put("%s/%s/%s %s %s %llu", row->pod_namespace, row->pod_name, row->container, row->resource,
        row->state, (unsigned long long)row->since_ms_ago);
    for (size_t i = 0; i < row->ids_len; i++)
        put("%c%s", i > 0 ? ',' : ' ', row->ids[i]);
    put("%s%s%s%s%s%s%s", row->own_choice ? " chosen" : "", row->stored ? " stored" : "",
        row->cached ? " cached" : "", row->waits_store ? " waits-store" : "",
        row->waits_create ? " waits-create" : "", row->waits_check ? " waits-check" : "",
        row->waits_list ? " waits-list" : "");
    return end_row((const char *const[]){row->pod_namespace, row->pod_name, row->pod_uid,
                                         row->container, row->resource},
                   DEVICEMGR_ALLOCATION_KEY);
}

static bool on_pod(void *user, const struct devicemgr_pod *row)
{
    (void)user;
    put("%s/%s %s", row->pod_namespace, row->name, row->sandbox);
    for (size_t i = 0; i < row->containers_len; i++) {
        const struct devicemgr_pod_container *one = &row->containers[i];

        put("; %s %zu %s", one->name, one->devices, one->state);
        if (one->waits)
            put(" waits %llu", (unsigned long long)one->waited_ms);
        if (one->refused_word)
            put(" refused %s %llu %llu", one->refused_word, (unsigned long long)one->refused_times,
                (unsigned long long)one->refused_ms_ago);
    }
    return end_row((const char *const[]){row->pod_namespace, row->name, row->uid},
                   DEVICEMGR_POD_KEY);
}

/* The list of these rows, from the first or behind the last one told. */
#define LIST(what, on_row)                                                                         \
    static void what##_list(struct world *w, struct devicemgr_which which)                         \
    {                                                                                              \
        devicemgr_##what(w->mgr, w->now_ms, &which, on_row, NULL);                                 \
    }                                                                                              \
    static const char *what(struct world *w, struct devicemgr_which which)                         \
    {                                                                                              \
        begin(SIZE_MAX);                                                                           \
        what##_list(w, which);                                                                     \
        return told.text;                                                                          \
    }                                                                                              \
    /* Page by page it is the same. */                                                             \
    static void assert_##what##_paged(struct world *w, size_t rows_max)                            \
    {                                                                                              \
        char *whole = strdup(what(w, (struct devicemgr_which){0}));                                \
        size_t before;                                                                             \
                                                                                                   \
        begin(rows_max);                                                                           \
        do {                                                                                       \
            const char *after[DEVICEMGR_ALLOCATION_KEY];                                           \
            char *copies[DEVICEMGR_ALLOCATION_KEY] = {0};                                          \
                                                                                                   \
            for (size_t i = 0; told.key[0] && i < DEVICEMGR_ALLOCATION_KEY; i++)                   \
                after[i] = copies[i] = told.key[i] ? strdup(told.key[i]) : NULL;                   \
            before = told.rows;                                                                    \
            told.rows_max = before + rows_max;                                                     \
            what##_list(w, (struct devicemgr_which){.after = told.key[0] ? after : NULL});         \
            for (size_t i = 0; i < DEVICEMGR_ALLOCATION_KEY; i++)                                  \
                free(copies[i]);                                                                   \
        } while (told.rows > before);                                                              \
        assert_string_equal(told.text, whole);                                                     \
        free(whole);                                                                               \
    }

LIST(resources, on_resource)
LIST(plugins, on_plugin)
LIST(devices, on_device)
LIST(allocations, on_allocation)
LIST(pods, on_pod)

static const struct devicemgr_which ALL;

static void with_annotations(struct world *w)
{
    static const char *const NAMESPACES[] = {"*"};

    w->settings.annotations = true;
    w->settings.namespaces = NAMESPACES;
    w->settings.namespaces_len = 1;
    world_fresh_listed(w);
}

/* ---- resources ---- */

static void nothing_yet(void **state)
{
    struct world *w = *state;

    assert_string_equal(resources(w, ALL), "");
    assert_string_equal(plugins(w, ALL), "");
    assert_string_equal(devices(w, ALL), "");
    assert_string_equal(allocations(w, ALL), "");
    assert_string_equal(pods(w, ALL), "");
}

static void a_resource_and_its_plugin(void **state)
{
    struct world *w = *state;

    plugin_up(w, GPU, "gpu.sock", "g0 g1! g2", true, false);
    nics_up(w, "n0");
    pass(w, 1000);
    assert_string_equal(resources(w, ALL),
                        NIC " active exclusive 1 1 held 0 free 1 shown 1 1 1\n" GPU
                            " active exclusive 3 2 held 0 free 2 shown 1 3 2\n");
    assert_string_equal(plugins(w, ALL), NIC " nic.sock active 1000 options\n" GPU
                                             " gpu.sock active 1000 options prestart\n");
    assert_string_equal(plugins(w, (struct devicemgr_which){.resource = GPU}),
                        GPU " gpu.sock active 1000 options prestart\n");
    assert_string_equal(resources(w, (struct devicemgr_which){.resource = "a.b/c"}), "");
}

static void built_in_devices_have_no_plugin(void **state)
{
    struct world *w = *state;
    const struct devicemgr_builtin_device kvm = {.id = "kvm",
                                                 .healthy = true,
                                                 .host_path = "/dev/kvm",
                                                 .container_path = "/dev/kvm",
                                                 .permissions = "rw"};

    devicemgr_builtin(w->mgr, w->now_ms, "local.dev/kvm", &kvm, 1);
    devicemgr_run(w->mgr);
    assert_string_equal(resources(w, ALL),
                        "local.dev/kvm builtin exclusive 1 1 held 0 free 1 shown 1 1 1\n");
    assert_string_equal(plugins(w, ALL), "");
}

static void a_plugin_that_is_away(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_lost(w, endpoint, "its socket is gone");
    pass(w, 60000);
    ignore_all(w);
    assert_non_null(strstr(plugins(w, ALL), " away 60000 left 240000 (its socket is gone)"));
    assert_non_null(strstr(resources(w, ALL), " exclusive 2 2 held 0 free 0"));
    pass(w, GRACE_MS);
    assert_string_equal(plugins(w, ALL), "");
}

/* ---- what an operator has set ---- */

static void order(struct world *w, void (*ask)(struct world *w))
{
    ask(w);
    devicemgr_run(w->mgr);
    ignore_all(w);
    committed(w);
    ignore_all(w);
}

static void cordon_three(struct world *w)
{
    static const char *const IDS[] = {"g0", "g1", "g9"};

    devicemgr_cordon(w->mgr, w->now_ms, 1, GPU, IDS, 3, "dust", 77);
}

static void withdraw(struct world *w)
{
    devicemgr_withdraw(w->mgr, w->now_ms, 2, GPU, "moved", 78);
}

/* One of them is held, which is cordoned for whoever comes next; one is not listed, and
 * nobody's. */
static void cordoned_devices_are_not_free(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1 g2");
    container_made(w, 11, "u1", "main", GPU ":g0");
    order(w, cordon_three);
    assert_string_equal(resources(w, ALL),
                        GPU " active exclusive 3 3 held 1 free 1 shown 1 3 1 cordoned 3\n");
    assert_string_equal(devices(w, ALL), GPU
                        " g0 healthy seen-unhealthy cordoned(dust 77) ns/u1/main:running\n" GPU
                        " g1 healthy seen-unhealthy cordoned(dust 77)\n" GPU " g2 healthy free\n");
}

static void of_a_withdrawn_resource_nothing_is_free(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    nics_up(w, "n0");
    container_made(w, 11, "u1", "main", GPU ":g0");
    order(w, withdraw);
    assert_string_equal(resources(w, ALL), NIC
                        " active exclusive 1 1 held 0 free 1 shown 1 1 1\n" GPU
                        " active exclusive 2 2 held 1 free 0 shown 1 1 0 withdrawn(moved 78)\n");
    assert_non_null(strstr(devices(w, ALL), GPU " g1 healthy unseen withdrawn(moved 78)\n"));
}

static void extend(struct world *w)
{
    devicemgr_grace_extend(w->mgr, w->now_ms, 3, GPU, 100000, 79);
}

static void end(struct world *w)
{
    devicemgr_grace_end(w->mgr, w->now_ms, 4, GPU, 80);
    /* before it is durable it is as it was */
    assert_non_null(strstr(plugins(w, ALL), " left 340000 (gone) of these 100000 by order"));
}

static void the_grace_that_is_left_is_that_with_the_order(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g0 g1");

    plugin_lost(w, endpoint, "gone");
    pass(w, 60000);
    ignore_all(w);
    committed(w);
    order(w, extend);
    assert_non_null(strstr(plugins(w, ALL), " left 340000 (gone) of these 100000 by order"));
    order(w, end);
    assert_string_equal(plugins(w, ALL), "");
}

/* ---- who has what ---- */

static void a_running_container_and_a_free_device(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1@1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    pass(w, 5000);
    assert_string_equal(devices(w, ALL),
                        GPU " g0 healthy ns/u1/main:running\n" GPU " g1 healthy free @1\n");
    assert_string_equal(resources(w, ALL), GPU " active exclusive 2 2 held 1 free 1 shown 1 2 2\n");
    assert_string_equal(allocations(w, ALL), "ns/u1/main " GPU " running 5000 g0 stored cached\n");
    assert_string_equal(pods(w, ALL), "ns/u1 ready; main 1 running\n");
}

/* Between two containers it is kept; when the pod is over it is free. */
static void what_a_pod_keeps(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_made(w, 11, "u1", "main", GPU ":g0");
    container_removed(w, "c-u1-main");
    devicemgr_run(w->mgr);
    assert_string_equal(devices(w, ALL), GPU " g0 healthy ns/u1/main:kept\n");
    assert_string_equal(pods(w, ALL), "ns/u1 ready; main 1 kept\n");
    sandbox_stopped(w, "s-u1");
    devicemgr_run(w->mgr);
    assert_string_equal(devices(w, ALL), GPU " g0 healthy free\n");
    assert_string_equal(allocations(w, ALL), "ns/u1/main " GPU " over 0 g0 stored cached\n");
    assert_string_equal(pods(w, ALL), "");
    assert_non_null(strstr(resources(w, ALL), "held 0 free 1"));
}

static void one_that_is_chosen_here_is_shown_unhealthy(void **state)
{
    struct world *w = *state;

    with_annotations(w);
    gpus_up(w, "g0 g1");
    container_chosen(w, 11, "u1", "main", GPU "=1", "g0");
    ignore_all(w);
    assert_string_equal(devices(w, ALL), GPU " g0 healthy seen-unhealthy ns/u1/main:running\n" GPU
                                             " g1 healthy free\n");
    assert_non_null(strstr(resources(w, ALL), "held 1 free 1 shown 1 2 1"));
    assert_non_null(strstr(allocations(w, ALL), " g0 chosen stored cached\n"));
}

/* Its pod is still to come: the kubelet's word alone. */
static void what_the_kubelet_promised(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    kubelet_holds(w, "");
    pass(w, 1000);
    kubelet_holds(w, "u9=" GPU ":g1");
    devicemgr_run(w->mgr);
    assert_string_equal(devices(w, ALL),
                        GPU " g0 healthy free\n" GPU " g1 healthy //main:promised\n");
    assert_non_null(strstr(resources(w, ALL), "held 1 free 1"));
    assert_string_equal(pods(w, ALL), "/ ; main 1 promised\n");
    assert_string_equal(allocations(w, ALL), "");
}

static bool begins_with(void *user, const char *id)
{
    return strncmp(id, user, strlen(user)) == 0;
}

/* Of those that are listed, that a container has, and that the kubelet has promised. */
static void one_is_found_among_all_that_there_are(void **state)
{
    struct world *w = *state;
    uint64_t endpoint = gpus_up(w, "g1 g2 g10");

    container_made(w, 11, "u1", "main", GPU ":g2");
    kubelet_holds(w, "u9=" GPU ":h1");
    plugin_list(w, endpoint, "g1 g10");
    devicemgr_run(w->mgr);
    ignore_all(w);
    assert_string_equal(devicemgr_device_find(w->mgr, GPU, begins_with, (char *)"g"), "g10");
    assert_string_equal(devicemgr_device_find(w->mgr, GPU, begins_with, (char *)"g2"), "g2");
    assert_string_equal(devicemgr_device_find(w->mgr, GPU, begins_with, (char *)""), "h1");
    assert_null(devicemgr_device_find(w->mgr, GPU, begins_with, (char *)"x"));
    assert_null(devicemgr_device_find(w->mgr, NIC, begins_with, (char *)"g"));
}

static bool on_order(void *user, const struct devicemgr_order *row)
{
    const char *const key[] = {row->kind, row->resource, row->id};

    (void)user;
    put("%s %s %s %s %llu", row->kind, row->resource, row->id, row->reason,
        (unsigned long long)row->at_s);
    return end_row(key, DEVICEMGR_ORDER_KEY);
}

/* By kind, resource and id, from any of them on. */
static void what_an_operator_has_set(void **state)
{
    static const char *const EXPECTED =
        "cordon " GPU " g0 dust 77\ncordon " GPU " g1 dust 77\ncordon " GPU
        " g9 dust 77\nwithdrawal " GPU "  moved 78\n";
    static const struct devicemgr_which OF_NICS = {.resource = NIC};
    struct devicemgr_which which = {0};
    char *all = calloc(1, sizeof told.text);
    struct world *w = *state;

    gpus_up(w, "g0");
    order(w, cordon_three);
    order(w, withdraw);
    begin(100);
    devicemgr_orders(w->mgr, &which, on_order, NULL);
    assert_string_equal(told.text, EXPECTED);
    begin(100);
    devicemgr_orders(w->mgr, &OF_NICS, on_order, NULL);
    assert_string_equal(told.text, "");
    for (size_t pages = 0; pages < 5; pages++) {
        char *after[DEVICEMGR_ORDER_KEY] = {0};

        for (size_t i = 0; pages > 0 && i < DEVICEMGR_ORDER_KEY; i++)
            after[i] = strdup(told.key[i]);
        which.after = pages > 0 ? (const char *const *)after : NULL;
        begin(1);
        devicemgr_orders(w->mgr, &which, on_order, NULL);
        strcat(all, told.text);
        for (size_t i = 0; i < DEVICEMGR_ORDER_KEY; i++)
            free(after[i]);
        if (told.rows == 0)
            break;
    }
    assert_string_equal(all, EXPECTED);
    free(all);
}

/* Once, by who has it. */
static void what_the_kubelet_promised_and_a_container_has(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    kubelet_holds(w, "u1=" GPU ":g0");
    devicemgr_run(w->mgr);
    assert_string_equal(devices(w, ALL),
                        GPU " g0 healthy ns/u1/main:running\n" GPU " g1 healthy free\n");
    assert_non_null(strstr(resources(w, ALL), "held 1 free 1"));
    assert_string_equal(pods(w, ALL), "ns/u1 ready; main 1 running\n");
}

static void a_device_that_is_not_listed_any_more(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    w->settings.mask_ms = 30000;
    world_fresh_listed(w);
    endpoint = gpus_up(w, "g1 g2 g10");
    container_made(w, 11, "u1", "main", GPU ":g2");
    devicemgr_kubelet_started(w->mgr, w->now_ms);
    plugin_list(w, endpoint, "g1 g10!");
    devicemgr_run(w->mgr);
    ignore_all(w);
    assert_string_equal(devices(w, ALL),
                        GPU " g1 healthy free\n" GPU " g2 unlisted ns/u1/main:running\n" GPU
                            " g10 unhealthy seen-unhealthy\n");
    assert_non_null(strstr(resources(w, ALL), " 2 1 held 1 free 1 shown 1 3 2"));
    assert_devices_paged(w, 1);
    pass(w, 3600000);
    ignore_all(w);
    assert_non_null(strstr(devices(w, ALL), " g2 unlisted unseen ns/u1/main:running"));
}

static void of_a_shared_device_all_are_told(void **state)
{
    struct world *w = *state;
    struct devicemgr_resource_settings own = world_settings_of(GPU);

    own.exclusive = false;
    world_fresh_with(w, &own);
    gpus_up(w, "g0");
    container_made(w, 11, "u1", "main", GPU ":g0");
    container_made(w, 12, "u2", "main", GPU ":g0");
    assert_string_equal(devices(w, ALL),
                        GPU " g0 healthy free ns/u1/main:running ns/u2/main:running\n");
    assert_non_null(strstr(resources(w, ALL), " active 1 1 held 1 free 1"));
}

static void one_that_waits_and_one_that_was_refused(void **state)
{
    struct world *w = *state;
    uint64_t endpoint;

    with_annotations(w);
    endpoint = gpus_up(w, "g0");
    plugin_lost(w, endpoint, "gone");
    ignore_all(w);
    sandbox_ran(w, "u1", "s-u1", 0);
    create_request(w, 11, "u1", "main", GPU "=1");
    create_request(w, 12, "u2", "main", "other.com/none=1");
    sandbox_removed(w, "s-u2");
    pass(w, 2000);
    ignore_all(w);
    assert_string_equal(pods(w, ALL), "ns/u1 ready; main 0  waits 2000\nns/u2 ; main 0  refused "
                                      "resource-unknown 1 2000\n");
}

static void an_allocation_says_what_it_waits_for(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    sandbox_ran(w, "u1", "s-u1", 0);
    create_token(w, 11, "u1", GPU ":g0");
    pass(w, 100);
    assert_string_equal(allocations(w, ALL), "ns/u1/main " GPU " creating 100 g0 waits-create\n");
    allocated(w, "A=1");
    assert_string_equal(allocations(w, ALL),
                        "ns/u1/main " GPU " creating 100 g0 waits-store waits-create\n");
    committed(w);
    assert_string_equal(allocations(w, ALL),
                        "ns/u1/main " GPU " creating 100 g0 stored cached waits-create\n");
}

/* The outcome of a create whose client has gone. */
static void one_that_may_be_in_the_making(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g0");
    container_forwarded(w, 11, "u1", "main", GPU ":g0");
    create_cancelled(w, 11);
    devicemgr_run(w->mgr);
    assert_non_null(strstr(allocations(w, ALL), " unknown 0 g0 stored cached waits-list\n"));
    assert_string_equal(pods(w, ALL), "ns/u1 ready; main 1 unknown\n");
}

/* ---- which, and from where on ---- */

static void which_pods_are_meant(void **state)
{
    static const char *const ONE = "ns/u2 ready; main 1 running\n";
    struct world *w = *state;

    gpus_up(w, "g0 g1");
    container_made(w, 11, "u1", "main", GPU ":g0");
    container_made(w, 12, "u2", "main", GPU ":g1");
    assert_string_equal(pods(w, (struct devicemgr_which){.pod = "u2"}), ONE);
    assert_string_equal(pods(w, (struct devicemgr_which){.pod = "ns/u2"}), ONE);
    assert_string_equal(pods(w, (struct devicemgr_which){.pod = "u2", .pod_namespace = "ns"}), ONE);
    assert_string_equal(pods(w, (struct devicemgr_which){.pod = "u2", .pod_namespace = "n"}), "");
    assert_string_equal(pods(w, (struct devicemgr_which){.pod = "other/u2"}), "");
    pods(w, (struct devicemgr_which){.pod_namespace = "ns"});
    assert_int_equal(told.rows, 2);
    allocations(w, (struct devicemgr_which){.pod = "ns/u1", .resource = GPU});
    assert_int_equal(told.rows, 1);
    assert_string_equal(allocations(w, (struct devicemgr_which){.resource = NIC}), "");
    assert_string_equal(allocations(w, (struct devicemgr_which){.pod_namespace = "other"}), "");
}

/* A name ten is behind a name nine, and each list is the same page by page. */
static void in_natural_order_page_by_page(void **state)
{
    struct world *w = *state;

    gpus_up(w, "g10 g9 g2");
    nics_up(w, "n1 n0");
    container_made(w, 11, "u10", "main", GPU ":g10");
    container_made(w, 12, "u10", "net", NIC ":n0");
    container_made(w, 13, "u9", "main", GPU ":g9");
    container_made(w, 14, "u9", "side", GPU ":g2");
    assert_string_equal(pods(w, ALL), "ns/u9 ready; main 1 running; side 1 running\n"
                                      "ns/u10 ready; main 1 running; net 1 running\n");
    devices(w, (struct devicemgr_which){.resource = GPU});
    assert_true(strstr(told.text, " g2 ") < strstr(told.text, " g9 "));
    assert_true(strstr(told.text, " g9 ") < strstr(told.text, " g10 "));
    for (size_t rows = 1; rows < 8; rows++) {
        assert_resources_paged(w, rows);
        assert_plugins_paged(w, rows);
        assert_devices_paged(w, rows);
        assert_allocations_paged(w, rows);
        assert_pods_paged(w, rows);
    }
}

/* What the last page ended with is gone: the next goes on behind its place. */
static void the_row_before_may_be_gone(void **state)
{
    const char *after[] = {GPU, "g3"};
    struct world *w = *state;

    gpus_up(w, "g2 g4");
    assert_string_equal(devices(w, (struct devicemgr_which){.after = after}),
                        GPU " g4 healthy free\n");
    after[0] = "a.b/c";
    devices(w, (struct devicemgr_which){.after = after});
    assert_int_equal(told.rows, 2);
    after[0] = "z.b/c";
    assert_string_equal(devices(w, (struct devicemgr_which){.after = after}), "");
}

/* More than one stride of each: ids that are listed, and ids that are not any more. */
static void many_devices(void **state)
{
    struct world *w = *state;
    char list[16384] = "", token[8192] = GPU ":";
    uint64_t endpoint;

    for (int i = 0; i < 1000; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%sg%d", i > 0 ? " " : "", i);
    for (int i = 0; i < 1000; i += 2)
        snprintf(token + strlen(token), sizeof token - strlen(token), "%sg%d", i > 0 ? "," : "", i);
    endpoint = gpus_up(w, list);
    container_made(w, 11, "u1", "main", token);
    list[0] = '\0';
    for (int i = 1; i < 1000; i += 2)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%sg%d", i > 1 ? " " : "", i);
    plugin_list(w, endpoint, list);
    ignore_all(w);
    begin(SIZE_MAX);
    devices_list(w, ALL);
    assert_int_equal(told.rows, 1000);
    for (size_t rows = 1; rows < 1500; rows = rows * 3 + 1) {
        size_t before;

        begin(rows);
        do {
            const char *after[] = {GPU, told.key[1]};
            char *id = told.key[1] ? strdup(told.key[1]) : NULL;

            after[1] = id;
            before = told.rows;
            told.text[0] = '\0';
            told.rows_max = before + rows;
            devices_list(w, (struct devicemgr_which){.after = id ? after : NULL});
            free(id);
        } while (told.rows > before);
        assert_int_equal(told.rows, 1000);
        assert_string_equal(told.key[1], "g999");
    }
    assert_non_null(strstr(resources(w, ALL), " 500 500 held 500 free 500 "));
}

static int forget(void **state)
{
    forget_key();
    return world_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_yet),
        TEST(a_resource_and_its_plugin),
        TEST(built_in_devices_have_no_plugin),
        TEST(a_plugin_that_is_away),
        TEST(cordoned_devices_are_not_free),
        TEST(what_an_operator_has_set),
        TEST(one_is_found_among_all_that_there_are),
        TEST(of_a_withdrawn_resource_nothing_is_free),
        TEST(the_grace_that_is_left_is_that_with_the_order),
        TEST(a_running_container_and_a_free_device),
        TEST(what_a_pod_keeps),
        TEST(one_that_is_chosen_here_is_shown_unhealthy),
        TEST(what_the_kubelet_promised),
        TEST(what_the_kubelet_promised_and_a_container_has),
        TEST(a_device_that_is_not_listed_any_more),
        TEST(of_a_shared_device_all_are_told),
        TEST(one_that_waits_and_one_that_was_refused),
        TEST(an_allocation_says_what_it_waits_for),
        TEST(one_that_may_be_in_the_making),
        TEST(which_pods_are_meant),
        TEST(in_natural_order_page_by_page),
        TEST(the_row_before_may_be_gone),
        TEST(many_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
