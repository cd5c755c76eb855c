unit_test(test_store test_store.c devicemgr_store PkgConfig::SQLITE PkgConfig::ZLIB)
