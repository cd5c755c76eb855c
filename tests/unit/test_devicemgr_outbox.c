/* What one part has for others: in order, each once. */
#include "devicemgr/books/outbox.h"
#include "devicemgr_world.h"

static void assert_taken(struct outbox *outbox, enum outbox_kind kind, uint64_t number,
                         const char *name)
{
    struct outbox_event *event = outbox_take(outbox);

    assert_non_null(event);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->number, number);
    if (name)
        assert_string_equal(event->name, name);
    else
        assert_null(event->name);
    outbox_event_free(event);
}

static void events_come_out_in_order(void **state)
{
    struct outbox outbox = {0};

    (void)state;
    assert_null(outbox_take(&outbox));
    outbox_put(&outbox, OUTBOX_ENDPOINT_ENDED, 7, NULL);
    outbox_put(&outbox, OUTBOX_RESOURCE_SERVED, 0, "vendor.com/gpu");
    outbox_put(&outbox, OUTBOX_ENDPOINT_ENDED, 3, NULL);
    assert_taken(&outbox, OUTBOX_ENDPOINT_ENDED, 7, NULL);
    assert_taken(&outbox, OUTBOX_RESOURCE_SERVED, 0, "vendor.com/gpu");
    assert_taken(&outbox, OUTBOX_ENDPOINT_ENDED, 3, NULL);
    assert_null(outbox_take(&outbox));
}

static void one_of_a_kind_and_object_is_enough(void **state)
{
    struct outbox outbox = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        outbox_put(&outbox, OUTBOX_RESOURCE_SERVED, 0, "vendor.com/gpu");
        outbox_put(&outbox, OUTBOX_ENDPOINT_ENDED, 5, NULL);
        outbox_put(&outbox, OUTBOX_ENDPOINT_ENDED, 6, NULL);
        outbox_put(&outbox, OUTBOX_RESOURCE_SERVED, 0, "other.com/nic");
    }
    assert_taken(&outbox, OUTBOX_RESOURCE_SERVED, 0, "vendor.com/gpu");
    assert_taken(&outbox, OUTBOX_ENDPOINT_ENDED, 5, NULL);
    assert_taken(&outbox, OUTBOX_ENDPOINT_ENDED, 6, NULL);
    assert_taken(&outbox, OUTBOX_RESOURCE_SERVED, 0, "other.com/nic");
    assert_null(outbox_take(&outbox));
    outbox_put(&outbox, OUTBOX_RESOURCE_SERVED, 0, "other.com/nic"); /* anew: that one was taken */
    outbox_fini(&outbox);
    assert_null(outbox_take(&outbox));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_out_in_order),
        cmocka_unit_test(one_of_a_kind_and_object_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
