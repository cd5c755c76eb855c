# shim_plugins: what talks with plugins, and the built-in devices.
add_library(shim_plugins STATIC
    ${CMAKE_CURRENT_LIST_DIR}/builtins.c
    ${CMAKE_CURRENT_LIST_DIR}/left_streams.c
    ${CMAKE_CURRENT_LIST_DIR}/plugin_client.c
    ${CMAKE_CURRENT_LIST_DIR}/plugin_socket.c
    ${CMAKE_CURRENT_LIST_DIR}/registrar.c)
target_link_libraries(shim_plugins
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE shim_fd_store shim_rpc shim_watch shim_log shim_warnings)
