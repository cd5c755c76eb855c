add_library(h2_script STATIC h2_script.c wire.c)
target_link_libraries(h2_script PUBLIC alloc_fail shim_relay PkgConfig::NGHTTP2
                      PRIVATE PkgConfig::CMOCKA)

# relay_test(NAME LIBRARY...): a test of one file of shim/relay.
function(relay_test name)
    unit_test(${name} ${name}.c h2_script shim_relay shim_rpc shim_log cri_proto ${ARGN})
endfunction()

relay_test(test_buffer)
relay_test(test_flow)
relay_test(test_frame)
relay_test(test_frozen)
relay_test(test_header_listener)
unit_test(test_header_memo test_header_memo.c shim_relay shim_rpc cri_proto PkgConfig::NGHTTP2)
relay_test(test_journal)
relay_test(test_lane)
relay_test(test_long_strings)

# session.c and its parts.
add_library(session_script STATIC session_script.c)
target_link_libraries(session_script PUBLIC h2_script PRIVATE shim_warnings PkgConfig::CMOCKA
                      PkgConfig::ZLIB)
foreach(part "" _blocks _call_message _dispatch _ending _freeze _from_client _from_runtime _late_acks
        _settings_frames _settings_queue _stream _windows _withheld)
    relay_test(test_session${part} session_script)
endforeach()
target_sources(test_session_freeze PRIVATE session_next.c)
target_link_libraries(test_session_freeze PRIVATE PkgConfig::ZLIB)
target_compile_definitions(test_session_freeze PRIVATE
    CAPTURES="${CMAKE_SOURCE_DIR}/tests/integration/captures")
relay_test(test_session_random)
relay_test(test_tally)
relay_test(test_create_container)
relay_test(test_mount_redirect)
relay_test(test_cdi_names)
relay_test(test_token_displace)
relay_test(test_command_vars)
relay_test(test_plugin_mounts)
relay_test(test_connection notify_socket)
relay_test(test_log)
relay_test(test_log_line PkgConfig::JANSSON)
relay_test(test_deaths)
relay_test(test_directory)
relay_test(test_service_manager notify_socket)

target_link_options(test_log PRIVATE -Wl,--wrap=pwritev2,--wrap=sendto)
target_link_options(test_connection PRIVATE -Wl,--wrap=sendmsg,--wrap=syscall)
target_link_options(test_plugin_mounts PRIVATE -Wl,--wrap=log_write)

# relists.c with a recording stand-in for the gate.
add_library(gate_stand_in STATIC gate_stand_in.c)
target_link_libraries(gate_stand_in PUBLIC h2_script PRIVATE shim_warnings PkgConfig::CMOCKA)
relay_test(test_relists gate_stand_in)

# relay.c with stand-ins for calls.c.
relay_test(test_refusals)
relay_test(test_relay)

# calls.c with recording stand-ins for the core and its host.
unit_test(test_calls test_calls.c gate_stand_in h2_script shim_relay shim_rpc shim_log cri_proto)
