# shim_kubelet_file: the kubelet's checkpoint, read at once.
add_library(shim_kubelet_file STATIC ${CMAKE_CURRENT_LIST_DIR}/checkpoint_file.c)
target_link_libraries(shim_kubelet_file PRIVATE shim_log devicemgr shim_warnings)

# shim_kubelet: the daemon's part of the bridge: what the kubelet is to be shown, and has taken.
add_library(shim_kubelet STATIC
    ${CMAKE_CURRENT_LIST_DIR}/advertised.c
    ${CMAKE_CURRENT_LIST_DIR}/advertised_list.c
    ${CMAKE_CURRENT_LIST_DIR}/armed_file.c
    ${CMAKE_CURRENT_LIST_DIR}/checkpoint_watch.c
    ${CMAKE_CURRENT_LIST_DIR}/claim_questions.c
    ${CMAKE_CURRENT_LIST_DIR}/displaced.c
    ${CMAKE_CURRENT_LIST_DIR}/drivers_shown.c
    ${CMAKE_CURRENT_LIST_DIR}/feed.c
    ${CMAKE_CURRENT_LIST_DIR}/gate.c
    ${CMAKE_CURRENT_LIST_DIR}/health_shown.c
    ${CMAKE_CURRENT_LIST_DIR}/held.c
    ${CMAKE_CURRENT_LIST_DIR}/kubelets.c
    ${CMAKE_CURRENT_LIST_DIR}/open_streams.c
    ${CMAKE_CURRENT_LIST_DIR}/questions.c
    ${CMAKE_CURRENT_LIST_DIR}/taken.c
    ${CMAKE_CURRENT_LIST_DIR}/watchers.c)
target_link_libraries(shim_kubelet
    PUBLIC PkgConfig::LIBUV cri_proto
    PRIVATE shim_kubelet_file shim_health_words shim_core shim_rpc shim_watch shim_log devicemgr shim_warnings)
