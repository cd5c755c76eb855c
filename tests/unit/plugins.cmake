add_library(test_plugin_fixture STATIC test_plugin_fixture.c)
target_link_libraries(test_plugin_fixture PUBLIC test_rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_store_worker test_store_worker.c shim_plugin_world test_rpc_fixture)
unit_test(test_registrar test_registrar.c shim_plugin_world test_rpc_fixture)
unit_test(test_plugin_client test_plugin_client.c shim_plugin_world test_plugin_fixture)
unit_test(test_builtins test_builtins.c shim_plugin_world test_rpc_fixture)
unit_test(test_manager test_manager.c shim_plugins shim_plugin_world devicemgr test_plugin_fixture
          test_runtime_fixture)
