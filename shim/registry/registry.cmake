# shim_registry: the plugin watcher.
add_library(shim_registry STATIC
    ${CMAKE_CURRENT_LIST_DIR}/elsewhere.c
    ${CMAKE_CURRENT_LIST_DIR}/handshake.c
    ${CMAKE_CURRENT_LIST_DIR}/info.c
    ${CMAKE_CURRENT_LIST_DIR}/kubelet_link.c
    ${CMAKE_CURRENT_LIST_DIR}/registry.c
    ${CMAKE_CURRENT_LIST_DIR}/sockets.c)
target_link_libraries(shim_registry
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE shim_rpc shim_watch shim_log cri_names shim_warnings)
