# Writes OUT, a C source, with the page's files of DIR as bytes (files.h).
set(files "/|page.html|text/html" "/page.css|page.css|text/css" "/page.js|page.js|text/javascript")
set(arrays "")
set(table "")
foreach(file IN LISTS files)
    string(REPLACE "|" ";" parts "${file}")
    list(GET parts 0 path)
    list(GET parts 1 name)
    list(GET parts 2 type)
    file(READ "${DIR}/${name}" bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(MAKE_C_IDENTIFIER "${name}" id)
    string(APPEND arrays "static const unsigned char ${id}[] = {${bytes}};\n")
    string(APPEND table "    {\"${path}\", \"${type}; charset=utf-8\", ${id}, sizeof ${id}},\n")
endforeach()
file(WRITE "${OUT}" "#include \"shim/page/files.h\"\n\n${arrays}
const struct page_file page_files[] = {\n${table}};
const size_t page_files_len = sizeof page_files / sizeof *page_files;\n")
