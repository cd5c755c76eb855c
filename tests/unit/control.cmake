unit_test(test_told_id test_told_id.c shim_control)
