unit_test(test_ctl_command_line test_ctl_command_line.c shim_ctl)
unit_test(test_ctl_help test_ctl_help.c shim_ctl)
