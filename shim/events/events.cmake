# shim_events: what came to pass on the node, kept for a day.
add_library(shim_events STATIC
    ${CMAKE_CURRENT_LIST_DIR}/event.c
    ${CMAKE_CURRENT_LIST_DIR}/events.c
    ${CMAKE_CURRENT_LIST_DIR}/events_file.c
    ${CMAKE_CURRENT_LIST_DIR}/ring.c
    ${CMAKE_CURRENT_LIST_DIR}/told.c)
target_link_libraries(shim_events
    PUBLIC PkgConfig::LIBUV
    PRIVATE cri_proto shim_log shim_warnings)
