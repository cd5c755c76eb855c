# shim_plugin_world: plugins, built-in devices and the checkpoint's worker, each by itself.
add_library(shim_plugin_world STATIC
    ${CMAKE_CURRENT_LIST_DIR}/builtins.c
    ${CMAKE_CURRENT_LIST_DIR}/plugin_client.c
    ${CMAKE_CURRENT_LIST_DIR}/registrar.c
    ${CMAKE_CURRENT_LIST_DIR}/store_worker.c)
target_link_libraries(shim_plugin_world
    PUBLIC PkgConfig::LIBUV cri_proto devicemgr_store
    PRIVATE shim_rpc shim_watch shim_log shim_warnings)

# shim_plugins: the device manager's core bound to all of that.
add_library(shim_plugins STATIC ${CMAKE_CURRENT_LIST_DIR}/manager.c)
target_link_libraries(shim_plugins
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE shim_plugin_world shim_runtime shim_rpc shim_log devicemgr devicemgr_store
            shim_warnings)
