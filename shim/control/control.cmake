# shim_control: the daemon's side of cri-device-shimctl.
add_library(shim_control STATIC
    ${CMAKE_CURRENT_LIST_DIR}/asked.c
    ${CMAKE_CURRENT_LIST_DIR}/checkpointing.c
    ${CMAKE_CURRENT_LIST_DIR}/control.c
    ${CMAKE_CURRENT_LIST_DIR}/follow.c
    ${CMAKE_CURRENT_LIST_DIR}/log_levels.c
    ${CMAKE_CURRENT_LIST_DIR}/list.c
    ${CMAKE_CURRENT_LIST_DIR}/list_allocations.c
    ${CMAKE_CURRENT_LIST_DIR}/list_claims.c
    ${CMAKE_CURRENT_LIST_DIR}/list_devices.c
    ${CMAKE_CURRENT_LIST_DIR}/list_driver_devices.c
    ${CMAKE_CURRENT_LIST_DIR}/list_drivers.c
    ${CMAKE_CURRENT_LIST_DIR}/list_endings.c
    ${CMAKE_CURRENT_LIST_DIR}/list_orders.c
    ${CMAKE_CURRENT_LIST_DIR}/list_pods.c
    ${CMAKE_CURRENT_LIST_DIR}/list_resources.c
    ${CMAKE_CURRENT_LIST_DIR}/list_taints.c
    ${CMAKE_CURRENT_LIST_DIR}/status.c
    ${CMAKE_CURRENT_LIST_DIR}/ending.c
    ${CMAKE_CURRENT_LIST_DIR}/releasing.c
    ${CMAKE_CURRENT_LIST_DIR}/steering.c
    ${CMAKE_CURRENT_LIST_DIR}/told_id.c
    ${CMAKE_CURRENT_LIST_DIR}/why.c
    ${CMAKE_CURRENT_LIST_DIR}/why_claims.c
    ${CMAKE_CURRENT_LIST_DIR}/why_endings.c)
target_link_libraries(shim_control
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE config shim_events shim_settings shim_core shim_health_words shim_report shim_rpc shim_version shim_log devicemgr
        shim_warnings)
