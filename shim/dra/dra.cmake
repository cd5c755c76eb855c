# shim_dra: what talks with DRA drivers.
add_library(shim_dra STATIC
    ${CMAKE_CURRENT_LIST_DIR}/answer.c
    ${CMAKE_CURRENT_LIST_DIR}/claim_calls.c
    ${CMAKE_CURRENT_LIST_DIR}/driver_client.c
    ${CMAKE_CURRENT_LIST_DIR}/kubelet_claims.c
    ${CMAKE_CURRENT_LIST_DIR}/services.c)
target_link_libraries(shim_dra
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE cri_fields cri_names PkgConfig::JANSSON shim_log shim_plugins shim_rpc shim_warnings)
