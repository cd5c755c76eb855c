add_library(test_plugin_fixture STATIC test_plugin_fixture.c)
target_link_libraries(test_plugin_fixture PUBLIC test_rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_registrar test_registrar.c shim_plugins test_rpc_fixture)
unit_test(test_plugin_client test_plugin_client.c notify_socket shim_plugins shim_fd_store shim_log
    test_plugin_fixture alloc_fail)
unit_test(test_builtins test_builtins.c shim_plugins test_rpc_fixture)
unit_test(test_plugin_socket test_plugin_socket.c shim_plugins shim_rpc test_rpc_fixture)
target_link_options(test_plugin_socket PRIVATE -Wl,--wrap=fstat,--wrap=lstat)
