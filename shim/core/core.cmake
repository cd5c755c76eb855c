# shim_core: the device manager's core bound to its world.
add_library(shim_core STATIC
    ${CMAKE_CURRENT_LIST_DIR}/core_settings.c
    ${CMAKE_CURRENT_LIST_DIR}/drivers.c
    ${CMAKE_CURRENT_LIST_DIR}/events.c
    ${CMAKE_CURRENT_LIST_DIR}/host.c
    ${CMAKE_CURRENT_LIST_DIR}/host_counts.c
    ${CMAKE_CURRENT_LIST_DIR}/lifted.c
    ${CMAKE_CURRENT_LIST_DIR}/ports.c
    ${CMAKE_CURRENT_LIST_DIR}/registered_mark.c
    ${CMAKE_CURRENT_LIST_DIR}/restore.c
    ${CMAKE_CURRENT_LIST_DIR}/rows_check.c
    ${CMAKE_CURRENT_LIST_DIR}/store_worker.c)
target_link_libraries(shim_core
    PUBLIC PkgConfig::LIBUV cri_proto devicemgr_store
    PRIVATE shim_plugins shim_registry shim_dra shim_runtime shim_log devicemgr shim_warnings)
