add_library(rpc_fixture STATIC rpc_fixture.c)
target_link_libraries(rpc_fixture PUBLIC shim_rpc PkgConfig::CMOCKA PkgConfig::NGHTTP2
                      PRIVATE shim_warnings)

add_library(rpc_served STATIC rpc_served.c)
target_link_libraries(rpc_served PUBLIC rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_rpc_connect test_rpc_connect.c rpc_fixture)
unit_test(test_rpc_acceptor test_rpc_acceptor.c shim_rpc shim_log)
unit_test(test_rpc_listen test_rpc_listen.c shim_rpc)
unit_test(test_socket_file test_socket_file.c shim_rpc)
unit_test(test_keeper test_keeper.c rpc_fixture shim_log)
unit_test(test_rpc_status test_rpc_status.c shim_rpc PkgConfig::NGHTTP2)
unit_test(test_rpc_field test_rpc_field.c shim_rpc PkgConfig::NGHTTP2)
unit_test(test_rpc_message test_rpc_message.c shim_rpc cri_proto PkgConfig::ZLIB)
unit_test(test_rpc_pulse test_rpc_pulse.c rpc_fixture)
unit_test(test_rpc_link test_rpc_link.c rpc_fixture)

# The client's files: channel.c and call.c.
add_library(rpc_calling STATIC rpc_calling.c)
target_link_libraries(rpc_calling PUBLIC rpc_served PRIVATE shim_warnings)
unit_test(test_rpc_call test_rpc_call.c rpc_calling)
unit_test(test_rpc_channel test_rpc_channel.c rpc_calling)
unit_test(test_rpc_sieve test_rpc_sieve.c shim_rpc)
unit_test(test_rpc_resume test_rpc_resume.c rpc_calling)

# The server's: server.c, caller.c and incoming.c.
add_library(rpc_asked STATIC rpc_asked.c)
target_link_libraries(rpc_asked PUBLIC rpc_served PRIVATE shim_warnings)
unit_test(test_rpc_caller test_rpc_caller.c rpc_asked)
unit_test(test_rpc_incoming test_rpc_incoming.c rpc_asked)
unit_test(test_rpc_server test_rpc_server.c rpc_asked)
target_link_options(test_rpc_server PRIVATE -Wl,--wrap=unix_peer,--wrap=uv_now)

unit_test(test_rpc_numbered test_rpc_numbered.c rpc_served)
unit_test(test_rpc_faults test_rpc_faults.c rpc_fixture alloc_fail cri_proto)

# The gRPC layer as a program, for tests/integration/test_rpc_peer.py.
add_executable(rpc_peer ${CMAKE_SOURCE_DIR}/tests/integration/rpc_peer.c)
target_link_libraries(rpc_peer PRIVATE shim_rpc cri_proto shim_warnings)
set_target_properties(rpc_peer PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/integration)
