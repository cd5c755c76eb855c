# shim_relay: the transparent path from a client's connection to the runtime's.
add_library(shim_relay STATIC
    ${CMAKE_CURRENT_LIST_DIR}/buffer.c
    ${CMAKE_CURRENT_LIST_DIR}/calls.c
    ${CMAKE_CURRENT_LIST_DIR}/connection.c
    ${CMAKE_CURRENT_LIST_DIR}/create_container.c
    ${CMAKE_CURRENT_LIST_DIR}/flow.c
    ${CMAKE_CURRENT_LIST_DIR}/frame.c
    ${CMAKE_CURRENT_LIST_DIR}/header_block.c
    ${CMAKE_CURRENT_LIST_DIR}/header_memo.c
    ${CMAKE_CURRENT_LIST_DIR}/lane.c
    ${CMAKE_CURRENT_LIST_DIR}/mount_redirect.c
    ${CMAKE_CURRENT_LIST_DIR}/plugin_mounts.c
    ${CMAKE_CURRENT_LIST_DIR}/refusals.c
    ${CMAKE_CURRENT_LIST_DIR}/relay.c
    ${CMAKE_CURRENT_LIST_DIR}/relists.c
    ${CMAKE_CURRENT_LIST_DIR}/session.c)
target_link_libraries(shim_relay
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE PkgConfig::NGHTTP2 shim_rpc shim_log shim_warnings)
