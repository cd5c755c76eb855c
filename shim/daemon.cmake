# What runs instead of the daemon, or beside it, and ends.
add_library(shim_commands STATIC ${CMAKE_CURRENT_LIST_DIR}/kubelet_import.c
                                 ${CMAKE_CURRENT_LIST_DIR}/token_list.c)
target_link_libraries(shim_commands
    PRIVATE shim_kubelet_file shim_log cri_proto devicemgr devicemgr_store shim_warnings)

include(${CMAKE_CURRENT_LIST_DIR}/offline/offline.cmake)

add_executable(cri-device-shim
    ${CMAKE_CURRENT_LIST_DIR}/main.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon_events.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon_gate.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon_report.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon_settings.c
    ${CMAKE_CURRENT_LIST_DIR}/daemon_stop.c)
target_link_libraries(cri-device-shim PRIVATE
    shim_commands shim_offline shim_version shim_settings shim_signals shim_metrics shim_page shim_relay shim_kubelet shim_cluster shim_control shim_events shim_core shim_report
    shim_rpc shim_log
    devicemgr devicemgr_store config shim_warnings)
target_link_options(cri-device-shim PRIVATE -Wl,--gc-sections)
if(NOT SHIM_SANITIZE AND NOT SHIM_FUZZ)
    # Of the C++ runtime only the config reader's part is needed, and only at the start.
    target_link_options(cri-device-shim PRIVATE -static-libstdc++ -static-libgcc)
endif()
