# shim_relay: the transparent path from a client's connection to the runtime's.
set(RELAY_SESSION
    ${CMAKE_CURRENT_LIST_DIR}/session.c
    ${CMAKE_CURRENT_LIST_DIR}/session/blocks.c
    ${CMAKE_CURRENT_LIST_DIR}/session/call_message.c
    ${CMAKE_CURRENT_LIST_DIR}/session/dispatch.c
    ${CMAKE_CURRENT_LIST_DIR}/session/ending.c
    ${CMAKE_CURRENT_LIST_DIR}/session/freeze.c
    ${CMAKE_CURRENT_LIST_DIR}/session/from_client.c
    ${CMAKE_CURRENT_LIST_DIR}/session/from_runtime.c
    ${CMAKE_CURRENT_LIST_DIR}/session/inside.c
    ${CMAKE_CURRENT_LIST_DIR}/session/late_acks.c
    ${CMAKE_CURRENT_LIST_DIR}/session/settings_frames.c
    ${CMAKE_CURRENT_LIST_DIR}/session/settings_queue.c
    ${CMAKE_CURRENT_LIST_DIR}/session/stream.c
    ${CMAKE_CURRENT_LIST_DIR}/session/windows.c
    ${CMAKE_CURRENT_LIST_DIR}/session/withheld.c)
add_library(shim_relay STATIC
    ${CMAKE_CURRENT_LIST_DIR}/buffer.c
    ${CMAKE_CURRENT_LIST_DIR}/calls.c
    ${CMAKE_CURRENT_LIST_DIR}/cdi_names.c
    ${CMAKE_CURRENT_LIST_DIR}/command_vars.c
    ${CMAKE_CURRENT_LIST_DIR}/connection.c
    ${CMAKE_CURRENT_LIST_DIR}/connection_leave.c
    ${CMAKE_CURRENT_LIST_DIR}/connection_make.c
    ${CMAKE_CURRENT_LIST_DIR}/create_changes.c
    ${CMAKE_CURRENT_LIST_DIR}/create_container.c
    ${CMAKE_CURRENT_LIST_DIR}/flow.c
    ${CMAKE_CURRENT_LIST_DIR}/frame.c
    ${CMAKE_CURRENT_LIST_DIR}/frozen.c
    ${CMAKE_CURRENT_LIST_DIR}/header_listener.c
    ${CMAKE_CURRENT_LIST_DIR}/header_memo.c
    ${CMAKE_CURRENT_LIST_DIR}/journal.c
    ${CMAKE_CURRENT_LIST_DIR}/journal_move.c
    ${CMAKE_CURRENT_LIST_DIR}/journal_take.c
    ${CMAKE_CURRENT_LIST_DIR}/kept.c
    ${CMAKE_CURRENT_LIST_DIR}/lane.c
    ${CMAKE_CURRENT_LIST_DIR}/long_strings.c
    ${CMAKE_CURRENT_LIST_DIR}/mount_redirect.c
    ${CMAKE_CURRENT_LIST_DIR}/observed_calls.c
    ${CMAKE_CURRENT_LIST_DIR}/pending_creates.c
    ${CMAKE_CURRENT_LIST_DIR}/plugin_mounts.c
    ${CMAKE_CURRENT_LIST_DIR}/refusals.c
    ${CMAKE_CURRENT_LIST_DIR}/relay.c
    ${CMAKE_CURRENT_LIST_DIR}/relists.c
    ${CMAKE_CURRENT_LIST_DIR}/replay.c
    ${CMAKE_CURRENT_LIST_DIR}/sandbox_runs.c
    ${CMAKE_CURRENT_LIST_DIR}/tally.c
    ${CMAKE_CURRENT_LIST_DIR}/token_displace.c
    ${CMAKE_CURRENT_LIST_DIR}/wire.c
    ${RELAY_SESSION})
target_link_libraries(shim_relay
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE PkgConfig::NGHTTP2 PkgConfig::ZLIB cri_names shim_exact_io shim_fd_store shim_rpc shim_log
            shim_warnings)

# The parts of a session as one translation unit: what is called for each frame is inlined across
# their files. With sanitizers each by itself, which shows that it can be.
if(NOT SHIM_SANITIZE)
    set_source_files_properties(${RELAY_SESSION} PROPERTIES UNITY_GROUP session)
    set_target_properties(shim_relay PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endif()
