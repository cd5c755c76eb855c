/* The table of allocations and its two indexes. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devicemgr/things/allocation.h"
#include "devicemgr/things/options.h"
#include "devicemgr_world.h"

static struct allocation *add(struct allocations *table, const char *uid, const char *container,
                              const char *id)
{
    struct ids ids = {0};
    struct allocation *allocation;

    ids_add(&ids, id);
    ids_add(&ids, "shared");
    allocation = allocations_add(table, uid, container, GPU, &ids);
    ids_fini(&ids);
    return allocation;
}

static void a_device_knows_its_holders(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "init", "g0"), *b = add(&table, "u1", "main", "g1");
    const struct owners *holders;

    (void)state;
    holders = allocations_holders(&table, GPU, "shared");
    assert_int_equal(owners_len(holders), 2);
    assert_ptr_equal(holders->v[0], a);
    assert_ptr_equal(holders->v[1], b);
    assert_null(allocations_holders(&table, NIC, "shared"));
    add(&table, "u1", "last", "g2");
    allocations_remove(&table, allocations_edit(&table, "u1", "last", GPU)); /* not the first */
    allocations_remove(&table, a);
    assert_null(allocations_holders(&table, GPU, "g0"));
    holders = allocations_holders(&table, GPU, "shared");
    assert_int_equal(owners_len(holders), 1);
    assert_ptr_equal(holders->v[0], b);
    allocations_fini(&table);
}

static void a_pod_knows_its_allocations(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "init", "g0"), *b = add(&table, "u1", "main", "g1");

    (void)state;
    add(&table, "u2", "main", "g2");
    assert_ptr_equal(allocations_of_pod(&table, "u1"), b);
    assert_ptr_equal(b->pod_next, a);
    assert_null(a->pod_next);
    allocations_remove(&table, a);
    assert_null(b->pod_next);
    allocations_remove(&table, b);
    assert_null(allocations_of_pod(&table, "u1"));
    assert_non_null(allocations_find(&table, "u2", "main", GPU));
    assert_null(allocations_find(&table, "u1", "main", GPU));
    allocations_fini(&table);
    assert_null(table.by_key);
    assert_null(table.devices);
    assert_null(table.containers);
    assert_null(table.pods);
}

static void its_life_is_what_is_known_of_its_containers(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    assert_int_equal(allocation_life(a), ALLOCATION_IDLE);
    allocation_set_unknown(a, "s1", 4711);
    assert_int_equal(allocation_life(a), ALLOCATION_UNKNOWN);
    allocation_set_live(a, "c1", "s1", 0);
    allocation_set_asked(a, 5);
    assert_int_equal(allocation_waits(a), ALLOCATION_WAITS_CHECK | ALLOCATION_WAITS_LIST);
    allocation_set_live(a, "c2", "s1", 0);
    assert_int_equal(allocation_life(a), ALLOCATION_LIVE);
    assert_false(allocation_set_answered(a, 5)); /* it would be about another container */
    assert_true(allocation_set_ended(a, "c1"));
    assert_false(allocation_set_ended(a, "c1"));
    assert_int_equal(allocation_life(a), ALLOCATION_LIVE);
    assert_true(allocation_set_ended(a, "c2")); /* the one nobody named may still come */
    assert_int_equal(allocation_life(a), ALLOCATION_UNKNOWN);
    assert_string_equal(a->unknown_in, "s1");
    assert_int_equal(a->unknown_until_ms, 4711);
    allocation_set_create(a, 7);
    assert_int_equal(allocation_life(a), ALLOCATION_BUSY);
    assert_int_equal(allocation_waits(a), ALLOCATION_WAITS_CREATE | ALLOCATION_WAITS_LIST);
    allocation_set_create(a, 0);
    allocation_set_idle(a);
    assert_int_equal(allocation_life(a), ALLOCATION_IDLE);
    assert_null(a->unknown_in);
    allocations_fini(&table);
}

static void it_lives_as_long_as_any_of_its_containers(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    allocation_set_live(a, "c1", "s1", 1);
    allocation_set_live(a, "c2", "s2", 2);
    allocation_set_live(a, "c0", "s0", 0);
    allocation_set_live(a, "c1", "s1", 1); /* told again */
    assert_int_equal(a->lives_len, 3);
    assert_string_equal(allocation_live_id(a), "c2");
    assert_true(allocation_set_ended(a, "c2"));
    assert_string_equal(allocation_live_id(a), "c1");
    allocation_set_unknown(a, "s1", 4711);
    allocation_set_asked(a, 5);
    allocation_set_sandbox_ended(a, "s2"); /* nothing of it is left */
    assert_int_equal(a->said.check, 5);
    allocation_set_sandbox_ended(a, "s1");
    assert_int_equal(a->said.check, 0);
    assert_string_equal(allocation_live_id(a), "c0");
    allocation_set_sandbox_ended(a, "s0");
    assert_int_equal(allocation_life(a), ALLOCATION_IDLE);
    assert_null(allocation_live_id(a));
    allocations_fini(&table);
}

