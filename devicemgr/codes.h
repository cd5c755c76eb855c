/*
 * Numbers of other people's.
 */
#ifndef DEVICEMGR_CODES_H
#define DEVICEMGR_CODES_H

/* gRPC status codes used here ("Status codes and their use in gRPC"). */
enum {
    CODE_OK = 0,
    CODE_UNKNOWN = 2, /* the kubelet's own refusals of a Register call */
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_NOT_FOUND = 5,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_ABORTED = 10,
    CODE_UNAVAILABLE = 14,
};

/* syslog levels */
enum {
    LEVEL_ERROR = 3,
    LEVEL_WARNING = 4,
    LEVEL_INFO = 6,
    LEVEL_DEBUG = 7,
};

#endif
