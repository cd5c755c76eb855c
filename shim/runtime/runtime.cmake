# shim_runtime: what the shim asks of the runtime on its own account.
add_library(shim_runtime STATIC
    ${CMAKE_CURRENT_LIST_DIR}/cdi_support.c
    ${CMAKE_CURRENT_LIST_DIR}/event_sharing.c
    ${CMAKE_CURRENT_LIST_DIR}/identity.c
    ${CMAKE_CURRENT_LIST_DIR}/listed.c
    ${CMAKE_CURRENT_LIST_DIR}/lister.c
    ${CMAKE_CURRENT_LIST_DIR}/stopper.c
    ${CMAKE_CURRENT_LIST_DIR}/version_number.c)
target_link_libraries(shim_runtime
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE PkgConfig::JANSSON shim_rpc shim_log shim_warnings)
