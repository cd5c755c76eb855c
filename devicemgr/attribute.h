/*
 * What is said of a device to who chooses one by what it is (lift.h), beside what its plugin says
 * of it.
 */
#ifndef DEVICEMGR_ATTRIBUTE_H
#define DEVICEMGR_ATTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

enum devicemgr_attribute_kind {
    DEVICEMGR_ATTRIBUTE_TEXT,
    DEVICEMGR_ATTRIBUTE_NUMBER,
    DEVICEMGR_ATTRIBUTE_FLAG,
    DEVICEMGR_ATTRIBUTE_VERSION, /* a text, compared as Semantic Versioning 2.0.0 does */
};

struct devicemgr_attribute {
    const char *name;
    enum devicemgr_attribute_kind kind;
    const char *text; /* these by its kind */
    int64_t number;
    bool flag;
};

/* One that the settings have. */
struct devicemgr_settings_attribute {
    const char *device; /* ids, with glob(7) characters */
    struct devicemgr_attribute attribute;
};

#endif
