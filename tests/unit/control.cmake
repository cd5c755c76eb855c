unit_test(test_answers test_answers.c shim_answers)
unit_test(test_told_id test_told_id.c shim_control)
unit_test(test_status test_status.c shim_control shim_settings shim_core devicemgr)
