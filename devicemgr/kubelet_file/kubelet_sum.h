/*
 * The checksum of the kubelet's checkpoint: FNV-1a over the text that Go's spew makes of the data.
 * Its parts are added in the order of that text.
 */
#ifndef DEVICEMGR_KUBELET_FILE_KUBELET_SUM_H
#define DEVICEMGR_KUBELET_FILE_KUBELET_SUM_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct kubelet_sum {
    uint32_t value;
};

void kubelet_sum_init(struct kubelet_sum *sum);
void kubelet_sum_text(struct kubelet_sum *sum, const char *text);
/* A list of strings, after its type; NULL is Go's nil slice, which JSON says as null. */
void kubelet_sum_strings(struct kubelet_sum *sum, const json_t *list);
/* A struct's member of type string. */
void kubelet_sum_field(struct kubelet_sum *sum, const char *name, const char *value);
/* A slice of bytes, after its type. */
void kubelet_sum_octets(struct kubelet_sum *sum, const uint8_t *octets, size_t len);

#endif
