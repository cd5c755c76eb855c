unit_test(test_events_event test_events_event.c shim_events)
unit_test(test_events_ring test_events_ring.c shim_events)
unit_test(test_events_file test_events_file.c shim_events)
unit_test(test_events test_events.c shim_events rpc_fixture)
