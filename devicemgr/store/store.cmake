# The checkpoint on disk; beside the core, which does no I/O and does not use it.
add_library(devicemgr_store STATIC
    store/store.c
    store/store_copy.c
    store/store_db.c
    store/store_file.c
    store/store_look.c
    store/store_scan.c
    store/store_schema.c
    store/store_table.c)
target_link_libraries(devicemgr_store
    PUBLIC cri_proto_generated
    PRIVATE shim_warnings PkgConfig::SQLITE PkgConfig::ZLIB)