static void commit(struct allocation *a, uint64_t number, const char *boot_id)
{
    allocation_queue(a);
    allocation_carry(a, number);
    assert_int_equal(allocation_waits(a), ALLOCATION_WAITS_STORE);
    allocation_confirm(a, boot_id);
    assert_int_equal(allocation_waits(a), 0);
}

static void fresh_options_are_in_force_once_durable(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");
    V1beta1__ContainerAllocateResponse *first = options_new(), *second = options_new();

    (void)state;
    allocation_set_fresh(a, options_new(), 1);
    allocation_set_fresh(a, first, 2); /* the last answer counts */
    commit(a, 1, "boot-1");
    assert_ptr_equal(a->options, first);
    assert_string_equal(a->boot_id, "boot-1");
    assert_int_equal(a->generation, 2);
    assert_int_equal(a->row, ALLOCATION_DURABLE);
    allocation_set_fresh(a, second, 3);
    allocation_revert(a);
    assert_ptr_equal(a->options, first);
    assert_null(a->fresh);
    commit(a, 2, "boot-2"); /* nothing fresh: the options stay of boot-1 */
    assert_string_equal(a->boot_id, "boot-1");
    allocations_fini(&table);
}

static void a_row_that_is_not_renewed_stays(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    assert_false(allocation_durable(a));
    allocation_queue(a);
    allocation_carry(a, 1);
    assert_false(allocation_durable(a)); /* there is none to go back to */
    allocation_confirm(a, "boot-1");
    assert_true(allocation_durable(a));
    allocation_set_fresh(a, options_new(), 1);
    allocation_queue(a);
    assert_true(allocation_durable(a));
    allocation_revert(a); /* its create was given up */
    assert_int_equal(a->row, ALLOCATION_DURABLE);
    allocation_queue(a);
    allocation_carry(a, 2);
    allocation_revert(a); /* the commit failed */
    assert_int_equal(a->row, ALLOCATION_DURABLE);
    assert_int_equal(a->commit, 0);
    allocations_fini(&table);
}

static void carry(struct allocation *a)
{
    allocation_carry(a, 1);
}

static void confirm(struct allocation *a)
{
    allocation_confirm(a, "");
}

/* What a container says stays whatever becomes of the row that a create has queued. */
static void a_row_of_one_that_was_found_stays(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    allocation_queue(a);
    assert_false(allocation_durable(a));
    allocation_set_found(a);
    assert_int_equal(a->row, ALLOCATION_QUEUED);
    assert_true(allocation_durable(a));
    carry(a);
    allocation_revert(a);
    assert_int_equal(a->row, ALLOCATION_DURABLE);
    assert_true(allocation_durable(a));
    allocations_fini(&table);
}

/* Tried in a process of its own, whose last words nobody needs to read. */
static void assert_aborts(void (*move)(struct allocation *), struct allocation *a)
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        move(a);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void a_move_that_there_is_not_is_a_bug(void **state)
{
    struct allocations table = {0};
    struct allocation *a = add(&table, "u1", "main", "g0");

    (void)state;
    assert_aborts(carry, a); /* RESERVED */
    assert_aborts(confirm, a);
    assert_aborts(allocation_revert, a);
    allocation_queue(a);
    assert_aborts(allocation_queue, a);
    assert_aborts(confirm, a);
    assert_aborts(allocation_revert, a); /* to nothing */
    carry(a);
    assert_aborts(allocation_queue, a);
    confirm(a);
    assert_aborts(carry, a);
    assert_aborts(allocation_set_found, a);
    allocations_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_knows_its_holders),
        cmocka_unit_test(a_pod_knows_its_allocations),
        cmocka_unit_test(its_life_is_what_is_known_of_its_containers),
        cmocka_unit_test(it_lives_as_long_as_any_of_its_containers),
        cmocka_unit_test(fresh_options_are_in_force_once_durable),
        cmocka_unit_test(a_row_that_is_not_renewed_stays),
        cmocka_unit_test(a_row_of_one_that_was_found_stays),
        cmocka_unit_test(a_move_that_there_is_not_is_a_bug),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
