unit_test(test_store_worker test_store_worker.c shim_core devicemgr rpc_fixture)
unit_test(test_rows_check test_rows_check.c shim_core devicemgr PkgConfig::CMOCKA)
unit_test(test_restore test_restore.c shim_core devicemgr plugin_fixture)
unit_test(test_host test_host.c shim_core devicemgr plugin_fixture runtime_fixture)
unit_test(test_drivers test_drivers.c shim_core devicemgr driver_fixture registering runtime_fixture
    plugin_fixture)
unit_test(test_host_counts test_host_counts.c shim_core)
