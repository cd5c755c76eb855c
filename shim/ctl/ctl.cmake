# cri-device-shimctl: asks the daemon at its control socket, and shows the answer.
pkg_check_modules(SMARTCOLS REQUIRED IMPORTED_TARGET smartcols)

add_library(shim_ctl STATIC
    ${CMAKE_CURRENT_LIST_DIR}/allocations.c
    ${CMAKE_CURRENT_LIST_DIR}/archive.c
    ${CMAKE_CURRENT_LIST_DIR}/beside.c
    ${CMAKE_CURRENT_LIST_DIR}/checkpoint.c
    ${CMAKE_CURRENT_LIST_DIR}/claims.c
    ${CMAKE_CURRENT_LIST_DIR}/client.c
    ${CMAKE_CURRENT_LIST_DIR}/command.c
    ${CMAKE_CURRENT_LIST_DIR}/command_line.c
    ${CMAKE_CURRENT_LIST_DIR}/commands.c
    ${CMAKE_CURRENT_LIST_DIR}/consent.c
    ${CMAKE_CURRENT_LIST_DIR}/deviceclass.c
    ${CMAKE_CURRENT_LIST_DIR}/devices.c
    ${CMAKE_CURRENT_LIST_DIR}/drivers.c
    ${CMAKE_CURRENT_LIST_DIR}/end.c
    ${CMAKE_CURRENT_LIST_DIR}/endings.c
    ${CMAKE_CURRENT_LIST_DIR}/events.c
    ${CMAKE_CURRENT_LIST_DIR}/export.c
    ${CMAKE_CURRENT_LIST_DIR}/help.c
    ${CMAKE_CURRENT_LIST_DIR}/import.c
    ${CMAKE_CURRENT_LIST_DIR}/list.c
    ${CMAKE_CURRENT_LIST_DIR}/log_level.c
    ${CMAKE_CURRENT_LIST_DIR}/node.c
    ${CMAKE_CURRENT_LIST_DIR}/orders.c
    ${CMAKE_CURRENT_LIST_DIR}/pods.c
    ${CMAKE_CURRENT_LIST_DIR}/release.c
    ${CMAKE_CURRENT_LIST_DIR}/reload.c
    ${CMAKE_CURRENT_LIST_DIR}/resources.c
    ${CMAKE_CURRENT_LIST_DIR}/show.c
    ${CMAKE_CURRENT_LIST_DIR}/status.c
    ${CMAKE_CURRENT_LIST_DIR}/steer.c
    ${CMAKE_CURRENT_LIST_DIR}/support.c
    ${CMAKE_CURRENT_LIST_DIR}/table.c
    ${CMAKE_CURRENT_LIST_DIR}/taints.c
    ${CMAKE_CURRENT_LIST_DIR}/why.c
    ${CMAKE_CURRENT_LIST_DIR}/why_claims.c)
target_link_libraries(shim_ctl
    PUBLIC PkgConfig::LIBUV PkgConfig::JANSSON cri_proto
    PRIVATE PkgConfig::SMARTCOLS PkgConfig::ZLIB cri_names shim_answers shim_checkpoint shim_json shim_rpc shim_version shim_log shim_warnings)

add_executable(cri-device-shimctl ${CMAKE_CURRENT_LIST_DIR}/main.c)
target_link_libraries(cri-device-shimctl PRIVATE shim_ctl shim_version shim_warnings)
target_link_options(cri-device-shimctl PRIVATE -Wl,--gc-sections)
