# shim_cluster: the daemon's part of the cluster.
add_library(shim_cluster STATIC
    ${CMAKE_CURRENT_LIST_DIR}/agent_calls.c
    ${CMAKE_CURRENT_LIST_DIR}/cluster.c
    ${CMAKE_CURRENT_LIST_DIR}/core_news.c
    ${CMAKE_CURRENT_LIST_DIR}/core_taints.c
    ${CMAKE_CURRENT_LIST_DIR}/eviction_events.c
    ${CMAKE_CURRENT_LIST_DIR}/evictions.c
    ${CMAKE_CURRENT_LIST_DIR}/lift_driver.c
    ${CMAKE_CURRENT_LIST_DIR}/orders.c
    ${CMAKE_CURRENT_LIST_DIR}/pod_claims.c
    ${CMAKE_CURRENT_LIST_DIR}/pod_events.c
    ${CMAKE_CURRENT_LIST_DIR}/pool_order.c
    ${CMAKE_CURRENT_LIST_DIR}/pools.c
    ${CMAKE_CURRENT_LIST_DIR}/published.c
    ${CMAKE_CURRENT_LIST_DIR}/removed.c
    ${CMAKE_CURRENT_LIST_DIR}/removed_file.c
    ${CMAKE_CURRENT_LIST_DIR}/rivals.c
    ${CMAKE_CURRENT_LIST_DIR}/shutdown_feed.c
    ${CMAKE_CURRENT_LIST_DIR}/standing.c
    ${CMAKE_CURRENT_LIST_DIR}/wipes.c)
target_link_libraries(shim_cluster
    PUBLIC PkgConfig::LIBUV cri_proto shim_facts
    PRIVATE cri_names shim_core shim_rpc shim_log devicemgr shim_warnings)
