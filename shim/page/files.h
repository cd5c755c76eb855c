/*
 * The files of the page, as they are in this directory, in the program (embed.cmake).
 */
#ifndef SHIM_PAGE_FILES_H
#define SHIM_PAGE_FILES_H

#include <stddef.h>

struct page_file {
    const char *path; /* in a URL */
    const char *type;
    const unsigned char *bytes;
    size_t len;
};

extern const struct page_file page_files[];
extern const size_t page_files_len;

#endif
