#include "devicemgr/kubelet_file/kubelet_sum.h"

#include <stdio.h>

#define FNV_OFFSET 2166136261u
#define FNV_PRIME 16777619u

void kubelet_sum_init(struct kubelet_sum *sum)
{
    sum->value = FNV_OFFSET;
}

void kubelet_sum_text(struct kubelet_sum *sum, const char *text)
{
    for (; *text; text++)
        sum->value = (sum->value ^ (unsigned char)*text) * FNV_PRIME;
}

void kubelet_sum_strings(struct kubelet_sum *sum, const json_t *list)
{
    if (!list) {
        kubelet_sum_text(sum, "<nil>");
        return;
    }
    kubelet_sum_text(sum, "[");
    for (size_t i = 0; i < json_array_size(list); i++) {
        kubelet_sum_text(sum, i ? " " : "");
        kubelet_sum_text(sum, json_string_value(json_array_get(list, i)));
    }
    kubelet_sum_text(sum, "]");
}

void kubelet_sum_field(struct kubelet_sum *sum, const char *name, const char *value)
{
    kubelet_sum_text(sum, name);
    kubelet_sum_text(sum, ":(string)");
    kubelet_sum_text(sum, value);
    kubelet_sum_text(sum, " ");
}

void kubelet_sum_octets(struct kubelet_sum *sum, const uint8_t *octets, size_t len)
{
    char number[8];

    kubelet_sum_text(sum, "[");
    for (size_t i = 0; i < len; i++) {
        snprintf(number, sizeof number, i ? " %u" : "%u", octets[i]);
        kubelet_sum_text(sum, number);
    }
    kubelet_sum_text(sum, "]");
}
