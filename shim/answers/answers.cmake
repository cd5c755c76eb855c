# shim_answers: what the daemon answers, as JSON.
add_library(shim_answers STATIC
    ${CMAKE_CURRENT_LIST_DIR}/allocations.c
    ${CMAKE_CURRENT_LIST_DIR}/answers.c
    ${CMAKE_CURRENT_LIST_DIR}/claims.c
    ${CMAKE_CURRENT_LIST_DIR}/devices.c
    ${CMAKE_CURRENT_LIST_DIR}/drivers.c
    ${CMAKE_CURRENT_LIST_DIR}/endings.c
    ${CMAKE_CURRENT_LIST_DIR}/events.c
    ${CMAKE_CURRENT_LIST_DIR}/orders.c
    ${CMAKE_CURRENT_LIST_DIR}/pods.c
    ${CMAKE_CURRENT_LIST_DIR}/resources.c
    ${CMAKE_CURRENT_LIST_DIR}/status.c
    ${CMAKE_CURRENT_LIST_DIR}/taints.c
    ${CMAKE_CURRENT_LIST_DIR}/why.c
    ${CMAKE_CURRENT_LIST_DIR}/why_claims.c)
target_link_libraries(shim_answers
    PUBLIC PkgConfig::JANSSON cri_proto
    PRIVATE shim_json shim_rpc shim_warnings)
