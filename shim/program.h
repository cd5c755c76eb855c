/*
 * The file that this process is run from, as it is by now: an upgrade puts another release in its
 * place, and it is that one which is started next.
 */
#ifndef SHIM_PROGRAM_H
#define SHIM_PROGRAM_H

#include <stdbool.h>

/* Remembers where the file is. At the start: later it may have been moved away. */
void program_note(void);

/* Whether these bytes are in the file that is there now. True also if there is none that can be
 * read, or nothing was noted. Reads it, some megabytes: not for each day. */
bool program_has(const char *text);

#endif
