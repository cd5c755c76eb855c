# Checkpoints that no daemon has open: looked at, exported, put in the place of others.
add_library(shim_offline STATIC
    ${CMAKE_CURRENT_LIST_DIR}/document.c
    ${CMAKE_CURRENT_LIST_DIR}/document_dra.c
    ${CMAKE_CURRENT_LIST_DIR}/document_reading.c
    ${CMAKE_CURRENT_LIST_DIR}/offline.c
    ${CMAKE_CURRENT_LIST_DIR}/offline_import.c
    ${CMAKE_CURRENT_LIST_DIR}/replace.c
    ${CMAKE_CURRENT_LIST_DIR}/rows.c
    ${CMAKE_CURRENT_LIST_DIR}/say.c
    ${CMAKE_CURRENT_LIST_DIR}/source.c)
target_link_libraries(shim_offline
    PUBLIC shim_checkpoint shim_core config
    PRIVATE shim_json cri_proto devicemgr devicemgr_store shim_log shim_warnings)
