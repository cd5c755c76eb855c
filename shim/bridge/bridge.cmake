# shim_bridge: all of the second process but its main().
add_library(shim_bridge STATIC
    ${CMAKE_CURRENT_LIST_DIR}/allocate.c
    ${CMAKE_CURRENT_LIST_DIR}/bridge.c
    ${CMAKE_CURRENT_LIST_DIR}/dra/claims_call.c
    ${CMAKE_CURRENT_LIST_DIR}/dra/health_streams.c
    ${CMAKE_CURRENT_LIST_DIR}/dra/health_watch.c
    ${CMAKE_CURRENT_LIST_DIR}/dra/stand_in.c
    ${CMAKE_CURRENT_LIST_DIR}/dra/stand_ins.c
    ${CMAKE_CURRENT_LIST_DIR}/endpoint.c
    ${CMAKE_CURRENT_LIST_DIR}/enrolment.c
    ${CMAKE_CURRENT_LIST_DIR}/feed_client.c
    ${CMAKE_CURRENT_LIST_DIR}/h2_answer.c
    ${CMAKE_CURRENT_LIST_DIR}/h2_put.c
    ${CMAKE_CURRENT_LIST_DIR}/h2_state.c
    ${CMAKE_CURRENT_LIST_DIR}/kept_call.c
    ${CMAKE_CURRENT_LIST_DIR}/kept_connection.c
    ${CMAKE_CURRENT_LIST_DIR}/kept_layout.c
    ${CMAKE_CURRENT_LIST_DIR}/kept_memory.c
    ${CMAKE_CURRENT_LIST_DIR}/kept_server.c
    ${CMAKE_CURRENT_LIST_DIR}/kept_socket.c
    ${CMAKE_CURRENT_LIST_DIR}/kubelet_dir.c
    ${CMAKE_CURRENT_LIST_DIR}/list.c
    ${CMAKE_CURRENT_LIST_DIR}/list_stream.c
    ${CMAKE_CURRENT_LIST_DIR}/names.c
    ${CMAKE_CURRENT_LIST_DIR}/offer.c
    ${CMAKE_CURRENT_LIST_DIR}/own_settings.c
    ${CMAKE_CURRENT_LIST_DIR}/preference.c
    ${CMAKE_CURRENT_LIST_DIR}/registration.c
    ${CMAKE_CURRENT_LIST_DIR}/request_block.c
    ${CMAKE_CURRENT_LIST_DIR}/roster.c
    ${CMAKE_CURRENT_LIST_DIR}/service.c
    ${CMAKE_CURRENT_LIST_DIR}/snapshot.c
    ${CMAKE_CURRENT_LIST_DIR}/starts.c)
target_link_libraries(shim_bridge
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE shim_settings config shim_health_words shim_exact_io shim_fd_store shim_rpc shim_watch shim_log cri_names cri_token PkgConfig::NGHTTP2 PkgConfig::ZLIB shim_warnings)

add_executable(cri-device-shim-bridge ${CMAKE_CURRENT_LIST_DIR}/main.c)
target_link_libraries(cri-device-shim-bridge PRIVATE
    shim_bridge shim_fd_store shim_rpc shim_version shim_config_argument shim_settings shim_signals shim_log config shim_warnings)
target_link_options(cri-device-shim-bridge PRIVATE -Wl,--gc-sections)
if(NOT SHIM_SANITIZE AND NOT SHIM_FUZZ)
    # Of the C++ runtime only the config reader's part is needed, and only at the start.
    target_link_options(cri-device-shim-bridge PRIVATE -static-libstdc++ -static-libgcc)
endif()
