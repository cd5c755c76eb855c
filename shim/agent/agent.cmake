# shim_agent: all of the third process but its main(). What is loaded when it is needed is not linked (systemd.h).
add_library(shim_agent STATIC
    ${CMAKE_CURRENT_LIST_DIR}/agent.c
    ${CMAKE_CURRENT_LIST_DIR}/answer.c
    ${CMAKE_CURRENT_LIST_DIR}/api_client.c
    ${CMAKE_CURRENT_LIST_DIR}/backoff.c
    ${CMAKE_CURRENT_LIST_DIR}/bus.c
    ${CMAKE_CURRENT_LIST_DIR}/certificate.c
    ${CMAKE_CURRENT_LIST_DIR}/credentials.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon_feed.c
    ${CMAKE_CURRENT_LIST_DIR}/delay_lock.c
    ${CMAKE_CURRENT_LIST_DIR}/exec_plugin.c
    ${CMAKE_CURRENT_LIST_DIR}/json_splitter.c
    ${CMAKE_CURRENT_LIST_DIR}/kubeconfig.c
    ${CMAKE_CURRENT_LIST_DIR}/logind.c
    ${CMAKE_CURRENT_LIST_DIR}/object_counters.c
    ${CMAKE_CURRENT_LIST_DIR}/objects.c
    ${CMAKE_CURRENT_LIST_DIR}/order_capacity.c
    ${CMAKE_CURRENT_LIST_DIR}/order_dra.c
    ${CMAKE_CURRENT_LIST_DIR}/order_evict.c
    ${CMAKE_CURRENT_LIST_DIR}/order_publish.c
    ${CMAKE_CURRENT_LIST_DIR}/order_tell.c
    ${CMAKE_CURRENT_LIST_DIR}/orders.c
    ${CMAKE_CURRENT_LIST_DIR}/pool_slices.c
    ${CMAKE_CURRENT_LIST_DIR}/query.c
    ${CMAKE_CURRENT_LIST_DIR}/reflector.c
    ${CMAKE_CURRENT_LIST_DIR}/served.c
    ${CMAKE_CURRENT_LIST_DIR}/shutdown.c
    ${CMAKE_CURRENT_LIST_DIR}/slice_json.c
    ${CMAKE_CURRENT_LIST_DIR}/spam.c
    ${CMAKE_CURRENT_LIST_DIR}/systemd.c
    ${CMAKE_CURRENT_LIST_DIR}/tell.c
    ${CMAKE_CURRENT_LIST_DIR}/transport.c)
target_include_directories(shim_agent PRIVATE ${SYSTEMD_INCLUDE_DIRS})
target_link_libraries(shim_agent
    PUBLIC PkgConfig::LIBUV PkgConfig::JANSSON cri_proto
    PRIVATE cri_names shim_facts shim_fd_store shim_library shim_rpc shim_log PkgConfig::CURL PkgConfig::CRYPTO PkgConfig::YAML
            shim_warnings)

add_executable(cri-device-shim-agent ${CMAKE_CURRENT_LIST_DIR}/main.c)
target_link_libraries(cri-device-shim-agent PRIVATE
    shim_agent shim_fd_store shim_version shim_config_argument shim_settings shim_signals shim_log config shim_warnings)
target_link_options(cri-device-shim-agent PRIVATE -Wl,--gc-sections)
if(NOT SHIM_SANITIZE AND NOT SHIM_FUZZ)
    # Of the C++ runtime only the config reader's part is needed, and only at the start.
    target_link_options(cri-device-shim-agent PRIVATE -static-libstdc++ -static-libgcc)
endif()
