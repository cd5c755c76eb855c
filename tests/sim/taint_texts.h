/*
 * What a pod of the world of taints is called, and what is written on it and on its container.
 */
#ifndef TESTS_SIM_TAINT_TEXTS_H
#define TESTS_SIM_TAINT_TEXTS_H

#include <stddef.h>

#include "devicemgr/devicemgr.h"

struct tw_pod;

struct tw_texts {
    char uid[16], sandbox[16], container[16], grace[24], request[32], tolerations[512];
    struct devicemgr_annotation pod[3], own[2];
    size_t pod_len, own_len;
    char *token_key, *token;
};

/* As it is now; for taint_texts_fini(). Its annotations point into it. */
void taint_texts_init(struct tw_texts *texts, const struct tw_pod *pod);
void taint_texts_fini(struct tw_texts *texts);

#endif
