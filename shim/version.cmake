# Which commit is built: run at every build, since a checkout alone configures nothing anew. The file
# it writes is touched only when the text differs, so that nothing else is built for it.
#
# cmake -DSOURCE=dir -DVERSION=x.y.z -DOUT=file.c -P version.cmake
find_program(GIT git)
set(commit "")
if(GIT)
    # Of this directory, not of one that a tarball was unpacked in; and also as another user than the
    # one it belongs to.
    set(git ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE})
    execute_process(COMMAND ${git} rev-parse --show-prefix
                    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND prefix STREQUAL "")
        execute_process(COMMAND ${git} describe --always --dirty --abbrev=12 --exclude=*
                        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
endif()
if(commit STREQUAL "")
    file(STRINGS ${SOURCE}/shim/commit.txt commit LIMIT_COUNT 1)
    if(commit MATCHES "Format")
        set(commit "")
    endif()
    string(SUBSTRING "${commit}" 0 12 commit)
endif()
if(NOT commit STREQUAL "")
    set(commit " (${commit})")
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "shim/version.h"

const char version_text[] = "@VERSION@@commit@";
]])
