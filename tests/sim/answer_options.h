/*
 * Runtime options as plugins answer with them, containers get them and rows have them.
 */
#ifndef TESTS_SIM_ANSWER_OPTIONS_H
#define TESTS_SIM_ANSWER_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

/* The caller frees them. Texts are copied. */
V1beta1__ContainerAllocateResponse *answer_options_new(void);
/* Accepts NULL. */
void answer_options_free(V1beta1__ContainerAllocateResponse *options);
void answer_options_add_env(V1beta1__ContainerAllocateResponse *options, const char *key,
                            const char *value);
void answer_options_add_annotation(V1beta1__ContainerAllocateResponse *options, const char *key,
                                   const char *value);
void answer_options_add_device(V1beta1__ContainerAllocateResponse *options,
                               const char *container_path, const char *host_path);
void answer_options_add_cdi(V1beta1__ContainerAllocateResponse *options, const char *name);
/* Tells two apart. */
uint64_t answer_options_hash(const V1beta1__ContainerAllocateResponse *options);

#endif
