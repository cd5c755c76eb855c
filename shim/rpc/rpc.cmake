# shim_rpc: gRPC over unix sockets, both roles.
add_library(shim_rpc STATIC
    ${CMAKE_CURRENT_LIST_DIR}/acceptor.c
    ${CMAKE_CURRENT_LIST_DIR}/call.c
    ${CMAKE_CURRENT_LIST_DIR}/caller.c
    ${CMAKE_CURRENT_LIST_DIR}/channel.c
    ${CMAKE_CURRENT_LIST_DIR}/field.c
    ${CMAKE_CURRENT_LIST_DIR}/follower.c
    ${CMAKE_CURRENT_LIST_DIR}/incoming.c
    ${CMAKE_CURRENT_LIST_DIR}/keeper.c
    ${CMAKE_CURRENT_LIST_DIR}/link.c
    ${CMAKE_CURRENT_LIST_DIR}/link_session.c
    ${CMAKE_CURRENT_LIST_DIR}/listener.c
    ${CMAKE_CURRENT_LIST_DIR}/message.c
    ${CMAKE_CURRENT_LIST_DIR}/numbered.c
    ${CMAKE_CURRENT_LIST_DIR}/pulse.c
    ${CMAKE_CURRENT_LIST_DIR}/resume.c
    ${CMAKE_CURRENT_LIST_DIR}/server.c
    ${CMAKE_CURRENT_LIST_DIR}/sieve.c
    ${CMAKE_CURRENT_LIST_DIR}/socket_file.c
    ${CMAKE_CURRENT_LIST_DIR}/status.c
    ${CMAKE_CURRENT_LIST_DIR}/stored_listener.c
    ${CMAKE_CURRENT_LIST_DIR}/unix_socket.c)
target_link_libraries(shim_rpc
    PUBLIC PkgConfig::LIBUV PkgConfig::PROTOBUF_C
    PRIVATE PkgConfig::NGHTTP2 PkgConfig::ZLIB cri_fields shim_fd_store shim_log shim_warnings)
