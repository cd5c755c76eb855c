add_library(plugin_fixture STATIC plugin_fixture.c)
target_link_libraries(plugin_fixture PUBLIC rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_registrar test_registrar.c shim_plugins rpc_fixture)
unit_test(test_plugin_client test_plugin_client.c notify_socket shim_plugins shim_fd_store shim_log
    plugin_fixture alloc_fail)
unit_test(test_builtins test_builtins.c shim_plugins rpc_fixture)
unit_test(test_plugin_socket test_plugin_socket.c shim_plugins shim_rpc rpc_fixture)
target_link_options(test_plugin_socket PRIVATE -Wl,--wrap=fstat,--wrap=lstat)
