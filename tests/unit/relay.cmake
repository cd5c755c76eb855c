set(ALLOC_FAIL_LINK -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)

add_library(h2_script STATIC h2_script.c wire.c alloc_fail.c)
target_link_libraries(h2_script PUBLIC shim_relay PkgConfig::NGHTTP2 PRIVATE PkgConfig::CMOCKA)

# relay_test(NAME LIBRARY...): a test of one file of shim/relay.
function(relay_test name)
    unit_test(${name} ${name}.c h2_script shim_relay shim_rpc shim_log cri_proto ${ARGN})
    target_link_options(${name} PRIVATE ${ALLOC_FAIL_LINK})
endfunction()

relay_test(test_buffer)
relay_test(test_flow)
relay_test(test_frame)
relay_test(test_header_block)
unit_test(test_header_memo test_header_memo.c shim_relay shim_rpc cri_proto PkgConfig::NGHTTP2)
relay_test(test_lane)
relay_test(test_session PkgConfig::ZLIB)
relay_test(test_session_random)
relay_test(test_create_container)
relay_test(test_mount_redirect)
relay_test(test_plugin_mounts)
relay_test(test_connection)
relay_test(test_log)
relay_test(test_directory)
relay_test(test_service_manager)

target_link_options(test_plugin_mounts PRIVATE -Wl,--wrap=log_write)

# relists.c with a recording stand-in for the gate.
relay_test(test_relists)

# relay.c with stand-ins for calls.c.
relay_test(test_refusals)
relay_test(test_relay)

# calls.c with recording stand-ins for the manager and the core.
unit_test(test_calls test_calls.c h2_script shim_relay shim_rpc shim_log cri_proto)
target_link_options(test_calls PRIVATE ${ALLOC_FAIL_LINK})
