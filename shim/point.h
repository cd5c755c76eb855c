/*
 * POINT("name") stands between two steps of what another process goes on with after this one was
 * killed. In a program it is nothing; tests that include or build such a source define it, and have
 * a process end there. Names differ within a file.
 */
#ifndef SHIM_POINT_H
#define SHIM_POINT_H

#ifndef POINT
#define POINT(name) ((void)0)
#endif

#endif
