/*
 * Texts of the kubelet's checkpoint, as a kubelet writes them, checksum and all.
 */
#ifndef TESTS_UNIT_KUBELET_FILES_H
#define TESTS_UNIT_KUBELET_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/kubelet_file/kubelet_checkpoint.h"

/* Pod uid-1's container main has "gone" of v.com/gpu, whose healthy devices are g10 and g2. */
#define KUBELET_FILE_HELD                                                                          \
    "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"uid-1\",\"ContainerName\":\"main\","           \
    "\"ResourceName\":\"v.com/gpu\",\"DeviceIDs\":{\"-1\":[\"gone\"]},\"AllocResp\":null}],"       \
    "\"RegisteredDevices\":{\"v.com/gpu\":[\"g10\",\"g2\"]}},\"Checksum\":4154800970}"
/* Nobody has anything; g0 is healthy. */
#define KUBELET_FILE_FREE                                                                          \
    "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{\"v.com/gpu\":[\"g0\"]}},"        \
    "\"Checksum\":513682014}"

/* As the kubelet does it: the whole file beside its place, then renamed. 0, or -1. */
static inline int kubelet_file_write(const char *dir, const char *text)
{
    char path[256], beside[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/" KUBELET_CHECKPOINT_FILE, dir);
    snprintf(beside, sizeof beside, "%s/.beside", dir);
    file = fopen(beside, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        return -1;
    return rename(beside, path);
}

#endif
