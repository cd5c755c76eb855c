# shim_page: the page for people. Its files are bytes of the program.
set(page_files_source ${CMAKE_CURRENT_BINARY_DIR}/page_files.c)
add_custom_command(
    OUTPUT ${page_files_source}
    COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_CURRENT_LIST_DIR} -DOUT=${page_files_source}
            -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/embed.cmake ${CMAKE_CURRENT_LIST_DIR}/page.html
            ${CMAKE_CURRENT_LIST_DIR}/page.css ${CMAKE_CURRENT_LIST_DIR}/page.js
    VERBATIM)
add_library(shim_page STATIC
    ${CMAKE_CURRENT_LIST_DIR}/authority.c
    ${CMAKE_CURRENT_LIST_DIR}/page.c
    ${CMAKE_CURRENT_LIST_DIR}/questions.c
    ${page_files_source})
target_link_libraries(shim_page
    PRIVATE shim_answers shim_control shim_metrics shim_events shim_settings shim_core shim_json shim_log devicemgr
        shim_warnings)
