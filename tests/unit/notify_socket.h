/* The service manager's end of sd_notify(3), for the code under test. */
#ifndef TEST_NOTIFY_SOCKET_H
#define TEST_NOTIFY_SOCKET_H

/* A socket at `name` ('@' in front: abstract), which $NOTIFY_SOCKET tells from now on. */
int manager_at(const char *name);
/* The same at an abstract name of this process's own. */
int manager_start(void);
/* Closes it; nobody is told of any more. */
void manager_stop(int fd);

#endif
