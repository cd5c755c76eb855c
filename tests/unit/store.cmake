unit_test(test_store test_store.c devicemgr_store PkgConfig::SQLITE PkgConfig::ZLIB)
unit_test(test_store_faults test_store_faults.c devicemgr_store PkgConfig::SQLITE)
unit_test(test_store_migration test_store_migration.c devicemgr_store PkgConfig::SQLITE PkgConfig::ZLIB)
