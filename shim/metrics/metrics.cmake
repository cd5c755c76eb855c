# What is loaded when it is needed is not linked (microhttpd.h).
add_library(shim_metrics STATIC
    ${CMAKE_CURRENT_LIST_DIR}/exposition.c
    ${CMAKE_CURRENT_LIST_DIR}/families.c
    ${CMAKE_CURRENT_LIST_DIR}/http_server.c
    ${CMAKE_CURRENT_LIST_DIR}/metrics.c
    ${CMAKE_CURRENT_LIST_DIR}/microhttpd.c
    ${CMAKE_CURRENT_LIST_DIR}/status.c)
target_include_directories(shim_metrics PRIVATE ${MICROHTTPD_INCLUDE_DIRS})
target_link_libraries(shim_metrics PUBLIC PkgConfig::LIBUV
    PRIVATE PkgConfig::JANSSON shim_relay shim_kubelet shim_core shim_rpc shim_library shim_report shim_json shim_log shim_version config devicemgr m
            shim_warnings)
